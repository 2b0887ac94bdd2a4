//! Each threshold moved over the measured value: its rule falls silent, finds something, or judges it otherwise.

use std::sync::Arc;

use nodewise_machine::{CpuId, NodeCounters, NodeId};
use nodewise_source::process::Pid;
use nodewise_source::sample::{InterruptSample, PoolSample};

use super::*;
use crate::Diagnosis;
use crate::finding::Value;
use crate::situation::fixture::Mapped;
use crate::thresholds::{self, ALL as THRESHOLDS, REPLACED, RuleThreshold, Thresholds};

use Outcome::{Fires, Judges, Silent};

/// The effect of a threshold's new value.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Outcome {
    Silent,
    Fires,
    /// Another severity.
    Judges,
}

pub(super) struct Case {
    of: &'static RuleThreshold,
    rule: &'static Rule,
    fixture: Fixture,
    to: f64,
    outcome: Outcome,
}

pub(super) fn case(
    of: &'static RuleThreshold,
    rule: &'static Rule,
    to: f64,
    outcome: Outcome,
    fixture: Fixture,
) -> Case {
    Case { of, rule, fixture, to, outcome }
}

/// Half of a process's memory is on node 2, where it does not run.
fn half() -> Fixture {
    working(&[(2, gib(2)), (0, gib(2))], &[(0, 10_000)])
}

/// A process with this memory, and these milliseconds of CPU time by CPU.
fn working(memory: &[(u32, Bytes)], cpu: &[(u32, u64)]) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    let cpu: Vec<_> = cpu.iter().map(|(cpu, ms)| (*cpu, std::time::Duration::from_millis(*ms))).collect();
    fixture.process(&Work { memory, cpu: &cpu, ..Work::default() });
    fixture.machine.settings.numa_balancing = Some(0);
    fixture
}

/// The same, with this memory under these policies.
fn mapped(fixture: Fixture, mappings: &[Mapped<'_>]) -> Fixture {
    let mut fixture = fixture;
    fixture.mappings(100, mappings);
    fixture
}

fn policy(mode: PolicyMode, of: &str) -> MemPolicy {
    MemPolicy::new(mode, nodes(of))
}

fn full_node(cache: Bytes) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    full(&mut fixture, 1, cache);
    fixture
}

/// Node 1 swaps with this much page cache, while the others have this much free memory.
fn swapping(cache: Bytes, free: Bytes) -> Fixture {
    let mut fixture = full_node(cache);
    for node in [0, 2, 3] {
        full(&mut fixture, node, Bytes::default());
        fixture.meminfo(node, "MemFree", free);
    }
    fixture.happened(&[("pswpout", 40_000)]);
    fixture
}

fn without_watermarks() -> Fixture {
    let mut fixture = full_node(Bytes::default());
    fixture.now.nodes.iter_mut().for_each(|node| node.high_watermark = None);
    fixture
}

fn growing() -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory: &[(1, gib(4))], nodes: Some("1"), ..Work::default() });
    let process = Arc::make_mut(fixture.before.processes.last_mut().unwrap());
    let share = process.pages.as_mut().unwrap().nodes.get_mut(&NodeId::new(1)).unwrap();
    (share.size, share.own) = (Bytes::from_mib(3_896), Some(Bytes::from_mib(3_896)));
    fixture
}

fn cached() -> Fixture {
    let mut fixture = full_node(gib(12));
    let allocations =
        |hit, foreign| NodeCounters { hit: Some(hit), foreign: Some(foreign), ..Default::default() };
    fixture.before.nodes[1].allocations = allocations(1_000, 0);
    fixture.now.nodes[1].allocations = allocations(10_000, 1_000);
    fixture
}

fn kernel_memory(text: &str) -> Fixture {
    let mut fixture = Fixture::new(text);
    for node in fixture.machine.node_ids().iter().collect::<Vec<_>>() {
        let size = if node.number() == 0 { gib(2) } else { Bytes::from_mib(100) };
        fixture.meminfo(node.number(), "SUnreclaim", size);
    }
    fixture
}

