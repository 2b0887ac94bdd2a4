//! Automatic balancing: which pages may follow the CPU that uses them.
//!
//! # Source
//! `mpol_misplaced` and `vma_policy_mof` in `mm/mempolicy.c`, `task_numa_work` in
//! `kernel/sched/fair.c`; 6.10 to at least 7.2. Seen on 6.12.

use nodewise_machine::{ModeFlags, NodeId, NodeSet, PolicyMode};

use crate::policy::set::Policy;

/// The node to which balancing would move a page that a CPU of `cpu_node` uses, or `None` where it
/// has to stay. How soon it moves, and whether it does while the CPU changes, the kernel decides by
/// the faults it counts.
pub fn target(policy: &Policy, page: NodeId, cpu_node: NodeId, with_memory: &NodeSet) -> Option<NodeId> {
    let follows = match policy.mode {
        PolicyMode::Default => true,
        PolicyMode::Bind | PolicyMode::PreferredMany => {
            policy.flags.contains(ModeFlags::NUMA_BALANCING) && policy.nodes.contains(cpu_node)
        }
        _ => false,
    };
    (follows && page != cpu_node && with_memory.contains(cpu_node)).then_some(cpu_node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::set::Scope;
    use crate::release::Release;
    use nodewise_machine::MemPolicy;

    #[test]
    fn interleaved_pages_and_those_of_local_stay() {
        let all = NodeSet::from([0, 1]);
        for policy in ["interleave:0-1", "weighted interleave:0-1", "local", "prefer:0"] {
            let policy: MemPolicy = policy.parse().unwrap();
            let scope = Scope { allowed: &all, max_nodes: 1024, release: Release::REFERENCE };
            let policy = Policy::of(&policy, scope).unwrap();
            assert_eq!(target(&policy, NodeId::new(0), NodeId::new(1), &all), None, "{policy:?}");
        }
        assert_eq!(target(&Policy::DEFAULT, NodeId::new(0), NodeId::new(2), &all), None, "no memory there");
    }
}
