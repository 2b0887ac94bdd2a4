//! CXL windows: those that no range of the SRAT touches become nodes of their own.
//!
//! # Source
//! `acpi_parse_cfmws` and `numa_fill_memblks`; 5.16 to at least 7.2, with
//! [`Change::WindowsKeptApart`](crate::release::Change::WindowsKeptApart).

use nodewise_machine::NodeId;
use nodewise_machine::firmware::{Cedt, CedtEntry, Entry};

use super::domains::Domains;
use super::note::{Note, NoteKind};
use super::srat::Block;
use crate::ram::Range;
use crate::release::{Change, Release};

const TABLE: &str = "CEDT";

/// Takes the windows in the order of the table; gives the nodes that were made for them.
pub(super) fn add(
    table: &Cedt,
    domains: &mut Domains,
    blocks: &mut Vec<Block>,
    release: Release,
    notes: &mut Vec<Note>,
) -> Vec<NodeId> {
    let mut made = Vec::new();
    let told = blocks.len();
    let mut next = domains.largest().map_or(0, |largest| largest.saturating_add(1));
    for Entry { offset, body, .. } in &table.entries {
        let CedtEntry::FixedWindow(window) = body else { continue };
        let Some(end) = window.end().filter(|end| *end > window.head.base_hpa) else {
            let text = "a window that is empty or ends beyond all addresses is left out here";
            notes.push(Note::at(NoteKind::Ignored, TABLE, *offset, text));
            continue;
        };
        let start = window.head.base_hpa;
        let known = if release.has(Change::WindowsKeptApart) { told } else { blocks.len() };
        if fill(&mut blocks[..known], start, end) {
            let text = "the window meets memory of the SRAT: it is counted to that memory's node, and \
                        makes no node of its own";
            notes.push(Note::at(NoteKind::Unusual, TABLE, *offset, text));
            continue;
        }
        let Some(node) = domains.meet(next) else {
            let text = "there is no room for a node of this window: it and all behind it are ignored";
            notes.push(Note::at(NoteKind::Ignored, TABLE, *offset, text));
            break;
        };
        next += 1;
        made.push(node);
        blocks.push(Block {
            range: Range { start, end, node },
            offset: *offset,
            is_hot_pluggable: true,
            is_persistent: false,
        });
    }
    made
}

/// Gives what a window has beyond the ranges that it meets to these ranges; says whether it meets
/// any. A gap goes to the range behind it.
fn fill(blocks: &mut [Block], start: u64, end: u64) -> bool {
    let mut met: Vec<&mut Block> =
        blocks.iter_mut().filter(|block| block.range.start < end && start < block.range.end).collect();
    met.sort_by_key(|block| block.range.start);
    let Some(first) = met.first_mut() else { return false };
    first.range.start = first.range.start.min(start);
    if let Some(last) = met.last_mut() {
        last.range.end = last.range.end.max(end);
    }
    let mut reached = start;
    for block in met {
        if block.range.start > reached {
            block.range.start = reached;
        }
        reached = reached.max(block.range.end);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(blocks: &[(u64, u64)], window: (u64, u64), expected: Option<&[(u64, u64)]>) {
        let block = |(start, end): &(u64, u64)| Block {
            range: Range { start: *start, end: *end, node: NodeId::new(0) },
            offset: 0,
            is_hot_pluggable: false,
            is_persistent: false,
        };
        let mut blocks: Vec<Block> = blocks.iter().map(block).collect();
        let filled = fill(&mut blocks, window.0, window.1);
        let ranges: Vec<(u64, u64)> =
            blocks.iter().map(|block| (block.range.start, block.range.end)).collect();
        assert_eq!(filled.then_some(ranges.as_slice()), expected);
    }

    #[test]
    fn a_window_fills_the_gaps_between_the_ranges_that_it_meets() {
        check(&[(0, 10)], (10, 20), None);
        check(&[(0, 10)], (5, 20), Some(&[(0, 20)]));
        check(&[(30, 40), (10, 20)], (5, 50), Some(&[(20, 50), (5, 20)]));
        check(&[(10, 20), (100, 110)], (15, 18), Some(&[(10, 20), (100, 110)]));
    }
}
