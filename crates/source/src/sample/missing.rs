//! Missing facts, counted.

use std::collections::BTreeMap;

use nodewise_machine::printable::printable;

use super::Unread;
use crate::tree::ReadCause;

/// The remedy for a file that is closed to this user.
const AS_ROOT: &str = "run as root";

/// Missing facts by fact, reason and remedy.
#[derive(Debug, Default)]
pub(super) struct Missing {
    objects: BTreeMap<(&'static str, String, Option<&'static str>), usize>,
}

impl Missing {
    /// Counts an object that lacks a fact.
    pub(super) fn add(&mut self, fact: &'static str, reason: &str, remedy: Option<&'static str>) {
        *self.objects.entry((fact, printable(reason).into_owned(), remedy)).or_default() += 1;
    }

    /// Counts an object whose file could not be read.
    pub(super) fn unreadable(&mut self, fact: &'static str, cause: ReadCause) {
        self.add(fact, &cause.to_string(), cause.is_permission().then_some(AS_ROOT));
    }

    /// Counts what is missing elsewhere, too.
    pub(super) fn extend(&mut self, others: &Self) {
        for (line, count) in &others.objects {
            *self.objects.entry(line.clone()).or_default() += count;
        }
    }

    pub(super) fn into_lines(self) -> Vec<Unread> {
        let line = |((fact, reason, remedy), objects): ((&str, String, Option<&str>), usize)| Unread {
            fact: fact.to_owned(),
            reason,
            objects,
            remedy: remedy.map(str::to_owned),
        };
        self.objects.into_iter().map(line).collect()
    }
}
