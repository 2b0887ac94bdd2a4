//! Ranges of memory: fitted to RAM, joined, and judged.
//!
//! # Source
//! `numa_cleanup_meminfo`, `numa_register_meminfo` and `numa_meminfo_cover_memory`.

use nodewise_machine::{Bytes, NodeId};

use super::note::{Note, NoteKind};
use super::srat::Block;
use crate::ram::{Architecture, Range};

const TABLE: &str = "SRAT";
/// RAM of no node up to which x86 goes on.
const TOLERATED: u64 = 1 << 20;

/// A range of addresses: the first byte, and the first one behind it.
pub type Span = (u64, u64);

/// The ranges as they are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cleaned {
    /// Ranges that hold RAM, in the order of the table.
    pub(super) used: Vec<Range>,
    /// Ranges in which memory may appear later.
    pub(super) reserved: Vec<Range>,
}

/// RAM where its place is unknown: the ranges that are not marked as pluggable or persistent, or
/// all where every range is.
pub(super) fn assumed_ram(blocks: &[Block]) -> Vec<Span> {
    let plain = |block: &&Block| !block.is_hot_pluggable && !block.is_persistent;
    let span = |block: &Block| (block.range.start, block.range.end);
    let mut spans: Vec<Span> = blocks.iter().filter(plain).map(span).collect();
    if spans.is_empty() {
        spans = blocks.iter().filter(|block| !block.is_persistent).map(span).collect();
    }
    join(spans)
}

