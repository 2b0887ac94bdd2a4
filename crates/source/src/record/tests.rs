mod maps;
mod reading;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::{Bytes, CpuId, MeminfoField, MeminfoValue, NodeCounters, NodeId};
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use maps::{mappings, process_mappings};
use serde_json::Value;

use super::frame::Frame;
use super::*;
use crate::parse::pressure::{Pressure, Stall};
use crate::parse::proc_stat::CpuTimes;
use crate::process::Pid;
use crate::sample::{
    Allowed, BalancingFaults, BalancingSample, BandwidthSample, ControllerSample, Denied, GroupSample,
    Identity, InterruptSample, Moment, NodeSample, PageMethod, PageSample, PageShare, PoolSample,
    PressureSample, ProcessSample, QueueSample, Remedy, Sample, TaskSample, Unread,
};

fn maybe<T: Clone + std::fmt::Debug>(
    value: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Option<T>> {
    prop::option::of(value)
}

fn identities() -> impl Strategy<Value = Identity> {
    (1u32..9, 0u64..3).prop_map(|(pid, started_ticks)| Identity { pid: Pid::new(pid), started_ticks })
}

fn node_ids() -> impl Strategy<Value = NodeId> {
    (0u32..4).prop_map(NodeId::new)
}

fn cpu_ids() -> impl Strategy<Value = CpuId> {
    (0u32..6).prop_map(CpuId::new)
}

fn sizes() -> impl Strategy<Value = Bytes> {
    prop_oneof![0u64..9, any::<u64>()].prop_map(Bytes::new)
}

fn moments() -> impl Strategy<Value = Moment> {
    (0u64..1 << 40, 0u64..1 << 50).prop_map(|(boot, wall)| Moment {
        since_boot: Duration::from_micros(boot),
        wall: Duration::from_micros(wall),
    })
}

fn pressures() -> impl Strategy<Value = Pressure> {
    let stall = || {
        maybe((0u32..400, any::<u64>()).prop_map(|(quarters, total_us)| Stall {
            avg10: f64::from(quarters) / 4.0,
            avg60: 0.5,
            avg300: 0.0,
            total_us,
        }))
    };
    (stall(), stall()).prop_map(|(some, full)| Pressure { some, full })
}

fn allowances() -> impl Strategy<Value = Allowed> {
    let sets = (
        maybe(prop::collection::btree_set(cpu_ids(), 0..4)),
        maybe(prop::collection::btree_set(node_ids(), 0..4)),
    );
    sets.prop_map(|(cpus, nodes)| Allowed {
        cpus: cpus.map(|cpus| cpus.into_iter().collect()),
        nodes: nodes.map(|nodes| nodes.into_iter().collect()),
    })
}

fn tasks() -> impl Strategy<Value = TaskSample> {
    let faults = prop::collection::btree_map(node_ids(), any::<(u64, u64)>(), 0..3);
    let balancing = (maybe(any::<u64>()), maybe(any::<u64>()), maybe(node_ids()), faults);
    let balancing = balancing.prop_map(|(scans, migrated_pages, preferred, faults)| BalancingSample {
        scans,
        migrated_pages,
        preferred,
        faults: faults
            .into_iter()
            .map(|(node, (private, shared))| (node, BalancingFaults { private, shared }))
            .collect(),
    });
    let parts = (
        identities(),
        ".{0,3}",
        any::<u64>(),
        maybe(any::<u64>()),
        maybe(cpu_ids()),
        maybe(allowances()),
        maybe(balancing),
    );
    parts.prop_map(|(identity, name, cpu_ticks, run, processor, allowed, balancing)| TaskSample {
        identity,
        name: name.into(),
        cpu_ticks,
        run: run.map(Duration::from_nanos),
        processor,
        allowed,
        cpu_changes: run,
        balancing,
    })
}

fn pages() -> impl Strategy<Value = PageSample> {
    let share = (sizes(), sizes(), sizes(), maybe(sizes()));
    let share = share.prop_map(|(size, low, high, own)| PageShare { size, low, high, own });
    let method =
        prop_oneof![any::<u32>().prop_map(PageMethod::Drawn), any::<bool>().prop_map(|_| PageMethod::Exact)];
    let parts = (moments(), method, prop::collection::btree_map(node_ids(), share, 0..4));
    parts.prop_map(|(seen, method, nodes)| PageSample { seen, method, nodes })
}

fn processes() -> impl Strategy<Value = ProcessSample> {
    let facts = (
        identities(),
        ".{0,4}",
        maybe(1u32..9),
        maybe(any::<u32>()),
        any::<char>(),
        any::<bool>(),
        any::<u32>(),
    );
    let numbers =
        (any::<u64>(), maybe(cpu_ids()), maybe(sizes()), any::<u64>(), maybe(allowances()), maybe("/.{0,4}"));
    let threads = prop::collection::btree_map(identities(), tasks(), 0..3);
    let denied = prop_oneof![
        any::<bool>().prop_map(|_| Denied::Rights),
        any::<bool>().prop_map(|_| Denied::NoFile),
        any::<bool>().prop_map(|_| Denied::Unreadable)
    ];
    (facts, numbers, maybe(threads), maybe(pages()), maybe(denied), moments()).prop_map(
        |(
            (identity, name, parent, user, state, kernel_thread, threads),
            numbers,
            tasks,
            pages,
            denied,
            polled,
        )| {
            let (cpu_ticks, processor, resident, major_faults, allowed, group) = numbers;
            let tasks = tasks.map(|tasks| {
                tasks.into_iter().map(|(identity, task)| TaskSample { identity, ..task }).collect()
            });
            ProcessSample {
                identity,
                polled,
                name: name.into(),
                parent: parent.map(Pid::new),
                user,
                state,
                kernel_thread,
                threads,
                cpu_ticks,
                processor,
                resident,
                major_faults,
                allowed,
                group: group.map(Into::into),
                tasks,
                pages,
                denied,
            }
        },
    )
}

fn nodes() -> impl Strategy<Value = NodeSample> {
    let value = prop_oneof![sizes().prop_map(MeminfoValue::Size), any::<u64>().prop_map(MeminfoValue::Count)];
    let field = ("[A-Z][a-z]{0,3}", value).prop_map(|(name, value)| MeminfoField { name, value });
    let pool = (any::<u64>(), maybe(any::<u64>()), maybe(any::<u64>()));
    let counters = prop::collection::btree_map("[a-z_]{1,6}", any::<u64>(), 0..4);
    let parts = (
        node_ids(),
        prop::collection::btree_set(cpu_ids(), 0..4),
        prop::collection::vec(field, 0..5),
        counters,
        any::<[Option<u64>; 6]>(),
        prop::collection::btree_map(sizes(), pool, 0..3),
        maybe(sizes()),
    );
    parts.prop_map(
        |(node, cpus, memory, counters, [hit, miss, foreign, interleave_hit, local, other], pools, size)| {
            let pool = |(page_size, (total, free, surplus))| PoolSample { page_size, total, free, surplus };
            NodeSample {
                node,
                cpus: cpus.into_iter().collect(),
                memory,
                counters: counters.into_iter().collect(),
                allocations: NodeCounters { hit, miss, foreign, interleave_hit, local, other },
                pools: pools.into_iter().map(pool).collect(),
                present: size,
                high_watermark: size,
            }
        },
    )
}

fn groups() -> impl Strategy<Value = GroupSample> {
    let memory = prop::collection::btree_map(
        "[a-z_]{1,4}",
        prop::collection::btree_map(node_ids(), sizes(), 0..3),
        0..3,
    );
    ("/.{0,3}", maybe(any::<u64>()), memory, allowances(), maybe(pressures()), moments()).prop_map(
        |(path, cpu, memory, allowed, memory_pressure, polled)| GroupSample {
            path: path.into(),
            polled,
            cpu: cpu.map(Duration::from_nanos),
            memory,
            allowed,
            memory_pressure,
        },
    )
}

fn samples() -> impl Strategy<Value = Sample> {
    let times = any::<([u64; 4], [Option<u64>; 4])>();
    let times = times.prop_map(|([user, nice, system, idle], [iowait, irq, softirq, steal])| CpuTimes {
        user,
        nice,
        system,
        idle,
        iowait,
        irq,
        softirq,
        steal,
    });
    let interrupts = (
        ".{0,3}",
        maybe(node_ids()),
        any::<Vec<u32>>(),
        prop::collection::vec((cpu_ids(), any::<u64>()), 0..3),
        prop::collection::vec(
            (".{0,3}", maybe(prop::collection::btree_set(cpu_ids(), 0..3)), maybe(any::<u64>())),
            0..3,
        ),
    );
    let interrupts = interrupts.prop_map(|(device, node, lines, by_cpu, queues)| {
        let queue = |(name, cpus, flows): (String, Option<BTreeSet<CpuId>>, Option<u64>)| QueueSample {
            name,
            cpus: cpus.map(|cpus| cpus.into_iter().collect()),
            flows,
        };
        let queues = queues.into_iter().map(queue).collect();
        InterruptSample { device, node, lines, by_cpu, queues, ..InterruptSample::default() }
    });
    let remedy = prop_oneof![Just("run as root".to_owned()), ".{0,3}"].prop_map(Remedy::from);
    let unread = (".{0,3}", ".{0,3}", any::<usize>(), maybe(remedy));
    let unread = unread.prop_map(|(fact, reason, objects, remedy)| Unread { fact, reason, objects, remedy });
    let machine = (
        moments(),
        prop::collection::btree_map(node_ids(), nodes(), 0..3),
        prop::collection::btree_map(cpu_ids(), times, 0..3),
        maybe(sizes()),
        prop::collection::btree_map("[a-z_]{1,6}", any::<u64>(), 0..4),
        (maybe(pressures()), maybe(pressures()), maybe(pressures())),
    );
    let rest = (
        maybe(any::<u64>()),
        prop::collection::btree_map(identities(), processes(), 0..5),
        prop::collection::btree_map(any::<u32>(), ".{0,3}", 0..3),
        prop::collection::btree_map("/.{0,3}", groups(), 0..3),
        prop::collection::vec(interrupts, 0..3),
        prop::collection::btree_map(any::<u32>(), (maybe(any::<u64>()), maybe(any::<u64>())), 0..3),
        prop::collection::btree_map(0..9u32, (any::<u32>(), maybe(any::<u64>()), maybe(any::<u64>())), 0..3),
        prop::collection::vec(unread, 0..2),
        prop::collection::btree_map(identities(), mappings(), 0..3),
    );
    (machine, rest).prop_map(|((moment, nodes, cpus, memory, events, (cpu, mem, io)), rest)| {
        let (forks, processes, users, groups, interrupts, bandwidth, controllers, unread, mappings) = rest;
        let domain = |(domain, (total_bytes, local_bytes))| BandwidthSample {
            domain,
            cpus: [CpuId::new(1)].into_iter().collect(),
            total_bytes,
            local_bytes,
        };
        let die = |(cpu, (controllers, read_bytes, written_bytes))| ControllerSample {
            cpus: [CpuId::new(cpu)].into_iter().collect(),
            controllers,
            read_bytes,
            written_bytes,
        };
        Sample {
            moment,
            nodes: nodes.into_iter().map(|(node, sample)| NodeSample { node, ..sample }).collect(),
            cpus: cpus.into_iter().collect(),
            memory,
            events: events.into_iter().collect(),
            pressure: PressureSample { cpu, memory: mem, io },
            forks,
            processes: processes
                .into_iter()
                .map(|(identity, sample)| Arc::new(ProcessSample { identity, ..sample }))
                .collect(),
            users: users.into_iter().map(|(user, name)| (user, name.into())).collect(),
            groups: groups
                .into_iter()
                .map(|(path, sample)| GroupSample { path: path.into(), ..sample })
                .collect(),
            interrupts,
            bandwidth: bandwidth.into_iter().map(domain).collect(),
            controllers: controllers.into_iter().map(die).collect(),
            mappings: mappings
                .into_iter()
                .map(|(identity, sample)| process_mappings(identity, sample))
                .collect(),
            unread,
        }
    })
}

fn header() -> Header {
    Header::new("1", Duration::from_secs(5), Some("a".into()))
}

/// A recording of these samples.
fn written(samples: &[Sample]) -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new(), &header(), None).unwrap();
    for sample in samples {
        writer.push(sample).unwrap();
    }
    writer.finish().unwrap()
}