/// Pools of pages of 2 MiB, all of them free.
fn pools(mut fixture: Fixture, counts: [u64; 4]) -> Fixture {
    for sample in [&mut fixture.before, &mut fixture.now] {
        for (node, count) in sample.nodes.iter_mut().zip(counts) {
            let page_size = Bytes::from_mib(2);
            node.pools = vec![PoolSample { page_size, total: count, free: Some(count), surplus: None }];
        }
    }
    fixture
}

fn balanced(mut fixture: Fixture) -> Fixture {
    fixture.machine.settings.numa_balancing = Some(1);
    fixture.machine.kernel = nodewise_machine::KernelRelease::new("6.12.1");
    fixture
}

fn faulting(faults: u64, moved: u64) -> Fixture {
    let mut fixture = half();
    fixture.happened(&[("numa_hint_faults", faults), ("numa_pages_migrated", moved)]);
    fixture
}

fn named(mut fixture: Fixture, pid: u32, name: &str, parent: Option<u32>) -> Fixture {
    for sample in [&mut fixture.before, &mut fixture.now] {
        let of = sample.processes.iter_mut().find(|of| of.identity.pid.number() == pid).unwrap();
        let process = Arc::make_mut(of);
        (process.name, process.parent) = (name.into(), parent.map(Pid::new));
    }
    fixture
}

/// A process and its child under the same policy, half of the child's memory away from it.
fn inheriting() -> Fixture {
    let mut fixture = half();
    let memory: &[(u32, Bytes)] = &[(2, gib(2)), (0, gib(2))];
    fixture.process(&Work { pid: 200, memory, cpu: &[(4, seconds(10))], ..Work::default() });
    for pid in [100, 200] {
        let interleave = policy(PolicyMode::Interleave, "0,2");
        fixture.mappings(pid, &[(MappingKind::Anonymous, interleave, memory)]);
    }
    named(named(fixture, 100, "mysqld", None), 200, "backup", Some(100))
}

/// Two processes that share a segment.
fn sharing(memory: &[(u32, Bytes)]) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    for (at, pid) in (0..).zip([100, 200]) {
        let cpu = &[(2 * at, seconds(10))];
        fixture.process(&Work { pid, memory, cpu, ..Work::default() });
        fixture.mappings(pid, &[(MappingKind::Shared, MemPolicy::DEFAULT, memory)]);
        let read = Arc::make_mut(&mut fixture.now.mappings.last_mut().unwrap().mappings);
        read.mappings[0].file = Some(nodewise_machine::mapping::FileId { device: (0, 1), inode: 77 });
    }
    fixture
}

fn reading(memory: &[(u32, Bytes)]) -> Fixture {
    let fixture = working(&[(0, gib(1))], &[(0, 10_000)]);
    let mut fixture = mapped(fixture, &[(MappingKind::File, MemPolicy::DEFAULT, memory)]);
    let read = Arc::make_mut(&mut fixture.now.mappings[0].mappings);
    read.mappings[0].name = Some("/srv/weights".to_owned());
    fixture
}

fn interrupted() -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    let sample = |count| InterruptSample {
        device: "net:eth0".to_owned(),
        node: Some(NodeId::new(0)),
        lines: vec![40, 41],
        by_cpu: vec![(CpuId::new(0), count), (CpuId::new(6), count)],
        ..InterruptSample::default()
    };
    (fixture.before.interrupts, fixture.now.interrupts) = (vec![sample(0)], vec![sample(24_100)]);
    fixture
}

fn weighted() -> Fixture {
    let mut fixture = Fixture::new("2x(2c 16G); access=0>0:80ns/100G; access=1>1:80ns/20G; weights=0:1,1:1");
    let memory: &[(u32, Bytes)] = &[(0, gib(1)), (1, gib(1))];
    fixture.process(&Work { memory, ..Work::default() });
    mapped(fixture, &[(MappingKind::Anonymous, policy(PolicyMode::WeightedInterleave, "0-1"), memory)])
}

