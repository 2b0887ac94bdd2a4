//! Calls one after the other, worked out from the rules, and what holds for every script.

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;

use super::*;
use crate::balancing::{Balanced, Balancing};
use crate::memory::ZoneState;
use crate::tier::Tiers;
use crate::zonelist::BuiltAt;
use crate::zones::ZoneKind;

pub(super) fn start() -> (Task, Memory) {
    start_on(Release::REFERENCE)
}

pub(super) fn start_on(release: Release) -> (Task, Memory) {
    let machine = nodewise_machine::spec::machine("2x(2x(1c 512M)); dist=11,20").unwrap();
    let around = Surroundings::new(&machine, release);
    (Task::new(around, NodeId::new(0)), Memory::from_machine(&machine, BuiltAt::Boot, release))
}

pub(super) fn policy(text: &str) -> MemPolicy {
    text.parse().unwrap()
}

fn touch(task: &mut Task, memory: &mut Memory, pages: Range<u64>) {
    for page in pages {
        task.touch(page, memory).unwrap();
    }
}

#[track_caller]
fn check(task: &Task, pages: Range<u64>, expected: &[u32]) {
    let nodes: Vec<u32> = pages.map(|page| task.node_of(page).unwrap().number()).collect();
    assert_eq!(nodes, expected);
}

#[test]
fn the_policy_of_the_mapping_comes_before_that_of_the_program() {
    let (mut task, mut memory) = start();
    task.map(8..16);
    task.set_policy(&policy("interleave:2-3")).unwrap();
    task.bind(10..12, &policy("bind:1"), Present::Stay, &mut memory).unwrap();
    touch(&mut task, &mut memory, 8..16);
    check(&task, 8..16, &[2, 3, 1, 1, 2, 3, 2, 3]);
    assert_eq!(task.policy_at(8), None);
    assert_eq!(task.policy_at(10).unwrap().mode, PolicyMode::Bind);
}

#[test]
fn a_refused_call_changes_nothing() {
    let (mut task, mut memory) = start();
    task.map(0..4);
    touch(&mut task, &mut memory, 0..4);
    assert_eq!(task.bind(0..5, &policy("bind:1"), Present::Stay, &mut memory), Err(Errno::Efault));
    assert_eq!(task.bind(0..4, &policy("bind:1"), Present::Refuse, &mut memory), Err(Errno::Eio));
    assert_eq!(task.bind(0..4, &policy("bind:9"), Present::Move, &mut memory), Err(Errno::Einval));
    assert_eq!(task.policy_at(0), None);
    check(&task, 0..4, &[0; 4]);
}

#[test]
fn a_cpuset_takes_pages_and_policies_along() {
    let (mut task, mut memory) = start();
    task.map(0..8);
    task.bind(0..4, &policy("interleave:0-3"), Present::Stay, &mut memory).unwrap();
    touch(&mut task, &mut memory, 0..2);
    task.restrict(&NodeSet::from([2, 3]), &mut memory);
    check(&task, 0..2, &[2, 3]);
    touch(&mut task, &mut memory, 0..8);
    check(&task, 0..8, &[2, 3, 2, 3, 2, 2, 2, 2]);
    assert_eq!(task.move_page(0, NodeId::new(1), &mut memory), Err(Errno::Eacces));
    assert_eq!(task.migrate_pages(&NodeSet::from([2]), &NodeSet::from([0]), &mut memory), Err(Errno::Einval));
}

#[test]
fn a_home_node_is_only_for_modes_that_have_one() {
    let (mut task, mut memory) = start();
    task.map(0..4);
    let home = |task: &mut Task, pages| task.set_home(pages, NodeId::new(3));
    assert_eq!(home(&mut task, 0..4), Err(Errno::Enoent));
    task.bind(0..1, &policy("bind:1-2"), Present::Stay, &mut memory).unwrap();
    task.bind(1..2, &policy("prefer:1"), Present::Stay, &mut memory).unwrap();
    assert_eq!(home(&mut task, 0..4), Err(Errno::Eopnotsupp));
    assert_eq!(task.set_home(0..1, NodeId::new(9)), Err(Errno::Einval));
    touch(&mut task, &mut memory, 0..1);
    // The first mapping was changed before the second was refused.
    check(&task, 0..1, &[2]);
}

/// Memory in which nodes 0-3 can give this many pages each.
fn memory_with(available: [u64; 4]) -> Memory {
    let (_, memory) = start();
    let zones = memory.zones().iter().map(|zone| ZoneState {
        // The highest zone of a node alone, so that numbers are those of the node.
        free: if zone.kind == ZoneKind::Dma {
            0
        } else {
            zone.marks.min
                + zone.reserves[ZoneKind::Movable as usize]
                + available[zone.node.number() as usize]
        },
        ..zone.clone()
    });
    Memory::new(zones.collect(), memory.orders().clone(), Release::REFERENCE)
}

