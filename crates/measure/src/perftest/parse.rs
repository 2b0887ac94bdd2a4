//! Reads a print-out of perftest.
//!
//! # Source
//! The table between dashed lines that `ib_send_lat`, `ib_send_bw` and their kin print: a line that begins
//! with `#bytes`, and below it a line of numbers for each size. What is around it (addresses, settings,
//! greetings) is not a part of it. Tables with tabs and the same columns are read too.

use std::collections::BTreeMap;
use std::fmt;

use nodewise_machine::Bytes;
use nodewise_machine::printable::quote;

use super::column::Head;
use super::{Column, PerftestQuantity, Row, Table};
use crate::survey::figure::rounded;

/// More rows than any test has: `-a` goes through 23 sizes.
const MOST_ROWS: usize = 1024;
/// This many things that cannot be read are reported one by one.
const MOST_PROBLEMS: usize = 20;
/// The most characters of a line that a message repeats.
const MOST_QUOTED: usize = 60;

/// Something in a print-out that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// The fault: what would be right, and what is there.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Why a text holds no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTable {
    /// There is no line of heads.
    #[error("it holds no table of perftest: expected a line that begins with #bytes")]
    NoHeads,
    /// The heads name nothing that could be compared.
    #[error(
        "line {line} names neither a latency nor a bandwidth: expected columns as t_typical[usec] or BW \
         average[Gb/sec]"
    )]
    NoValues {
        /// The line of the heads, from 1.
        line: usize,
    },
    /// There are heads and no row that could be read.
    #[error("it holds no row that can be read{}", first(problems))]
    NoRows {
        /// The fault in those that are there.
        problems: Vec<Problem>,
    },
}

fn first(problems: &[Problem]) -> String {
    problems.first().map_or_else(String::new, |problem| format!(": {problem}"))
}

impl Table {
    /// Reads the first table in a text.
    ///
    /// # Errors
    /// A text without a table, or without a row that could be read. Single rows that cannot be read are
    /// among the [problems](Table::problems) of the table.
    pub fn parse(text: &str) -> Result<Self, NoTable> {
        let mut lines = (1..).zip(text.lines());
        let (line, heads) = lines
            .by_ref()
            .find_map(|(line, text)| is_heads(text).then_some((line, text)))
            .ok_or(NoTable::NoHeads)?;
        let mut reader = Reader::new(line, heads)?;
        for (line, text) in lines {
            if reader.is_end(text) {
                break;
            }
            reader.line(line, text);
        }
        reader.finish()
    }
}

/// Whether a line names columns, the size of messages first.
fn is_heads(text: &str) -> bool {
    matches!(text.split_whitespace().next(), Some("#bytes" | "bytes"))
}

/// A table while it is read.
struct Reader {
    kind: PerftestQuantity,
    /// `None` for a column that is not known.
    heads: Vec<Option<Head>>,
    rows: BTreeMap<Bytes, Row>,
    problems: Vec<Problem>,
    /// How many more there were.
    untold: usize,
}

