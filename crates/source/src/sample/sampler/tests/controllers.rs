//! Traffic of memory controllers.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::*;
use crate::sample::{EventCount, EventCounter, EventOpener, EventRefusal, PmuEvent, Remedy};

const DEVICES: &str = "/sys/bus/event_source/devices";

/// Counters that a test sets.
#[derive(Clone, Debug, Default)]
struct Script(Arc<Mutex<BTreeMap<PmuEvent, Result<EventCount, EventRefusal>>>>);

#[derive(Debug)]
struct Scripted(Script, PmuEvent);

impl EventOpener for Script {
    fn open(&mut self, event: PmuEvent) -> Result<Box<dyn EventCounter>, EventRefusal> {
        let count = self.0.lock().unwrap().get(&event).cloned();
        count.unwrap_or_else(|| Err(EventRefusal::Other(format!("nobody expects {event:x?}"))))?;
        Ok(Box::new(Scripted(self.clone(), event)))
    }
}

impl EventCounter for Scripted {
    fn read(&mut self) -> Option<EventCount> {
        self.0.0.lock().unwrap().get(&self.1)?.clone().ok()
    }
}

impl Script {
    fn set(&self, event: PmuEvent, count: Result<(u64, u64, u64), EventRefusal>) {
        let count = count.map(|(value, enabled_ns, running_ns)| EventCount { value, enabled_ns, running_ns });
        self.0.lock().unwrap().insert(event, count);
    }
}

fn event(pmu: u32, config: u64, cpu: u32) -> PmuEvent {
    PmuEvent { pmu, config, config1: 0, cpu: CpuId::new(cpu) }
}

fn options(controllers: BandwidthScope) -> SampleOptions {
    SampleOptions { controllers, ..SampleOptions::default() }
}

/// A PMU with the fields that both makers have.
fn pmu(files: Memory, name: &str, number: u32, cpumask: &str) -> Memory {
    let folder = format!("{DEVICES}/{name}");
    files
        .file(&format!("{folder}/type"), format!("{number}\n"))
        .file(&format!("{folder}/cpumask"), format!("{cpumask}\n"))
        .file(&format!("{folder}/format/event"), "config:0-7\n")
        .file(&format!("{folder}/format/umask"), "config:8-15\n")
        .file(&format!("{folder}/format/rdwrmask"), "config:8-9\n")
}

/// With an event of this name, as Sapphire Rapids has it.
fn named(files: Memory, pmu: &str, event: &str, terms: &str) -> Memory {
    let path = format!("{DEVICES}/{pmu}/events/{event}");
    files
        .file(&path, format!("{terms}\n"))
        .file(&format!("{path}.scale"), "6.103515625e-5\n")
        .file(&format!("{path}.unit"), "MiB\n")
}

fn intel(files: Memory, name: &str, number: u32, cpumask: &str) -> Memory {
    let files = pmu(files, name, number, cpumask);
    let files = named(files, name, "cas_count_read", "event=0x05,umask=0xcf");
    named(files, name, "cas_count_write", "event=0x05,umask=0xf0")
}

fn two_dies(files: Memory) -> Memory {
    let topology = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/topology/die_cpus_list");
    files.file(&topology(0), "0-3\n").file(&topology(4), "4-7\n")
}

const READ: u64 = 0xcf05;
const WRITE: u64 = 0xf005;

/// CPUs of the die, controllers, bytes read and written.
fn dies(sample: &Sample) -> Vec<(String, u32, Option<u64>, Option<u64>)> {
    let die = |die: &crate::sample::ControllerSample| {
        (die.cpus.to_string(), die.controllers, die.read_bytes, die.written_bytes)
    };
    sample.controllers.iter().map(die).collect()
}

fn unread(sample: &Sample) -> Vec<(&str, usize, Option<Remedy>)> {
    let lines = sample.unread.iter().filter(|line| line.fact == "traffic of memory controllers");
    lines.map(|line| (line.reason.as_str(), line.objects, line.remedy.clone())).collect()
}

