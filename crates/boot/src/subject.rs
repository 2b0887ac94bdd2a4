//! Subjects of changes, each with the command that takes it back.

/// The subject of a change of command lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Emulation,
    HugePages,
}

impl Subject {
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Emulation => "emulated nodes",
            Self::HugePages => "huge pages",
        }
    }

    /// The command that takes such a change back.
    pub(crate) const fn undo(self) -> &'static str {
        match self {
            Self::Emulation => "nodewise emulation undo",
            Self::HugePages => "nodewise hugepages undo --boot",
        }
    }
}
