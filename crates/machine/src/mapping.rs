//! A process's mappings: what a range of its addresses is, and where its pages are.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::time::Duration;

use crate::id::{NodeId, Pid};
use crate::policy::MemPolicy;
use crate::units::Bytes;

/// The mappings of a process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMappings {
    pub pid: Pid,
    /// Its name as it was read, not fit for a terminal.
    pub name: Option<String>,
    /// Its resident memory, pages of huge page pools included, as the kernel counts it.
    pub resident: Option<Bytes>,
    /// Its memory that is swapped out.
    pub swapped: Option<Bytes>,
    pub method: MappingsMethod,
    /// The policy of its first thread, which holds for mappings without one of their own; `None` where it was not
    /// read apart from those of the mappings.
    pub thread_policy: Option<MappingPolicy>,
    /// The CPU time of reading; `None` where no clock was at hand.
    pub took: Option<Duration>,
    /// The CPU time that the whole reading was expected to take.
    pub predicted: Duration,
    /// By address.
    pub mappings: Vec<Mapping>,
    /// Sentences about what could not be read, or not in the way that was wanted.
    pub notes: Vec<String>,
}

/// How it was found out where pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingsMethod {
    /// Every page was counted.
    Exact,
    /// This many pages were asked for, those of the large mappings at random.
    Sampled { asked: u64, seed: u64 },
    /// Nothing says on which nodes pages are.
    NoNodes,
}

/// A mapping. `None`: nothing says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    pub permissions: Permissions,
    pub kind: MappingKind,
    /// The file or the shared memory behind it.
    pub file: Option<FileId>,
    /// Its name as it was read, not fit for a terminal.
    pub name: Option<String>,
    pub policy: Option<MappingPolicy>,
    /// The pages that it is made of, but for transparent huge pages.
    pub page_size: Option<Bytes>,
    pub pages: MappedPages,
    /// The part of it in transparent huge pages.
    pub transparent: Option<Bytes>,
    pub swapped: Option<Bytes>,
    pub dirty: Option<Bytes>,
    /// The most processes that map one of its pages.
    pub most_mapped: Option<u64>,
    /// Whether the mapping came, went or changed while it was read.
    pub unsure: bool,
}

impl ProcessMappings {
    /// Mappings whose pages were counted, and nothing else known.
    pub const fn new(pid: Pid, mappings: Vec<Mapping>) -> Self {
        Self {
            pid,
            name: None,
            resident: None,
            swapped: None,
            method: MappingsMethod::Exact,
            thread_policy: None,
            took: None,
            predicted: Duration::ZERO,
            mappings,
            notes: Vec::new(),
        }
    }
}

impl Mapping {
    /// Whether several processes map it, as segments of System V, memfd and shared anonymous memory are; `false` where the
    /// number of processes is not known.
    pub fn is_in_several_processes(&self) -> bool {
        self.permissions.shared && self.most_mapped > Some(1)
    }

    /// A mapping of this kind, and nothing else known.
    pub fn new(addresses: Range<u64>, kind: MappingKind) -> Self {
        Self {
            start: addresses.start,
            end: addresses.end,
            permissions: Permissions::default(),
            kind,
            file: None,
            name: None,
            policy: None,
            page_size: None,
            pages: MappedPages::Unknown { resident: None },
            transparent: None,
            swapped: None,
            dirty: None,
            most_mapped: None,
            unsure: false,
        }
    }

    /// Its memory that is present; `None` where it was not counted.
    pub fn resident(&self) -> Option<Bytes> {
        match &self.pages {
            MappedPages::Unknown { resident } => *resident,
            MappedPages::Counted(nodes) => Some(nodes.values().copied().sum()),
            MappedPages::Drawn(drawn) => Some(drawn.present()),
        }
    }
}

