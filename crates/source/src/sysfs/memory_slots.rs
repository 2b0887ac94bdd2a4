//! Memory slots, from the firmware's tables (SMBIOS).

use nodewise_machine::memory_slot::locator::place::place;
use nodewise_machine::printable::printable;
use nodewise_machine::{Machine, MemoryMap, MemoryRange, MemorySlots, NodeId, OddityKind};

use super::Reader;
use crate::boot;
use crate::parse::number::hex_digits;
use crate::paths;
use crate::smbios::files::{self, Found};

/// The size of a block of memory that can go offline, in hexadecimal digits.
const BLOCK_SIZE: &str = "/sys/devices/system/memory/block_size_bytes";
const VENDOR: &str = "/sys/class/dmi/id/sys_vendor";

/// Fills the slots.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
    let Found { mut slots, problems, text_problems, not_read } = files::from_tree(reader.tree);
    for (path, problem) in problems {
        reader.note_in(OddityKind::Unparseable, &path, printable(&problem.to_string()).into_owned());
    }
    if let Some((path, problems)) = text_problems {
        reader.problems(path, &problems);
    }
    if slots.slots.is_empty() {
        machine.memory_slots = MemorySlots { slots: Vec::new(), not_read };
        return;
    }
    if slots.board.vendor.is_none() {
        let vendor = reader.tree.read_text(VENDOR).ok().flatten();
        slots.board.vendor = vendor.map(|vendor| vendor.trim().to_owned());
    }
    if machine.nodes.len() > 1 && slots.ranges.iter().any(|ranges| !ranges.is_empty()) {
        let map = node_ranges(reader, machine);
        slots.board.nodes = slots.ranges.iter().map(|ranges| node_of(ranges, &map)).collect();
    }
    place(&mut slots.slots, &slots.board, machine);
    machine.memory_slots = MemorySlots { slots: slots.slots, not_read: None };
}

/// Where the memory of each node is: as known, else by the blocks that can go offline, else as the kernel's log
/// has it.
fn node_ranges(reader: &mut Reader<'_>, machine: &Machine) -> Vec<MemoryRange> {
    let MemoryMap { ram, nodes } = &machine.memory_map;
    if !nodes.is_empty() || !ram.is_empty() {
        return nodes.iter().chain(ram).copied().collect();
    }
    let size = reader.tree.read_text(BLOCK_SIZE).ok().flatten();
    let size = size.and_then(|text| hex_digits(text.trim())).filter(|size| *size > 0);
    if let Some(size) = size {
        let mut ranges = Vec::new();
        for node in machine.nodes.keys() {
            for block in reader.numbered(paths::of_node(*node, "").trim_end_matches('/'), "memory") {
                let start = u64::from(block).saturating_mul(size);
                ranges.push(MemoryRange { start, end: start.saturating_add(size), node: *node });
            }
        }
        if !ranges.is_empty() {
            return ranges;
        }
    }
    let log = boot::log(reader.tree).ok().flatten().unwrap_or_default();
    let ranges = if log.firmware.is_empty() { log.ram } else { log.firmware };
    ranges
        .into_iter()
        .map(|range| MemoryRange { start: range.start, end: range.end, node: range.node })
        .collect()
}

/// The one node in which all of these addresses lie. Holes between them have no node.
fn node_of(ranges: &[(u64, u64)], map: &[MemoryRange]) -> Option<NodeId> {
    let touches =
        |range: &MemoryRange| ranges.iter().any(|(start, end)| *start < range.end && range.start < *end);
    let mut nodes = map.iter().filter(|range| touches(range)).map(|range| range.node);
    let first = nodes.next()?;
    nodes.all(|node| node == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_belongs_to_a_node_only_where_all_its_addresses_do() {
        let range = |start, end, node| MemoryRange { start, end, node: NodeId::new(node) };
        let map = [range(0, 100, 0), range(200, 300, 1), range(300, 400, 0)];
        let check = |ranges: &[(u64, u64)], expected: Option<u32>| {
            assert_eq!(node_of(ranges, &map), expected.map(NodeId::new), "{ranges:?}");
        };
        check(&[(0, 150)], Some(0));
        check(&[(0, 50), (300, 400)], Some(0));
        check(&[(200, 300)], Some(1));
        check(&[(0, 300)], None);
        check(&[(100, 200)], None);
        check(&[], None);
    }
}
