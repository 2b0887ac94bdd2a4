use super::*;
use crate::example::{at, moment, node, process, task};
use nodewise_machine::CpuId;
use nodewise_source::parse::proc_stat::CpuTimes;
use nodewise_source::parse::{counters, pressure};
use nodewise_source::sample::BalancingSample;
use proptest::prelude::{any, prop, prop_assert, proptest};

fn sample(seconds: u64) -> Sample {
    Sample { moment: moment(seconds), nodes: vec![node(0, &[0, 1]), node(1, &[2])], ..Sample::default() }
}

fn times(user: u64, idle: u64) -> CpuTimes {
    CpuTimes { user, idle, ..CpuTimes::default() }
}

#[test]
fn samples_of_one_moment_or_in_the_wrong_order_have_no_rates() {
    assert_eq!(Delta::between(&sample(5), &sample(5)), Err(DeltaError::SameMoment));
    let error = Delta::between(&sample(7), &sample(5)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the second sample is 2000 ms older than the first: rates need samples in their order"
    );
}

#[test]
fn a_counter_that_went_back_or_that_one_sample_lacks_has_no_rate() {
    let (mut before, mut now) = (sample(10), sample(14));
    before.events = counters::parse("numa_hint_faults 100\npgfault 9\nold 1\n").value;
    now.events = counters::parse("numa_hint_faults 300\npgfault 8\nnew 1\n").value;
    before.nodes[0].allocations.hit = Some(40);
    now.nodes[0].allocations.hit = Some(80);
    before.nodes[0].allocations.miss = Some(4);
    now.nodes[0].allocations.miss = Some(3);
    let delta = Delta::between(&before, &now).unwrap();
    let rate = |name: &str| delta.window.rate(delta.events.get(name));
    assert_eq!(
        (rate("numa_hint_faults"), rate("pgfault"), rate("old"), rate("new")),
        (Some(50.0), None, None, None)
    );
    assert_eq!(delta.events.sum(&["numa_hint_faults", "absent"]), Some(200));
    assert_eq!(delta.events.sum(&["absent"]), None);
    let allocations = delta.node(NodeId::new(0)).unwrap().allocations;
    assert_eq!((allocations.hit, allocations.miss, allocations.foreign), (Some(40), None, None));
}

#[test]
fn a_node_that_came_online_in_between_has_no_counts() {
    let (mut before, mut now) = (sample(10), sample(11));
    before.nodes.pop();
    now.nodes[1].allocations.hit = Some(9);
    now.nodes[1].counters = counters::parse("pgpromote_success 3\n").value;
    let delta = Delta::between(&before, &now).unwrap();
    assert_eq!(
        (delta.nodes[1].allocations.hit, delta.nodes[1].events.get("pgpromote_success")),
        (None, None)
    );
    let boot = Delta::since_boot(&now);
    assert_eq!(
        (boot.nodes[1].allocations.hit, boot.nodes[1].events.get("pgpromote_success")),
        (Some(9), Some(3))
    );
    assert_eq!(boot.window.rate(Some(22)), Some(2.0));
    assert_eq!(Delta::since_boot(&sample(0)).window.rate(Some(22)), None, "the uptime is not known");
}

#[test]
fn the_load_of_a_node_is_that_of_its_cpus_with_the_busiest_beside_it() {
    let cpu = CpuId::new;
    let (mut before, mut now) = (sample(10), sample(11));
    before.cpus = vec![(cpu(0), times(0, 0)), (cpu(1), times(10, 50)), (cpu(2), times(5, 100))];
    now.cpus = vec![
        (cpu(0), times(0, 100)),
        (cpu(1), times(60, 100)),
        (cpu(2), times(55, 90)),
        (cpu(3), times(9, 9)),
    ];
    let delta = Delta::between(&before, &now).unwrap();
    let load = |number| delta.node(NodeId::new(number)).unwrap().cpus.unwrap();
    assert_eq!((load(0).busy, load(0).busiest, load(0).cpus), (0.25, (cpu(1), 0.5), 2));
    assert_eq!((load(1).busy, delta.idle_went_back), (1.0, 1), "idle time that ran backwards counts as 0");
    assert_eq!((load(0).interrupts, load(0).stolen), (None, None));
    assert_eq!(delta.cpus.unwrap().cpus, 3, "a CPU that came online in between is left out");
    now.cpus = vec![(cpu(2), times(4, 200))];
    assert_eq!(
        Delta::between(&before, &now).unwrap().nodes[1].cpus,
        None,
        "work that ran backwards says nothing"
    );
}

#[test]
fn processes_are_matched_by_number_and_start() {
    let (mut before, mut now) = (sample(10), sample(11));
    let read = |seconds, started_ticks, ticks| {
        let mut process = process(7, ticks);
        process.identity.started_ticks = started_ticks;
        at(seconds, process)
    };
    before.processes = vec![read(10, 5, 400)];
    now.processes = vec![read(11, 1050, 20)];
    let delta = Delta::between(&before, &now).unwrap();
    assert_eq!((delta.born.len(), delta.gone.len()), (1, 1));
    assert_eq!(delta.gone[0].started_ticks, 5);
    // It began in between: its time is all of this window.
    let change = delta.process(now.processes[0].identity).unwrap();
    assert_eq!(change.window.share(change.cpu.as_ref().map(|cpu| cpu.used)), Some(0.2));
    // It is older than the first sample, which missed it: nothing is known of this window.
    now.processes = vec![read(11, 900, 20)];
    let delta = Delta::between(&before, &now).unwrap();
    assert_eq!((delta.processes[0].cpu.clone(), delta.processes[0].major_faults), (None, None));
    // Since its start: 0.2 s of 2 s.
    let boot = Delta::since_boot(&Sample { processes: vec![read(11, 1095, 5)], ..now.clone() });
    assert_eq!(boot.processes[0].window.length(), None, "too young for a share");
    let boot = Delta::since_boot(&now);
    let change = &boot.processes[0];
    assert_eq!(change.window.share(change.cpu.as_ref().map(|cpu| cpu.used)), Some(0.1));
}

