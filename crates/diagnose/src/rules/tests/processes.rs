//! Rules about one process.

use std::sync::Arc;

use nodewise_machine::NodeId;
use nodewise_machine::mapping::{DrawnPages, FileId, MappedPages, MappingPolicy};
use nodewise_source::sample::{PageMethod, ProcessSample};

use super::*;
use crate::finding::Value;

const INTERLEAVE: PolicyMode = PolicyMode::Interleave;

#[test]
fn memory_on_the_node_of_one_thread() {
    let rule = &first_touch_on_one::RULE;
    let everywhere = &[(0, seconds(5)), (2, seconds(5)), (4, seconds(5)), (6, seconds(5))];
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(1, gib(8))], cpu: everywhere, ..Work::default() });
    let found = one(&fixture, rule);
    assert_eq!((found.severity, found.concerns), (Severity::Warning, Some(gib(6))));
    assert_eq!(found.experiment.as_deref(), Some("nodewise tune -- COMMAND"));
    // Each thread with its own part.
    let mut fixture = Fixture::new(FOUR);
    let even = &[(0, gib(2)), (1, gib(2)), (2, gib(2)), (3, gib(2))];
    fixture.process(&Work { memory: even, cpu: everywhere, ..Work::default() });
    silent(&fixture, rule);
    // Most of the work is where the memory is.
    let mut fixture = Fixture::new(FOUR);
    let mostly = &[(2, seconds(8)), (0, seconds(2))];
    fixture.process(&Work { memory: &[(1, gib(8))], cpu: mostly, ..Work::default() });
    silent(&fixture, rule);
    assert!(fixture.lacks_at_once(rule).contains(&"rates"));
}

#[test]
fn pages_that_were_there_before_their_policy() {
    let rule = &policy_too_late::RULE;
    let mut fixture = Fixture::new(FOUR);
    let all = || MemPolicy::new(INTERLEAVE, nodes("0-3"));
    fixture.process(&Work { memory: &[(1, gib(8))], ..Work::default() });
    fixture.mappings(100, &[(MappingKind::Anonymous, all(), &[(1, gib(8))])]);
    let found = one(&fixture, rule);
    assert_eq!(found.concerns, Some(gib(6)));
    assert_eq!(
        found.mends[0].commands,
        ["nodewise migrate 100 --to interleave:0-3 --save nodewise-100.moved"]
    );
    let even: &[(u32, Bytes)] = &[(0, gib(2)), (1, gib(2)), (2, gib(2)), (3, gib(2))];
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: even, ..Work::default() });
    fixture.mappings(100, &[(MappingKind::Anonymous, all(), even)]);
    silent(&fixture, rule);
    // Weights make it uneven by design.
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(1, gib(8))], ..Work::default() });
    let weighted = MemPolicy::new(PolicyMode::WeightedInterleave, nodes("0-3"));
    fixture.mappings(100, &[(MappingKind::Anonymous, weighted, &[(1, gib(8))])]);
    silent(&fixture, rule);
    fixture.now.mappings.clear();
    let situation = crate::Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    assert_eq!(rule.lacks(&situation)[0].fact, "policies of processes");
}

#[test]
fn pages_outside_of_their_binding() {
    let mut fixture = Fixture::new(FOUR);
    let memory: &[(u32, Bytes)] = &[(1, gib(2)), (2, gib(1))];
    fixture.process(&Work { memory, ..Work::default() });
    let bound = MemPolicy::new(PolicyMode::Bind, nodes("1"));
    fixture.mappings(100, &[(MappingKind::Anonymous, bound, memory)]);
    let found = one(&fixture, &policy_too_late::RULE);
    assert_eq!((found.concerns, &found.nodes), (Some(gib(1)), &nodes("1")));
}

