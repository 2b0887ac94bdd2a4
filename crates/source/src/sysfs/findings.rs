//! Oddities in the files.

use std::collections::BTreeSet;

use nodewise_machine::{Oddity, OddityKind};

/// Oddities as they come. All are kept: views group those that are alike.
#[derive(Default)]
pub(super) struct Findings {
    told: Vec<Oddity>,
    /// Files with bytes behind their text.
    strays: BTreeSet<String>,
    /// The oddities noted already: a file can be read more than once.
    known: BTreeSet<(Option<String>, Option<u32>, String)>,
}

impl Findings {
    pub(super) fn add(&mut self, oddity: Oddity) {
        if self.known.insert((oddity.path.clone(), oddity.line, oddity.text.clone())) {
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

    /// All of them.
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
        oddities
    }
}
