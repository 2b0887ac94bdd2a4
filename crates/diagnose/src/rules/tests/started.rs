//! Rules about limits of programs, devices that they have open, and their huge pages.

use std::sync::Arc;

use nodewise_machine::{KernelRelease, NodeId};
use nodewise_source::program::devices::OpenDevice;
use nodewise_source::program::running::RunningProgram;

use super::running::{change, named, working};
use super::thresholds::{Case, Outcome::Silent, case};
use super::*;
use crate::thresholds;

pub(super) const HALVES: &[(u32, Bytes)] = &[(0, Bytes::from_gib(4)), (1, Bytes::from_gib(4))];
pub(super) const BOTH: &[(u32, u64)] = &[(0, 5_000), (2, 5_000)];

/// A process on two nodes whose program is this one.
pub(super) fn started(name: &str, program: RunningProgram) -> Fixture {
    let mut fixture = named(working(HALVES, BOTH), 100, name);
    fixture.program(100, program);
    fixture
}

fn grouped(mut fixture: Fixture, group: &str) -> Fixture {
    change(&mut fixture, 100, |process, _| process.group = Some(group.into()));
    fixture
}

pub(super) fn container(fixture: Fixture) -> Fixture {
    let id = "0123456789abcdef".repeat(4);
    grouped(fixture, &format!("/system.slice/docker-{id}.scope"))
}

pub(super) fn under(mut fixture: Fixture, mode: PolicyMode, of: &str) -> Fixture {
    fixture.mappings(100, &[(MappingKind::Anonymous, MemPolicy::new(mode, nodes(of)), HALVES)]);
    fixture
}

/// The facts that a rule lacks where programs were not read.
pub(super) fn lacks_programs(mut fixture: Fixture, rule: &Rule) {
    fixture.programs = None;
    let lacks: Vec<_> = rule.lacks(&fixture.situation());
    let about = ["programs of processes", "variables of processes", "open files of processes"];
    let lack = lacks.iter().find(|lack| about.contains(&lack.fact)).expect("a lack of programs");
    assert_eq!(lack.reason, "recordings and saved machines do not hold them");
}

fn limited(thousandths: Option<u64>) -> Fixture {
    started("x", RunningProgram { quota: Some(thousandths), ..RunningProgram::default() })
}

#[test]
fn a_quota_of_a_node_on_two_nodes() {
    let rule = &quota_spans_nodes::RULE;
    let found = one(&container(limited(Some(1_500))), rule);
    assert_eq!(found.summary, "\"x\" (100) may use 1.5 CPUs' time, and runs on nodes 0-1");
    assert!(found.mends[0].commands[0].starts_with("docker update --cpuset-cpus="), "{:?}", found.mends);
    // As much as it wants, more than a node, placed, or on one node.
    silent(&limited(None), rule);
    silent(&limited(Some(4_000)), rule);
    silent(&under(limited(Some(1_500)), PolicyMode::Interleave, "0-1"), rule);
    let mut still = working(&[(0, gib(4))], BOTH);
    still.program(100, RunningProgram { quota: Some(Some(1_500)), ..RunningProgram::default() });
    silent(&still, rule);
    lacks_programs(limited(Some(1_500)), rule);
}

/// A program on node 0 with these devices open.
fn driving(devices: &[(&str, Option<u32>)]) -> Fixture {
    driving_with(gib(4), devices)
}

/// The same of a program of this size.
fn driving_with(size: Bytes, devices: &[(&str, Option<u32>)]) -> Fixture {
    let mut fixture = working(&[(0, size)], &[(0, 10_000)]);
    let open = |(name, node): &(&str, Option<u32>)| OpenDevice {
        name: (*name).to_owned(),
        node: node.map(NodeId::new),
    };
    let devices = Some(devices.iter().map(open).collect());
    fixture.program(100, RunningProgram { devices, ..RunningProgram::default() });
    fixture
}

#[test]
fn a_device_of_another_node() {
    let rule = &device_user_remote::RULE;
    let found = one(&driving(&[("uverbs0", Some(2)), ("renderD128", None)]), rule);
    assert_eq!(found.summary, "\"x\" (100) drives uverbs0 of node 2 from node 0");
    assert_eq!(found.mends[0].commands, ["nodewise run --cpunodebind=2 --preferred=2 -- COMMAND"]);
    silent(&driving(&[("uverbs0", Some(0))]), rule);
    silent(&driving(&[("uverbs0", Some(2)), ("uverbs1", Some(0))]), rule);
    silent(&driving(&[("renderD128", None)]), rule);
    silent(&driving(&[]), rule);
    lacks_programs(driving(&[]), rule);
    // A program at work is read however small it is: a large one that was not read does not silence the rule.
    let mut beside = driving_with(Bytes::from_mib(1), &[("uverbs0", Some(2))]);
    beside.process(&Work { pid: 200, memory: &[(1, gib(4))], ..Work::default() });
    assert!(beside.situation().significant().all(|process| process.pid() == 200));
    assert_eq!(rule.lacks(&beside.situation()), []);
    assert_eq!(one(&beside, rule).nodes, nodes("2"));
}

