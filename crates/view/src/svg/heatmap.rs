//! Measured matrices as heat maps.
//!
//! A colour says how many times worse a cell is than the best cell of its matrix, in the same steps
//! in every picture, so that pictures of two machines can be laid side by side. The colour bar below has the
//! values. Counts are coloured by their share of the sum instead.

use crate::digest::matrix::{AxisId, Entry, Matrix, Scale, too_many};
use crate::digest::survey::{Ending, digits};
use crate::svg::font::Font;
use crate::svg::frame::{Anchor, Frame, Label, Pen, Role, Stack, Stroke, Tone};
use crate::svg::legend::{colour_bar, square};
use crate::svg::sheet::{self, HEAD, MARGIN, SMALL, TEXT};

/// The widest page.
const WIDTH: f64 = 980.0;
/// Between two matrices.
pub(super) const GUTTER: f64 = 28.0;
const NUMBER: Font = Font::regular(11.0);
/// The number of a disturbed cell; all cells have room for it.
const BOLD: Font = Font::bold(11.0);
/// Height of the numbers of columns, and of a cell with a number.
const TOP: f64 = 16.0;
const ROW: f64 = 24.0;
/// Between the numbers of rows and the cells.
const LEFT: f64 = 6.0;
/// Up to this many columns have numbers in their cells, where the page has room for them.
const NUMBERED: usize = 24;
/// The smallest side of a cell without a number where there is a choice.
const SMALLEST: f64 = 5.0;
/// Up to this many nodes are drawn: beyond, a cell is smaller than a reader can see.
const MOST: usize = 256;
/// Up to how many times the best value each colour goes; the last has no end.
const STEPS: [f64; 5] = [1.1, 1.4, 1.8, 2.5, 4.0];
/// Below which percentage of the sum each colour is; the last goes up to all.
const SHARES: [f64; 5] = [1.0, 5.0, 10.0, 25.0, 50.0];

/// Lays out matrices below a title, with lines about them and the end of the report below.
pub(super) fn page<I: AxisId>(
    title: &str,
    platform: &str,
    matrices: &[Matrix<I>],
    about: &[String],
    ending: &Ending,
) -> Frame {
    sheet_of(title, platform, matrices.iter().map(panel).collect(), about, ending)
}

/// Lays out panels below a title, as [`page`] does.
pub(super) fn sheet_of(
    title: &str,
    platform: &str,
    panels: Vec<Frame>,
    about: &[String],
    ending: &Ending,
) -> Frame {
    let width = flow_width(&panels).max(560.0);
    let mut stack = Stack::new(Role::Page, width + 2.0 * MARGIN, MARGIN);
    sheet::begin(title, platform, &mut stack);
    stack.gap(14.0);
    stack.flow(panels, GUTTER);
    about.iter().for_each(|line| stack.text(line, TEXT, Tone::Plain, 3));
    sheet::end(ending, &mut stack);
    stack.finish()
}

/// The width of panels side by side, as many in a row as the widest page has room for.
pub(super) fn flow_width(panels: &[Frame]) -> f64 {
    let (mut row, mut widest) = (0.0_f64, 0.0_f64);
    for panel in panels {
        let beside = row + GUTTER + panel.area.width;
        row = if row == 0.0 || beside > WIDTH - 2.0 * MARGIN { panel.area.width } else { beside };
        widest = widest.max(row);
    }
    // What adds up to the width has to fit in it, rounded or not.
    widest + 0.1
}

/// One matrix with its title and the meaning of its colours.
pub(super) fn panel<I: AxisId>(matrix: &Matrix<I>) -> Frame {
    shaded(matrix, Shading::TimesWorse)
}

/// One matrix of counts, whose colours are shares of their sum. Cells of one place are outlined: local ones.
pub(super) fn share_panel<I: AxisId>(matrix: &Matrix<I>) -> Frame {
    let sum = matrix.cells().filter_map(|entry| entry.value).sum();
    shaded(matrix, Shading::ShareOf(sum))
}

