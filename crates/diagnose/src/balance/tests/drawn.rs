//! Drawn situations: no plan goes beyond room, budget or what is forbidden.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::Bytes;
use proptest::prelude::*;

use super::{Program, World, cpus, identity};
use crate::situation::fixture::Fixture;

const MACHINES: [&str; 4] =
    ["4x(4c 64G); dist=20", "2x(8c 16G); dist=21", "(4c) 3x(4c 64G); dist=20", "2x(4c 32G) (64G tier=22)"];

/// Free memory of each node, in MiB, behind a drawn number.
fn free(which: u32) -> fn(&mut Fixture) {
    fn set(fixture: &mut Fixture, free: [u64; 4]) {
        let nodes: Vec<u32> = fixture.machine.nodes.keys().map(|node| node.number()).collect();
        for (node, free) in nodes.into_iter().zip(free) {
            fixture.meminfo(node, "MemFree", Bytes::from_mib(free));
        }
    }
    match which {
        0 => |fixture| set(fixture, [200, 9000, 100, 4000]),
        1 => |fixture| set(fixture, [0, 0, 0, 0]),
        2 => |fixture| set(fixture, [9000, 200, 9000, 200]),
        _ => |_| {},
    }
}

fn program() -> impl Strategy<Value = (Vec<(u32, u64)>, Vec<u32>, u32)> {
    let memory = prop::collection::btree_map(0u32..4, 1u64..12_000, 0..4);
    let memory = memory.prop_map(|memory| memory.into_iter().collect());
    (memory, prop::collection::vec(0u32..12, 0..6), 0u32..8)
}

/// Forbids a program, or not.
fn forbid(program: &mut Program, which: u32) -> bool {
    match which {
        0 => program.policy = Some("interleave:0-1".parse().expect("a policy")),
        1 => program.facts.threads = Some(vec![cpus("1")]),
        2 => program.facts.realtime = None,
        3 => program.nodes = Some("0".to_owned()),
        _ => return false,
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_plan_goes_beyond_room_budget_or_what_is_forbidden(
        machine in 0..MACHINES.len(),
        programs in prop::collection::vec(program(), 1..6),
        full in 0u32..5,
        shuffled in prop::collection::vec((0usize..6, 0u32..12), 12),
    ) {
        let mut forbidden = Vec::new();
        let programs: Vec<Program> = (100..).zip(programs).map(|(pid, (memory, runs, which))| {
            let memory: Vec<(u32, Bytes)> =
                memory.into_iter().map(|(node, mib)| (node, Bytes::from_mib(mib))).collect();
            let mut program = Program::new(pid, &memory, &runs);
            if forbid(&mut program, which) {
                forbidden.push(identity(pid));
            }
            program
        }).collect();
        let mut world = World::new(MACHINES[machine], programs);
        world.more = free(full);
        let limits = *world.controller.limits();
        let mut spent: Vec<(Duration, Bytes)> = Vec::new();
        for (at, cpu) in shuffled {
            for _ in 0..3 {
                let plan = world.window();
                let now = world.now();
                let fixture = world.fixture();
                let mut arriving: BTreeMap<u32, u64> = BTreeMap::new();
                let mut hour: u64 = spent.iter().filter(|(at, _)| now - *at < Duration::from_secs(3500))
                    .map(|(_, size)| size.get()).sum();
                for action in &plan.actions {
                    prop_assert!(!forbidden.contains(&action.process.identity), "{action:?}");
                    prop_assert!(action.most <= action.means.size());
                    hour += action.most.get();
                    for pages in &action.means.pages {
                        *arriving.entry(pages.to.number()).or_default() += pages.size.get();
                        prop_assert!(pages.from != pages.to);
                    }
                }
                prop_assert!(hour <= limits.per_hour.get(), "{hour} bytes in an hour");
                for (node, bytes) in arriving {
                    let sample = fixture.now.nodes.iter().find(|of| of.node.number() == node);
                    let sample = sample.expect("a node");
                    let size = |name| sample.size(name).expect("a size").get() as f64;
                    prop_assert!(size("MemTotal") > 0.0);
                    let keep = limits.keep_high * sample.high_watermark.expect("a mark").get() as f64;
                    prop_assert!(size("MemFree") - bytes as f64 >= keep - 1.0, "node {node}");
                    let available = size("MemFree") + size("Active(file)") + size("Inactive(file)")
                        - sample.high_watermark.expect("a mark").get() as f64;
                    prop_assert!(available - bytes as f64 >= limits.keep_available * size("MemTotal") - 1.0);
                }
                if let Some(action) = plan.actions.first() {
                    spent.push((now, action.most));
                    world.act(action);
                }
            }
            let count = world.programs.len();
            let program = &mut world.programs[at % count];
            if let (Some(first), None) = (program.runs.first_mut(), &program.cpus) {
                *first = cpu;
            }
        }
    }
}
