use nodewise_machine::{CpuSet, NodeId};
use nodewise_syscall::{Task, affinity};

use super::report::cell;
use super::*;
use crate::cell::facts::NoFacts;
use crate::latency::Pattern;
use crate::survey::{Account, Outcome, Pace, Survey, SurveyFinding, Surveyor};
use nodewise_stats::Direction;

const NODE: NodeId = NodeId::new(0);

fn near(cpus: CpuSet, memory: NodeId) -> Cell {
    Cell { from: NODE, cpus, memory, pages: PageKind::Small }
}

fn own_cpus() -> CpuSet {
    affinity::cpus(Task::CURRENT).unwrap()
}

fn chase(memory: NodeId) -> Chase {
    let cpus: CpuSet = best_cpu(&own_cpus()).into_iter().collect();
    Chase { cell: near(cpus, memory), size: Bytes::from_mib(2), pattern: Pattern::Random }
}

/// Traffic on the first CPU: on a machine with one it and the chase run in turns.
fn traffic(kernel: Kernel, pause_ns: u32) -> Traffic {
    let cpus: CpuSet = own_cpus().first().into_iter().collect();
    Traffic { cell: near(cpus, NODE), kernel, pause_ns }
}

fn survey(points: &[Loaded]) -> (LoadedBench, Survey) {
    let mut bench = LoadedBench::new(1, Bytes::from_mib(2), Duration::from_millis(2));
    let mut surveyor = Surveyor {
        facts: &mut NoFacts,
        clock: &nodewise_syscall::clock::Monotonic::start(),
        observer: &mut |_| {},
    };
    let survey = surveyor.conduct(&mut bench, points, Pace::exactly(6, 1), 1);
    (bench, survey)
}

#[test]
fn points_have_a_latency_and_the_bytes_of_their_traffic() {
    let idle = Loaded { chase: chase(NODE), traffic: None };
    let with = |kernel, pause| Loaded { chase: chase(NODE), traffic: Some(traffic(kernel, pause)) };
    let points = [idle, with(Kernel::Read, 0), with(Kernel::Mix3To1, 300), with(Kernel::Copy, 5000)];
    let (bench, survey) = survey(&points);
    for (point, outcome) in points.iter().zip(&survey.outcomes) {
        let figure = outcome.figure(Direction::LowerIsBetter).unwrap();
        assert!(figure.median > 0.0, "{point:?}");
        let p90 = outcome.figure_of(Direction::LowerIsBetter, |sample| Some(sample.beside?.p90)).unwrap();
        assert!(p90.best >= figure.best, "{point:?}");
        let load = outcome.figure_of(Direction::HigherIsBetter, |sample| sample.beside?.load);
        assert_eq!(load.is_some(), point.traffic.is_some(), "{point:?}");
        assert!(load.is_none_or(|load| load.median > 0.0), "{point:?}");
        // Both buffers are 2 MiB.
        let buffers = 1 + u64::from(point.traffic.is_some());
        let pages = buffers * (2 << 20) / nodewise_syscall::pages::page_size() as u64;
        for placed in [&outcome.before, &outcome.after] {
            let placed = placed.as_ref().unwrap();
            assert!(placed.is_full() && placed.pages == pages, "{placed:?}");
        }
        let variant = point.traffic.as_ref().map(|traffic| bench.variant(traffic));
        assert!(variant.is_none_or(|variant| variant.is_some()), "{point:?}");
    }
}

#[test]
fn a_point_that_cannot_be_measured_says_why_and_the_others_come() {
    let with = |traffic| Loaded { chase: chase(NODE), traffic: Some(traffic) };
    let mut elsewhere = traffic(Kernel::Read, 0);
    elsewhere.cell.memory = NodeId::new(900);
    let mut nobody = traffic(Kernel::Read, 0);
    nobody.cell.cpus = CpuSet::new();
    let mut lost = traffic(Kernel::Read, 0);
    lost.cell.cpus = CpuSet::from([100_000]);
    let far = Loaded { chase: chase(NodeId::new(900)), traffic: None };
    // The one that comes holds the contest: a CPU that is lost is then noticed when it is sampled.
    let points = [with(traffic(Kernel::Read, 0)), with(elsewhere), with(nobody), with(lost), far];
    let outcomes = survey(&points).1.outcomes;
    let refusals: Vec<Option<Refusal>> = outcomes.into_iter().map(|outcome| outcome.refusal).collect();
    assert_eq!(refusals[0], None);
    assert!(matches!(refusals[1], Some(Refusal::Call(_))), "{:?}", refusals[1]);
    assert_eq!(refusals[2], Some(Refusal::NoCpu { node: NODE }));
    assert_eq!(refusals[3], Some(Refusal::CpuLost { cpu: CpuId::new(100_000) }));
    assert!(matches!(refusals[4], Some(Refusal::Call(_))), "{:?}", refusals[4]);
}