/// The meaning of a colour.
#[derive(Clone, Copy)]
enum Shading {
    /// How many times worse than the best cell.
    TimesWorse,
    /// The share of this sum.
    ShareOf(f64),
}

fn shaded<I: AxisId>(matrix: &Matrix<I>, shading: Shading) -> Frame {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let drawn = rows.len().max(columns.len()) <= MOST;
    let note = if drawn { String::new() } else { too_many(rows.len(), columns.len(), MOST) };
    let grid = drawn.then(|| Grid::new(matrix, (&rows, &columns), shading));
    let remark = format!("{}; {}", matrix.remark, I::SIDES);
    let frame = grid.as_ref().map(Grid::frame);
    let least = frame.as_ref().map_or(0.0, |frame| frame.area.width).max(150.0);
    let legend = grid.as_ref().map(Grid::legend).unwrap_or_default();
    let widest = legend.iter().map(|entry| entry.area.width).fold(0.0, f64::max);
    let wanted = [HEAD.width(&matrix.title), SMALL.width(&remark), TEXT.width(&note), widest];
    let width = wanted.into_iter().fold(least, f64::max).min(WIDTH - 2.0 * MARGIN);
    let mut stack = Stack::new(Role::Group, width + 1.0, 0.0);
    stack.text(&matrix.title, HEAD, Tone::Plain, 1);
    stack.text(&remark, SMALL, Tone::Faint, 2);
    stack.gap(6.0);
    stack.text(&note, TEXT, Tone::Notable, 2);
    frame.into_iter().for_each(|frame| stack.frame(frame));
    if !legend.is_empty() {
        stack.gap(8.0);
        stack.flow(legend, 12.0);
    }
    stack.gap(10.0);
    stack.finish()
}

/// A matrix on its way to a frame.
struct Grid<'m, I> {
    matrix: &'m Matrix<I>,
    rows: &'m [I],
    columns: &'m [I],
    scale: Scale,
    shading: Shading,
    /// Width of the widest number of a row or column.
    head: f64,
    /// Whether cells have room for their numbers.
    is_numbered: bool,
    /// A cell's width and height.
    cell: (f64, f64),
}

impl<'m, I: AxisId> Grid<'m, I> {
    fn new(matrix: &'m Matrix<I>, (rows, columns): (&'m [I], &'m [I]), shading: Shading) -> Self {
        let scale = matrix.scale();
        let heads = rows.iter().chain(columns).map(|place| SMALL.width(&place.to_string()));
        let head = heads.fold(0.0, f64::max);
        let page = WIDTH - 2.0 * MARGIN;
        let numbers = matrix.cells().map(|entry| BOLD.width(&scale.text(Some(entry))));
        let width = numbers.fold(head.max(30.0), f64::max) + 10.0;
        let is_numbered = columns.len() <= NUMBERED && head + LEFT + columns.len() as f64 * width <= page;
        let cell = if is_numbered {
            (width, ROW)
        } else {
            // Two side by side where cells are large enough for it, else as large as can be.
            let side = |room: f64| ((room - head - LEFT) / columns.len() as f64).floor();
            let half = side((page - GUTTER) / 2.0 - 2.0);
            let side = if half >= SMALLEST { half.min(14.0) } else { side(page) };
            (side, side)
        };
        Self { matrix, rows, columns, scale, shading, head, is_numbered, cell }
    }

    fn frame(&self) -> Frame {
        let (left, (width, height)) = (self.head + LEFT, self.cell);
        let size = (left + self.columns.len() as f64 * width, TOP + self.rows.len() as f64 * height);
        let mut frame = Frame::new(Role::Group, size.0, size.1);
        self.heads(&mut frame);
        for (row, from) in self.rows.iter().enumerate() {
            let cells = self.row(*from).into_iter();
            frame.children.extend(cells.map(|cell| cell.moved(left, TOP + row as f64 * height)));
            let local = self.columns.iter().position(|memory| memory == from);
            if let (Shading::ShareOf(_), Some(column)) = (self.shading, local) {
                let corner = (left + column as f64 * width, TOP + row as f64 * height);
                frame.strokes.push(self.outline(corner));
            }
        }
        frame
    }

