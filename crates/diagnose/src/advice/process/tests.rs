use std::sync::Arc;

use nodewise_machine::mapping::{FileId, MappingKind};
use nodewise_machine::{MemPolicy, PolicyMode};

use super::*;
use crate::advice::{Advice, HORIZON};
use crate::attribution::to_ticks;
use crate::knowledge;
use crate::situation::fixture::{Fixture, Work, nodes, seconds};

const FOUR: &str = "4x(2c 16G)";

fn gib(count: u64) -> Bytes {
    Bytes::from_gib(count)
}

/// Sets the resident memory of the process at both ends of the window.
fn resident(fixture: &mut Fixture, then: Bytes, now: Bytes) {
    for (sample, size) in [(&mut fixture.before, then), (&mut fixture.now, now)] {
        let process = sample.processes.iter_mut().find(|process| process.identity.pid.number() == 100);
        Arc::make_mut(process.expect("the process")).resident = Some(size);
    }
}

/// A reading of a process whose folder is open.
fn open() -> ProgramReading {
    ProgramReading {
        real_time: Some(false),
        locked: Some(Bytes::default()),
        limit: Some(None),
        devices: Some(Vec::new()),
        ..ProgramReading::default()
    }
}

fn profile(fixture: &Fixture, reading: &ProgramReading) -> Profile {
    let situation = Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    let process = fixture.now.processes.iter().find(|process| process.identity.pid.number() == 100).unwrap();
    let programs = knowledge::applications().unwrap();
    let application = knowledge::recognise(&programs, &reading.facts);
    from_process(&situation, process, reading, application, HORIZON)
}

/// A process of 2 GiB on node 2 that works there.
fn small() -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(2, gib(2))], cpu: &[(4, seconds(9))], ..Work::default() });
    fixture.mappings(100, &[(MappingKind::Heap, MemPolicy::DEFAULT, &[(2, gib(2))])]);
    resident(&mut fixture, gib(2), gib(2));
    fixture
}

#[test]
fn a_small_process_stays_on_the_node_of_its_memory() {
    let profile = profile(&small(), &open());
    assert_eq!(profile.home(), Some(NodeId::new(2)));
    let advice = Advice::new(&profile, None);
    assert_eq!(advice.row.number, "6", "{:?}", advice.undecided);
    assert_eq!(advice.placements, [profile.on_node(NodeId::new(2), PolicyMode::Bind)]);
    // Half of a node is free, a quarter is page cache, and 2 GiB are its own.
    let room = profile.nodes[&NodeId::new(2)].room;
    assert!(room > gib(13) && room < gib(15), "{room}");
}

#[test]
fn growth_is_counted_over_the_horizon_and_never_assumed() {
    let mut fixture = small();
    resident(&mut fixture, Bytes::from_mib(2048 - 30), gib(2));
    let grown = profile(&fixture, &open());
    // 30 MiB in 10 s for 10 minutes.
    assert_eq!(grown.need.value(), Some(&(gib(2) + Bytes::from_mib(1800))));
    assert_eq!(Advice::new(&grown, None).row.number, "7");
    let limited = profile(&fixture, &ProgramReading { limit: Some(Some(gib(3))), ..open() });
    assert_eq!(limited.need.value(), Some(&gib(3)));
    let situation = Situation::new(&fixture.machine, None, &fixture.now).unwrap();
    let process = fixture.now.processes.iter().find(|process| process.identity.pid.number() == 100).unwrap();
    let once = from_process(&situation, process, &open(), None, HORIZON);
    assert_eq!((once.growth.value(), once.need.value()), (None, None), "one moment shows no growth");
    let advice = Advice::new(&once, None);
    assert_eq!(advice.row.number, "14");
    assert!(advice.undecided.iter().any(|open| open.row.number == "6" && open.lacks.contains(&"growth")));
}

