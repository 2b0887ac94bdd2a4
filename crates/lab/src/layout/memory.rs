//! How much memory each node gets.

use std::collections::BTreeMap;

use nodewise_machine::check::node_names;
use nodewise_machine::{Bytes, NodeId};

use super::parts::Part;

/// Sizes are multiples of this: a section of x86-64's memory model (`SECTION_SIZE_BITS` of 27), so
/// that no memory block in sysfs belongs to two nodes.
const STEP: Bytes = Bytes::from_mib(128);
/// The first node with memory has at least this: the kernel's image, its page tables and the
/// initial file system lie there.
const FIRST: Bytes = Bytes::from_mib(256);

/// Shares that are smaller than a step by no more than this count as a whole step: the kernel keeps
/// some memory of one node for itself, so nodes with the same modules report slightly different sizes.
const SLACK: Bytes = Bytes::from_mib(16);

/// The memory of each node; `None` for those without.
pub(super) fn share(parts: &[Part], limit: Bytes, notes: &mut Vec<String>) -> Vec<Option<Bytes>> {
    let known: Bytes = parts.iter().filter(|part| part.has_memory).filter_map(|part| part.memory).sum();
    let with_memory = parts.iter().filter(|part| part.has_memory).count() as u64;
    let mut least = FIRST;
    let mut raised = false;
    let sizes: Vec<Option<Bytes>> = parts
        .iter()
        .map(|part| {
            if !part.has_memory {
                return None;
            }
            let size = match part.memory {
                Some(memory) if known <= limit => nearest(memory),
                Some(memory) => portion(limit, memory.get(), known.get()),
                None if known == Bytes::new(0) => portion(limit, 1, with_memory),
                None => STEP,
            };
            let least = std::mem::replace(&mut least, STEP);
            raised |= size < least;
            Some(size.max(least))
        })
        .collect();
    note_sizes(parts, &sizes, notes);
    let total: Bytes = sizes.iter().flatten().copied().sum();
    if total > limit && raised {
        notes.push(format!("the guest has {total} of memory: {limit} does not hold its nodes"));
    }
    sizes
}

/// The multiple of [`STEP`] that is nearest.
fn nearest(size: Bytes) -> Bytes {
    let half = STEP.get() / 2;
    Bytes::new(size.get().saturating_add(half) / STEP.get() * STEP.get())
}

/// This part of a size, rounded down to a multiple of [`STEP`].
fn portion(size: Bytes, part: u64, whole: u64) -> Bytes {
    let share = u128::from(size.get()) * u128::from(part) / u128::from(whole.max(1));
    let steps = (share + u128::from(SLACK.get())) / u128::from(STEP.get());
    STEP.times(u64::try_from(steps).unwrap_or(u64::MAX))
}

fn note_sizes(parts: &[Part], sizes: &[Option<Bytes>], notes: &mut Vec<String>) {
    let mut changed: BTreeMap<Bytes, Vec<(NodeId, Bytes)>> = BTreeMap::new();
    let mut unknown: BTreeMap<Bytes, Vec<NodeId>> = BTreeMap::new();
    for (part, size) in parts.iter().zip(sizes) {
        match (part.memory, size) {
            (Some(memory), Some(size)) if memory != *size => {
                changed.entry(*size).or_default().push((part.node, memory));
            }
            (None, Some(size)) => unknown.entry(*size).or_default().push(part.node),
            _ => {}
        }
    }
    for (here, nodes) in changed.iter().rev() {
        let smallest = nodes.iter().map(|(_, size)| *size).min().unwrap_or_default().to_string();
        let largest = nodes.iter().map(|(_, size)| *size).max().unwrap_or_default().to_string();
        let before = if smallest == largest { smallest } else { format!("{smallest} to {largest}") };
        let names = have(nodes.iter().map(|(node, _)| *node), *here);
        notes.push(format!("{names} here instead of {before}"));
    }
    for (here, nodes) in unknown.iter().rev() {
        notes.push(format!("{} here: the machine's size is not known", have(nodes.iter().copied(), *here)));
    }
}

fn have(nodes: impl ExactSizeIterator<Item = NodeId>, size: Bytes) -> String {
    match nodes.len() {
        1 => format!("{} has {size}", node_names(nodes)),
        _ => format!("{} have {size} each", node_names(nodes)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts;
    use super::*;
    use nodewise_machine::spec;

    fn check(spec: &str, limit: &str, unknown: &[u32], sizes: &[&str], notes: &[&str]) {
        let mut machine = spec::machine(spec).unwrap();
        for node in unknown {
            machine.nodes.get_mut(&NodeId::new(*node)).unwrap().meminfo.clear();
        }
        let mut said = Vec::new();
        let parts = parts::guest_nodes(&machine, &mut said);
        let found: Vec<String> = share(&parts, limit.parse().unwrap(), &mut said)
            .into_iter()
            .map(|size| size.map_or("-".to_owned(), Bytes::exact))
            .collect();
        assert_eq!(found, sizes, "{spec}");
        assert_eq!(said, notes, "{spec}");
    }

    #[test]
    fn sizes_keep_their_proportions_in_steps_of_128_mib() {
        check(
            "(1c 96G) (1c 32G)",
            "2G",
            &[],
            &["1536M", "512M"],
            &["node 0 has 1.5 GiB here instead of 96 GiB", "node 1 has 512 MiB here instead of 32 GiB"],
        );
    }

    #[test]
    fn no_node_shrinks_below_what_it_needs() {
        check(
            "(1c 1G) (1c) (4096G)",
            "1G",
            &[],
            &["256M", "-", "1G"],
            &[
                "node 2 has 1 GiB here instead of 4 TiB",
                "node 0 has 256 MiB here instead of 1 GiB",
                "the guest has 1.2 GiB of memory: 1 GiB does not hold its nodes",
            ],
        );
    }

    #[test]
    fn what_fits_is_rounded_to_what_can_be_built() {
        check(
            "(1c 1017908K) (1G)",
            "4G",
            &[],
            &["1G", "1G"],
            &["node 0 has 1 GiB here instead of 994.1 MiB"],
        );
    }

    #[test]
    fn sizes_that_differ_a_little_are_told_together() {
        check(
            "(1c 128769M) (1c 129013M)",
            "2G",
            &[],
            &["1G", "1G"],
            &["nodes 0-1 have 1 GiB each here instead of 125.8 GiB to 126 GiB"],
        );
        check(
            "(1c 128769M) (1c 64G) (1c 129013M)",
            "5G",
            &[],
            &["2G", "1G", "2G"],
            &[
                "nodes 0,2 have 2 GiB each here instead of 125.8 GiB to 126 GiB",
                "node 1 has 1 GiB here instead of 64 GiB",
            ],
        );
    }

    #[test]
    fn a_size_that_nobody_knows_is_said_to_be_unknown() {
        check(
            "2x(1c 4G)",
            "2G",
            &[0, 1],
            &["1G", "1G"],
            &["nodes 0-1 have 1 GiB each here: the machine's size is not known"],
        );
        check(
            "2x(1c 1G)",
            "2G",
            &[1],
            &["1G", "128M"],
            &["node 1 has 128 MiB here: the machine's size is not known"],
        );
    }
}