#[test]
fn a_small_process_over_all_nodes() {
    let rule = &interleaved_but_small::RULE;
    let even: &[(u32, Bytes)] = &[(0, gib(1)), (1, gib(1)), (2, gib(1)), (3, gib(1))];
    let all = || MemPolicy::new(INTERLEAVE, nodes("0-3"));
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: even, cpu: &[(0, seconds(10))], ..Work::default() });
    fixture.mappings(100, &[(MappingKind::Anonymous, all(), even)]);
    let found = one(&fixture, rule);
    assert_eq!((found.concerns, found.mends.len()), (Some(gib(3)), 0), "an experiment, and no command");
    // Threads on several nodes may need all controllers.
    let mut fixture = Fixture::new(FOUR);
    let cpu = &[(0, seconds(10)), (4, seconds(10))];
    fixture.process(&Work { memory: even, cpu, ..Work::default() });
    fixture.mappings(100, &[(MappingKind::Anonymous, all(), even)]);
    silent(&fixture, rule);
}

fn shared(fixture: &mut Fixture, pids: &[u32]) {
    shared_memory(fixture, pids, &[(1, gib(4))]);
}

fn shared_memory(fixture: &mut Fixture, pids: &[u32], memory: &[(u32, Bytes)]) {
    for (at, pid) in pids.iter().enumerate() {
        let cpu = &[(at as u32 * 2, seconds(10))];
        fixture.process(&Work { pid: *pid, memory, cpu, ..Work::default() });
        fixture.mappings(*pid, &[(MappingKind::Shared, MemPolicy::DEFAULT, memory)]);
        let read = Arc::make_mut(&mut fixture.now.mappings.last_mut().unwrap().mappings);
        read.mappings[0].file = Some(FileId { device: (0, 1), inode: 77 });
        read.mappings[0].name = Some("/dev/shm/segment\n".to_owned());
    }
}

#[test]
fn a_segment_on_the_node_of_its_creator() {
    let rule = &shared_segment_on_one::RULE;
    let mut fixture = Fixture::new(FOUR);
    shared(&mut fixture, &[100, 200, 300]);
    let found = one(&fixture, rule);
    assert_eq!((found.concerns, &found.subject), (Some(gib(4)), &Subject::Nodes(nodes("1"))));
    assert!(found.summary.contains("nodes 0-2"), "{}", found.summary);
    assert!(!found.summary.contains('\n'), "a name drives no terminal");
    // One user.
    let mut fixture = Fixture::new(FOUR);
    shared(&mut fixture, &[100]);
    silent(&fixture, rule);
}

#[test]
fn a_file_in_the_cache_of_another_node() {
    let rule = &file_cache_far::RULE;
    let file = |fixture: &mut Fixture| {
        fixture.mappings(100, &[(MappingKind::File, MemPolicy::DEFAULT, &[(3, gib(4))])]);
        let read = Arc::make_mut(&mut fixture.now.mappings[0].mappings);
        read.mappings[0].name = Some("/srv/weights".to_owned());
    };
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(0, gib(1))], cpu: &[(0, seconds(10))], ..Work::default() });
    file(&mut fixture);
    let found = one(&fixture, rule);
    assert_eq!((found.concerns, found.mends[0].needs_root), (Some(gib(4)), true));
    // A reader on that node.
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(3, gib(1))], cpu: &[(6, seconds(10))], ..Work::default() });
    file(&mut fixture);
    silent(&fixture, rule);
}

#[test]
fn cpus_in_a_cpuset_and_memory_elsewhere() {
    let rule = &cpus_without_mems::RULE;
    let mut fixture = Fixture::new(FOUR);
    let cpu = &[(0, seconds(10))];
    fixture.process(&Work { memory: &[(3, gib(4))], cpu, cpus: Some("0-1"), ..Work::default() });
    assert_eq!(one(&fixture, rule).nodes, nodes("3"));
    // Memory where its CPUs are.
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(0, gib(4))], cpu, cpus: Some("0-1"), ..Work::default() });
    silent(&fixture, rule);
}

