//! Traffic that memory controllers count.
//!
//! Their PMUs ("uncore") are found by name in `/sys/bus/event_source/devices`, and so are the events of Intel's, with the
//! bytes of a count. AMD's have no names in sysfs, so that their two events are written here; NVIDIA's and HiSilicon's
//! have names, and no bytes of a count. A PMU counts for the CPUs of a die, and its `cpumask` has one of them. Others of
//! Arm machines count accesses whose size no document gives: they are named, and not counted.
//!
//! # Source
//! Intel: `arch/x86/events/intel/uncore_snbep.c`, `uncore_snb.c`. AMD Zen 4 and newer: `arch/x86/events/amd/uncore.c`
//! and `tools/perf/pmu-events/arch/x86/amdzen4/memory-controller.json`: event 0x0a, `rdwrmask` 1 for reads and 2 for
//! writes, of 64 bytes. NVIDIA: `Documentation/admin-guide/perf/nvidia-tegra410-pmu.rst` (`mem_bytes_rd` in bytes;
//! `dst_loc_cmem` selects the memory of the socket), and for Grace, whose document has no events, what
//! profilers for it multiply by (`cmem_rd_data` in units of 32 bytes, `cmem_wr_total_bytes` in bytes). HiSilicon:
//! `drivers/perf/hisilicon/hisi_uncore_ddrc_pmu.c` for the names; units of 32 bytes as in A-Tune of openEuler, by the
//! maker of the processors (`collection/collect/perf-memBW.sh`).

use std::collections::BTreeMap;
use std::fmt;

use nodewise_machine::printable::printable;
use nodewise_machine::{CpuId, CpuSet};

use super::bandwidth::BandwidthScope;
use super::missing::Missing;
use super::reading::Reading;
use super::{ControllerSample, Remedy};
use crate::file::{self, FileError};
use crate::limits::bound_cpus;
use crate::parse::{ParseError, number, pmu, set};
use crate::tree::Tree;

/// The fact, in a missing one's line.
const FACT: &str = "traffic of memory controllers";
const DEVICES: &str = "/sys/bus/event_source/devices";
/// Controllers that are looked at; the largest machines have some hundred.
const MOST: usize = 4096;
/// Bytes of a count of AMD's controllers.
const LINE: f64 = 64.0;

/// An event of a PMU, as `perf_event_open(2)` wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PmuEvent {
    /// The number of the PMU.
    pub pmu: u32,
    pub config: u64,
    pub config1: u64,
    /// The CPU that stands for the PMU.
    pub cpu: CpuId,
}

/// A count since it was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EventCount {
    pub value: u64,
    /// Nanoseconds since then.
    pub enabled_ns: u64,
    /// Nanoseconds in which the event was counted.
    pub running_ns: u64,
}

/// A counter of an event.
pub trait EventCounter: fmt::Debug + Send {
    /// The count up to now; `None` where it cannot be read.
    fn read(&mut self) -> Option<EventCount>;
}

/// Opens counters: the kernel's on the running system, a test's otherwise.
pub trait EventOpener: fmt::Debug + Send {
    /// Begins to count an event.
    ///
    /// # Errors
    /// Why it is not counted.
    fn open(&mut self, event: PmuEvent) -> Result<Box<dyn EventCounter>, EventRefusal>;
}

/// The reason why an event is not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventRefusal {
    /// This user may not.
    Rights,
    /// Another reason, in words.
    Other(String),
}

/// The counters that are open.
#[derive(Debug, Default)]
pub(super) struct ControllerTable {
    opener: Option<Box<dyn EventOpener>>,
    dies: Option<Vec<Die>>,
    /// Faults in their descriptions, and refusals.
    missing: Missing,
}

/// The controllers of a die.
#[derive(Debug)]
struct Die {
    cpus: CpuSet,
    controllers: u32,
    reads: Vec<Event>,
    writes: Vec<Event>,
}

/// A counter, and the bytes that it has counted.
#[derive(Debug)]
struct Event {
    counter: Box<dyn EventCounter>,
    bytes_of_one: f64,
    last: EventCount,
    /// `None` from the first interval on in which it did not count.
    bytes: Option<f64>,
}

impl ControllerTable {
    pub(super) fn open_with(&mut self, opener: Box<dyn EventOpener>) {
        self.opener = Some(opener);
    }

