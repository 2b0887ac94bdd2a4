//! Parts of the supervisor that need no program.

use nodewise_machine::{MemPolicy, NodeId, spec};
use nodewise_model::{Policy, Release};
use rangemap::RangeSet;

use super::pages::{Giver, Pages, Source, Turns};
use super::world::World;

const BLOCK: u64 = 2 << 20;

fn world(machine: &str) -> World {
    World::new(&spec::machine(machine).unwrap(), None)
}

/// Nodes of the first pages of some huge pages that a policy places.
fn nodes_of_huge_pages(world: &mut World, policy: &str, blocks: u64) -> Vec<u32> {
    let policy = Policy::from_mem_policy(&policy.parse::<MemPolicy>().unwrap(), world.facts.scope()).unwrap();
    let bytes = 0..blocks * BLOCK;
    let huge: RangeSet<u64> = [bytes.clone()].into_iter().collect();
    let source = Source { turns: Turns::Address, has_policies: true, huge: &huge };
    let (mut pages, facts) = (Pages::default(), &world.facts);
    let (weights, allowed) = (&facts.weights, &facts.with_memory);
    let mut giver =
        Giver { memory: &mut world.memory, weights, allowed, policy: &policy, cpu_node: NodeId::new(0) };
    pages.fill(&bytes, &source, &mut giver);
    (0..2 * blocks).map(|half| pages.node_at(half * BLOCK / 2 + 4096).unwrap().number()).collect()
}

#[test]
fn a_huge_page_takes_one_turn() {
    let nodes = nodes_of_huge_pages(&mut world("4x(3c 2G); dist=20"), "interleave:0-3", 6);
    assert_eq!(nodes, [0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1]);
}

#[test]
fn a_page_of_a_file_that_mbind_moves_takes_its_turn_without_the_inode_before_6_7() {
    const PAGE: u64 = 4096;
    let nodes = |release: Release| -> Vec<Option<u32>> {
        let mut world = world("4x(3c 2G); dist=20");
        let policy =
            Policy::from_mem_policy(&"interleave:1-3".parse().unwrap(), world.facts.scope()).unwrap();
        let (weights, allowed) = (&world.facts.weights, &world.facts.with_memory);
        let (bytes, huge) = (2 * PAGE..5 * PAGE, RangeSet::new());
        let source = Source { turns: Turns::File(64), has_policies: true, huge: &huge };
        let (memory, cpu_node) = (&mut world.memory, NodeId::new(0));
        let mut giver = Giver { memory, weights, allowed, policy: &Policy::DEFAULT, cpu_node };
        let mut pages = Pages::default();
        pages.fill(&bytes, &source, &mut giver);
        pages.move_where(&bytes, |_| true, &policy, &source.when_moved(release), &mut giver);
        (2..5).map(|page| pages.node_at(page * PAGE).map(NodeId::number)).collect()
    };
    assert_eq!(nodes(Release::new(6, 1)), [3, 1, 2].map(Some));
    assert_eq!(nodes(Release::new(6, 7)), [1, 2, 3].map(Some));
}

#[test]
fn memory_that_moves_keeps_its_policy_pages_and_turns() {
    const PAGE: u64 = 4096;
    let mut world = world("4x(3c 2G); dist=20");
    let policy = Policy::from_mem_policy(&"interleave:0-3".parse().unwrap(), world.facts.scope()).unwrap();
    let (weights, allowed) = (world.facts.weights.clone(), world.facts.with_memory.clone());
    let (huge, default) = (RangeSet::new(), Policy::DEFAULT);
    let source = Source { turns: Turns::Address, has_policies: true, huge: &huge };
    let mut pages = Pages::default();
    let mut fill = |pages: &mut Pages, bytes: std::ops::Range<u64>| {
        let (memory, cpu_node) = (&mut world.memory, NodeId::new(0));
        let (weights, allowed, policy) = (&weights, &allowed, &default);
        pages.fill(&bytes, &source, &mut Giver { memory, weights, allowed, policy, cpu_node });
    };
    let nodes = |pages: &Pages, first: u64, count: u64| -> Vec<Option<u32>> {
        (first..first + count).map(|page| pages.node_at(page * PAGE).map(NodeId::number)).collect()
    };
    pages.set_policy(4 * PAGE..8 * PAGE, &policy);
    fill(&mut pages, 4 * PAGE..6 * PAGE);
    assert_eq!(nodes(&pages, 4, 4), [Some(0), Some(1), None, None]);
    // With a page it takes turns as by its first address.
    let mut memory = World::new(&spec::machine("4x(3c 2G); dist=20").unwrap(), None).memory;
    pages.follow(&(4 * PAGE..8 * PAGE), 13 * PAGE..19 * PAGE, false, &mut memory);
    assert_eq!(nodes(&pages, 4, 4), [None; 4]);
    fill(&mut pages, 13 * PAGE..19 * PAGE);
    assert_eq!(nodes(&pages, 13, 6), [0, 1, 2, 3, 0, 1].map(Some));
    assert!(!pages.policies.overlaps(&(4 * PAGE..8 * PAGE)));
    // Memory without a page takes its turns by the new address.
    pages.set_policy(40 * PAGE..42 * PAGE, &policy);
    pages.follow(&(40 * PAGE..42 * PAGE), 51 * PAGE..53 * PAGE, true, &mut memory);
    fill(&mut pages, 51 * PAGE..53 * PAGE);
    assert_eq!(nodes(&pages, 51, 2), [Some(3), Some(0)]);
    assert!(pages.policies.overlaps(&(40 * PAGE..42 * PAGE)));
}