#[test]
fn controllers_of_a_die_are_added_up() {
    let files = two_dies(intel(intel(machine(), "uncore_imc_0", 20, "0,4"), "uncore_imc_1", 21, "0,4"));
    // One that counts the same another way, and one that counts something else.
    let files = named(
        pmu(files, "uncore_imc_free_running_0", 30, "0,4"),
        "uncore_imc_free_running_0",
        "read",
        "event=0xff,umask=0x20",
    );
    let files = pmu(pmu(files, "uncore_imcx_0", 31, "0,4"), "cpu", 4, "");
    let script = Script::default();
    let set = |counts: [u64; 4], enabled, running| {
        for (pmu, cpu, count) in
            [(20, 0, counts[0]), (21, 0, counts[1]), (20, 4, counts[2]), (21, 4, counts[3])]
        {
            script.set(event(pmu, READ, cpu), Ok((count, enabled, running)));
            script.set(event(pmu, WRITE, cpu), Ok((count * 2, enabled, running)));
        }
    };
    set([1000, 1000, 1000, 1000], 0, 0);
    let mut sampler =
        Sampler::new(Tree::memory(files), options(BandwidthScope::All)).counting(Box::new(script.clone()));
    let first = sampler.sample(at(0));
    let none = |cpus: &str| (cpus.to_owned(), 2, Some(0), Some(0));
    assert_eq!(dies(&first), [none("0-3"), none("4-7")]);
    set([1100, 1010, 1001, 1000], 100, 100);
    let second = sampler.sample(at(1));
    let expected =
        [("0-3".to_owned(), 2, Some(110 * 64), Some(220 * 64)), ("4-7".to_owned(), 2, Some(64), Some(128))];
    assert_eq!((dies(&second), unread(&second)), (expected.to_vec(), vec![]));
    // Half of the time: twice the count.
    set([1150, 1010, 1001, 1000], 200, 150);
    assert_eq!(dies(&sampler.sample(at(2)))[0], ("0-3".to_owned(), 2, Some(210 * 64), Some(420 * 64)));
}

#[test]
fn a_counter_that_did_not_run_is_missing_from_then_on() {
    let files = two_dies(intel(machine(), "uncore_imc", 20, "0"));
    let script = Script::default();
    let set = |count, enabled, running| {
        script.set(event(20, READ, 0), Ok((count, enabled, running)));
        script.set(event(20, WRITE, 0), Ok((7, enabled, enabled)));
    };
    set(7, 0, 0);
    let mut sampler =
        Sampler::new(Tree::memory(files), options(BandwidthScope::All)).counting(Box::new(script.clone()));
    sampler.sample(at(0));
    for (second, running) in [(1, 0), (2, 100)] {
        set(7, second * 100, running);
        let sample = sampler.sample(at(second));
        assert_eq!(dies(&sample), [("0-3".to_owned(), 1, None, Some(0))]);
        assert_eq!(unread(&sample).len(), 1);
    }
}

#[test]
fn controllers_of_amd_have_two_events_without_names() {
    let files = pmu(two_dies(machine()), "amd_umc_3", 40, "4");
    let script = Script::default();
    script.set(event(40, 0x10a, 4), Ok((0, 0, 0)));
    script.set(event(40, 0x20a, 4), Ok((0, 0, 0)));
    let mut sampler = Sampler::new(Tree::memory(files), options(BandwidthScope::IfCounted))
        .counting(Box::new(script.clone()));
    sampler.sample(at(0));
    script.set(event(40, 0x10a, 4), Ok((3, 1, 1)));
    script.set(event(40, 0x20a, 4), Ok((1, 1, 1)));
    assert_eq!(dies(&sampler.sample(at(1))), [("4-7".to_owned(), 1, Some(192), Some(64))]);
}

