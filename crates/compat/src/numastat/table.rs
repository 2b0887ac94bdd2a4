//! Tables of nodes, as numastat lays them out.
//!
//! ```text
//!                           Node 0          Node 1           Total
//!                  --------------- --------------- ---------------
//! MemTotal                  502.56          503.57         1006.13
//! ```
//!
//! A column whose cells were never filled is not shown, nor is such a row; single cells of the kind
//! are blank. A table that is too wide goes on below itself, with the names of its rows again.

use std::io::Write;

use nodewise_machine::{Bytes, NodeId};

use super::decimal::decimal;

/// Data columns are this wide, and the column of names at least.
const WIDTH: usize = 16;
/// The column of names is at most this wide.
const MOST_NAME_WIDTH: usize = 24;

/// How numbers and columns are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub decimals: usize,
    /// Whether columns are as narrow as their content.
    pub compact: bool,
    /// Whether dashes are below the heads.
    pub dashes: bool,
    /// Whether rows and columns of zeros are left out.
    pub hide_zeros: bool,
    /// Whether what is too wide is cut, numbers too, and names are counted in bytes.
    pub cut: bool,
}

/// A row: its name, and a number per column where there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The name, fit to be printed.
    pub name: Vec<u8>,
    pub cells: Vec<Option<f64>>,
}

impl Row {
    /// A row without numbers.
    pub fn new(name: impl Into<Vec<u8>>, columns: usize) -> Self {
        Self { name: name.into(), cells: vec![None; columns] }
    }

    fn is_zero(&self) -> bool {
        self.cells.iter().flatten().all(|cell| *cell == 0.0)
    }

    fn is_empty(&self) -> bool {
        self.cells.iter().all(Option::is_none)
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The nodes, one column each.
    pub nodes: Vec<NodeId>,
    /// The heads of all columns, the last of which is the total where there is one.
    pub heads: Vec<String>,
    /// The head of the names.
    pub corner: &'static str,
    pub rows: Vec<Row>,
    /// The sum below the others, behind a line of dashes.
    pub sum: Option<Row>,
}

impl Table {
    /// A table of these nodes with a total.
    pub fn with_total(nodes: &[NodeId]) -> Self {
        let heads = nodes.iter().map(|node| format!("Node {node}")).chain(["Total".to_owned()]).collect();
        Self { nodes: nodes.to_vec(), heads, corner: "", rows: Vec::new(), sum: None }
    }

    /// A table of these nodes as numastat's first release had it.
    pub fn plain(nodes: &[NodeId]) -> Self {
        let heads = nodes.iter().map(|node| format!("node{node}")).collect();
        Self { nodes: nodes.to_vec(), heads, corner: "", rows: Vec::new(), sum: None }
    }

