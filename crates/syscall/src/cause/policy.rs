//! Why a memory policy was refused.

use nodewise_machine::{MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode};

use super::circumstances::Circumstances;
use super::{Finding, Limit, is_unaligned, too_old, verb};
use crate::arguments::BindOptions;
use crate::arguments::PageScope;
use crate::call::{PolicyQuery, these};
use crate::error::Errno;
use crate::support::Availability;

/// `set_mempolicy(2)`.
pub(super) fn set(policy: &MemPolicy, errno: Errno, circumstances: &Circumstances) -> Option<Finding> {
    match errno {
        Errno::EINVAL => invalid(policy, circumstances),
        Errno::ENOMEM => Some(no_kernel_memory()),
        _ => None,
    }
}

/// `get_mempolicy(2)`.
pub(super) fn get(query: PolicyQuery, errno: Errno) -> Option<Finding> {
    match (query, errno) {
        (PolicyQuery::At(address) | PolicyQuery::NodeAt(address), Errno::EFAULT) => {
            Some(Finding::new(Limit::Address, format!("nothing is mapped at {address:#x}")))
        }
        (PolicyQuery::NextInterleaved, Errno::EINVAL) => {
            Some(Finding::new(Limit::Arguments, "the policy of this thread does not interleave"))
        }
        _ => None,
    }
}

/// `mbind(2)`.
pub(super) fn bind(
    address: usize,
    policy: &MemPolicy,
    options: BindOptions,
    errno: Errno,
    circumstances: &Circumstances,
) -> Option<Finding> {
    match errno {
        Errno::EINVAL if is_unaligned(address) => Some(unaligned(address)),
        Errno::EINVAL => invalid(policy, circumstances),
        Errno::EFAULT => Some(Finding::new(Limit::Address, "part of the range is not mapped")),
        Errno::EIO => Some(misplaced(policy, options)),
        Errno::EPERM if options.moving == Some(PageScope::All) => Some(moving_shared_pages(circumstances)),
        // Each range with a policy of its own is a mapping, and their number is limited.
        Errno::ENOMEM => Some(
            Finding::new(
                Limit::Memory,
                "the process has as many mappings as it may have, or no memory is left",
            )
            .mend("bind fewer and larger ranges, or raise vm.max_map_count"),
        ),
        _ => None,
    }
}

/// `set_mempolicy_home_node(2)`.
pub(super) fn home(
    address: usize,
    node: NodeId,
    errno: Errno,
    circumstances: &Circumstances,
) -> Option<Finding> {
    match errno {
        Errno::EINVAL if is_unaligned(address) => Some(unaligned(address)),
        Errno::EINVAL => {
            let wanted = [node].into_iter().collect();
            let online = circumstances.online_nodes.as_ref()?;
            (!online.contains(node)).then(|| no_such_node(&wanted, online))
        }
        Errno::ENOENT => Some(
            Finding::new(Limit::Address, "no part of the range has a policy")
                .mend("bind the range first, with bind or preferred-many"),
        ),
        Errno::EOPNOTSUPP => Some(
            Finding::new(Limit::Arguments, "the range has a policy that takes no home node")
                .mend("bind the range with bind or preferred-many"),
        ),
        _ => None,
    }
}

/// `EINVAL` for a policy, in the order in which the kernel checks.
fn invalid(policy: &MemPolicy, circumstances: &Circumstances) -> Option<Finding> {
    missing_in_kernel(policy, circumstances)
        .or_else(|| contradiction(policy))
        .or_else(|| unusable_nodes(policy, circumstances))
}

/// A mode or flag that came with a release.
fn missing_in_kernel(policy: &MemPolicy, circumstances: &Circumstances) -> Option<Finding> {
    let mode = policy.mode;
    let support = circumstances.support.as_ref();
    if let Some(since) = mode.since() {
        let absent = support.is_some_and(|support| support.mode(mode) == Availability::Absent);
        let feature = mode.word().replace('-', " ");
        if let Some(old) = too_old(&feature, since, absent, circumstances) {
            let instead = if mode == PolicyMode::WeightedInterleave { "interleave" } else { "preferred" };
            return Some(old.mend(format!("use {instead} instead")));
        }
    }
    if !policy.flags.contains(ModeFlags::NUMA_BALANCING) {
        return None;
    }
    let absent = support.is_some_and(|support| support.balancing(mode) == Availability::Absent);
    let (feature, since) = match mode {
        PolicyMode::Bind => ("balancing inside a bind policy", (5, 12)),
        // "allow migrate on protnone reference with MPOL_PREFERRED_MANY policy", Linux 6.10.
        PolicyMode::PreferredMany => ("balancing inside a preferred-many policy", (6, 10)),
        _ => return None,
    };
    let old = too_old(feature, since, absent, circumstances)?;
    Some(old.mend("leave the balancing flag out"))
}

