//! Acts of programs and of the system, and why they cannot be done.

use std::ops::Range;
use std::time::Duration;

use nodewise_machine::{MemPolicy, NodeId, NodeSet};

use super::limits::GroupLimits;
use crate::balancing::course::Pattern;

/// The parts of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Private anonymous memory that is not advised: in small pages, unless the machine gives all memory huge ones.
    Small,
    /// Private anonymous memory that is advised against huge pages (`MADV_NOHUGEPAGE`).
    NeverHuge,
    /// A file with this name, mapped private from its beginning (`MAP_PRIVATE`): pages that the program writes to, which are
    /// copies. Their turns go by their numbers in the file.
    PrivateFile(String),
    /// Private anonymous memory that is advised to be in huge pages (`MADV_HUGEPAGE`).
    Huge,
    /// A file in memory with this name, mapped shared from its beginning (`shm_open(3)`, tmpfs). It is there
    /// as long as somebody has it mapped.
    File(String),
    /// Private memory from the pool of huge pages (`MAP_HUGETLB`).
    Pool,
}

/// New memory of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The name of the memory.
    pub region: String,
    /// How many pages of 4 KiB; huge pages are whole.
    pub pages: u64,
    pub backing: Backing,
    /// The policy that `mbind(2)` gives it before it is touched.
    pub policy: Option<MemPolicy>,
    /// The number of its first page, which says whose turn that is, for private memory; `None` where the memory
    /// behind the last ends, and of a private file for its beginning.
    pub first_page: Option<u64>,
}

/// Some or all of a program's memory of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The name of the memory.
    pub region: String,
    /// Pages of 4 KiB from its beginning; `None` for all of it. Of huge pages all that begin before the end.
    pub pages: Option<Range<u64>>,
}

/// Pages of a file on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePart {
    /// The name of the file; files that are mapped have names of their own.
    pub file: String,
    /// Pages of 4 KiB from its beginning.
    pub pages: Range<u64>,
}

/// The use of a program's memory while time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// CPU time of the program.
    pub time: Duration,
    /// Pages of 4 KiB that it touches in a second of that: at least, and at most.
    pub touches_per_s: [u64; 2],
    pub pattern: Pattern,
}

/// The flags of `mbind(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags {
    /// `MPOL_MF_STRICT`.
    pub strict: bool,
    /// `MPOL_MF_MOVE`.
    pub moves: bool,
    /// `MPOL_MF_MOVE_ALL`, with `CAP_SYS_NICE`: pages that other programs have, too.
    pub moves_all: bool,
}

/// The effect of a program. Pools, limits of groups, demotion and caches are the system's, whoever does them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// It starts on a CPU of a node, in a cpuset of its own.
    Start {
        /// The node of the CPU.
        cpu_node: NodeId,
        policy: MemPolicy,
        /// The nodes that its cpuset allows.
        allowed: NodeSet,
    },
    /// `mmap(2)`: memory that no one has touched.
    Map(Mapping),
    /// The same, and all of it is touched.
    Allocate(Mapping),
    /// It writes to every page.
    Touch(Part),
    /// `read(2)` of a file on a disk: what is not in the page cache comes into it.
    Read(FilePart),
    /// `write(2)`: the same, and the pages are not on the disk until [`Act::Sync`].
    Write(FilePart),
    Free {
        /// The name of the memory.
        region: String,
    },
    /// `set_mempolicy(2)`. Memory that is there stays.
    SetPolicy(MemPolicy),
    /// `mbind(2)` of memory that is there.
    Bind {
        part: Part,
        /// The policy that it is to have.
        policy: MemPolicy,
        /// Flags that say what is to be done about pages that are elsewhere.
        flags: Flags,
    },
    /// `set_mempolicy_home_node(2)`.
    SetHome {
        part: Part,
        node: NodeId,
    },
    /// `move_pages(2)` of all pages of some memory to one node.
    MovePages {
        part: Part,
        node: NodeId,
        /// `MPOL_MF_MOVE_ALL`, with `CAP_SYS_NICE`.
        all: bool,
    },
    /// `migrate_pages(2)`, with `CAP_SYS_NICE`.
    Migrate {
        old: NodeSet,
        new: NodeSet,
    },
    /// `mremap(2)`: memory that grows, that moves, or both.
    Remap {
        /// The name of the memory.
        region: String,
        /// Pages that it has then; `None` for as many as before.
        pages: Option<u64>,
        /// The number of its first page where it goes to; `None` where it stays.
        first_page: Option<u64>,
    },
    /// `/proc/PID/oom_score_adj` is written.
    AdjustOom(i32),
    /// It goes to a CPU of another node.
    RunOn(NodeId),
    /// `cpuset.mems` of its cpuset, where its children are too. Pages follow, as with version 2 of the
    /// cgroups.
    Restrict(NodeSet),
    /// `fork(2)`: a program with its policies and its pages, until one of both writes.
    Fork {
        /// The name of the child.
        child: String,
    },
    /// `pthread_create(3)`: a thread with the policy and the CPU of whoever starts it, which uses the same memory. Where it
    /// sets a policy or goes to another node, that holds for the thread alone; all else is the program's.
    StartThread {
        name: String,
    },
    /// It runs for a while and uses all its memory: what is demoted, promoted or follows the CPU by then
    /// has done so.
    Balance,
    /// The same, with a forecast of how much of what follows the CPU has done so after a while. Steps after it find all of it
    /// there.
    BalanceFor(MemoryUse),
    End,
    /// `vm.nr_hugepages` is written.
    ResizePool {
        /// Pages of 2 MiB.
        pages: u64,
    },
    /// A control group is made, or the limits of one that is there are written.
    Limit {
        group: String,
        /// The group that a new one is in.
        parent: Option<String>,
        limits: GroupLimits,
    },
    /// It goes to a control group: what it takes from then on is charged there.
    Join {
        group: String,
    },
    /// `/sys/kernel/mm/numa/demotion_enabled` is written.
    SetDemotion(bool),
    /// `sync(2)`: all that was written is on the disk.
    Sync,
    /// `/proc/sys/vm/drop_caches` is written: page cache goes, but for pages that are not on the disk.
    DropCaches,
}

/// Why a scenario cannot go on: what it says has no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The program has not started, or has ended.
    NotThere,
    /// A program or a thread of this name runs already.
    Started(String),
    /// The memory would be smaller than it is.
    Shrinks(String),
    /// The program has no memory of this name.
    NoRegion(String),
    /// The control group of this name does not exist.
    NoGroup(String),
    /// It has memory of this name already.
    Taken(String),
}

/// Why something that a scenario says does not happen in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The program has been killed.
    Killed,
    /// The kernel has refused the policy that the program was to start with.
    NotStarted,
    /// The kernel has refused the memory.
    NotMapped,
}
