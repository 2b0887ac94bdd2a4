//! Counts of `numastat` for 2,000 pages of a CPU of node 0. The kernel's own few pages, which were
//! counted in the records too, are not the model's.

use nodewise_machine::{NodeCounters, PolicyMode};
use nodewise_model::{BuiltAt, Memory, Policy, Release, Weights};

use crate::server::{all, machine, n, policy, request};

fn counted(policy: &Policy, release: Release) -> Vec<NodeCounters> {
    let mut memory = Memory::from_machine(&machine(), BuiltAt::Boot, release);
    memory.allocate(&request(policy, &Weights::new(), 0, &all(), 2000));
    (0..4).map(|node| memory.counters()[&n(node)]).collect()
}

#[test]
fn case_45_numastat() {
    let none = NodeCounters::default();
    let preferred = counted(&policy("prefer:2"), Release::REFERENCE);
    assert_eq!(preferred, [none, none, NodeCounters { hit: 2000, other: 2000, ..none }, none]);
    let turn = NodeCounters { hit: 500, interleave_hit: 500, ..none };
    let (local, other) = (NodeCounters { local: 500, ..turn }, NodeCounters { other: 500, ..turn });
    assert_eq!(counted(&policy("interleave:0-3"), Release::REFERENCE), [local, other, other, other]);
    let half = NodeCounters { hit: 1000, interleave_hit: 1000, other: 1000, ..none };
    assert_eq!(counted(&policy("interleave:1-2"), Release::REFERENCE), [none, half, half, none]);
    let bind = counted(&policy("bind:2-3"), Release::REFERENCE);
    assert_eq!(bind, [none, none, NodeCounters { hit: 2000, other: 2000, ..none }, none]);
    let weighted = policy("weighted interleave:0-3");
    assert_eq!(weighted.mode, PolicyMode::WeightedInterleave);
    let hits = |major, minor| counted(&weighted, Release::new(major, minor))[0].interleave_hit;
    assert_eq!((hits(6, 12), hits(6, 16), hits(6, 18)), (0, 500, 500));
}
