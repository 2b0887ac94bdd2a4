//! Why pages could not be found or moved.

use nodewise_machine::NodeSet;

use super::circumstances::Circumstances;
use super::policy::{moving_shared_pages, no_such_node, none_usable, outside_cpuset};
use super::{Finding, Limit, verb};
use crate::arguments::PageScope;
use crate::call::{Task, these};
use crate::error::Errno;

/// `move_pages(2)`.
pub(super) fn move_pages(
    task: Task,
    targets: Option<&(NodeSet, PageScope)>,
    errno: Errno,
    circumstances: &Circumstances,
) -> Option<Finding> {
    match (errno, targets) {
        (Errno::EPERM, Some((_, PageScope::All))) => Some(moving_shared_pages(circumstances)),
        (Errno::EPERM, _) => Some(foreign_process(task)),
        (Errno::ESRCH, _) => Some(gone(task)),
        (Errno::ENODEV, Some((nodes, _))) => Some(no_target(nodes, circumstances)),
        (Errno::EACCES, Some((nodes, _))) => Some(outside_target_cpuset(task, nodes, circumstances)),
        (Errno::ENOMEM, _) => Some(
            Finding::new(Limit::Memory, "no memory left to move pages with")
                .mend("free memory on the target nodes, or move fewer pages"),
        ),
        (Errno::E2BIG, _) => Some(Finding::new(Limit::Arguments, "too many pages in one call")),
        _ => None,
    }
}

/// `migrate_pages(2)`.
pub(super) fn migrate(
    task: Task,
    to: &NodeSet,
    errno: Errno,
    circumstances: &Circumstances,
) -> Option<Finding> {
    match errno {
        Errno::EINVAL if to.is_empty() => {
            Some(Finding::new(Limit::Arguments, "at least one target node is needed"))
        }
        Errno::EINVAL => none_usable(to, circumstances),
        // The kernel checks the target's cpuset, which is ours only for this process.
        Errno::EPERM if task == Task::CURRENT => {
            let allowed = circumstances.allowed_nodes.as_ref()?;
            let outside = to.difference(allowed);
            (!outside.is_empty()).then(|| outside_cpuset(&outside, allowed))
        }
        Errno::EPERM => Some(foreign_process_or_cpuset(task, to)),
        Errno::ESRCH => Some(gone(task)),
        Errno::ENOMEM => Some(Finding::new(Limit::Memory, "no memory left to move pages with")),
        _ => None,
    }
}

/// A process that is no more.
pub(super) fn gone(task: Task) -> Finding {
    Finding::new(Limit::Gone, format!("{task} has ended, or is not visible from here"))
}

/// `ptrace_may_access(PTRACE_MODE_READ_REALCREDS)`, which looking into another process takes.
fn foreign_process(task: Task) -> Finding {
    let cause = format!("{task} may not be looked into: it runs as another user, or with more privileges");
    Finding::new(Limit::Privilege, cause).mend("run as its user, or as root (CAP_SYS_PTRACE)")
}

fn foreign_process_or_cpuset(task: Task, to: &NodeSet) -> Finding {
    let cause = format!(
        "{task} runs as another user or with more privileges, or its cpuset does not allow {}",
        these(to)
    );
    Finding::new(Limit::Privilege, cause).mend("run as root (CAP_SYS_PTRACE and CAP_SYS_NICE)")
}

/// `ENODEV`: the kernel refuses the call for any target that it cannot use.
fn no_target(nodes: &NodeSet, circumstances: &Circumstances) -> Finding {
    if let Some(online) = &circumstances.online_nodes {
        let missing = nodes.difference(online);
        if !missing.is_empty() {
            return no_such_node(&missing, online);
        }
    }
    let bare = circumstances.memory_nodes.as_ref().map(|memory| nodes.difference(memory));
    match bare.filter(|bare| !bare.is_empty()) {
        Some(bare) => {
            let have = verb(&bare, "has", "have");
            Finding::new(Limit::NodeWithoutMemory, format!("{} {have} no memory", these(&bare)))
                .mend("choose nodes with memory")
        }
        None => Finding::new(Limit::NoSuchNode, format!("{} does not exist or has no memory", one_of(nodes))),
    }
}

