use std::cell::Cell;

use super::*;
use crate::evidence::{CpuTime, Evidence, Repeats};
use crate::executor::{Run, Unprepared};
use crate::mock::{MockClock, conduct, observe, plan, took};
use crate::study::HangLimit;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

/// The arms in the order in which they ran, blocks separated by spaces; `A` and `a` are the two runs
/// of the baseline.
fn order_of(study: &Study) -> String {
    let mut text = String::new();
    let mut block = None;
    for record in &study.records {
        if block.is_some_and(|block| block != record.block) {
            text.push(' ');
        }
        block = Some(record.block);
        match (record.slot.arm.number(), record.slot.replicate) {
            (0, 0) => text.push('A'),
            (0, _) => text.push('a'),
            (arm, _) => text.push_str(&arm.to_string()),
        }
    }
    text
}

#[test]
fn a_warm_up_comes_first_and_then_every_block_in_its_own_order() {
    let study = conduct(plan(3, Rounds::Exactly(3), 1), |_, _| took(1.0));
    assert_eq!(order_of(&study), "Aa123 21a3A 312Aa 12A3a");
    assert_eq!(study.end, End::Completed);
    assert_eq!(study.rounds, Some(3));
    assert_eq!(study.took, Duration::from_secs(20));
    assert_eq!(study.records[7].began, Duration::from_secs(7));
    assert_eq!((study.records[7].block, study.records[7].place), (Block::Measured(1), 2));
    assert_eq!(study.blocks_begun(), 3);
}

#[test]
fn values_are_paired_by_block_without_the_warm_up() {
    let study = conduct(plan(1, Rounds::Exactly(2), 1), |_, at| took(1.0 + at as f64));
    let of = |arm, replicate| study.values(ArmId::new(arm), replicate).into_values().collect::<Vec<_>>();
    let (first, second, other) = (of(0, 0), of(0, 1), of(1, 0));
    assert_eq!([first.len(), second.len(), other.len()], [2, 2, 2]);
    let mut all = [first, second, other].concat();
    all.sort_by(f64::total_cmp);
    assert_eq!(all, [4.0, 5.0, 6.0, 7.0, 8.0, 9.0], "1 to 3 are the warm-up");
}

#[test]
fn an_arm_that_fails_in_two_blocks_is_given_up_and_the_rest_keeps_its_order() {
    let mut told = Vec::new();
    let study = observe(
        plan(3, Rounds::Exactly(3), 1),
        &AtomicBool::new(false),
        |arm, _| {
            if arm.id.number() == 2 {
                Run { complaint: Some("no memory".to_owned()), ..Run::ended(Ending::Signal(9)) }
            } else {
                took(1.0)
            }
        },
        |event| {
            if let Event::Dropped(dropped) = event {
                told.push(dropped.clone());
            }
        },
    );
    assert_eq!(order_of(&study), "Aa123 21a3A 31Aa 1A3a");
    assert_eq!(study.dropped, told);
    assert_eq!(
        study.dropped,
        [Dropped {
            arm: ArmId::new(2),
            block: Block::Measured(1),
            ending: Ending::Signal(9),
            complaint: Some("no memory".to_owned()),
        }]
    );
    assert_eq!(study.end, End::Completed);
}

#[test]
fn one_failure_is_forgiven() {
    let study = conduct(plan(2, Rounds::Exactly(4), 1), |arm, at| {
        if arm.id.number() == 1 && at < 4 { Run::ended(Ending::Code(1)) } else { took(1.0) }
    });
    assert_eq!(study.dropped, []);
    assert_eq!(study.values(ArmId::new(1), 0).len(), 4);
}

#[test]
fn a_program_that_does_not_work_ends_the_study_after_two_runs() {
    let ending = Ending::NotStarted("no such file".to_owned());
    let study = conduct(plan(5, Rounds::Exactly(10), 1), |_, _| Run::ended(ending.clone()));
    assert_eq!(order_of(&study), "Aa");
    let End::BaselineFailed(dropped) = study.end else { panic!("{:?}", study.end) };
    assert_eq!((dropped.arm, dropped.ending), (ArmId::BASELINE, ending));
    assert_eq!(study.rounds, None);
}

#[test]
fn when_every_placement_fails_there_is_nothing_to_go_on_with() {
    let study = conduct(plan(2, Rounds::Exactly(10), 1), |arm, _| {
        if arm.id.is_baseline() { took(1.0) } else { Run::ended(Ending::TimedOut(Duration::from_secs(1))) }
    });
    assert_eq!(study.end, End::AllDropped);
    assert_eq!(study.blocks_begun(), 1);
}

