//! A page of a program's memory: what it is part of, its policy and where it is.

use nodewise_machine::NodeId;

use crate::policy::interleave::InterleavePosition;
use crate::policy::set::Policy;
use crate::zones::ZoneKind;

/// The zone that a page is in.
pub(super) type Home = (NodeId, ZoneKind);

/// The parts of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backing {
    /// Private anonymous memory in small pages.
    Small,
    /// Private anonymous memory that is advised to be in transparent huge pages.
    Huge,
    /// Private anonymous memory without advice.
    Plain,
    /// A page of a file in memory.
    File { inode: u64, page: u64 },
}

impl Backing {
    /// Where a page at this number is in the turns of an interleaving policy.
    pub fn place(self, number: u64) -> InterleavePosition {
        match self {
            Self::Small | Self::Huge | Self::Plain => InterleavePosition::Address(number << 12),
            Self::File { inode, page } => InterleavePosition::File { inode, page },
        }
    }
}

/// The size of a page in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Small,
    /// Part of a huge page that is mapped as one.
    Huge,
    /// Part of a huge page that is mapped in small ones, since a program that had it in common with another
    /// has written to some of it. The other may have the whole of it yet.
    Part,
}

/// A page of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub backing: Backing,
    /// The policy that it is placed by, if it has one: that of the mapping, or of the file.
    pub policy: Option<Policy>,
    /// The mapping's own copy of a file's policy. No page is placed by it, but it follows the cpuset, and
    /// it is what a home node is added to.
    pub copy: Option<Policy>,
    /// Where it is, once somebody has touched it.
    pub home: Option<Home>,
    /// Whether this program has touched it, and not only another that has the same file.
    pub mapped: bool,
    /// Its size, once it is there.
    pub size: Size,
    /// Whether this program has written to it, so that it holds more than zeros.
    pub written: bool,
    /// Whether children have it (`MADV_DONTFORK` keeps it from them).
    pub inherited: bool,
}

impl Page {
    /// A page that nothing has touched yet.
    pub const fn untouched(backing: Backing) -> Self {
        Self {
            backing,
            policy: None,
            copy: None,
            home: None,
            mapped: false,
            size: Size::Small,
            written: false,
            inherited: true,
        }
    }

    /// Whether the page is one of a file.
    pub const fn is_file(&self) -> bool {
        matches!(self.backing, Backing::File { .. })
    }

    /// Sets the policy as `mbind(2)` leaves it. The policy of a file is one for all who have it.
    pub fn set_policy(&mut self, policy: &Option<Policy>) {
        self.policy.clone_from(policy);
        self.copy = policy.clone().filter(|_| self.is_file());
    }

    /// The policy of the mapping: with a file, the copy.
    pub fn of_mapping_mut(&mut self) -> Option<&mut Policy> {
        if self.is_file() { self.copy.as_mut() } else { self.policy.as_mut() }
    }
}
