//! Shares of the nodes in CPUs and memory of the hardware.

use nodewise_machine::check::node_names;
use nodewise_machine::{Bytes, Machine, NodeId};

use super::super::blocks::join;
use super::{ComposeError, CpuName, Hardware, PAGE, Range};

/// Boundaries between nodes that are computed lie at multiples of this, a section of x86-64's memory model, so that no
/// block of memory belongs to two; in small hardware at the next.
const STEPS: [u64; 3] = [128 << 20, 2 << 20, PAGE];
/// Holes in RAM up to this belong to the node around them: the firmware keeps such pieces for itself.
const SMALL_HOLE: u64 = 16 << 20;

/// A node on its way into tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) node: NodeId,
    /// The places of its online CPUs among all that are online.
    pub(super) cpus: Vec<usize>,
    /// Bytes of its RAM, in whole pages; 0 where there is none.
    pub(super) memory: u64,
    is_size_known: bool,
}

/// The nodes with CPUs, then those with memory alone; others have nothing that a table could name.
pub(super) fn parts(machine: &Machine) -> Vec<Part> {
    let online = machine.online_cpus();
    let mut parts: Vec<Part> = machine
        .nodes
        .keys()
        .map(|node| {
            let size = machine.ram_of(*node);
            let own = online.iter().enumerate().filter(|(_, cpu)| machine.node_of(*cpu) == Some(*node));
            Part {
                node: *node,
                cpus: own.map(|(place, _)| place).collect(),
                memory: size.map_or(0, |size| size.get().div_ceil(PAGE).saturating_mul(PAGE)),
                is_size_known: size.is_some(),
            }
        })
        .collect();
    parts.retain(|part| !part.cpus.is_empty() || part.memory > 0 || !part.is_size_known);
    // Stable: within both groups the order stays.
    parts.sort_by_key(|part| part.cpus.is_empty());
    parts
}

/// The nodes of a machine with known sizes.
pub(super) fn checked(machine: &Machine, notes: &mut Vec<String>) -> Result<Vec<Part>, ComposeError> {
    let parts = parts(machine);
    let unknown: Vec<NodeId> =
        parts.iter().filter(|part| !part.is_size_known).map(|part| part.node).collect();
    if !unknown.is_empty() {
        return Err(ComposeError::UnknownSize(unknown));
    }
    if parts.iter().all(|part| part.memory == 0) {
        return Err(ComposeError::NoMemory);
    }
    if parts.iter().all(|part| part.cpus.is_empty()) {
        return Err(ComposeError::NoCpu);
    }
    let left_out: Vec<NodeId> =
        machine.nodes.keys().filter(|node| parts.iter().all(|part| part.node != **node)).copied().collect();
    if !left_out.is_empty() {
        notes.push(format!("left out, being without CPUs and memory: {}", node_names(left_out)));
    }
    let renumbered: Vec<String> = (0..)
        .zip(&parts)
        .filter(|(number, part)| part.node.number() != *number)
        .map(|(number, part)| format!("node {} of the machine is node {number} here", part.node))
        .collect();
    if !renumbered.is_empty() {
        notes.push(renumbered.join(", "));
    }
    Ok(parts)
}

/// The domain of each CPU, domain by domain.
pub(super) fn cpus(
    parts: &[Part],
    hardware: &Hardware,
    notes: &mut Vec<String>,
) -> Result<Vec<(CpuName, u32)>, ComposeError> {
    let counts: Vec<u64> = parts.iter().map(|part| part.cpus.len() as u64).collect();
    let (wanted, there) = (counts.iter().sum::<u64>(), hardware.cpus.len() as u64);
    let of_domain = |names: &mut dyn Iterator<Item = CpuName>, domain: u32| -> Vec<(CpuName, u32)> {
        names.map(|name| (name, domain)).collect()
    };
    if wanted == there && parts.iter().flat_map(|part| &part.cpus).all(|place| *place < hardware.cpus.len()) {
        let named = |part: &Part, domain| {
            of_domain(&mut part.cpus.iter().filter_map(|place| hardware.cpus.get(*place).copied()), domain)
        };
        return Ok((0..).zip(parts).flat_map(|(domain, part)| named(part, domain)).collect());
    }
    let shares = shared(&counts, there, 1);
    let shares = shares.ok_or(ComposeError::TooFewCpus {
        nodes: counts.iter().filter(|count| **count > 0).count(),
        cpus: hardware.cpus.len(),
    })?;
    notes.push(format!("the hardware has {there} CPUs, and the machine {wanted}: each node has a share"));
    let mut names = hardware.cpus.iter().copied();
    let named = |(domain, share): (u32, u64)| of_domain(&mut names.by_ref().take(share as usize), domain);
    Ok((0..).zip(shares).flat_map(named).collect())
}

