//! Nodes, their memory, distances, and the firmware's attributes of two machines.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::node::MemorySideCache;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Access, AccessClass, Machine, MeminfoValue, MemoryRange, Node, NodeId};

use super::{DiffExtent, FactGroup, FactValue, NumberOf, Subject, Walk, side_by_side};

/// Compares them.
pub(super) fn compare(walk: &mut Walk<'_>) {
    walk.begin(FactGroup::Nodes);
    let machines = [walk.a, walk.b];
    let size = |machine: &Machine| machine.system_memory.map(FactValue::Size);
    walk.fact("system_memory_bytes", "memory of the machine", Subject::Machine, machines.map(size));
    let possible = machines.map(|machine| {
        (!machine.possible_nodes.is_empty()).then(|| FactValue::Nodes(machine.possible_nodes.clone()))
    });
    walk.fact("possible_nodes", "possible nodes", Subject::Machine, possible);
    if walk.both_have("nodes", "nodes", machines.map(|machine| machine.nodes.len())) {
        nodes(walk);
    }
    distances(walk);
    accesses(walk);
}

fn nodes(walk: &mut Walk<'_>) {
    let (a, b) = (walk.a, walk.b);
    let names_cpus = |machine: &Machine| machine.nodes.values().any(|node| !node.cpus.is_empty());
    let names_cpus = [a, b].map(names_cpus);
    let all = side_by_side(
        a.nodes.iter().map(|(id, node)| (*id, node)),
        b.nodes.iter().map(|(id, node)| (*id, node)),
    );
    for (id, nodes) in all {
        let subject = || Subject::Node(id);
        walk.existence("node", "node", subject(), nodes.map(|node| node.is_some()));
        let [Some(one), Some(other)] = nodes else { continue };
        let both = [one, other];
        let cpus = [0, 1].map(|side| names_cpus[side].then(|| FactValue::Cpus(both[side].cpus.clone())));
        walk.fact("cpus", "CPUs", subject(), cpus);
        walk.fact(
            "memory_bytes",
            "memory",
            subject(),
            both.map(|node| node.memory_total().map(FactValue::Size)),
        );
        walk.fact(
            "present_bytes",
            "RAM present",
            subject(),
            both.map(|node| node.present.map(FactValue::Size)),
        );
        let initiator = both.map(|node| node.generic_initiator.map(FactValue::Switch));
        walk.fact("generic_initiator", "initiator without CPUs", subject(), initiator);
        if walk.extent == DiffExtent::Everything {
            moving(walk, id, both);
        }
    }
    tiers(walk);
    side_caches(walk);
    addresses(walk);
}

/// Compares the fields of meminfo that change by themselves, and the state of pools.
fn moving(walk: &mut Walk<'_>, id: NodeId, nodes: [&Node; 2]) {
    let fields = |node: &'_ Node| -> BTreeMap<String, MeminfoValue> {
        node.meminfo.iter().map(|field| (field.name.clone(), field.value)).collect()
    };
    let fields = nodes.map(fields);
    let names: BTreeSet<&String> =
        fields.iter().flat_map(BTreeMap::keys).filter(|name| *name != "MemTotal").collect_set();
    for name in names {
        let is_size = fields.iter().any(|fields| matches!(fields.get(name), Some(MeminfoValue::Size(_))));
        let values = [&fields[0], &fields[1]].map(|fields| {
            fields.get(name).map(|value| match value {
                MeminfoValue::Size(size) => FactValue::Size(*size),
                MeminfoValue::Count(count) => FactValue::Number(*count),
            })
        });
        let word = format!("meminfo.{name}{}", if is_size { "_bytes" } else { "" });
        walk.fact(word, name.clone(), Subject::Node(id), values);
    }
    let sizes: BTreeSet<_> =
        nodes.iter().flat_map(|node| &node.huge_pools).map(|pool| pool.page_size).collect_set();
    for size in sizes {
        let pools = nodes.map(|node| node.huge_pools.iter().find(|pool| pool.page_size == size));
        let free = pools.map(|pool| pool.and_then(|pool| pool.free).map(FactValue::Number));
        let surplus = pools.map(|pool| pool.and_then(|pool| pool.surplus).map(FactValue::Number));
        let bytes = size.get();
        walk.fact(
            format!("free_huge_pages_{bytes}"),
            format!("free huge pages of {size}"),
            Subject::Node(id),
            free,
        );
        walk.fact(
            format!("surplus_huge_pages_{bytes}"),
            format!("surplus huge pages of {size}"),
            Subject::Node(id),
            surplus,
        );
    }
}

fn tiers(walk: &mut Walk<'_>) {
    let machines = [walk.a, walk.b];
    if !walk.both_have("tiers", "memory tiers", machines.map(|machine| machine.tiers.len())) {
        return;
    }
    let tier = |machine: &Machine, node: NodeId| {
        let tier = machine.tiers.iter().find(|tier| tier.nodes.contains(node));
        Some(tier.map_or(FactValue::Absent, |tier| FactValue::Number(u64::from(tier.id.number()))))
    };
    for node in &walk.a.node_ids().intersection(&walk.b.node_ids()) {
        walk.fact("tier", "memory tier", Subject::Node(node), machines.map(|machine| tier(machine, node)));
    }
}

