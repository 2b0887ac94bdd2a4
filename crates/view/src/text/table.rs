//! Tables that fit: columns drop in a given order, the last one wraps, and where that is not enough the widest
//! of the others.
//!
//! comfy-table was tried on paper first: it wraps cells, but has no columns that shrink for others, pads the
//! ends of lines with blanks, and cannot break a CPU list after a comma. What is needed here is less than the
//! code that would work around that.

use nodewise_machine::order::Order as _;

use crate::style::Ink;
use crate::text::line::{Line, Page};

/// Blank columns between two columns, and before the first.
const GAP: usize = 2;
/// The least room for the last column before others shrink for it.
const LAST_COLUMN: usize = 16;

/// On which side the cells of a column are flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Whether a column may be left out where the table is too wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Always,
    /// Yes, those with the smallest number first.
    Unless(u8),
}

/// A column of a table.
pub(crate) struct Column {
    pub(crate) head: &'static str,
    /// The alignment of its cells.
    pub(crate) align: Align,
    pub(crate) keep: Keep,
}

/// A table. The last column is flush left, always kept, and wraps.
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Line>>,
    names_omitted: bool,
}

impl Table {
    /// A table without rows.
    pub(crate) const fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new(), names_omitted: false }
    }

    /// The table with a line below that names the columns for which there is no room.
    #[must_use]
    pub(crate) const fn naming_omitted(mut self) -> Self {
        self.names_omitted = true;
        self
    }

    /// Whether the table has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row; an empty cell says that the value is not known and shows as `-`.
    pub(crate) fn row(&mut self, cells: Vec<Line>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "one cell per column");
        self.rows.push(cells);
    }

    /// Writes it. Columns without any value are left out.
    pub(crate) fn write(&self, page: &mut Page) {
        let Some(last) = self.columns.len().checked_sub(1) else { return };
        let mut widths = self.widths();
        let shown = self.shown(&widths, page.width());
        self.narrow(&mut widths, &shown, page.width());
        let room = page.width().saturating_sub(taken(&widths, &shown)).max(1);
        if shown.iter().any(|at| !self.columns[*at].head.is_empty()) || !self.columns[last].head.is_empty() {
            let heads: Vec<Line> =
                self.columns.iter().map(|column| Line::new().with(Ink::Faint, column.head)).collect();
            self.write_row(&heads, &widths, &shown, room, page);
        }
        let missing = Line::new().with(Ink::Faint, "-");
        for row in &self.rows {
            let filled: Vec<Line> =
                row.iter().map(|cell| if cell.is_empty() { &missing } else { cell }.clone()).collect();
            self.write_row(&filled, &widths, &shown, room, page);
        }
        let omitted = self.omitted(&widths, &shown);
        if self.names_omitted && !omitted.is_empty() {
            let text = format!("  not shown for want of width: {}", omitted.join(", "));
            page.line(4, &Line::new().with(Ink::Faint, text));
        }
    }

    /// The heads of columns with values for which there is no room.
    fn omitted(&self, widths: &[usize], shown: &[usize]) -> Vec<&'static str> {
        let last = self.columns.len().saturating_sub(1);
        let is_omitted = |at: &usize| widths[*at] > 0 && !shown.contains(at);
        (0..last).filter(is_omitted).map(|at| self.columns[at].head).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let filled = |at: usize| self.rows.iter().map(move |row| &row[at]).filter(|cell| !cell.is_blank());
        let widest = |at: usize| filled(at).map(Line::columns).max().unwrap_or(0);
        (0..self.columns.len())
            .map(|at| match widest(at) {
                0 => 0,
                widest => widest.max(self.columns[at].head.len()),
            })
            .collect()
    }

    /// The columns before the last that are written.
    fn shown(&self, widths: &[usize], width: usize) -> Vec<usize> {
        let last = widths.len() - 1;
        let mut shown: Vec<usize> = (0..last).filter(|at| widths[*at] > 0).collect();
        let wanted = widths[last].min(LAST_COLUMN);
        while taken(widths, &shown) + wanted > width {
            let weakest = shown
                .iter()
                .enumerate()
                .filter_map(|(place, at)| match self.columns[*at].keep {
                    Keep::Unless(order) => Some((order, place)),
                    Keep::Always => None,
                })
                .min();
            let Some((_, place)) = weakest else { break };
            shown.remove(place);
        }
        shown
    }

    /// Narrows the widest columns of texts where the last has too little room to be read: their cells wrap, too.
    fn narrow(&self, widths: &mut [usize], shown: &[usize], width: usize) {
        let last = widths.len() - 1;
        if taken(widths, shown) + widths[last].min(LAST_COLUMN) <= width {
            return;
        }
        let wanted = widths[last].min(LAST_COLUMN.max(width / 3));
        let is_text = |at: &&usize| self.columns[**at].align == Align::Left;
        while taken(widths, shown) + wanted > width {
            let over = taken(widths, shown) + wanted - width;
            let mut texts: Vec<usize> = shown.iter().filter(is_text).copied().collect();
            texts.order_by_key(|at| std::cmp::Reverse(widths[*at]));
            // Down to the next widest, then both in turn.
            let Some(widest) = texts.first().copied().filter(|at| widths[*at] > LAST_COLUMN) else { return };
            let next = texts.get(1).map_or(LAST_COLUMN, |at| widths[*at].max(LAST_COLUMN));
            let step = (widths[widest] - next).max(1).min(over);
            widths[widest] -= step;
        }
    }

    fn write_row(&self, cells: &[Line], widths: &[usize], shown: &[usize], room: usize, page: &mut Page) {
        let last = cells.len() - 1;
        // Cells are wider than their columns only where these were narrowed.
        let columns: Vec<(usize, Align, Vec<Line>)> = shown
            .iter()
            .map(|at| (widths[*at], self.columns[*at].align, fitting(&cells[*at], widths[*at])))
            .collect();
        let folded = cells[last].wrap(room);
        let lines = columns.iter().map(|(.., parts)| parts.len()).chain([folded.len(), 1]).max().unwrap_or(1);
        for number in 0..lines {
            let mut line = Line::new();
            for (width, align, parts) in &columns {
                let empty = Line::new();
                let cell = parts.get(number).unwrap_or(&empty);
                let blank = " ".repeat(width.saturating_sub(cell.columns()));
                line.push(Ink::Plain, " ".repeat(GAP));
                match align {
                    Align::Left => {
                        line.append(cell);
                        line.push(Ink::Plain, blank);
                    }
                    Align::Right => {
                        line.push(Ink::Plain, blank);
                        line.append(cell);
                    }
                }
            }
            line.push(Ink::Plain, " ".repeat(GAP));
            if let Some(part) = folded.get(number) {
                line.append(part);
            }
            page.line(GAP, &line);
        }
    }
}

