//! Programs with files, drawn.

use nodewise_machine::{Machine, MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode};

use super::{CacheProgram, CacheScript, CacheStep, FilePages};
use crate::drawer::homes;
use crate::nodes::PAGE;
use crate::random::Random;

/// Files of a script.
const FILES: u64 = 2;
/// Parts of the smallest node, in percent: the most that is read at once, taken at once, and written at once. Little is written: of
/// more the kernel has some on the disk before it is asked to.
const MOST_READ: u64 = 60;
const MOST_TAKEN: u64 = 55;
const MOST_WRITTEN: u64 = 4;

/// Programs on a machine, most of which use one node.
pub fn drawn(random: &mut Random, machine: &Machine) -> CacheScript {
    let nodes: Vec<NodeId> = machine.nodes_with_memory().iter().collect();
    let smallest = nodes.iter().filter_map(|node| machine.memory_of(*node)).min();
    let percent = smallest.map_or(1, |size| size.get() / PAGE / 100).max(1);
    let focus = random.one(&nodes);
    let count = 1 + random.below(3) as usize;
    let programs = (0..count).map(|_| CacheProgram {
        cpu_node: random.one(&homes(machine)),
        policy: random.percent(80).then(|| policy(random, &nodes, focus)),
    });
    let programs = programs.collect();
    let program = |random: &mut Random| random.below(count as u64) as usize;
    let steps = (0..3 + random.below(4)).map(|_| match random.below(100) {
        0..46 => CacheStep::Read(program(random), file_pages(random, percent * MOST_READ)),
        46..56 => CacheStep::Write(program(random), file_pages(random, percent * MOST_WRITTEN)),
        56..86 => CacheStep::Take(program(random), 1 + random.below(percent * MOST_TAKEN)),
        86..90 => CacheStep::Sync,
        _ => CacheStep::Drop,
    });
    CacheScript { programs, steps: steps.collect() }
}

/// A part of a file, from its beginning or from a later place on.
fn file_pages(random: &mut Random, most: u64) -> FilePages {
    let first = if random.percent(60) { 0 } else { random.below(most) };
    FilePages { file: random.below(FILES) as usize, first, count: 1 + random.below(most) }
}

/// A policy that every kernel takes, for a node or for several.
fn policy(random: &mut Random, nodes: &[NodeId], focus: NodeId) -> MemPolicy {
    let (mode, is_one) = match random.below(100) {
        0..50 => (PolicyMode::Bind, true),
        50..65 => (PolicyMode::Preferred, true),
        65..80 => (PolicyMode::Bind, false),
        _ => (PolicyMode::Interleave, false),
    };
    let some = (0..1 + random.below(nodes.len() as u64)).map(|_| random.one(nodes)).collect();
    MemPolicy { mode, flags: ModeFlags::NONE, nodes: if is_one { NodeSet::from_iter([focus]) } else { some } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    #[test]
    fn scripts_differ_and_their_steps_name_programs_and_pages_that_exist() {
        let machine = spec::machine("4x(1c 512M); dist=20").unwrap();
        let mut kinds = std::collections::BTreeSet::new();
        for number in 0..200 {
            let script = drawn(&mut Random::new(number), &machine);
            for step in &script.steps {
                let (kind, pages) = match step {
                    CacheStep::Read(_, pages) => (0, Some(pages)),
                    CacheStep::Write(_, pages) => (1, Some(pages)),
                    CacheStep::Take(..) => (2, None),
                    CacheStep::Sync => (3, None),
                    CacheStep::Drop => (4, None),
                };
                kinds.insert(kind);
                assert!(step.program().is_none_or(|program| program < script.programs.len()));
                let exists = |pages: &FilePages| {
                    pages.file < script.files()
                        && pages.first + pages.count <= script.pages_of_file(pages.file)
                };
                assert!(pages.is_none_or(exists), "{}", script.text());
            }
        }
        assert_eq!(kinds.len(), 5);
    }
}
