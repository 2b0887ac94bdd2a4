//! The text of the probe against what happens.

use nodewise_machine::{MemPolicy, ModeFlags, NodeSet, PolicyMode};
use nodewise_syscall::{Availability, Support, affinity, mempolicy};

use crate::here::{on_own_thread, usable_nodes};
use nodewise_syscall::Task;

#[test]
fn a_mode_is_present_exactly_where_it_can_be_set() {
    on_own_thread(|| {
        let Some(nodes) = usable_nodes() else { return };
        let support = Support::probe();
        let can_set = |policy: MemPolicy| mempolicy::set_thread_policy(&policy).is_ok();
        for mode in PolicyMode::ALL {
            let takes_none = matches!(mode, PolicyMode::Default | PolicyMode::Local);
            let wanted = if takes_none { NodeSet::new() } else { nodes.clone() };
            let balancing = MemPolicy { mode, flags: ModeFlags::NUMA_BALANCING, nodes: wanted.clone() };
            assert_eq!(support.mode(mode).is_present(), can_set(MemPolicy::new(mode, wanted)), "{mode}");
            assert_eq!(support.balancing(mode).is_present(), can_set(balancing), "{mode} with balancing");
        }
    });
}

#[test]
fn probing_changes_neither_policy_nor_cpus_and_answers_the_same_twice() {
    on_own_thread(|| {
        let before = (mempolicy::thread_policy(), affinity::cpus(Task::CURRENT));
        let first = Support::probe();
        assert_eq!(Support::probe(), first);
        assert_eq!((mempolicy::thread_policy(), affinity::cpus(Task::CURRENT)), before);
        if let Some(nodes) = usable_nodes() {
            let policy = MemPolicy::new(PolicyMode::Bind, nodes);
            if mempolicy::set_thread_policy(&policy).is_ok() {
                Support::probe();
                assert_eq!(mempolicy::thread_policy(), Ok(policy));
            }
        }
    });
}

#[test]
fn a_real_kernel_answers_clearly() {
    let support = Support::probe();
    for answer in [
        support.get_mempolicy,
        support.set_mempolicy,
        support.mbind,
        support.home_node,
        support.migrate_pages,
        support.move_pages,
        support.set_affinity,
        support.transparent_huge,
    ]
    .into_iter()
    .chain(support.modes)
    {
        assert_ne!(answer, Availability::Unclear, "{support:?}");
    }
}
