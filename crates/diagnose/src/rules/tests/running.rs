//! Rules about pages of programs at work: pages that move to and fro, weights of models, policies in cpusets.

use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::NodeId;
use nodewise_machine::mapping::Mapping;
use nodewise_source::sample::{BalancingSample, ProcessSample};
use nodewise_source::site::{Site, SiteFact};

use super::thresholds::{
    Case,
    Outcome::{Fires, Silent},
    case,
};
use super::*;
use crate::thresholds;

/// Changes a process in both samples; the flag says whether it is the later one.
pub(super) fn change(fixture: &mut Fixture, pid: u32, with: impl Fn(&mut ProcessSample, bool)) {
    for (sample, is_now) in [(&mut fixture.before, false), (&mut fixture.now, true)] {
        let of = sample.processes.iter_mut().find(|of| of.identity.pid.number() == pid).unwrap();
        with(Arc::make_mut(of), is_now);
    }
}

pub(super) fn named(mut fixture: Fixture, pid: u32, name: &str) -> Fixture {
    change(&mut fixture, pid, |process, _| process.name = name.into());
    fixture
}

/// A process with this memory, and these milliseconds of CPU time by CPU.
pub(super) fn working(memory: &[(u32, Bytes)], cpu: &[(u32, u64)]) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    let cpu: Vec<_> = cpu.iter().map(|(cpu, ms)| (*cpu, Duration::from_millis(*ms))).collect();
    fixture.process(&Work { memory, cpu: &cpu, ..Work::default() });
    fixture
}

#[test]
fn a_policy_of_which_the_cpuset_leaves_nothing() {
    let rule = &cpuset_eats_policy::RULE;
    let with = |mode, of: &str, allowed| {
        let mut fixture = Fixture::new(FOUR);
        fixture.process(&Work { memory: &[(1, gib(4))], nodes: Some(allowed), ..Work::default() });
        let policy = MemPolicy::new(mode, nodes(of));
        fixture.mappings(100, &[(MappingKind::Anonymous, policy, &[(1, gib(4))])]);
        fixture
    };
    let found = one(&with(PolicyMode::Interleave, "1", "1"), rule);
    assert_eq!(found.summary, "interleave:1 of \"x\" (100) interleaves over one node");
    assert_eq!(found.cause.as_deref(), Some("its cpuset allows node 1 only"));
    let found = one(&with(PolicyMode::Bind, "1-2", "1"), rule);
    assert!(found.summary.ends_with("names node 2, which its cpuset does not allow"), "{}", found.summary);
    // All of it is left, or one node was chosen, not left.
    silent(&with(PolicyMode::Interleave, "0-1", "0-1"), rule);
    silent(&with(PolicyMode::Interleave, "1", "0-3"), rule);
    silent(&with(PolicyMode::Bind, "1", "1"), rule);
    let mut unread = with(PolicyMode::Interleave, "1", "1");
    unread.now.mappings.clear();
    assert_eq!(rule.lacks(&unread.situation())[0].fact, "policies of processes");
    let mut unit = with(PolicyMode::Interleave, "1", "1");
    change(&mut unit, 100, |process, _| process.group = Some("/system.slice/mysqld.service".into()));
    assert!(one(&unit, rule).mends[0].commands[0].contains("AllowedMemoryNodes=0-3"));
}

/// A process whose pages balancing moves: this many of them in ten seconds, while as much memory changes nodes.
fn tossed(pages: u64, net: Bytes) -> Fixture {
    let mut fixture = working(&[(0, gib(2)), (2, gib(2))], &[(0, 5_000), (4, 5_000)]);
    change(&mut fixture, 100, |process, is_now| {
        let moved = if is_now { pages } else { Default::default() };
        let task = &mut process.tasks.as_mut().unwrap()[0];
        task.balancing = Some(BalancingSample { migrated_pages: Some(moved), ..BalancingSample::default() });
        if is_now {
            let pages = &mut process.pages.as_mut().unwrap().nodes;
            for (node, more) in [(0, true), (2, false)] {
                let share = pages.get_mut(&NodeId::new(node)).unwrap();
                let size = share.size.get();
                share.size = Bytes::new(if more { size + net.get() } else { size - net.get() });
                share.own = Some(share.size);
            }
        }
    });
    fixture
}

#[test]
fn pages_that_balancing_moves_to_and_fro() {
    let rule = &balancing_ping_pong::RULE;
    let found = one(&tossed(100_000, Bytes::default()), rule);
    assert_eq!((found.severity, found.concerns), (Severity::Warning, Some(Bytes::from_kib(400_000))));
    // They follow a thread that moved, or are few.
    silent(&tossed(100_000, Bytes::from_mib(380)), rule);
    // Half of 4 GiB is away from where it was, after 8 GiB moved: some of it did so twice.
    assert_eq!(one(&tossed(2_097_152, gib(2)), rule).concerns, Some(gib(8)));
    silent(&tossed(1_048_576, gib(2)), rule);
    silent(&tossed(1_000, Bytes::default()), rule);
    silent(&tossed(0, Bytes::default()), rule);
    // Pages that were not looked at again did not stay.
    let mut unseen = tossed(100_000, Bytes::default());
    let seen = unseen.before.moment;
    change(&mut unseen, 100, |process, _| process.pages.as_mut().unwrap().seen = seen);
    silent(&unseen, rule);
    // A young process is still being placed.
    let mut young = tossed(100_000, Bytes::default());
    for sample in [&mut young.before, &mut young.now] {
        sample.moment.since_boot -= Duration::from_secs(980);
    }
    silent(&young, rule);
    assert!(tossed(1, Bytes::default()).lacks_at_once(rule).contains(&"rates"));
}

