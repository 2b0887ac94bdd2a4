//! The guest's HMAT: from which node each memory is reached best, and at what cost.

use nodewise_machine::check::node_names;
use nodewise_machine::{Access, AccessClass, Machine, NodeId, NodeMatrix, NodeSet};

use super::GuestNode;

/// The HMAT's figures for one initiator and one target. `None`: it has none.
///
/// # Units
/// As the kernel prints them in `/sys/devices/system/node/nodeN/access0/initiators/`: latency in
/// ns, bandwidth in MB/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessCell {
    /// The guest's node whose CPUs reach out.
    pub initiator: NodeId,
    /// The guest's node whose memory is reached.
    pub target: NodeId,
    /// Read latency, ns.
    pub read_latency_ns: Option<u32>,
    /// Write latency, ns.
    pub write_latency_ns: Option<u32>,
    /// Read bandwidth, MB/s.
    pub read_bandwidth_mb_per_s: Option<u32>,
    /// Write bandwidth, MB/s.
    pub write_bandwidth_mb_per_s: Option<u32>,
}

/// Cells of the guest's HMAT; sets the initiator of every node. Without accesses the guest gets no
/// HMAT and nodes no initiator.
pub(super) fn between(
    machine: &Machine,
    nodes: &mut [GuestNode],
    distances: &NodeMatrix<u32>,
    notes: &mut Vec<String>,
) -> Vec<AccessCell> {
    note_what_is_not_built(machine, notes);
    let with_cpus: NodeSet = nodes.iter().filter(|node| !node.cpus.is_empty()).map(|node| node.id).collect();
    let mut cells = Vec::new();
    for node in nodes.iter().filter(|node| node.memory.is_some()) {
        let Some((access, initiators)) = best_access(machine, nodes, &with_cpus, node) else { continue };
        cells.extend(initiators.iter().map(|initiator| AccessCell {
            initiator,
            target: node.id,
            read_latency_ns: access.read_latency_ns,
            write_latency_ns: access.write_latency_ns,
            read_bandwidth_mb_per_s: access.read_bandwidth_mb_per_s,
            write_bandwidth_mb_per_s: access.write_bandwidth_mb_per_s,
        }));
    }
    if cells.is_empty() {
        return cells;
    }
    name_initiators(nodes, &cells, &with_cpus, distances, notes);
    for column in COLUMNS {
        column.fit(&mut cells, notes);
    }
    cells
}

/// Finds the machine's figures for reaching this memory from nodes that have CPUs in the guest, and
/// those nodes.
fn best_access<'a>(
    machine: &'a Machine,
    nodes: &[GuestNode],
    with_cpus: &NodeSet,
    target: &GuestNode,
) -> Option<(&'a Access, NodeSet)> {
    [AccessClass::Any, AccessClass::Cpu].into_iter().find_map(|class| {
        let access = machine.access(target.stands_for, class)?;
        let initiators: NodeSet = nodes
            .iter()
            .filter(|node| access.initiators.contains(node.stands_for) && with_cpus.contains(node.id))
            .map(|node| node.id)
            .collect();
        (!initiators.is_empty()).then_some((access, initiators))
    })
}

/// Chooses the one initiator that QEMU lets each node have.
///
/// A node with CPUs is its own (`numa_cpu_pre_plug` accepts nothing else); another's is the nearest
/// of those that the machine names, or of all, since QEMU refuses a node without one.
fn name_initiators(
    nodes: &mut [GuestNode],
    cells: &[AccessCell],
    with_cpus: &NodeSet,
    distances: &NodeMatrix<u32>,
    notes: &mut Vec<String>,
) {
    for node in nodes {
        let told: NodeSet =
            cells.iter().filter(|cell| cell.target == node.id).map(|cell| cell.initiator).collect();
        let candidates = if told.is_empty() { with_cpus } else { &told };
        let nearest = candidates.iter().min_by_key(|from| (distances.get(*from, node.id), *from));
        let chosen = if with_cpus.contains(node.id) { Some(node.id) } else { nearest };
        node.initiator = chosen;
        let Some(chosen) = chosen else { continue };
        if told.is_empty() && !with_cpus.contains(node.id) && node.memory.is_some() {
            notes.push(format!(
                "the HMAT names {} as initiator of {}, because QEMU wants one: the machine names none",
                in_guest(chosen),
                in_guest(node.id)
            ));
        } else if !told.is_empty() && told != NodeSet::from_iter([chosen]) {
            notes.push(format!(
                "the HMAT names {} as initiator of {}, because QEMU takes one: the machine names the guest's \
                 {}",
                in_guest(chosen),
                in_guest(node.id),
                node_names(&told)
            ));
        }
    }
}