#[test]
fn memory_in_a_cpuset_and_threads_elsewhere() {
    let rule = &mems_without_cpus::RULE;
    let memory = &[(0, gib(4))];
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory, cpu: &[(6, seconds(10))], nodes: Some("0"), ..Work::default() });
    assert_eq!(one(&fixture, rule).concerns, Some(gib(4)));
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory, cpu: &[(0, seconds(10))], nodes: Some("0"), ..Work::default() });
    silent(&fixture, rule);
    // Everything is allowed: nothing is confined.
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory, cpu: &[(6, seconds(10))], ..Work::default() });
    silent(&fixture, rule);
}

#[test]
fn a_process_that_grows_in_a_cpuset() {
    let rule = &bind_too_small::RULE;
    let grows = |from: Bytes, nodes: Option<&str>| {
        let mut fixture = Fixture::new(FOUR);
        fixture.process(&Work { memory: &[(1, gib(4))], nodes, ..Work::default() });
        let process = Arc::make_mut(fixture.before.processes.last_mut().unwrap());
        let share = process.pages.as_mut().unwrap().nodes.get_mut(&NodeId::new(1)).unwrap();
        (share.size, share.own) = (from, Some(from));
        fixture
    };
    let found = one(&grows(Bytes::from_mib(3_896), Some("1")), rule);
    assert_eq!(found.confidence, Confidence::Likely);
    assert!(found.summary.contains("will be full in about 11 min"), "{}", found.summary);
    silent(&grows(gib(4), Some("1")), rule);
    silent(&grows(Bytes::from_mib(3_896), None), rule);
}

#[test]
fn growth_is_counted_in_one_way_and_not_of_a_process_that_starts() {
    let rule = &bind_too_small::RULE;
    let (then, now) = (Bytes::from_mib(3_896), gib(4));
    let grows = |change: &dyn Fn(&mut ProcessSample, &mut ProcessSample)| {
        let mut fixture = Fixture::new(FOUR);
        fixture.process(&Work { memory: &[(1, now)], nodes: Some("1"), ..Work::default() });
        let Fixture { before, now: after, .. } = &mut fixture;
        let [before, after] =
            [before, after].map(|sample| Arc::make_mut(sample.processes.last_mut().unwrap()));
        let share = before.pages.as_mut().unwrap().nodes.get_mut(&NodeId::new(1)).unwrap();
        (share.size, share.own) = (then, Some(then));
        (before.resident, after.resident) = (Some(then), Some(now));
        change(before, after);
        fixture
    };
    // The number comes from the pages that were looked at; the kernel's count of resident pages is its bound.
    let read_from = |fixture: &Fixture| {
        let found = one(fixture, rule);
        let growth = found.evidence.into_iter().find(|evidence| evidence.fact == "growth").unwrap();
        (growth.read_from, growth.value)
    };
    let pace = |mib: f64| Value::Rate(mib, "MiB");
    assert_eq!(read_from(&grows(&|_, _| {})), ("/proc/PID/numa_maps", pace(20.0)));
    let drawn = grows(&|_, after| after.pages.as_mut().unwrap().method = PageMethod::Drawn(5_000));
    assert_eq!(read_from(&drawn), ("move_pages(2)", pace(20.0)));
    let bounded = grows(&|before, _| before.resident = Some(Bytes::from_mib(3_946)));
    assert_eq!(read_from(&bounded), ("/proc/PID/stat", pace(15.0)));
    // The kernel's own count did not change: pages were counted in another way, or drawn.
    silent(&grows(&|before, after| before.resident = after.resident), rule);
    silent(&grows(&|before, _| before.pages = None), rule);
    // Seconds old.
    let mut young = grows(&|_, _| {});
    let started_ticks = u64::try_from(young.now.moment.since_boot.as_millis() / 10).unwrap() - 3_000;
    for sample in [&mut young.before, &mut young.now] {
        Arc::make_mut(sample.processes.last_mut().unwrap()).identity.started_ticks = started_ticks;
        sample.mappings.iter_mut().for_each(|of| of.identity.started_ticks = started_ticks);
    }
    silent(&young, rule);
}