fn of_processes() -> Vec<Case> {
    let stranded = &memory_stranded::RULE;
    let everywhere: &[(u32, u64)] = &[(0, 5_000), (2, 5_000), (4, 5_000), (6, 5_000)];
    let even: &[(u32, Bytes)] = &[(0, gib(1)), (1, gib(1)), (2, gib(1)), (3, gib(1))];
    let interleave = || policy(PolicyMode::Interleave, "0-3");
    let small =
        |cpu: &[(u32, u64)]| mapped(working(even, cpu), &[(MappingKind::Anonymous, interleave(), even)]);
    let late = || {
        let memory: &[(u32, Bytes)] = &[(1, gib(8))];
        mapped(working(memory, &[]), &[(MappingKind::Anonymous, interleave(), memory)])
    };
    let partly = || {
        let (most, rest): (&[_], &[_]) = (&[(0, gib(1)), (1, gib(2))], &[(0, gib(1))]);
        let fixture = working(&[(0, gib(2)), (1, gib(2))], &[(0, 10_000)]);
        let kind = MappingKind::Anonymous;
        mapped(
            fixture,
            &[(kind, policy(PolicyMode::Interleave, "0-1"), most), (kind, MemPolicy::DEFAULT, rest)],
        )
    };
    let mib = Bytes::from_mib;
    let (file, first) = (&file_cache_far::RULE, &first_touch_on_one::RULE);
    let small_rule = &interleaved_but_small::RULE;
    vec![
        case(&thresholds::SIGNIFICANT, stranded, 700.0, Silent, working(&[(2, mib(400))], &[(0, 10_000)])),
        case(
            &thresholds::SIGNIFICANT_SHARE,
            stranded,
            0.001,
            Fires,
            working(&[(2, mib(100))], &[(0, 10_000)]),
        ),
        case(&thresholds::SEGMENT, file, 256.0, Fires, reading(&[(3, mib(512))])),
        case(&thresholds::RUNS, stranded, 0.2, Fires, working(&[(2, gib(4))], &[(0, 9_000), (4, 1_000)])),
        case(&thresholds::AT_WORK, stranded, 0.2, Silent, working(&[(2, gib(4))], &[(0, 1_000)])),
        case(&thresholds::MEMORY_STRANDED, stranded, 0.6, Silent, half()),
        case(
            &thresholds::FIRST_TOUCH_ON_ONE,
            first,
            0.95,
            Silent,
            working(&[(1, gib(9)), (0, gib(1))], everywhere),
        ),
        case(
            &thresholds::FIRST_TOUCH_TIMES,
            first,
            1.7,
            Fires,
            working(&[(1, gib(8))], &[(2, 8_000), (0, 2_000)]),
        ),
        case(&thresholds::FIRST_TOUCH_CPU, first, 0.3, Silent, working(&[(1, gib(8))], everywhere)),
        case(&thresholds::POLICY_OFF, &policy_too_late::RULE, 0.9, Silent, late()),
        case(&thresholds::POLICY_ENOUGH, &policy_too_late::RULE, 16_384.0, Silent, late()),
        case(
            &thresholds::SEGMENT_ON_ONE,
            &shared_segment_on_one::RULE,
            0.95,
            Silent,
            sharing(&[(1, gib(9)), (0, gib(1))]),
        ),
        case(&thresholds::SMALL_FITS, small_rule, 0.1, Silent, small(&[(0, 10_000)])),
        case(&thresholds::SMALL_INTERLEAVED, small_rule, 0.8, Silent, partly()),
        case(&thresholds::SMALL_ALONE, small_rule, 0.98, Silent, small(&[(0, 9_600), (2, 400)])),
        case(&thresholds::INHERITED_STRANDED, &inherited_policy::RULE, 0.6, Silent, inheriting()),
        case(&thresholds::FILE_AWAY, file, 0.8, Silent, reading(&[(3, gib(3)), (0, gib(1))])),
        case(
            &thresholds::VM_STRANDED,
            &vm_memory_stranded::RULE,
            0.6,
            Silent,
            named(half(), 100, "qemu-kvm", None),
        ),
    ]
}