/// A cell in lines of at most this many columns.
fn fitting(cell: &Line, width: usize) -> Vec<Line> {
    if cell.columns() <= width { vec![cell.clone()] } else { cell.wrap(width) }
}

/// The columns of the screen that these columns of the table take, up to where the last starts.
fn taken(widths: &[usize], shown: &[usize]) -> usize {
    shown.iter().map(|at| GAP + widths[*at]).sum::<usize>() + GAP
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;

    fn table() -> Table {
        let column = |head, align, keep| Column { head, align, keep };
        let mut table = Table::new(vec![
            column("node", Align::Right, Keep::Always),
            column("memory", Align::Right, Keep::Unless(2)),
            column("share", Align::Right, Keep::Unless(1)),
            column("tier", Align::Right, Keep::Always),
            column("CPUs", Align::Left, Keep::Always),
        ]);
        table.row(vec![
            "0".into(),
            "125.6 GiB".into(),
            "62%".into(),
            Line::new(),
            "0-3,8-11,16-19,24-27".into(),
        ]);
        table.row(vec!["12".into(), "1 GiB".into(), Line::new(), Line::new(), "none".into()]);
        table
    }

    fn check(width: usize, expected: &str) {
        let mut page = Page::new(Style::plain(width));
        table().write(&mut page);
        assert_eq!(page.finish(), expected);
    }

    #[test]
    fn numbers_are_flush_right_and_columns_without_values_left_out() {
        check(
            80,
            "  node     memory  share  CPUs\n     0  125.6 GiB    62%  0-3,8-11,16-19,24-27\n    12      1 GiB      -  none\n",
        );
    }

    #[test]
    fn the_last_column_wraps_before_others_drop() {
        check(
            44,
            "  node     memory  share  CPUs\n     0  125.6 GiB    62%  0-3,8-11,16-19,\n                          24-27\n    12      1 GiB      -  none\n",
        );
        check(
            40,
            "  node     memory  CPUs\n     0  125.6 GiB  0-3,8-11,16-19,24-27\n    12      1 GiB  none\n",
        );
    }

    #[test]
    fn a_long_text_before_the_last_column_leaves_that_room_to_be_read() {
        let column = |head| Column { head, align: Align::Left, keep: Keep::Always };
        let mut table = Table::new(vec![column("benchmark"), column("what it does"), column("installed")]);
        let about = "25 generated files with gcc -O2, one after the other, into a folder of their own";
        table.row(vec!["C compile".into(), about.into(), "gcc-12 12.2.0-14+deb12".into()]);
        table.row(vec!["STREAM".into(), "a = b + c".into(), Line::blank()]);
        let mut page = Page::new(Style::plain(60));
        table.write(&mut page);
        assert_eq!(
            page.finish(),
            "  benchmark  what it does               installed\n  \
             C compile  25 generated files with    gcc-12\n             \
             gcc -O2, one after the     12.2.0-14+deb12\n             \
             other, into a folder of\n             \
             their own\n  \
             STREAM     a = b + c\n"
        );
        for width in 40..120 {
            let mut page = Page::new(Style::plain(width));
            table.write(&mut page);
            let text = page.finish();
            let letters = text.lines().filter(|line| line.trim().len() == 1).count();
            assert_eq!(letters, 0, "{width}: {text}");
        }
    }

    #[test]
    fn a_table_can_name_the_columns_that_have_no_room() {
        let text = |width| {
            let mut page = Page::new(Style::plain(width));
            table().naming_omitted().write(&mut page);
            page.finish()
        };
        assert!(!text(44).contains("not shown"), "the tier has no values anyway");
        assert!(text(40).ends_with("none\n  not shown for want of width: share\n"), "{}", text(40));
    }
}
