//! Measured matrices as heat maps.
//!
//! A colour says how many times worse a cell is than the best cell of its matrix, in the same steps
//! in every picture, so that pictures of two machines can be laid side by side.

use nodewise_measure::latency::{Report, findings};

use crate::digest::latency::{Shown, matrix, method, page_walks, sentence};
use crate::digest::matrix::{Entry, Matrix, Place};
use crate::digest::survey::{platform, proof, refusals};
use crate::svg::font::Font;
use crate::svg::frame::{Anchor, Frame, Label, Role, Stack, Tone};
use crate::svg::paint::paint;
use crate::svg::palette::Theme;
use crate::svg::sheet::{HEAD, MARGIN, SMALL, TEXT, TITLE, printable};

/// The widest page.
const WIDTH: f64 = 980.0;
/// Between two matrices.
const GUTTER: f64 = 28.0;
const NUMBER: Font = Font::regular(11.0);
/// Height of a cell with a number.
const ROW: f64 = 24.0;
/// Up to this many columns have numbers in their cells.
const NUMBERED: usize = 24;
/// Up to this many nodes are drawn: beyond, a cell is smaller than a reader can see.
const MOST: usize = 256;
/// Up to how many times the best value each colour goes; the last has no end.
const STEPS: [f64; 5] = [1.1, 1.4, 1.8, 2.5, 4.0];

/// Draws a report of latencies as an SVG document.
///
/// # Units
/// Lengths in px; at most 980 wide.
pub fn latency_svg(report: &Report, theme: Theme) -> String {
    let (title, page) = latency_page(report);
    paint(&page, &title, &method(report), theme)
}

/// Lays out the picture of a report of latencies: its title, and the page.
pub fn latency_page(report: &Report) -> (String, Frame) {
    let mut matrices: Vec<Matrix> =
        report.page_kinds().into_iter().map(|pages| matrix(report, pages, Shown::Median)).collect();
    matrices.extend(page_walks(report));
    let nodes = report.targets().len().max(report.sources().len());
    let title = format!("Memory latency, {nodes} node{}", if nodes == 1 { "" } else { "s" });
    let subtitle = platform(&report.account.conditions);
    let mut foot = vec![method(report)];
    foot.extend(proof(report.cells.iter(), report.size));
    let mut notes: Vec<String> =
        refusals(report.cells.iter()).into_iter().map(|(place, why)| format!("{place}: {why}")).collect();
    notes.extend(findings(report).iter().map(sentence));
    let page = page(&title, &subtitle, &matrices, &foot, &notes);
    (title, page)
}

/// Lays out matrices below a title, with remarks and findings below them.
pub fn page<I: Place>(
    title: &str,
    subtitle: &str,
    matrices: &[Matrix<I>],
    foot: &[String],
    notes: &[String],
) -> Frame {
    let panels: Vec<Frame> = matrices.iter().map(panel).collect();
    let width = flow_width(&panels).max(560.0);
    let mut stack = Stack::new(Role::Page, width + 2.0 * MARGIN, MARGIN);
    stack.text(&printable(title), TITLE, Tone::Plain, 2);
    stack.text(&printable(subtitle), TEXT, Tone::Faint, 2);
    stack.gap(14.0);
    stack.flow(panels, GUTTER);
    stack.gap(12.0);
    for line in foot {
        stack.text(&printable(line), SMALL, Tone::Faint, 3);
    }
    if !notes.is_empty() {
        stack.gap(6.0);
    }
    for line in notes.iter().take(12) {
        stack.text(&printable(line), TEXT, Tone::Notable, 3);
    }
    if notes.len() > 12 {
        stack.text(&format!("and {} more", notes.len() - 12), TEXT, Tone::Notable, 1);
    }
    stack.finish()
}