fn of_nodes() -> Vec<Case> {
    let (edge, swap) = (&node_at_watermark::RULE, &swap_while_free::RULE);
    let (bind, cache, kswapd) = (&bind_too_small::RULE, &cache_fills_node::RULE, &kswapd_one_node::RULE);
    let kernel = &kernel_memory_lopsided::RULE;
    let none = Bytes::default();
    let reclaiming = |other_ms: u64| {
        let mut fixture = Fixture::new(FOUR);
        fixture.reclaimer(1, seconds(6));
        fixture.reclaimer(2, std::time::Duration::from_millis(other_ms));
        fixture
    };
    let reserved = || {
        let mut fixture = Fixture::new(FOUR);
        fixture.now.nodes[2].high_watermark = Some(gib(2));
        fixture
    };
    vec![
        case(&thresholds::WATERMARK_ELSEWHERE, edge, 0.6, Silent, full_node(none)),
        case(&thresholds::WATERMARK_SHORT, edge, 0.9, Judges, full_node(gib(12))),
        case(&thresholds::WATERMARK_LITTLE, edge, 0.001, Silent, without_watermarks()),
        case(&thresholds::WATERMARK_ROOM, edge, 0.6, Silent, without_watermarks()),
        case(&thresholds::SWAP_ROOM, swap, 3_072.0, Silent, swapping(none, gib(2))),
        case(&thresholds::SWAP_ROOM_SHARE, swap, 0.2, Silent, swapping(none, gib(2))),
        case(&thresholds::SWAP_ROOM_SMALL, swap, 0.03, Fires, swapping(none, Bytes::from_mib(600))),
        case(&thresholds::SWAP_SHORT, swap, 0.3, Fires, swapping(gib(3), gib(8))),
        case(&thresholds::SWAP_MARKS, swap, 0.5, Silent, swapping(none, gib(8))),
        case(&thresholds::BIND_SOON, bind, 300.0, Silent, growing()),
        case(&thresholds::BIND_GROWTH, bind, 0.1, Silent, growing()),
        case(&thresholds::BIND_YOUNGEST, bind, 2_000.0, Silent, growing()),
        case(&thresholds::CACHE_FILLS, cache, 0.8, Silent, cached()),
        case(&thresholds::CACHE_FOREIGN, cache, 0.2, Silent, cached()),
        case(&thresholds::CACHE_MARKS, cache, 0.5, Silent, cached()),
        case(&thresholds::RESERVE, &reserve_too_large::RULE, 0.2, Silent, reserved()),
        case(&thresholds::KSWAPD_BUSY, kswapd, 0.7, Silent, reclaiming(0)),
        case(&thresholds::KSWAPD_ASLEEP, kswapd, 0.1, Fires, reclaiming(500)),
        case(&thresholds::KSWAPD_ROOM, kswapd, 0.9, Judges, reclaiming(0)),
        case(&thresholds::KERNEL_TIMES, kernel, 3.6, Silent, kernel_memory(FOUR)),
        case(&thresholds::KERNEL_SHARE, kernel, 0.97, Silent, kernel_memory("2x(2c 16G)")),
        case(&thresholds::KERNEL_PART, kernel, 0.2, Silent, kernel_memory(FOUR)),
    ]
}