/// A process of a terabyte, a part of it where it does not run.
fn vast(stranded: u64) -> Fixture {
    let mut fixture = working(&[(0, gib(1024 - stranded)), (2, gib(stranded))], &[(0, 10_000)]);
    fixture.machine.settings.numa_balancing = Some(1);
    fixture
}

#[test]
fn a_pass_over_a_terabyte() {
    let rule = &scan_too_slow::RULE;
    let found = one(&vast(200), rule);
    assert_eq!(found.summary, "balancing looks at all 1 TiB of \"x\" (100) once in 6 min at best");
    let file = "/sys/kernel/debug/sched/numa_balancing/scan_size_mb";
    assert_eq!(found.mends[0].commands, [format!("echo 8192 > {file}")]);
    assert!(found.mends[0].undo.is_empty() && found.mends[0].what.contains("old value"));
    // As root the scan size is known, and the mend is enough.
    let scans = |mebibytes, fixture: Fixture| Fixture {
        site: Some(Site { scan_size: SiteFact::Known(Bytes::from_mib(mebibytes)), ..Site::default() }),
        ..fixture
    };
    assert_eq!(one(&scans(256, vast(200)), rule).mends[0].undo, [format!("echo 256 > {file}")]);
    silent(&scans(8192, vast(200)), rule);
    silent(&vast(20), rule);
    let mut off = vast(200);
    off.machine.settings.numa_balancing = Some(0);
    silent(&off, rule);
    off.machine.settings.numa_balancing = None;
    assert_eq!(rule.lacks(&off.situation())[0].fact, "the setting of automatic balancing");
    let mut bound = vast(200);
    let policy = MemPolicy::new(PolicyMode::Bind, nodes("0,2"));
    bound.mappings(100, &[(MappingKind::Anonymous, policy, &[(0, gib(824)), (2, gib(200))])]);
    silent(&bound, rule);
}

/// A program that maps a model of this size on node 0 and of another on node 1, and runs on these CPUs.
fn inference(file: &str, memory: &[(u32, Bytes)], cpu: &[(u32, u64)]) -> Fixture {
    let mut fixture = named(working(&[(0, gib(1))], cpu), 100, "llama-server");
    fixture.mappings(100, &[(MappingKind::File, MemPolicy::DEFAULT, memory)]);
    let read = Arc::make_mut(&mut fixture.now.mappings.last_mut().unwrap().mappings);
    let name = |mapping: &mut Mapping| mapping.name = Some(file.to_owned());
    read.mappings.iter_mut().for_each(name);
    fixture
}

#[test]
fn weights_on_one_node_for_threads_of_two() {
    let rule = &cpu_inference_one_node::RULE;
    let both = &[(0, 40_000), (2, 40_000)];
    let weights: &[(u32, Bytes)] = &[(0, gib(12))];
    let found = one(&inference("/m/q4.gguf", weights, both), rule);
    assert_eq!((found.severity, found.concerns), (Severity::Warning, Some(gib(12))));
    silent(&inference("/m/q4.gguf", &[(0, gib(6)), (1, gib(6))], both), rule);
    silent(&inference("/m/q4.gguf", &[(0, gib(4))], both), rule);
    silent(&inference("/m/q4.gguf", weights, &[(0, 40_000)]), rule);
    silent(&inference("/m/index.db", weights, both), rule);
    assert!(inference("/m/q4.gguf", weights, both).lacks_at_once(rule).contains(&"rates"));
}

/// Each threshold of these rules over the measured value.
pub(super) fn cases() -> Vec<Case> {
    let (toss, scan, weights) =
        (&balancing_ping_pong::RULE, &scan_too_slow::RULE, &cpu_inference_one_node::RULE);
    let model = |memory: &[(u32, Bytes)]| inference("/m/q4.gguf", memory, &[(0, 40_000), (2, 40_000)]);
    let thrown = || tossed(100_000, Bytes::from_mib(20));
    let partly: &[(u32, Bytes)] = &[(0, gib(9)), (1, gib(1))];
    vec![
        case(&thresholds::PING_PONG_MOVED, toss, 10.0, Silent, thrown()),
        case(&thresholds::PING_PONG_NET, toss, 0.01, Silent, thrown()),
        case(&thresholds::SCAN_PASS, scan, 1_000.0, Silent, vast(200)),
        case(&thresholds::SCAN_STRANDED, scan, 0.5, Silent, vast(200)),
        case(&thresholds::WEIGHTS_SIZE, weights, 20_000.0, Silent, model(&[(0, gib(12))])),
        case(&thresholds::WEIGHTS_SIZE, weights, 4_000.0, Fires, model(&[(0, gib(5))])),
        case(&thresholds::WEIGHTS_ON_ONE, weights, 0.95, Silent, model(partly)),
        case(&thresholds::WEIGHTS_CPU, weights, 0.6, Silent, model(&[(0, gib(12))])),
    ]
}
