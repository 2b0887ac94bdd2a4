//! The calls of this crate as data, and how each is written in a message.

use std::fmt;

use nodewise_machine::id::Id;
use nodewise_machine::{Bytes, CpuSet, IdSet, MemPolicy, ModeFlags, NodeId, NodeSet};

use nodewise_machine::placement::TransparentHuge;

use crate::arguments::{Advice, BindOptions, PageKind, PageScope, thp_words};

/// A thread or a process, as a system call names one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task(libc::pid_t);

impl Task {
    /// The calling thread, or its process where the call speaks of processes.
    pub const CURRENT: Self = Self(0);

    /// The task with this number; `None` for 0, which means the caller to the kernel, and for
    /// numbers that no Linux system gives out.
    pub fn new(number: u32) -> Option<Self> {
        libc::pid_t::try_from(number).ok().filter(|number| *number != 0).map(Self)
    }

    pub(crate) const fn number(self) -> libc::pid_t {
        self.0
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::CURRENT { f.write_str("self") } else { write!(f, "pid {}", self.0) }
    }
}

/// A question to `get_mempolicy(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyQuery {
    /// The policy of the calling thread.
    Thread,
    /// The policy of the range that this address lies in.
    At(usize),
    /// The node of the page at this address.
    NodeAt(usize),
    /// The nodes that the thread's cpuset allows.
    AllowedNodes,
    /// The node of the next page that the thread interleaves.
    NextInterleaved,
}

/// A system call with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `set_mempolicy(2)`.
    SetMempolicy {
        /// The policy that was to hold.
        policy: MemPolicy,
    },
    /// `get_mempolicy(2)`.
    GetMempolicy { query: PolicyQuery },
    /// `mbind(2)`.
    Mbind {
        address: usize,
        length: Bytes,
        /// The policy that was to hold there.
        policy: MemPolicy,
        /// The treatment of pages that exist already.
        options: BindOptions,
    },
    /// `set_mempolicy_home_node(2)`.
    SetHomeNode {
        address: usize,
        length: Bytes,
        /// The node from which its allocations were to start.
        node: NodeId,
    },
    /// `migrate_pages(2)`.
    MigratePages {
        /// Whose pages.
        task: Task,
        /// The nodes they were to leave.
        from: NodeSet,
        /// The nodes they were to go to.
        to: NodeSet,
    },
    /// `move_pages(2)`.
    MovePages {
        /// Whose pages.
        task: Task,
        /// How many of them in this call.
        pages: usize,
        /// Where they were to go; `None` when their places were asked.
        targets: Option<(NodeSet, PageScope)>,
    },
    /// `sched_setaffinity(2)`.
    SchedSetaffinity {
        task: Task,
        /// The CPUs it was to run on.
        cpus: CpuSet,
    },
    /// `sched_getaffinity(2)`.
    SchedGetaffinity { task: Task },
    /// `getcpu(2)`.
    Getcpu,
    /// `prctl(2)` with `PR_SET_THP_DISABLE`.
    SetThpDisable { setting: TransparentHuge },
    /// `prctl(2)` with `PR_GET_THP_DISABLE`.
    GetThpDisable,
    /// `mmap(2)` of anonymous memory.
    Mmap {
        length: Bytes,
        /// In which pages.
        pages: PageKind,
    },
    /// `madvise(2)`.
    Madvise { address: usize, length: Bytes, advice: Advice },
    /// `wait4(2)`.
    Wait4 { pid: u32 },
}

impl Call {
    /// The name of the call, as its manual page has it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SetMempolicy { .. } => "set_mempolicy",
            Self::GetMempolicy { .. } => "get_mempolicy",
            Self::Mbind { .. } => "mbind",
            Self::SetHomeNode { .. } => "set_mempolicy_home_node",
            Self::MigratePages { .. } => "migrate_pages",
            Self::MovePages { .. } => "move_pages",
            Self::SchedSetaffinity { .. } => "sched_setaffinity",
            Self::SchedGetaffinity { .. } => "sched_getaffinity",
            Self::Getcpu => "getcpu",
            Self::SetThpDisable { .. } | Self::GetThpDisable => "prctl",
            Self::Mmap { .. } => "mmap",
            Self::Madvise { .. } => "madvise",
            Self::Wait4 { .. } => "wait4",
        }
    }

    fn arguments(&self) -> String {
        match self {
            Self::SetMempolicy { policy } => policy_words(policy),
            Self::GetMempolicy { query } => query_words(*query),
            Self::Mbind { address, length, policy, options } => {
                format!("{address:#x}, {length}, {}{options}", policy_words(policy))
            }
            Self::SetHomeNode { address, length, node } => format!("{address:#x}, {length}, node {node}"),
            Self::MigratePages { task, from, to } => format!("{task}, {} to {}", these(from), these(to)),
            Self::MovePages { task, pages, targets } => {
                let to = targets.as_ref().map(|(nodes, scope)| format!(", to {}{scope}", these(nodes)));
                format!("{task}, {}{}", count(*pages, "page"), to.unwrap_or_default())
            }
            Self::SchedSetaffinity { task, cpus } => format!("{task}, {}", these(cpus)),
            Self::SchedGetaffinity { task } => task.to_string(),
            Self::Getcpu => String::new(),
            Self::SetThpDisable { setting } => format!("PR_SET_THP_DISABLE, {}", thp_words(*setting)),
            Self::GetThpDisable => "PR_GET_THP_DISABLE".to_owned(),
            Self::Mmap { length, pages } => format!("{length}, {pages}"),
            Self::Madvise { address, length, advice } => format!("{address:#x}, {length}, {advice}"),
            Self::Wait4 { pid } => format!("pid {pid}"),
        }
    }
}

