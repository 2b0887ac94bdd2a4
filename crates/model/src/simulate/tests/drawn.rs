//! Properties that hold whatever is played: drawn acts on a machine with little room.

use nodewise_machine::PolicyMode;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::balancing::course::Pattern;
use crate::simulate::extents::Extent;
use crate::simulate::limits::Charged;
use crate::simulate::program::ObjectKind;
use crate::simulate::run::At;

/// Memory with little room on each of two nodes; huge pages for all memory, or for that which is advised.
fn tight(huge_for_all: bool) -> Simulation {
    let thp = if huge_for_all { "; thp=always" } else { "" };
    let machine = nodewise_machine::spec::machine(&format!("2x(1c 1G) (1G tier=22); dist=20{thp}")).unwrap();
    let memory = Memory::from_machine(&machine, BuiltAt::Boot, Release::REFERENCE);
    Simulation::new(memory, Weights::from([(NodeId::new(1), 3)]), 1024, Release::REFERENCE)
        .on(&machine)
        .with_swap(GIB)
}

fn nodes() -> impl Strategy<Value = NodeSet> {
    (0u32..8).prop_map(|bits| (0..3).filter(|node| bits >> node & 1 == 1).map(NodeId::new).collect())
}

fn policies() -> impl Strategy<Value = MemPolicy> {
    (0usize..7, nodes()).prop_map(|(mode, nodes)| MemPolicy::new(PolicyMode::ALL[mode], nodes))
}

fn parts() -> impl Strategy<Value = Part> {
    let region = (0u8..3).prop_map(|number| format!("r{number}"));
    let pages = proptest::option::of((0..GIB, 0..GIB).prop_map(|(first, count)| first..first + count));
    (region, pages).prop_map(|(region, pages)| Part { region, pages })
}

fn mappings() -> impl Strategy<Value = Mapping> {
    let backing = (0u8..8).prop_map(|number| match number {
        6 => Backing::NeverHuge,
        7 => Backing::PrivateFile("f7".to_owned()),
        0 => Backing::Huge,
        1 => Backing::Pool,
        2 | 3 => Backing::File(format!("f{number}")),
        _ => Backing::Small,
    });
    (parts(), 0..3 * GIB, backing, proptest::option::of(policies())).prop_map(
        |(part, pages, backing, policy)| Mapping {
            region: part.region,
            pages,
            backing,
            policy,
            first_page: None,
        },
    )
}

fn acts() -> impl Strategy<Value = Act> {
    let node = || (0u32..3).prop_map(NodeId::new);
    let flags = || {
        (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(strict, moves, moves_all)| Flags {
            strict,
            moves,
            moves_all,
        })
    };
    proptest::prop_oneof![
        4 => mappings().prop_map(Act::Allocate),
        1 => mappings().prop_map(Act::Map),
        3 => parts().prop_map(Act::Touch),
        1 => parts().prop_map(|part| Act::Free { region: part.region }),
        1 => policies().prop_map(Act::SetPolicy),
        2 => (parts(), policies(), flags()).prop_map(|(part, policy, flags)| Act::Bind { part, policy, flags }),
        1 => (parts(), node()).prop_map(|(part, node)| Act::SetHome { part, node }),
        1 => (parts(), node(), any::<bool>()).prop_map(|(part, node, all)| Act::MovePages { part, node, all }),
        1 => (nodes(), nodes()).prop_map(|(old, new)| Act::Migrate { old, new }),
        1 => (parts(), proptest::option::of(0..4 * GIB), proptest::option::of(0..GIB))
            .prop_map(|(part, pages, first_page)| Act::Remap { region: part.region, pages, first_page }),
        1 => (-1000i32..=1000).prop_map(Act::AdjustOom),
        1 => node().prop_map(Act::RunOn),
        1 => nodes().prop_filter("a cpuset has nodes", |nodes| !nodes.is_empty()).prop_map(Act::Restrict),
        2 => (0u8..4).prop_map(|number| Act::Fork { child: format!("p{number}") }),
        1 => proptest::strategy::Just(Act::Balance),
        1 => (0u64..100, [any::<u64>(), any::<u64>()]).prop_map(|(seconds, touches_per_s)| {
            let time = std::time::Duration::from_secs(seconds);
            Act::BalanceFor(MemoryUse { time, touches_per_s, pattern: Pattern::Uniform })
        }),
        1 => proptest::strategy::Just(Act::End),
        1 => (0u64..600).prop_map(|pages| Act::ResizePool { pages }),
        1 => any::<bool>().prop_map(Act::SetDemotion),
        1 => limits(),
        2 => (0u8..6).prop_map(|number| Act::StartThread { name: format!("p{number}") }),
        2 => (0u8..3).prop_map(|number| Act::Join { group: format!("g{number}") }),
    ]
}

