//! Tables of perftest side by side.

use nodewise_machine::Bytes;
use nodewise_measure::perftest::{Comparison, Side};

use crate::digest::perftest::{kink_sizes, problems, remark, sentences, short, title};
use crate::digest::survey::digits;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page, columns};

const INDENT: usize = 2;
const GAP: usize = 2;
/// The most columns that a label takes.
const LABEL: usize = 18;

/// Writes comparisons and what they show.
pub fn perftest(comparisons: &[Comparison], style: &Style) -> String {
    let mut page = Page::new(*style);
    write(comparisons, &mut page);
    page.finish()
}

/// Writes comparisons below what a page has already.
pub(super) fn write(comparisons: &[Comparison], page: &mut Page) {
    for comparison in comparisons {
        page.heading(title(comparison.kind()), remark(comparison.kind()));
        table(comparison, page);
        let notable = |sentence: String| (Ink::Notable, sentence);
        let shown = sentences(comparison).into_iter().map(|sentence| (Ink::Plain, sentence));
        for (ink, sentence) in shown.chain(problems(comparison).into_iter().map(notable)) {
            page.line(4, &Line::from("  ").with(ink, sentence));
        }
    }
}

/// A column: its head, and a text for each size with the ink of it.
struct Shown {
    head: String,
    cells: Vec<(Ink, String)>,
}

impl Shown {
    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|(_, text)| columns(text));
        cells.chain([columns(&self.head)]).max().unwrap_or(0)
    }
}

/// A row for each size; in several blocks of columns where one is too wide.
fn table(comparison: &Comparison, page: &mut Page) {
    let sizes = comparison.sizes();
    let first = Shown {
        head: "bytes".to_owned(),
        cells: sizes.iter().map(|size| (Ink::Faint, short(*size))).collect(),
    };
    let sides = comparison.sides().iter().enumerate();
    let sides: Vec<Vec<Shown>> = sides.map(|(at, side)| side_columns(comparison, at, side, &sizes)).collect();
    let width = |columns: &[Shown]| columns.iter().map(|column| GAP + column.width()).sum::<usize>();
    let room = page.width().saturating_sub(INDENT + first.width());
    let mut rest = &sides[..];
    while !rest.is_empty() {
        let mut used = 0;
        let fits = |side: &&Vec<Shown>| {
            used += width(side);
            used <= room
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let block: Vec<&Shown> = std::iter::once(&first).chain(rest[..count].iter().flatten()).collect();
        write_block(&block, sizes.len(), page);
        rest = &rest[count..];
    }
}

/// The values of a side, and how many times those of the first they are.
fn side_columns(comparison: &Comparison, at: usize, side: &Side, sizes: &[Bytes]) -> Vec<Shown> {
    let kinks = kink_sizes(side);
    let value = |size: &Bytes| match side.table.value(*size) {
        Some(value) if kinks.contains(size) => (Ink::Notable, format!("{}*", digits(value))),
        Some(value) => (Ink::Plain, digits(value)),
        None => (Ink::Faint, "-".to_owned()),
    };
    let ratio = |size: &Bytes| match comparison.ratio(at, *size) {
        Some(ratio) => (Ink::Faint, format!("x{}", digits(ratio))),
        None => (Ink::Faint, "-".to_owned()),
    };
    let mut columns = vec![Shown { head: label(&side.label), cells: sizes.iter().map(value).collect() }];
    if at > 0 {
        columns.push(Shown { head: String::new(), cells: sizes.iter().map(ratio).collect() });
    }
    columns
}

/// A label, shortened where it is long.
fn label(text: &str) -> String {
    let text = nodewise_machine::printable::printable(text);
    let mut short = String::new();
    for c in text.chars() {
        if columns(&short) + columns(c.encode_utf8(&mut [0; 4])) > LABEL - 1 {
            return short + "~";
        }
        short.push(c);
    }
    short
}

fn write_block(block: &[&Shown], rows: usize, page: &mut Page) {
    let line = |of: &dyn Fn(&Shown) -> (Ink, String)| {
        let mut line = Line::new();
        for (at, column) in block.iter().enumerate() {
            let (ink, text) = of(column);
            let blank = column.width().saturating_sub(columns(&text)) + if at == 0 { INDENT } else { GAP };
            line.push(Ink::Plain, " ".repeat(blank));
            line.push(ink, text);
        }
        line
    };
    page.line(INDENT, &line(&|column| (Ink::Faint, column.head.clone())));
    for row in 0..rows {
        page.line(INDENT, &line(&|column| column.cells[row].clone()));
    }
}