impl fmt::Display for Call {
    /// Writes the call in words: `mbind(0x7f2c00000000, 64 MiB, bind, nodes 0-1)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.arguments())
    }
}

fn policy_words(policy: &MemPolicy) -> String {
    let mut text = policy.mode.word().to_owned();
    if policy.flags != ModeFlags::NONE {
        text.push_str(&format!("={}", policy.flags));
    }
    if !policy.nodes.is_empty() {
        text.push_str(&format!(", {}", these(&policy.nodes)));
    }
    text
}

fn query_words(query: PolicyQuery) -> String {
    match query {
        PolicyQuery::Thread => "policy of this thread".to_owned(),
        PolicyQuery::At(address) => format!("policy at {address:#x}"),
        PolicyQuery::NodeAt(address) => format!("node at {address:#x}"),
        PolicyQuery::AllowedNodes => "allowed nodes".to_owned(),
        PolicyQuery::NextInterleaved => "next interleaved node".to_owned(),
    }
}

/// The members of a set with their word in the right number: `node 3`, `CPUs 0-3,8`, `no nodes`.
pub(crate) fn these<I: Id>(set: &IdSet<I>) -> String {
    match set.len() {
        0 => format!("no {}s", I::WORD),
        1 => format!("{} {set}", I::WORD),
        _ => format!("{}s {set}", I::WORD),
    }
}

/// A number with its word: `1 page`, `512 pages`.
fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::PolicyMode;

    fn check(call: &Call, expected: &str) {
        assert_eq!(call.to_string(), expected);
    }

    fn bind() -> MemPolicy {
        MemPolicy::new(PolicyMode::Bind, NodeSet::from([0, 1]))
    }

    #[test]
    fn policy_calls_are_written_with_their_arguments() {
        check(&Call::SetMempolicy { policy: MemPolicy::DEFAULT }, "set_mempolicy(default)");
        let flags = ModeFlags::STATIC_NODES.with(ModeFlags::NUMA_BALANCING);
        let policy = MemPolicy { flags, ..bind() };
        check(&Call::SetMempolicy { policy }, "set_mempolicy(bind=static|balancing, nodes 0-1)");
        let (address, length) = (0x7f2c_0000_0000, Bytes::from_mib(64));
        let options = BindOptions::default();
        let mbind = Call::Mbind { address, length, policy: bind(), options };
        check(&mbind, "mbind(0x7f2c00000000, 64 MiB, bind, nodes 0-1)");
        let options = BindOptions { moving: Some(PageScope::All), strict: true };
        let mbind = Call::Mbind { address, length, policy: bind(), options };
        check(&mbind, "mbind(0x7f2c00000000, 64 MiB, bind, nodes 0-1, move all, strict)");
        check(&Call::GetMempolicy { query: PolicyQuery::Thread }, "get_mempolicy(policy of this thread)");
        check(&Call::GetMempolicy { query: PolicyQuery::NodeAt(0x1000) }, "get_mempolicy(node at 0x1000)");
        let home = Call::SetHomeNode { address, length, node: NodeId::new(3) };
        check(&home, "set_mempolicy_home_node(0x7f2c00000000, 64 MiB, node 3)");
    }

    #[test]
    fn page_calls_are_written_with_their_arguments() {
        let task = Task::new(123).unwrap();
        let (from, to) = (NodeSet::from([0, 1]), NodeSet::from([2]));
        check(
            &Call::MigratePages { task, from, to: to.clone() },
            "migrate_pages(pid 123, nodes 0-1 to node 2)",
        );
        check(&Call::MovePages { task: Task::CURRENT, pages: 1, targets: None }, "move_pages(self, 1 page)");
        let targets = Some((to, PageScope::Own));
        check(&Call::MovePages { task, pages: 512, targets }, "move_pages(pid 123, 512 pages, to node 2)");
    }

    #[test]
    fn the_other_calls_are_written_with_their_arguments() {
        let cpus = CpuSet::from([0, 1, 5]);
        check(&Call::SchedSetaffinity { task: Task::CURRENT, cpus }, "sched_setaffinity(self, CPUs 0-1,5)");
        check(
            &Call::SchedSetaffinity { task: Task::CURRENT, cpus: CpuSet::new() },
            "sched_setaffinity(self, no CPUs)",
        );
        check(&Call::SetThpDisable { setting: TransparentHuge::Never }, "prctl(PR_SET_THP_DISABLE, 1)");
        check(&Call::GetThpDisable, "prctl(PR_GET_THP_DISABLE)");
        check(&Call::Getcpu, "getcpu()");
        check(&Call::Wait4 { pid: 7 }, "wait4(pid 7)");
        check(&Call::Mmap { length: Bytes::from_gib(1), pages: PageKind::Small }, "mmap(1 GiB, small pages)");
        let (address, length) = (0x20_0000, Bytes::from_mib(2));
        check(
            &Call::Madvise { address, length, advice: Advice::HugePages },
            "madvise(0x200000, 2 MiB, MADV_HUGEPAGE)",
        );
    }

    #[test]
    fn a_task_is_a_number_that_linux_can_give_out() {
        assert_eq!(Task::new(0), None);
        assert_eq!(Task::new(u32::MAX), None);
        assert_eq!(Task::new(1).map(Task::number), Some(1));
    }
}
