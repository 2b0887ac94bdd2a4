//! Steps on small machines, and what holds for every scenario.

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::zonelist::BuiltAt;

const GIB: u64 = 1 << 18;

fn simulation() -> Simulation {
    let machine = nodewise_machine::spec::machine("2x(8c 8G); dist=21").unwrap();
    let memory = Memory::of(&machine, BuiltAt::Boot, Release::REFERENCE);
    Simulation::new(memory, Weights::new(), 1024, Release::REFERENCE)
}

fn start(policy: &str) -> Act {
    let policy = policy.parse().unwrap();
    Act::Start { cpu_node: NodeId::new(0), policy, allowed: NodeSet::from([0, 1]) }
}

fn allocate(region: &str, gib: u64) -> Act {
    Act::Allocate { region: region.to_owned(), pages: gib * GIB, huge: false, policy: None }
}

/// GiB of a program on nodes 0 and 1, rounded.
fn placed(simulation: &Simulation, name: &str) -> [u64; 2] {
    let nodes = &simulation.programs()[name];
    [0, 1].map(|node| (nodes.get(&NodeId::new(node)).copied().unwrap_or(0) + GIB / 2) / GIB)
}

#[test]
fn a_program_larger_than_its_node_leaves_nothing_for_one_that_is_bound_there() {
    for (policy, placement, missing) in [("default", [8, 2], true), ("interleave:0-1", [5, 5], false)] {
        let mut simulation = simulation();
        simulation.play("database", &start(policy)).unwrap();
        simulation.play("database", &allocate("pool", 10)).unwrap();
        assert_eq!(placed(&simulation, "database"), placement, "{policy}");
        simulation.play("tool", &start("bind:0")).unwrap();
        let step = simulation.play("tool", &allocate("heap", 1)).unwrap();
        assert_eq!(step.missing().is_some(), missing, "{policy}");
    }
}

#[test]
fn what_a_program_had_is_there_again_when_it_ends() {
    let mut simulation = simulation();
    let before = simulation.memory().zones().to_vec();
    simulation.play("a", &start("default")).unwrap();
    simulation.play("a", &allocate("heap", 3)).unwrap();
    simulation.play("a", &allocate("cache", 2)).unwrap();
    simulation.play("a", &Act::Free { region: "heap".to_owned() }).unwrap();
    assert_eq!(placed(&simulation, "a"), [2, 0]);
    simulation.play("a", &Act::End).unwrap();
    assert_eq!(simulation.memory().zones(), before);
    assert!(simulation.programs().is_empty());
}

#[test]
fn pages_move_as_far_as_there_is_room() {
    let mut simulation = simulation();
    simulation.play("a", &start("bind:0")).unwrap();
    simulation.play("a", &allocate("heap", 6)).unwrap();
    simulation.play("b", &start("bind:1")).unwrap();
    simulation.play("b", &allocate("heap", 4)).unwrap();
    let both = Act::Migrate { old: NodeSet::from([0]), new: NodeSet::from([1]) };
    let step = simulation.play("a", &both).unwrap();
    assert_eq!((step.moved + GIB / 2) / GIB, 4);
    assert_eq!(placed(&simulation, "a"), [2, 4]);
}

#[test]
fn what_cannot_be_done_is_refused_and_changes_nothing() {
    let mut simulation = simulation();
    assert_eq!(simulation.play("a", &Act::End), Err(Refused::NotThere));
    simulation.play("a", &start("default")).unwrap();
    simulation.play("a", &allocate("heap", 1)).unwrap();
    assert_eq!(simulation.play("a", &start("default")), Err(Refused::Started));
    assert_eq!(simulation.play("a", &allocate("heap", 1)), Err(Refused::Taken("heap".to_owned())));
    let free = Act::Free { region: "stack".to_owned() };
    assert_eq!(simulation.play("a", &free), Err(Refused::NoRegion("stack".to_owned())));
    let policy = Act::SetPolicy("bind:7".parse().unwrap());
    assert_eq!(simulation.play("a", &policy), Err(Refused::Kernel(Errno::Einval)));
    let away = Act::Migrate { old: NodeSet::from([0]), new: NodeSet::from([7]) };
    assert_eq!(simulation.play("a", &away), Err(Refused::Kernel(Errno::Einval)));
    assert_eq!(placed(&simulation, "a"), [1, 0]);
}

fn acts() -> impl Strategy<Value = Act> {
    let region = || (0u8..3).prop_map(|number| format!("r{number}"));
    let nodes = || {
        (0u32..4).prop_map(|bits| {
            (0..2).filter(|node| bits >> node & 1 == 1).map(NodeId::new).collect::<NodeSet>()
        })
    };
    let policy =
        || (0usize..7, nodes()).prop_map(|(mode, nodes)| MemPolicy::new(PolicyMode::ALL[mode], nodes));
    proptest::prop_oneof![
        policy().prop_map(|policy| Act::Start {
            cpu_node: NodeId::new(1),
            policy,
            allowed: NodeSet::from([0, 1])
        }),
        (region(), 0u64..20 * GIB, any::<bool>(), proptest::option::of(policy()))
            .prop_map(|(region, pages, huge, policy)| Act::Allocate { region, pages, huge, policy }),
        region().prop_map(|region| Act::Free { region }),
        policy().prop_map(Act::SetPolicy),
        (0u32..2).prop_map(|node| Act::RunOn(NodeId::new(node))),
        (nodes(), nodes()).prop_map(|(old, new)| Act::Migrate { old, new }),
        proptest::strategy::Just(Act::End),
    ]
}

proptest! {
    #[test]
    fn every_page_is_with_a_program_or_free(steps in proptest::collection::vec((0u8..3, acts()), 0..40)) {
        let mut simulation = simulation();
        let free = |simulation: &Simulation| simulation.memory().zones().iter().map(|zone| zone.free).sum::<u64>();
        let all = free(&simulation);
        for (name, act) in &steps {
            let _ = simulation.play(&format!("p{name}"), act);
            let taken: u64 = simulation.programs().values().flat_map(BTreeMap::values).sum();
            prop_assert_eq!(free(&simulation) + taken, all);
            prop_assert!(simulation.programs().len() <= 3);
        }
    }
}