fn in_guest(node: NodeId) -> String {
    format!("node {node}")
}

/// One of the four values of a cell, each of which is a table of its own in the HMAT.
struct Column {
    name: &'static str,
    unit: &'static str,
    /// The largest value that Linux takes.
    limit: u32,
    field: fn(&mut AccessCell) -> &mut Option<u32>,
}

/// The largest latency: Linux computes in picoseconds and 32 bits (`hmat_normalize`,
/// drivers/acpi/numa/hmat.c, 6.12), and takes what does not fit for unknown.
const LARGEST_LATENCY: u32 = u32::MAX / 1000;

const COLUMNS: [Column; 4] = [
    Column {
        name: "read latencies",
        unit: "ns",
        limit: LARGEST_LATENCY,
        field: |cell| &mut cell.read_latency_ns,
    },
    Column {
        name: "write latencies",
        unit: "ns",
        limit: LARGEST_LATENCY,
        field: |cell| &mut cell.write_latency_ns,
    },
    Column {
        name: "read bandwidths",
        unit: "MB/s",
        limit: u32::MAX,
        field: |cell| &mut cell.read_bandwidth_mb_per_s,
    },
    Column {
        name: "write bandwidths",
        unit: "MB/s",
        limit: u32::MAX,
        field: |cell| &mut cell.write_bandwidth_mb_per_s,
    },
];

/// Bits of an entry of the HMAT.
const ENTRY_BITS: u32 = 16;
/// The entry that means "unreachable".
const UNREACHABLE: u32 = 0xffff;

impl Column {
    /// Makes the values fit into one table: its entries are 16 bits times a power of two that is
    /// common to all (`parse_numa_hmat_lb`, hw/core/numa.c, QEMU 10.0), so they are rounded to
    /// multiples of that power.
    fn fit(&self, cells: &mut [AccessCell], notes: &mut Vec<String>) {
        // 0 is "unknown" in the table as it is in sysfs.
        for value in cells.iter_mut().map(self.field) {
            *value = value.filter(|value| *value > 0);
        }
        let largest = cells.iter_mut().filter_map(|cell| *(self.field)(cell)).max().unwrap_or(0);
        let largest = largest.min(self.limit);
        let mut shift = (u32::BITS - largest.leading_zeros()).saturating_sub(ENTRY_BITS);
        if rounded(largest, shift) >> shift >= UNREACHABLE {
            shift += 1;
        }
        let mut changed = false;
        for value in cells.iter_mut().map(self.field) {
            let here = value.map(|value| rounded(value.min(self.limit), shift));
            changed |= here != *value;
            *value = here;
        }
        if changed {
            notes.push(format!(
                "{} are rounded to multiples of {} {}: an entry of the HMAT has 16 bits",
                self.name,
                1u64 << shift,
                self.unit
            ));
        }
    }
}

/// The multiple of `1 << shift` that is nearest, but never 0.
fn rounded(value: u32, shift: u32) -> u32 {
    let step = 1u64 << shift;
    let multiple = ((u64::from(value) + step / 2) / step).max(1) * step;
    u32::try_from(multiple).unwrap_or(u32::MAX - (step as u32 - 1))
}