    /// Reads the counters; the first time opens them.
    pub(super) fn read(&mut self, reading: &mut Reading<'_>, scope: BandwidthScope) -> Vec<ControllerSample> {
        if self.dies.is_none() {
            let dies = self.find(reading.tree);
            self.dies = Some(dies);
        }
        let dies = self.dies.iter_mut().flatten();
        let samples: Vec<ControllerSample> = dies
            .map(|die| ControllerSample {
                cpus: die.cpus.clone(),
                controllers: die.controllers,
                read_bytes: sum(&mut die.reads),
                written_bytes: sum(&mut die.writes),
            })
            .collect();
        if scope == BandwidthScope::All {
            reading.missing.extend(&self.missing);
            let silent = samples.iter().filter(|die| die.read_bytes.is_none() || die.written_bytes.is_none());
            let reason = "a counter did not run all the time: another program may use it, too";
            reading.missing.add_all(FACT, reason, None, silent.count());
        }
        samples
    }

    /// Finds the controllers, and opens their counters. A die has all of its controllers, or is missing.
    fn find(&mut self, tree: &Tree) -> Vec<Die> {
        let Some(opener) = &mut self.opener else {
            self.missing.add(FACT, "only the running system counts it", None);
            return Vec::new();
        };
        let names = match tree.list(DEVICES) {
            Ok(names) => names.unwrap_or_default(),
            Err(error) => {
                self.missing.unreadable(FACT, error.cause);
                return Vec::new();
            }
        };
        let mut found: Vec<(bool, Controller)> = Vec::new();
        let mut broken = CpuSet::new();
        for name in names.iter().filter(|name| is_controller(name)).take(MOST) {
            match controller(tree, name) {
                Ok(Some(controller)) => found.push((name.contains(FREE_RUNNING), controller)),
                Ok(None) => {}
                Err(error) => {
                    self.missing.add(FACT, &error.to_string(), None);
                    // It may be of any die, so that no die is known to be complete.
                    broken = CpuSet::range(CpuId::new(0), CpuId::new(crate::limits::MOST_CPUS - 1));
                }
            }
        }
        // Counters that always run count what those of a controller count, too.
        let has_own = found.iter().any(|(is_free_running, _)| !is_free_running);
        found.retain(|(is_free_running, _)| !has_own || !is_free_running);
        let unsized_of = names.iter().filter(|name| is_unsized(name)).count();
        let reason = "these count accesses, and no document says of how many bytes (Arm DMC and CMN)";
        self.missing.add_all(FACT, reason, None, unsized_of);
        if found.is_empty() && broken.is_empty() && unsized_of == 0 {
            let none = "this kernel has no counters of memory controllers, as in most virtual machines";
            self.missing.add(FACT, none, None);
        }
        let mut dies: BTreeMap<CpuSet, Die> = BTreeMap::new();
        for (_, controller) in found {
            for cpu in &controller.cpus {
                let cpus = die(tree, cpu);
                let entry = dies.entry(cpus.clone());
                let die = entry.or_insert_with(|| Die::new(cpus));
                if let Err(refusal) = die.add(opener.as_mut(), &controller, cpu) {
                    match refusal {
                        EventRefusal::Rights => self.missing.add(
                            FACT,
                            "this user may not count what others cause (kernel.perf_event_paranoid)",
                            Some(Remedy::Root),
                        ),
                        EventRefusal::Other(words) => self.missing.add(FACT, &words, None),
                    }
                    broken.insert(cpu);
                }
            }
        }
        dies.into_values().filter(|die| die.cpus.intersection(&broken).is_empty()).collect()
    }
}

impl Die {
    fn new(cpus: CpuSet) -> Self {
        Self { cpus, controllers: 0, reads: Vec::new(), writes: Vec::new() }
    }

    fn add(
        &mut self,
        opener: &mut dyn EventOpener,
        controller: &Controller,
        cpu: CpuId,
    ) -> Result<(), EventRefusal> {
        for (to, events) in [(&mut self.reads, &controller.reads), (&mut self.writes, &controller.writes)] {
            for (words, bytes_of_one) in events {
                let event = PmuEvent { pmu: controller.pmu, config: words[0], config1: words[1], cpu };
                let mut counter = opener.open(event)?;
                let last = counter.read().unwrap_or_default();
                to.push(Event { counter, bytes_of_one: *bytes_of_one, last, bytes: Some(0.0) });
            }
        }
        self.controllers += 1;
        Ok(())
    }
}

