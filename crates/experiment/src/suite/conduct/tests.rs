use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::*;
use crate::metric::Metric;
use crate::schedule::ArmId;
use crate::study::{Plan, Treatment};
use crate::suite::parse::parse;
use crate::suite::{Benchmark, Suite};
use nodewise_machine::placement::Placement;

/// A clock that the stage moves.
#[derive(Clone, Default)]
struct Hands(Rc<Cell<Duration>>);

impl Clock for Hands {
    fn now(&self) -> Duration {
        self.0.get()
    }
}

/// A stage that asks a function, and writes down what it was asked for.
struct Mock<F> {
    clock: Hands,
    log: RefCell<Vec<String>>,
    play: F,
}

impl<F: FnMut(&Case<'_>, &Arm, usize) -> Run> Stage for Mock<F> {
    fn prepare(&mut self, case: &Case<'_>) -> Result<(), String> {
        self.log.borrow_mut().push(format!("prepare {}", case.benchmark.name));
        if case.benchmark.name == "unprepared" { Err("no disk".to_owned()) } else { Ok(()) }
    }

    fn run(&mut self, case: &Case<'_>, arm: &Arm) -> Run {
        let at = self.log.borrow().len();
        let run = (self.play)(case, arm, at);
        self.log.borrow_mut().push(format!("{}/{} {}", case.benchmark.name, case.threads, arm.name));
        self.clock.0.set(self.clock.0.get() + run.wall.unwrap_or_default());
        run
    }
}

fn suite(names: &[&str]) -> Suite {
    let benchmarks: String = names
        .iter()
        .map(|name| format!("[[benchmark]]\nname = \"{name}\"\ncommand = \"x\"\nthreads = [2]\n"))
        .collect();
    parse(&format!("title = \"mock\"\n{benchmarks}")).unwrap()
}

fn arms(names: &[&str]) -> Vec<Arm> {
    let treatments = names.iter().map(|name| Treatment::new(*name, Placement::DEFAULT));
    Plan::new(treatments, Metric::Wall, Rounds::DEFAULT, 1).unwrap().arms().to_vec()
}

fn took(seconds: f64) -> Run {
    Run { wall: Some(Duration::from_secs_f64(seconds)), ..Run::ended(Ending::Done) }
}