#[test]
fn migrate_pages_goes_move_by_move_where_targets_are_full() {
    let (mut task, _) = start();
    let mut memory = memory_with([10; 4]);
    task.map(0..4);
    task.set_policy(&policy("bind:0-1")).unwrap();
    touch(&mut task, &mut memory, 0..2);
    task.run_on(NodeId::new(1));
    touch(&mut task, &mut memory, 2..4);
    check(&task, 0..4, &[0, 0, 1, 1]);
    // Node 1 is emptied before it is filled: what has no room on node 2 is found there by the second move.
    let mut memory = memory_with([0, 0, 1, 0]);
    task.migrate_pages(&NodeSet::from([0, 1]), &NodeSet::from([1, 2]), &mut memory).unwrap();
    // |old| = |new|: 1 goes to 2 first, as far as there is room, and leaves it on node 1 for 0.
    check(&task, 0..4, &[1, 0, 2, 1]);
}

#[test]
fn pages_that_a_move_leaves_behind_are_taken_along_by_a_later_one() {
    // The plan is 1 to 2, then 0 to 1: pages of node 0 stay on node 1 and do not go on to node 2.
    let (mut task, mut memory) = start();
    task.map(0..2);
    touch(&mut task, &mut memory, 0..2);
    task.migrate_pages(&NodeSet::from([0, 1]), &NodeSet::from([1, 2]), &mut memory).unwrap();
    check(&task, 0..2, &[1, 1]);
}

#[test]
fn a_home_node_cannot_be_set_before_5_17() {
    for (minor, expected) in [(16, Errno::Enosys), (17, Errno::Enoent)] {
        let (mut task, _) = start_on(Release::new(5, minor));
        task.map(0..4);
        assert_eq!(task.set_home(0..4, NodeId::new(3)), Err(expected));
    }
}

#[test]
fn the_systems_policy_counts_where_the_program_has_none() {
    let (task, mut memory) = start();
    let scope = Scope { allowed: &NodeSet::from([0, 1, 2, 3]), max_nodes: 1024, release: Release::REFERENCE };
    let mut task = task.under(Policy::from_mem_policy(&policy("interleave:2-3"), scope).unwrap());
    task.map(0..8);
    touch(&mut task, &mut memory, 0..2);
    task.set_policy(&policy("local")).unwrap();
    touch(&mut task, &mut memory, 2..4);
    task.set_policy(&policy("default")).unwrap();
    task.bind(4..6, &policy("bind:1"), Present::Stay, &mut memory).unwrap();
    touch(&mut task, &mut memory, 4..6);
    check(&task, 0..6, &[2, 3, 0, 0, 1, 1]);
    assert_eq!(task.policy().reported(), MemPolicy::DEFAULT);
    // Without its policy a mapping is the system's again, and so is a child.
    task.bind(4..6, &policy("default"), Present::Move, &mut memory).unwrap();
    check(&task, 4..6, &[2, 3]);
    let mut child = task.start_program();
    child.map(0..2);
    touch(&mut child, &mut memory, 0..2);
    check(&child, 0..2, &[2, 3]);
}

#[test]
fn a_program_that_is_started_has_the_policy_and_not_the_memory() {
    let (mut task, mut memory) = start();
    task.map(0..1);
    task.set_policy(&policy("prefer:3")).unwrap();
    let mut child = task.start_program();
    assert_eq!(child.touch(0, &mut memory), None);
    child.map(0..1);
    assert_eq!(child.touch(0, &mut memory), Some(NodeId::new(3)));
}

#[test]
fn a_file_keeps_its_policy_in_every_cpuset() {
    let (mut task, mut memory) = start();
    task.map_file(8..16, 3, 5);
    task.bind(8..16, &policy("interleave:0-1"), Present::Stay, &mut memory).unwrap();
    // Page 5 of inode 3 has index 8.
    touch(&mut task, &mut memory, 8..12);
    check(&task, 8..12, &[0, 1, 0, 1]);
    task.restrict(&NodeSet::from([1, 2]), &mut memory);
    assert_eq!(task.policy_at(8).unwrap().reported(), policy("interleave:0-1"));
    touch(&mut task, &mut memory, 12..16);
    // The turn of node 0 falls to the nearest of the nodes that are allowed.
    check(&task, 12..16, &[1; 4]);
}

