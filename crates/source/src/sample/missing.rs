//! Missing facts, counted.

use std::collections::BTreeMap;

use nodewise_machine::printable::printable;

use super::{Remedy, Unread};
use crate::tree::ReadCause;

/// Missing facts by fact, reason and remedy.
#[derive(Debug, Default)]
pub(super) struct Missing {
    objects: BTreeMap<(&'static str, String, Option<Remedy>), usize>,
}

impl Missing {
    /// Counts an object that lacks a fact.
    pub(super) fn add(&mut self, fact: &'static str, reason: &str, remedy: Option<Remedy>) {
        self.add_all(fact, reason, remedy, 1);
    }

    /// Counts objects that lack a fact for the same reason.
    pub(super) fn add_all(
        &mut self,
        fact: &'static str,
        reason: &str,
        remedy: Option<Remedy>,
        objects: usize,
    ) {
        if objects > 0 {
            *self.objects.entry((fact, printable(reason).into_owned(), remedy)).or_default() += objects;
        }
    }

    /// Counts an object whose file could not be read.
    pub(super) fn unreadable(&mut self, fact: &'static str, cause: ReadCause) {
        self.add(fact, &cause.to_string(), cause.is_permission().then_some(Remedy::Root));
    }

    /// Counts what is missing elsewhere, too.
    pub(super) fn extend(&mut self, others: &Self) {
        for (line, count) in &others.objects {
            *self.objects.entry(line.clone()).or_default() += count;
        }
    }

    pub(super) fn into_lines(self) -> Vec<Unread> {
        let line = |((fact, reason, remedy), objects): ((&str, String, Option<Remedy>), usize)| Unread {
            fact: fact.to_owned(),
            reason,
            objects,
            remedy,
        };
        self.objects.into_iter().map(line).collect()
    }
}