/// A PMU of NVIDIA with two events.
fn nvidia(files: Memory, name: &str, number: u32, cpu: u32, events: [(&str, &str); 2]) -> Memory {
    let folder = format!("{DEVICES}/{name}");
    let files = files
        .file(&format!("{folder}/type"), format!("{number}\n"))
        .file(&format!("{folder}/cpumask"), format!("{cpu}\n"))
        .file(&format!("{folder}/format/event"), "config:0-15\n")
        .file(&format!("{folder}/format/dst_loc_cmem"), "config1:3\n");
    events.iter().fold(files, |files, (event, terms)| {
        files.file(&format!("{folder}/events/{event}"), format!("{terms}\n"))
    })
}

#[test]
fn sockets_of_nvidia_count_their_own_memory() {
    let check = |files: Memory, events: [(PmuEvent, u64); 2], bytes: [u64; 2]| {
        let script = Script::default();
        events.iter().for_each(|(event, _)| script.set(*event, Ok((0, 0, 0))));
        let mut sampler = Sampler::new(Tree::memory(files), options(BandwidthScope::All))
            .counting(Box::new(script.clone()));
        sampler.sample(at(0));
        events.iter().for_each(|(event, count)| script.set(*event, Ok((*count, 1, 1))));
        let sample = sampler.sample(at(1));
        assert_eq!(dies(&sample), [("0-3".to_owned(), 1, Some(bytes[0]), Some(bytes[1]))]);
        assert_eq!(unread(&sample), []);
    };
    let events = [("cmem_rd_data", "event=0x1a5"), ("cmem_wr_total_bytes", "event=0x1db")];
    let grace = nvidia(two_dies(machine()), "nvidia_scf_pmu_0", 50, 0, events);
    check(grace, [(event(50, 0x1a5, 0), 3), (event(50, 0x1db, 0), 700)], [96, 700]);
    let events = [("mem_bytes_rd", "event=0x1e"), ("mem_bytes_wr", "event=0x1f")];
    let newer = nvidia(two_dies(machine()), "nvidia_ucf_pmu_0", 51, 0, events);
    let local = |config| PmuEvent { config1: 1 << 3, ..event(51, config, 0) };
    check(newer, [(local(0x1e), 5), (local(0x1f), 7)], [5, 7]);
}

/// One of HiSilicon's controllers, which has its events as the driver prints them.
fn hisilicon(files: Memory, name: &str, number: u32, cpu: u32, events: [&str; 2]) -> Memory {
    let folder = format!("{DEVICES}/{name}");
    files
        .file(&format!("{folder}/type"), format!("{number}\n"))
        .file(&format!("{folder}/cpumask"), format!("{cpu}\n"))
        .file(&format!("{folder}/format/event"), "config:0-7\n")
        .file(&format!("{folder}/events/flux_rd"), format!("{}\n", events[0]))
        .file(&format!("{folder}/events/flux_wr"), format!("{}\n", events[1]))
}

#[test]
fn controllers_of_hisilicon_count_units_of_32_bytes() {
    // The events of Kunpeng 920, and of its successor, whose controllers have parts.
    let files = hisilicon(two_dies(machine()), "hisi_sccl1_ddrc0", 70, 0, ["config=0x01", "config=0x00"]);
    let files = hisilicon(files, "hisi_sccl1_ddrc1", 71, 0, ["config=0x01", "config=0x00"]);
    let files = hisilicon(files, "hisi_sccl3_ddrc0_1", 72, 4, ["config=0x84", "config=0x83"]);
    let script = Script::default();
    let set = |counts: [u64; 6]| {
        let events = [(70, 1, 0), (70, 0, 0), (71, 1, 0), (71, 0, 0), (72, 0x84, 4), (72, 0x83, 4)];
        for ((pmu, config, cpu), count) in events.into_iter().zip(counts) {
            script.set(event(pmu, config, cpu), Ok((count, count, count)));
        }
    };
    set([5; 6]);
    let mut sampler =
        Sampler::new(Tree::memory(files), options(BandwidthScope::All)).counting(Box::new(script.clone()));
    sampler.sample(at(0));
    set([15, 6, 25, 5, 8, 9]);
    let sample = sampler.sample(at(1));
    let expected =
        [("0-3".to_owned(), 2, Some(30 * 32), Some(32)), ("4-7".to_owned(), 1, Some(3 * 32), Some(4 * 32))];
    assert_eq!((dies(&sample), unread(&sample)), (expected.to_vec(), vec![]));
}