impl Event {
    /// Bytes up to now. A count of part of the time is scaled to all of it.
    fn count(&mut self) -> Option<f64> {
        let now = self.counter.read();
        let added = now.and_then(|now| {
            let since = |of: fn(&EventCount) -> u64| of(&now).checked_sub(of(&self.last));
            let (value, enabled, running) =
                (since(|c| c.value)?, since(|c| c.enabled_ns)?, since(|c| c.running_ns)?);
            if running == 0 {
                return (enabled == 0 && value == 0).then_some(0.0);
            }
            Some(value as f64 * (enabled as f64 / running as f64) * self.bytes_of_one)
        });
        self.last = now.unwrap_or(self.last);
        // What was missed once is missing in every later sum.
        self.bytes = self.bytes.zip(added).map(|(bytes, added)| bytes + added);
        self.bytes
    }
}

/// The sum of all counters; `None` where one of them has missed something. Each is read, so that the next interval
/// begins here.
fn sum(events: &mut [Event]) -> Option<u64> {
    let counts: Vec<Option<f64>> = events.iter_mut().map(Event::count).collect();
    let sum: f64 = counts.into_iter().sum::<Option<f64>>()?;
    Some(sum as u64)
}

/// A memory controller: its PMU, the CPUs that stand for it on each die, and its events with the bytes of a count.
#[derive(Debug)]
struct Controller {
    pmu: u32,
    cpus: CpuSet,
    reads: Events,
    writes: Events,
}

/// Events, each with the bytes of a count.
type Events = Vec<(pmu::Configuration, f64)>;

/// An event: its name, terms that select the memory of the socket, and the bytes of a count.
type NamedEvent = (&'static str, &'static str, f64);

/// NVIDIA's PMUs, with the event for reads and the one for writes.
const NVIDIA: [(&str, [NamedEvent; 2]); 2] = [
    ("nvidia_ucf_pmu", [("mem_bytes_rd", ",dst_loc_cmem=1", 1.0), ("mem_bytes_wr", ",dst_loc_cmem=1", 1.0)]),
    ("nvidia_scf_pmu", [("cmem_rd_data", "", 32.0), ("cmem_wr_total_bytes", "", 1.0)]),
];

/// The events of HiSilicon's controllers, likewise.
const HISILICON: [NamedEvent; 2] = [("flux_rd", "", 32.0), ("flux_wr", "", 32.0)];

/// PMUs of memory controllers, and of meshes with them, whose events have no documented size: Arm's DMC-620 and its
/// meshes.
const UNSIZED: [&str; 3] = ["arm_dmc620", "arm_cmn", "arm_ccn"];

const INTEL: &str = "uncore_imc";
const AMD: &str = "amd_umc";
/// Part of the names of Intel's PMUs whose counters cannot be stopped.
const FREE_RUNNING: &str = "free_running";

/// Names of Intel's events for reads and for writes, each with all that have to be added up; the first pair that a PMU
/// has is taken. Servers, servers with two schedulers for each channel, clients, and counters that always run.
const PAIRS: [(&[&str], &[&str]); 5] = [
    (&["cas_count_read"], &["cas_count_write"]),
    (&["cas_count_read_sch0", "cas_count_read_sch1"], &["cas_count_write_sch0", "cas_count_write_sch1"]),
    (&["data_reads"], &["data_writes"]),
    (&["data_read"], &["data_write"]),
    (&["read"], &["write"]),
];

/// The terms of AMD's events for reads and for writes.
const AMD_READS: &str = "event=0x0a,rdwrmask=0x01";
const AMD_WRITES: &str = "event=0x0a,rdwrmask=0x02";

fn is_controller(pmu: &str) -> bool {
    [INTEL, AMD].into_iter().any(|name| is_of(pmu, name)) || named_events(pmu).is_some()
}

/// The events of a PMU that has names for them, and no bytes of a count.
fn named_events(pmu: &str) -> Option<[NamedEvent; 2]> {
    let nvidia = NVIDIA.into_iter().find(|(name, _)| is_of(pmu, name)).map(|(_, events)| events);
    nvidia.or_else(|| is_hisilicon(pmu).then_some(HISILICON))
}

/// Whether a PMU is one of HiSilicon's controllers: `hisi_sccl3_ddrc0`, newer ones `hisi_sccl3_ddrc0_1`.
fn is_hisilicon(pmu: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = pmu.strip_prefix("hisi_sccl").and_then(|rest| rest.split_once("_ddrc"));
    parts.is_some_and(|(die, controller)| is_number(die) && controller.split('_').all(is_number))
}

