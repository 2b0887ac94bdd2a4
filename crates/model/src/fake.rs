//! Emulated nodes: how `numa=fake=` cuts memory into pieces.
//!
//! # Source
//! `mm/numa_emulation.c` (until 6.11 `arch/x86/mm/numa_emulation.c`) behaves alike from 4.18 to at
//! least 7.2; the Raspberry Pi kernel 6.6 has its own, simpler cut. Compared with the ranges that
//! 6.12 printed.
//!
//! # Units
//! Addresses and sizes in bytes.

mod cut;
pub mod outcome;
mod spec;

use nodewise_machine::NodeId;

use crate::ram::{Architecture, Range};
pub use spec::{Fake, FakeError, Form};

/// The smallest piece, and the step in which pieces grow.
const STEP: u64 = 32 << 20;

/// An emulated node's piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The emulated node; several pieces may have the same.
    pub node: NodeId,
    /// The node it is cut from.
    pub physical: NodeId,
    /// The first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
}

/// Cuts memory into the pieces of an emulation, in the order in which the kernel makes them.
///
/// `page` is the size of a page, `ram` is where there is memory, `blocks` are the ranges of the physical nodes, holes included;
/// `None` where the kernel gives up and starts without emulation.
pub fn pieces(
    form: Form,
    architecture: Architecture,
    page: u64,
    ram: &[Range],
    blocks: &[Range],
) -> Option<Vec<Piece>> {
    let cutter = cut::Cutter::new(architecture, page, ram, blocks);
    match form {
        Form::Count(count) => cutter.by_count(count),
        Form::Size(size) => cutter.by_size(size.get()),
        Form::PerNode(count) => cutter.per_node(count),
    }
}

/// The pieces that the Raspberry Pi kernel 6.6 makes of all RAM: equal slices of the addresses, holes
/// not counted, the rest to the last. All CPUs stay on node 0, and every distance is 20.
pub fn raspberry_pi_6_6(count: u32, page: u64, ram: &[Range]) -> Option<Vec<Piece>> {
    let start = ram.iter().map(|range| range.start).min()?;
    let end = ram.iter().map(|range| range.end).max()?;
    let size = (end - start) / u64::from(count.max(1)) / page * page;
    let piece = |number: u32| {
        let first = start + u64::from(number) * size;
        let behind = if number + 1 == count { end } else { first + size };
        Piece { node: NodeId::new(number), physical: NodeId::new(0), start: first, end: behind }
    };
    (size > 0 && count > 0).then(|| (0..count).map(piece).collect())
}

/// The distance between two emulated nodes: that of the nodes they are cut from, unless the
/// parameter names one.
pub fn distance(fake: &Fake, nodes: u32, from: &Piece, to: &Piece, physical: u32) -> u32 {
    let at = u64::from(from.node.number()) * u64::from(nodes) + u64::from(to.node.number());
    usize::try_from(at).ok().and_then(|at| fake.distances.get(at)).copied().unwrap_or(physical)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn range(start: u64, end: u64, node: u32) -> Range {
        Range { start, end, node: NodeId::new(node) }
    }

    #[test]
    fn physical_nodes_take_turns() {
        let blocks = [range(4 << 30, 5 << 30, 0), range(5 << 30, 6 << 30, 1)];
        let pieces = pieces(Form::Count(4), Architecture::X86, 4096, &blocks, &blocks).unwrap();
        let nodes: Vec<(u32, u32, u64)> = pieces
            .iter()
            .map(|piece| (piece.node.number(), piece.physical.number(), piece.start >> 20))
            .collect();
        assert_eq!(nodes, [(0, 0, 4096), (1, 1, 5120), (2, 0, 4608), (3, 1, 5632)]);
    }

    #[test]
    fn the_pi_kernel_6_6_slices_addresses() {
        let pieces = raspberry_pi_6_6(8, 4096, &[range(0, 8 << 30, 0)]).unwrap();
        assert_eq!(pieces.len(), 8);
        assert!(pieces.iter().all(|piece| piece.end - piece.start == 1 << 30));
        assert_eq!(raspberry_pi_6_6(0, 4096, &[range(0, 8 << 30, 0)]), None);
    }

    #[test]
    fn distances_are_those_of_the_physical_nodes_unless_named() {
        let fake: Fake = "2:10,15,15,10".parse().unwrap();
        let piece = |node: u32| Piece { node: NodeId::new(node), physical: NodeId::new(0), start: 0, end: 0 };
        assert_eq!(distance(&fake, 2, &piece(0), &piece(1), 10), 15);
        let all: Fake = "2".parse().unwrap();
        assert_eq!(distance(&all, 2, &piece(0), &piece(1), 10), 10);
        // The last number counts only with a comma behind it.
        assert_eq!(fake.distances, [10, 15, 15]);
    }

    proptest! {
        #[test]
        fn pieces_cover_each_block_once(
            sizes in proptest::collection::vec(1u64..4096, 1..5),
            count in 1u32..40,
            size in 1u64..4096,
            kind in 0u8..3,
            hole in any::<bool>(),
        ) {
            let mut at = if hole { 3 << 30 } else { 1 << 20 };
            let blocks: Vec<Range> = sizes.iter().zip(0..).map(|(size, node)| {
                at += size << 20;
                range(at - (size << 20), at, node)
            }).collect();
            let form = match kind {
                0 => Form::Count(count),
                1 => Form::Size(nodewise_machine::Bytes::from_mib(size)),
                _ => Form::PerNode(count),
            };
            if let Some(pieces) = pieces(form, Architecture::X86, 4096, &blocks, &blocks) {
                let mut sorted = pieces.clone();
                sorted.sort_unstable_by_key(|piece| piece.start);
                for pair in sorted.windows(2) {
                    prop_assert_eq!(pair[0].end, pair[1].start);
                }
                let total: u64 = pieces.iter().map(|piece| piece.end - piece.start).sum();
                prop_assert_eq!(total, sizes.iter().sum::<u64>() << 20);
                prop_assert!(pieces.len() <= 1024);
            }
        }

        #[test]
        fn any_parameter_is_read_or_refused(text in any::<String>(), near in "(0x)?[0-9]{1,25}[UMGK]?(:[0-9,]{0,9})?") {
            let _ = text.parse::<Fake>();
            let _ = near.parse::<Fake>();
        }
    }
}