#[test]
fn what_is_placed_is_left_alone_until_doctor_complains() {
    let mut fixture = small();
    fixture.now.mappings.clear();
    let policy = MemPolicy::new(PolicyMode::Bind, nodes("2"));
    fixture.mappings(100, &[(MappingKind::Heap, policy.clone(), &[(2, gib(2))])]);
    assert_eq!(Advice::new(&profile(&fixture, &open()), None).row.number, "3");
    // Bound to node 2, and at work on node 0.
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(2, gib(2))], cpu: &[(0, seconds(9))], ..Work::default() });
    fixture.mappings(100, &[(MappingKind::Heap, policy, &[(2, gib(2))])]);
    resident(&mut fixture, gib(2), gib(2));
    let sick = profile(&fixture, &open());
    assert!(
        sick.complaints.value().is_some_and(|rules| rules.contains(&"memory-stranded")),
        "{:?}",
        sick.complaints
    );
    assert_eq!(Advice::new(&sick, None).row.number, "6");
}

#[test]
fn mappings_that_were_not_read_leave_the_policy_open() {
    let mut fixture = small();
    fixture.now.mappings.clear();
    let profile = profile(&fixture, &open());
    assert_eq!((profile.policy.value(), profile.placed.value()), (None, None));
    let advice = Advice::new(&profile, None);
    assert!(advice.undecided.iter().any(|open| open.row.number == "3"), "{:?}", advice.undecided);
}

#[test]
fn the_command_line_declares_a_size_and_the_name_says_how_memory_is_used() {
    let facts = |line: &str| ProgramFacts {
        exe: Some(format!("/usr/bin/{}", line.split(' ').next().unwrap())),
        words: Some(line.split(' ').map(str::to_owned).collect()),
        ..ProgramFacts::default()
    };
    let reading = |line| ProgramReading { facts: facts(line), ..open() };
    let java = profile(&small(), &reading("java -Xmx40g -jar x.jar"));
    assert_eq!((java.need.value(), java.need.quality()), (Some(&gib(40)), Some(Quality::Declared)));
    assert_eq!(java.sharing.value(), None, "its collector knows nodes: interleaving would work against it");
    let mongod = profile(&small(), &reading("mongod --wiredTigerCacheSizeGB 40"));
    assert_eq!(mongod.sharing.value(), Some(&Sharing::Shared));
    let redis = profile(&small(), &reading("redis-server --maxmemory 3gb"));
    assert_eq!(redis.need.value(), Some(&gib(6)), "and a copy");
    assert_eq!(Advice::new(&redis, None).row.number, "7a");
}

#[test]
fn a_limit_holds_for_what_is_declared_and_for_copies() {
    let reading = |line: &str, limit: u64| ProgramReading {
        facts: ProgramFacts {
            exe: Some(format!("/usr/bin/{}", line.split(' ').next().unwrap())),
            words: Some(line.split(' ').map(str::to_owned).collect()),
            ..ProgramFacts::default()
        },
        limit: Some(Some(gib(limit))),
        ..open()
    };
    let need = |line, limit| profile(&small(), &reading(line, limit)).need.value().copied();
    assert_eq!(need("java -Xmx40g -jar x.jar", 8), Some(gib(8)));
    assert_eq!(need("redis-server --maxmemory 3gb", 4), Some(gib(4)));
    assert_eq!(need("redis-server --maxmemory 3gb", 1), Some(gib(2)), "it has 2 GiB already");
}

#[test]
fn growth_that_the_window_hardly_shows_still_counts_over_the_horizon() {
    let mut fixture = small();
    // 15 MiB in 10 s are less than 1 % of the size, and 900 MiB in ten minutes.
    resident(&mut fixture, Bytes::from_mib(2048 - 15), gib(2));
    let profile = profile(&fixture, &open());
    assert_eq!(profile.need.value(), Some(&(gib(2) + Bytes::from_mib(900))));
    assert_eq!(Advice::new(&profile, None).row.number, "7", "it is not bound");
}

#[test]
fn an_idle_process_and_a_young_one_say_nothing_of_their_work_and_growth() {
    let mut idle = Fixture::new(FOUR);
    idle.process(&Work { memory: &[(2, gib(2))], ..Work::default() });
    idle.mappings(100, &[(MappingKind::Heap, MemPolicy::DEFAULT, &[(2, gib(2))])]);
    resident(&mut idle, gib(2), gib(2));
    let idle = profile(&idle, &open());
    assert_eq!(idle.parallelism.value(), None);
    assert_eq!(idle.complaints.value(), None, "a process that does not run was not examined");
    assert_eq!(Advice::new(&idle, None).row.number, "14");
    let mut young = small();
    let start = ticks_before(&young, Duration::from_secs(30));
    for sample in [&mut young.before, &mut young.now] {
        let process = sample.processes.iter_mut().find(|process| process.identity.pid.number() == 100);
        Arc::make_mut(process.unwrap()).identity.started_ticks = start;
    }
    resident(&mut young, gib(1), gib(2));
    young.now.mappings.clear();
    assert_eq!(profile(&young, &open()).growth.value(), None);
}