    /// A line around a cell with this corner, inside of it.
    fn outline(&self, (x, y): (f64, f64)) -> Stroke {
        let (right, bottom) = (x + self.cell.0 - 1.0, y + self.cell.1 - 1.0);
        let points = vec![(x, y), (right, y), (right, bottom), (x, bottom), (x, y)];
        Stroke { points, pen: Pen::Limit, ring: 0.0 }
    }

    /// The cells of a row from left to right; neighbours of one colour are one where they have no numbers.
    fn row(&self, from: I) -> Vec<Frame> {
        let mut cells: Vec<Frame> = Vec::new();
        for (column, memory) in self.columns.iter().enumerate() {
            let cell = self.child(self.matrix.get(from, *memory));
            match cells.last_mut() {
                Some(last) if !self.is_numbered && last.role == cell.role => {
                    last.area.width += cell.area.width;
                }
                _ => cells.push(cell.moved(column as f64 * self.cell.0, 0.0)),
            }
        }
        cells
    }

    /// The numbers above and on the left, as many as have room.
    fn heads(&self, frame: &mut Frame) {
        let (left, (width, height)) = (self.head + LEFT, self.cell);
        let every = |room: f64, taken: f64| (taken / room).ceil().max(1.0) as usize;
        for (at, place) in self.columns.iter().enumerate().step_by(every(width, self.head + 3.0)) {
            let x = left + (at as f64 + 0.5) * width;
            if x + self.head / 2.0 <= frame.area.width {
                let label = Label::new(&place.to_string(), SMALL, x, (0.0, TOP - 2.0));
                frame.labels.push(label.anchored(Anchor::Middle).toned(Tone::Faint));
            }
        }
        for (at, place) in self.rows.iter().enumerate().step_by(every(height, SMALL.size + 1.0)) {
            let (top, room) = (TOP + at as f64 * height, height.max(SMALL.size));
            if top + room <= frame.area.height + 0.1 {
                let label = Label::new(&place.to_string(), SMALL, left - 5.0, (top, room));
                frame.labels.push(label.anchored(Anchor::End).toned(Tone::Faint));
            }
        }
    }

    /// A cell, in the corner; those without numbers touch.
    fn child(&self, entry: Option<&Entry>) -> Frame {
        let (gap, (width, height)) = (if self.is_numbered { 1.0 } else { 0.0 }, self.cell);
        let role = self.role(entry);
        let mut child = Frame::new(role, width - gap, height - gap);
        if self.is_numbered {
            let font = if entry.is_some_and(|entry| entry.disturbed) { BOLD } else { NUMBER };
            let text = self.scale.text(entry);
            let label = Label::new(&text, font, (width - gap) / 2.0, (0.0, height - gap));
            child.labels.push(label.anchored(Anchor::Middle).toned(Tone::on(role)));
        }
        child
    }

    /// The step of an entry; `None` for what is not a multiple of the best, and for no share.
    fn step(&self, entry: &Entry) -> Option<usize> {
        let value = entry.value?;
        match self.shading {
            Shading::TimesWorse => {
                let times = self.scale.times_worse(value)?;
                Some(STEPS.iter().position(|most| times <= *most).unwrap_or(STEPS.len()))
            }
            Shading::ShareOf(sum) => {
                let percent = (value > 0.0).then(|| value / sum * 100.0)?;
                Some(SHARES.iter().position(|end| percent < *end).unwrap_or(SHARES.len()))
            }
        }
    }

    fn role(&self, entry: Option<&Entry>) -> Role {
        entry.and_then(|entry| self.step(entry)).map_or(Role::NoDistance, colour)
    }

    /// Whether a cell of a row has no colour.
    fn has_bare(&self, from: I) -> bool {
        self.columns.iter().any(|memory| self.role(self.matrix.get(from, *memory)) == Role::NoDistance)
    }

