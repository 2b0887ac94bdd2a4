use super::*;
use crate::executor::{Arm, Ending, Run};
use crate::fidelity::Fidelity;
use crate::metric::{Metric, Pattern};
use crate::mock::{conduct, plan, took};
use crate::race::Rules;
use crate::study::{Plan, Rounds, Study, Treatment};
use crate::synthetic::series::SECONDS;
use nodewise_machine::placement::Placement;
use nodewise_stats::random::Random;

/// A run's time from its arm and its number, with a little noise that is never the same twice.
fn near(seconds: f64, at: usize) -> Run {
    took(seconds * (1.0 + 1e-4 * ((at * 7919) % 97) as f64 / 97.0))
}

fn analyse(others: usize, rounds: u32, play: impl FnMut(&Arm, usize) -> Run) -> Analysis {
    Analysis::with_resamples(&conduct(plan(others, Rounds::Exactly(rounds), 5), play), 500)
}

pub(super) fn verdicts(analysis: &Analysis) -> Vec<&'static str> {
    let word = |arm: &ArmResult| match arm.verdict {
        Verdict::Baseline => "baseline",
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "same",
        Verdict::TooFewRounds { .. } => "too few",
        Verdict::Out(_) => "out",
        Verdict::NotAsAsked(_) => "not as asked",
        Verdict::Failed(_) => "failed",
    };
    analysis.arms.iter().map(word).collect()
}

/// The recorded series, each study from another place in it, in the order of the runs.
pub(super) fn recorded(seed: u64, at: usize) -> f64 {
    SECONDS[(seed as usize * 53 + at) % SECONDS.len()]
}

#[test]
fn better_and_worse_are_told_apart_and_the_best_is_advised() {
    let times = [1.0, 0.8, 1.3, 1.0, 0.6];
    let analysis = analyse(4, 10, |arm, at| near(times[arm.id.number() as usize], at));
    assert_eq!(verdicts(&analysis), ["baseline", "better", "worse", "same", "better"]);
    assert_eq!(analysis.advice, Advice::Use { best: ArmId::new(4), as_good: Vec::new() });
    let effect = analysis.arms[1].effect.unwrap();
    assert!(
        (effect.ratio - 0.8).abs() < 1e-3 && effect.interval.unwrap().contains(effect.ratio),
        "{effect:?}"
    );
    assert!((effect.p - 2.0 / 3f64.powi(10)).abs() < 1e-12, "one of three runs in each of ten blocks");
    assert!((effect.adjusted_p - 4.0 * effect.p).abs() < 1e-12, "four arms were compared");
    assert!(effect.is_shown);
    assert!(analysis.control.unwrap().noise < 1e-3);
}

#[test]
fn what_is_as_good_as_the_best_is_named() {
    let times = [1.0, 0.7, 0.7, 0.75];
    let analysis = analyse(3, 12, |arm, at| near(times[arm.id.number() as usize], at));
    let Advice::Use { best, as_good } = analysis.advice else { panic!("{:?}", analysis.advice) };
    let mut equal = vec![best];
    equal.extend(as_good);
    equal.sort_unstable();
    assert_eq!(equal, [ArmId::new(1), ArmId::new(2)]);
}

#[test]
fn a_higher_rate_is_better_when_higher_is_better() {
    let names = (0..3).map(|arm| Treatment::new(format!("arm {arm}"), Placement::DEFAULT));
    let metric = Metric::Printed(Pattern::new("([0-9.]+)").unwrap(), Direction::HigherIsBetter);
    let plan = Plan::new(names, metric, Rounds::Exactly(8), 3).unwrap();
    let rates = [10.0, 12.0, 9.0];
    let study = conduct(plan, |arm, at| Run {
        printed: Some(rates[arm.id.number() as usize] + 1e-4 * ((at * 31) % 17) as f64),
        ..took(1.0)
    });
    let analysis = Analysis::with_resamples(&study, 500);
    assert_eq!(verdicts(&analysis), ["baseline", "better", "worse"]);
    assert_eq!(analysis.advice, Advice::Use { best: ArmId::new(1), as_good: Vec::new() });
}