/// The start of a process that is this old at the end of the window.
fn ticks_before(fixture: &Fixture, age: Duration) -> u64 {
    to_ticks(fixture.now.moment.since_boot.saturating_sub(age))
}

#[test]
fn a_policy_that_was_not_read_is_not_the_default() {
    let mut fixture = small();
    for mappings in &mut fixture.now.mappings {
        let mappings = Arc::make_mut(&mut mappings.mappings);
        mappings.mappings.iter_mut().for_each(|mapping| mapping.policy = None);
    }
    let profile = profile(&fixture, &open());
    assert_eq!((profile.policy.value(), profile.placed.value()), (None, None));
}

#[test]
fn a_master_is_not_judged_by_its_own_memory_and_work() {
    let mut fixture = small();
    for pid in [101, 102] {
        fixture.process(&Work { pid, memory: &[(0, gib(8))], cpu: &[(0, seconds(9))], ..Work::default() });
    }
    let master = fixture.now.processes.iter().find(|process| process.identity.pid.number() == 100);
    let (pid, name) = (master.unwrap().identity.pid, master.unwrap().name.clone());
    for sample in [&mut fixture.before, &mut fixture.now] {
        for process in sample.processes.iter_mut().filter(|process| process.identity.pid != pid) {
            let process = Arc::make_mut(process);
            (process.parent, process.name) = (Some(pid), name.clone());
        }
    }
    let master = profile(&fixture, &open());
    assert_eq!(master.need.value(), None, "{:?}", master.need);
    assert!(
        master.parallelism.value().is_some_and(|busy| (2.6..2.8).contains(busy)),
        "{:?}",
        master.parallelism
    );
    let declared = ProgramReading {
        facts: ProgramFacts {
            exe: Some("/usr/lib/postgresql/15/bin/postgres".to_owned()),
            words: Some(["postgres", "-c", "shared_buffers=40GB"].map(str::to_owned).to_vec()),
            ..ProgramFacts::default()
        },
        ..open()
    };
    assert_eq!(profile(&fixture, &declared).need.value(), Some(&gib(40)));
}

#[test]
fn cpus_outside_of_its_own_are_never_advised() {
    let mut fixture = Fixture::new(FOUR);
    let cpu: &[(u32, Duration)] = &[(2, seconds(9))];
    fixture.process(&Work { memory: &[(2, gib(2))], cpu, cpus: Some("2-3"), ..Work::default() });
    fixture.mappings(100, &[(MappingKind::Heap, MemPolicy::DEFAULT, &[(2, gib(2))])]);
    resident(&mut fixture, gib(2), gib(2));
    let profile = profile(&fixture, &open());
    assert_eq!(profile.home(), Some(NodeId::new(1)), "the node of its CPUs");
    assert!(profile.placed.value().is_some_and(Option::is_some), "{:?}", profile.placed);
}

#[test]
fn signs_of_latency_and_a_device_are_likely_and_their_absence_is_no_answer_where_nothing_was_read() {
    let fixture = small();
    let with = |reading: ProgramReading| profile(&fixture, &reading);
    assert_eq!(with(ProgramReading { real_time: Some(true), ..open() }).latency.value(), Some(&true));
    assert_eq!(with(ProgramReading { locked: Some(gib(1)), ..open() }).latency.value(), Some(&true));
    assert_eq!(
        with(ProgramReading { locked: Some(Bytes::from_kib(64)), ..open() }).latency.value(),
        Some(&false)
    );
    assert_eq!(with(ProgramReading { real_time: None, ..open() }).latency.value(), None);
    let device = |devices: Option<Vec<Option<u32>>>| {
        let devices = devices.map(|nodes| nodes.into_iter().map(|node| node.map(NodeId::new)).collect());
        with(ProgramReading { devices, ..open() }).device.value().copied()
    };
    assert_eq!(device(None), None);
    assert_eq!(device(Some(Vec::new())), Some(None));
    assert_eq!(device(Some(vec![Some(1), Some(1)])), Some(Some(NodeId::new(1))));
    assert_eq!(device(Some(vec![Some(1), Some(2)])), Some(None));
    assert_eq!(device(Some(vec![Some(1), None])), None, "the firmware does not say");
}

