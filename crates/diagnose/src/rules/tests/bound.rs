//! Rules about where programs run: threads that wander, servers that confine themselves, virtual machines.

use std::time::Duration;

use nodewise_machine::{CpuId, NodeId};
use nodewise_source::sample::{BalancingFaults, BalancingSample, GroupSample, TaskSample};

use super::running::{change, named, working};
use super::thresholds::{Case, Outcome::Silent, case};
use super::*;
use crate::thresholds;

fn tasks(fixture: &mut Fixture, pid: u32, with: impl Fn(&mut TaskSample, bool)) {
    change(fixture, pid, |process, is_now| {
        process.tasks.as_mut().unwrap().iter_mut().for_each(|task| with(task, is_now));
    });
}

/// HAProxy on these CPUs, in this cpuset, which uses this much of both CPUs of node 1.
fn proxy(cpus: &str, allowed: &str, ms: u64) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    let time = Duration::from_millis(ms);
    let work =
        Work { cpu: &[(2, time), (3, time)], cpus: Some(cpus), nodes: Some(allowed), ..Work::default() };
    fixture.process(&work);
    named(fixture, 100, "haproxy")
}

#[test]
fn a_proxy_on_one_node_of_four() {
    let rule = &server_on_half::RULE;
    let found = one(&proxy("2-3", "0-3", 9_000), rule);
    assert_eq!((found.severity, &found.nodes), (Severity::Note, &nodes("1")));
    silent(&proxy("2-3", "0-3", 5_000), rule);
    silent(&proxy("0-7", "0-3", 9_000), rule);
    // A cpuset confines it, on purpose.
    silent(&proxy("2-3", "1", 9_000), rule);
    // One for each node.
    let mut each = proxy("2-3", "0-3", 9_000);
    let cpu = &[(0, seconds(9)), (1, seconds(9))];
    each.process(&Work { pid: 200, cpu, cpus: Some("0-1"), ..Work::default() });
    silent(&named(each, 200, "haproxy"), rule);
    assert!(proxy("2-3", "0-3", 9_000).lacks_at_once(rule).contains(&"rates"));
}

/// A thread that changes CPUs this often in ten seconds, from node 0 to another one.
fn wandering(changes: u64, memory: &[(u32, Bytes)], to: u32) -> Fixture {
    let mut fixture = working(memory, &[(0, 8_000)]);
    tasks(&mut fixture, 100, |task, is_now| {
        task.cpu_changes = Some(if is_now { 3 + changes } else { 3 });
        task.processor = Some(CpuId::new(if is_now { to } else { 0 }));
    });
    fixture
}

fn faulting(mut fixture: Fixture, by_node: [u64; 2]) -> Fixture {
    tasks(&mut fixture, 100, |task, _| {
        let faults = |private| BalancingFaults { private, shared: 0 };
        let faults = (0..).zip(by_node).map(|(node, count)| (NodeId::new(node), faults(count))).collect();
        task.balancing = Some(BalancingSample { faults, ..BalancingSample::default() });
    });
    fixture
}

const AT_HOME: &[(u32, Bytes)] = &[(0, Bytes::from_gib(4))];

#[test]
fn a_thread_that_changes_nodes_while_its_memory_stays() {
    let rule = &thread_wanders::RULE;
    let found = one(&wandering(40, AT_HOME, 4), rule);
    assert_eq!(found.severity, Severity::Note);
    assert_eq!(found.mends[0].commands, ["nodewise run --cpunodebind=0 -- COMMAND"]);
    // Once, or within its node, or with memory everywhere.
    silent(&wandering(2, AT_HOME, 4), rule);
    silent(&wandering(40, AT_HOME, 1), rule);
    silent(&wandering(40, &[(0, gib(2)), (2, gib(2))], 4), rule);
    // Balancing knows its home by now.
    silent(&faulting(wandering(40, AT_HOME, 4), [900, 100]), rule);
    one(&faulting(wandering(40, AT_HOME, 4), [500, 500]), rule);
    assert!(wandering(40, AT_HOME, 4).lacks_at_once(rule).contains(&"rates"));
}

