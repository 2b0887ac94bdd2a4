use super::*;
use crate::example::{node, process, task};
use proptest::prelude::{Strategy, prop, prop_assert, proptest};

/// Two nodes of four CPUs.
fn places() -> Places {
    let nodes = vec![node(0, &[0, 1, 2, 3]), node(1, &[4, 5, 6, 7])];
    Places::new([&Sample { nodes, ..Sample::default() }])
}

fn n(number: u32) -> NodeId {
    NodeId::new(number)
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A thread's reading: time, CPU, changes of CPU, allowed CPUs.
fn reading(run: u64, cpu: u32, changes: Option<u64>, cpus: Option<&[u32]>) -> TaskSample {
    let mut task = task(7, run / 10);
    task.run = Some(ms(run));
    task.processor = Some(CpuId::new(cpu));
    task.cpu_changes = changes;
    task.allowed =
        cpus.map(|cpus| Allowed { cpus: Some(cpus.iter().copied().map(CpuId::new).collect()), nodes: None });
    task
}

fn check(
    before: Option<TaskSample>,
    now: TaskSample,
    certain: &[(u32, u64)],
    unsure: u64,
    within: Option<&[u32]>,
) {
    let time = of_task(before.as_ref(), &now, &places()).unwrap();
    let expected: BTreeMap<NodeId, Duration> =
        certain.iter().map(|(node, time)| (n(*node), ms(*time))).collect();
    assert_eq!((time.certain, time.unsure), (expected, ms(unsure)), "{before:?} {now:?}");
    assert_eq!(time.within, within.map(|nodes| nodes.iter().copied().map(NodeId::new).collect()), "{now:?}");
}

#[test]
fn unsure_time_is_attributed_as_it_was_seen() {
    let (one, two) = (NodeId::new(1), NodeId::new(2));
    let seconds = Duration::from_secs;
    let mut time = CpuTime { used: seconds(10), unsure: seconds(8), ..CpuTime::default() };
    time.certain.insert(one, seconds(2));
    let known = time.clone();
    // Who saw less than half of it cannot say.
    time.attribute(&[(two, seconds(4))].into());
    assert_eq!(time, known);
    time.attribute(&[(one, seconds(2)), (two, seconds(6))].into());
    assert_eq!(time.certain, [(one, seconds(4)), (two, seconds(6))].into());
    assert_eq!(
        (time.unsure, time.used, time.may_include(NodeId::new(0))),
        (Duration::ZERO, seconds(10), false)
    );
}

#[test]
fn a_thread_that_stayed_or_is_confined_has_its_node_and_any_other_is_unsure() {
    let all: &[u32] = &[0, 1, 2, 3, 4, 5, 6, 7];
    // It did not move.
    check(Some(reading(0, 4, Some(9), None)), reading(500, 4, Some(9), None), &[(1, 500)], 0, Some(&[]));
    // Away and back again.
    check(Some(reading(0, 4, Some(9), None)), reading(500, 4, Some(11), None), &[], 500, None);
    check(
        Some(reading(0, 4, Some(9), Some(all))),
        reading(500, 4, Some(11), Some(all)),
        &[],
        500,
        Some(&[0, 1]),
    );
    // No count of changes: the same CPU proves nothing.
    check(Some(reading(0, 4, None, None)), reading(500, 4, None, None), &[], 500, None);
    // Confined all the time, whatever it did there; bound only in between.
    let own: &[u32] = &[4, 5];
    check(
        Some(reading(0, 4, Some(1), Some(own))),
        reading(90, 5, Some(8), Some(own)),
        &[(1, 90)],
        0,
        Some(&[]),
    );
    check(Some(reading(0, 4, Some(1), Some(all))), reading(90, 5, Some(8), Some(own)), &[], 90, None);
    // It may use one CPU, and has changed CPUs: it was bound elsewhere in between. One that stayed was not.
    let one: &[u32] = &[4];
    check(Some(reading(0, 4, Some(1), Some(one))), reading(90, 4, Some(3), Some(one)), &[], 90, None);
    check(
        Some(reading(0, 4, Some(3), Some(one))),
        reading(90, 4, Some(3), Some(one)),
        &[(1, 90)],
        0,
        Some(&[]),
    );
    // A thread that is new and never moved, and one that did before it was seen.
    check(None, reading(40, 1, Some(0), None), &[(0, 40)], 0, Some(&[]));
    check(None, reading(40, 1, Some(1), Some(own)), &[], 40, None);
    // CPU 9 is offline: no node.
    check(Some(reading(0, 9, Some(1), None)), reading(40, 9, Some(1), None), &[], 40, None);
    assert_eq!(of_task(Some(&reading(50, 0, None, None)), &reading(40, 0, None, None), &places()), None);
}

#[test]
fn time_of_threads_that_ended_is_unsure() {
    let mut before = process(7, 10);
    before.threads = 2;
    before.tasks = Some(vec![reading(100, 0, Some(1), None)]);
    let mut now = process(7, 110);
    now.tasks = Some(vec![reading(600, 0, Some(1), None)]);
    let time = of_process(Some(&before), &now, &places()).unwrap();
    assert_eq!((time.used, time.unsure, time.bounds(n(0)).0), (ms(1000), ms(500), ms(500)));
    assert_eq!(time.bounds(n(1)), (ms(0), ms(500)));
    assert!(time.may_include(n(1)));
    // Ticks are rounded: two of them are within that.
    now.cpu_ticks = 62;
    assert_eq!(of_process(Some(&before), &now, &places()).unwrap().unsure, ms(0));
    now.cpu_ticks = 9;
    assert_eq!(of_process(Some(&before), &now, &places()), None, "a clock that went back says nothing");
}

#[test]
fn a_process_whose_threads_were_not_looked_at_is_unsure_unless_it_is_one_that_is_confined() {
    let (before, mut now) = (process(7, 0), process(7, 50));
    assert_eq!(of_process(Some(&before), &now, &places()).unwrap().unsure, ms(500));
    let confined = |mut process: ProcessSample| {
        process.allowed = Some(Allowed { cpus: Some([CpuId::new(5)].into_iter().collect()), nodes: None });
        process
    };
    now = confined(now);
    let time = of_process(Some(&confined(before.clone())), &now, &places()).unwrap();
    assert_eq!(time.bounds(n(1)), (ms(500), ms(500)));
    // Other memory nodes do not unbind it.
    let allowed = |process: &ProcessSample| process.allowed.clone().unwrap();
    now.allowed = Some(Allowed { nodes: Some(NodeSet::from([0])), ..allowed(&now) });
    let time = of_process(Some(&confined(before.clone())), &now, &places()).unwrap();
    assert_eq!(time.bounds(n(1)), (ms(500), ms(500)));
    // It ran elsewhere: the CPUs that it may use were read before it was bound there.
    for (then, cpu) in [(5, 0), (0, 5)] {
        let mut before = confined(before.clone());
        (before.processor, now.processor) = (Some(CpuId::new(then)), Some(CpuId::new(cpu)));
        assert_eq!(of_process(Some(&before), &now, &places()).unwrap().bounds(n(1)), (ms(0), ms(500)));
    }
    now.processor = Some(CpuId::new(5));
    now.threads = 2;
    assert_eq!(of_process(Some(&confined(before)), &now, &places()).unwrap().unsure, ms(500));
    assert_eq!(reach(&now, &places()), Some(NodeSet::from([1])));
}

/// A stay: CPU, and milliseconds of work there.
fn stays() -> impl Strategy<Value = Vec<(u32, u64)>> {
    prop::collection::vec((0u32..8, 0u64..40), 1..12)
}

/// The readings of a thread before and after its stays; the first stay begins before the first reading.
fn readings(
    stays: &[(u32, u64)],
    counted: bool,
    bound: bool,
) -> (TaskSample, TaskSample, BTreeMap<NodeId, Duration>) {
    let stays: Vec<(u32, u64)> =
        stays.iter().map(|(cpu, time)| (if bound { cpu % 4 } else { *cpu }, *time)).collect();
    let moves = stays.windows(2).filter(|pair| pair[0].0 != pair[1].0).count() as u64;
    let mut truth: BTreeMap<NodeId, Duration> = BTreeMap::new();
    for (cpu, time) in &stays {
        *truth.entry(n(cpu / 4)).or_default() += ms(*time);
    }
    let cpus: &[u32] = if bound { &[0, 1, 2, 3] } else { &[0, 1, 2, 3, 4, 5, 6, 7] };
    let changes = |count| counted.then_some(count);
    let before = reading(1000, stays[0].0, changes(3), Some(cpus));
    let total: u64 = stays.iter().map(|(_, time)| time).sum();
    let now = reading(1000 + total, stays[stays.len() - 1].0, changes(3 + moves), Some(cpus));
    (before, now, truth)
}

proptest! {
    #[test]
    fn the_true_time_of_each_node_lies_between_its_bounds(
        threads in prop::collection::vec((stays(), proptest::bool::ANY, proptest::bool::ANY), 1..6),
        ended in 0u64..30,
        ended_on in 0u32..2,
    ) {
        let (mut before, mut now) = (process(7, 1000), process(7, 1000));
        let (mut then, mut tasks) = (Vec::new(), Vec::new());
        let mut truth: BTreeMap<NodeId, Duration> = BTreeMap::new();
        for (number, (stays, counted, bound)) in threads.iter().enumerate() {
            let (mut first, mut second, spent) = readings(stays, *counted, *bound);
            first.identity.started_ticks = number as u64;
            second.identity.started_ticks = number as u64;
            then.push(first);
            tasks.push(second);
            for (node, time) in spent {
                *truth.entry(node).or_default() += time;
            }
        }
        *truth.entry(n(ended_on)).or_default() += ticks(ended);
        let total: Duration = truth.values().sum();
        now.cpu_ticks += u64::try_from(total.as_millis()).unwrap() / 10;
        before.tasks = Some(then);
        now.tasks = Some(tasks);
        let time = of_process(Some(&before), &now, &places()).unwrap();
        for node in [n(0), n(1)] {
            let spent = truth.get(&node).copied().unwrap_or_default();
            let (low, high) = time.bounds(node);
            prop_assert!(low <= spent && spent <= high + ROUNDING, "{node:?}: {spent:?} in {low:?}..{high:?}");
        }
        prop_assert!(time.certain.values().sum::<Duration>() + time.unsure == time.used);
    }
}

#[test]
fn a_cpu_without_a_known_node_may_be_of_another() {
    let cpus = [0, 1, 9].map(|cpu| (CpuId::new(cpu), Default::default())).to_vec();
    let sample = Sample { nodes: vec![node(0, &[0, 1])], cpus, ..Sample::default() };
    let time = of_process(Some(&process(7, 20)), &process(7, 50), &Places::new([&sample])).unwrap();
    assert_eq!((time.certain, time.unsure), (BTreeMap::new(), ms(300)));
}

#[test]
fn on_the_only_node_with_cpus_all_time_is_certain() {
    let sample = Sample { nodes: vec![node(0, &[0, 1, 2, 3]), node(1, &[])], ..Sample::default() };
    let places = Places::new([&sample]);
    let mut now = process(7, 50);
    now.threads = 3;
    for before in [None, Some(&process(7, 20))] {
        let time = of_process(before, &now, &places).unwrap();
        assert_eq!((time.bounds(NodeId::new(0)).0, time.unsure), (time.used, Duration::ZERO));
    }
}