#[test]
fn a_certain_difference_below_one_percent_is_not_called_one() {
    let times = [1.0, 0.995];
    let analysis = analyse(1, 12, |arm, at| near(times[arm.id.number() as usize], at));
    assert_eq!(verdicts(&analysis), ["baseline", "same"]);
    let effect = analysis.arms[1].effect.unwrap();
    assert!(effect.adjusted_p < ALPHA && !effect.interval.unwrap().contains(1.0) && !effect.is_shown);
    let Advice::Keep { worse, smallest_detectable } = analysis.advice else {
        panic!("{:?}", analysis.advice)
    };
    assert!(worse.is_empty());
    assert!(
        smallest_detectable.is_some_and(|share| (0.01..0.011).contains(&share)),
        "{smallest_detectable:?}"
    );
}

#[test]
fn a_difference_within_the_noise_of_the_control_is_not_called_one() {
    // The baseline's two runs disagree by 20 % either way; the arm is 5 % faster than their mean.
    let mut baseline = 0;
    let analysis = analyse(1, 12, |arm, at| {
        if !arm.id.is_baseline() {
            return near(0.95, at);
        }
        baseline += 1;
        near(if (baseline / 2) % 2 == 0 { 1.1 } else { 0.9 } + 0.001 * (baseline % 5) as f64, at)
    });
    assert!(analysis.control.unwrap().noise > 0.05, "{:?}", analysis.control);
    assert_eq!(verdicts(&analysis), ["baseline", "same"]);
}

#[test]
fn drift_that_meets_all_arms_alike_cancels() {
    // The machine becomes three times slower during the study.
    let times = [1.0, 0.9];
    let analysis =
        analyse(1, 20, |arm, at| near(times[arm.id.number() as usize] * (1.0 + at as f64 / 30.0), at));
    let effect = analysis.arms[1].effect.unwrap();
    assert!(effect.interval.unwrap().contains(0.9), "{effect:?}");
    assert_eq!(verdicts(&analysis), ["baseline", "better"]);
}

#[test]
fn too_few_rounds_give_no_verdict_however_large_the_difference() {
    let times = [1.0, 0.1, 5.0];
    for (rounds, expected) in [(6, "too few"), (7, "better")] {
        let analysis = analyse(2, rounds, |arm, at| near(times[arm.id.number() as usize], at));
        assert_eq!(verdicts(&analysis)[1], expected, "{rounds} rounds");
    }
    let analysis = analyse(2, 6, |arm, at| near(times[arm.id.number() as usize], at));
    assert_eq!(analysis.advice, Advice::TooFewRounds { blocks: 6, needed: 7 });
    assert_eq!(analysis.arms[1].verdict, Verdict::TooFewRounds { blocks: 6, needed: 7 });
    assert!(analysis.arms[1].effect.is_some(), "the estimate is still shown");
    // One round is too few for an estimate, and still it is one.
    let analysis = analyse(2, 1, |_, at| near(1.0, at));
    assert_eq!(analysis.arms[1].verdict, Verdict::TooFewRounds { blocks: 1, needed: 7 });
    assert_eq!(analysis.arms[1].effect, None);
}

#[test]
fn an_arm_that_fails_is_a_result_and_the_others_are_compared() {
    let analysis = analyse(2, 8, |arm, at| match arm.id.number() {
        1 => Run::ended(Ending::Signal(9)),
        2 => near(0.5, at),
        _ => near(1.0, at),
    });
    assert_eq!(verdicts(&analysis), ["baseline", "failed", "better"]);
    assert_eq!(analysis.arms[1].summary, None);
    assert_eq!(analysis.arms[1].failures, 1, "the warm-up does not count");
    let effect = analysis.arms[2].effect.unwrap();
    assert_eq!(effect.p, effect.adjusted_p, "one arm was compared");
}

#[test]
fn a_block_in_which_a_run_failed_is_left_out_of_that_pair_only() {
    let analysis = analyse(2, 10, |arm, at| match (arm.id.number(), at) {
        (1, 20..=22) => Run::ended(Ending::Code(1)),
        _ => near(1.0, at),
    });
    let blocks: Vec<usize> = analysis.arms[1..].iter().map(|arm| arm.effect.unwrap().blocks).collect();
    assert_eq!(blocks, [9, 10]);
    assert_eq!(analysis.arms[1].failures, 1);
}

