//! Where RAM lies in the physical address space, and to which node it belongs.

use nodewise_machine::{Bytes, Machine, NodeId};

/// Bytes of an ordinary page on x86-64 and, as distributions build it, on arm64.
pub const PAGE: u64 = 4096;

/// The processor's architecture, as far as the layout of memory depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64.
    X86,
    /// arm64.
    Arm,
}

impl Architecture {
    /// The architecture of a machine; x86-64 where it does not say.
    pub fn of(machine: &Machine) -> Self {
        if machine.architecture.as_deref() == Some("aarch64") { Self::Arm } else { Self::X86 }
    }

    /// Number of nodes that distributions build their kernels for (`MAX_NUMNODES`): `NODES_SHIFT`
    /// is 10 on x86-64 and 4 on arm64.
    pub const fn max_nodes(self) -> u32 {
        match self {
            Self::X86 => 1024,
            Self::Arm => 16,
        }
    }
}

/// A range of RAM. The end is the first byte behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// The first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
    /// The node it belongs to.
    pub node: NodeId,
}

impl Range {
    /// The numbers of its whole pages: the first, and the one behind the last.
    pub const fn pages(self) -> (u64, u64) {
        (self.start.div_ceil(PAGE), self.end / PAGE)
    }
}

/// First byte of RAM behind the BIOS area of a PC, and the end of the RAM before it.
const BIOS_AREA: (u64, u64) = (0x9f000, 0x10_0000);
/// The gap below 4 GiB in which PCs and most servers map devices.
const DEVICE_GAP: (u64, u64) = (3 << 30, 4 << 30);
/// Where RAM starts on QEMU's arm64 machine and on several servers.
const ARM_START: u64 = 1 << 30;

/// The ranges that a machine would have when it does not say: its nodes one after the other by
/// number, from the bottom of the address space, around the gaps that such machines have.
///
/// A node's size is what its kernel manages, so the ranges hold that many pages and those that a
/// kernel keeps for itself are left out.
pub fn assumed(machine: &Machine) -> Vec<Range> {
    let gaps: &[(u64, u64)] = match Architecture::of(machine) {
        Architecture::X86 => &[(0, BIOS_AREA.1), DEVICE_GAP],
        Architecture::Arm => &[(0, ARM_START)],
    };
    let mut at = 0;
    let mut ranges = Vec::new();
    for node in machine.nodes.values() {
        let size = node.memory_total().map_or(0, Bytes::get) / PAGE * PAGE;
        at = place(node.id, size, at, gaps, &mut ranges);
    }
    ranges
}

/// Adds ranges of `size` bytes from `at` on, around the gaps; gives the end of the last.
fn place(node: NodeId, size: u64, mut at: u64, gaps: &[(u64, u64)], ranges: &mut Vec<Range>) -> u64 {
    let mut left = size;
    while left > 0 {
        if let Some((_, end)) = gaps.iter().find(|(start, end)| (*start..*end).contains(&at)) {
            at = *end;
        }
        let limit = gaps.iter().map(|(start, _)| *start).filter(|start| *start > at).min();
        let room = limit.map_or(u64::MAX - at, |limit| limit - at);
        let part = left.min(room);
        ranges.push(Range { start: at, end: at + part, node });
        at += part;
        if part < left && limit.is_none() {
            // Sizes that together exceed the address space: only a hostile machine file has them.
            break;
        }
        left -= part;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    fn check(spec: &str, expected: &[(u64, u64, u32)]) {
        let machine = spec::machine(spec).unwrap();
        let ranges: Vec<(u64, u64, u32)> = assumed(&machine)
            .iter()
            .map(|range| (range.start >> 20, range.end >> 20, range.node.number()))
            .collect();
        assert_eq!(ranges, expected, "{spec}");
    }

    #[test]
    fn a_pc_has_gaps_at_one_mebibyte_and_below_four_gibibytes() {
        check("(1c 4G) (1c 1G)", &[(1, 3072, 0), (4096, 5121, 0), (5121, 6145, 1)]);
        check("(1c 1G); arch=aarch64", &[(1024, 2048, 0)]);
    }

    #[test]
    fn nodes_without_memory_have_no_range() {
        check("(1c) (1c 1G)", &[(1, 1025, 1)]);
    }

    #[test]
    fn sizes_beyond_the_address_space_are_survived() {
        let machine = spec::machine("64x(1c 16383P)").unwrap();
        assert!(assumed(&machine).iter().all(|range| range.start <= range.end));
    }
}