/// Mode, flags and nodes that never go together.
fn contradiction(policy: &MemPolicy) -> Option<Finding> {
    let MemPolicy { mode, flags, nodes } = policy;
    let placing = flags.contains(ModeFlags::STATIC_NODES) || flags.contains(ModeFlags::RELATIVE_NODES);
    let cause = match mode {
        _ if flags.contains(ModeFlags::STATIC_NODES.with(ModeFlags::RELATIVE_NODES)) => {
            "nodes are either static or relative, not both".to_owned()
        }
        PolicyMode::Bind | PolicyMode::PreferredMany if nodes.is_empty() => {
            format!("{mode} needs at least one node")
        }
        PolicyMode::Bind | PolicyMode::PreferredMany => return None,
        _ if flags.contains(ModeFlags::NUMA_BALANCING) => {
            format!("balancing goes with bind and preferred-many, not with {mode}")
        }
        PolicyMode::Default | PolicyMode::Local if !nodes.is_empty() => format!("{mode} takes no nodes"),
        PolicyMode::Local if placing => format!("{mode} takes neither static nor relative"),
        PolicyMode::Preferred if nodes.is_empty() && placing => {
            "static and relative need at least one node".to_owned()
        }
        PolicyMode::Interleave | PolicyMode::WeightedInterleave if nodes.is_empty() => {
            format!("{mode} needs at least one node")
        }
        _ => return None,
    };
    Some(Finding::new(Limit::Arguments, cause))
}

/// Nodes that are empty once the kernel has removed those it cannot use.
fn unusable_nodes(policy: &MemPolicy, circumstances: &Circumstances) -> Option<Finding> {
    let nodes = &policy.nodes;
    if policy.flags.contains(ModeFlags::RELATIVE_NODES) || nodes.is_empty() {
        return None;
    }
    none_usable(nodes, circumstances).or_else(|| beyond_kernel(nodes, circumstances))
}

/// Why none of these nodes can be used, as far as the circumstances show.
pub(super) fn none_usable(nodes: &NodeSet, circumstances: &Circumstances) -> Option<Finding> {
    let mut left = nodes.clone();
    if let Some(online) = &circumstances.online_nodes {
        left = left.intersection(online);
        if left.is_empty() {
            return Some(no_such_node(nodes, online));
        }
    }
    if let Some(memory) = &circumstances.memory_nodes {
        let with_memory = left.intersection(memory);
        if with_memory.is_empty() {
            let have = verb(&left, "has", "have");
            let cause = format!("{} {have} no memory: {} do", these(&left), these(memory));
            return Some(Finding::new(Limit::NodeWithoutMemory, cause).mend("choose nodes with memory"));
        }
        left = with_memory;
    }
    let allowed = circumstances.allowed_nodes.as_ref()?;
    left.is_disjoint(allowed).then(|| outside_cpuset(&left, allowed))
}

/// A number above the kernel's own bound spoils the whole set, even beside nodes that exist.
fn beyond_kernel(nodes: &NodeSet, circumstances: &Circumstances) -> Option<Finding> {
    let online = circumstances.online_nodes.as_ref()?;
    let missing = nodes.difference(online);
    (!missing.is_empty()).then(|| no_such_node(&missing, online))
}

/// Nodes that this machine does not have.
pub(super) fn no_such_node(nodes: &NodeSet, online: &NodeSet) -> Finding {
    let exist = verb(nodes, "does not exist", "do not exist");
    let cause = format!("{} {exist}: this machine has {}", these(nodes), these(online));
    Finding::new(Limit::NoSuchNode, cause)
}

/// Nodes that the cpuset leaves out.
pub(super) fn outside_cpuset(nodes: &NodeSet, allowed: &NodeSet) -> Finding {
    let are = verb(nodes, "is", "are");
    let cause = format!("{} {are} outside this cpuset's memory {}", these(nodes), these(allowed));
    Finding::new(Limit::Cpuset, cause)
        .mend("choose among these, or widen cpuset.mems of the cgroup (containers: --cpuset-mems)")
}

/// `EIO`: pages that are elsewhere.
fn misplaced(policy: &MemPolicy, options: BindOptions) -> Finding {
    let nodes = if policy.nodes.is_empty() { "this policy".to_owned() } else { these(&policy.nodes) };
    match options.moving {
        None => Finding::new(
            Limit::Misplaced,
            format!("pages of the range are outside {nodes}, and strict forbids that"),
        )
        .mend("move them, or leave strict out"),
        Some(scope) => {
            let shared = if scope == PageScope::Own { "shared with other processes, " } else { "" };
            Finding::new(
                Limit::Misplaced,
                format!("some pages could not be moved: {shared}pinned, or no room on the nodes"),
            )
        }
    }
}

/// Moving shared pages needs a capability that a user namespace cannot give.
pub(super) fn moving_shared_pages(circumstances: &Circumstances) -> Finding {
    if circumstances.sys_nice == Some(true) && circumstances.user_namespace == Some(true) {
        let cause = "moving pages that other processes share needs CAP_SYS_NICE of the first user \
                     namespace: this one is inside another (rootless container)";
        return Finding::new(Limit::Privilege, cause).mend("move own pages only, or run as root of the host");
    }
    let cause = "moving pages that other processes share needs CAP_SYS_NICE";
    Finding::new(Limit::Privilege, cause).mend(match circumstances.no_new_privileges {
        Some(true) => {
            "move own pages only, or have the capability given at start: this process can gain no \
             privileges (no_new_privs)"
        }
        _ => "move own pages only, or run as root",
    })
}

fn unaligned(address: usize) -> Finding {
    Finding::new(Limit::Arguments, format!("{address:#x} is not the start of a page"))
}

fn no_kernel_memory() -> Finding {
    Finding::new(Limit::Memory, "the kernel has no memory left for itself")
}

#[cfg(test)]
mod tests;