#[test]
fn controllers_whose_counts_have_no_size_are_named() {
    let reason_of = |pmus: &[&str]| {
        let files = pmus.iter().fold(two_dies(machine()), |files, name| pmu(files, name, 60, "0"));
        let mut sampler = Sampler::new(Tree::memory(files), options(BandwidthScope::All))
            .counting(Box::new(Script::default()));
        let sample = sampler.sample(at(0));
        assert_eq!(dies(&sample), []);
        let lines = unread(&sample);
        lines.first().map(|(reason, objects, _)| ((*reason).to_owned(), *objects)).unwrap_or_default()
    };
    let (reason, objects) = reason_of(&["arm_dmc620_10008c000", "hisi_sccl1_l3c0", "arm_cmn_0"]);
    assert!(reason.starts_with("these count accesses"), "{reason}");
    assert_eq!(objects, 2);
    // Names that only resemble one, and newer PMUs without names of events.
    let (reason, _) = reason_of(&[
        "hisi_sccl1_l3c0",
        "hisi_sccl1_ddrc0",
        "hisi_sccl_ddrc0",
        "hisi_sccl1_ddrcx",
        "nvidia_scf_pmu_0",
        "nvidia_scf_pmux",
    ]);
    assert!(reason.starts_with("this kernel has no counters"), "{reason}");
}

#[test]
fn what_is_not_counted_is_named_with_the_remedy() {
    let check =
        |files: Memory, script: Option<Script>, start: &str, objects: usize, remedy: Option<Remedy>| {
            for scope in [BandwidthScope::All, BandwidthScope::IfCounted] {
                let mut sampler = Sampler::new(Tree::memory(files.clone()), options(scope));
                if let Some(script) = &script {
                    sampler = sampler.counting(Box::new(script.clone()));
                }
                let sample = sampler.sample(at(0));
                assert_eq!(dies(&sample), []);
                match (scope, &unread(&sample)[..]) {
                    (BandwidthScope::All, [(reason, count, found)]) => {
                        assert!(reason.starts_with(start), "{reason}");
                        assert_eq!((*count, found), (objects, &remedy));
                    }
                    (_, found) => assert_eq!(found, []),
                }
            }
        };
    let one = two_dies(intel(machine(), "uncore_imc_0", 20, "0,4"));
    let refusing = |refusal: EventRefusal| {
        let script = Script::default();
        script.set(event(20, READ, 0), Err(refusal.clone()));
        script.set(event(20, READ, 4), Err(refusal));
        Some(script)
    };
    check(machine(), Some(Script::default()), "this kernel has no counters of memory controllers", 1, None);
    check(one.clone(), None, "only the running system", 1, None);
    check(one.clone(), refusing(EventRefusal::Rights), "this user may not", 2, Some(Remedy::Root));
    check(one.clone(), refusing(EventRefusal::Other("No such device".into())), "No such device", 2, None);
    let broken = |path: &str, text: &str| one.clone().file(&format!("{DEVICES}/uncore_imc_0/{path}"), text);
    for (path, text) in [
        ("type", "x\n"),
        ("cpumask", "4-0\n"),
        ("events/cas_count_read", "event=?\n"),
        ("events/cas_count_read", "event=0x100\n"),
        ("events/cas_count_read", "config2=1\n"),
        ("events/cas_count_read.scale", "0\n"),
        ("events/cas_count_write.unit", "Joules\n"),
        ("format/umask", "config9:1\n"),
    ] {
        check(broken(path, text), Some(Script::default()), DEVICES, 1, None);
    }
    check(one.without(&format!("{DEVICES}/uncore_imc_0/cpumask")), Some(Script::default()), DEVICES, 1, None);
}