    /// The row of this name, added where there is none.
    pub fn row(&mut self, name: &str) -> &mut Row {
        let at = self.rows.iter().position(|row| row.name == name.as_bytes()).unwrap_or_else(|| {
            self.rows.push(Row::new(name, self.heads.len()));
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }

    /// Fills a cell. A node that is not a column of the table is passed over.
    pub fn set(&mut self, name: &str, node: NodeId, value: f64) {
        if let Some(at) = self.nodes.iter().position(|known| *known == node) {
            self.row(name).cells[at] = Some(value);
        }
    }

    /// Fills the total of every row that has numbers.
    pub fn add_totals(&mut self) {
        let last = self.nodes.len();
        for row in self.rows.iter_mut().filter(|row| !row.is_empty()) {
            row.cells[last] = Some(row.cells[..last].iter().flatten().sum());
        }
    }

    /// Adds the row of sums of all others.
    pub fn add_sum(&mut self) {
        let mut sum = Row::new("Total", self.heads.len());
        for (at, cell) in sum.cells.iter_mut().enumerate() {
            let mut column = self.rows.iter().filter_map(|row| row.cells[at]).peekable();
            *cell = column.peek().is_some().then(|| column.sum());
        }
        self.sum = Some(sum);
    }

    /// Brings the largest rows to the top: by the key of each row, in today's order.
    ///
    /// The order of equal rows is the originals': each place is filled by the first of the largest
    /// that are left, which changes places with the row in that place.
    pub fn sort_by_keys(&mut self, mut keys: Vec<f64>) {
        for at in 0..self.rows.len() {
            let mut largest = at;
            for other in at + 1..self.rows.len() {
                if keys[other] > keys[largest] {
                    largest = other;
                }
            }
            self.rows.swap(at, largest);
            keys.swap(at, largest);
        }
    }

    /// Writes the table; `line` is the most that is on one line.
    pub fn write(&self, style: Style, line: usize, out: &mut dyn Write) {
        let shown = Shown::new(self, style);
        if shown.rows.is_empty() || shown.columns.is_empty() {
            let zero = if style.hide_zeros { "non-zero " } else { "" };
            let _ = writeln!(out, "Table has no {zero}data.");
            return;
        }
        let mut rest = &shown.columns[..];
        while !rest.is_empty() {
            if rest.len() < shown.columns.len() {
                let _ = writeln!(out);
            }
            let (section, tail) = rest.split_at(shown.fitting(rest, line));
            shown.write(section, out);
            rest = tail;
        }
    }
}

/// The part of a table that is shown, with its widths.
struct Shown<'t> {
    table: &'t Table,
    style: Style,
    /// Rows with their numbers as text.
    rows: Vec<(&'t Row, Vec<String>)>,
    /// The row below the others.
    sum: Option<(&'t Row, Vec<String>)>,
    /// Columns by place, and how wide each is.
    columns: Vec<(usize, usize)>,
    name_width: usize,
}

impl<'t> Shown<'t> {
    fn new(table: &'t Table, style: Style) -> Self {
        let texts = |row: &'t Row| (row, row.cells.iter().map(|cell| number(*cell, style)).collect());
        let mut rows: Vec<(&Row, Vec<String>)> = table.rows.iter().map(texts).collect();
        let sum = table.sum.as_ref().map(texts);
        let in_column = |at: usize| {
            let mut cells = table.rows.iter().filter_map(move |row| row.cells[at]);
            if style.hide_zeros { cells.any(|cell| cell != 0.0) } else { cells.next().is_some() }
        };
        let columns = (0..table.heads.len()).filter(|at| in_column(*at));
        // Rows that are not shown make columns wider, too.
        let longest =
            |at: usize| rows.iter().chain(&sum).map(|(_, texts)| texts[at].len()).max().unwrap_or(0);
        let columns = columns.map(|at| (at, width_of(&table.heads[at], longest(at), style))).collect();
        rows.retain(|(row, _)| !(row.is_empty() || style.hide_zeros && row.is_zero()));
        Self { table, style, rows, sum, columns, name_width: name_width(table, style) }
    }

    /// How many of these columns are on one line: at least one.
    fn fitting(&self, columns: &[(usize, usize)], line: usize) -> usize {
        let mut width = self.name_width;
        let fit = columns.iter().take_while(|(_, column)| {
            width = width.saturating_add(*column);
            width <= line
        });
        fit.count().max(1)
    }

    fn write(&self, columns: &[(usize, usize)], out: &mut dyn Write) {
        let dashes = |width: usize| "-".repeat(width.saturating_sub(1));
        let rule: Vec<String> = columns.iter().map(|(_, width)| dashes(*width)).collect();
        let rule = || rule.iter().map(String::as_str);
        let heads = columns.iter().map(|(at, _)| self.table.heads[*at].as_str());
        self.line(self.table.corner.as_bytes(), columns, heads, out);
        if self.style.dashes {
            let below = if self.table.corner.is_empty() { String::new() } else { dashes(self.name_width) };
            self.line(below.as_bytes(), columns, rule(), out);
        }
        for (row, texts) in &self.rows {
            self.line(&row.name, columns, columns.iter().map(|(at, _)| texts[*at].as_str()), out);
        }
        if let Some((row, texts)) = &self.sum {
            self.line(dashes(self.name_width).as_bytes(), columns, rule(), out);
            self.line(&row.name, columns, columns.iter().map(|(at, _)| texts[*at].as_str()), out);
        }
    }

    /// Writes a name and texts, each at the right of its column.
    fn line<'a>(
        &self,
        name: &[u8],
        columns: &[(usize, usize)],
        texts: impl Iterator<Item = &'a str>,
        out: &mut dyn Write,
    ) {
        let (name, length) = cut_name(name, self.name_width, self.style);
        let mut line = name.to_vec();
        let blanks = |line: &mut Vec<u8>, count: usize| line.resize(line.len() + count, b' ');
        blanks(&mut line, self.name_width - length);
        for ((_, width), text) in columns.iter().zip(texts) {
            let end = if self.style.cut { text.len().min(*width) } else { text.len() };
            blanks(&mut line, width.saturating_sub(end));
            line.extend_from_slice(&text.as_bytes()[..end]);
        }
        line.push(b'\n');
        let _ = out.write_all(&line);
    }
}

/// A size in the unit of the tables, 1,048,576 bytes.
pub fn mib(size: Bytes) -> f64 {
    size.get() as f64 / f64::from(1 << 20)
}

/// A cell as it is printed; digits, a point and a sign.
fn number(cell: Option<f64>, style: Style) -> String {
    cell.map_or_else(String::new, |cell| decimal(cell, style.decimals))
}

/// How wide a data column is, by its head and the longest of its numbers.
fn width_of(head: &str, longest: usize, style: Style) -> usize {
    let longest = longest.max(head.len()).max(4) + 1;
    match (style.compact, style.cut) {
        (true, true) => longest.min(WIDTH),
        (true, false) => longest,
        (false, true) => WIDTH,
        (false, false) => longest.max(WIDTH),
    }
}

/// How wide the column of names is. Rows that are not shown count too.
fn name_width(table: &Table, style: Style) -> usize {
    let names = table.rows.iter().chain(&table.sum).map(|row| name_length(&row.name, style));
    let longest = names.chain([table.corner.len(), 4]).max().unwrap_or(4) + 1;
    // A table with a sum has one more, so that its dashes are as long as the others'.
    let least = WIDTH + usize::from(table.sum.is_some());
    if style.compact { longest.min(WIDTH) } else { longest.clamp(least, MOST_NAME_WIDTH) }
}

fn name_length(name: &[u8], style: Style) -> usize {
    if style.cut || name.is_ascii() { name.len() } else { String::from_utf8_lossy(name).chars().count() }
}

/// As much of a name as fits, and its length.
fn cut_name(name: &[u8], width: usize, style: Style) -> (&[u8], usize) {
    let length = name_length(name, style);
    if length <= width {
        return (name, length);
    }
    let text = std::str::from_utf8(name).ok().filter(|_| !style.cut);
    let end = text.map_or(width, |text| text.char_indices().nth(width).map_or(name.len(), |(at, _)| at));
    (&name[..end], width)
}

#[cfg(test)]
#[path = "table/tests.rs"]
mod tests;