/// Where the pages of a mapping are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MappedPages {
    Unknown {
        resident: Option<Bytes>,
    },
    /// Every page was asked for.
    Counted(BTreeMap<NodeId, Bytes>),
    Drawn(DrawnPages),
}

/// Pages that were drawn with replacement, each page with the same probability in all mappings of the
/// process from which pages were drawn. Sums of several mappings are therefore draws of the same kind.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DrawnPages {
    /// The memory from which they were drawn.
    pub candidates: Bytes,
    /// How many were drawn.
    pub drawn: u64,
    /// How many of them are on each node; the others are not present.
    pub nodes: BTreeMap<NodeId, u64>,
}

impl DrawnPages {
    /// The estimated memory that is present: all of it where nothing was drawn.
    pub fn present(&self) -> Bytes {
        match self.drawn {
            0 => self.candidates,
            drawn => {
                let found = self.nodes.values().copied().fold(0, u64::saturating_add);
                self.candidates.share(found as f64 / drawn as f64)
            }
        }
    }
}

/// The kind of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MappingKind {
    /// The heap of `brk(2)`. Most of what `malloc(3)` gives to large requests is [`Self::Anonymous`].
    Heap,
    /// The stack of the first thread. Those of other threads are [`Self::Anonymous`].
    Stack,
    /// Memory without a file that no one else writes to.
    Anonymous,
    /// Files of tmpfs, segments of System V, shared memory without a file.
    Shared,
    /// Files, with the pages that were copied when the process wrote to them.
    File,
    /// Pages of a huge page pool.
    HugePool,
    /// Devices, and pages that the kernel shows to every process.
    Special,
}

impl MappingKind {
    /// Every kind, in the order in which tables show them.
    pub const ALL: [Self; 7] =
        [Self::Heap, Self::Stack, Self::Anonymous, Self::Shared, Self::File, Self::HugePool, Self::Special];

    /// The words for it in a table.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::Anonymous => "anonymous",
            Self::Shared => "shared memory",
            Self::File => "files",
            Self::HugePool => "huge page pools",
            Self::Special => "special",
        }
    }

    /// The word for it in JSON and CSV.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::Anonymous => "anonymous",
            Self::Shared => "shared",
            Self::File => "file",
            Self::HugePool => "hugetlb",
            Self::Special => "special",
        }
    }

    /// Whether its pages are allocated under the mapping's own policy. Those of files are where whoever read
    /// them first put them.
    pub const fn follows_policy(self) -> bool {
        !matches!(self, Self::File | Self::Special)
    }
}

/// The policy of a mapping; where it has none of its own, that of the process's first thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingPolicy {
    /// In the kernel's words, as they were read; the kernel cuts them after 63 characters.
    pub text: String,
    /// `None` where the words are cut or not known.
    pub policy: Option<MemPolicy>,
}

/// The use that a process may make of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Permissions {
    pub read: bool,
    pub write: bool,
    pub execute: bool,
    /// Whether what is written is seen by others who map the same (`MAP_SHARED`).
    pub shared: bool,
}

impl fmt::Display for Permissions {
    /// Writes them as the kernel does: `rw-p`, `r-xs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |is_set, letter| if is_set { letter } else { '-' };
        write!(
            f,
            "{}{}{}{}",
            letter(self.read, 'r'),
            letter(self.write, 'w'),
            letter(self.execute, 'x'),
            if self.shared { 's' } else { 'p' }
        )
    }
}

/// The object behind a mapping: two mappings with the same one map the same file or shared memory,
/// whatever its name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// Major and minor number of the file system's device.
    pub device: (u32, u32),
    pub inode: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_written_as_the_kernel_does() {
        let check = |permissions: Permissions, expected: &str| assert_eq!(permissions.to_string(), expected);
        check(Permissions::default(), "---p");
        check(Permissions { read: true, execute: true, shared: true, ..Permissions::default() }, "r-xs");
        check(Permissions { read: true, write: true, ..Permissions::default() }, "rw-p");
    }
}
