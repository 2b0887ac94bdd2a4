//! The HMAT of a machine: costs from its best initiators, and caches before memory.

use nodewise_machine::firmware::hmat::{
    self, DataType, HmatFixed, Locality, MemorySideCache, MemorySideCacheHead,
};
use nodewise_machine::firmware::{HmatEntry, Subtables, Table};
use nodewise_machine::{Access, AccessClass, Machine, NodeId, node};

use super::Hardware;

/// The largest entry: 65535 means unreachable.
const MOST: u32 = 0xfffe;
/// Picoseconds per ns: the base unit of latencies.
const PICOSECONDS: u64 = 1000;

/// A quantity of a table, and its value in an access.
type Quantity = (DataType, fn(&Access) -> Option<u32>);

const QUANTITIES: [Quantity; 4] = [
    (DataType::ReadLatency, |access| access.read_latency_ns),
    (DataType::WriteLatency, |access| access.write_latency_ns),
    (DataType::ReadBandwidth, |access| access.read_bandwidth_mb_per_s),
    (DataType::WriteBandwidth, |access| access.write_bandwidth_mb_per_s),
];

/// The table; `None` where neither the machine nor the hardware has one. One without structures takes the place of one
/// that the machine has not.
pub(super) fn hmat(
    machine: &Machine,
    hardware: &Hardware,
    nodes: &[NodeId],
    notes: &mut Vec<String>,
) -> Option<Table> {
    let mut entries: Vec<HmatEntry> =
        QUANTITIES.iter().filter_map(|quantity| locality(machine, nodes, *quantity, notes)).collect();
    let domains = || (0..).zip(nodes).filter_map(|(domain, node)| Some((domain, machine.nodes.get(node)?)));
    let caches = domains().flat_map(|(domain, node)| {
        let levels = node.memory_side_caches.len();
        node.memory_side_caches.iter().map(move |own| (domain, levels, own))
    });
    for (domain, levels, own) in caches {
        match cache(domain, levels, own) {
            Some(entry) => entries.push(entry),
            None => notes.push(format!(
                "the size of a memory-side cache of node {} is not known: it is left out",
                nodes.get(domain as usize).copied().unwrap_or(NodeId::new(domain))
            )),
        }
    }
    let is_wanted = !entries.is_empty() || hardware.has_own(hmat::SIGNATURE);
    let header = hardware.header(hmat::SIGNATURE, 2);
    is_wanted.then(|| Table::Hmat(Subtables::new(header, HmatFixed { reserved: 0 }, entries)))
}

/// One quantity from all nodes with CPUs to all with figures. What the machine does not give is 0: unknown.
fn locality(
    machine: &Machine,
    nodes: &[NodeId],
    (data, value): Quantity,
    notes: &mut Vec<String>,
) -> Option<HmatEntry> {
    let best = |node: NodeId| {
        [AccessClass::Any, AccessClass::Cpu].into_iter().find_map(|class| machine.access(node, class))
    };
    let numbered = || (0..).zip(nodes.iter().copied());
    let with_cpus = machine.nodes_with_cpus();
    let initiators: Vec<(u32, NodeId)> = numbered().filter(|(_, node)| with_cpus.contains(*node)).collect();
    let targets: Vec<(u32, &Access)> =
        numbered().filter_map(|(domain, node)| Some((domain, best(node)?))).collect();
    let cell = |from: NodeId, access: &Access| {
        value(access).filter(|_| access.initiators.contains(from)).unwrap_or_default()
    };
    let cells: Vec<u32> = initiators
        .iter()
        .flat_map(|(_, from)| targets.iter().map(move |(_, access)| cell(*from, access)))
        .collect();
    let unit = unit(&cells)?;
    let entries: Vec<u16> = cells.iter().map(|cell| cell.div_ceil(unit).min(MOST) as u16).collect();
    if cells.iter().any(|cell| cell % unit != 0) {
        notes.push(format!("{} is in units of {unit} in the table, and rounded", data.name()));
    }
    let base = if data.is_latency() { PICOSECONDS } else { 1 } * u64::from(unit);
    let domains = (
        initiators.iter().map(|(domain, _)| *domain).collect(),
        targets.iter().map(|(domain, _)| *domain).collect(),
    );
    Some(HmatEntry::Locality(Locality::new(data, base, domains, entries)))
}

/// The unit in which all values fit: 1, else what all have in common, else one that rounds. `None` where all are 0.
fn unit(cells: &[u32]) -> Option<u32> {
    let largest = cells.iter().copied().max().filter(|largest| *largest > 0)?;
    let common = cells.iter().fold(0, |one, other| divisor(one, *other));
    let least = largest.div_ceil(MOST);
    Some(if least == 1 || common < least { least } else { common })
}

const fn divisor(mut one: u32, mut other: u32) -> u32 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// A cache; `None` where its size is not known.
fn cache(memory_domain: u32, levels: usize, own: &node::MemorySideCache) -> Option<HmatEntry> {
    // Sysfs has 0 for direct mapped and write back, where tables have 1.
    let word = |value: Option<u32>| value.filter(|value| *value < 2).map_or(0, |value| value + 1);
    let line = own.line_size.unwrap_or_default().min(u16::MAX.into());
    let attributes = (levels.min(0xf) as u32)
        | u32::from(own.level & 0xf) << 4
        | word(own.indexing) << 8
        | word(own.write_policy) << 12
        | line << 16;
    let head = MemorySideCacheHead {
        memory_domain,
        reserved1: 0,
        size: own.size?.get(),
        attributes,
        address_mode: 0,
        handles: 0,
    };
    Some(HmatEntry::MemorySideCache(MemorySideCache { head, handles: Vec::new() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_holds_all_values_exactly_where_it_can() {
        assert_eq!(unit(&[0, 250, 300]), Some(1));
        assert_eq!(unit(&[200_000, 120_000]), Some(40_000));
        assert_eq!(unit(&[200_000, 120_001]), Some(4));
        assert_eq!(unit(&[u32::MAX, 1]), Some(65_539));
        assert_eq!(unit(&[0, 0]), None);
        assert_eq!(unit(&[]), None);
    }
}