#[test]
fn an_idle_process_has_the_window_of_its_own_readings() {
    let (mut before, mut now) = (sample(10), sample(11));
    before.processes = vec![at(7, process(7, 100))];
    now.processes = vec![at(11, process(7, 140))];
    let change = &Delta::between(&before, &now).unwrap().processes[0];
    assert_eq!(change.window.share(change.cpu.as_ref().map(|cpu| cpu.used)), Some(0.1), "0.4 s of 4 s");
    now.processes = before.processes.clone();
    assert_eq!(Delta::between(&before, &now).unwrap().processes[0].cpu, None, "it was not read this time");
}

#[test]
fn pages_that_balancing_moved_are_counted_by_thread() {
    let (mut before, mut now) = (sample(10), sample(11));
    let with = |seconds, moved: &[(u32, Option<u64>)]| {
        let tasks = moved.iter().map(|(tid, pages)| {
            let mut task = task(*tid, 0);
            task.balancing = pages
                .map(|pages| BalancingSample { migrated_pages: Some(pages), ..BalancingSample::default() });
            task
        });
        let mut process = process(7, 0);
        process.tasks = Some(tasks.collect());
        at(seconds, process)
    };
    before.processes = vec![with(10, &[(7, Some(100)), (8, Some(50)), (9, None)])];
    now.processes = vec![with(11, &[(7, Some(130)), (8, Some(40)), (9, Some(3)), (10, Some(2))])];
    let delta = Delta::between(&before, &now).unwrap();
    let moved: Vec<Option<u64>> = delta.processes[0].tasks.iter().map(|task| task.migrated_pages).collect();
    assert_eq!(moved, [Some(30), None, None, Some(2)]);
    assert_eq!(delta.processes[0].migrated_pages, Some(32));
    Arc::make_mut(&mut before.processes[0]).tasks = None;
    assert_eq!(Delta::between(&before, &now).unwrap().processes[0].migrated_pages, None);
}

#[test]
fn interrupts_are_counted_by_the_node_of_the_cpu_against_that_of_the_device() {
    let device = |counts: [u64; 3]| InterruptSample {
        device: "net:eth0".to_owned(),
        node: Some(NodeId::new(1)),
        lines: vec![30],
        by_cpu: (0..).zip(counts).map(|(cpu, count)| (CpuId::new(cpu), count)).collect(),
        ..InterruptSample::default()
    };
    let (mut before, mut now) = (sample(10), sample(11));
    before.interrupts = vec![device([10, 0, 100])];
    now.interrupts = vec![device([30, 10, 170])];
    let change = &Delta::between(&before, &now).unwrap().interrupts[0];
    assert_eq!((change.count, change.by_node[&NodeId::new(0)]), (100, 30));
    assert!((change.wrong_share().unwrap() - 0.3).abs() < 1e-9);
    now.interrupts[0].node = None;
    assert_eq!(Delta::between(&before, &now).unwrap().interrupts[0].wrong_share(), None);
    now.interrupts = vec![device([9, 10, 170])];
    assert!(
        Delta::between(&before, &now).unwrap().interrupts.is_empty(),
        "a count that went back says nothing"
    );
}

#[test]
fn pressure_is_the_share_of_the_window() {
    let text = |total: u64| {
        pressure::parse(&format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n")).value
    };
    let (mut before, mut now) = (sample(10), sample(12));
    before.pressure.memory = Some(text(1_000_000));
    now.pressure.memory = Some(text(1_500_000));
    let delta = Delta::between(&before, &now).unwrap();
    assert_eq!(
        (delta.pressure.memory_some, delta.pressure.memory_full, delta.pressure.cpu_some),
        (Some(0.25), None, None)
    );
}

proptest! {
    #[test]
    fn no_change_is_negative_and_no_share_is_above_one(
        before in prop::collection::vec(any::<[u64; 8]>(), 0..4),
        now in prop::collection::vec(any::<[u64; 8]>(), 0..4),
        ticks in any::<[u64; 2]>(),
    ) {
        let cpus = |all: &[[u64; 8]]| (0..).zip(all).map(|(cpu, t)| (CpuId::new(cpu), CpuTimes {
            user: t[0], nice: t[1], system: t[2], idle: t[3], iowait: Some(t[4]), irq: Some(t[5]),
            softirq: Some(t[6]), steal: Some(t[7]),
        })).collect::<Vec<_>>();
        let (mut first, mut second) = (sample(3), sample(4));
        (first.cpus, second.cpus) = (cpus(&before), cpus(&now));
        (first.processes, second.processes) = (vec![at(3, process(7, ticks[0]))], vec![at(4, process(7, ticks[1]))]);
        let delta = Delta::between(&first, &second).unwrap();
        for load in delta.nodes.iter().filter_map(|node| node.cpus).chain(delta.cpus) {
            prop_assert!((0.0..=1.000001).contains(&load.busy), "{load:?}");
            prop_assert!((0.0..=1.000001).contains(&load.user), "{load:?}");
        }
    }
}