/// A process that bound itself to these CPUs of a cpuset, with as many busy threads.
fn self_bound(cpus: &str, cpuset: &str, threads: &[u64]) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    let cpu: Vec<_> = threads.iter().map(|ms| (3, Duration::from_millis(*ms))).collect();
    fixture.process(&Work { memory: &[(1, gib(1))], cpu: &cpu, cpus: Some(cpus), ..Work::default() });
    change(&mut fixture, 100, |process, _| process.group = Some("/osd".into()));
    let allowed = nodewise_source::sample::Allowed { cpus: Some(cpuset.parse().unwrap()), nodes: None };
    fixture.now.groups = vec![GroupSample { path: "/osd".into(), allowed, ..GroupSample::default() }];
    fixture
}

#[test]
fn a_binding_that_leaves_one_cpu_of_a_container() {
    let rule = &affinity_intersects_to_one::RULE;
    let busy = &[3_000, 3_000, 3_000];
    let found = one(&self_bound("3", "3-7", busy), rule);
    assert_eq!(found.summary, "3 busy threads share 1 of the 5 CPUs of its cpuset");
    silent(&self_bound("3-4", "3-7", busy), rule);
    // No cpuset, a thread for the CPU, threads that wait for something else.
    silent(&self_bound("3", "0-7", busy), rule);
    silent(&self_bound("3", "3-7", &[9_000]), rule);
    silent(&self_bound("3", "3-7", &[1_000, 1_000, 1_000]), rule);
    assert!(self_bound("3", "3-7", busy).lacks_at_once(rule).contains(&"rates"));
}

/// A virtual machine with this memory on these CPUs.
fn guest(memory: &[(u32, Bytes)], cpu: &[(u32, u64)]) -> Fixture {
    named(working(memory, cpu), 100, "qemu-system-x86")
}

#[test]
fn a_virtual_machine_on_two_nodes_that_would_fit_one() {
    let rule = &vm_spans::RULE;
    let halves: &[(u32, Bytes)] = &[(0, gib(2)), (1, gib(2))];
    let both = &[(0, 5_000), (2, 5_000)];
    let found = one(&guest(halves, both), rule);
    assert_eq!((found.severity, found.concerns), (Severity::Note, Some(gib(4))));
    // A few pages elsewhere, which every process has.
    let stray: &[(u32, Bytes)] = &[(0, gib(2)), (1, gib(2)), (3, Bytes::from_mib(1))];
    one(&guest(stray, both), rule);
    silent(&guest(&[(0, gib(2)), (1, gib(2)), (3, gib(1))], both), rule);
    let mut of_libvirt = guest(halves, both);
    let group = r"/machine.slice/machine-qemu\x2d1\x2ddb.scope";
    change(&mut of_libvirt, 100, |process, _| process.group = Some(group.into()));
    assert!(one(&of_libvirt, rule).mends[1].what.contains("vcpupin"));
    silent(&guest(&[(0, gib(4))], both), rule);
    silent(&guest(halves, &[(0, 5_000)]), rule);
    silent(&guest(&[(0, gib(8)), (1, gib(8))], both), rule);
    silent(&named(guest(halves, both), 100, "postgres"), rule);
    let mut cells = guest(halves, both);
    let bind = |node: &str| MemPolicy::new(PolicyMode::Bind, nodes(node));
    let (first, second): (&[_], &[_]) = (&[(0, gib(2))], &[(1, gib(2))]);
    let kind = MappingKind::Anonymous;
    cells.mappings(100, &[(kind, bind("0"), first), (kind, bind("1"), second)]);
    silent(&cells, rule);
    assert!(guest(halves, both).lacks_at_once(rule).contains(&"rates"));
}

