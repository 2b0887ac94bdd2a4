//! A machine as the facts that a peer prints of it.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::{Cache, Cpu, CpuSet, Device, DeviceClass, Machine, NodeId};

/// In the words of hwloc.
pub fn as_hwloc(machine: &Machine) -> BTreeSet<String> {
    let mut facts = groups(machine);
    facts.extend(
        by(machine, |cpu| cpu.cluster.map(|cluster| (cpu.package, cpu.die, cluster)))
            .map(|set| format!("cluster {set}")),
    );
    for cache in &machine.caches {
        facts.insert(format!("cache {} {} {}", cache.name(), size(cache), cache.cpus));
    }
    for node in machine.nodes.values() {
        facts.extend(cpus_of_node(machine, node.id));
        facts.extend(node.memory_total().map(|size| format!("node {} memory {}", node.id, size.get())));
        let caches = node.memory_side_caches.iter().filter_map(|cache| cache.size);
        facts.extend(caches.map(|size| format!("side-cache {} node {}", size.get(), node.id)));
    }
    if machine.nodes.len() > 1 {
        facts.extend(
            machine.distances.iter().map(|(from, to, distance)| format!("distance {from} {to} {distance}")),
        );
    }
    facts.extend(machine.devices.iter().flat_map(|device| names(machine, device)));
    let kinds = machine.cpu_kinds();
    if kinds.len() > 1 {
        facts.extend(kinds.iter().map(|kind| format!("kind {}", kind.cpus)));
    }
    let online = machine.online_cpus();
    let models = machine.cpu_models.iter();
    facts.extend(models.map(|model| format!("model {} {}", model.cpus.intersection(&online), model.name)));
    facts
}

/// In the words of lscpu.
pub fn as_lscpu(machine: &Machine) -> BTreeSet<String> {
    let mut facts = groups(machine);
    facts.insert(format!("online {}", machine.online_cpus()));
    facts.extend(machine.nodes.keys().filter_map(|node| cpus_of_node(machine, *node)));
    let speeds = by_key(machine, |cpu| cpu.max_frequency_khz.map(|khz| khz / 1000));
    facts.extend(speeds.into_iter().map(|(mhz, set)| format!("max-mhz {mhz} {set}")));
    let mut sizes: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    // By level, kind and first CPU, so that the first is that of the first CPU.
    for cache in &machine.caches {
        facts.insert(format!("cache {} {}", cache.name(), cache.cpus));
        if let Some(size) = cache.size {
            sizes.entry(cache.name()).or_insert((size.get(), 0)).1 += size.get();
        }
    }
    facts.extend(
        sizes.into_iter().map(|(name, (first, all))| format!("cache-size {name} first {first} all {all}")),
    );
    facts.extend(machine.cpu_models.iter().map(|model| format!("model {}", model.name)));
    facts
}

/// Packages, cores, books and drawers, which both peers know.
fn groups(machine: &Machine) -> BTreeSet<String> {
    let mut facts: BTreeSet<String> = machine.cores().values().map(|cpus| format!("core {cpus}")).collect();
    facts.extend(machine.packages().values().map(|cpus| format!("package {cpus}")));
    facts.extend(by(machine, |cpu| cpu.drawer).map(|cpus| format!("drawer {cpus}")));
    facts.extend(
        by(machine, |cpu| cpu.book.map(|book| (cpu.drawer, book))).map(|cpus| format!("book {cpus}")),
    );
    facts
}

fn by<K: Ord>(machine: &Machine, key: impl Fn(&Cpu) -> Option<K>) -> impl Iterator<Item = CpuSet> {
    by_key(machine, key).into_values()
}

/// Online CPUs by what they have in common.
fn by_key<K: Ord>(machine: &Machine, key: impl Fn(&Cpu) -> Option<K>) -> BTreeMap<K, CpuSet> {
    let mut sets: BTreeMap<K, CpuSet> = BTreeMap::new();
    for cpu in machine.cpus.values().filter(|cpu| cpu.online) {
        if let Some(key) = key(cpu) {
            sets.entry(key).or_default().insert(cpu.id);
        }
    }
    sets
}

fn cpus_of_node(machine: &Machine, node: NodeId) -> Option<String> {
    Some(format!("node {node} cpus {}", machine.cpus_of(node)).trim().to_owned())
}

fn size(cache: &Cache) -> String {
    // hwloc writes 0 for an unknown size.
    cache.size.map_or_else(|| "0".to_owned(), |size| size.get().to_string())
}

fn names(machine: &Machine, device: &Device) -> Vec<String> {
    let home = machine.home_of(device).map(|node| machine.cpus_of(node));
    // A node without CPUs is near to none; hwloc places such a device beside all.
    let near = home.filter(|cpus| !cpus.is_empty()).unwrap_or_else(|| machine.online_cpus());
    let shown = |class: DeviceClass| {
        matches!(class, DeviceClass::Block | DeviceClass::Net | DeviceClass::Infiniband | DeviceClass::Dax)
    };
    let pci = device.pci.map(|address| format!("pci {address} near {near}"));
    let names = device.names.iter().filter(|name| shown(name.class));
    pci.into_iter().chain(names.map(|name| format!("device {} near {near}", name.name))).collect()
}