#[test]
fn an_interrupt_between_runs_keeps_the_results_so_far() {
    let interrupt = AtomicBool::new(false);
    let study = observe(
        plan(3, Rounds::Exactly(10), 1),
        &interrupt,
        |_, at| {
            if at == 11 {
                interrupt.store(true, Ordering::Relaxed);
            }
            took(1.0)
        },
        |_| {},
    );
    assert_eq!(study.end, End::Interrupted);
    assert_eq!(order_of(&study), "Aa123 21a3A 31");
    assert!(study.records.iter().all(|record| record.run.ending.is_done()));
}

#[test]
fn an_interrupt_inside_a_run_counts_against_nobody() {
    let study = conduct(plan(3, Rounds::Exactly(10), 1), |_, at| {
        if at == 6 { Run::ended(Ending::Interrupted) } else { took(1.0) }
    });
    assert_eq!(study.end, End::Interrupted);
    assert_eq!(order_of(&study), "Aa123 21");
    assert_eq!(study.dropped, []);
    let analysis = crate::verdict::Analysis::with_resamples(&study, 100);
    assert!(analysis.arms.iter().all(|arm| arm.failures == 0));
}

#[test]
fn a_budget_is_divided_by_the_time_of_the_warm_up() {
    // A block of five runs takes 5 s; 32 s leave 27 for five more.
    let budget = Duration::from_secs(32);
    let mut told = None;
    let study = observe(
        plan(3, Rounds::Within { budget, at_most: 100 }, 1),
        &AtomicBool::new(false),
        |_, _| took(1.0),
        |event| {
            if let Event::Fixed { rounds, needed, per_block } = event {
                told = Some((rounds, needed, per_block));
            }
        },
    );
    assert_eq!(told, Some((5, 7, Duration::from_secs(5))), "5 fit and 7 are needed, which is told");
    assert_eq!((study.rounds, study.blocks_begun()), (Some(5), 5));
    assert_eq!(study.end, End::Completed);
    assert!(study.took <= budget);
}

#[test]
fn a_block_that_does_not_fit_into_the_budget_is_not_begun() {
    let budget = Duration::from_secs(60);
    let study = conduct(plan(3, Rounds::Within { budget, at_most: 100 }, 1), |_, at| {
        took(if at < 5 { 0.1 } else { 4.0 })
    });
    assert_eq!((study.blocks_begun(), study.end), (2, End::BudgetSpent));
    assert!(study.took <= budget);
}

#[test]
fn a_budget_is_not_exceeded_by_more_than_a_run_when_runs_become_slower() {
    let budget = Duration::from_secs(60);
    let study = conduct(plan(3, Rounds::Within { budget, at_most: 100 }, 1), |_, at| {
        took(if at < 6 { 0.1 } else { 25.0 })
    });
    assert_eq!(study.end, End::BudgetSpent);
    assert_eq!(study.records.len(), 9, "the third run of 25 s is the last that begins before 60 s are over");
}

/// The end of a study of three arms beside the baseline that has this long, and how many runs it took.
fn within(seconds: u64, play: impl FnMut(&Arm, usize) -> Run) -> (Study, usize) {
    let budget = Duration::from_secs(seconds);
    let study = conduct(plan(3, Rounds::Within { budget, at_most: 100 }, 1), play);
    let runs = study.records.len();
    (study, runs)
}

#[test]
fn a_budget_without_room_for_a_round_ends_the_study_as_soon_as_a_run_shows_it() {
    let check = |seconds, runs, round: u64| {
        let (study, made) = within(seconds, |_, _| took(4.0));
        let round = Some(Duration::from_secs(round));
        let budget = Duration::from_secs(seconds);
        assert_eq!(study.end, End::BudgetTooShort(TooShort { budget, round }), "{seconds} s");
        assert_eq!((made, study.blocks_begun()), (runs, 0), "{seconds} s");
    };
    // A round takes 20 s, and the warm-up as long.
    check(5, 1, 20);
    check(19, 1, 20);
    check(20, 2, 20);
    check(39, 2, 20);
    let (study, _) = within(40, |_, _| took(4.0));
    assert_eq!((study.blocks_begun(), study.end), (1, End::Completed));
}

#[test]
fn a_budget_that_is_too_short_is_said_before_a_spoilt_run_is_repeated() {
    let budget = Duration::from_secs(3);
    let plan = plan(3, Rounds::Within { budget, at_most: 9 }, 1).with_repeats(Some(Repeats::DEFAULT));
    let study = conduct(plan, |_, _| beside(0.5));
    assert!(matches!(study.end, End::BudgetTooShort(_)), "{:?}", study.end);
    assert_eq!(study.records.len(), 1);
}

