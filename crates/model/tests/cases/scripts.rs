//! Scripts of calls on which the model and a kernel once disagreed, cut down to what they turned on.
//! Drawn by the lab's test and played on 6.12; the kernel's answers are here.

use nodewise_machine::{MemPolicy, NodeSet};
use nodewise_model::migrate::Present;
use nodewise_model::oracle::Task;
use nodewise_model::oracle::task::Surroundings;
use nodewise_model::{BuiltAt, Memory, Release};

use crate::server::{all, machine, memory, n, task};

/// A program on the server, on a CPU of node 0, with eight pages from page 0 on.
fn start() -> (Task, Memory) {
    let mut task = task();
    task.map(0..8);
    (task, memory())
}

fn policy(text: &str) -> MemPolicy {
    text.parse().expect("the kernel's words")
}

#[track_caller]
fn check(task: &Task, expected: &[u32]) {
    let nodes: Vec<u32> = (0..8).filter_map(|page| task.node_of(page)).map(|node| node.number()).collect();
    assert_eq!(nodes, expected);
}

/// Script 2 on `drawn-0`.
#[test]
fn nodes_kept_for_balancing_become_those_of_the_cpuset() {
    let (mut task, mut memory) = start();
    task.set_policy(&policy("bind=balancing:1-2")).unwrap();
    task.restrict(&NodeSet::from([0, 2]), &mut memory);
    assert_eq!(task.policy().reported(), policy("bind=balancing:0,2"));
    task.restrict(&NodeSet::from([1, 3]), &mut memory);
    assert_eq!(task.policy().reported(), policy("bind=balancing:1,3"));
}

/// Script 1000001016 on `two-sockets`: nodes 0-1 were all that there was.
#[test]
fn a_cpuset_that_is_set_to_what_it_is_changes_no_policy() {
    let (mut task, mut memory) = start();
    task.set_policy(&policy("bind=balancing:1")).unwrap();
    task.restrict(&all(), &mut memory);
    assert_eq!(task.policy().reported(), policy("bind=balancing:1"));
}

/// Script 8 on `drawn-0`.
#[test]
fn a_preferred_policy_reports_the_cpuset_where_it_reported_what_was_asked() {
    let (mut task, mut memory) = start();
    task.set_policy(&policy("prefer=static:0-1,3")).unwrap();
    assert_eq!(task.policy().reported(), policy("prefer=static:0-1,3"));
    task.restrict(&NodeSet::from([0, 2]), &mut memory);
    assert_eq!(task.policy().reported(), policy("prefer=static:0,2"));
}

/// Script 1034 on `drawn-1`.
#[test]
fn mbind_moves_pages_that_are_outside_the_nodes_of_the_call() {
    let (mut task, mut memory) = start();
    for page in 0..4 {
        task.touch(page, &mut memory);
    }
    // In a cpuset of two nodes positions 2 and 3 are nodes 0 and 1: the policy has node 0, the call not.
    task.restrict(&NodeSet::from([0, 1]), &mut memory);
    check(&task, &[0; 4]);
    let refused = task.bind(0..4, &policy("bind=relative:2-3"), Present::Refuse, &mut memory);
    assert_eq!(refused.unwrap_err().name(), "EIO");
    task.run_on(n(1));
    task.bind(0..4, &policy("bind=relative:2-3"), Present::Move, &mut memory).unwrap();
    check(&task, &[1; 4]);
}

/// `interleave=relative:3-5` on a mapping, 6.1: where programs have their memory the number of a page has
/// more than 32 bits, and of three nodes another one's turn it is by the lower 32.
#[test]
fn before_6_7_the_turn_of_a_page_goes_by_32_bits_of_its_number() {
    let first = 0x7_f123_4567;
    let nodes = |release: Release| {
        let around = Surroundings::new(&machine(), release);
        let mut task = Task::new(around, n(0));
        let mut memory = Memory::from_machine(&machine(), BuiltAt::Boot, release);
        task.map(first..first + 3);
        task.bind(first..first + 3, &policy("interleave=relative:0-2"), Present::Stay, &mut memory).unwrap();
        (0..3).filter_map(|page| task.touch(first + page, &mut memory)).map(|node| node.number()).collect()
    };
    let (old, new): (Vec<u32>, Vec<u32>) = (nodes(Release::new(6, 1)), nodes(Release::new(6, 7)));
    let turns = |first: u64| (first..first + 3).map(|index| (index % 3) as u32).collect::<Vec<_>>();
    assert_eq!((old, new), (turns(first & 0xffff_ffff), turns(first)));
    assert_ne!(turns(first & 0xffff_ffff), turns(first));
}

/// Scripts 2048 on `drawn-2` and 3038 on `drawn-3`.
#[test]
fn a_cpuset_moves_pages_once_for_each_thread() {
    let moved = |threads: u32| {
        let (task, mut memory) = start();
        let mut task = task.with_threads(threads);
        task.restrict(&NodeSet::from([0, 1]), &mut memory);
        task.touch(0, &mut memory);
        task.restrict(&NodeSet::from([1, 2]), &mut memory);
        task.node_of(0).map(|node| node.number())
    };
    assert_eq!((moved(1), moved(2), moved(99)), (Some(1), Some(2), Some(2)));
}

/// Scripts 34 on `drawn-0`, 2010 on `drawn-2`, 3018 on `drawn-3` and 4008 on `drawn-4`.
#[test]
fn a_huge_page_comes_from_the_next_node_where_the_cpuset_leaves_out_the_first() {
    let (mut task, mut memory) = start();
    task.map_huge(512..1024);
    task.restrict(&NodeSet::from([1]), &mut memory);
    task.touch(600, &mut memory);
    let on_1 = (512..1024).filter(|page| task.node_of(*page) == Some(n(1))).count();
    assert_eq!(on_1, 512);
}