/// A virtual machine whose memory is in mappings of this kind, bound to node 1, which is full.
fn strict(mode: PolicyMode, kind: MappingKind) -> Fixture {
    let memory: &[(u32, Bytes)] = &[(1, gib(12))];
    let mut fixture = guest(memory, &[(2, 5_000)]);
    full(&mut fixture, 1, Bytes::default());
    fixture.mappings(100, &[(kind, MemPolicy::new(mode, nodes("1")), memory)]);
    fixture
}

#[test]
fn a_virtual_machine_that_is_strictly_bound_to_a_full_node() {
    let rule = &libvirt_strict::RULE;
    let found = one(&strict(PolicyMode::Bind, MappingKind::Anonymous), rule);
    assert_eq!((found.severity, &found.nodes), (Severity::Warning, &nodes("1")));
    silent(&strict(PolicyMode::Preferred, MappingKind::Anonymous), rule);
    silent(&strict(PolicyMode::Bind, MappingKind::HugePool), rule);
    silent(&named(strict(PolicyMode::Bind, MappingKind::Anonymous), 100, "mysqld"), rule);
    let mut roomy = strict(PolicyMode::Bind, MappingKind::Anonymous);
    roomy.meminfo(1, "MemFree", gib(3));
    silent(&roomy, rule);
    let mut unread = strict(PolicyMode::Bind, MappingKind::Anonymous);
    unread.now.mappings.clear();
    assert_eq!(rule.lacks(&unread.situation())[0].fact, "policies of processes");
}

/// Each threshold of these rules over the measured value.
pub(super) fn cases() -> Vec<Case> {
    let (wander, bound) = (&thread_wanders::RULE, &affinity_intersects_to_one::RULE);
    let (spans, half) = (&vm_spans::RULE, &server_on_half::RULE);
    let halves: &[(u32, Bytes)] = &[(0, gib(2)), (1, gib(2))];
    let moving = || wandering(40, &[(0, gib(9)), (1, gib(1))], 4);
    let one_of_two = || {
        let mut fixture = working(AT_HOME, &[(0, 8_000), (0, 8_000)]);
        tasks(&mut fixture, 100, |task, is_now| {
            let wanders = task.identity.pid.number() == 100 && is_now;
            task.cpu_changes = Some(if wanders { 43 } else { 3 });
            task.processor = Some(CpuId::new(if wanders { 4 } else { 0 }));
        });
        fixture
    };
    let narrow = || self_bound("3", "3-7", &[3_000, 3_000, 3_000]);
    let shared = strict(PolicyMode::Bind, MappingKind::Anonymous);
    vec![
        case(&thresholds::HALF_BUSY, half, 0.95, Silent, proxy("2-3", "0-3", 9_000)),
        case(&thresholds::WANDER_RATE, wander, 10.0, Silent, moving()),
        case(&thresholds::WANDER_CPU, wander, 0.9, Silent, moving()),
        case(&thresholds::WANDER_MEMORY, wander, 0.95, Silent, moving()),
        case(&thresholds::WANDER_THREADS, wander, 0.6, Silent, one_of_two()),
        case(&thresholds::WANDER_FAULTS, wander, 0.4, Silent, faulting(moving(), [500, 500])),
        case(&thresholds::SELF_BOUND, bound, 0.1, Silent, narrow()),
        case(&thresholds::SELF_BOUND_THREAD, bound, 0.5, Silent, narrow()),
        case(&thresholds::SELF_BOUND_FULL, bound, 0.95, Silent, narrow()),
        case(&thresholds::VM_SPANS, spans, 0.6, Silent, guest(halves, &[(0, 5_000), (2, 5_000)])),
        case(&thresholds::VM_FITS, spans, 0.2, Silent, guest(halves, &[(0, 5_000), (2, 5_000)])),
        case(&thresholds::STRICT_ROOM, &libvirt_strict::RULE, 0.0, Silent, shared),
    ]
}