/// A small machine at this second: a counter and a process that come forward.
fn at_second(second: u64) -> Sample {
    let mut node = NodeSample::new(NodeId::new(0));
    node.counters = [("numa_hit".to_owned(), 100 * second)].into_iter().collect();
    let moment =
        Moment { since_boot: Duration::from_secs(second), wall: Duration::from_secs(1_700_000_000 + second) };
    let task = ProcessSample {
        identity: Identity { pid: Pid::new(7), started_ticks: 1 },
        polled: moment,
        name: "x".into(),
        parent: None,
        user: None,
        state: 'R',
        kernel_thread: false,
        threads: 1,
        cpu_ticks: second,
        processor: None,
        resident: None,
        major_faults: 0,
        allowed: None,
        group: None,
        tasks: None,
        pages: None,
        denied: None,
    };
    Sample { moment, nodes: vec![node], processes: vec![task.into()], ..Sample::default() }
}

fn seconds(recording: &Recording) -> (Vec<u64>, Vec<Gap>) {
    let mut seconds = Vec::new();
    let gaps = recording.read(|sample| {
        seconds.push(sample.moment.since_boot.as_secs());
        true
    });
    (seconds, gaps)
}

#[test]
fn a_recording_that_was_cut_anywhere_keeps_all_whole_blocks() {
    let samples: Vec<Sample> = (0..90).map(at_second).collect();
    let bytes = written(&samples);
    let whole = Recording::from_bytes(bytes.clone()).unwrap();
    assert_eq!(whole.samples().unwrap(), (samples, Vec::new()));
    let begin = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut before = 0;
    for cut in (begin..bytes.len()).step_by(17) {
        let recording = Recording::from_bytes(bytes[..cut].to_vec()).unwrap();
        let (seconds, gaps) = seconds(&recording);
        assert_eq!(seconds, (0..seconds.len() as u64).collect::<Vec<_>>(), "cut at {cut}");
        assert!(seconds.len() >= before, "cut at {cut}");
        assert!(gaps.len() <= 1 && gaps.iter().all(|gap| gap.to.is_none()), "cut at {cut}: {gaps:?}");
        before = seconds.len();
    }
    assert!(before >= 79, "a cut costs at most the last block: {before}");
}

