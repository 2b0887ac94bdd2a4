//! Reading a file for a sample.

use nodewise_machine::CpuSet;

use super::Moment;
use super::missing::Missing;
use crate::parse::{ParseError, Parsed, text_of};
use crate::tree::{Kept, Tree};

/// The means of one sample.
pub(super) struct Reading<'s> {
    pub(super) tree: &'s Tree,
    pub(super) buffer: &'s mut Vec<u8>,
    pub(super) missing: &'s mut Missing,
    pub(super) now: Moment,
    pub(super) tick: u64,
    /// The online CPUs; empty where they are not known.
    pub(super) online: CpuSet,
}

impl Reading<'_> {
    /// Reads a file of many lines; `None` where it is missing or cannot be read. What is wrong with it is
    /// counted as missing under this fact.
    pub(super) fn parsed<T>(
        &mut self,
        kept: &mut Kept,
        fact: &'static str,
        parse: impl FnOnce(&str) -> Parsed<T>,
    ) -> Option<T> {
        let parsed = self.text(kept, fact, parse)?;
        if let Some(problem) = parsed.problems.first.first() {
            self.missing.add(fact, &problem_in(kept.path(), problem), None);
        }
        Some(parsed.value)
    }

    /// Reads a file of one value, likewise.
    pub(super) fn value<T>(
        &mut self,
        kept: &mut Kept,
        fact: &'static str,
        parse: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Option<T> {
        match self.text(kept, fact, parse)? {
            Ok(value) => Some(value),
            Err(problem) => {
                self.missing.add(fact, &problem_in(kept.path(), &problem), None);
                None
            }
        }
    }

    fn text<T>(&mut self, kept: &mut Kept, fact: &'static str, parse: impl FnOnce(&str) -> T) -> Option<T> {
        match self.tree.read_kept(kept, self.buffer) {
            Ok(true) => Some(parse(&text_of(self.buffer).0)),
            Ok(false) => None,
            Err(error) => {
                self.missing.unreadable(fact, error.cause);
                None
            }
        }
    }
}

/// A problem with its place: `/proc/stat:3: expected ..., found ...`.
pub(super) fn problem_in(path: &str, problem: &ParseError) -> String {
    format!("{path}:{}: {}", problem.line, problem.sentence())
}
