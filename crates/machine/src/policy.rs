//! Memory policies in the kernel's words. Data only; the calls are in the crate `syscall`.
//!
//! # Source
//! `include/uapi/linux/mempolicy.h`; text forms as `/proc/PID/numa_maps` and the tmpfs option
//! `mpol=` write them (`mpol_to_str`, `mpol_parse_str`).

use std::fmt;
use std::str::FromStr;

pub use nodewise_notation::mpol;

use crate::printable::quote;
use crate::set::NodeSet;

/// How a policy chooses nodes: `MPOL_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PolicyMode {
    /// No policy of its own: that of the level above, in the end allocation near the CPU.
    Default,
    /// One node first, any other when it is full.
    Preferred,
    /// Only these nodes; out of memory when they are full.
    Bind,
    /// Page by page over the nodes.
    Interleave,
    /// The node of the CPU that touches the page first. Linux 3.8 as a mode of its own.
    Local,
    /// These nodes first, any other when all of them are full. Linux 5.15.
    PreferredMany,
    /// Page by page over the nodes, in proportion to their weights. Linux 6.9.
    WeightedInterleave,
}

impl PolicyMode {
    /// Every mode, by number.
    pub const ALL: [Self; 7] = [
        Self::Default,
        Self::Preferred,
        Self::Bind,
        Self::Interleave,
        Self::Local,
        Self::PreferredMany,
        Self::WeightedInterleave,
    ];

    /// The kernel's number: `MPOL_DEFAULT` is 0.
    pub const fn number(self) -> u16 {
        match self {
            Self::Default => mpol::DEFAULT as u16,
            Self::Preferred => mpol::PREFERRED as u16,
            Self::Bind => mpol::BIND as u16,
            Self::Interleave => mpol::INTERLEAVE as u16,
            Self::Local => mpol::LOCAL as u16,
            Self::PreferredMany => mpol::PREFERRED_MANY as u16,
            Self::WeightedInterleave => mpol::WEIGHTED_INTERLEAVE as u16,
        }
    }

    /// The mode with this number.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.number() == number)
    }

    /// The kernel's word in `numa_maps` and `mpol=`.
    pub const fn kernel_word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Preferred => "prefer",
            Self::Bind => "bind",
            Self::Interleave => "interleave",
            Self::Local => "local",
            Self::PreferredMany => "prefer (many)",
            Self::WeightedInterleave => "weighted interleave",
        }
    }

    /// The word people use, with hyphens; also what `nodewise` options are called.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Preferred => "preferred",
            Self::Bind => "bind",
            Self::Interleave => "interleave",
            Self::Local => "local",
            Self::PreferredMany => "preferred-many",
            Self::WeightedInterleave => "weighted-interleave",
        }
    }

    /// Whether `set_mempolicy_home_node(2)` gives a policy of this mode a home node.
    pub const fn has_home(self) -> bool {
        matches!(self, Self::Bind | Self::PreferredMany)
    }

    /// The first Linux release with this mode, as (major, minor), where that still matters.
    pub const fn since(self) -> Option<(u16, u16)> {
        match self {
            Self::PreferredMany => Some((5, 15)),
            Self::WeightedInterleave => Some((6, 9)),
            _ => None,
        }
    }
}

impl fmt::Display for PolicyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Modifiers of a mode: `MPOL_F_*`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ModeFlags(u16);

impl ModeFlags {
    /// No modifier.
    pub const NONE: Self = Self(0);
    /// `MPOL_F_STATIC_NODES`: the node set is not remapped when the cpuset changes.
    pub const STATIC_NODES: Self = Self(mpol::F_STATIC_NODES as u16);
    /// `MPOL_F_RELATIVE_NODES`: the node set counts positions inside the cpuset.
    pub const RELATIVE_NODES: Self = Self(mpol::F_RELATIVE_NODES as u16);
    /// `MPOL_F_NUMA_BALANCING`: automatic balancing may move pages inside the set. Linux 5.12.
    pub const NUMA_BALANCING: Self = Self(mpol::F_NUMA_BALANCING as u16);

    /// Words in the order in which the kernel prints them.
    const WORDS: [(Self, &'static str); 3] = [
        (Self::STATIC_NODES, "static"),
        (Self::RELATIVE_NODES, "relative"),
        (Self::NUMA_BALANCING, "balancing"),
    ];

    /// The flags as the kernel's bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The flags in a `mode | flags` word as `get_mempolicy(2)` returns it; other bits are left.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & mpol::MODE_FLAGS as u16)
    }

