//! The node of every page of a program, and of pages without an address.

use nodewise_machine::{NodeId, PolicyMode};
use nodewise_model::migrate::Present;
use nodewise_model::oracle::Task;
use nodewise_model::oracle::task::Surroundings;
use nodewise_model::policy::interleave::{Cursor, InterleavePosition, Turns};
use nodewise_model::walk::Request;
use nodewise_model::{BuiltAt, Memory, Policy, Release, Weights};

use crate::server::{all, machine, memory, n, nodes_of_pages, policy, request};

/// Small pages from an address on.
fn check(policy: &Policy, cpu_node: u32, address: u64, expected: &[u32]) {
    check_place(policy, &Weights::new(), cpu_node, InterleavePosition::Address(address), expected);
}

fn check_place(
    policy: &Policy,
    weights: &Weights,
    cpu_node: u32,
    place: InterleavePosition,
    expected: &[u32],
) {
    let allowed = all();
    let request = request(policy, weights, cpu_node, &allowed, expected.len() as u64);
    let nodes = nodes_of_pages(&mut memory(), Request { place, ..request });
    assert_eq!(nodes, expected, "{policy:?} from CPU node {cpu_node} at {place:?}");
}

#[test]
fn case_09_local() {
    check(&Policy::DEFAULT, 2, 0x100_0000_0000, &[2; 16]);
}

#[test]
fn case_10_task_interleave_all() {
    let interleave = policy("interleave:0-3");
    check(&interleave, 0, 0x100_0000_3000, &[3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2]);
    check(&interleave, 0, 0x100_0010_1000, &[1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0]);
}

#[test]
fn case_11_task_interleave_13() {
    check(&policy("interleave:1,3"), 0, 0x100_0000_0000, &[1, 3, 1, 3, 1, 3, 1, 3]);
    check(&policy("interleave:1,3"), 0, 0x100_0000_1000, &[3, 1, 3, 1, 3, 1, 3, 1]);
}

#[test]
fn case_13_vma_interleave() {
    check(&policy("interleave:1,3"), 0, 0x100_0000_0000, &[1, 3, 1, 3, 1, 3, 1, 3]);
    assert_eq!(policy("interleave:1,3").reported().to_string(), "interleave:1,3");
}

/// The policy of pages 2 to 5 comes before that of the task.
#[test]
fn case_14_vma_over_task() {
    let (task, vma) = (policy("bind:2"), policy("prefer:3"));
    let mut memory = memory();
    let (allowed, weights) = (all(), Weights::new());
    let node = |page: u64| {
        let policy = if (2..6).contains(&page) { &vma } else { &task };
        let place = InterleavePosition::Address(0x100_0000_0000).after(page);
        nodes_of_pages(&mut memory, Request { place, ..request(policy, &weights, 0, &allowed, 1) })
    };
    assert_eq!((0..8).flat_map(node).collect::<Vec<_>>(), [2, 2, 3, 3, 3, 3, 2, 2]);
}

#[test]
fn case_15_bind_13() {
    let bind = policy("bind:1,3");
    check(&bind, 0, 0x100_0000_0000, &[1; 4]);
    check(&bind, 2, 0x100_0010_0000, &[3; 4]);
    check(&bind, 3, 0x100_0020_0000, &[3; 4]);
}

#[test]
fn case_16_preferred() {
    check(&policy("prefer:2"), 0, 0x100_0000_0000, &[2; 4]);
    check(&policy("prefer:1,3"), 0, 0x100_0010_0000, &[1; 4]);
    let empty = policy("prefer");
    assert_eq!(empty.reported().mode, PolicyMode::Local);
    check(&empty, 0, 0x100_0020_0000, &[0; 4]);
}

#[test]
fn case_17_preferred_many() {
    let many = policy("prefer (many):2-3");
    check(&many, 0, 0x100_0000_0000, &[2; 4]);
    check(&many, 3, 0x100_0010_0000, &[3; 4]);
    // The first of its nodes in node 1's order 1 0 3 2.
    check(&many, 1, 0x100_0020_0000, &[3; 4]);
}

/// Shared anonymous memory is a file without a name: its inode number shifts the turns.
#[test]
fn case_19_shmem_interleave() {
    let interleave = policy("interleave:0-3");
    for (inode, expected) in [(2, [2, 3, 0, 1, 2, 3, 0, 1]), (3, [3, 0, 1, 2, 3, 0, 1, 2])] {
        check_place(&interleave, &Weights::new(), 0, InterleavePosition::File { inode, page: 0 }, &expected);
    }
}

/// Script pools-4009 on `drawn-4`, 6.1.
#[test]
fn case_47_mbind_move_shmem() {
    for (minor, moved) in [(1, [3, 1, 2, 3, 1, 2]), (12, [1, 2, 3, 1, 2, 3])] {
        let release = Release::new(6, minor);
        let mut task = Task::new(Surroundings::new(&machine(), release), n(0));
        let mut memory = Memory::from_machine(&machine(), BuiltAt::Boot, release);
        task.map_file(0..8, 64, 2);
        (0..6).for_each(|page| _ = task.touch(page, &mut memory));
        task.bind(0..8, &"interleave:1-3".parse().unwrap(), Present::Move, &mut memory).unwrap();
        // Turns of the last two, which are touched now, have the inode in every release.
        (6..8).for_each(|page| _ = task.touch(page, &mut memory));
        let nodes: Vec<u32> =
            (0..8).filter_map(|page| task.node_of(page)).map(|node| node.number()).collect();
        assert_eq!(nodes, [&moved[..], &[1, 2]].concat(), "{release}");
    }
}

/// The file's policy counts, not the task's.
#[test]
fn case_20_tmpfs_mount_policy() {
    let mount = policy("interleave:0,2");
    for (inode, expected) in [(2, [0, 2, 0, 2, 0, 2, 0, 2]), (3, [2, 0, 2, 0, 2, 0, 2, 0])] {
        check_place(&mount, &Weights::new(), 3, InterleavePosition::File { inode, page: 0 }, &expected);
    }
}

#[test]
fn case_21_pagecache_il_prev() {
    let interleave = policy("interleave:0-3");
    let turns = Turns::new(interleave.mode, &interleave.nodes, &Weights::new());
    let mut cursor = Cursor::new();
    let nodes: Vec<u32> = (0..16).map(|_| cursor.step(&turns).unwrap().number()).collect();
    assert_eq!(nodes, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn case_22_weighted() {
    let weights: Weights =
        [3, 1, 2, 1].into_iter().zip(0..).map(|(w, node)| (NodeId::new(node), w)).collect();
    let check = |text: &str, address, expected: &[u32]| {
        check_place(&policy(text), &weights, 0, InterleavePosition::Address(address), expected);
    };
    check("weighted interleave:0-3", 0x100_0000_0000, &[0, 1, 2, 2, 3, 0, 0, 0, 1, 2, 2, 3, 0, 0, 0, 1]);
    check("weighted interleave:0,2", 0x100_0010_0000, &[0, 2, 2, 0, 0, 0, 2, 2]);
}