    /// The colour bar from the best value to the worst; none where all cells have the same colour, and their
    /// numbers. Cells without numbers that have no colour are named.
    fn legend(&self) -> Vec<Frame> {
        if let Shading::ShareOf(_) = self.shading {
            let none = self.rows.iter().any(|from| self.has_bare(*from));
            return [share_bar()].into_iter().chain(none.then(|| square(Role::NoDistance, "none"))).collect();
        }
        let farthest = self.matrix.cells().filter_map(|entry| self.step(entry)).max();
        let bar = farthest.filter(|step| *step > 0 || !self.is_numbered).and_then(|step| self.bar(step));
        let bare = (!self.is_numbered && self.rows.iter().any(|from| self.has_bare(*from)))
            .then(|| square(Role::NoDistance, "no figure"));
        bar.into_iter().chain(bare).collect()
    }

    /// The colours up to a step, with the values at their edges.
    fn bar(&self, farthest: usize) -> Option<Frame> {
        let times = |entry: &Entry| self.scale.times_worse(entry.value?);
        let worst = self.matrix.cells().filter_map(times).max_by(f64::total_cmp)?;
        let edges = [1.0].into_iter().chain(STEPS.into_iter().take(farthest)).chain([worst]);
        let values: Option<Vec<String>> =
            edges.map(|times| self.scale.worse_than_best(times).map(digits)).collect();
        let values = values?;
        if values[0] == values[values.len() - 1] {
            return Some(square(colour(farthest), &format!("{} {}", values[0], self.matrix.unit)));
        }
        let colours: Vec<Role> = (0..=farthest).map(colour).collect();
        Some(colour_bar(&colours, &values, self.matrix.unit))
    }
}

/// The colours of shares. All of them, so that pictures of several programs can be laid side by side.
fn share_bar() -> Frame {
    let edges = [0.0].into_iter().chain(SHARES).chain([100.0]);
    let values: Vec<String> = edges.map(|edge| format!("{edge}")).collect();
    let colours: Vec<Role> = (0..=SHARES.len()).map(colour).collect();
    colour_bar(&colours, &values, "% of all; outlined: local")
}

fn colour(step: usize) -> Role {
    Role::Distance(u8::try_from(step).unwrap_or(Role::FARTHEST))
}

#[cfg(test)]
mod tests {
    use nodewise_machine::NodeId;
    use nodewise_stats::Direction;

    use super::*;

    fn check(nodes: u32, cells: usize, texts: &[&str]) {
        let mut matrix = Matrix::new("small pages", "ns", "ns", Direction::LowerIsBetter);
        for (from, memory) in (0..nodes).flat_map(|from| (0..nodes).map(move |memory| (from, memory))) {
            let value = Some(if from == memory { 80.0 } else { 150.0 });
            matrix.set(NodeId::new(from), NodeId::new(memory), Entry { value, disturbed: false });
        }
        let panel = panel(&matrix);
        let of = |frame: &Frame| matches!(frame.role, Role::Distance(_)) && frame.labels.is_empty();
        // Cells are squares, and neighbours of one colour are one. The legend is no higher than its bar.
        let squares = |frame: &Frame| (frame.area.width / frame.area.height).round() as usize;
        let drawn =
            |frame: &Frame| frame.children.iter().filter(|frame| of(frame)).map(squares).sum::<usize>();
        let grids = panel.children.iter().filter(|frame| frame.area.height > 100.0);
        assert_eq!(grids.map(drawn).sum::<usize>(), cells);
        let legend = panel.children.iter().flat_map(|entry| &entry.labels);
        let told: Vec<&str> = panel.labels.iter().chain(legend).map(|label| label.text.as_str()).collect();
        for text in texts {
            assert!(told.contains(text), "{text}: {told:?}");
        }
        assert!(panel.area.width <= WIDTH, "{} wide", panel.area.width);
    }

    #[test]
    fn as_many_nodes_are_drawn_as_a_reader_can_see_and_more_are_counted() {
        // The edges of the colours that occur, from the best value to the worst.
        let bar = ["80.0", "88.0", "112", "144", "150", "ns"];
        check(40, 1600, &bar);
        check(256, 65_536, &bar);
        check(257, 0, &["257 rows of 257 columns are more than the 256 that are shown; --csv has all"]);
    }
}
