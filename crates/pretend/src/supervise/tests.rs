//! Parts of the supervisor that need no program.

use nodewise_machine::{MemPolicy, NodeId, spec};
use nodewise_model::Policy;
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
