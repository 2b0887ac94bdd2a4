//! Why a call is refused, in a line of our own.
//!
//! The originals' words are the contract for whoever reads them by program; a person at a terminal
//! gets one line more, which names the filter, the cpuset or the capability, and what would mend it.

use std::io::IsTerminal as _;

use nodewise_source::parse::proc_status::Seccomp;
use nodewise_source::tree::Tree;
use nodewise_source::{facts, own};
use nodewise_syscall::{CallError, Circumstances, Container, SeccompMode, Support};

/// The bit of `CAP_SYS_NICE` in a set of capabilities (`capabilities(7)`).
const CAP_SYS_NICE: u32 = 23;

/// Whether standard error is a terminal.
pub fn on_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Explains a failed call of this process, in one line.
pub fn line(error: &CallError, tree: &Tree) -> String {
    nodewise_syscall::explain(error, &circumstances(tree)).to_string()
}

/// The known facts about this process and the machine. Asked only when a call has failed.
fn circumstances(tree: &Tree) -> Circumstances {
    let nodes = facts::nodes(tree).ok().filter(|nodes| !nodes.is_empty());
    let has_memory = |node: &_| {
        let memory = facts::memory_of(tree, *node).ok().flatten().and_then(|memory| memory.total);
        memory.is_some_and(|total| total.get() > 0)
    };
    Circumstances {
        memory_nodes: nodes.as_ref().map(|nodes| nodes.iter().filter(has_memory).collect()),
        online_nodes: nodes,
        ..of_process(tree)
    }
}

/// The known facts about this process and the kernel that runs it: what the process may do, and what it is
/// contained in. The nodes and CPUs of a machine are the caller's to add.
pub fn of_process(tree: &Tree) -> Circumstances {
    let own::Own { status, user_namespace, container, cpuset_cpus } = own::look(tree);
    let sys_nice = status.has_capability(CAP_SYS_NICE);
    Circumstances {
        release: own::kernel_release(),
        allowed_nodes: status.mems_allowed,
        allowed_cpus: cpuset_cpus,
        seccomp: status.seccomp.map(|mode| match mode {
            Seccomp::Off => SeccompMode::Off,
            Seccomp::Strict => SeccompMode::Strict,
            Seccomp::Filter => SeccompMode::Filter,
        }),
        sys_nice,
        no_new_privileges: status.no_new_privileges,
        user_namespace,
        container: container.as_deref().and_then(Container::from_word),
        support: Some(Support::probe()),
        ..Circumstances::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{MemPolicy, NodeSet, PolicyMode};
    use nodewise_source::tree::Memory;
    use nodewise_syscall::{Call, Errno};

    #[test]
    fn a_node_that_is_not_there_is_named_with_those_that_are() {
        let files = Memory::new()
            .file("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 1024 kB\n")
            .file("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 1024 kB\n");
        let policy = MemPolicy::new(PolicyMode::Bind, NodeSet::from([7]));
        let error = CallError::new(Call::SetMempolicy { policy }, Errno::EINVAL);
        let line = line(&error, &Tree::memory(files));
        assert!(line.contains("node 7 does not exist"), "{line}");
        assert!(line.contains("0-1"), "{line}");
    }
}