#[test]
fn one_damaged_byte_costs_at_most_a_minute_and_is_named() {
    let samples: Vec<Sample> = (0..200).map(at_second).collect();
    let bytes = written(&samples);
    let begin = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for at in (begin..bytes.len()).step_by(31) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let recording = Recording::from_bytes(damaged).unwrap();
        let (seconds, gaps) = seconds(&recording);
        assert!(seconds.len() >= 130, "byte {at}: {}", seconds.len());
        assert!(seconds.is_sorted(), "byte {at}");
        assert_eq!(gaps.len(), 1, "byte {at}: {gaps:?}");
    }
}

#[test]
fn a_moment_is_found_with_the_one_before_it() {
    let recording = Recording::from_bytes(written(&(0..150).map(at_second).collect::<Vec<_>>())).unwrap();
    let check = |second: u64, before: Option<u64>, now: u64| {
        let (found_before, found) = recording.at(Duration::from_secs(1_700_000_000 + second)).unwrap();
        assert_eq!(found_before, before.map(at_second), "{second}");
        assert_eq!(found, at_second(now), "{second}");
    };
    check(75, Some(74), 75);
    check(60, Some(59), 60);
    check(121, Some(120), 121);
    check(900, Some(148), 149);
    check(1, Some(0), 1);
    check(0, Some(0), 1);
    assert_eq!(recording.span().map(|(first, last)| (last - first).as_secs()), Some(149));
}

