//! How bad a finding is.

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// It can cost something.
    Note,
    /// It costs something now.
    Warning,
    /// A service swaps or dies.
    Critical,
}

impl Severity {
    /// Every severity, the mildest first.
    pub const ALL: [Self; 4] = [Self::Info, Self::Note, Self::Warning, Self::Critical];

    /// Its word, in text and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// The severity with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.word() == word)
    }
}