#[test]
fn a_broken_program_and_a_study_without_arms_are_said_to_be_so() {
    let analysis = analyse(2, 8, |_, _| Run::ended(Ending::Code(127)));
    let Advice::BaselineFailed(dropped) = &analysis.advice else { panic!("{:?}", analysis.advice) };
    assert_eq!(dropped.ending, Ending::Code(127));
    assert_eq!(verdicts(&analysis), ["baseline", "too few", "too few"]);
    let analysis =
        analyse(
            1,
            8,
            |arm, at| {
                if arm.id.is_baseline() { near(1.0, at) } else { Run::ended(Ending::Code(1)) }
            },
        );
    assert_eq!(analysis.advice, Advice::NothingToCompare);
    assert_eq!(analyse(0, 8, |_, at| near(1.0, at)).advice, Advice::NothingToCompare);
}

#[test]
fn a_study_interrupted_in_its_warm_up_says_what_it_would_have_taken() {
    let analysis =
        analyse(5, 10, |_, at| if at < 4 { near(1.0, at) } else { Run::ended(Ending::Interrupted) });
    assert_eq!(analysis.advice, Advice::TooFewRounds { blocks: 0, needed: 8 });
    assert_eq!(analysis.control, None);
}

#[test]
fn worse_arms_are_named_when_none_is_better() {
    let times = [1.0, 1.2, 1.0];
    let analysis = analyse(2, 10, |arm, at| near(times[arm.id.number() as usize], at));
    let Advice::Keep { worse, smallest_detectable } = analysis.advice else {
        panic!("{:?}", analysis.advice)
    };
    assert_eq!((worse, smallest_detectable.is_some()), (vec![ArmId::new(1)], true));
    let times = [1.0, 1.2];
    let analysis = analyse(1, 10, |arm, at| near(times[arm.id.number() as usize], at));
    assert_eq!(analysis.advice, Advice::Keep { worse: vec![ArmId::new(1)], smallest_detectable: None });
}

#[test]
fn equal_times_in_every_run_show_nothing_and_do_not_divide_by_zero() {
    let analysis = analyse(2, 10, |_, _| took(0.25));
    assert_eq!(verdicts(&analysis), ["baseline", "same", "same"]);
    let effect = analysis.arms[1].effect.unwrap();
    assert!((effect.ratio - 1.0).abs() < 1e-9 && effect.p == 1.0, "{effect:?}");
}

#[test]
fn the_same_study_gives_the_same_analysis() {
    let study = conduct(plan(3, Rounds::Exactly(9), 12), |_, at| took(recorded(4, at)));
    assert_eq!(Analysis::with_resamples(&study, 300), Analysis::with_resamples(&study, 300));
}

#[test]
fn a_summary_holds_the_measured_runs_and_not_the_warm_up() {
    let analysis = analyse(1, 6, |_, at| took(if at < 3 { 100.0 } else { at as f64 }));
    let summary = analysis.arms[0].summary.unwrap();
    assert_eq!(summary.runs, 12);
    assert!(summary.most < 100.0 && summary.least >= 3.0 && summary.median > summary.least);
}

/// A run in which this share of the threads kept to the CPUs that were asked for.
fn kept(seconds: f64, at: usize, cpus: Option<f64>) -> Run {
    let fidelity = cpus.map(|cpus| Fidelity { cpus: Some(cpus), ..Fidelity::default() });
    Run { fidelity, ..near(seconds, at) }
}

#[test]
fn an_arm_that_did_not_run_as_asked_has_no_verdict_however_fast_it_was() {
    let analysis = analyse(2, 12, |arm, at| match arm.id.number() {
        0 => kept(1.0, at, None),
        1 => kept(0.5, at, Some(0.0)),
        _ => kept(0.9, at, Some(1.0)),
    });
    assert_eq!(verdicts(&analysis), ["baseline", "not as asked", "better"]);
    assert_eq!(analysis.arms[1].effect, None);
    assert_eq!(analysis.advice, Advice::Use { best: ArmId::new(2), as_good: Vec::new() });
}

#[test]
fn what_was_not_seen_of_a_treatment_does_not_speak_against_it() {
    let analysis = analyse(1, 12, |arm, at| kept([1.0, 0.5][arm.id.number() as usize], at, None));
    assert_eq!(verdicts(&analysis), ["baseline", "better"]);
}