/// The ranges of the nodes, by domain.
pub(super) fn memory(
    parts: &[Part],
    hardware: &Hardware,
    notes: &mut Vec<String>,
) -> Result<Vec<Range>, ComposeError> {
    let sizes: Vec<u64> = parts.iter().map(|part| part.memory).collect();
    let ram = join(hardware.ram.iter().copied().filter(|(start, end)| start < end).collect());
    let there = ram.iter().map(|(start, end)| end - start).fold(0, u64::saturating_add);
    let wanted = sizes.iter().copied().fold(0, u64::saturating_add);
    if wanted == there {
        return Ok(cut(&sizes, &ram));
    }
    let shares = STEPS.into_iter().find_map(|step| shared(&sizes, there, step));
    let shares = shares.ok_or(ComposeError::TooLittleMemory {
        nodes: sizes.iter().filter(|size| **size > 0).count(),
        size: Bytes::new(there),
        least: Bytes::new(PAGE),
    })?;
    let (there, wanted) = (Bytes::new(there), Bytes::new(wanted));
    notes.push(format!("the hardware has {there} of RAM, and the machine {wanted}: each node has a share"));
    Ok(cut(&shares, &ram))
}

/// Divides what is there in proportion, in whole steps; the last share has what is left over. `None` where one that is
/// not 0 would have none.
fn shared(wanted: &[u64], there: u64, step: u64) -> Option<Vec<u64>> {
    let all: u128 = wanted.iter().copied().map(u128::from).sum();
    let last = wanted.iter().rposition(|part| *part > 0)?;
    // Bits beyond 64 do not change a share, and their product would not fit.
    let excess = (u128::BITS - all.leading_zeros()).saturating_sub(u64::BITS);
    let (mut before, mut given) = (0u128, 0u64);
    let mut shares = Vec::with_capacity(wanted.len());
    for (at, part) in wanted.iter().enumerate() {
        before += u128::from(*part);
        let exact = ((before >> excess) * u128::from(there) / (all >> excess)) as u64;
        let end = if at >= last { there } else { exact.saturating_add(step / 2) / step * step };
        // Of few CPUs rounding would leave small nodes without any.
        let least = if *part > 0 { given.checked_add(step)? } else { given };
        let later = wanted[at + 1..].iter().filter(|part| **part > 0).count() as u64;
        let most = there.checked_sub(later.checked_mul(step)?)?;
        let end = if *part > 0 { end.max(least).min(most) } else { given };
        if *part > 0 && end <= given {
            return None;
        }
        shares.push(end - given);
        given = end;
    }
    Some(shares)
}

/// Cuts RAM, in ascending order, into pieces of these sizes. Small holes within a piece, and behind it, belong to it.
fn cut(sizes: &[u64], ram: &[(u64, u64)]) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    let mut spans = ram.iter().copied();
    let mut span = spans.next();
    for (number, size) in (0..).zip(sizes) {
        let node = NodeId::new(number);
        let mut left = *size;
        while let Some((start, end)) = span.filter(|_| left > 0) {
            let taken = left.min(end - start);
            let last = ranges.last_mut().filter(|last| start.saturating_sub(last.end) <= SMALL_HOLE);
            match last {
                Some(last) if last.node == node => last.end = start + taken,
                last => {
                    if let Some(last) = last {
                        last.end = start;
                    }
                    ranges.push(Range { start, end: start + taken, node });
                }
            }
            left -= taken;
            span = if start + taken < end { Some((start + taken, end)) } else { spans.next() };
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_in_proportion_and_none_is_empty() {
        let check = |wanted: &[u64], there, step, expected: Option<&[u64]>| {
            assert_eq!(shared(wanted, there, step).as_deref(), expected, "{wanted:?} of {there} in {step}");
        };
        check(&[8, 8], 4, 1, Some(&[2, 2]));
        check(&[12, 0, 4], 8, 1, Some(&[6, 0, 2]));
        check(&[100, 1, 1], 4, 1, Some(&[2, 1, 1]));
        check(&[1, 1, 1], 2, 1, None);
        check(&[3, 1], 100, 8, Some(&[72, 28]));
        check(&[0, 0], 4, 1, None);
        check(&[u64::MAX, u64::MAX], u64::MAX, 1, Some(&[u64::MAX / 2, u64::MAX / 2 + 1]));
        assert!(
            shared(&[u64::MAX; 9], u64::MAX, 1).is_some_and(|shares| shares.iter().all(|share| *share > 0))
        );
    }

    #[test]
    fn small_holes_belong_to_a_node_and_large_ones_to_none() {
        let range = |start, end, node| Range { start, end, node: NodeId::new(node) };
        let mib = 1 << 20;
        let ram = [(4096, 640 << 10), (mib, 100 * mib), (4096 * mib, 4196 * mib)];
        let all: u64 = ram.iter().map(|(start, end)| end - start).sum();
        let found = cut(&[50 * mib, 0, all - 50 * mib], &ram);
        let split = mib + 50 * mib - ((640 << 10) - 4096);
        assert_eq!(
            found,
            [range(4096, split, 0), range(split, 100 * mib, 2), range(4096 * mib, 4196 * mib, 2)]
        );
        let found = cut(&[(640 << 10) - 4096, all - (640 << 10) + 4096], &ram);
        assert_eq!(found[0], range(4096, mib, 0), "the hole behind it is its own");
    }
}
