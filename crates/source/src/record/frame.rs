//! A sample as JSON, whole.
//!
//! Everything that changes by itself has a key of its own (processes by number and start, nodes and CPUs by
//! number), so that [`super::change`] finds the same thing again. Counters by name are two arrays, names and
//! values: the names stay, and the values become an array of differences.

mod maps;
mod process;
mod queues;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::id::Id as _;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CpuId, CpuSet, MeminfoField, MeminfoValue, NodeCounters, NodeId, NodeSet};
use serde::{Deserialize, Serialize};

use crate::limits::MOST_CPUS;
use crate::parse::counters::Counters;
use crate::parse::pressure::{Pressure, Stall};
use crate::parse::proc_stat::CpuTimes;
use crate::sample::{
    BandwidthSample, ControllerSample, GroupSample, InterruptSample, MappingsSample, Moment, NodeSample,
    PoolSample, PressureSample, Remedy, Sample, Unread,
};

use maps::MapsFrame;
pub(super) use process::Texts;
pub(super) use process::key;
use process::{AllowedFrame, ProcessFrame, identity};
use queues::QueueFrames;

/// A fault in a frame: the field, and the right form of it.
type Fault = String;

/// A sample. Times are in microseconds, sizes in bytes, CPU times in ticks.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Frame {
    boot_us: u64,
    wall_us: u64,
    nodes: BTreeMap<u32, NodeFrame>,
    cpus: BTreeMap<u32, CpuFrame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<u64>,
    events: CounterFrame,
    pressure: BTreeMap<String, StallsFrame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forks: Option<u64>,
    processes: BTreeMap<String, ProcessFrame>,
    /// Names of users; missing in recordings of older releases.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    users: BTreeMap<u32, String>,
    groups: BTreeMap<String, GroupFrame>,
    /// Mappings by process, where they were asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    maps: BTreeMap<String, MapsFrame>,
    interrupts: Vec<InterruptFrame>,
    /// Missing in recordings of older releases.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    queues: QueueFrames,
    bandwidth: BTreeMap<u32, BandwidthFrame>,
    /// By the CPUs of the die; missing in recordings of older releases.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    controllers: BTreeMap<String, ControllerFrame>,
    unread: Vec<UnreadFrame>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct CounterFrame {
    names: Vec<String>,
    values: Vec<u64>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct NodeFrame {
    cpus: String,
    sizes: CounterFrame,
    counts: CounterFrame,
    /// Which field of meminfo is a count: its place among all fields.
    count_places: Vec<u64>,
    counters: CounterFrame,
    allocations: BTreeMap<String, u64>,
    pools: BTreeMap<u64, PoolFrame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    present: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    high_watermark: Option<u64>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct PoolFrame {
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    free: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    surplus: Option<u64>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct CpuFrame {
    user: u64,
    nice: u64,
    system: u64,
    idle: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    iowait: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    irq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    softirq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steal: Option<u64>,
}

/// Stalls of a resource: `some` and `full`.
type StallsFrame = BTreeMap<String, StallFrame>;

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct StallFrame {
    avg10: f64,
    avg60: f64,
    avg300: f64,
    total_us: u64,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct GroupFrame {
    #[serde(skip_serializing_if = "Option::is_none")]
    polled_us: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ns: Option<u64>,
    memory: BTreeMap<String, BTreeMap<u32, u64>>,
    allowed: AllowedFrame,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_pressure: Option<StallsFrame>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct InterruptFrame {
    device: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    lines: Vec<u32>,
    cpus: Vec<u32>,
    counts: Vec<u64>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct ControllerFrame {
    controllers: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<u64>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct BandwidthFrame {
    cpus: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local: Option<u64>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct UnreadFrame {
    fact: String,
    reason: String,
    objects: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn node(number: u32) -> Result<NodeId, Fault> {
    if number < NodeId::LIMIT {
        Ok(NodeId::new(number))
    } else {
        Err(format!("node {number}: expected a node below {}", NodeId::LIMIT))
    }
}

fn cpu(number: u32) -> Result<CpuId, Fault> {
    if number < MOST_CPUS {
        Ok(CpuId::new(number))
    } else {
        Err(format!("CPU {number}: expected a CPU below {MOST_CPUS}"))
    }
}

fn cpus(text: &str) -> Result<CpuSet, Fault> {
    let set: CpuSet = text.parse().map_err(|error| format!("CPUs: {error}"))?;
    set.last().map_or(Ok(()), |last| cpu(last.number()).map(drop))?;
    Ok(set)
}

fn nodes(text: &str) -> Result<NodeSet, Fault> {
    text.parse().map_err(|error| format!("nodes: {error}"))
}

/// Microseconds since boot, and since the beginning of 1970.
fn clocks(moment: Moment) -> (u64, u64) {
    (micros(moment.since_boot), micros(moment.wall))
}

/// The clocks of a moment that is not this one.
fn earlier(seen: Moment, now: Moment) -> Option<[u64; 2]> {
    (seen != now).then(|| clocks(seen).into())
}

fn moment(boot_us: u64, wall_us: u64) -> Moment {
    Moment { since_boot: Duration::from_micros(boot_us), wall: Duration::from_micros(wall_us) }
}

impl From<&Counters> for CounterFrame {
    fn from(counters: &Counters) -> Self {
        let (names, values) = counters.iter().map(|(name, value)| (name.to_owned(), value)).unzip();
        Self { names, values }
    }
}

impl CounterFrame {
    fn into_pairs(self) -> Result<impl Iterator<Item = (String, u64)>, Fault> {
        if self.names.len() == self.values.len() {
            Ok(self.names.into_iter().zip(self.values))
        } else {
            Err(format!("counters: {} values for {} names", self.values.len(), self.names.len()))
        }
    }

    fn into_counters(self) -> Result<Counters, Fault> {
        Ok(self.into_pairs()?.collect())
    }
}

impl From<&NodeSample> for NodeFrame {
    fn from(node: &NodeSample) -> Self {
        let mut frame = Self {
            cpus: node.cpus.to_string(),
            counters: CounterFrame::from(&node.counters),
            pools: node.pools.iter().map(|pool| (pool.page_size.get(), PoolFrame::from(pool))).collect_map(),
            present: node.present.map(Bytes::get),
            high_watermark: node.high_watermark.map(Bytes::get),
            allocations: allocations(&node.allocations),
            ..Self::default()
        };
        for (place, field) in (0..).zip(&node.memory) {
            let (fields, value) = match field.value {
                MeminfoValue::Size(size) => (&mut frame.sizes, size.get()),
                MeminfoValue::Count(count) => {
                    frame.count_places.push(place);
                    (&mut frame.counts, count)
                }
            };
            fields.names.push(field.name.clone());
            fields.values.push(value);
        }
        frame
    }
}

/// The kernel's name of each allocation counter.
const ALLOCATIONS: [&str; 6] =
    ["numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"];

fn allocations(counters: &NodeCounters<Option<u64>>) -> BTreeMap<String, u64> {
    let NodeCounters { hit, miss, foreign, interleave_hit, local, other } = *counters;
    let values = [hit, miss, foreign, interleave_hit, local, other];
    let known = ALLOCATIONS.iter().zip(values);
    known.filter_map(|(name, value)| Some(((*name).to_owned(), value?))).collect_map()
}

impl NodeFrame {
    fn into_sample(self, number: u32) -> Result<NodeSample, Fault> {
        let memory = memory(self.sizes, self.counts, self.count_places)?;
        let pools = self.pools.into_iter().map(|(size, pool)| PoolSample {
            page_size: Bytes::new(size),
            total: pool.total,
            free: pool.free,
            surplus: pool.surplus,
        });
        Ok(NodeSample {
            node: node(number)?,
            cpus: cpus(&self.cpus)?,
            memory,
            counters: self.counters.into_counters()?,
            allocations: NodeCounters::from_names(|name| self.allocations.get(name).copied()),
            pools: pools.collect(),
            present: self.present.map(Bytes::new),
            high_watermark: self.high_watermark.map(Bytes::new),
        })
    }
}

/// The fields of meminfo in their order.
fn memory(
    sizes: CounterFrame,
    counts: CounterFrame,
    count_places: Vec<u64>,
) -> Result<Vec<MeminfoField>, Fault> {
    let (of_sizes, of_counts) = (sizes.names.len(), counts.names.len());
    let places: BTreeSet<u64> = count_places.into_iter().collect_set();
    let all = (of_sizes + of_counts) as u64;
    if places.len() != of_counts || places.last().is_some_and(|last| *last >= all) {
        return Err(format!("count_places: expected {of_counts} places below {all}"));
    }
    let mut sizes = sizes.into_pairs()?.map(|(name, size)| (name, MeminfoValue::Size(Bytes::new(size))));
    let mut counts = counts.into_pairs()?.map(|(name, count)| (name, MeminfoValue::Count(count)));
    let fields =
        (0..all).filter_map(|place| if places.contains(&place) { counts.next() } else { sizes.next() });
    Ok(fields.map(|(name, value)| MeminfoField { name, value }).collect())
}

impl From<&PoolSample> for PoolFrame {
    fn from(pool: &PoolSample) -> Self {
        Self { total: pool.total, free: pool.free, surplus: pool.surplus }
    }
}

impl From<&CpuTimes> for CpuFrame {
    fn from(times: &CpuTimes) -> Self {
        let CpuTimes { user, nice, system, idle, iowait, irq, softirq, steal } = *times;
        Self { user, nice, system, idle, iowait, irq, softirq, steal }
    }
}

impl From<CpuFrame> for CpuTimes {
    fn from(times: CpuFrame) -> Self {
        let CpuFrame { user, nice, system, idle, iowait, irq, softirq, steal } = times;
        Self { user, nice, system, idle, iowait, irq, softirq, steal }
    }
}

/// Stalls whose averages are numbers: JSON has no other ones.
fn stalls(pressure: &Pressure) -> StallsFrame {
    let frame = |stall: Stall| {
        let Stall { avg10, avg60, avg300, total_us } = stall;
        let are_numbers = [avg10, avg60, avg300].into_iter().all(f64::is_finite);
        are_numbers.then_some(StallFrame { avg10, avg60, avg300, total_us })
    };
    let parts = [("some", pressure.some), ("full", pressure.full)];
    parts.into_iter().filter_map(|(name, stall)| Some((name.to_owned(), frame(stall?)?))).collect_map()
}

fn pressure(mut stalls: StallsFrame) -> Pressure {
    let mut part = |name| {
        let StallFrame { avg10, avg60, avg300, total_us } = stalls.remove(name)?;
        Some(Stall { avg10, avg60, avg300, total_us })
    };
    Pressure { some: part("some"), full: part("full") }
}

fn pressures(sample: &PressureSample) -> BTreeMap<String, StallsFrame> {
    let parts = [("cpu", sample.cpu), ("memory", sample.memory), ("io", sample.io)];
    parts.into_iter().filter_map(|(name, part)| Some((name.to_owned(), stalls(&part?)))).collect_map()
}

impl GroupFrame {
    fn new(group: &GroupSample, now: Moment) -> Self {
        let kinds = group.memory.iter().map(|(kind, nodes)| {
            (kind.clone(), nodes.iter().map(|(node, size)| (node.number(), size.get())).collect())
        });
        Self {
            polled_us: earlier(group.polled, now),
            cpu_ns: group.cpu.map(nanos),
            memory: kinds.collect_map(),
            allowed: AllowedFrame::from(&group.allowed),
            memory_pressure: group.memory_pressure.as_ref().map(stalls),
        }
    }
}

impl GroupFrame {
    fn into_sample(self, path: String, now: Moment, texts: &mut Texts) -> Result<GroupSample, Fault> {
        let kinds = self.memory.into_iter().map(|(kind, nodes)| {
            let nodes = nodes.into_iter().map(|(number, size)| Ok((node(number)?, Bytes::new(size))));
            Ok((kind, nodes.try_collect_map::<_, _, Fault>()?))
        });
        Ok(GroupSample {
            path: texts.share(path),
            polled: self.polled_us.map_or(now, |[boot, wall]| moment(boot, wall)),
            cpu: self.cpu_ns.map(Duration::from_nanos),
            memory: kinds.try_collect_map::<_, _, Fault>()?,
            allowed: self.allowed.try_into()?,
            memory_pressure: self.memory_pressure.map(pressure),
        })
    }
}

impl From<&InterruptSample> for InterruptFrame {
    fn from(device: &InterruptSample) -> Self {
        let (cpus, counts) = device.by_cpu.iter().map(|(cpu, count)| (cpu.number(), *count)).unzip();
        Self {
            device: device.device.clone(),
            node: device.node.map(NodeId::number),
            lines: device.lines.clone(),
            cpus,
            counts,
        }
    }
}

impl TryFrom<InterruptFrame> for InterruptSample {
    type Error = Fault;

    fn try_from(frame: InterruptFrame) -> Result<Self, Fault> {
        if frame.cpus.len() != frame.counts.len() {
            return Err(format!("interrupts: {} counts for {} CPUs", frame.counts.len(), frame.cpus.len()));
        }
        let by_cpu =
            frame.cpus.into_iter().zip(frame.counts).map(|(number, count)| Ok((cpu(number)?, count)));
        Ok(Self {
            device: frame.device,
            node: frame.node.map(node).transpose()?,
            lines: frame.lines,
            by_cpu: by_cpu.collect::<Result<_, Fault>>()?,
            ..Self::default()
        })
    }
}

impl Frame {
    /// A sample, without the mappings of the processes for which they are the last ones.
    pub(super) fn new(sample: &Sample, is_kept: impl Fn(&MappingsSample) -> bool) -> Self {
        let (boot_us, wall_us) = clocks(sample.moment);
        let nodes = sample.nodes.iter().map(|node| (node.node.number(), NodeFrame::from(node)));
        let processes = sample.processes.iter();
        let bandwidth = sample.bandwidth.iter().map(|cache| {
            let frame = BandwidthFrame {
                cpus: cache.cpus.to_string(),
                total: cache.total_bytes,
                local: cache.local_bytes,
            };
            (cache.domain, frame)
        });
        let controllers = sample.controllers.iter().map(|die| {
            let frame = ControllerFrame {
                controllers: die.controllers,
                read: die.read_bytes,
                written: die.written_bytes,
            };
            (die.cpus.to_string(), frame)
        });
        let unread = sample.unread.iter().map(|unread| UnreadFrame {
            fact: unread.fact.clone(),
            reason: unread.reason.clone(),
            objects: unread.objects,
            remedy: unread.remedy.as_ref().map(Remedy::to_string),
        });
        Self {
            boot_us,
            wall_us,
            nodes: nodes.collect_map(),
            cpus: sample.cpus.iter().map(|(cpu, times)| (cpu.number(), CpuFrame::from(times))).collect_map(),
            memory: sample.memory.map(Bytes::get),
            events: CounterFrame::from(&sample.events),
            pressure: pressures(&sample.pressure),
            forks: sample.forks,
            processes: processes
                .map(|process| (key(process.identity), ProcessFrame::new(process, sample.moment)))
                .collect_map(),
            users: sample.users.iter().map(|(user, name)| (*user, name.to_string())).collect_map(),
            groups: sample
                .groups
                .iter()
                .map(|group| (group.path.to_string(), GroupFrame::new(group, sample.moment)))
                .collect_map(),
            maps: sample
                .mappings
                .iter()
                .map(|process| {
                    let frame = MapsFrame::new(process, sample.moment, is_kept(process));
                    (key(process.identity), frame)
                })
                .collect_map(),
            interrupts: sample.interrupts.iter().map(InterruptFrame::from).collect(),
            queues: queues::frames(&sample.interrupts),
            bandwidth: bandwidth.collect_map(),
            controllers: controllers.collect_map(),
            unread: unread.collect(),
        }
    }

    /// The sample, or the first field that is not as it should be.
    pub(super) fn into_sample(mut self, texts: &mut Texts) -> Result<Sample, Fault> {
        let now = moment(self.boot_us, self.wall_us);
        let mut resource = |name| self.pressure.remove(name).map(pressure);
        let pressure =
            PressureSample { cpu: resource("cpu"), memory: resource("memory"), io: resource("io") };
        let nodes = self.nodes.into_iter().map(|(number, node)| node.into_sample(number));
        let cpus = self.cpus.into_iter().map(|(number, times)| Ok((cpu(number)?, times.into())));
        let processes = self.processes.into_iter();
        let processes =
            processes.map(|(key, process)| process.into_sample(identity(&key)?, now, texts).map(Arc::new));
        let mut processes = processes.collect::<Result<Vec<_>, Fault>>()?;
        processes.order_by_key(|process| process.identity);
        let users = self.users.into_iter().map(|(user, name)| (user, texts.share(name))).collect_map();
        let maps = self.maps.into_iter().map(|(key, maps)| maps.into_sample(identity(&key)?, now));
        let mut mappings = maps.collect::<Result<Vec<_>, Fault>>()?;
        mappings.order_by_key(|process| process.identity);
        let groups = self.groups.into_iter().map(|(path, group)| group.into_sample(path, now, texts));
        let interrupts = self.interrupts.into_iter().map(InterruptSample::try_from);
        let mut interrupts = interrupts.collect::<Result<Vec<_>, Fault>>()?;
        queues::add(self.queues, &mut interrupts)?;
        let bandwidth = self.bandwidth.into_iter().map(|(domain, cache)| {
            Ok(BandwidthSample {
                domain,
                cpus: self::cpus(&cache.cpus)?,
                total_bytes: cache.total,
                local_bytes: cache.local,
            })
        });
        let controllers = self.controllers.into_iter().map(|(cpus, die)| {
            Ok(ControllerSample {
                cpus: self::cpus(&cpus)?,
                controllers: die.controllers,
                read_bytes: die.read,
                written_bytes: die.written,
            })
        });
        let mut controllers = controllers.collect::<Result<Vec<_>, Fault>>()?;
        // By number, and not by text.
        controllers.order_by(|one, other| one.cpus.cmp(&other.cpus));
        let unread = self.unread.into_iter().map(|unread| Unread {
            fact: unread.fact,
            reason: unread.reason,
            objects: unread.objects,
            remedy: unread.remedy.map(Remedy::from),
        });
        Ok(Sample {
            moment: now,
            nodes: nodes.collect::<Result<_, Fault>>()?,
            cpus: cpus.collect::<Result<_, Fault>>()?,
            memory: self.memory.map(Bytes::new),
            events: self.events.into_counters()?,
            pressure,
            forks: self.forks,
            processes,
            users,
            groups: groups.collect::<Result<_, Fault>>()?,
            mappings,
            interrupts,
            bandwidth: bandwidth.collect::<Result<_, Fault>>()?,
            controllers,
            unread: unread.collect(),
        })
    }
}