    /// Whether every flag of the other is set here.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for ModeFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = Self::WORDS.iter().filter(|(flag, _)| self.contains(*flag)).map(|(_, word)| *word);
        f.write_str(&words.collect::<Vec<_>>().join("|"))
    }
}

impl fmt::Debug for ModeFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModeFlags({self})")
    }
}

/// A memory policy: mode, flags and nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemPolicy {
    pub mode: PolicyMode,
    pub flags: ModeFlags,
    /// The nodes it speaks of; empty for `Default` and `Local`.
    pub nodes: NodeSet,
}

impl MemPolicy {
    /// The policy that every process starts with.
    pub const DEFAULT: Self =
        Self { mode: PolicyMode::Default, flags: ModeFlags::NONE, nodes: NodeSet::new() };

    /// A policy without flags.
    pub const fn new(mode: PolicyMode, nodes: NodeSet) -> Self {
        Self { mode, flags: ModeFlags::NONE, nodes }
    }
}

impl fmt::Display for MemPolicy {
    /// Writes the policy as `numa_maps` does: `bind=static:0-1`, `prefer (many):3`, `default`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mode.kernel_word())?;
        if self.flags != ModeFlags::NONE {
            write!(f, "={}", self.flags)?;
        }
        if !self.nodes.is_empty() {
            write!(f, ":{}", self.nodes)?;
        }
        Ok(())
    }
}

/// Why a text is not a policy in the kernel's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The text that was read.
    pub text: String,
    pub expected: String,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a memory policy: expected {}", quote(&self.text), self.expected)
    }
}

impl std::error::Error for PolicyError {}

impl FromStr for MemPolicy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let fail = |expected: String| PolicyError { text: text.to_owned(), expected };
        let (head, list) = text.split_once(':').unwrap_or((text, ""));
        let (word, flags) = head.split_once('=').map_or((head, None), |(word, flags)| (word, Some(flags)));
        let mode = PolicyMode::ALL.into_iter().find(|mode| mode.kernel_word() == word).ok_or_else(|| {
            fail(format!("one of {}", PolicyMode::ALL.map(PolicyMode::kernel_word).join(", ")))
        })?;
        let mut all = ModeFlags::NONE;
        for word in flags.into_iter().flat_map(|flags| flags.split('|')) {
            let flag = ModeFlags::WORDS.iter().find(|(_, name)| *name == word);
            let (flag, _) =
                flag.ok_or_else(|| fail("static, relative or balancing after \"=\"".to_owned()))?;
            all = all.with(*flag);
        }
        // The kernel cuts the field at 63 characters, so a long list may end in the middle: what
        // is left would be a different set, and is refused rather than believed.
        let nodes = list.parse().map_err(|_| fail("a list of nodes after \":\"".to_owned()))?;
        Ok(Self { mode, flags: all, nodes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NodeId;
    use crate::set::tests::any_set;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn policies_are_written_in_the_kernels_words() {
        let policy = |mode, flags, nodes| MemPolicy { mode, flags, nodes };
        let bind = policy(
            PolicyMode::Bind,
            ModeFlags::STATIC_NODES.with(ModeFlags::NUMA_BALANCING),
            NodeSet::from([0, 1, 2, 9]),
        );
        assert_eq!(bind.to_string(), "bind=static|balancing:0-2,9");
        assert_eq!(
            "prefer (many):3".parse(),
            Ok(MemPolicy::new(PolicyMode::PreferredMany, NodeSet::from([3])))
        );
        assert_eq!("default".parse(), Ok(MemPolicy::DEFAULT));
    }

    #[test]
    fn a_wrong_word_lists_the_right_ones() {
        assert_eq!(
            "binds:0".parse::<MemPolicy>().unwrap_err().to_string(),
            "\"binds:0\" is not a memory policy: expected one of default, prefer, bind, interleave, local, prefer (many), weighted interleave"
        );
        assert_eq!(
            "bind=statik:0".parse::<MemPolicy>().unwrap_err().expected,
            "static, relative or balancing after \"=\""
        );
        assert_eq!("bind:0-".parse::<MemPolicy>().unwrap_err().expected, "a list of nodes after \":\"");
    }

    proptest! {
        #[test]
        fn parse_then_print_is_identity(mode in 0usize..7, bits in 0u16..8, nodes in any_set::<NodeId>()) {
            let policy = MemPolicy { mode: PolicyMode::ALL[mode], flags: ModeFlags::from_bits(bits << 13), nodes };
            prop_assert_eq!(policy.to_string().parse(), Ok(policy));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = text.parse::<MemPolicy>();
        }
    }
}
