//! The metrics: their names, their help, and where their values come from.

use std::collections::BTreeMap;

use nodewise_diagnose::MemoryUse;
use nodewise_diagnose::locality::NodeSize;
use nodewise_diagnose::sample::{NodeSample, PoolSample, Sample};
use nodewise_machine::{Access, Bytes, Machine, NodeId};

use super::{Family, Kind, Point, Value};
use crate::digest::running::{DEMOTED, PROMOTED};

/// CPU time is counted in ticks of this many to a second (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Every metric, in the order in which they are written.
pub(super) fn all(machine: &Machine, sample: &Sample, sizes: &BTreeMap<NodeId, NodeSize>) -> Vec<Family> {
    let mut families = memory(sample, sizes);
    families.extend(pools(sample));
    families.extend(processors(sample));
    families.extend(allocations(sample));
    families.extend(moves(sample));
    families.extend(costs(machine));
    families
}

fn gauge(name: &'static str, help: &'static str, points: Vec<Point>) -> Family {
    Family { name, kind: Kind::Gauge, help, points }
}

fn counter(name: &'static str, help: &'static str, points: Vec<Point>) -> Family {
    Family { name, kind: Kind::Counter, help, points }
}

/// A sample for each node that has the value.
fn by_node(sample: &Sample, value: impl Fn(&NodeSample) -> Option<u64>) -> Vec<Point> {
    let point = |node: &NodeSample| Some((vec![label(node.node)], Value::Whole(value(node)?)));
    sample.nodes.iter().filter_map(point).collect()
}

fn label(node: NodeId) -> (&'static str, String) {
    ("node", node.to_string())
}

fn memory(sample: &Sample, sizes: &BTreeMap<NodeId, NodeSize>) -> Vec<Family> {
    let size = |of: fn(&NodeSize) -> Option<Bytes>| {
        by_node(sample, |node| sizes.get(&node.node).and_then(of).map(Bytes::get))
    };
    let uses = sample.nodes.iter().filter_map(|node| Some((node.node, MemoryUse::from_node(node)?)));
    let used = uses.flat_map(|(node, memory)| {
        let parts = memory.parts().into_iter().chain([("rest", Some(memory.rest))]);
        parts.filter_map(move |(part, size)| {
            Some((vec![label(node), ("kind", part.to_owned())], Value::Whole(size?.get())))
        })
    });
    vec![
        gauge(
            "nodewise_node_memory_bytes",
            "Memory of a node that programs can have, what the kernel has not initialised yet included.",
            size(|size| Some(size.size)),
        ),
        gauge(
            "nodewise_node_memory_present_bytes",
            "RAM of a node, whether its allocator manages it or not.",
            size(|size| size.present),
        ),
        gauge("nodewise_node_memory_free_bytes", "Free memory of a node.", size(|size| size.free)),
        gauge(
            "nodewise_node_memory_high_watermark_bytes",
            "Free memory of a node up to which the kernel reclaims.",
            by_node(sample, |node| node.high_watermark.map(Bytes::get)),
        ),
        gauge(
            "nodewise_node_memory_used_bytes",
            "Memory of a node in use, by kind; all kinds together with free memory are its MemTotal.",
            used.collect(),
        ),
    ]
}

fn pools(sample: &Sample) -> Vec<Family> {
    let points = |value: fn(&PoolSample) -> Option<u64>| {
        let of_node = |node: &NodeSample| {
            let node_label = label(node.node);
            let point = |pool: &PoolSample| {
                let size = ("page_size_bytes", pool.page_size.get().to_string());
                Some((vec![node_label.clone(), size], Value::Whole(value(pool)?)))
            };
            node.pools.iter().filter_map(point).collect::<Vec<_>>()
        };
        sample.nodes.iter().flat_map(of_node).collect()
    };
    vec![
        gauge(
            "nodewise_node_huge_pages",
            "Huge pages in the pool of a node.",
            points(|pool| Some(pool.total)),
        ),
        gauge(
            "nodewise_node_huge_pages_free",
            "Huge pages in the pool of a node that are free.",
            points(|pool| pool.free),
        ),
        gauge(
            "nodewise_node_huge_pages_surplus",
            "Huge pages of a node above the size of its pool.",
            points(|pool| pool.surplus),
        ),
    ]
}

/// The modes of CPU time, by node exporter's names.
const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// CPU time of a node by mode, in ticks; a mode that one of its CPUs lacks is not known.
fn ticks(sample: &Sample, node: &NodeSample) -> Option<[Option<u64>; MODES.len()]> {
    let own = sample.cpus.iter().filter(|(cpu, _)| node.cpus.contains(*cpu));
    let times = own.map(|(_, times)| {
        let always = [times.user, times.nice, times.system, times.idle].map(Some);
        let [user, nice, system, idle] = always;
        [user, nice, system, idle, times.iowait, times.irq, times.softirq, times.steal]
    });
    times.reduce(|sum, own| std::array::from_fn(|mode| Some(sum[mode]?.saturating_add(own[mode]?))))
}

