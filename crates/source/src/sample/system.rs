//! The machine, its nodes and CPUs.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CpuId, NodeCounters, NodeId, NodeSet};

use super::missing::Missing;
use super::reading::Reading;
use super::{Moment, NodeSample, PoolSample, Sample};
use crate::limits::bound_cpus;
use crate::parse::counters::Counters;
use crate::parse::zoneinfo::Zone;
use crate::parse::{counters, meminfo, number, pressure, proc_stat, set, zoneinfo};
use crate::sysfs::page_of;
use crate::tree::{Kept, Tree};
use crate::{facts, paths};

/// `/proc/zoneinfo` has a block for each CPU in each zone, hundreds of KiB on large machines, and its sizes hardly
/// change.
const ZONES_EVERY: Duration = Duration::from_secs(60);

/// The files that are read each time.
#[derive(Debug)]
pub(super) struct SystemFiles {
    stat: Kept,
    vmstat: Kept,
    memory: Kept,
    pressure: [Kept; 3],
    nodes: BTreeMap<NodeId, NodeFiles>,
    zones: Kept,
    of_zones: Option<ZonesRead>,
    page: Option<Bytes>,
}

/// The last reading of zones, also a failed one.
#[derive(Debug)]
struct ZonesRead {
    at: Moment,
    /// The nodes whose zones were wanted: with others they are read again.
    nodes: NodeSet,
    sums: BTreeMap<NodeId, ZoneSums>,
    /// Facts that it did not give: every sample lacks them until the next reading.
    missing: Missing,
}

#[derive(Debug)]
struct NodeFiles {
    cpumap: Kept,
    cpulist: Kept,
    meminfo: Kept,
    vmstat: Kept,
    numastat: Kept,
    pools: Vec<PoolFiles>,
}

#[derive(Debug)]
struct PoolFiles {
    page_size: Bytes,
    total: Kept,
    free: Kept,
    surplus: Kept,
}

/// The zones of a node together, in pages.
#[derive(Clone, Copy, Debug, Default)]
struct ZoneSums {
    present: Option<u64>,
    managed: Option<u64>,
    high: Option<u64>,
}

impl SystemFiles {
    pub(super) fn new(tree: &Tree) -> Self {
        Self {
            stat: tree.keep("/proc/stat"),
            vmstat: tree.keep("/proc/vmstat"),
            memory: tree.keep(paths::MEMINFO),
            pressure: ["cpu", "memory", "io"].map(|name| tree.keep(&format!("/proc/pressure/{name}"))),
            nodes: BTreeMap::new(),
            zones: tree.keep("/proc/zoneinfo"),
            of_zones: None,
            page: tree.is_live().then(|| Bytes::new(rustix::param::page_size() as u64)),
        }
    }

    /// The page that the kernel counts in; `None` where no file shows it.
    pub(super) const fn page_size(&self) -> Option<Bytes> {
        self.page
    }

    pub(super) fn read(&mut self, reading: &mut Reading<'_>, sample: &mut Sample) {
        if let Some(stat) = reading.parsed(&mut self.stat, "CPU time", proc_stat::parse) {
            sample.forks = stat.forks;
            sample.cpus = stat.cpus;
            sample.cpus.order_by_key(|(cpu, _)| *cpu);
            sample.cpus.dedup_by_key(|(cpu, _)| *cpu);
        }
        sample.events = reading.parsed(&mut self.vmstat, "events", counters::parse).unwrap_or_default();
        sample.memory =
            reading.value(&mut self.memory, "memory of the machine", meminfo::system_total).flatten();
        let [cpu, memory, io] = &mut self.pressure;
        sample.pressure.cpu = reading.parsed(cpu, "pressure", pressure::parse);
        sample.pressure.memory = reading.parsed(memory, "pressure", pressure::parse);
        sample.pressure.io = reading.parsed(io, "pressure", pressure::parse);
        if sample.pressure == super::PressureSample::default() {
            let remedy = "boot with psi=1 (a kernel from 4.20 on)";
            reading.missing.add("pressure", "this kernel does not count it", Some(remedy.into()));
        }
        self.read_nodes(reading, sample);
        self.read_zones(reading, &mut sample.nodes);
    }

    fn read_nodes(&mut self, reading: &mut Reading<'_>, sample: &mut Sample) {
        let online = match facts::nodes(reading.tree) {
            Ok(online) => online,
            Err(error) => return reading.missing.add("nodes", &error.to_string(), None),
        };
        if online.is_empty() {
            reading.missing.add("nodes", "this kernel was built without NUMA", None);
        }
        let due = self.of_zones.as_ref().is_none_or(|zones| is_due(zones.at, reading.now));
        self.nodes.retain(|node, _| online.contains(*node));
        for node in &online {
            let known = self.nodes.contains_key(&node);
            let files = self.nodes.entry(node).or_insert_with(|| NodeFiles::new(reading.tree, node));
            if due || !known {
                files.find_pools(reading.tree, node);
            }
            // A node can go offline after the list was read.
            match files.read(reading, node) {
                Some(read) => sample.nodes.push(read),
                None => drop(self.nodes.remove(&node)),
            }
        }
    }