#[test]
fn a_first_run_that_is_slow_for_once_does_not_end_a_study() {
    let (study, _) = within(30, |_, at| took(if at == 0 { 5.0 } else { 1.0 }));
    assert_eq!(study.end, End::Completed);
    assert!(study.blocks_begun() >= 1 && study.took <= Duration::from_secs(30));
}

#[test]
fn preparations_count_against_the_budget() {
    let budget = Duration::from_secs(5);
    let study = prepared_within(Rounds::Within { budget, at_most: 9 }, |_| Ok(()));
    // Each run takes 1 s and its preparation 10.
    let round = Some(Duration::from_secs(33));
    assert_eq!(study.end, End::BudgetTooShort(TooShort { budget, round }));
    assert_eq!(study.records.len(), 1);
}

#[test]
fn a_race_goes_on_as_long_as_there_is_time() {
    // The warm-up is slow, and what comes after it is not: 34 s are left for rounds of 2.5 s.
    let budget = Duration::from_secs(60);
    let plan = plan(3, Rounds::Within { budget, at_most: 100 }, 1).with_race(crate::race::Rules::DEFAULT);
    let noise = [0.3, 0.7, 0.35, 0.6, 0.5, 0.8, 0.4];
    let study = conduct(plan, |_, at| took(if at < 5 { 5.0 } else { noise[at * at % 7] }));
    assert_eq!(study.end, End::BudgetSpent, "{} blocks in {:?}", study.blocks_begun(), study.took);
    assert!(study.took > Duration::from_secs(55) && study.took <= budget, "{:?}", study.took);
}

/// Plays runs that hang for an hour unless they are ended.
struct Hanging {
    clock: MockClock,
    limit: Option<Duration>,
    limits: Vec<Option<Duration>>,
    hangs: fn(usize) -> bool,
}

impl Executor for Hanging {
    fn limit(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }
    fn run(&mut self, _arm: &Arm) -> Run {
        let hangs = (self.hangs)(self.limits.len());
        self.limits.push(self.limit);
        let time = Duration::from_secs(if hangs { 3600 } else { 3 });
        let (time, ending) = match self.limit {
            Some(limit) if limit < time => (limit, Ending::TimedOut(limit)),
            _ => (time, Ending::Done),
        };
        self.clock.pass(time);
        Run { wall: Some(time), ..Run::ended(ending) }
    }
}