/// Whether a PMU is one of those with this name.
fn is_of(pmu: &str, name: &str) -> bool {
    pmu.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// Whether a PMU counts accesses of unknown size: `arm_cmn_0`.
fn is_unsized(pmu: &str) -> bool {
    UNSIZED.iter().any(|name| pmu.starts_with(name))
}

/// Reads the description of a controller; `None` of one that has no such events.
fn controller(tree: &Tree, name: &str) -> Result<Option<Controller>, FileError> {
    let folder = format!("{DEVICES}/{name}");
    let (reads, writes) = if name.starts_with(AMD) {
        let event =
            |terms: &str| -> Result<Events, FileError> { Ok(vec![(words(tree, &folder, terms)?, LINE)]) };
        (event(AMD_READS)?, event(AMD_WRITES)?)
    } else if let Some(events) = named_events(name) {
        let names = tree.list(&format!("{folder}/events"))?.unwrap_or_default();
        if !events.iter().all(|(event, ..)| names.iter().any(|name| name == event)) {
            return Ok(None);
        }
        let [reads, writes] = events.map(|(event, selecting, bytes)| -> Result<Events, FileError> {
            let terms =
                required(tree, &format!("{folder}/events/{event}"), |text| Ok(text.trim().to_owned()))?;
            Ok(vec![(words(tree, &folder, &(terms + selecting))?, bytes)])
        });
        (reads?, writes?)
    } else {
        let names = tree.list(&format!("{folder}/events"))?.unwrap_or_default();
        let has_all = |events: &[&str]| events.iter().all(|event| names.iter().any(|name| name == event));
        let pair = PAIRS.into_iter().find(|(reads, writes)| has_all(reads) && has_all(writes));
        let Some((reads, writes)) = pair else { return Ok(None) };
        let events = |names: &[&str]| -> Result<Events, FileError> {
            names.iter().map(|name| event(tree, &folder, name)).collect()
        };
        (events(reads)?, events(writes)?)
    };
    let pmu = required(tree, &format!("{folder}/type"), number::number::<u32>)?;
    let mut cpus = required(tree, &format!("{folder}/cpumask"), set::list::<CpuId>)?;
    bound_cpus(&mut cpus);
    Ok(Some(Controller { pmu, cpus, reads, writes }))
}

/// An event that sysfs names, with the bytes of a count.
fn event(tree: &Tree, folder: &str, name: &str) -> Result<(pmu::Configuration, f64), FileError> {
    let path = format!("{folder}/events/{name}");
    let terms = required(tree, &path, |text| Ok(text.trim().to_owned()))?;
    let scale = required(tree, &format!("{path}.scale"), pmu::scale)?;
    let unit = required(tree, &format!("{path}.unit"), pmu::unit)?;
    Ok((words(tree, folder, &terms)?, scale * unit))
}

/// The words for the terms of an event, by the places in `format/`.
fn words(tree: &Tree, folder: &str, terms: &str) -> Result<pmu::Configuration, FileError> {
    let fault = |error: ParseError| FileError::Parse {
        path: printable(&format!("{folder}/events")).into_owned(),
        error,
    };
    let terms = pmu::terms(terms).map_err(fault)?;
    let mut unreadable = None;
    let words = pmu::configuration(&terms, |name| {
        file::value(tree, &format!("{folder}/format/{name}"), pmu::field).or_else(|error| {
            unreadable = Some(error);
            Ok::<_, ParseError>(None)
        })
    });
    if let Some(error) = unreadable {
        return Err(error);
    }
    let words = words.map_err(fault)?;
    // The form of the call that every release takes has two words.
    let third = || fault(ParseError::new(1, "fields in config and config1 only", "config2"));
    if words[2] == 0 { Ok(words) } else { Err(third()) }
}

/// The value of a file that has to be there.
fn required<T>(
    tree: &Tree,
    path: &str,
    parse: impl FnOnce(&str) -> Result<T, ParseError>,
) -> Result<T, FileError> {
    let missing = || ParseError::new(1, "a file", "");
    file::value(tree, path, parse)?
        .ok_or_else(|| FileError::Parse { path: printable(path).into_owned(), error: missing() })
}

/// The CPUs of the die of a CPU: of its package where the kernel does not know dies, and it alone where nothing says.
fn die(tree: &Tree, cpu: CpuId) -> CpuSet {
    let names = ["die_cpus_list", "package_cpus_list", "core_siblings_list"];
    let list = |name: &str| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}");
        file::value(tree, &path, set::list::<CpuId>).ok().flatten()
    };
    let mut cpus = names.into_iter().find_map(list).unwrap_or_default();
    bound_cpus(&mut cpus);
    cpus.insert(cpu);
    cpus
}