fn note_what_is_not_built(machine: &Machine, notes: &mut Vec<String>) {
    let named = |select: &dyn Fn(&nodewise_machine::Node) -> bool| -> NodeSet {
        machine.nodes.values().filter(|node| select(node)).map(|node| node.id).collect()
    };
    let cached = named(&|node| !node.memory_side_caches.is_empty());
    if !cached.is_empty() {
        notes.push(format!("the memory-side caches of {} are not built", node_names(&cached)));
    }
    let generic = named(&|node| node.generic_initiator == Some(true));
    if !generic.is_empty() {
        notes.push(format!("the initiators of {} that are not CPUs are not built", node_names(&generic)));
    }
    if machine.tiers.len() > 1 && machine.accesses.is_empty() {
        notes.push(format!(
            "the machine has {} memory tiers and names no latencies: the guest's kernel sees one tier",
            machine.tiers.len()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layout, Limits};
    use super::*;
    use nodewise_machine::spec;
    use proptest::prelude::{Strategy, any, prop_assert, proptest};

    /// Initiators of all nodes, and cells as `from>to read/write latency read/write bandwidth`.
    fn check(spec: &str, initiators: &str, cells: &[&str], notes: &[&str]) {
        let machine = spec::machine(spec).unwrap();
        let layout = Layout::new(&machine, &Limits::default()).unwrap();
        let named: Vec<String> = layout
            .nodes
            .iter()
            .map(|node| node.initiator.map_or("-".to_owned(), |id| id.to_string()))
            .collect();
        assert_eq!(named.join(" "), initiators, "{spec}");
        let number = |value: Option<u32>| value.map_or("-".to_owned(), |value| value.to_string());
        let found: Vec<String> = layout
            .accesses
            .iter()
            .map(|cell| {
                format!(
                    "{}>{} {}/{} {}/{}",
                    cell.initiator,
                    cell.target,
                    number(cell.read_latency_ns),
                    number(cell.write_latency_ns),
                    number(cell.read_bandwidth_mb_per_s),
                    number(cell.write_bandwidth_mb_per_s)
                )
            })
            .collect();
        assert_eq!(found, cells, "{spec}");
        assert_eq!(layout.notes, notes, "{spec}");
    }

    #[test]
    fn a_machine_without_accesses_gets_no_hmat() {
        check("(2c 512M) (512M)", "- -", &[], &[]);
    }

    #[test]
    fn values_reach_their_cells() {
        check(
            "(2c 512M) (512M); access=0>1:250ns,300ns/30G; access=0>0:100ns/60G",
            "0 0",
            &["0>0 100/100 60000/60000", "0>1 250/300 30000/30000"],
            &[],
        );
    }

    #[test]
    fn values_are_rounded_when_a_table_cannot_hold_all_of_them() {
        check(
            "(2c 512M) (512M); access=0>1:250ns/30001M; access=0>0:100ns/131072M",
            "0 0",
            &["0>0 100/100 131072/131072", "0>1 250/250 30000/30000"],
            &[
                "read bandwidths are rounded to multiples of 4 MB/s: an entry of the HMAT has 16 bits",
                "write bandwidths are rounded to multiples of 4 MB/s: an entry of the HMAT has 16 bits",
            ],
        );
    }

    #[test]
    fn qemu_takes_one_initiator_per_node() {
        check(
            "(1c 512M) (1c 512M) (512M) (512M); dist=10,21,30,20/21,10,14,20/30,14,10,20/20,20,20,10; \
             access=0-1>2:250ns/30G",
            "0 1 1 0",
            &["0>2 250/250 30000/30000", "1>2 250/250 30000/30000"],
            &[
                "the HMAT names node 1 as initiator of node 2, because QEMU takes one: the machine names the \
                 guest's nodes 0-1",
                "the HMAT names node 0 as initiator of node 3, because QEMU wants one: the machine names none",
            ],
        );
    }

    #[test]
    fn initiators_without_cpus_are_left_out() {
        check("(2c 512M) (512M) (512M); access=1>2:90ns", "- - -", &[], &[]);
    }

    #[test]
    fn nodes_are_named_as_the_guest_numbers_them() {
        check(
            "(512M) (2c 512M); access=1>0:90ns",
            "0 0",
            &["0>1 90/90 -/-"],
            &["node 1 of the machine is node 0 of the guest, node 0 is node 1"],
        );
    }

    fn any_value() -> impl Strategy<Value = Option<u32>> {
        (any::<Option<u32>>(), 0u32..32).prop_map(|(value, shift)| value.map(|value| value >> shift))
    }

    proptest! {
        #[test]
        fn every_table_can_be_written(values in proptest::collection::vec(any_value(), 1..8)) {
            for column in COLUMNS {
                let node = NodeId::new(0);
                let mut cells: Vec<AccessCell> = values
                    .iter()
                    .map(|value| AccessCell {
                        initiator: node,
                        target: node,
                        read_latency_ns: *value,
                        write_latency_ns: *value,
                        read_bandwidth_mb_per_s: *value,
                        write_bandwidth_mb_per_s: *value,
                    })
                    .collect();
                column.fit(&mut cells, &mut Vec::new());
                let fitted: Vec<Option<u32>> = cells.iter_mut().map(|cell| *(column.field)(cell)).collect();
                let bits = fitted.iter().flatten().fold(0, |bits, value| bits | value);
                let (first, last) = (bits.trailing_zeros() % u32::BITS, u32::BITS - bits.leading_zeros());
                prop_assert!(last.saturating_sub(first) <= ENTRY_BITS);
                for (before, here) in values.iter().zip(&fitted) {
                    prop_assert!(before.is_some_and(|value| value > 0) == here.is_some());
                    prop_assert!(here.is_none_or(|here| here > 0 && here >> first < UNREACHABLE));
                }
            }
        }
    }
}