    fn read_zones(&mut self, reading: &mut Reading<'_>, nodes: &mut [NodeSample]) {
        let wanted: NodeSet = nodes.iter().map(|node| node.node).collect();
        let known =
            self.of_zones.take().filter(|zones| !is_due(zones.at, reading.now) && zones.nodes == wanted);
        let zones = known.unwrap_or_else(|| {
            let mut missing = Missing::default();
            let info = Reading {
                missing: &mut missing,
                buffer: &mut *reading.buffer,
                online: reading.online.clone(),
                ..*reading
            }
            .parsed(&mut self.zones, "zones of nodes", zoneinfo::parse);
            let sums = info.map(|info| sums(&info.zones)).unwrap_or_default();
            ZonesRead { at: reading.now, nodes: wanted, sums, missing }
        });
        reading.missing.extend(&zones.missing);
        let sums = &zones.sums;
        let sizes = || {
            let of = |node: &NodeSample| Some((node.size("MemTotal")?, sums.get(&node.node)?.managed?));
            nodes.iter().filter_map(of)
        };
        self.page = self.page.or_else(|| page_of(sizes()));
        if let Some(page) = self.page {
            let size = |pages: u64| pages.checked_mul(page.get()).map(Bytes::new);
            for node in nodes {
                let sums = sums.get(&node.node).copied().unwrap_or_default();
                node.present = sums.present.and_then(size);
                node.high_watermark = sums.high.and_then(size);
            }
        }
        self.of_zones = Some(zones);
    }
}

/// Whether what was read at a moment is to be read again. A clock that went back belongs to another machine.
fn is_due(read: Moment, now: Moment) -> bool {
    now.since(read).is_none_or(|age| age >= ZONES_EVERY)
}

fn sums(zones: &[Zone]) -> BTreeMap<NodeId, ZoneSums> {
    let mut sums: BTreeMap<NodeId, ZoneSums> = BTreeMap::new();
    for zone in zones {
        let of = sums.entry(zone.node).or_default();
        let add = |sum: &mut Option<u64>, part: Option<u64>| {
            if let Some(part) = part {
                *sum = Some(sum.unwrap_or(0).saturating_add(part));
            }
        };
        add(&mut of.present, zone.present);
        add(&mut of.managed, zone.managed);
        add(&mut of.high, zone.high);
    }
    sums
}

impl NodeFiles {
    fn new(tree: &Tree, node: NodeId) -> Self {
        let keep = |name: &str| tree.keep(&paths::of_node(node, name));
        Self {
            cpumap: keep("cpumap"),
            cpulist: keep("cpulist"),
            meminfo: keep("meminfo"),
            vmstat: keep("vmstat"),
            numastat: keep("numastat"),
            pools: Vec::new(),
        }
    }

    /// Finds the pools, which a module or a boot parameter can add to.
    fn find_pools(&mut self, tree: &Tree, node: NodeId) {
        let root = paths::of_node(node, "hugepages");
        let size = |name: &str| {
            let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
            number::number::<u64>(kib).ok()?.checked_mul(1024).map(Bytes::new)
        };
        let names = tree.list(&root).ok().flatten().unwrap_or_default();
        let found = names.iter().filter_map(|name| Some((size(name)?, name)));
        self.pools = found
            .map(|(page_size, name)| {
                let keep = |file: &str| tree.keep(&format!("{root}/{name}/{file}_hugepages"));
                PoolFiles { page_size, total: keep("nr"), free: keep("free"), surplus: keep("surplus") }
            })
            .collect();
        self.pools.order_by_key(|pool| pool.page_size);
    }

    /// Reads a node; `None` where it is gone.
    fn read(&mut self, reading: &mut Reading<'_>, node: NodeId) -> Option<NodeSample> {
        let mut read = NodeSample::new(node);
        let mask = reading.value(&mut self.cpumap, "CPUs of a node", set::mask::<CpuId>);
        let cpus = match mask {
            Some(cpus) => Some(cpus),
            None => reading.value(&mut self.cpulist, "CPUs of a node", set::list::<CpuId>),
        };
        let memory = reading.parsed(&mut self.meminfo, "memory of a node", |text| meminfo::parse(text, node));
        let counted = reading.parsed(&mut self.vmstat, "counters of a node", counters::parse);
        if cpus.is_none() && memory.is_none() && !reading.tree.exists(&paths::node(node)) {
            return None;
        }
        read.cpus = cpus.unwrap_or_default();
        bound_cpus(&mut read.cpus);
        read.memory = memory.unwrap_or_default();
        read.counters = counted.unwrap_or_default();
        read.allocations = allocations(&read.counters);
        if is_incomplete(&read.allocations) {
            let file = reading.parsed(&mut self.numastat, "allocations of a node", counters::parse);
            if let Some(file) = file {
                read.allocations = NodeCounters::from_names(|name| file.get(name));
            }
        }
        for pool in &mut self.pools {
            let mut count =
                |kept: &mut Kept| reading.value(kept, "pools of huge pages", number::number::<u64>);
            let Some(total) = count(&mut pool.total) else { continue };
            let (free, surplus) = (count(&mut pool.free), count(&mut pool.surplus));
            read.pools.push(PoolSample { page_size: pool.page_size, total, free, surplus });
        }
        Some(read)
    }
}

/// The six counters of `numastat` in `nodeN/vmstat`, where three have other names.
fn allocations(counters: &Counters) -> NodeCounters<Option<u64>> {
    NodeCounters::from_names(|name| {
        counters.get(match name {
            "interleave_hit" => "numa_interleave",
            "local_node" => "numa_local",
            "other_node" => "numa_other",
            name => name,
        })
    })
}

fn is_incomplete(counters: &NodeCounters<Option<u64>>) -> bool {
    let NodeCounters { hit, miss, foreign, interleave_hit, local, other } = counters;
    [hit, miss, foreign, interleave_hit, local, other].contains(&&None)
}