#[test]
fn other_files_are_refused_with_their_reason() {
    let refusal = |text: &str| Recording::from_bytes(text.into()).map(drop).unwrap_err().to_string();
    assert_eq!(refusal(""), "it is empty: expected a recording of nodewise record");
    let other = "it is not a recording: expected a first line with \"schema\": \"nodewise.record/1\"";
    assert_eq!(refusal("\n"), other);
    assert_eq!(refusal("{\"schema\":\"nodewise.record/1\""), other);
    assert_eq!(refusal("{\"schema\": \"nodewise.machine/1\"}\n"), other);
    assert_eq!(
        refusal("{\"schema\": \"nodewise.record/2\"}\n"),
        "its schema is \"nodewise.record/2\", and this nodewise reads nodewise.record/1"
    );
    assert!(
        refusal("{\"schema\": \"nodewise.record/1\"}\n")
            .starts_with("its first line is damaged: missing field")
    );
    let header = "{\"schema\":\"nodewise.record/1\",\"version\":\"1\",\"interval_ms\":1}\nrubbish";
    let samples = Recording::from_bytes(header.into()).unwrap().samples();
    assert_eq!(samples.unwrap_err().to_string(), "it holds no whole sample: 7 bytes of it are damaged");
}

#[test]
fn a_header_keeps_its_machine() {
    let machine = nodewise_machine::spec::machine("2x(4c 8G)").unwrap();
    let text = machine_file::to_json(&machine);
    let with_machine = header().with_machine_file(&text).unwrap();
    let bytes = Writer::begin(Vec::new(), &with_machine, None).unwrap().finish().unwrap();
    let read = Recording::from_bytes(bytes).unwrap();
    assert_eq!(read.header().machine().unwrap(), Some(machine));
    assert!(header().with_machine_file("{").is_err());
    assert_eq!(header().machine().unwrap(), None);
}

