//! What was strange in the files: many alike are told once and counted.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::{Oddity, OddityKind};

/// Oddities of one kind that are told one by one; a capture with a thousand CPUs can have the same
/// damage a thousand times.
const MOST_OF_A_KIND: usize = 16;

/// Oddities as they come.
#[derive(Default)]
pub(super) struct Findings {
    told: Vec<Oddity>,
    counts: BTreeMap<OddityKind, usize>,
    /// Files with bytes behind their text.
    strays: BTreeSet<String>,
    /// What was noted already: a file can be read more than once.
    known: BTreeSet<(Option<String>, Option<u32>, String)>,
}

impl Findings {
    pub(super) fn add(&mut self, oddity: Oddity) {
        if !self.known.insert((oddity.path.clone(), oddity.line, oddity.text.clone())) {
            return;
        }
        let count = self.counts.entry(oddity.kind).or_default();
        *count += 1;
        if *count <= MOST_OF_A_KIND {
            self.told.push(oddity);
        }
    }

    /// Whether anything of this file was noted.
    pub(super) fn has(&self, path: &str) -> bool {
        self.known.iter().any(|(known, ..)| known.as_deref() == Some(path))
    }

    /// A file with bytes behind its text.
    pub(super) fn stray(&mut self, path: &str) {
        self.strays.insert(path.to_owned());
    }

    /// All of them, the untold ones as a number.
    pub(super) fn finish(self) -> Vec<Oddity> {
        let mut oddities = self.told;
        if let Some(path) = self.strays.first().cloned() {
            let others = match self.strays.len() - 1 {
                0 => String::new(),
                1 => "; so has one other file".to_owned(),
                others => format!("; so have {others} other files"),
            };
            let text = format!("it has NUL bytes behind its text, which were ignored{others}");
            oddities.push(Oddity::in_file(OddityKind::StrayBytes, path, text));
        }
        for (kind, count) in self.counts.into_iter().filter(|(_, count)| *count > MOST_OF_A_KIND) {
            let text = format!("{} more findings of this kind are not shown", count - MOST_OF_A_KIND);
            oddities.push(Oddity::new(kind, text));
        }
        oddities
    }
}
