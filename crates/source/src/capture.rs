//! Writing a machine down: its files, so that every verb can read it elsewhere.
//!
//! What is saved is a list ([`rules`]) of what is let in, each line with its reason; everything else
//! stays behind. Without [`Identity::With`] nothing shows whose machine it was: files that name it
//! are left out or reduced, and addresses and identifiers in names are replaced.

mod filter;
mod identity;
mod output;
pub mod rules;
mod walk;

use std::collections::BTreeMap;

use crate::tree::{Memory, ReadError, Tree};

pub use filter::command_line;
pub use output::{CaptureError, Overwrite, Written, check_file, write_file};

/// Whether a capture may show whose machine it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Serial numbers, UUIDs, MAC addresses, host and user names are left out.
    Without,
    With,
}

/// The saved object at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    File(Vec<u8>),
    Link(String),
    Folder,
}

/// The saved files of a machine, not yet written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    entries: BTreeMap<String, Entry>,
    unreadable: Vec<ReadError>,
}

impl Capture {
    /// Reads everything that the rules let in.
    pub fn from_tree(tree: &Tree, identity: Identity) -> Self {
        walk::collect(tree, identity)
    }

    /// How many files and links there are.
    pub fn len(&self) -> usize {
        self.entries.values().filter(|entry| **entry != Entry::Folder).count()
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Files that are there and could not be read, and why: most are open to root only.
    pub fn unreadable(&self) -> &[ReadError] {
        &self.unreadable
    }

    /// The capture as a tree, without writing it.
    pub fn tree(&self) -> Tree {
        let files = self.entries.iter().fold(Memory::new(), |files, (path, entry)| match entry {
            Entry::File(contents) => files.file(path, contents),
            Entry::Link(target) => files.link_to(path, target),
            Entry::Folder => files.directory(path),
        });
        Tree::memory(files)
    }
}

#[cfg(test)]
mod tests;
