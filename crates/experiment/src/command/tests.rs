use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::Ordering;

use super::*;
use crate::executor::{NoWitness, Residency, Surroundings};
use crate::experiment::{Event, Experiment};
use crate::fidelity::{Fidelity, Look};
use crate::study::{End, Plan, Rounds, Treatment};
use crate::verdict::{Analysis, Verdict};
use nodewise_machine::conditions::Conditions;
use nodewise_machine::{Bytes, CpuId, CpuSet, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_stats::Direction;
use nodewise_syscall::clock::Monotonic;

/// Runs words under one treatment after another, once each.
fn runs(words: &[&str], metric: Metric, treatments: Vec<Treatment>, limit: Option<Duration>) -> Vec<Run> {
    let plan = Plan::new(treatments, metric, Rounds::DEFAULT, 1).unwrap();
    let mut program = Program::new(words).unwrap();
    program.time_limit = limit;
    let (mut witness, interrupt) = (NoWitness, AtomicBool::new(false));
    let mut executor = CommandExecutor::new(program, &plan, &mut witness, &interrupt);
    plan.arms().iter().map(|arm| executor.run(arm)).collect()
}

fn run_under(words: &[&str], metric: Metric, placement: Placement) -> Run {
    runs(words, metric, vec![Treatment::new("it", placement)], None).remove(0)
}

fn run(words: &[&str]) -> Run {
    run_under(words, Metric::Wall, Placement::DEFAULT)
}

fn number(pattern: &str) -> Metric {
    Metric::Printed(Pattern::new(pattern).unwrap(), Direction::HigherIsBetter)
}

#[test]
fn a_run_has_a_time_and_a_usage() {
    let run = run(&["true"]);
    assert_eq!(run.ending, Ending::Done);
    assert!(run.wall.unwrap() > Duration::ZERO);
    assert!(run.usage.unwrap().max_rss > Bytes::new(0));
    assert_eq!(run.complaint, None);
}

#[test]
fn a_failure_is_kept_with_what_the_program_said() {
    let run = run(&["sh", "-c", "echo lost; echo no memory >&2; exit 3"]);
    assert_eq!(run.ending, Ending::Code(3));
    assert_eq!(run.complaint.as_deref(), Some("no memory"));
}

#[test]
fn a_signal_is_told_from_a_code() {
    assert_eq!(run(&["sh", "-c", "kill -9 $$"]).ending, Ending::Signal(9));
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    let run = run(&["/no/such/\u{1b}program"]);
    let expected = "/no/such/\\x1bprogram: no such file or directory";
    assert_eq!(run.ending, Ending::NotStarted(expected.to_owned()));
    assert_eq!((run.wall, run.usage), (None, None));
    assert_eq!(Program::new([""; 0]), None);
}

#[test]
fn a_placement_that_cannot_be_applied_is_named_by_its_call() {
    let cpus = CpuSet::from_iter([CpuId::new(200_000)]);
    let placement = Placement::on_cpus(cpus);
    let run = run_under(&["true"], Metric::Wall, placement.clone());
    let Ending::NotStarted(why) = run.ending else { panic!("{:?}", run.ending) };
    assert!(why.starts_with("sched_setaffinity("), "{why}");
    assert_eq!(CommandExecutor::check(&placement).unwrap_err().to_string(), why);
}

#[test]
fn a_number_is_found_on_either_output() {
    let rate = || number("rate: ([0-9.]+)");
    let from = |script: &str| run_under(&["sh", "-c", script], rate(), Placement::DEFAULT);
    assert_eq!(from("echo rate: 4.5; echo rate: 9 >&2").printed, Some(4.5));
    assert_eq!(from("echo rate: 9 >&2").printed, Some(9.0));
    let none = from("echo nothing");
    assert!(matches!(none.ending, Ending::NoMetric(MetricError::NoMatch { .. })), "{:?}", none.ending);
    assert_eq!(from("echo rate: 1; exit 1").ending, Ending::Code(1), "a failed program has no number");
}

#[test]
fn other_numbers_are_kept_and_one_that_is_not_there_fails_nothing() {
    let treatments = vec![Treatment::new("it", Placement::DEFAULT)];
    let also = vec![number("latency ([0-9.]+)"), number("never ([0-9.]+)"), Metric::CpuTime];
    let plan = Plan::new(treatments, number("tps ([0-9.]+)"), Rounds::DEFAULT, 1).unwrap().with_also(also);
    let program = Program::new(["sh", "-c", "echo tps 7; echo latency 0.5"]).unwrap();
    let (mut witness, interrupt) = (NoWitness, AtomicBool::new(false));
    let run = CommandExecutor::new(program, &plan, &mut witness, &interrupt).run(&plan.arms()[0]);
    assert_eq!((run.ending.clone(), run.printed), (Ending::Done, Some(7.0)));
    assert_eq!(run.also_printed, BTreeMap::from([("latency ([0-9.]+)".to_owned(), 0.5)]));
    let also: Vec<Option<f64>> = plan.also.iter().map(|metric| run.also(metric)).collect();
    assert_eq!((also[0], also[1]), (Some(0.5), None));
}

#[test]
fn standard_input_is_empty() {
    assert_eq!(run(&["sh", "-c", "! read line"]).ending, Ending::Done);
}

#[test]
fn a_run_sees_the_cpus_of_its_placement() {
    let own = nodewise_syscall::affinity::cpus(nodewise_syscall::Task::CURRENT).unwrap();
    let one = CpuSet::from_iter(own.first());
    let run = run_under(&["nproc"], number("([0-9]+)"), Placement::on_cpus(one));
    assert_eq!(run.printed, Some(1.0), "{:?}", run.ending);
}

// The whole path with real processes, and a number that no load on the machine changes.
#[test]
fn a_placement_on_one_cpu_is_found_to_have_fewer_of_them() {
    let own = nodewise_syscall::affinity::cpus(nodewise_syscall::Task::CURRENT).unwrap();
    let one = Placement::on_cpus(CpuSet::from_iter(own.first()));
    let treatments = [Treatment::new("default", Placement::DEFAULT), Treatment::new("one CPU", one)];
    let plan = Plan::new(treatments, number("([0-9]+)"), Rounds::Exactly(6), 7).unwrap();
    let (mut witness, interrupt) = (NoWitness, AtomicBool::new(false));
    let program = Program::new(["nproc"]).unwrap();
    let mut executor = CommandExecutor::new(program, &plan, &mut witness, &interrupt);
    let mut observer = |_: Event<'_>| {};
    let mut experiment = Experiment {
        executor: &mut executor,
        clock: &Monotonic::start(),
        observer: &mut observer,
        interrupt: &interrupt,
    };
    let study = experiment.conduct(plan, Conditions::default());
    assert_eq!((study.end.clone(), study.records.len()), (End::Completed, 21));
    let analysis = Analysis::from_study(&study);
    let effect = analysis.arms[1].effect.unwrap();
    assert!((effect.ratio * own.len() as f64 - 1.0).abs() < 1e-9, "{effect:?}");
    let expected = if own.len() > 1 { Verdict::Worse } else { Verdict::NoDifference };
    assert_eq!(analysis.arms[1].verdict, expected);
}

#[test]
fn a_run_has_the_policy_of_its_placement() {
    // Interleave over the nodes this process may use is allowed on every machine with NUMA; where the
    // kernel has none, or a filter forbids the call, the message names it.
    let nodes = nodewise_syscall::mempolicy::allowed_nodes().unwrap_or(NodeSet::from([0]));
    let placement =
        Placement { policy: Some(MemPolicy::new(PolicyMode::Interleave, nodes)), ..Placement::DEFAULT };
    let script = "grep -c interleave /proc/self/numa_maps || echo 0";
    let run = run_under(&["sh", "-c", script], number("([0-9]+)"), placement);
    match run.ending {
        Ending::Done => assert!(run.printed > Some(0.0), "no mapping is interleaved: {:?}", run.printed),
        Ending::NotStarted(why) => assert!(why.starts_with("set_mempolicy("), "{why}"),
        // No numa_maps to look at: the number 0 was printed, which has no ratio.
        Ending::NoMetric(_) => assert!(!fs::exists("/proc/self/numa_maps").unwrap()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_environment_has_the_same_size_in_every_arm() {
    let with = |pairs: &[(&str, &str)]| Treatment {
        environment: pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..Treatment::new("it", Placement::DEFAULT)
    };
    let treatments = vec![with(&[]), with(&[("OMP_NUM_THREADS", "16")]), with(&[("A", "b"), ("C", "")])];
    // Of each variable its text, a NUL and a pointer; `env -0` writes the texts and the NULs.
    let script = "t=$(env -0 | wc -c); n=$(env -0 | tr -dc '\\0' | wc -c); echo $((t + 8 * n))";
    let runs = runs(&["sh", "-c", script], number("([0-9]+)"), treatments, None);
    let sizes: Vec<Option<f64>> = runs.iter().map(|run| run.printed).collect();
    assert!(sizes[0].is_some());
    assert_eq!(sizes, vec![sizes[0]; 3]);
}

/// Whether a process is there and not only waits to be waited for.
fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Runs a script that writes the number of a process it leaves behind to the file `$0`, and waits
/// until that process has ended.
fn leaves_nothing_behind(script: &str, limit: Option<Duration>) -> Run {
    let file = tempfile::NamedTempFile::new().unwrap();
    let words = ["sh", "-c", script, file.path().to_str().unwrap()];
    let run = runs(&words, Metric::Wall, vec![Treatment::new("it", Placement::DEFAULT)], limit).remove(0);
    let pid = fs::read_to_string(file.path()).unwrap();
    assert!(!pid.trim().is_empty(), "the script got as far as writing a number");
    // The kernel ends it soon after the signal; the test hangs if it does not.
    while lives(pid.trim()) {
        std::thread::yield_now();
    }
    run
}

#[test]
fn a_time_limit_ends_all_that_was_started() {
    // The limit is reached in any case; it only has to leave the time to write a number.
    let run = leaves_nothing_behind("sleep 1000 & echo $! > $0; wait", Some(Duration::from_millis(500)));
    assert_eq!(run.ending, Ending::TimedOut(Duration::from_millis(500)));
    assert!(run.usage.is_some());
}

#[test]
fn a_program_that_ignores_the_first_signal_is_ended_too() {
    let script = "trap '' TERM; echo $$ > $0; while :; do sleep 1000; done";
    let run = leaves_nothing_behind(script, Some(Duration::from_millis(500)));
    assert_eq!(run.ending, Ending::TimedOut(Duration::from_millis(500)));
}

#[test]
fn what_a_program_leaves_running_is_ended_after_it() {
    let run = leaves_nothing_behind("sleep 1000 & echo $! > $0", None);
    assert_eq!(run.ending, Ending::Done);
}

/// Returns what is seen at a look: more pages, and another CPU.
fn seen_at(look: u64) -> Look {
    let by_node = BTreeMap::from([(NodeId::new(0), Bytes::from_mib(look))]);
    let threads = vec![(CpuSet::from([look as u32 + 100_000]), 1)];
    Look { residency: Some(Residency { by_node }), threads, ..Look::default() }
}

/// Sees more pages at every look and interrupts at the fifth.
struct Growing<'a> {
    looks: u64,
    process: u32,
    interrupt: &'a AtomicBool,
}

impl Witness for Growing<'_> {
    fn before(&mut self) {
        assert_eq!(self.looks, 0, "called before the program runs");
    }

    fn look(&mut self, process: u32) -> Look {
        self.looks += 1;
        self.process = process;
        self.interrupt.store(self.looks == 5, Ordering::Relaxed);
        seen_at(self.looks)
    }

    fn after(&mut self) -> Surroundings {
        Surroundings { steal_share: Some(0.25), load: Some(self.looks as f64) }
    }
}

#[test]
fn an_interrupt_ends_the_run_and_what_was_seen_is_kept() {
    let interrupt = AtomicBool::new(false);
    let mut witness = Growing { looks: 0, process: 0, interrupt: &interrupt };
    let own = nodewise_syscall::affinity::cpus(nodewise_syscall::Task::CURRENT).unwrap();
    let treatments = [Treatment::new("it", Placement::on_cpus(own))];
    let plan = Plan::new(treatments, Metric::Wall, Rounds::DEFAULT, 1).unwrap();
    let program = Program::new(["sleep", "1000"]).unwrap();
    let run = CommandExecutor::new(program, &plan, &mut witness, &interrupt).run(&plan.arms()[0]);
    assert_eq!(run.ending, Ending::Interrupted);
    let fidelity = Fidelity::from_look(&seen_at(5), &plan.arms()[0].placement);
    assert_eq!(run.fidelity, fidelity, "the last look tells what was in force");
    assert_eq!(run.residency.unwrap().total(), Bytes::from_mib(5));
    assert_eq!(run.surroundings, Surroundings { steal_share: Some(0.25), load: Some(5.0) });
    assert!(witness.process > 1);
    assert!(!lives(&witness.process.to_string()));
}