/// The width of panels side by side, as many in a row as the widest page has room for.
fn flow_width(panels: &[Frame]) -> f64 {
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
fn panel<I: Place>(matrix: &Matrix<I>) -> Frame {
    let grid = grid(matrix);
    let legend = legend(matrix);
    let wanted = [HEAD.width(&matrix.title), SMALL.width(&remark(matrix))];
    let width = wanted.into_iter().fold(grid.area.width.max(150.0), f64::max).min(WIDTH - 2.0 * MARGIN);
    let mut stack = Stack::new(Role::Group, width + 1.0, 0.0);
    stack.text(&matrix.title, HEAD, Tone::Plain, 1);
    stack.text(&remark(matrix), SMALL, Tone::Faint, 2);
    stack.gap(6.0);
    stack.frame(grid);
    if !legend.is_empty() {
        stack.gap(8.0);
        stack.flow(legend, 4.0);
    }
    stack.gap(10.0);
    stack.finish()
}

fn remark<I: Place>(matrix: &Matrix<I>) -> String {
    format!("{}; {}", matrix.remark, I::SIDES)
}

fn grid<I: Place>(matrix: &Matrix<I>) -> Frame {
    const TOP: f64 = 16.0;
    let (rows, columns) = (matrix.rows(), matrix.columns());
    if rows.len().max(columns.len()) > MOST {
        return Frame::new(Role::Group, 0.0, 0.0);
    }
    let numbered = columns.len() <= NUMBERED;
    let heads = rows.iter().chain(&columns).map(|node| SMALL.width(&node.to_string()));
    let head = heads.fold(0.0, f64::max);
    let left = head + 6.0;
    let (cell, height) = if numbered {
        (number_width(matrix).max(head).max(30.0) + 10.0, ROW)
    } else {
        let cell = ((WIDTH - 2.0 * MARGIN - left) / columns.len() as f64).floor().min(14.0);
        (cell, cell)
    };
    let gap = if numbered { 1.0 } else { 0.0 };
    let size = (left + columns.len() as f64 * cell, TOP + rows.len() as f64 * height);
    let mut frame = Frame::new(Role::Group, size.0, size.1);
    let every = |room: f64, taken: f64| (taken / room).ceil().max(1.0) as usize;
    for (at, node) in columns.iter().enumerate().step_by(every(cell, head + 3.0)) {
        let x = left + (at as f64 + 0.5) * cell;
        if x + head / 2.0 <= size.0 {
            let y = Label::baseline(SMALL.size, 0.0, TOP - 2.0);
            frame.labels.push(label(x, y, Anchor::Middle, SMALL, Tone::Faint, node.to_string()));
        }
    }
    for (at, node) in rows.iter().enumerate().step_by(every(height, SMALL.size + 1.0)) {
        let top = TOP + at as f64 * height;
        let room = height.max(SMALL.size);
        if top + room <= size.1 + 0.1 {
            let y = Label::baseline(SMALL.size, top, room);
            frame.labels.push(label(left - 5.0, y, Anchor::End, SMALL, Tone::Faint, node.to_string()));
        }
    }
    for (row, from) in rows.iter().enumerate() {
        for (column, memory) in columns.iter().enumerate() {
            let entry = matrix.get(*from, *memory);
            let mut child = Frame::new(role(matrix, entry), cell - gap, height - gap);
            if numbered {
                let tone =
                    if entry.is_some_and(|entry| entry.disturbed) { Tone::Notable } else { Tone::Plain };
                let y = Label::baseline(NUMBER.size, 0.0, height - gap);
                let text = matrix.text(entry);
                child.labels.push(label((cell - gap) / 2.0, y, Anchor::Middle, NUMBER, tone, text));
            }
            frame.children.push(child.moved(left + column as f64 * cell, TOP + row as f64 * height));
        }
    }
    frame
}

const fn label(x: f64, y: f64, anchor: Anchor, font: Font, tone: Tone, text: String) -> Label {
    Label { x, y, font, anchor, tone, text }
}

fn number_width<I: Place>(matrix: &Matrix<I>) -> f64 {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let cells = rows.iter().flat_map(|row| columns.iter().map(|column| matrix.get(*row, *column)));
    cells.map(|entry| NUMBER.width(&matrix.text(entry))).fold(0.0, f64::max)
}

/// The step of a value; `None` for what is no multiple of the best.
fn step<I: Place>(matrix: &Matrix<I>, value: f64) -> Option<usize> {
    let times = matrix.times_worse(value)?;
    Some(STEPS.iter().position(|most| times <= *most).unwrap_or(STEPS.len()))
}

fn role<I: Place>(matrix: &Matrix<I>, entry: Option<&Entry>) -> Role {
    let step = entry.and_then(|entry| entry.value).and_then(|value| step(matrix, value));
    step.and_then(|step| u8::try_from(step).ok()).map_or(Role::NoDistance, Role::Distance)
}

/// A swatch for each colour that is there.
fn legend<I: Place>(matrix: &Matrix<I>) -> Vec<Frame> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let mut steps: Vec<usize> = rows
        .iter()
        .flat_map(|row| columns.iter().filter_map(|column| matrix.get(*row, *column)))
        .filter_map(|entry| step(matrix, entry.value?))
        .collect();
    steps.sort_unstable();
    steps.dedup();
    if steps.len() < 2 {
        return Vec::new();
    }
    let words = |step: usize| match (step, STEPS.get(step)) {
        (0, Some(most)) => format!("best to {most}x"),
        (_, Some(most)) => format!("to {most}x"),
        (_, None) => "more".to_owned(),
    };
    let swatch = |step: usize| {
        let text = words(step);
        let width = SMALL.width(&text) + 12.0;
        let role = Role::Distance(u8::try_from(step).unwrap_or(Role::FARTHEST));
        let mut swatch = Frame::new(role, width, 16.0);
        let y = Label::baseline(SMALL.size, 0.0, 16.0);
        swatch.labels.push(label(width / 2.0, y, Anchor::Middle, SMALL, Tone::Plain, text));
        swatch
    };
    steps.into_iter().map(swatch).collect()
}
