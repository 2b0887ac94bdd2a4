//! Common parts of reading what tools print: numbers, notes, faults with their lines.

use super::{FigureGroup, FigureTable, FigureTool, NoFigures, Problem, ToolFigures};
use crate::perftest::parse::shown;
use crate::survey::figure::rounded;

/// Lines in which the beginning of an output is looked for: shells, schedulers and batch systems print some before.
pub(super) const MOST_SEARCHED: usize = 200;
/// More than any tool prints.
const MOST_GROUPS: usize = 256;
pub(super) const MOST_FIGURES: usize = 4096;
/// The most nodes of a matrix: beyond what Linux can number on x86.
pub(super) const MOST_NODES: u32 = 1024;
/// Notes of a table that are kept, and characters of one.
const MOST_NOTES: usize = 16;
const MOST_NOTE: usize = 120;
/// Faults that are reported one by one.
const MOST_PROBLEMS: usize = 20;
/// The values that are read: far beyond what is measured, and written with nine digits.
const LEAST: f64 = 1e-9;
const MOST: f64 = 1e15;

/// An output while it is read.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) version: Option<String>,
    groups: Vec<FigureGroup>,
    problems: Vec<Problem>,
    /// How many more there were.
    others: usize,
}

impl Read {
    /// Adds a table that has figures.
    pub(super) fn add(&mut self, group: FigureGroup) {
        if !group.table.is_empty() && self.groups.len() < MOST_GROUPS {
            self.groups.push(group);
        }
    }

    /// Adds a fault: what was expected in a line, and what is there.
    pub(super) fn problem(&mut self, line: usize, expected: &str, found: &str) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems
                .push(Problem { line, what: format!("expected {expected}, found {}", shown(found)) });
        } else {
            self.others += 1;
            if let Some(last) = self.problems.last_mut() {
                last.what = format!("and {} lines more that cannot be read", self.others + 1);
            }
        }
    }

    /// Sets the version, where none is known yet.
    pub(super) fn version(&mut self, text: &str) {
        let version: String = text.trim().chars().take(MOST_NOTE).collect();
        if self.version.is_none() && !version.is_empty() {
            self.version = Some(version);
        }
    }

    pub(super) fn finish(self, tool: FigureTool) -> Result<ToolFigures, NoFigures> {
        let Self { version, groups, problems, .. } = self;
        if groups.is_empty() {
            return Err(NoFigures { tool, problem: problems.into_iter().next() });
        }
        Ok(ToolFigures { tool, version, groups, problems })
    }
}

/// A line that says how something was measured, as it is kept.
pub(super) fn note(notes: &mut Vec<String>, line: &str) {
    let text: String = line.trim().chars().take(MOST_NOTE).collect();
    if notes.len() < MOST_NOTES && !notes.contains(&text) {
        notes.push(text);
    }
}

/// A list of figures with a title.
pub(super) fn table(title: impl Into<String>, notes: Vec<String>, table: FigureTable) -> FigureGroup {
    FigureGroup { title: title.into(), notes, table }
}

/// A measured number in plain decimals: above 0, and of a size that can have been measured.
pub(super) fn number(word: &str) -> Option<f64> {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let begins = word.starts_with(|first: char| first.is_ascii_digit());
    let value: f64 = (is_plain && begins).then(|| word.parse().ok()).flatten()?;
    in_range(value)
}

/// A value with nine digits, if it can have been measured.
pub(super) fn in_range(value: f64) -> Option<f64> {
    (LEAST..=MOST).contains(&value).then(|| rounded(value))
}

/// A whole number in plain decimals.
pub(super) fn whole(word: &str) -> Option<u32> {
    let is_plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| word.parse().ok()).flatten()
}

/// The name of a figure, as it is kept.
pub(super) fn name(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MOST_NOTE).collect()
}