/// Runs a suite with a function in place of its programs; what it left, and what was asked.
fn conduct(
    names: &[&str],
    placements: &[&str],
    rounds: Rounds,
    play: impl FnMut(&Case<'_>, &Arm, usize) -> Run,
) -> (Outcome, Vec<String>) {
    conduct_with(names, placements, rounds, &AtomicBool::new(false), play)
}

fn conduct_with(
    names: &[&str],
    placements: &[&str],
    rounds: Rounds,
    interrupt: &AtomicBool,
    play: impl FnMut(&Case<'_>, &Arm, usize) -> Run,
) -> (Outcome, Vec<String>) {
    let (suite, arms) = (suite(names), arms(placements));
    let cases = suite.cases(4);
    let clock = Hands::default();
    let mut stage = Mock { clock: clock.clone(), log: RefCell::default(), play };
    let agenda = Agenda { cases: &cases, arms: &arms, rounds, seed: 3 };
    let outcome =
        Conductor { stage: &mut stage, clock: &clock, observer: &mut |_| {}, interrupt }.conduct(&agenda);
    (outcome, stage.log.into_inner())
}

fn samples(outcome: &Outcome, case: usize, arm: usize) -> Vec<(u32, u8)> {
    outcome.cases[case].arms[arm].samples.iter().map(|sample| (sample.round, sample.replicate)).collect()
}

#[test]
fn every_round_runs_every_case_and_the_first_placement_twice() {
    let (outcome, log) = conduct(&["a", "b"], &["default", "all"], Rounds::Exactly(3), |_, _, _| took(1.0));
    assert_eq!((outcome.rounds, outcome.end), (3, End::Completed));
    assert_eq!(outcome.took, Duration::from_secs(4 * 2 * 3));
    let warm_up = [
        "prepare a",
        "a/2 default",
        "a/2 default",
        "a/2 all",
        "prepare b",
        "b/2 default",
        "b/2 default",
        "b/2 all",
    ];
    assert_eq!(log[..8], warm_up);
    for case in 0..2 {
        let mut twice = samples(&outcome, case, 0);
        twice.sort_unstable();
        assert_eq!(twice, [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]);
        assert_eq!(samples(&outcome, case, 1), [(1, 0), (2, 0), (3, 0)]);
    }
}

#[test]
fn the_runs_of_a_case_in_a_round_stand_together_in_a_drawn_order() {
    let (_, log) =
        conduct(&["a", "b", "c"], &["default", "x", "y"], Rounds::Exactly(20), |_, _, _| took(1.0));
    let measured: Vec<&[String]> = log[15..].chunks(4).collect();
    assert!(measured.iter().all(|runs| runs.iter().all(|run| run[..3] == runs[0][..3])), "{log:?}");
    let orders: std::collections::BTreeSet<&[String]> = measured.iter().copied().collect();
    assert!(orders.len() > 20, "{} orders in 60 rounds of a case", orders.len());
    let firsts: std::collections::BTreeSet<&str> =
        measured.chunks(3).map(|round| &round[0][0][..1]).collect();
    assert_eq!(firsts.len(), 3, "every case comes first in some round");
}

#[test]
fn what_fails_at_first_is_given_up_and_the_rest_goes_on() {
    let (outcome, log) = conduct(&["bad", "good"], &["default"], Rounds::Exactly(2), |case, _, _| {
        let complaint = Some("cc: no input files\n\n".to_owned());
        if case.benchmark.name == "bad" {
            Run { complaint, ..Run::ended(Ending::Code(1)) }
        } else {
            took(1.0)
        }
    });
    assert_eq!(
        outcome.cases[0].arms[0].failed.as_deref(),
        Some("ended with exit code 1: cc: no input files")
    );
    assert_eq!(log.iter().filter(|entry| entry.starts_with("bad/")).count(), 1);
    assert_eq!(samples(&outcome, 1, 0).len(), 4);
}

#[test]
fn one_failure_later_on_is_forgiven() {
    let fails = |times: usize| {
        let mut left = times;
        conduct(&["a"], &["default"], Rounds::Exactly(4), move |_, _, at| {
            if at > 4 && left > 0 {
                left -= 1;
                return Run::ended(Ending::Signal(9));
            }
            took(1.0)
        })
        .0
    };
    assert_eq!((fails(1).cases[0].arms[0].failed.as_deref(), samples(&fails(1), 0, 0).len()), (None, 7));
    assert!(fails(3).cases[0].arms[0].failed.is_some(), "three in a row are not");
}

#[test]
fn a_placement_that_does_not_work_leaves_the_others() {
    let (outcome, _) = conduct(&["a"], &["default", "bad"], Rounds::Exactly(2), |_, arm, _| {
        if arm.id == ArmId::BASELINE { took(1.0) } else { Run::ended(Ending::Code(1)) }
    });
    assert!(outcome.cases[0].arms[1].failed.is_some());
    assert_eq!(samples(&outcome, 0, 0).len(), 4);
}

#[test]
fn a_case_that_cannot_be_prepared_is_not_run() {
    let (outcome, log) = conduct(&["unprepared"], &["default"], Rounds::Exactly(2), |_, _, _| took(1.0));
    assert_eq!(log, ["prepare unprepared"]);
    assert_eq!(outcome.cases[0].arms[0].failed.as_deref(), Some("no disk"));
    assert_eq!((outcome.rounds, outcome.end), (0, End::Completed));
}

#[test]
fn the_time_decides_how_many_rounds_there_are() {
    let within = |seconds| Rounds::Within { budget: Duration::from_secs(seconds), at_most: 5 };
    // A round takes 2 s, the warm-up too.
    for (seconds, rounds, end) in [(1, 0, End::BudgetSpent), (7, 2, End::Completed), (100, 5, End::Completed)]
    {
        let (outcome, _) = conduct(&["a"], &["default"], within(seconds), |_, _, _| took(1.0));
        assert_eq!((outcome.rounds, outcome.end), (rounds, end), "{seconds} s");
    }
    // Rounds that take longer than the warm-up end it.
    let (outcome, _) =
        conduct(&["a"], &["default"], within(7), |_, _, at| took(if at > 2 { 4.0 } else { 1.0 }));
    assert_eq!((outcome.rounds, outcome.end), (1, End::BudgetSpent));
    // A warm-up that does not fit ends with the run in which the time was up.
    let (outcome, log) = conduct(&["a", "b"], &["default"], within(5), |_, _, _| took(4.0));
    assert_eq!((outcome.rounds, outcome.end), (0, End::BudgetSpent));
    assert_eq!(
        (log.iter().filter(|entry| entry.contains('/')).count(), outcome.took),
        (2, Duration::from_secs(8))
    );
}

#[test]
fn an_interrupt_keeps_what_there_is() {
    let interrupt = AtomicBool::new(false);
    let (outcome, _) = conduct_with(&["a", "b"], &["default"], Rounds::Exactly(9), &interrupt, |_, _, at| {
        if at == 9 {
            interrupt.store(true, Ordering::Relaxed);
            return Run::ended(Ending::Interrupted);
        }
        took(1.0)
    });
    assert_eq!((outcome.rounds, outcome.end), (1, End::Interrupted));
    let runs: usize = outcome.cases.iter().map(|case| case.arms[0].samples.len()).sum();
    assert_eq!(runs, 3);
    assert!(outcome.cases.iter().all(|case| case.arms[0].failed.is_none()));
}

#[test]
fn a_record_says_what_its_values_are() {
    let text = "title = \"t\"\n[[benchmark]]\nname = \"a\"\ncommand = \"x\"\nmetric = \"([0-9]+)\"\nunit = \"GB/s\"\nbetter = \"higher\"\nmemory-traffic = false\n";
    let suite = parse(text).unwrap();
    let cases = suite.cases(4);
    let arms = arms(&["default"]);
    let agenda = Agenda { cases: &cases, arms: &arms, rounds: Rounds::Exactly(1), seed: 1 };
    let record = &Course::new(&agenda, Duration::ZERO).outcome.cases[0];
    let Benchmark { name, .. } = &suite.benchmarks[0];
    assert_eq!((&record.benchmark, record.threads, record.unit.as_str()), (name, 4, "GB/s"));
    assert_eq!(record.direction, nodewise_stats::Direction::HigherIsBetter);
    assert!(!record.memory_traffic);
}