/// `EACCES`: the cpuset of the process whose pages are moved.
fn outside_target_cpuset(task: Task, nodes: &NodeSet, circumstances: &Circumstances) -> Finding {
    let own = circumstances.allowed_nodes.as_ref().filter(|_| task == Task::CURRENT);
    match own.map(|allowed| (nodes.difference(allowed), allowed)) {
        Some((outside, allowed)) if !outside.is_empty() => outside_cpuset(&outside, allowed),
        _ => Finding::new(Limit::Cpuset, format!("{} is outside the cpuset of {task}", one_of(nodes)))
            .mend("choose nodes of its Mems_allowed_list, or widen cpuset.mems of its cgroup"),
    }
}

/// The nodes as the subject of a sentence that holds for one of them, unknown which.
fn one_of(nodes: &NodeSet) -> String {
    if nodes.len() == 1 { these(nodes) } else { format!("one of {}", these(nodes)) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;
    use crate::call::Call;

    fn four_nodes() -> Circumstances {
        Circumstances {
            online_nodes: Some(NodeSet::from([0, 1, 2, 3])),
            memory_nodes: Some(NodeSet::from([0, 1, 3])),
            allowed_nodes: Some(NodeSet::from([0, 1])),
            ..Circumstances::default()
        }
    }

    fn moving(task: Task, to: u32, scope: PageScope) -> Call {
        Call::MovePages { task, pages: 8, targets: Some((NodeSet::from([to]), scope)) }
    }

    fn other() -> Task {
        Task::new(42).unwrap()
    }

    #[test]
    fn a_target_that_cannot_be_used_is_named_with_its_reason() {
        let here = four_nodes();
        check(
            moving(Task::CURRENT, 9, PageScope::Own),
            Errno::ENODEV,
            &here,
            Limit::NoSuchNode,
            "move_pages(self, 8 pages, to node 9): node 9 does not exist: this machine has nodes 0-3",
        );
        check(
            moving(Task::CURRENT, 2, PageScope::Own),
            Errno::ENODEV,
            &here,
            Limit::NodeWithoutMemory,
            "move_pages(self, 8 pages, to node 2): node 2 has no memory; choose nodes with memory",
        );
        check(
            moving(Task::CURRENT, 2, PageScope::Own),
            Errno::ENODEV,
            &Circumstances::default(),
            Limit::NoSuchNode,
            "move_pages(self, 8 pages, to node 2): node 2 does not exist or has no memory",
        );
        check(
            moving(Task::CURRENT, 3, PageScope::Own),
            Errno::EACCES,
            &here,
            Limit::Cpuset,
            "move_pages(self, 8 pages, to node 3): node 3 is outside this cpuset's memory nodes 0-1; \
             choose among these, or widen cpuset.mems of the cgroup (containers: --cpuset-mems)",
        );
        check(
            moving(other(), 1, PageScope::Own),
            Errno::EACCES,
            &here,
            Limit::Cpuset,
            "move_pages(pid 42, 8 pages, to node 1): node 1 is outside the cpuset of \
             pid 42; choose nodes of its Mems_allowed_list, or widen cpuset.mems of its cgroup",
        );
    }

    #[test]
    fn a_process_that_is_gone_or_foreign_is_told_apart() {
        let here = four_nodes();
        let query = Call::MovePages { task: other(), pages: 8, targets: None };
        check(
            query.clone(),
            Errno::ESRCH,
            &here,
            Limit::Gone,
            "move_pages(pid 42, 8 pages): pid 42 has ended, or is not visible from here",
        );
        check(
            query,
            Errno::EPERM,
            &here,
            Limit::Privilege,
            "move_pages(pid 42, 8 pages): pid 42 may not be looked into: it runs as another user, or \
             with more privileges; run as its user, or as root (CAP_SYS_PTRACE)",
        );
    }

    #[test]
    fn moving_shared_pages_needs_a_capability_of_the_first_user_namespace() {
        let call = || moving(Task::CURRENT, 1, PageScope::All);
        let plain = Circumstances { sys_nice: Some(false), ..four_nodes() };
        check(
            call(),
            Errno::EPERM,
            &plain,
            Limit::Privilege,
            "move_pages(self, 8 pages, to node 1, shared ones too): moving pages that other processes \
             share needs CAP_SYS_NICE; move own pages only, or run as root",
        );
        let locked = Circumstances { no_new_privileges: Some(true), ..plain };
        check(
            call(),
            Errno::EPERM,
            &locked,
            Limit::Privilege,
            "move_pages(self, 8 pages, to node 1, shared ones too): moving pages that other processes \
             share needs CAP_SYS_NICE; move own pages only, or have the capability given at start: \
             this process can gain no privileges (no_new_privs)",
        );
        let rootless = Circumstances { sys_nice: Some(true), user_namespace: Some(true), ..four_nodes() };
        check(
            call(),
            Errno::EPERM,
            &rootless,
            Limit::Privilege,
            "move_pages(self, 8 pages, to node 1, shared ones too): moving pages that other processes \
             share needs CAP_SYS_NICE of the first user namespace: this one is inside another \
             (rootless container); move own pages only, or run as root of the host",
        );
    }

    #[test]
    fn exhausted_memory_and_oversized_calls_are_named() {
        let here = four_nodes();
        check(
            moving(Task::CURRENT, 1, PageScope::Own),
            Errno::ENOMEM,
            &here,
            Limit::Memory,
            "move_pages(self, 8 pages, to node 1): no memory left to move pages with; free memory on \
             the target nodes, or move fewer pages",
        );
        check(
            moving(Task::CURRENT, 1, PageScope::Own),
            Errno::E2BIG,
            &here,
            Limit::Arguments,
            "move_pages(self, 8 pages, to node 1): too many pages in one call",
        );
    }

    #[test]
    fn a_refused_migration_is_explained_by_its_targets_and_its_process() {
        let here = four_nodes();
        let migrate = |task, to: NodeSet| Call::MigratePages { task, from: NodeSet::from([0]), to };
        check(
            migrate(Task::CURRENT, NodeSet::new()),
            Errno::EINVAL,
            &here,
            Limit::Arguments,
            "migrate_pages(self, node 0 to no nodes): at least one target node is needed",
        );
        check(
            migrate(Task::CURRENT, NodeSet::from([2])),
            Errno::EINVAL,
            &here,
            Limit::NodeWithoutMemory,
            "migrate_pages(self, node 0 to node 2): node 2 has no memory: nodes 0-1,3 do; choose nodes \
             with memory",
        );
        check(
            migrate(Task::CURRENT, NodeSet::from([1, 3])),
            Errno::EPERM,
            &here,
            Limit::Cpuset,
            "migrate_pages(self, node 0 to nodes 1,3): node 3 is outside this cpuset's memory nodes \
             0-1; choose among these, or widen cpuset.mems of the cgroup (containers: --cpuset-mems)",
        );
        check(
            migrate(other(), NodeSet::from([1])),
            Errno::EPERM,
            &here,
            Limit::Privilege,
            "migrate_pages(pid 42, node 0 to node 1): pid 42 runs as another user or with more \
             privileges, or its cpuset does not allow node 1; run as root (CAP_SYS_PTRACE and CAP_SYS_NICE)",
        );
        check(
            migrate(other(), NodeSet::from([1])),
            Errno::ESRCH,
            &here,
            Limit::Gone,
            "migrate_pages(pid 42, node 0 to node 1): pid 42 has ended, or is not visible from here",
        );
        check(
            migrate(other(), NodeSet::from([1])),
            Errno::ENOMEM,
            &here,
            Limit::Memory,
            "migrate_pages(pid 42, node 0 to node 1): no memory left to move pages with",
        );
    }
}