#[test]
fn a_huge_page_comes_goes_and_moves_as_one() {
    let (mut task, mut memory) = start();
    task.map_huge(512..1536);
    task.set_policy(&policy("interleave:0-3")).unwrap();
    task.touch(700, &mut memory);
    check(&task, 512..1024, &[1; 512]);
    assert_eq!(task.node_of(1024), None);
    task.move_page(512, NodeId::new(3), &mut memory).unwrap();
    check(&task, 512..1024, &[3; 512]);
    task.bind(512..1024, &policy("bind:0-1"), Present::Move, &mut memory).unwrap();
    check(&task, 512..1024, &[0; 512]);
    let before = memory.free_of(NodeId::new(0));
    task.unmap(512..1024, &mut memory);
    assert_eq!(memory.free_of(NodeId::new(0)) - before, 512);
}

#[test]
fn huge_pages_have_the_machine_s_order() {
    // 11 on arm64 with pages of 16 KiB, 13 with 64 KiB: small here, so that two fit into little memory.
    for order in [4, 5, 11] {
        let (task, memory) = start();
        let around = Surroundings { huge_order: order, ..task.around };
        let (mut task, mut memory) = (Task::new(around, NodeId::new(0)), memory.with_huge_order(order));
        let block = 1 << order;
        task.map_huge(0..2 * block);
        task.touch(block + 3, &mut memory);
        assert_eq!(task.node_of(block - 1), None, "order {order}");
        check(&task, block..2 * block, &vec![0; block as usize]);
        task.move_page(block, NodeId::new(2), &mut memory).unwrap();
        check(&task, block..2 * block, &vec![2; block as usize]);
        let before = memory.free_of(NodeId::new(2));
        task.unmap(0..2 * block, &mut memory);
        assert_eq!(memory.free_of(NodeId::new(2)) - before, block, "order {order}");
    }
}

#[test]
fn small_pages_in_the_place_of_a_huge_one_stay_small() {
    let (mut task, mut memory) = start();
    task.map_huge(0..512);
    task.touch_small(3, &mut memory);
    task.touch(5, &mut memory);
    check(&task, 3..4, &[0]);
    check(&task, 5..6, &[0]);
    assert_eq!(task.node_of(4), None);
}

#[test]
fn pages_follow_the_cpu_each_by_its_policy() {
    let machine = nodewise_machine::spec::machine("2x(2x(1c 512M)); dist=11,20").unwrap();
    let tiers = Tiers::from_machine(&machine, Release::REFERENCE);
    let (mut task, mut memory) = start();
    task.map(0..8);
    let mut bound = |task: &mut Task, pages, text: &str| {
        task.bind(pages, &policy(text), Present::Stay, &mut memory).unwrap();
    };
    bound(&mut task, 2..4, "bind:0-3");
    bound(&mut task, 4..6, "bind=balancing:0,3");
    bound(&mut task, 6..8, "bind=balancing:0,2");
    task.map_huge(512..1024);
    touch(&mut task, &mut memory, 0..8);
    task.touch(512, &mut memory);
    task.run_on(NodeId::new(3));
    assert_eq!(task.balance(true, Balancing::OFF, &tiers, &mut memory), Balanced::default());
    let balanced = task.balance(true, Balancing::from_setting(1), &tiers, &mut memory);
    check(&task, 0..8, &[3, 3, 0, 0, 3, 3, 0, 0]);
    check(&task, 512..1024, &[3; 512]);
    assert_eq!(balanced, Balanced { moved: 516, promoted: 0 });
}

#[test]
fn a_page_stays_where_the_cpus_node_is_at_its_high_watermark() {
    let machine = nodewise_machine::spec::machine("2x(2x(1c 512M)); dist=11,20").unwrap();
    let (mut task, mut memory) = start();
    task.map(0..8);
    touch(&mut task, &mut memory, 0..8);
    // One page more than the mark has to be free after each that comes.
    for zone in memory.zones.iter_mut().filter(|zone| zone.node == NodeId::new(1)) {
        zone.free = zone.marks.high + zone.reserves[ZoneKind::Movable as usize] + 4;
    }
    task.run_on(NodeId::new(1));
    let balanced = task.balance(
        false,
        Balancing::from_setting(1),
        &Tiers::from_machine(&machine, Release::REFERENCE),
        &mut memory,
    );
    assert_eq!(balanced.moved, 3);
    check(&task, 0..8, &[1, 1, 1, 0, 0, 0, 0, 0]);
}

/// A call, drawn.
#[derive(Clone, Debug)]
enum Call {
    Set(MemPolicy),
    Bind(Range<u64>, MemPolicy, Present),
    Touch(u64),
    Restrict(NodeSet),
    Migrate(NodeSet, NodeSet),
    Move(u64, NodeId),
    Home(Range<u64>, NodeId),
    Unmap(Range<u64>),
}

fn nodes() -> impl Strategy<Value = NodeSet> {
    proptest::collection::vec(0u32..5, 0..4)
        .prop_map(|nodes| nodes.into_iter().map(NodeId::new).collect::<NodeSet>())
}