fn of_pools_and_settings() -> Vec<Case> {
    let kind = MappingKind::HugePool;
    let pooled = |memory: &[(u32, Bytes)], rest: &[(u32, Bytes)]| {
        let all: Vec<_> = memory.iter().chain(rest).copied().collect();
        let mappings =
            [(kind, MemPolicy::DEFAULT, memory), (MappingKind::Anonymous, MemPolicy::DEFAULT, rest)];
        balanced(mapped(working(&all, &[(0, 10_000)]), &mappings))
    };
    let bound = || {
        let bind = policy(PolicyMode::Bind, "0,2");
        let memory: &[(u32, Bytes)] = &[(2, gib(2)), (0, gib(2))];
        balanced(mapped(half(), &[(MappingKind::Anonymous, bind, memory)]))
    };
    let confined = |cpus: Option<&'static str>, allowed: Option<&'static str>, cpu: &[(u32, u64)]| {
        let cpu: Vec<_> = cpu.iter().map(|(cpu, s)| (*cpu, seconds(*s))).collect();
        let mut fixture = Fixture::new(FOUR);
        let memory = &[(0, gib(2)), (if allowed.is_some() { 0 } else { 3 }, gib(2))];
        fixture.process(&Work { memory, cpu: &cpu, cpus, nodes: allowed, ..Work::default() });
        fixture
    };
    let (hugetlb, cost, irq) = (&hugetlb_stays::RULE, &balancing_costly::RULE, &irq_remote::RULE);
    let halves = pooled(&[(2, gib(2)), (0, gib(2))], &[]);
    vec![
        case(
            &thresholds::POOL_SHORT,
            &hugepages_uneven::RULE,
            0.8,
            Silent,
            pools(Fixture::new(FOUR), [63, 63, 62, 52]),
        ),
        case(
            &thresholds::POOL_IDLE,
            &hugepages_idle::RULE,
            0.3,
            Silent,
            pools(full_node(Bytes::default()), [0, 2_000, 0, 0]),
        ),
        case(&thresholds::HUGETLB_STRANDED, hugetlb, 0.6, Silent, halves),
        case(&thresholds::HUGETLB_POOLS, hugetlb, 0.95, Silent, pooled(&[(2, gib(9))], &[(2, gib(1))])),
        case(&thresholds::BALANCING_OFF_STRANDED, &balancing_off::RULE, 0.6, Silent, half()),
        case(&thresholds::BALANCING_COST, cost, 0.1, Silent, faulting(400_000, 100_000)),
        case(&thresholds::BALANCING_FAULT, cost, 0.1, Silent, faulting(400_000, 0)),
        case(&thresholds::BALANCING_MOVE, cost, 0.1, Silent, faulting(0, 200_000)),
        case(&thresholds::BALANCING_CANNOT_STRANDED, &balancing_cannot::RULE, 0.6, Silent, bound()),
        case(&thresholds::WEIGHTS_UNLIKE, &weights_not_set::RULE, 6.0, Silent, weighted()),
        case(
            &thresholds::CPUSET_STRANDED,
            &cpus_without_mems::RULE,
            0.6,
            Silent,
            confined(Some("0-1"), None, &[(0, 10)]),
        ),
        case(
            &thresholds::MEMS_ELSEWHERE,
            &mems_without_cpus::RULE,
            0.6,
            Silent,
            confined(None, Some("0"), &[(0, 5), (6, 5)]),
        ),
        case(&thresholds::IRQ_SHARE, irq, 0.6, Silent, interrupted()),
        case(&thresholds::IRQ_RATE, irq, 5_000.0, Silent, interrupted()),
        case(
            &thresholds::MOVED_RATE,
            &irqbalance_against_you::RULE,
            5_000.0,
            Silent,
            interrupts::moved(24_000),
        ),
    ]
}

/// Two ranks of an MPI program, each with this many threads on a CPU of its own.
fn ranks(threads: usize, share: f64) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { pid: 90, ..Work::default() });
    for (pid, cpu) in [(100, 0), (200, 1)] {
        let of_one = std::time::Duration::from_secs_f64(10.0 * share / threads as f64);
        let cpu_time = vec![(cpu, of_one); threads];
        let cpus = cpu.to_string();
        fixture.process(&Work {
            pid,
            memory: &[(0, gib(1))],
            cpu: &cpu_time,
            cpus: Some(&cpus),
            ..Work::default()
        });
    }
    let fixture = named(named(fixture, 90, "mpirun", None), 100, "xhpl", Some(90));
    named(fixture, 200, "xhpl", Some(90))
}

/// A server with this memory, whose threads run on nodes 0 and 1.
fn server(name: &str, memory: &[(u32, Bytes)], setup: impl Fn(&mut Fixture)) -> Fixture {
    let mut fixture = working(memory, &[(0, 5_000), (2, 5_000)]);
    setup(&mut fixture);
    named(fixture, 100, name, None)
}

fn uncounted() -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    for sample in [&mut fixture.before, &mut fixture.now] {
        for node in &mut sample.nodes {
            node.allocations = NodeCounters { hit: Some(0), miss: Some(0), ..Default::default() };
        }
    }
    fixture.happened(&[("pgalloc_normal", 500_000)]);
    fixture
}

/// A process that was killed: it had this memory when node 1 was short, with this much page cache.
fn killed(memory: &[(u32, Bytes)], cache: Bytes) -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    fixture.process(&Work { memory, ..Work::default() });
    fixture.now.processes.retain(|process| process.kernel_thread);
    let now = fixture.now.nodes.clone();
    full(&mut fixture, 1, cache);
    fixture.now.nodes = now;
    fixture.happened(&[("oom_kill", 1)]);
    fixture
}