/// Gives a process another name, in both samples.
fn named(fixture: &mut Fixture, pid: u32, name: &str, parent: Option<u32>) {
    for sample in [&mut fixture.before, &mut fixture.now] {
        let process =
            sample.processes.iter_mut().find(|process| process.identity.pid.number() == pid).unwrap();
        let process = Arc::make_mut(process);
        process.name = name.into();
        process.parent = parent.map(nodewise_source::process::Pid::new);
    }
}

#[test]
fn a_virtual_machine_away_from_its_memory() {
    let rule = &vm_memory_stranded::RULE;
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(2, gib(4))], cpu: &[(0, seconds(10))], ..Work::default() });
    silent(&fixture, rule);
    named(&mut fixture, 100, "qemu-system-x86", None);
    assert_eq!(one(&fixture, rule).concerns, Some(gib(4)));
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(0, gib(4))], cpu: &[(0, seconds(10))], ..Work::default() });
    named(&mut fixture, 100, "qemu-system-x86", None);
    silent(&fixture, rule);
}

#[test]
fn a_machine_that_is_placed_cell_by_cell_is_not_stranded() {
    let bind = |node: &str| MemPolicy::new(PolicyMode::Bind, nodes(node));
    let memory: &[(u32, Bytes)] = &[(0, gib(4)), (1, gib(4))];
    // One of two cells is busy, on this CPU.
    let with = |cpu: u32, mappings: Option<[(&str, u32); 2]>| {
        let mut fixture = Fixture::new(FOUR);
        fixture.process(&Work { memory, cpu: &[(cpu, seconds(10))], ..Work::default() });
        named(&mut fixture, 100, "qemu-system-x86", None);
        if let Some(cells) = mappings {
            let cell = |(policy, node)| (MappingKind::Anonymous, bind(policy), vec![(node, gib(4))]);
            let cells = cells.map(cell);
            let cells: Vec<_> =
                cells.iter().map(|(kind, policy, memory)| (*kind, policy.clone(), &memory[..])).collect();
            fixture.mappings(100, &cells);
        }
        let found = |rule: &'static Rule| diagnosis(&fixture, rule).findings.len();
        (found(&vm_memory_stranded::RULE), found(&memory_stranded::RULE), found(&balancing_off::RULE))
    };
    assert_eq!(with(0, Some([("0", 0), ("1", 1)])), (0, 0, 0));
    // Without any policy.
    assert_eq!(with(0, None), (1, 1, 0));
    // Its CPUs run elsewhere than its cells are.
    assert_eq!(with(4, Some([("0", 0), ("1", 1)])), (1, 1, 0));
    // All of it under one policy.
    assert_eq!(with(0, Some([("0-1", 0), ("0-1", 1)])), (1, 1, 0));
    // Policies that were not read may be cells.
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory, cpu: &[(0, seconds(10))], ..Work::default() });
    named(&mut fixture, 100, "qemu-system-x86", None);
    drawn(&mut fixture, 100, None);
    let found = diagnosis(&fixture, &vm_memory_stranded::RULE);
    assert_eq!((found.findings.len(), found.not_examined.len()), (0, 1));
    assert_eq!(diagnosis(&fixture, &memory_stranded::RULE).findings, []);
}

#[test]
fn threads_that_were_not_read_lower_the_certainty() {
    let bound = || MemPolicy::new(PolicyMode::Bind, nodes("2"));
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(2, gib(4))], cpus: Some("0-1"), ..Work::default() });
    fixture.mappings(100, &[(MappingKind::Anonymous, bound(), &[(2, gib(4))])]);
    let confidence = |fixture: &Fixture| one(fixture, &bound_away::RULE).confidence;
    assert_eq!(confidence(&fixture), Confidence::Certain);
    Arc::make_mut(fixture.now.processes.last_mut().unwrap()).threads = 12;
    assert_eq!(confidence(&fixture), Confidence::Likely);
}

