//! Notes on tables, beside the nodes that Linux derives from them.

use std::fmt;

use nodewise_machine::{Oddity, OddityKind};

/// Of what kind a note is. Each has a word that does not change, for scripts and JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteKind {
    /// The kernel rejects all of the table, and does without.
    Rejected,
    /// The kernel accepts the table and does not come up with it.
    DoesNotBoot,
    /// The kernel passes over a part of the table.
    Ignored,
    /// The table is used, and something about it is unusual.
    Unusual,
    /// The tables do not say it, and this is taken for granted.
    Assumed,
}

impl NoteKind {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::Rejected, Self::DoesNotBoot, Self::Ignored, Self::Unusual, Self::Assumed];

    /// The word for scripts: `does-not-boot`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::DoesNotBoot => "does-not-boot",
            Self::Ignored => "ignored",
            Self::Unusual => "unusual",
            Self::Assumed => "assumed",
        }
    }
}

/// A note on a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub kind: NoteKind,
    /// The table: `SRAT`, or `device tree`.
    pub table: &'static str,
    /// Bytes from the start of the table, where it is one structure.
    pub offset: Option<usize>,
    /// The sentence: lower case, no full stop, fit for a terminal.
    pub text: String,
}

impl Note {
    /// A note on a table as a whole.
    pub(super) fn new(kind: NoteKind, table: &'static str, text: impl Into<String>) -> Self {
        Self { kind, table, offset: None, text: text.into() }
    }

    /// A note on one of its structures.
    pub(super) fn at(kind: NoteKind, table: &'static str, offset: usize, text: impl Into<String>) -> Self {
        Self { kind, table, offset: Some(offset), text: text.into() }
    }

    /// The note as an oddity of the machine.
    pub fn oddity(&self) -> Oddity {
        let kind = match self.kind {
            NoteKind::Rejected => OddityKind::FirmwareRejected,
            NoteKind::DoesNotBoot => OddityKind::FirmwareDoesNotBoot,
            NoteKind::Ignored | NoteKind::Unusual => OddityKind::FirmwareUnusual,
            NoteKind::Assumed => OddityKind::FirmwareAssumed,
        };
        Oddity::new(kind, self.to_string())
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.table)?;
        if let Some(offset) = self.offset {
            write!(f, " at {offset:#x}")?;
        }
        write!(f, ": {}", self.text)
    }
}