#[test]
fn a_recording_of_its_size_asks_for_a_new_file() {
    let mut writer = Writer::begin(Vec::new(), &header(), Some(1500)).unwrap();
    let due = (0..10_000).find(|second| writer.push(&at_second(*second)).unwrap() == Rotation::Due);
    assert!(due.is_some_and(|second| second > 20), "{due:?}");
    assert!((800..=1500).contains(&writer.written()), "within its size, and well used: {}", writer.written());
}

#[test]
fn a_file_smaller_than_its_header_still_takes_a_block() {
    let mut writer = Writer::begin(Vec::new(), &header(), Some(1)).unwrap();
    let due = (0..100).find(|second| writer.push(&at_second(*second)).unwrap() == Rotation::Due);
    assert_eq!(due, Some(10), "the first block is full after ten seconds");
}

/// A disk with this much room.
struct Disk(usize);

impl std::io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A recording of one whole sample, which is this JSON.
fn of_frame(frame: &str) -> Vec<Gap> {
    let mut file = written(&[]);
    file.extend(block::pack(format!("{frame}\n").as_bytes(), true, 0, (0, 0)));
    let mut count = 0;
    let gaps = Recording::from_bytes(file).unwrap().read(|_| {
        count += 1;
        true
    });
    assert_eq!(count, usize::from(gaps.is_empty()));
    gaps
}