#[test]
fn a_child_under_the_policy_of_its_parent() {
    let rule = &inherited_policy::RULE;
    let memory: &[(u32, Bytes)] = &[(2, gib(4))];
    let mut fixture = Fixture::new(FOUR);
    let bound = MemPolicy::new(PolicyMode::Bind, nodes("2"));
    fixture.process(&Work { memory, cpu: &[(4, seconds(1))], ..Work::default() });
    fixture.process(&Work { pid: 200, memory, cpu: &[(0, seconds(10))], ..Work::default() });
    for pid in [100, 200] {
        fixture.mappings(pid, &[(MappingKind::Anonymous, bound.clone(), memory)]);
    }
    named(&mut fixture, 100, "mysqld", None);
    named(&mut fixture, 200, "backup", Some(100));
    assert!(
        one(&fixture, rule).summary.contains("\"backup\" (200) has the policy bind:2 of \"mysqld\" (100)")
    );
    // A worker of the same server.
    named(&mut fixture, 200, "mysqld", Some(100));
    silent(&fixture, rule);
}

/// Makes the mappings of a process those of one whose pages were drawn: their policies were not read.
fn drawn(fixture: &mut Fixture, pid: u32, thread_policy: Option<MemPolicy>) {
    let read = fixture.now.mappings.iter_mut().find(|read| read.identity.pid.number() == pid).unwrap();
    let read = Arc::make_mut(&mut read.mappings);
    read.method = nodewise_machine::mapping::MappingsMethod::Sampled { asked: 1_000, seed: 1 };
    read.thread_policy =
        thread_policy.map(|policy| MappingPolicy { text: policy.to_string(), policy: Some(policy) });
    for mapping in &mut read.mappings {
        mapping.policy = None;
        let MappedPages::Counted(pages) = &mapping.pages else { continue };
        let all: Bytes = pages.values().copied().sum();
        let hits = |size: Bytes| (size.get() as f64 / all.get() as f64 * 1_000.0) as u64;
        let nodes = pages.iter().map(|(node, size)| (*node, hits(*size))).collect();
        mapping.pages = MappedPages::Drawn(DrawnPages { candidates: all, drawn: 1_000, nodes });
    }
}

fn diagnosis(fixture: &Fixture, rule: &Rule) -> crate::Diagnosis {
    let situation =
        crate::Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).expect("two samples");
    crate::Diagnosis::new(&situation, &[rule.id.to_owned()])
}

#[test]
fn an_unknown_policy_is_not_none() {
    let everywhere = &[(0, seconds(5)), (2, seconds(5)), (4, seconds(5)), (6, seconds(5))];
    let work = Work { memory: &[(1, gib(8))], cpu: everywhere, ..Work::default() };
    let rule = &first_touch_on_one::RULE;
    let with = |thread_policy: Option<MemPolicy>| {
        let mut fixture = Fixture::new(FOUR);
        fixture.process(&work);
        drawn(&mut fixture, 100, thread_policy);
        diagnosis(&fixture, rule)
    };
    for unknown in [with(None), with(Some(MemPolicy::DEFAULT))] {
        assert_eq!((unknown.findings.len(), unknown.examined.len()), (0, 0));
        assert_eq!(unknown.not_examined[0].1[0].fact, "policies of processes");
        assert!(unknown.not_examined[0].1[0].remedy.as_deref().unwrap().contains("--pid"));
    }
    // A process beside it whose policies are known is examined, and the other one is named.
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&work);
    drawn(&mut fixture, 100, None);
    fixture.process(&Work { pid: 200, ..work });
    let found = diagnosis(&fixture, rule);
    assert_eq!((found.findings.len(), found.left_out.len()), (1, 1));
    assert!(matches!(&found.left_out[0].process,
        Subject::Process { identity, .. } if identity.pid.number() == 100));
}