fn policies() -> impl Strategy<Value = MemPolicy> {
    (select(PolicyMode::ALL.to_vec()), nodes()).prop_map(|(mode, nodes)| MemPolicy::new(mode, nodes))
}

fn calls() -> impl Strategy<Value = Call> {
    let range = || (0u64..30, 1u64..8).prop_map(|(first, count)| first..first + count);
    let node = || (0u32..5).prop_map(NodeId::new);
    let present = select(vec![Present::Stay, Present::Refuse, Present::Move]);
    proptest::prop_oneof![
        policies().prop_map(Call::Set),
        (range(), policies(), present)
            .prop_map(|(pages, policy, present)| Call::Bind(pages, policy, present)),
        (0u64..32).prop_map(Call::Touch),
        (512u64..1024).prop_map(Call::Touch),
        (0u64..32).prop_map(Call::Touch),
        nodes().prop_map(Call::Restrict),
        (nodes(), nodes()).prop_map(|(old, new)| Call::Migrate(old, new)),
        (0u64..32, node()).prop_map(|(page, node)| Call::Move(page, node)),
        (range(), node()).prop_map(|(pages, node)| Call::Home(pages, node)),
        range().prop_map(Call::Unmap),
        (500u64..1024).prop_map(|page| Call::Move(page, NodeId::new(1))),
    ]
}

/// Script thp-24018 on `drawn-24`, 6.12, and a program on 6.1, 6.12 and 6.18.
#[test]
fn a_huge_page_of_memory_that_begins_inside_a_place_has_the_turn_before_its_own() {
    let interleave = policy("interleave:0-2");
    // Memory that begins at this page, with places 3, 4 and 5; some of it is bound, and may be on node 3 before.
    let check = |first: u64, bound: Option<Range<u64>>, present: Present, expected: [u32; 3]| {
        let (mut task, mut memory) = start();
        task.set_huge_pages(TransparentHuge::from_settings(Some("always"), Some("always")));
        task.map_plain(first..3072);
        let places = [1536, 2048, 2560];
        if present == Present::Move {
            task.set_policy(&policy("bind:3")).unwrap();
            places.iter().for_each(|place| _ = task.touch(*place, &mut memory));
        }
        match bound {
            Some(pages) => task.bind(pages, &interleave, present, &mut memory).unwrap(),
            None => task.set_policy(&interleave).unwrap(),
        }
        places.iter().for_each(|place| _ = task.touch(*place, &mut memory));
        let nodes = places.map(|place| task.node_of(place).unwrap().number());
        assert_eq!(nodes, expected, "{first} {present:?}");
    };
    check(1536, None, Present::Stay, [0, 1, 2]);
    check(1436, None, Present::Stay, [2, 0, 1]);
    check(1436, Some(1436..3072), Present::Stay, [2, 0, 1]);
    check(1436, Some(2048..3072), Present::Stay, [0, 1, 2]);
    check(1436, Some(1436..3072), Present::Move, [2, 0, 1]);
    check(1436, Some(2048..3072), Present::Move, [3, 1, 2]);
}

proptest! {
    #[test]
    fn no_script_loses_a_page(script in proptest::collection::vec(calls(), 0..60), shift in any::<u32>()) {
        let (mut task, mut memory) = start();
        let all: u64 = memory.nodes().iter().map(|node| memory.free_of(node)).sum();
        let from = u64::from(shift) * 512;
        let at = |pages: &Range<u64>| pages.start + from..pages.end + from;
        task.map(from..from + 16);
        task.map_file(from + 16..from + 32, 7, from);
        task.map_huge(from + 512..from + 1024);
        for call in &script {
            // What is refused is refused; the rest must add up.
            let _ = match call {
                Call::Set(policy) => task.set_policy(policy),
                Call::Bind(pages, policy, present) => task.bind(at(pages), policy, *present, &mut memory),
                Call::Touch(page) => { task.touch(page + from, &mut memory); Ok(()) }
                Call::Restrict(nodes) if nodes.is_disjoint(&memory.nodes()) => Ok(()),
                Call::Restrict(nodes) => { task.restrict(nodes, &mut memory); Ok(()) }
                Call::Migrate(old, new) => task.migrate_pages(old, new, &mut memory),
                Call::Move(page, node) => task.move_page(page + from, *node, &mut memory),
                Call::Home(pages, node) => task.set_home(at(pages), *node),
                Call::Unmap(pages) => { task.unmap(at(pages), &mut memory); Ok(()) }
            };
            let homes: Vec<NodeId> = (from..from + 1024).filter_map(|page| task.node_of(page)).collect();
            let free: u64 = memory.nodes().iter().map(|node| memory.free_of(node)).sum();
            prop_assert_eq!(all - free, homes.len() as u64);
            prop_assert!(homes.iter().all(|node| memory.nodes().contains(*node)));
        }
    }
}