fn flat() -> Fixture {
    let mut fixture =
        Fixture::new("2x(2c 16G) (32G); access=0>0:80ns/100G; access=1>1:80ns/100G; access=0>2:250ns/30G");
    let nodes = fixture.machine.node_ids();
    fixture.machine.tiers = vec![nodewise_machine::Tier { id: nodewise_machine::TierId::new(4), nodes }];
    fixture
}

fn scanned() -> Fixture {
    let memory: &[(u32, Bytes)] = &[(0, gib(4))];
    let bound = policy(PolicyMode::Bind, "0");
    let mut fixture =
        balanced(mapped(working(memory, &[(0, 10_000)]), &[(MappingKind::Anonymous, bound, memory)]));
    fixture.happened(&[("numa_pte_updates", 40_000)]);
    fixture
}

/// Four fifths of a process's memory are under a policy.
fn partly_placed() -> Fixture {
    let (most, rest): (&[_], &[_]) = (&[(0, gib(4))], &[(0, gib(1))]);
    let kind = MappingKind::Anonymous;
    let mappings = [(kind, policy(PolicyMode::Bind, "0"), most), (kind, MemPolicy::DEFAULT, rest)];
    let mut fixture = balanced(mapped(working(&[(0, gib(5))], &[(0, 10_000)]), &mappings));
    fixture.happened(&[("numa_pte_updates", 40_000)]);
    fixture
}

fn stalling() -> Fixture {
    let mut fixture = Fixture::new(FOUR);
    fixture.happened(&[("allocstall_normal", 300), ("allocstall_movable", 20)]);
    for sample in [&mut fixture.before, &mut fixture.now] {
        sample.nodes[1].high_watermark = Some(Bytes::from_mib(12));
    }
    full(&mut fixture, 1, gib(12));
    fixture
}

fn reclaiming(mut fixture: Fixture) -> Fixture {
    fixture.reclaimer(1, seconds(1));
    fixture
}

fn moving() -> Fixture {
    let mut fixture = Fixture::new("2x(2c 16G) (32G tier=22)");
    let tier =
        |id, of: &str| nodewise_machine::Tier { id: nodewise_machine::TierId::new(id), nodes: nodes(of) };
    fixture.machine.tiers = vec![tier(4, "0-1"), tier(22, "2")];
    fixture.happened(&[("pgpromote_success", 2_000_000), ("pgdemote_kswapd", 2_000_000)]);
    fixture
}

fn of_programs() -> Vec<Case> {
    let ranks_rule = &ranks_on_one_core::RULE;
    let (mongod, mysqld) = (&mongod_start::RULE, &mysqld_interleave::RULE);
    let short = |cache: Bytes| move |fixture: &mut Fixture| full(fixture, 1, cache);
    let (none, uneven) = (Bytes::default(), &[(0, gib(2)), (1, gib(10))]);
    vec![
        case(&thresholds::RANKS_CPUS, ranks_rule, 0.0, Silent, ranks(4, 1.0)),
        case(&thresholds::RANKS_THREADS, ranks_rule, 5.0, Silent, ranks(4, 1.0)),
        case(&thresholds::RANKS_THREAD, ranks_rule, 0.3, Silent, ranks(4, 1.0)),
        case(&thresholds::RANKS_FULL, ranks_rule, 0.95, Silent, ranks(4, 0.9)),
        case(&thresholds::MONGOD_PART, mongod, 0.9, Silent, server("mongod", uneven, short(none))),
        case(&thresholds::MONGOD_SHORT, mongod, 0.3, Fires, server("mongod", uneven, short(gib(3)))),
        case(&thresholds::MYSQL_SIZE, mysqld, 0.8, Silent, server("mysqld", uneven, |_| {})),
        case(&thresholds::MYSQL_SKEW, mysqld, 0.7, Silent, server("mysqld", uneven, |_| {})),
    ]
}