#[test]
fn a_policy_that_the_kernel_cut_is_one() {
    let everywhere = &[(0, seconds(5)), (2, seconds(5)), (4, seconds(5)), (6, seconds(5))];
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(1, gib(8))], cpu: everywhere, ..Work::default() });
    let read = Arc::make_mut(&mut fixture.now.mappings[0].mappings);
    read.mappings[0].policy = Some(MappingPolicy { text: "interleave:0,2,4,6,8".into(), policy: None });
    assert!(diagnosis(&fixture, &first_touch_on_one::RULE).findings.is_empty());
}

#[test]
fn a_policy_of_the_first_thread_is_likely_that_of_all() {
    let rule = &bound_away::RULE;
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(2, gib(4))], cpus: Some("0-1"), ..Work::default() });
    drawn(&mut fixture, 100, Some(MemPolicy::new(PolicyMode::Bind, nodes("2"))));
    let found = diagnosis(&fixture, rule);
    assert_eq!(found.findings[0].confidence, Confidence::Likely);
    assert_eq!(found.findings[0].cause.as_deref(), Some("it was started under bind:2"));
}

#[test]
fn segments_and_files_of_sampled_pages_count_by_the_low_end_of_their_interval() {
    // On node 1: all of it, or three quarters and a bit.
    for (on_one, is_found) in [(8, true), (6, false)] {
        let memory: &[(u32, Bytes)] = &[(1, gib(on_one)), (2, gib(8 - on_one))];
        let mut fixture = Fixture::new(FOUR);
        shared_memory(&mut fixture, &[100, 200, 300], memory);
        for pid in [100, 200, 300] {
            drawn(&mut fixture, pid, None);
        }
        let found = fixture.findings(&shared_segment_on_one::RULE);
        assert_eq!(found.len(), usize::from(is_found), "{found:#?}");
        for found in found {
            let interval = found.evidence.iter().find(|fact| {
                matches!(&fact.value,
                Value::Text(words) if words.contains("99.6 % to 100.0 %"))
            });
            assert!(interval.is_some(), "{found:#?}");
        }
    }
    for (far, is_found) in [(3, true), (2, false)] {
        let mut fixture = Fixture::new(FOUR);
        fixture.process(&Work { memory: &[(0, gib(1))], cpu: &[(0, seconds(10))], ..Work::default() });
        let memory: &[(u32, Bytes)] = &[(3, gib(far)), (0, gib(4 - far))];
        fixture.mappings(100, &[(MappingKind::File, MemPolicy::DEFAULT, memory)]);
        let read = Arc::make_mut(&mut fixture.now.mappings[0].mappings);
        read.mappings[0].name = Some("/srv/weights".to_owned());
        drawn(&mut fixture, 100, None);
        assert_eq!(fixture.findings(&file_cache_far::RULE).len(), usize::from(is_found), "{far}");
    }
}

#[test]
fn sampled_pages_under_interleaving_are_uneven_only_beyond_their_interval() {
    let all = || Some(MemPolicy::new(INTERLEAVE, nodes("0-3")));
    let with = |memory: &[(u32, Bytes)]| {
        let mut fixture = Fixture::new(FOUR);
        fixture.process(&Work { memory, ..Work::default() });
        drawn(&mut fixture, 100, all());
        diagnosis(&fixture, &policy_too_late::RULE).findings
    };
    let found = with(&[(1, gib(8))]);
    assert_eq!((found[0].confidence, found[0].concerns), (Confidence::Likely, Some(gib(6))));
    // 36 %, which could be 33 %.
    let near = with(&[(0, gib(36)), (1, gib(22)), (2, gib(21)), (3, gib(21))]);
    assert_eq!(near, []);
}