fn hanging(plan: Plan, hangs: fn(usize) -> bool) -> (Study, Vec<Option<Duration>>) {
    let clock = MockClock::default();
    let mut executor = Hanging { clock: clock.clone(), limit: None, limits: Vec::new(), hangs };
    let (mut observer, interrupt) = (|_: Event<'_>| {}, AtomicBool::new(false));
    let study =
        Experiment { executor: &mut executor, clock: &clock, observer: &mut observer, interrupt: &interrupt }
            .conduct(plan, Conditions::default());
    (study, executor.limits)
}

#[test]
fn a_run_that_takes_twenty_times_as_long_as_the_warm_up_is_ended_as_failed() {
    let plan = plan(1, Rounds::Exactly(3), 1).with_hang_limit(HangLimit::DEFAULT);
    let (study, limits) = hanging(plan, |at| at == 5);
    let minute = Duration::from_secs(60);
    assert_eq!((limits[0], limits[1]), (None, Some(minute)), "nothing is known of the first");
    assert_eq!(study.records[5].run.ending, Ending::TimedOut(minute));
    assert_eq!((study.blocks_begun(), study.end), (3, End::Completed), "once is forgiven");
    let quick = HangLimit::DEFAULT.after(Duration::from_millis(1));
    assert_eq!(quick, Duration::from_secs(10));
}

#[test]
fn a_run_that_outlives_the_budget_is_ended_and_counts_against_nobody() {
    let budget = Duration::from_secs(30);
    let timed = |rounds| plan(1, rounds, 1).with_hang_limit(HangLimit::DEFAULT);
    let within = timed(Rounds::Within { budget, at_most: 9 });
    let (study, limits) = hanging(within.clone(), |at| at == 0);
    assert_eq!((limits, study.took), (vec![Some(budget)], budget));
    assert_eq!(study.end, End::BudgetTooShort(TooShort { budget, round: None }));
    assert!(study.records.iter().all(|record| record.run.ending == Ending::Interrupted));
    // Later on it may take as long as a run takes beyond what is left.
    let (study, _) = hanging(within, |at| at == 4);
    assert_eq!((study.end, study.took), (End::BudgetSpent, Duration::from_secs(33)));
    assert_eq!(study.dropped, []);
}

#[test]
fn two_failures_of_many_runs_do_not_end_a_study() {
    let study = conduct(plan(2, Rounds::Exactly(30), 1), |_, at| {
        if at == 40 || at == 41 || at == 90 { Run::ended(Ending::Signal(11)) } else { took(1.0) }
    });
    assert_eq!((study.blocks_begun(), study.end), (30, End::Completed));
    assert_eq!(study.dropped, []);
    let study = conduct(plan(2, Rounds::Exactly(30), 1), |_, at| {
        if at >= 40 { Run::ended(Ending::Signal(11)) } else { took(1.0) }
    });
    assert!(matches!(study.end, End::BaselineFailed(_) | End::AllDropped), "{:?}", study.end);
}

#[test]
fn a_budget_has_an_upper_limit_of_blocks_and_none_for_runs_without_a_duration() {
    let within = |at_most| Rounds::Within { budget: Duration::from_secs(1000), at_most };
    assert_eq!(conduct(plan(1, within(12), 1), |_, _| took(0.001)).blocks_begun(), 12);
    assert_eq!(conduct(plan(1, within(30), 1), |_, _| took(0.0)).blocks_begun(), 30);
}

#[test]
fn observers_are_told_before_and_after_each_run_and_never_inside_one() {
    let inside = Cell::new(false);
    let mut begun = Vec::new();
    let mut ended = 0;
    let study = observe(
        plan(2, Rounds::Exactly(2), 3),
        &AtomicBool::new(false),
        |_, _| {
            inside.set(true);
            let run = took(1.0);
            inside.set(false);
            run
        },
        |event| {
            assert!(!inside.get());
            match event {
                Event::Begins { number, .. } => begun.push(number),
                Event::Ended(_) => ended += 1,
                Event::Fixed { .. } | Event::Dropped(_) | Event::Out(_) | Event::Crossed(_) => {}
            }
        },
    );
    assert_eq!(begun, (1..=12).collect::<Vec<u32>>());
    assert_eq!(ended, study.records.len());
}

proptest! {
    #[test]
    fn a_seed_repeats_a_study_and_a_longer_one_begins_like_a_shorter(
        seed in any::<u64>(), others in 0usize..8, rounds in 1u32..8,
    ) {
        let order = |rounds| order_of(&conduct(plan(others, Rounds::Exactly(rounds), seed), |_, _| took(1.0)));
        let short = order(rounds);
        prop_assert_eq!(&order(rounds), &short);
        let long = order(rounds + 2);
        prop_assert!(long.starts_with(&short));
    }

    #[test]
    fn whatever_fails_every_run_is_kept_and_no_given_up_arm_runs_again(
        seed in any::<u64>(), others in 1usize..6, endings in proptest::collection::vec(0u8..8, 60),
    ) {
        let mut runs = 0;
        let study = conduct(plan(others, Rounds::Exactly(6), seed), |_, at| {
            runs += 1;
            match endings[at] {
                0 => Run::ended(Ending::Code(1)),
                1 => Run::ended(Ending::Signal(11)),
                _ => took(0.5),
            }
        });
        prop_assert_eq!(study.records.len(), runs);
        for dropped in &study.dropped {
            let last = study.records.iter().rfind(|record| record.slot.arm == dropped.arm).unwrap();
            prop_assert_eq!(last.block, dropped.block);
        }
        let analysis = crate::verdict::Analysis::with_resamples(&study, 50);
        prop_assert_eq!(analysis.arms.len(), others + 1);
    }
}

/// A run of a second on two CPUs, while others used this share of them.
fn beside(others: f64) -> Run {
    let cpu = CpuTime {
        all: Duration::from_secs(2),
        busy: Duration::from_secs_f64(1.0 + 2.0 * others),
        stolen: None,
    };
    let evidence = Evidence { cpu: Some(cpu), own: Some(Duration::from_secs(1)), ..Evidence::default() };
    Run { evidence, ..took(1.0) }
}

#[test]
fn a_spoilt_run_is_set_aside_and_made_again() {
    let spoilt = [4, 5, 9];
    let plan = plan(1, Rounds::Exactly(3), 1).with_repeats(Some(Repeats::DEFAULT));
    let study = conduct(plan, |_, at| beside(if spoilt.contains(&at) { 0.3 } else { 0.02 }));
    let aside: Vec<usize> = (0..study.records.len()).filter(|at| study.records[*at].set_aside).collect();
    assert_eq!(aside, spoilt);
    assert_eq!(study.records.len(), 4 * 3 + spoilt.len());
    for at in spoilt {
        let (run, next) = (&study.records[at], &study.records[at + 1]);
        assert_eq!((run.block, run.slot, run.place), (next.block, next.slot, next.place));
    }
    for arm in [0, 1] {
        let counted = study.measured(ArmId::new(arm)).count();
        assert_eq!(counted, if arm == 0 { 6 } else { 3 }, "what is set aside does not count");
    }
    let (repeated, kept) = [0, 1]
        .map(|arm| study.spoilt(ArmId::new(arm)))
        .into_iter()
        .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    assert_eq!((repeated, kept), (3, 0));
}

#[test]
fn on_a_machine_that_is_never_quiet_repeats_end() {
    let plan = plan(1, Rounds::Exactly(20), 1).with_repeats(Some(Repeats::DEFAULT));
    let study = conduct(plan, |_, _| beside(0.5));
    assert_eq!(study.end, End::Completed);
    let aside = study.records.iter().filter(|record| record.set_aside).count();
    let counted = study.records.len() - aside;
    assert_eq!(counted, 21 * 3);
    assert!(aside >= counted / 5 && aside <= 2 + counted / 4, "{aside} of {counted}");
    assert!(study.spoilt(ArmId::new(1)).1 == 20, "those that count are known to be spoilt");
}

#[test]
fn without_the_wish_nothing_is_repeated_and_a_failure_never_is() {
    let never = conduct(plan(1, Rounds::Exactly(3), 1), |_, _| beside(0.9));
    assert_eq!((never.records.len(), never.spoilt(ArmId::BASELINE)), (12, (0, 0)));
    let plan = plan(2, Rounds::Exactly(3), 1).with_repeats(Some(Repeats::DEFAULT));
    let failing = conduct(plan, |arm, _| match arm.id.number() {
        1 => Run { ending: Ending::Code(1), ..beside(0.9) },
        _ => beside(0.0),
    });
    assert_eq!(failing.records.iter().filter(|record| record.set_aside).count(), 0);
}

/// Runs of a second each, and preparations of ten seconds.
struct Prepared<P> {
    clock: MockClock,
    prepared: usize,
    prepare: P,
}

impl<P: FnMut(usize) -> Result<(), Unprepared>> Executor for Prepared<P> {
    fn prepare(&mut self, _arm: &Arm) -> Result<(), Unprepared> {
        self.clock.pass(Duration::from_secs(10));
        self.prepared += 1;
        (self.prepare)(self.prepared)
    }

    fn run(&mut self, _arm: &Arm) -> Run {
        self.clock.pass(Duration::from_secs(1));
        took(1.0)
    }
}

/// A study of one arm beside the baseline whose preparations, numbered from 1, are played.
fn prepared(prepare: impl FnMut(usize) -> Result<(), Unprepared>) -> Study {
    prepared_within(Rounds::Exactly(2), prepare)
}

fn prepared_within(rounds: Rounds, prepare: impl FnMut(usize) -> Result<(), Unprepared>) -> Study {
    let clock = MockClock::default();
    let mut executor = Prepared { clock: clock.clone(), prepared: 0, prepare };
    let (mut observer, interrupt) = (|_: Event<'_>| {}, AtomicBool::new(false));
    Experiment { executor: &mut executor, clock: &clock, observer: &mut observer, interrupt: &interrupt }
        .conduct(plan(1, rounds, 1), Conditions::default())
}

#[test]
fn a_preparation_comes_before_every_run_and_is_part_of_none() {
    let mut calls = 0;
    let study = prepared(|_| {
        calls += 1;
        Ok(())
    });
    assert_eq!((study.end, study.records.len(), calls), (End::Completed, 9, 9));
    assert_eq!(study.took, Duration::from_secs(9 * 11));
    for (record, before) in study.records.iter().zip(0..) {
        assert_eq!(record.run.wall, Some(Duration::from_secs(1)));
        assert_eq!(record.began, Duration::from_secs(before * 11 + 10));
    }
}

#[test]
fn a_preparation_that_fails_ends_the_study_with_the_runs_before_it() {
    let failing = |ending: Ending| {
        let why = Unprepared { ending, complaint: Some("no disk\n".to_owned()) };
        let study = prepared(|number| if number == 8 { Err(why.clone()) } else { Ok(()) });
        assert_eq!(study.records.len(), 7, "the eighth run is not made");
        study.end
    };
    let End::PreparationFailed(why) = failing(Ending::Code(3)) else { panic!("it has failed") };
    assert_eq!(why.to_string(), "ended with exit code 3: no disk");
    assert_eq!(failing(Ending::Interrupted), End::Interrupted);
}
