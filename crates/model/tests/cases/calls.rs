//! Calls inside a cpuset, and calls that move pages.

use nodewise_machine::{MemPolicy, NodeId, NodeSet};
use nodewise_model::balancing;
use nodewise_model::migrate::{Present, check_migration, check_move, mbind};
use nodewise_model::policy::interleave::InterleavePosition;
use nodewise_model::walk::Request;
use nodewise_model::{Errno, Policy, Weights};

use crate::server::{all, memory, n, nodes_of_pages, numbers, policy, request, scope, task};

/// `cpuset.mems` of nodes 1 and 2.
#[test]
fn case_34_cpuset_create() {
    let mems = NodeSet::from([1, 2]);
    let set = |text: &str| {
        let policy: MemPolicy = text.parse().unwrap();
        Policy::from_mem_policy(&policy, scope(&mems))
    };
    let no_weights = Weights::new();
    let default = Policy::DEFAULT;
    let page = request(&default, &no_weights, 0, &mems, 1);
    assert_eq!(nodes_of_pages(&mut memory(), page), [1]);
    assert_eq!(set("interleave:0-3").unwrap().reported().nodes, NodeSet::from([1, 2]));
    assert_eq!(set("bind:0,3"), Err(Errno::Einval));
    assert_eq!(set("bind:0,2").unwrap().nodes, NodeSet::from([2]));
    let fixed = set("bind=static:0,2").unwrap();
    assert_eq!((fixed.reported().nodes, fixed.nodes), (NodeSet::from([0, 2]), NodeSet::from([2])));
    let relative = set("bind=relative:0,3").unwrap();
    assert_eq!((relative.reported().nodes, relative.nodes), (NodeSet::from([0, 3]), NodeSet::from([1, 2])));
    assert_eq!(set("prefer:3"), Err(Errno::Einval));
    assert_eq!(check_move(n(3), &all(), &mems), Err(Errno::Eacces));
    assert_eq!(check_migration(&NodeSet::from([3]), &mems), Err(Errno::Einval));
}

/// Sixteen pages, one call after the other, by a CPU of node 0.
#[test]
fn case_36_mbind_move() {
    let mut pages = [n(0); 16];
    let mut step = |text: &str, present: Present, expected: Result<[u32; 2], Errno>| {
        let policy = policy(text);
        let target = |at: usize| {
            let place = InterleavePosition::Address(0x100_0000_0000).after(at as u64);
            let (allowed, weights) = (all(), Weights::new());
            let request = Request { place, ..request(&policy, &weights, 0, &allowed, 1) };
            n(nodes_of_pages(&mut memory(), request)[0])
        };
        let result = mbind(&mut pages, &policy.effective(), present, target);
        match expected {
            Ok(pair) => assert_eq!((result, numbers(&pages)), (Ok(()), pair.repeat(8)), "{text}"),
            Err(errno) => assert_eq!((result, numbers(&pages)), (Err(errno), vec![0; 16]), "{text}"),
        }
    };
    step("bind:2", Present::Refuse, Err(Errno::Eio));
    step("bind:2", Present::Move, Ok([2, 2]));
    step("interleave:0-3", Present::Move, Ok([2, 2]));
    step("interleave:1,3", Present::Move, Ok([1, 3]));
    step("bind:0-1", Present::Move, Ok([1, 0]));
    step("default", Present::Move, Ok([0, 0]));
    step("bind:3", Present::Move, Ok([3, 3]));
}

/// Four pages on every node.
#[test]
fn case_37_migrate_pages() {
    let check = |old: &[u32], new: &[u32], expected: [u32; 4]| {
        let set = |numbers: &[u32]| numbers.iter().copied().map(NodeId::new).collect::<NodeSet>();
        let (mut task, mut memory) = (task(), memory());
        task.map(0..16);
        task.set_policy(&policy("interleave:0-3").reported()).unwrap();
        (0..16).for_each(|page| assert!(task.touch(page, &mut memory).is_some()));
        task.migrate_pages(&set(old), &set(new), &mut memory).unwrap();
        let nodes: Vec<u32> = (0..16).filter_map(|page| task.node_of(page)).map(NodeId::number).collect();
        assert_eq!(nodes, expected.repeat(4), "{old:?} to {new:?}");
    };
    check(&[0, 1], &[2, 3], [2, 3, 2, 3]);
    check(&[0, 1, 2], &[1, 2, 3], [1, 2, 3, 3]);
    check(&[0, 1, 2, 3], &[2], [2, 2, 2, 2]);
    check(&[0, 1, 2, 3], &[2, 3], [2, 3, 2, 3]);
    check(&[], &[0], [0, 1, 2, 3]);
    assert_eq!(check_migration(&NodeSet::from([9]), &all()), Err(Errno::Einval));
}

/// Recorded on 6.12 only.
#[test]
fn case_38_autonuma() {
    let target = |text: &str, cpu_node: u32| {
        balancing::target(&policy(text), n(0), n(cpu_node), &all()).map(NodeId::number)
    };
    assert_eq!(target("default", 2), Some(2));
    assert_eq!(target("bind:0-1", 1), None);
    assert_eq!(target("bind=balancing:0-1", 1), Some(1));
    assert_eq!(target("bind=balancing:0-1", 2), None);
    assert_eq!(target("prefer:0", 1), None);
}
