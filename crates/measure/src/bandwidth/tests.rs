use nodewise_machine::NodeId;
use nodewise_syscall::{Task as Caller, affinity};

use super::*;
use crate::cell::facts::NoFacts;
use crate::survey::{Pace, Survey, Surveyor};
use nodewise_stats::Direction;
use nodewise_syscall::clock::Monotonic;

/// Large enough for the arrays of each kernel with some threads.
const SIZE: Bytes = Bytes::from_mib(4);

fn way(kernel: Kernel, memory: u32, cpus: CpuSet) -> MemoryTransfer {
    let pages = PageKind::Small;
    MemoryTransfer {
        cells: vec![Cell { from: NodeId::new(0), cpus, memory: NodeId::new(memory), pages }],
        kernel,
    }
}

fn cpus() -> CpuSet {
    affinity::cpus(Caller::CURRENT).unwrap().iter().take(2).collect()
}

fn conduct(bench: &mut BandwidthBench, ways: &[MemoryTransfer]) -> Survey {
    let mut surveyor = Surveyor { facts: &mut NoFacts, clock: &Monotonic::start(), observer: &mut |_| {} };
    surveyor.conduct(bench, ways, Pace::exactly(2, 1), 1)
}

#[test]
fn every_kernel_has_a_figure_and_a_winner_on_memory_that_is_in_place() {
    // One CPU: threads that wait for each other on a busy machine may have no common window.
    let one: CpuSet = cpus().iter().take(1).collect();
    let ways: Vec<MemoryTransfer> =
        Kernel::ALL.into_iter().map(|kernel| way(kernel, 0, one.clone())).collect();
    let mut bench = BandwidthBench::new(SIZE, Duration::from_millis(1));
    let survey = conduct(&mut bench, &ways);
    for (way, outcome) in ways.iter().zip(&survey.outcomes) {
        let kernel = way.kernel;
        assert_eq!(outcome.refusal, None, "{kernel}");
        assert!(outcome.figure(Direction::HigherIsBetter).unwrap().median > 0.0, "{kernel}");
        let variant = bench.variant(way).unwrap();
        assert!(Variant::all(kernel).contains(&variant), "{kernel}: {variant}");
        for placed in [&outcome.before, &outcome.after] {
            assert!(placed.as_ref().unwrap().is_full(), "{kernel}");
        }
    }
}

#[test]
fn a_node_and_a_cpu_that_do_not_exist_are_refused_and_the_others_come() {
    let one: CpuSet = cpus().iter().take(1).collect();
    let lost = CpuSet::from([100_000]);
    let ways = [
        way(Kernel::Read, 900, one.clone()),
        way(Kernel::Copy, 0, lost),
        way(Kernel::Read, 0, one),
        way(Kernel::Read, 0, CpuSet::new()),
    ];
    let survey = conduct(&mut BandwidthBench::new(SIZE, Duration::from_millis(1)), &ways);
    let [no_node, no_cpu, good, idle] = &survey.outcomes[..] else { panic!("four ways") };
    assert!(matches!(no_node.refusal, Some(Refusal::Call(_))), "{no_node:?}");
    assert_eq!(no_cpu.refusal, Some(Refusal::CpuLost { cpu: CpuId::new(100_000) }));
    assert!(good.figure(Direction::HigherIsBetter).is_some());
    assert_eq!(idle.refusal, Some(Refusal::NoCpu { node: NodeId::new(0) }));
}

#[test]
fn contests_that_have_had_their_share_of_a_limited_time_are_short() {
    let seconds = Duration::from_secs;
    let mut winners = Winners { spent: seconds(100), ..Winners::default() };
    assert_eq!(winners.begin(None), Contest::Whole, "there is no limit");
    let mut winners = Winners::default();
    assert_eq!(winners.begin(Some(seconds(10))), Contest::Whole);
    winners.spent = seconds(2);
    assert_eq!(winners.begin(Some(seconds(8))), Contest::Whole);
    winners.spent = seconds(3);
    assert_eq!(winners.begin(Some(seconds(7))), Contest::Short);
}

#[test]
fn what_won_for_one_thread_and_near_memory_is_taken_over_before_others() {
    let all = Variant::all(Kernel::Copy);
    let kind = |kernel, remote, several| Kind { kernel, pages: PageKind::Small, remote, several };
    let mut winners = Winners::default();
    assert_eq!(winners.of_kernel(Kernel::Copy), None);
    winners.variants.insert(kind(Kernel::Copy, true, true), all[0]);
    assert_eq!(winners.of_kernel(Kernel::Copy), Some(all[0]));
    winners.variants.insert(kind(Kernel::Copy, false, false), all[1]);
    assert_eq!(winners.of_kernel(Kernel::Copy), Some(all[1]));
    assert_eq!(winners.of_kernel(Kernel::Read), None);
}

#[test]
fn memory_that_is_too_small_is_refused_with_what_would_do() {
    let mut bench = BandwidthBench::new(Bytes::from_kib(64), Duration::from_millis(1));
    let refusal = conduct(&mut bench, &[way(Kernel::Triad, 0, cpus())]).outcomes[0].refusal.clone();
    let expected = "a thread's part of the memory is too small: expected a larger --size";
    assert_eq!(refusal.unwrap().to_string(), expected);
}

#[test]
fn threads_have_parts_of_their_own() {
    let mut bench = BandwidthBench::new(SIZE, Duration::from_millis(1));
    let way = way(Kernel::Read, 0, CpuSet::from([0, 1, 2]));
    assert!(BandwidthBench::members(&mut bench.memories, &way).is_err(), "no memory yet");
    bench.memories.make(&way.cells[0], &mut NoFacts).unwrap();
    let members = BandwidthBench::members(&mut bench.memories, &way).unwrap();
    let cpus: Vec<u32> = members.iter().map(|member| member.cpu.number()).collect();
    assert_eq!(cpus, [0, 1, 2]);
    let pages = SIZE.get() as usize / 4096;
    assert!(members.iter().all(|member| member.part.len() == pages / 3 * PAGE), "whole pages");
    let idle = MemoryTransfer { cells: Vec::new(), kernel: Kernel::Read };
    assert!(BandwidthBench::members(&mut bench.memories, &idle).is_err());
}