impl Reader {
    fn new(line: usize, text: &str) -> Result<Self, NoTable> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut reader = Self {
            kind: PerftestQuantity::Latency,
            heads: Vec::new(),
            rows: BTreeMap::new(),
            problems: Vec::new(),
            untold: 0,
        };
        let mut at = 0;
        while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
            let (head, words) = Head::from_words(rest).map_or((None, 1), |(head, words)| (Some(head), words));
            let head = head.filter(|head| !reader.has(*head));
            if head.is_none() {
                let name = shown(&rest[..words].join(" "));
                reader.problem(line, format!("column {name} is not known, or there twice: left out"));
            }
            reader.heads.push(head);
            at += words;
        }
        let kinds = || reader.columns().into_iter().filter_map(Column::kind);
        let kind = kinds().next().ok_or(NoTable::NoValues { line })?;
        let compared = reader.columns().iter().any(|column| kind.compared().contains(column));
        if !compared || kinds().any(|other| other != kind) {
            return Err(NoTable::NoValues { line });
        }
        reader.kind = kind;
        Ok(reader)
    }

    fn has(&self, head: Head) -> bool {
        self.heads.iter().flatten().any(|known| match (known, head) {
            (Head::Value(one, _), Head::Value(other, _)) => *one == other,
            (one, other) => *one == other,
        })
    }

    fn columns(&self) -> Vec<Column> {
        let column = |head: &Option<Head>| match head {
            Some(Head::Value(column, _)) => Some(*column),
            _ => None,
        };
        self.heads.iter().filter_map(column).collect()
    }

    /// Whether the table ends with this line: with dashes, or with the heads of another one.
    fn is_end(&self, text: &str) -> bool {
        let text = text.trim();
        is_heads(text) || (text.len() >= 3 && text.bytes().all(|byte| byte == b'-'))
    }

    fn line(&mut self, line: usize, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match self.row(text) {
            Ok((size, _)) if self.rows.contains_key(&size) => {
                self.problem(line, format!("messages of {} bytes were there already", size.get()));
            }
            Ok(_) if self.rows.len() >= MOST_ROWS => {
                self.problem(line, format!("more than {MOST_ROWS} rows: left out"));
            }
            Ok((size, row)) => {
                self.rows.insert(size, row);
            }
            Err(what) => self.problem(line, what),
        }
    }

    fn row(&self, text: &str) -> Result<(Bytes, Row), String> {
        let (mut size, mut row) = (None, Row::default());
        let mut words = text.split_whitespace();
        for (number, head) in (1..).zip(&self.heads) {
            let Some(word) = words.next() else {
                let (expected, found) = (self.heads.len(), number - 1);
                return Err(format!("expected {expected} numbers, found {found}: {}", shown(text.trim())));
            };
            let wrong = |expected: &str| format!("expected {expected}, found {}", shown(word));
            match head {
                Some(Head::Size) => size = Some(whole(word).ok_or_else(|| wrong("a size in bytes"))?),
                Some(Head::Iterations) => {
                    row.iterations = Some(whole(word).ok_or_else(|| wrong("a number of messages"))?);
                }
                Some(Head::Value(column, factor)) => {
                    let value = positive(word).ok_or_else(|| wrong("a number of 0 or more"))?;
                    // A product has more digits than were printed: it keeps those that JSON has.
                    let is_in_unit = (factor - 1.0).abs() < f64::EPSILON;
                    let value = if is_in_unit { value } else { rounded(value * factor) };
                    row.values.insert(*column, value);
                }
                None => {}
            }
        }
        if words.next().is_some() {
            return Err(format!("expected {} numbers, found more: {}", self.heads.len(), shown(text.trim())));
        }
        // The first head is the size, by which the line of the heads was found.
        let size = size.ok_or_else(|| "expected a size in bytes".to_owned())?;
        Ok((Bytes::new(size), row))
    }

    fn problem(&mut self, line: usize, what: String) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(Problem { line, what });
        } else {
            self.untold += 1;
            let what = format!("and {} lines more that cannot be read", self.untold + 1);
            if let Some(last) = self.problems.last_mut() {
                last.what = what;
            }
        }
    }

    fn finish(self) -> Result<Table, NoTable> {
        let columns = self.columns();
        if self.rows.is_empty() {
            return Err(NoTable::NoRows { problems: self.problems });
        }
        Ok(Table { kind: self.kind, columns, rows: self.rows, problems: self.problems })
    }
}

fn whole(word: &str) -> Option<u64> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}

/// A number that is finite and not below 0. perftest has printed negative bandwidths where its counters
/// ran over.
fn positive(word: &str) -> Option<f64> {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || b".+-eE".contains(&byte));
    let value: f64 = is_number.then(|| word.parse().ok()).flatten()?;
    (value.is_finite() && value >= 0.0 && !value.is_sign_negative()).then_some(value)
}

/// A text in a message: its beginning, fit for a terminal.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(MOST_QUOTED) {
        Some((end, _)) => quote(&format!("{}...", &text[..end])),
        None => quote(text),
    }
}

#[cfg(test)]
mod tests;