fn processors(sample: &Sample) -> Vec<Family> {
    let times = sample.nodes.iter().flat_map(|node| {
        let by_mode = MODES.into_iter().zip(ticks(sample, node).into_iter().flatten());
        let node = label(node.node);
        by_mode.filter_map(move |(mode, ticks)| {
            let seconds = ticks? as f64 / TICKS_PER_SECOND;
            Some((vec![node.clone(), ("mode", mode.to_owned())], Value::Real(seconds)))
        })
    });
    vec![
        gauge(
            "nodewise_node_cpus",
            "Online CPUs of a node.",
            by_node(sample, |node| u64::try_from(node.cpus.len()).ok()),
        ),
        counter(
            "nodewise_node_cpu_seconds",
            "Time of a node's online CPUs since boot, by mode.",
            times.collect(),
        ),
    ]
}

/// Allocations in metrics of their own: sums over different counters would mean nothing.
fn allocations(sample: &Sample) -> Vec<Family> {
    vec![
        counter(
            "nodewise_node_allocation_hit",
            "Pages that a node gave where they were wanted first (numa_hit).",
            by_node(sample, |node| node.allocations.hit),
        ),
        counter(
            "nodewise_node_allocation_miss",
            "Pages that a node gave though another was wanted (numa_miss).",
            by_node(sample, |node| node.allocations.miss),
        ),
        counter(
            "nodewise_node_allocation_foreign",
            "Pages that were wanted from a node and that another gave (numa_foreign).",
            by_node(sample, |node| node.allocations.foreign),
        ),
        counter(
            "nodewise_node_allocation_interleave_hit",
            "Pages that a node gave as its turn of an interleaving (interleave_hit).",
            by_node(sample, |node| node.allocations.interleave_hit),
        ),
        counter(
            "nodewise_node_allocation_local",
            "Pages that a node gave to its own CPUs (local_node).",
            by_node(sample, |node| node.allocations.local),
        ),
        counter(
            "nodewise_node_allocation_other",
            "Pages that a node gave to CPUs of other nodes (other_node).",
            by_node(sample, |node| node.allocations.other),
        ),
    ]
}

fn moves(sample: &Sample) -> Vec<Family> {
    let sum = |node: &NodeSample, names: &[&str]| {
        let known: Vec<u64> = names.iter().filter_map(|name| node.counters.get(name)).collect();
        (!known.is_empty()).then(|| known.into_iter().fold(0, u64::saturating_add))
    };
    let event = |name: &str| {
        let value = sample.events.get(name);
        value.map(|value| (Vec::new(), Value::Whole(value))).into_iter().collect()
    };
    vec![
        counter(
            "nodewise_node_promoted_pages",
            "Pages that came to a node from a slower tier.",
            by_node(sample, |node| sum(node, &PROMOTED)),
        ),
        counter(
            "nodewise_node_demoted_pages",
            "Pages that the reclaim of a node moved to a slower tier.",
            by_node(sample, |node| sum(node, &DEMOTED)),
        ),
        counter(
            "nodewise_balancing_hint_faults",
            "Faults by which automatic balancing finds who uses a page.",
            event("numa_hint_faults"),
        ),
        counter(
            "nodewise_balancing_hint_faults_local",
            "Hint faults on pages of the own node.",
            event("numa_hint_faults_local"),
        ),
        counter(
            "nodewise_balancing_migrated_pages",
            "Pages that automatic balancing moved.",
            event("numa_pages_migrated"),
        ),
    ]
}

fn costs(machine: &Machine) -> Vec<Family> {
    let distances = machine.distances.iter().map(|(from, to, distance)| {
        (vec![label(from), ("to", to.to_string())], Value::Whole(u64::from(*distance)))
    });
    let accesses = |value: fn(&Access) -> [Option<u32>; 2], in_base_unit: fn(f64) -> f64| {
        let points = machine.accesses.iter().flat_map(|access| {
            let class = access.class.number().to_string();
            let labels = |direction: &str| {
                vec![label(access.target), ("access", class.clone()), ("direction", direction.to_owned())]
            };
            let [read, write] = value(access);
            let point =
                |direction, value: u32| (labels(direction), Value::Real(in_base_unit(f64::from(value))));
            [read.map(|read| point("read", read)), write.map(|write| point("write", write))]
        });
        points.flatten().collect()
    };
    vec![
        gauge(
            "nodewise_node_distance",
            "Distance of a node's CPUs to the memory of another (SLIT).",
            distances.collect(),
        ),
        gauge(
            "nodewise_node_access_latency_seconds",
            "Latency of a node's memory from its best initiators, as the firmware says (HMAT).",
            accesses(|access| [access.read_latency_ns, access.write_latency_ns], |ns| ns / 1e9),
        ),
        gauge(
            "nodewise_node_access_bandwidth_bytes_per_second",
            "Bandwidth of a node's memory from its best initiators, as the firmware says (HMAT).",
            accesses(
                |access| [access.read_bandwidth_mb_per_s, access.write_bandwidth_mb_per_s],
                |mb| mb * 1e6,
            ),
        ),
    ]
}
