//! Kinds of scripts: what their calls are mostly about.

/// A kind of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScriptKind {
    /// Memory policy calls of one thread.
    Calls,
    /// Transparent huge pages of memory without advice, under each setting.
    Thp,
    /// Threads, each with its own policy and CPU.
    Threads,
    /// Pools of huge pages that are resized while programs have pages of them.
    Pools,
    /// Control groups with limits of memory and programs in them.
    Groups,
    /// The same with swap.
    Swap,
    /// Files on a disk that programs read and write, beside memory that they take.
    Cache,
}

impl ScriptKind {
    /// Every kind.
    pub const ALL: [Self; 7] =
        [Self::Calls, Self::Thp, Self::Threads, Self::Pools, Self::Groups, Self::Swap, Self::Cache];

    /// Its word in options and reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Thp => "thp",
            Self::Threads => "threads",
            Self::Pools => "pools",
            Self::Groups => "groups",
            Self::Swap => "swap",
            Self::Cache => "cache",
        }
    }

    /// Whether scripts of groups of this kind have swap; `None` for kinds without groups.
    pub const fn of_groups(self) -> Option<bool> {
        match self {
            Self::Groups => Some(false),
            Self::Swap => Some(true),
            Self::Calls | Self::Thp | Self::Threads | Self::Pools | Self::Cache => None,
        }
    }

    /// The kind of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// A script among all that are drawn for a machine: the same number gives another script of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScriptId {
    pub kind: ScriptKind,
    pub number: u64,
}

impl ScriptId {
    /// Reads what [`std::fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, number) = text.split_once('-')?;
        Some(Self { kind: ScriptKind::from_word(kind)?, number: number.parse().ok()? })
    }
}

impl std::fmt::Display for ScriptId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.kind.word(), self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_script_is_read_back() {
        for kind in ScriptKind::ALL {
            let id = ScriptId { kind, number: 53014 };
            assert_eq!(ScriptId::parse(&id.to_string()), Some(id));
        }
        for text in ["", "thp", "thp-", "thp-x", "other-1", "3"] {
            assert_eq!(ScriptId::parse(text), None, "{text}");
        }
    }
}