/// Ranges in ascending order, with those that touch made one.
pub(super) fn join(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|(start, end)| start < end);
    spans.sort_unstable();
    let mut joined: Vec<Span> = Vec::new();
    for (start, end) in spans {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// Fits the ranges to RAM and joins them; `Err` when the kernel rejects them all.
pub(super) fn clean(
    blocks: &[Block],
    ram: &[Span],
    architecture: Architecture,
    notes: &mut Vec<Note>,
) -> Result<Cleaned, Note> {
    let mut cleaned = Cleaned::default();
    let (Some(low), Some(high)) = (ram.first().map(|span| span.0), ram.last().map(|span| span.1)) else {
        return Err(Note::new(NoteKind::Rejected, TABLE, "no range holds RAM, so there is one node"));
    };
    for block in blocks {
        let Range { start, end, node } = block.range;
        if !ram.iter().any(|span| span.0 < end && start < span.1) {
            cleaned.reserved.push(block.range);
            continue;
        }
        if end > high {
            cleaned.reserved.push(Range { start: high, end, node });
        }
        let range = Range { start: start.max(low), end: end.min(high), node };
        if range.start < range.end {
            cleaned.used.push(range);
        }
    }
    refuse_overlap(&cleaned.used, notes)?;
    cleaned.used = merged(cleaned.used);
    refuse_uncovered(&cleaned.used, ram, architecture, notes)?;
    Ok(cleaned)
}

/// Ranges of two nodes must not overlap; of one node they may.
fn refuse_overlap(used: &[Range], notes: &mut Vec<Note>) -> Result<(), Note> {
    let mut sorted: Vec<Range> = used.to_vec();
    sorted.sort_unstable();
    let mut told = 0;
    // The range so far that reaches furthest, and the furthest of any other node than its own.
    let mut furthest: Option<Range> = None;
    let mut other: Option<Range> = None;
    for range in sorted {
        for before in [furthest, other].into_iter().flatten().filter(|before| range.start < before.end) {
            if before.node != range.node {
                let text = format!(
                    "memory of nodes {} and {} overlaps at {:#x}: the kernel rejects the table and has one node",
                    before.node, range.node, range.start
                );
                return Err(Note::new(NoteKind::Rejected, TABLE, text));
            }
            told += 1;
        }
        match furthest {
            Some(best) if range.end <= best.end => {
                if best.node != range.node && other.is_none_or(|other| range.end > other.end) {
                    other = Some(range);
                }
            }
            Some(best) => {
                if best.node != range.node {
                    other = Some(best);
                }
                furthest = Some(range);
            }
            None => furthest = Some(range),
        }
    }
    if told > 0 {
        let text = format!("{told} ranges overlap others of the same node: the kernel warns and goes on");
        notes.push(Note::new(NoteKind::Unusual, TABLE, text));
    }
    Ok(())
}

/// Joins ranges of one node that have no other node's between them, holes included.
fn merged(mut used: Vec<Range>) -> Vec<Range> {
    let mut at = 0;
    while at < used.len() {
        let others = join_others(&used, used[at].node);
        let mut next = at + 1;
        while next < used.len() {
            let (one, two) = (used[at], used[next]);
            let (start, end) = (one.start.min(two.start), one.end.max(two.end));
            // The first of another node that ends behind the start.
            let other = others.partition_point(|span| span.1 <= start);
            let is_between = others.get(other).is_some_and(|span| span.0 < end);
            if one.node == two.node && !is_between {
                used[at] = Range { start, end, node: one.node };
                used.remove(next);
            } else {
                next += 1;
            }
        }
        at += 1;
    }
    used
}

/// The addresses of all nodes but one.
fn join_others(used: &[Range], node: NodeId) -> Vec<Span> {
    let others = used.iter().filter(|range| range.node != node);
    join(others.map(|range| (range.start, range.end)).collect())
}

/// RAM must belong to a node, up to a rest.
fn refuse_uncovered(
    used: &[Range],
    ram: &[Span],
    architecture: Architecture,
    notes: &mut Vec<Note>,
) -> Result<(), Note> {
    let uncovered = uncovered(used, ram);
    let missing: u64 = uncovered.iter().map(|(start, end)| end - start).sum();
    let (Some((start, _)), tolerated) = (
        uncovered.first(),
        match architecture {
            Architecture::X86 => TOLERATED,
            _ => 0,
        },
    ) else {
        return Ok(());
    };
    if missing > tolerated {
        let text = format!(
            "{} of RAM at {start:#x} belongs to no node: the kernel rejects the table and has one node",
            Bytes::new(missing)
        );
        return Err(Note::new(NoteKind::Rejected, TABLE, text));
    }
    let last = uncovered.last().zip(ram.last());
    let is_alone = last.is_some_and(|(piece, ram)| piece.1 == ram.1);
    let (kind, what) = if is_alone {
        (
            NoteKind::DoesNotBoot,
            "the kernel accepts that, and dies in free_area_init on this piece at the end",
        )
    } else {
        (NoteKind::Unusual, "the kernel accepts up to 1 MiB")
    };
    let text = format!("{} of RAM at {start:#x} belongs to no node: {what}", Bytes::new(missing));
    notes.push(Note::new(kind, TABLE, text));
    Ok(())
}

/// The parts of RAM in no range.
fn uncovered(used: &[Range], ram: &[Span]) -> Vec<Span> {
    let covered = join(used.iter().map(|range| (range.start, range.end)).collect());
    let mut uncovered = Vec::new();
    for (start, end) in ram {
        let mut at = *start;
        for (from, to) in covered.iter().filter(|(from, to)| from < end && start < to) {
            if *from > at {
                uncovered.push((at, *from));
            }
            at = at.max(*to);
        }
        if at < *end {
            uncovered.push((at, *end));
        }
    }
    uncovered
}

/// Bytes of RAM in ranges of a node.
pub(super) fn ram_of(node: NodeId, used: &[Range], ram: &[Span]) -> u64 {
    let own: Vec<Span> =
        used.iter().filter(|range| range.node == node).map(|range| (range.start, range.end)).collect();
    let common = |(start, end): &Span, (from, to): &Span| end.min(to).saturating_sub(*start.max(from));
    let own = join(own);
    own.iter().flat_map(|one| ram.iter().map(move |two| common(one, two))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn range((node, start, end): Piece) -> Range {
        Range { start, end, node: NodeId::new(node) }
    }

    /// Node, first byte, first byte behind it.
    type Piece = (u32, u64, u64);

    /// Ranges that are used, those kept for later, and notes; or why all is rejected.
    fn check(blocks: &[Piece], ram: &[Span], expected: Result<(&[Piece], &[Piece]), &str>, notes: &[&str]) {
        let block =
            |tuple| Block { range: range(tuple), offset: 0, is_hot_pluggable: false, is_persistent: false };
        let blocks: Vec<Block> = blocks.iter().copied().map(block).collect();
        let mut told = Vec::new();
        let cleaned = clean(&blocks, ram, Architecture::X86, &mut told);
        let list = |ranges: &[Piece]| ranges.iter().copied().map(range).collect::<Vec<_>>();
        match (cleaned, expected) {
            (Ok(cleaned), Ok((used, reserved))) => {
                assert_eq!((cleaned.used, cleaned.reserved), (list(used), list(reserved)));
            }
            (Err(note), Err(text)) => assert_eq!(note.text, text),
            other => panic!("{other:?}"),
        }
        assert_eq!(told.iter().map(|note| note.text.as_str()).collect::<Vec<_>>(), notes);
    }

    #[test]
    fn ranges_are_cut_to_ram_and_the_rest_is_kept_for_later() {
        check(
            &[(0, 0, 100), (1, 100, 300), (2, 500, 600)],
            &[(10, 50), (60, 200)],
            Ok((&[(0, 10, 100), (1, 100, 200)], &[(1, 200, 300), (2, 500, 600)])),
            &[],
        );
    }

    #[test]
    fn ranges_of_a_node_are_joined_unless_another_node_lies_between() {
        check(&[(0, 0, 10), (0, 20, 30)], &[(0, 10), (20, 30)], Ok((&[(0, 0, 30)], &[])), &[]);
        check(
            &[(0, 0, 10), (1, 10, 20), (0, 20, 30)],
            &[(0, 30)],
            Ok((&[(0, 0, 10), (1, 10, 20), (0, 20, 30)], &[])),
            &[],
        );
    }

    #[test]
    fn nodes_must_not_overlap() {
        check(
            &[(0, 0, 100), (0, 10, 20), (1, 90, 200)],
            &[(0, 200)],
            Err("memory of nodes 0 and 1 overlaps at 0x5a: the kernel rejects the table and has one node"),
            &[],
        );
        check(
            &[(0, 0, 100), (0, 50, 200)],
            &[(0, 200)],
            Ok((&[(0, 0, 200)], &[])),
            &["1 ranges overlap others of the same node: the kernel warns and goes on"],
        );
    }

    #[test]
    fn ram_of_no_node_costs_the_table_or_the_boot() {
        check(
            &[(0, 0, 64 * MIB)],
            &[(0, 66 * MIB)],
            Err(
                "2 MiB of RAM at 0x4000000 belongs to no node: the kernel rejects the table and has one node",
            ),
            &[],
        );
        check(
            &[(0, 0, 64 * MIB)],
            &[(0, 65 * MIB)],
            Ok((&[(0, 0, 64 * MIB)], &[])),
            &["1 MiB of RAM at 0x4000000 belongs to no node: the kernel accepts that, and dies in \
               free_area_init on this piece at the end"],
        );
        check(
            &[(0, MIB, 64 * MIB), (1, 64 * MIB, 65 * MIB)],
            &[(0, 65 * MIB)],
            Ok((&[(0, MIB, 64 * MIB), (1, 64 * MIB, 65 * MIB)], &[])),
            &["1 MiB of RAM at 0x0 belongs to no node: the kernel accepts up to 1 MiB"],
        );
    }
}