/// Limits of three groups, each made below the one before it.
fn limits() -> impl Strategy<Value = Act> {
    let limit = || proptest::option::of(256..2 * GIB);
    (0u8..3, limit(), limit(), limit(), limit()).prop_map(|(number, max, high, low, swap_max)| {
        let parent = number.checked_sub(1).map(|above| format!("g{above}"));
        let limits = GroupLimits { max, high, low, swap_max, ..GroupLimits::default() };
        Act::Limit { group: format!("g{number}"), parent, limits }
    })
}

/// Checks the sums of every group against the pages that are charged to it and to those below it.
fn check_charges(simulation: &Simulation) {
    let mut sums = vec![Charged::default(); simulation.groups.len()];
    let objects = simulation.objects.values().filter(|object| object.kind != ObjectKind::Pool);
    for extent in objects.flat_map(|object| &object.extents) {
        let own = Charged::from_runs([&extent.run]);
        let mut next = extent.charged;
        while let Some(id) = next {
            sums[id as usize].memory += own.memory;
            sums[id as usize].swap += own.swap;
            next = simulation.groups[id as usize].parent;
        }
    }
    let charged: Vec<Charged> = (0..sums.len()).map(|id| simulation.charged(id as u32)).collect();
    assert_eq!(charged, sums);
}

/// Pages in memory, each once, and on the disk.
fn accounts(simulation: &Simulation) -> (u64, u64) {
    let free: u64 = simulation.memory().zones().iter().map(|zone| zone.free).sum();
    let own = |placement: &Placement| placement.pages() - placement.common.values().sum::<u64>();
    let held: u64 = simulation.placements().values().map(own).sum();
    let objects = simulation.objects.values().flat_map(|object| &object.extents);
    let swapped: u64 = objects.map(|extent| extent.run.count(|held| held.at == At::Swap)).sum();
    (free + held, simulation.swap_left() + swapped)
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 300, ..Default::default() })]
    #[test]
    fn every_page_is_with_somebody_or_free_and_told_of_when_it_goes(
        steps in proptest::collection::vec((0u8..6, acts()), 0..30), huge_for_all in any::<bool>(),
    ) {
        let mut simulation = tight(huge_for_all);
        let all = accounts(&simulation);
        let mut told = BTreeMap::new();
        let start = Act::Start {
            cpu_node: NodeId::new(1),
            policy: MemPolicy::DEFAULT,
            allowed: NodeSet::from([0, 1, 2]),
        };
        let starts = (0..3).map(|name| (name, start.clone()));
        for (name, act) in starts.chain(steps) {
            let Ok(step) = simulation.play(&format!("p{name}"), &act) else { continue };
            for (owner, placement) in step.changed {
                match placement {
                    Some(placement) => told.insert(owner, placement),
                    None => told.remove(&owner),
                };
            }
            told.retain(|owner, placement| matches!(owner, Owner::Program(_)) || *placement != Placement::default());
            prop_assert_eq!(accounts(&simulation), all, "{:?}", act);
            check_charges(&simulation);
            for (id, program) in &simulation.programs {
                prop_assert_eq!(simulation.placement(*id), simulation.counted(*id), "{}, {:?}", program.name, act);
            }
            prop_assert_eq!(&told, &simulation.placements(), "{:?}", act);
            for object in simulation.objects.values() {
                let extents: Vec<(&Extent, Vec<u32>)> = (object.extents.iter())
                    .map(|extent| (extent, extent.holders.all(&simulation.family, &object.mappers)))
                    .collect();
                for (at, (extent, holders)) in extents.iter().enumerate() {
                    prop_assert_eq!(extent.holders.first(), holders.first().copied());
                    prop_assert!(extent.run.pages.start < extent.run.pages.end);
                    let overlaps = |(other, others): &(&Extent, Vec<u32>)| {
                        other.run.pages.start < extent.run.pages.end
                            && extent.run.pages.start < other.run.pages.end
                            && (object.kind == ObjectKind::File || holders.iter().any(|id| others.contains(id)))
                    };
                    prop_assert!(!extents[at + 1..].iter().any(overlaps), "{:?}", act);
                }
            }
        }
    }
}
