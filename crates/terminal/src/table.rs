//! Tables that fit: as wide as their content, columns drop from the right, no line wraps.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::ink::{Ink, Inks};
use crate::paint::{cells, put};

/// Most nodes with a column or a line each; more of them fold.
pub(crate) const MOST_NODES: usize = 8;
/// Blank cells before a column. The first has the mark of the selected line there.
const GAP: usize = 1;
/// The least room for a column of names before the columns right of it drop.
const LEAST_NAME: usize = 12;

/// On which side the cells of a column are flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) head: String,
    pub(crate) align: Align,
    /// Its least width: what stays while the lines that are seen change.
    pub(crate) least: usize,
    /// Its greatest width; longer texts are cut.
    pub(crate) most: usize,
}

impl Column {
    /// Numbers.
    pub(crate) fn number(head: impl Into<String>, least: usize) -> Self {
        Self { head: head.into(), align: Align::Right, least, most: usize::MAX }
    }

    /// Texts.
    pub(crate) fn text(head: impl Into<String>, least: usize, most: usize) -> Self {
        Self { head: head.into(), align: Align::Left, least, most }
    }
}

/// A cell: a text and its look. An empty one shows that nothing says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) ink: Ink,
}

impl Cell {
    pub(crate) fn new(ink: Ink, text: impl Into<String>) -> Self {
        Self { text: text.into(), ink }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::new(Ink::Plain, text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::new(Ink::Plain, text)
    }
}

impl From<Option<String>> for Cell {
    fn from(text: Option<String>) -> Self {
        Self::new(Ink::Plain, text.unwrap_or_default())
    }
}

/// The lines of a list that are seen: the selected one among them, near the middle.
pub(crate) fn window(count: usize, selected: usize, height: usize) -> std::ops::Range<usize> {
    let most = count.saturating_sub(height);
    let first = selected.saturating_sub(height / 2).min(most);
    first..(first + height).min(count)
}

/// The lines that there is room for below the heads.
pub(crate) fn room(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(1))
}

/// Draws the heads and the rows of a table; `selected` is the place of the marked row among them.
pub(crate) fn draw(
    columns: &[Column],
    rows: &[Vec<Cell>],
    selected: Option<usize>,
    area: Rect,
    buffer: &mut Buffer,
    inks: Inks,
) {
    if area.is_empty() {
        return;
    }
    let widths = widths(columns, rows, usize::from(area.width));
    let right = usize::from(area.right());
    let mut line = |y: u16, cells: &mut dyn Iterator<Item = (&str, Ink)>, is_selected: bool| {
        let mut x = usize::from(area.x);
        if is_selected {
            let whole = Rect { x: area.x, y, width: area.width, height: 1 };
            buffer.set_style(whole, inks.style(Ink::Selected));
            put(buffer, (area.x, y), 1, ">", Ink::Selected, inks);
        }
        for ((text, ink), (column, width)) in cells.zip(columns.iter().zip(&widths)) {
            let (text, ink) = if text.is_empty() { ("-", Ink::Faint) } else { (text, ink) };
            let taken = self::cells(text).min(*width);
            let shift = if column.align == Align::Right { width - taken } else { 0 };
            let ink = if is_selected { Ink::Selected } else { ink };
            let at = x + GAP + shift;
            put(buffer, (at as u16, y), taken.min(right.saturating_sub(at)), text, ink, inks);
            x += GAP + width;
        }
    };
    line(area.y, &mut columns.iter().map(|column| (blank_or(&column.head), Ink::Faint)), false);
    for (at, (row, y)) in rows.iter().zip(area.y + 1..area.bottom()).enumerate() {
        line(y, &mut row.iter().map(|cell| (cell.text.as_str(), cell.ink)), selected == Some(at));
    }
}

/// A head that is empty on purpose.
fn blank_or(head: &str) -> &str {
    if head.is_empty() { " " } else { head }
}

/// The widths of the columns that there is room for.
fn widths(columns: &[Column], rows: &[Vec<Cell>], width: usize) -> Vec<usize> {
    let widest = |at: usize, column: &Column| {
        let filled = rows.iter().filter_map(|row| row.get(at)).map(|cell| cells(&cell.text)).max();
        filled.unwrap_or(0).max(cells(&column.head)).max(column.least).min(column.most).max(1)
    };
    let mut widths: Vec<usize> = columns.iter().enumerate().map(|(at, column)| widest(at, column)).collect();
    let taken = |widths: &[usize]| widths.iter().map(|width| GAP + width).sum::<usize>();
    while widths.len() > 1 && taken(&widths) > width {
        // A long text is cut before another column goes.
        let over = taken(&widths) - width;
        let last = widths.len() - 1;
        let is_text = |at: &usize| columns[*at].align == Align::Left;
        let floor = LEAST_NAME.max(cells(&columns[last].head));
        if is_text(&last) && widths[last] >= over + floor {
            widths[last] -= over;
        } else {
            widths.pop();
        }
    }
    if let Some(only) = widths.first_mut() {
        *only = (*only).min(width.saturating_sub(GAP));
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::text;

    fn check(width: u16, expected: &str) {
        let columns = [
            Column::number("PID", 3),
            Column::text("name", 4, 10),
            Column::number("CPU", 3),
            Column::text("on", 2, 40),
        ];
        let row = |cells: [&str; 4]| cells.map(Cell::from).to_vec();
        let rows = [row(["7", "postgres", "12 %", "0: 71 %, 3: 22 %"]), row(["1188", "", "", "-"])];
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, 4));
        draw(&columns, &rows, Some(1), buffer.area, &mut buffer, Inks::Plain);
        assert_eq!(text(&buffer), expected, "{width}");
    }

    #[test]
    fn columns_drop_from_the_right_and_no_line_wraps() {
        check(40, "  PID name      CPU on\n    7 postgres 12 % 0: 71 %, 3: 22 %\n>1188 -           - -\n\n");
        check(
            34,
            "  PID name      CPU on\n    7 postgres 12 % 0: 71 %, 3: 2\u{2026}\n>1188 -           - -\n\n",
        );
        check(25, "  PID name      CPU\n    7 postgres 12 %\n>1188 -           -\n\n");
        check(15, "  PID name\n    7 postgres\n>1188 -\n\n");
        check(3, " P\u{2026}\n  7\n>1\u{2026}\n\n");
    }

    #[test]
    fn the_selected_line_is_seen() {
        assert_eq!(window(3, 2, 10), 0..3);
        assert_eq!(window(100, 0, 10), 0..10);
        assert_eq!(window(100, 50, 10), 45..55);
        assert_eq!(window(100, 99, 10), 90..100);
        assert_eq!(window(0, 0, 10), 0..0);
        assert_eq!(window(5, 4, 0), 4..4);
    }
}