fn side_caches(walk: &mut Walk<'_>) {
    let count = |machine: &Machine| -> usize {
        machine.nodes.values().map(|node| node.memory_side_caches.len()).sum()
    };
    if !walk.both_have("memory_side_caches", "memory-side caches", [count(walk.a), count(walk.b)]) {
        return;
    }
    for (id, a) in &walk.a.nodes {
        let Some(b) = walk.b.nodes.get(id) else { continue };
        let by_level = |node: &'_ Node| -> Vec<(u8, MemorySideCache)> {
            node.memory_side_caches.iter().map(|cache| (cache.level, cache.clone())).collect()
        };
        let (a, b) = (by_level(a), by_level(b));
        let all = side_by_side(
            a.iter().map(|(level, cache)| (*level, cache)),
            b.iter().map(|(level, cache)| (*level, cache)),
        );
        for (level, caches) in all {
            let subject = || Subject::Node(*id);
            let there = caches
                .map(|cache| Some(if cache.is_some() { FactValue::Present } else { FactValue::Absent }));
            walk.fact(
                format!("memory_side_cache_{level}"),
                format!("memory-side cache {level}"),
                subject(),
                there,
            );
            let [Some(one), Some(other)] = caches else { continue };
            let both = [one, other];
            let size = both.map(|cache| cache.size.map(FactValue::Size));
            walk.fact(
                format!("memory_side_cache_{level}_bytes"),
                format!("size of memory-side cache {level}"),
                subject(),
                size,
            );
            let facts: [(&str, NumberOf<MemorySideCache>); 3] = [
                ("line size", |cache| cache.line_size),
                ("indexing", |cache| cache.indexing),
                ("write policy", |cache| cache.write_policy),
            ];
            for (name, of) in facts {
                let values = both.map(|cache| of(cache).map(|number| FactValue::Number(number.into())));
                let word = format!("memory_side_cache_{level}_{}", name.replace(' ', "_"));
                walk.fact(word, format!("{name} of memory-side cache {level}"), subject(), values);
            }
        }
    }
}

/// The ranges of addresses that a machine has as facts.
type RangesOf = fn(&Machine) -> &Vec<MemoryRange>;

/// Compares where the memory of each node lies.
fn addresses(walk: &mut Walk<'_>) {
    let machines = [walk.a, walk.b];
    let maps: [(&'static str, &'static str, RangesOf); 2] = [
        ("ram_addresses", "addresses of RAM", |machine| &machine.memory_map.ram),
        ("node_addresses", "addresses of the node", |machine| &machine.memory_map.nodes),
    ];
    for (word, label, of) in maps {
        if !walk.both_have(word, label, machines.map(|machine| of(machine).len())) {
            continue;
        }
        let of_node = |machine: &Machine, node: NodeId| {
            let ranges = of(machine).iter().filter(|range| range.node == node);
            let ranges: Vec<String> =
                ranges.map(|range| format!("0x{:x}-0x{:x}", range.start, range.end)).collect();
            Some(if ranges.is_empty() { FactValue::Absent } else { FactValue::Text(ranges.join(", ")) })
        };
        for node in &walk.a.node_ids().intersection(&walk.b.node_ids()) {
            walk.fact(word, label, Subject::Node(node), machines.map(|machine| of_node(machine, node)));
        }
    }
}

fn distances(walk: &mut Walk<'_>) {
    walk.begin(FactGroup::Distances);
    let (a, b) = (walk.a, walk.b);
    if !walk.both_have(
        "distances",
        "distances",
        [&a.distances, &b.distances].map(|matrix| matrix.iter().count()),
    ) {
        return;
    }
    let nodes = a.node_ids().intersection(&b.node_ids());
    for from in &nodes {
        for to in &nodes {
            let values = [a, b].map(|machine| {
                machine.distances.get(from, to).map(|value| FactValue::Number(u64::from(*value)))
            });
            walk.fact("distance", "distance", Subject::Pair(from, to), values);
        }
    }
}

fn accesses(walk: &mut Walk<'_>) {
    walk.begin(FactGroup::Attributes);
    let (a, b) = (walk.a, walk.b);
    if !walk.both_have(
        "attributes",
        "latency and bandwidth from the firmware",
        [a.accesses.len(), b.accesses.len()],
    ) {
        return;
    }
    let nodes = a.node_ids().intersection(&b.node_ids());
    let key = |access: &Access| (access.class, access.target);
    let all = side_by_side(
        a.accesses.iter().map(|access| (key(access), access)),
        b.accesses.iter().map(|access| (key(access), access)),
    );
    for ((class, target), both) in all {
        if !nodes.contains(target) {
            continue;
        }
        let (prefix, from) = match class {
            AccessClass::Any => ("access0", ""),
            AccessClass::Cpu => ("access1", " from CPUs"),
        };
        let initiators = both.map(|access| access.map(|access| FactValue::Nodes(access.initiators.clone())));
        walk.fact(
            format!("{prefix}_initiators"),
            format!("nearest initiators{}", if from.is_empty() { "" } else { " with CPUs" }),
            Subject::Node(target),
            initiators,
        );
        let facts: [(&str, &'static str, &str, NumberOf<Access>); 4] = [
            ("read latency", "ns", "ns", |access| access.read_latency_ns),
            ("write latency", "ns", "ns", |access| access.write_latency_ns),
            ("read bandwidth", "MB/s", "mb_per_s", |access| access.read_bandwidth_mb_per_s),
            ("write bandwidth", "MB/s", "mb_per_s", |access| access.write_bandwidth_mb_per_s),
        ];
        for (name, unit, ending, of) in facts {
            let values =
                both.map(|access| access.and_then(of).map(|number| FactValue::Number(number.into())));
            let word = format!("{prefix}_{}_{ending}", name.replace(' ', "_"));
            walk.fact_in(unit, word, format!("{name}{from}"), Subject::Node(target), values);
        }
    }
}