#[test]
fn a_race_is_neither_led_nor_settled_by_an_arm_that_did_not_run_as_asked() {
    let plan = plan(1, Rounds::Exactly(12), 5).with_race(Rules::DEFAULT);
    let study = conduct(plan, |arm, at| match arm.id.number() {
        0 => kept(1.0, at, None),
        _ => kept(0.5, at, Some(0.5)),
    });
    assert_eq!((study.race.settled, study.race.out.len()), (Some(ArmId::BASELINE), 0));
    let analysis = Analysis::with_resamples(&study, 500);
    assert_eq!(verdicts(&analysis), ["baseline", "not as asked"]);
    assert_eq!(analysis.advice, Advice::NothingToCompare);
}

#[test]
fn other_metrics_are_shown_beside_and_decide_nothing() {
    let pattern = Pattern::new("latency ([0-9.]+)").unwrap();
    let text = pattern.text().to_owned();
    let also = vec![Metric::Printed(pattern, Direction::LowerIsBetter), Metric::MaxRss];
    let study = conduct(plan(1, Rounds::Exactly(8), 5).with_also(also), |arm, at| Run {
        also_printed: [(text.clone(), [4.0, 8.0][arm.id.number() as usize])].into(),
        ..near(1.0, at)
    });
    let analysis = Analysis::with_resamples(&study, 500);
    assert_eq!(verdicts(&analysis), ["baseline", "same"]);
    let [of_default, of_other] = [0, 1].map(|arm: usize| analysis.arms[arm].also[0].unwrap());
    assert_eq!((of_default.summary.median, of_default.ratio), (4.0, None));
    let (ratio, interval) = of_other.ratio.map(|(ratio, interval)| (ratio, interval.unwrap())).unwrap();
    assert_eq!(of_other.summary.median, 8.0);
    assert!((ratio - 2.0).abs() < 1e-9 && (interval.low - 2.0).abs() < 1e-9, "{ratio} {interval:?}");
    assert_eq!(analysis.arms[1].also[1], None, "no run says how much memory it had");
}

#[test]
fn the_blocks_for_two_percent_are_those_of_the_usual_formula() {
    let analysis = analyse(1, 12, |arm, at| near([1.0, 1.001][arm.id.number() as usize], at));
    let effect = analysis.arms[1].effect.unwrap();
    let deviation = effect.interval.unwrap().map(f64::ln).half_width() / 1.96 * 12f64.sqrt();
    let expected = ((1.959_964 + 0.841_621) * deviation / 1.02f64.ln()).powi(2).ceil();
    assert_eq!(effect.blocks_for_target, Some(expected as u64));
}

/// A race of arms with these costs in noise of this size, in percent.
fn race(percent: &[f64], noise: f64, rounds: u32, seed: u64) -> Study {
    let plan = plan(percent.len() - 1, Rounds::Exactly(rounds), seed).with_race(Rules::DEFAULT);
    conduct(plan, |arm, at| {
        let noise = noise * Random::stream(seed, at as u64).normal();
        took(1.0 + (percent[arm.id.number() as usize] + noise) / 100.0)
    })
}

#[test]
fn a_race_that_is_settled_for_the_baseline_keeps_it_though_an_arm_is_a_little_better() {
    let analysis = Analysis::with_resamples(&race(&[0.5, 0.0, 0.2], 0.01, 40, 1), 100);
    assert!(matches!(analysis.advice, Advice::Keep { .. }), "{:?}", analysis.advice);
    let effect = analysis.arms[1].effect.unwrap();
    assert!(effect.smallest_detectable.is_some_and(|share| share >= 0.02), "the margin: {effect:?}");
}

#[test]
fn what_a_race_says_is_what_its_bets_show() {
    let analysis = Analysis::with_resamples(&race(&[0.0, -8.0, 9.0, 0.1], 0.5, 40, 2), 100);
    assert_eq!(verdicts(&analysis), ["baseline", "better", "worse", "out"]);
    assert_eq!(analysis.advice, Advice::Use { best: ArmId::new(1), as_good: Vec::new() });
    for arm in &analysis.arms[1..3] {
        let effect = arm.effect.unwrap();
        assert!(effect.adjusted_p <= ALPHA && !effect.interval.unwrap().contains(1.0), "{effect:?}");
    }
    let short = Analysis::with_resamples(&race(&[0.0, -8.0, 9.0, 0.1], 0.5, 3, 2), 100);
    assert_eq!(short.advice, Advice::TooFewRounds { blocks: 3, needed: 10 });
    assert_eq!(short.arms[1].effect.unwrap().interval, None, "three rounds bound nothing");
}