#[test]
fn of_a_program_that_does_not_run_only_the_machine_is_known() {
    let fixture = small();
    let situation = Situation::new(&fixture.machine, None, &fixture.now).unwrap();
    let profile = unstarted(&situation, &ProgramReading::default(), None, HORIZON);
    let advice = Advice::new(&profile, None);
    assert_eq!(advice.row.number, "14");
    assert!(advice.undecided.len() >= 8, "{:?}", advice.undecided);
    assert!(!advice.ask.is_empty());
}

/// Two processes on node 0 and a segment of both on node 2, which the second one may use or not.
fn pair(most_mapped: u64, works: bool) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    let segment = FileId { device: (0, 1), inode: 7 };
    for pid in [100, 200] {
        let time = if pid == 100 || works { 9 } else { 0 };
        let cpu = [(pid / 100 - 1, seconds(time))];
        fixture.process(&Work { pid, memory: &[(0, Bytes::from_mib(4))], cpu: &cpu, ..Work::default() });
        let policy = MemPolicy::new(PolicyMode::Bind, nodes("2"));
        fixture.mappings(
            pid,
            &[
                (MappingKind::Heap, policy.clone(), &[(0, Bytes::from_mib(4))]),
                (MappingKind::Shared, policy, &[(2, gib(2))]),
            ],
        );
        let read = fixture.now.mappings.last_mut().unwrap();
        let mapping = &mut Arc::make_mut(&mut read.mappings).mappings[1];
        mapping.permissions.shared = true;
        mapping.file = Some(segment);
        mapping.most_mapped = Some(most_mapped);
    }
    resident(&mut fixture, gib(2), gib(2));
    fixture
}

#[test]
fn a_segment_away_from_both_of_its_users_is_theirs_and_not_fine() {
    let found = profile(&pair(2, true), &open());
    assert_eq!(found.size.value(), Some(&(gib(2) + Bytes::from_mib(4))));
    assert_eq!(found.need.value(), Some(&(gib(2) + Bytes::from_mib(8))), "the segment once, both heaps");
    assert!(found.remote.value().is_some_and(|remote| *remote > 0.99), "{:?}", found.remote);
    assert_eq!(found.common_away, Some(gib(2)));
    assert_eq!(found.sharing.value(), Some(&Sharing::Shared));
    let evidence = found.evidence();
    let away = evidence.iter().find(|entry| entry.name == "of it away from all of them").unwrap();
    assert_eq!(away.value, Ok((crate::finding::Value::Size(gib(2)), Quality::Sampled)));
    let advice = Advice::new(&found, None);
    assert_eq!(advice.row.number, "6", "{:?}", advice.undecided);
}

#[test]
fn a_segment_is_not_judged_where_a_process_that_maps_it_is_not_known() {
    let found = profile(&pair(3, true), &open());
    assert_eq!((found.common_away, found.need.value()), (None, None), "a third process may run on node 2");
    assert!(found.remote.value().is_some_and(|remote| *remote > 0.99), "its own view of it is known");
}

#[test]
fn a_segment_where_one_of_its_users_works_is_fine() {
    let mut fixture = pair(2, true);
    for sample in [&mut fixture.before, &mut fixture.now] {
        let other = sample.processes.iter_mut().find(|process| process.identity.pid.number() == 200).unwrap();
        for task in Arc::make_mut(other).tasks.iter_mut().flatten() {
            task.processor = Some(nodewise_machine::CpuId::new(4));
        }
    }
    assert_eq!(profile(&fixture, &open()).common_away, None);
    // One that does not work there says nothing.
    assert_eq!(profile(&pair(2, false), &open()).common_away, Some(gib(2)));
}
