//! Hundreds of races, and in how many of them the right arm is named.

use super::*;
use nodewise_stats::share::share_interval;

// `cargo xtask stats --table advice` holds all 2,100 studies to the bounds themselves. Here a part of them
// is played, and a bound is broken where the 95 % interval of the share (Clopper and Pearson) lies beyond it.

/// Whether a count shows that its share is above this one.
fn is_above(count: u32, tally: &Tally, most: f64) -> bool {
    share_interval(count, tally.studies).0 > most
}

/// Whether a count shows that its share is below this one.
fn is_below(count: u32, tally: &Tally, least: f64) -> bool {
    share_interval(count, tally.studies).1 < least
}

#[test]
fn a_race_names_a_worse_arm_in_few_studies() {
    let comparison = Comparison::play(420, 1, 40, &[]);
    let race = comparison.race;
    assert_eq!(race.studies, 420);
    assert!(!is_above(race.wrong, &race, MOST_WRONG), "{race:?}");
    assert!(!is_above(race.certain_and_wrong, &race, MOST_CERTAIN_AND_WRONG), "{race:?}");
    assert!(!is_below(race.certain, &race, LEAST_CERTAIN), "{race:?}");
    for (kind, tally) in &comparison.by_kind {
        assert!(!is_above(tally.wrong, tally, MOST_WRONG), "{kind:?}: {tally:?}");
    }
}

#[test]
fn a_race_with_crosses_names_a_worse_arm_in_few_studies() {
    let comparison = Comparison::play_kinds(210, 1, 40, &[]);
    let race = comparison.race;
    assert!(comparison.crossed >= 21, "{}", comparison.crossed);
    assert!(!is_above(race.wrong, &race, MOST_WRONG), "{race:?}");
    assert!(!is_above(race.certain_and_wrong, &race, MOST_CERTAIN_AND_WRONG), "{race:?}");
}

#[test]
fn a_race_takes_half_the_runs_of_a_fixed_design_that_is_wrong_no_more_often() {
    let comparison = Comparison::play(210, 1, 40, &[35, 40]);
    let (blocks, fixed) = comparison.equal().expect("one of the fixed designs is as certain");
    let share = comparison.race.mean_runs() / fixed.mean_runs();
    assert!(share <= MOST_RUNS, "{share} of the runs of {blocks} blocks: {:?}, {fixed:?}", comparison.race);
}

#[test]
fn a_cross_costs_what_its_parts_do_together() {
    let setting =
        Setting { kind: NoiseKind::ALL[0], costs: vec![0.0, -0.1, -0.05, 0.2], together: Some(0.5), seed: 3 };
    let study = setting.play(40, Some(Rules::DEFAULT));
    let crossed = study.race.crossed.as_ref().unwrap();
    let arm = study.plan.arm(crossed.arms[0]);
    assert_eq!(arm.name, "arm 1 + arm 2");
    assert!((setting.cost(arm) + 0.125).abs() < 1e-12);
    assert_eq!(study.race.settled, Some(arm.id));
    assert_eq!((setting.loss(arm.id, &study), setting.loss(ArmId::new(1), &study) > 0.02), (0.0, true));
}

#[test]
fn where_nothing_differs_nothing_is_said_to_be_better() {
    let mut better = 0;
    for seed in 0..400 {
        let kind = NoiseKind::ALL[seed % NoiseKind::ALL.len()];
        let setting = Setting { kind, costs: vec![0.0; 6], together: None, seed: seed as u64 };
        let study = setting.play(40, Some(Rules::DEFAULT));
        better += usize::from(advised(&study).is_some_and(|arm| !arm.is_baseline()));
    }
    // The error that the race allows.
    assert!(better <= 20, "{better}");
}

#[test]
fn a_setting_is_the_same_for_the_same_seed_and_its_noise_does_not_depend_on_the_design() {
    let setting = Setting::draw(11, 3);
    let (race, fixed) = (setting.play(6, Some(Rules::DEFAULT)), setting.play(6, None));
    assert_eq!(Setting::draw(11, 3).costs, setting.costs);
    let before_the_first_look = setting.costs.len() + 1;
    let values = |study: &Study| -> Vec<_> {
        study.records.iter().take(6 * before_the_first_look).map(|record| record.run.wall).collect()
    };
    assert_eq!(values(&race), values(&fixed));
}

#[test]
fn every_kind_of_noise_is_finite_and_has_its_strength() {
    for kind in NoiseKind::ALL {
        let mut noise = kind.begin(5);
        let values: Vec<f64> = (0..2000).map(|_| noise.next_run()).collect();
        assert!(values.iter().all(|value| value.is_finite()), "{kind:?}");
        let spread = nodewise_stats::median_absolute_deviation(&values).unwrap();
        assert!((0.0003..0.3).contains(&spread), "{kind:?}: {spread}");
    }
}