#[test]
fn fields_that_do_not_fit_each_other_are_a_fault() {
    let check = |frame: &str, expected: &str| {
        let gaps = of_frame(frame);
        let reason = gaps.first().map_or("", |gap| gap.reason.as_str());
        assert!(reason.contains(expected) && reason.is_empty() == expected.is_empty(), "{frame}: {reason}");
    };
    let memory = |rest: &str| {
        format!(r#"{{"nodes": {{"0": {{"sizes": {{"names": ["a", "b"], "values": [1, 2]}}, {rest}}}}}}}"#)
    };
    let counts = r#""counts": {"names": ["c"], "values": [3]}"#;
    check(&memory(&format!(r#"{counts}, "count_places": [1]"#)), "");
    check(&memory(r#""count_places": []"#), "");
    check(&memory(r#""count_places": [0]"#), "count_places: expected 0 places below 2");
    check(&memory(&format!(r#"{counts}, "count_places": []"#)), "count_places: expected 1 places below 3");
    check(&memory(&format!(r#"{counts}, "count_places": [3]"#)), "count_places: expected 1 places below 3");
    check(&memory(&format!(r#"{counts}, "count_places": [1, 2]"#)), "count_places: expected 1 places");
    let interrupts = |counts: &str| {
        format!(r#"{{"interrupts": [{{"device": "net:x", "cpus": [0, 1], "counts": {counts}}}]}}"#)
    };
    check(&interrupts("[7, 8]"), "");
    check(&interrupts("[7]"), "interrupts: 1 counts for 2 CPUs");
    check(&interrupts("[7, 8, 9]"), "interrupts: 3 counts for 2 CPUs");
}

#[test]
fn many_places_of_counts_cost_no_more_than_their_length() {
    // Looking for each among the others takes minutes.
    let many = 200_000;
    let list = |each: fn(usize) -> String| (0..many).map(each).collect::<Vec<_>>().join(",");
    let (names, values) = (list(|_| "\"x\"".to_owned()), list(|_| "1".to_owned()));
    let places = list(|place| place.to_string());
    let frame = format!(
        r#"{{"nodes": {{"0": {{"counts": {{"names": [{names}], "values": [{values}]}}, "count_places": [{places}]}}}}}}"#
    );
    assert_eq!(of_frame(&frame), []);
}

#[test]
fn an_average_that_is_not_a_number_is_left_out_and_not_zero() {
    let stall = Stall { avg10: 1.0, avg60: f64::NAN, avg300: 0.0, total_us: 5 };
    let good = Stall { avg60: 2.0, ..stall };
    let memory = Some(Pressure { some: Some(stall), full: Some(good) });
    let sample = Sample { pressure: PressureSample { memory, ..Default::default() }, ..Default::default() };
    let (samples, gaps) = Recording::from_bytes(written(&[sample])).unwrap().samples().unwrap();
    assert_eq!(gaps, []);
    assert_eq!(samples[0].pressure.memory, Some(Pressure { some: None, full: Some(good) }));
}

#[test]
fn a_recording_that_is_missing_says_so() {
    let error = Recording::open(std::path::Path::new("/nonexistent/x.nwr")).unwrap_err();
    assert_eq!(error.to_string(), "cannot read it: no such file or directory");
}

#[test]
fn a_full_disk_is_an_error_and_not_silence() {
    let mut writer = Writer::begin(Disk(600), &header(), None).unwrap();
    let failed = (0..1000).find_map(|second| writer.push(&at_second(second)).err());
    assert_eq!(failed.unwrap().kind(), std::io::ErrorKind::StorageFull);
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

proptest! {
    // A sample has a hundred fields: each case is dear.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_samples_come_back_as_they_were(mut samples in prop::collection::vec(samples(), 1..4)) {
        for sample in &samples {
            // In a change, null takes away.
            let frame = serde_json::to_value(Frame::new(sample, |_| false)).unwrap();
            prop_assert!(!has_null(&frame), "{}", frame);
        }
        // Within a minute, so that the later ones are changes.
        for (second, sample) in (0..).zip(&mut samples) {
            sample.moment.since_boot = Duration::from_secs(second);
        }
        let recording = Recording::from_bytes(written(&samples)).unwrap();
        let (read, gaps) = recording.samples().unwrap();
        prop_assert!(gaps.is_empty(), "{:?}", gaps);
        prop_assert_eq!(read, samples);
    }

    #[test]
    fn any_bytes_behind_a_header_are_read_or_refused_without_a_panic(bytes in any::<Vec<u8>>(), line in ".{0,40}") {
        let mut file = written(&[]);
        file.extend(block::pack(line.as_bytes(), true, 0, (0, 0)));
        file.extend(bytes);
        let _ = Recording::from_bytes(file).unwrap().samples();
    }
}