/// A program with this much locked, whose memory is interleaved over these nodes, with accelerators on node 1.
fn staging(locked: u64, of: &str) -> Fixture {
    let mut fixture = under(working(HALVES, BOTH), PolicyMode::Interleave, of);
    let devices = vec![OpenDevice { name: "nvidia0".to_owned(), node: Some(NodeId::new(1)) }];
    let pinned = Some(Bytes::from_mib(locked));
    fixture.program(100, RunningProgram { pinned, devices: Some(devices), ..RunningProgram::default() });
    fixture
}

#[test]
fn buffers_for_an_accelerator_that_are_interleaved() {
    let rule = &gpu_staging_interleaved::RULE;
    assert_eq!(one(&staging(512, "0-1"), rule).severity, Severity::Warning);
    silent(&staging(4, "0-1"), rule);
    silent(&staging(512, "1"), rule);
    let mut default = staging(512, "0-1");
    default.mappings(100, &[(MappingKind::Anonymous, MemPolicy::DEFAULT, HALVES)]);
    silent(&default, rule);
    lacks_programs(staging(512, "0-1"), rule);
}

/// Redis with memory in huge pages, at this mode, with a child or without.
fn store(name: &str, mode: &str, allowed: bool, forks: bool) -> Fixture {
    let huge = Some(gib(1));
    let mut fixture = started(
        name,
        RunningProgram { anon_huge: huge, has_huge_pages: Some(allowed), ..RunningProgram::default() },
    );
    fixture.machine.settings.transparent_hugepage = Some(mode.to_owned());
    fixture.machine.kernel = KernelRelease::new("5.7.19");
    if forks {
        fixture.process(&Work { pid: 200, memory: &[(0, gib(1))], ..Work::default() });
        let child = fixture.now.processes.iter_mut().find(|of| of.identity.pid.number() == 200).unwrap();
        let child = Arc::make_mut(child);
        (child.parent, child.name) = (Some(nodewise_source::process::Pid::new(100)), name.into());
        fixture.program(200, RunningProgram { anon_huge: huge, ..RunningProgram::default() });
    }
    fixture
}

#[test]
fn a_store_that_forks_with_huge_pages() {
    let rule = &thp_and_fork::RULE;
    let found = one(&store("redis-server", "always", true, true), rule);
    assert_eq!((found.severity, found.confidence), (Severity::Warning, Confidence::Certain));
    assert_eq!(found.mends[0].undo, ["echo always > /sys/kernel/mm/transparent_hugepage/enabled"]);
    assert_eq!(one(&store("valkey-server", "always", true, false), rule).severity, Severity::Note);
    // madvise is fine, and newer servers switch it off for themselves.
    silent(&store("redis-server", "madvise", true, true), rule);
    silent(&store("redis-server", "always", false, true), rule);
    silent(&store("postgres", "always", true, true), rule);
    // Since 5.8 a write copies a small page.
    let mut newer = store("redis-server", "always", true, true);
    newer.machine.kernel = KernelRelease::new("5.8.0");
    silent(&newer, rule);
    newer.machine.kernel = None;
    assert_eq!(rule.lacks(&newer.situation())[0].fact, "the kernel's release");
    let mut unknown = store("redis-server", "always", true, true);
    unknown.machine.settings.transparent_hugepage = None;
    assert_eq!(rule.lacks(&unknown.situation())[0].fact, "the mode of transparent huge pages");
}

#[test]
fn huge_pages_as_another_version_of_mongodb_wants_them() {
    let rule = &thp_advice_outdated::RULE;
    let with = |version, mode: &str| {
        let mut fixture = started("mongod", RunningProgram { version, ..RunningProgram::default() });
        fixture.machine.settings.transparent_hugepage = Some(mode.to_owned());
        fixture
    };
    let commands = |version, mode| one(&with(Some(version), mode), rule).mends[0].commands.clone();
    assert_eq!(commands(8, "never"), ["echo always > /sys/kernel/mm/transparent_hugepage/enabled"]);
    assert_eq!(commands(7, "always"), ["echo never > /sys/kernel/mm/transparent_hugepage/enabled"]);
    silent(&with(Some(8), "always"), rule);
    silent(&with(Some(7), "madvise"), rule);
    silent(&with(None, "never"), rule);
    lacks_programs(with(Some(8), "never"), rule);
}

/// Each threshold of these rules over the measured value.
pub(super) fn cases() -> Vec<Case> {
    let partly = || {
        let mut fixture = working(HALVES, &[(0, 9_000), (4, 1_000)]);
        let devices = Some(vec![OpenDevice { name: "uverbs0".to_owned(), node: Some(NodeId::new(2)) }]);
        fixture.program(100, RunningProgram { devices, ..RunningProgram::default() });
        fixture
    };
    vec![
        case(&thresholds::QUOTA_NODE, &quota_spans_nodes::RULE, 0.6, Silent, limited(Some(1_500))),
        case(&thresholds::DEVICE_CPU, &device_user_remote::RULE, 0.05, Silent, partly()),
        case(&thresholds::STAGING, &gpu_staging_interleaved::RULE, 1_000.0, Silent, staging(512, "0-1")),
    ]
}
