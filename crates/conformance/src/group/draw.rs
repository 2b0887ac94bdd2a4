//! Groups with limits and their programs, drawn.

use nodewise_machine::{Machine, MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode};

use super::{GroupProgram, GroupScript, GroupStep, Limit, Limits};
use crate::drawer::homes;
use crate::random::Random;

/// Values of `oom_score_adj`.
const ADJUSTMENTS: [i32; 5] = [-1000, -500, 0, 300, 900];
/// The most pages that a program takes at once; beyond `memory.high` without swap the kernel has it wait for seconds.
const MOST: u64 = 1800;
const MOST_SLOWED: u64 = 96;

/// A group on a machine, with swap or without.
pub fn drawn(random: &mut Random, machine: &Machine, has_swap: bool) -> GroupScript {
    let nodes: Vec<NodeId> = machine.nodes_with_memory().iter().collect();
    let is_slowed = !has_swap && random.percent(12);
    let limits = limits(random, has_swap, is_slowed);
    let mems = some_nodes(random, &nodes);
    let count = 1 + random.below(3) as usize;
    let programs: Vec<GroupProgram> = (0..count)
        .map(|number| GroupProgram {
            cpu_node: random.one(&homes(machine)),
            policy: random.percent(60).then(|| policy(random, &nodes)),
            is_inside: number == 0 || random.percent(75),
        })
        .collect();
    let most = if is_slowed { MOST_SLOWED } else { MOST };
    let steps = (0..4 + random.below(6)).map(|_| match random.below(100) {
        0..66 => GroupStep::Take(random.below(count as u64) as usize, 1 + random.below(most)),
        66..78 => GroupStep::Limit(Limit::Max, Some(3000 + random.below(3000))),
        78..82 if has_swap => {
            GroupStep::Limit(Limit::High, random.percent(60).then(|| 2000 + random.below(2000)))
        }
        78..92 => GroupStep::Allow(some_nodes(random, &nodes)),
        _ => GroupStep::Adjust(random.below(count as u64) as usize, random.one(&ADJUSTMENTS)),
    });
    let mut steps: Vec<GroupStep> = steps.collect();
    // Nearly all that it may have without being slowed down.
    if let Some(high) = limits.high.filter(|_| is_slowed) {
        steps.insert(0, GroupStep::Take(0, high - random.below(120)));
    }
    GroupScript { limits, mems, has_swap, programs, steps }
}

fn limits(random: &mut Random, has_swap: bool, is_slowed: bool) -> Limits {
    let high = match (is_slowed, has_swap) {
        (true, _) => Some(1500 + random.below(1000)),
        (false, true) if random.percent(20) => Some(2000 + random.below(2000)),
        _ => None,
    };
    Limits {
        max: random.percent(90).then(|| 2500 + random.below(4000)),
        high,
        swap_max: (has_swap && random.percent(40)).then(|| 500 + random.below(3000)),
        kills_all: random.percent(15),
    }
}

fn some_nodes(random: &mut Random, nodes: &[NodeId]) -> NodeSet {
    (0..1 + random.below(nodes.len() as u64)).map(|_| random.one(nodes)).collect()
}

/// A policy that every kernel takes.
fn policy(random: &mut Random, nodes: &[NodeId]) -> MemPolicy {
    let mode = random.one(&[PolicyMode::Bind, PolicyMode::Preferred, PolicyMode::Interleave]);
    let nodes = match mode {
        PolicyMode::Preferred => NodeSet::from_iter([random.one(nodes)]),
        _ => some_nodes(random, nodes),
    };
    MemPolicy { mode, flags: ModeFlags::NONE, nodes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    #[test]
    fn groups_differ_and_their_steps_name_programs_that_exist() {
        let machine = spec::machine("4x(1c 512M); dist=20").unwrap();
        let mut kinds = std::collections::BTreeSet::new();
        for number in 0..200 {
            for has_swap in [false, true] {
                let script = drawn(&mut Random::new(number), &machine, has_swap);
                assert!(script.programs[0].is_inside && !script.mems.is_empty());
                assert!(has_swap || script.limits.swap_max.is_none());
                for step in &script.steps {
                    let (kind, program) = match step {
                        GroupStep::Take(program, pages) => (usize::from(*pages > MOST_SLOWED), *program),
                        GroupStep::Limit(limit, _) => (2 + *limit as usize, 0),
                        GroupStep::Allow(_) => (4, 0),
                        GroupStep::Adjust(program, _) => (5, *program),
                    };
                    kinds.insert(kind);
                    assert!(program < script.programs.len(), "{}", script.text());
                }
            }
        }
        assert_eq!(kinds.len(), 6);
    }
}