fn of_counters() -> Vec<Case> {
    let (oom, placed, small) =
        (&oom_while_free::RULE, &balancing_on_but_placed::RULE, &reserve_too_small::RULE);
    let none = Bytes::default();
    let mostly: &[(u32, Bytes)] = &[(1, gib(19)), (0, gib(1))];
    vec![
        case(&thresholds::COUNTERS_TAKEN, &counters_off::RULE, 1e6, Silent, uncounted()),
        case(&thresholds::OOM_ON_SHORT, oom, 0.98, Silent, killed(mostly, none)),
        case(&thresholds::OOM_SHORT, oom, 0.3, Fires, killed(mostly, gib(3))),
        case(&thresholds::OOM_MARKS, oom, 0.5, Silent, killed(mostly, none)),
        case(&thresholds::OOM_ELSEWHERE, oom, 0.7, Silent, killed(mostly, none)),
        case(&thresholds::TIERS_UNLIKE, &tiers_flat::RULE, 4.0, Silent, flat()),
        case(&thresholds::TIER_TRAFFIC, &promotion_unlimited::RULE, 2_000.0, Silent, moving()),
        case(&thresholds::PLACED_SHARE, placed, 0.7, Fires, partly_placed()),
        case(&thresholds::PLACED_UPDATES, placed, 5_000.0, Silent, scanned()),
        case(&thresholds::SMALL_STALLS, small, 100.0, Silent, stalling()),
        case(&thresholds::SMALL_RESERVE, small, 0.0005, Silent, stalling()),
        case(&thresholds::SMALL_FREE, small, 0.001, Silent, stalling()),
        case(&thresholds::SMALL_KSWAPD, small, 0.05, Silent, reclaiming(stalling())),
    ]
}

fn cases() -> Vec<Case> {
    let all = of_processes().into_iter().chain(of_nodes()).chain(of_pools_and_settings());
    let all = all.chain(of_programs()).chain(of_counters());
    all.chain(hardware::cases())
        .chain(running::cases())
        .chain(bound::cases())
        .chain(started::cases())
        .chain(runtimes::cases())
        .chain(site::cases())
        .collect()
}

/// The findings of a case's rule with these thresholds.
fn found(case: &Case, thresholds: Thresholds) -> Vec<RuleFinding> {
    let situation = case.fixture.situation().with_thresholds(thresholds);
    let diagnosis = Diagnosis::new(&situation, &[case.rule.id.to_owned()]);
    assert_eq!(diagnosis.examined.len(), 1, "{} is not examined", case.rule.id);
    diagnosis.findings
}

#[test]
fn a_threshold_that_is_moved_over_the_measured_value_changes_what_its_rule_finds() {
    let cases = cases();
    for threshold in THRESHOLDS {
        let has_case = cases.iter().any(|case| case.of == *threshold);
        assert!(has_case, "{}.{} has no case", threshold.table, threshold.key);
    }
    for case in &cases {
        let name = format!("{}: {}", case.rule.id, case.of.name());
        assert!(case.rule.thresholds.contains(&case.of), "{name} is not in its list");
        assert!((case.of.least..=case.of.most).contains(&case.to), "{name}");
        let by_default = found(case, Thresholds::default());
        assert!(by_default.iter().all(|finding| finding.replaced.is_empty()), "{name}");
        let mut moved = Thresholds::default();
        moved.set(case.of, case.to);
        let now = found(case, moved);
        match case.outcome {
            Silent => assert!(!by_default.is_empty() && now.is_empty(), "{name}: {by_default:#?} {now:#?}"),
            Fires => assert!(by_default.is_empty() && !now.is_empty(), "{name}: {by_default:#?} {now:#?}"),
            Judges => {
                let severity = |found: &[RuleFinding]| found[0].severity;
                assert_ne!(severity(&by_default), severity(&now), "{name}");
            }
        }
        for finding in &now {
            let replaced: Vec<_> = finding.replaced.iter().map(|of| (of.threshold, of.value)).collect();
            assert_eq!(replaced, [(case.of, case.to)], "{name}");
        }
    }
}

#[test]
fn evidence_against_a_replaced_threshold_names_its_origin() {
    let case = case(&thresholds::MEMORY_STRANDED, &memory_stranded::RULE, 0.4, Judges, half());
    let against = |thresholds: Thresholds| {
        let found = found(&case, thresholds).remove(0);
        let threshold = found.evidence[0].threshold.clone().unwrap();
        (threshold.value, threshold.origin)
    };
    let numad = "numad's target of 90 % on the process's nodes";
    assert_eq!(against(Thresholds::default()), (Value::Share(0.1), numad));
    let mut moved = Thresholds::default();
    moved.set(case.of, case.to);
    assert_eq!(against(moved), (Value::Share(0.4), REPLACED));
}