#[test]
fn traffic_on_more_cpus_than_pages_is_refused() {
    let mut crowd = traffic(Kernel::Read, 0);
    crowd.cell.cpus = (0..1024).map(CpuId::new).collect();
    let points = [Loaded { chase: chase(NODE), traffic: Some(crowd) }];
    assert_eq!(survey(&points).1.outcomes[0].refusal, Some(team::too_small()));
}

/// An outcome of six rounds with these figures each.
fn outcome(ns: f64, load: Option<f64>) -> Outcome {
    let beside = Some(Beside { p90: ns * 1.2, load });
    let timed = Timed { value: ns, probe: None, meanwhile: Glance::default(), beside };
    let placed = Some(Placed { on_node: 8, pages: 8, ..Placed::default() });
    Outcome { rounds: vec![vec![timed]; 6], before: placed.clone(), after: placed, ..Outcome::default() }
}

fn point(pause_ns: u32, outcome: &Outcome) -> Point {
    let loaded = Loaded { chase: chase(NODE), traffic: Some(traffic(Kernel::Read, pause_ns)) };
    Point::new(&loaded, outcome, &|refusal| refusal.to_string()).unwrap()
}

#[test]
fn a_path_finds_the_knee_of_its_curves_and_their_most() {
    let idle = Loaded { chase: chase(NODE), traffic: None };
    let points = vec![
        point(1000, &outcome(105.0, Some(10.0))),
        point(100, &outcome(180.0, Some(40.0))),
        point(0, &outcome(260.0, Some(30.0))),
    ];
    let curve = Curve { kernel: Kernel::Read, variant: None, points };
    let mut path = Path {
        idle: cell(&idle, &outcome(100.0, None), &|refusal| refusal.to_string()),
        idle_p90_ns: Some(120.0),
        traffic_from: NODE,
        traffic_cpus: CpuSet::from([0]),
        traffic_memory: NODE,
        shares_core: false,
        curves: Vec::new(),
    };
    assert_eq!(path.knee(&curve), Some(Knee::At { gb_per_s: 37.5 }));
    assert_eq!(curve.most().map(|point| point.pause_ns), Some(100));
    assert_eq!(curve.points[0].p90_ns, Some(126.0));
    path.idle.figure = None;
    assert_eq!(path.knee(&curve), None, "nothing to compare with");
}

#[test]
fn pages_of_chase_or_traffic_that_moved_leave_no_figure() {
    let mut moved = outcome(100.0, Some(5.0));
    moved.after = Some(Placed { on_node: 6, pages: 8, ..Placed::default() });
    let point = point(0, &moved);
    assert_eq!((point.place(), point.p90_ns, point.load), (None, None, None));
    let why = "pages of the chase and of the traffic did not stay: 6 of 8 were left where they should be";
    assert_eq!(point.cell.refused.as_deref(), Some(why));
}

#[test]
fn placements_of_two_buffers_are_full_when_both_are() {
    let placed = |on_node, elsewhere: &[u32]| Placed {
        on_node,
        pages: 8,
        elsewhere: elsewhere.iter().copied().map(NodeId::new).collect(),
        huge: Some(Bytes::from_mib(2)),
    };
    assert!(together(&placed(8, &[]), &placed(8, &[])).is_full());
    let both = together(&placed(8, &[]), &placed(7, &[3]));
    assert_eq!((both.on_node, both.pages, both.is_full()), (15, 16, false));
    assert_eq!(
        (both.elsewhere, both.huge),
        ([NodeId::new(3)].into_iter().collect(), Some(Bytes::from_mib(4)))
    );
    assert_eq!(together(&placed(8, &[]), &Placed { huge: None, ..placed(8, &[]) }).huge, None);
}

#[test]
fn a_shared_core_is_said_once() {
    let idle = Loaded { chase: chase(NODE), traffic: None };
    let path = Path {
        idle: cell(&idle, &outcome(100.0, None), &|refusal| refusal.to_string()),
        idle_p90_ns: Some(120.0),
        traffic_from: NODE,
        traffic_cpus: CpuSet::from([0]),
        traffic_memory: NODE,
        shares_core: true,
        curves: Vec::new(),
    };
    let report = LoadedReport {
        account: Account::default(),
        pages: PageKind::Small,
        size: Bytes::from_mib(2),
        traffic_size: Bytes::from_mib(2),
        paths: vec![path.clone(), path],
    };
    let cpu = best_cpu(&own_cpus()).unwrap();
    assert_eq!(findings(&report)[..1], [SurveyFinding::Shown(LoadedFinding::SharedCore { cpu, node: NODE })]);
    assert_eq!(findings(&report).iter().filter(|finding| !finding.is_noise()).count(), 1);
}

#[test]
fn pauses_grow_and_the_few_are_among_the_many() {
    assert!(PAUSES.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(FEW_PAUSES.iter().all(|pause| PAUSES.contains(pause)));
    assert_eq!((PAUSES[0], FEW_PAUSES[0]), (0, 0));
}
