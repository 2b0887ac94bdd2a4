//! Which arms are crossed, and how a race goes on with them.

use super::*;
use crate::executor::Run;
use crate::metric::Metric;
use crate::mock::{conduct, took};
use crate::race::Rules;
use crate::study::{End, Plan, Rounds, Study};
use crate::verdict::{Advice, Analysis};
use nodewise_machine::placement::HugePages;
use nodewise_machine::{CpuSet, NodeSet, PolicyMode};

fn memory(node: u32) -> Placement {
    Placement::memory(PolicyMode::Bind, NodeSet::from([node]))
}

fn huge(huge: HugePages) -> Placement {
    Placement { huge: Some(huge), ..Placement::DEFAULT }
}

/// A default, memory on one node or another, CPU 0, and huge pages on and off.
fn treatments() -> Vec<Treatment> {
    [
        ("default", Placement::DEFAULT),
        ("memory 0", memory(0)),
        ("memory 1", memory(1)),
        ("CPU 0", Placement::on_cpus(CpuSet::from([0]))),
        ("huge on", huge(HugePages::ALWAYS)),
        ("huge off", huge(HugePages::NEVER)),
    ]
    .map(|(name, placement)| Treatment::new(name, placement))
    .to_vec()
}

fn plan(treatments: Vec<Treatment>) -> Plan {
    Plan::new(treatments, Metric::Wall, Rounds::Exactly(40), 5)
        .unwrap()
        .with_race(Rules::DEFAULT)
        .with_crossing()
}

/// Costs of the arms in percent above the default, the same in every block.
fn costs(percent: &[f64]) -> Costs {
    let of =
        |cost: &f64| (1..6).map(|block| (Block::Measured(block), vec![(cost / 100.0).ln_1p()])).collect();
    (0..).map(ArmId::new).zip(percent.iter().map(of)).collect()
}

fn check(percent: &[f64], best: u32, expected: &[&str]) {
    let plan = plan(treatments());
    let made = crosses(plan.arms(), &costs(percent), ArmId::new(best));
    assert_eq!(made.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), expected, "{percent:?}");
}

#[test]
fn the_best_is_crossed_with_the_best_of_every_other_kind_that_looks_better_than_the_default() {
    check(
        &[0.0, -9.0, -3.0, -4.0, -1.0, -2.0],
        1,
        &["memory 0 + CPU 0", "memory 0 + huge off", "memory 0 + CPU 0 + huge off"],
    );
    check(&[0.0, -9.0, -3.0, 4.0, 1.0, 2.0], 1, &[]);
    check(&[0.0, -1.0, -3.0, 4.0, -9.0, 2.0], 4, &["huge on + memory 1"]);
}

#[test]
fn what_sets_the_same_thing_or_has_threads_of_its_own_is_not_crossed() {
    let arms = |treatments: Vec<Treatment>| plan(treatments).arms().to_vec();
    assert!(can_cross(&arms(treatments())));
    assert!(!can_cross(&arms(treatments()[..3].to_vec())));
    let mut threads = treatments();
    threads.iter_mut().for_each(|one| one.threads = Some(4));
    assert!(!can_cross(&arms(threads)));
    let mut variables = treatments()[2..4].to_vec();
    variables[0].environment.insert("X".to_owned(), "1".to_owned());
    variables[1].environment.insert("X".to_owned(), "2".to_owned());
    assert!(!can_cross(&arms(variables)));
    assert!(!plan(treatments()[..3].to_vec()).crossing);
}

#[test]
fn what_is_in_the_plan_already_is_not_made_again() {
    let mut all = treatments();
    all.push(Treatment::new("both", memory(0).with_cpus(CpuSet::from([0]))));
    let plan = plan(all);
    let made = crosses(plan.arms(), &costs(&[0.0, -9.0, 1.0, -4.0, 1.0, 1.0, 1.0]), ArmId::new(1));
    assert_eq!(made.len(), 0);
}

/// A program that gains 8 % by memory on node 0 and 5 % without huge pages, and both together.
fn study(play_noise: f64) -> Study {
    conduct(plan(treatments()), |arm, at| {
        let mut cost = 1.0 + play_noise * ((at * 7919) % 97) as f64 / 97.0;
        if arm.placement.policy == memory(0).policy {
            cost *= 0.92;
        }
        if arm.placement.huge == Some(HugePages::NEVER) {
            cost *= 0.95;
        }
        Run { ..took(cost) }
    })
}

#[test]
fn a_race_goes_on_with_crosses_and_names_the_one_that_is_better_than_either_alone() {
    let study = study(0.002);
    let crossed = study.race.crossed.as_ref().unwrap();
    assert_eq!(study.plan.arm(crossed.best).name, "memory 0");
    let best = study.plan.arm(study.race.settled.unwrap());
    assert_eq!((best.name.as_str(), &study.end), ("memory 0 + huge off", &End::Settled));
    assert!(crossed.arms.contains(&best.id) && best.id.number() >= 6);
    let analysis = Analysis::with_resamples(&study, 200);
    assert!(matches!(analysis.advice, Advice::Use { best: named, .. } if named == best.id));
    // The crosses begin after the block that settled the first stage, and have the fewest blocks at least.
    let first = study.measured(best.id).map(|record| record.block).min();
    assert_eq!(first, Some(Block::Measured(crossed.block.number() + 1)));
    assert!(study.values(best.id, 0).len() >= 8, "no bet is won in fewer");
}

#[test]
fn a_cross_that_adds_nothing_to_its_part_is_not_named() {
    let study = conduct(plan(treatments()), |arm, at| {
        let mut cost = 1.0 + 0.002 * ((at * 7919) % 97) as f64 / 97.0;
        if arm.placement.huge == Some(HugePages::NEVER) {
            cost *= 0.9;
        }
        if arm.placement.cpus.is_some() {
            cost *= 0.995;
        }
        took(cost)
    });
    assert!(study.race.crossed.is_some());
    let best = study.plan.arm(study.race.settled.unwrap());
    assert_eq!(best.name, "huge off");
    let Advice::Use { best: named, as_good } = Analysis::with_resamples(&study, 200).advice else { panic!() };
    assert_eq!((named, as_good), (best.id, study.race.crossed.as_ref().unwrap().arms.clone()));
}

#[test]
fn a_race_that_the_default_wins_is_not_crossed() {
    let study = conduct(plan(treatments()), |_, at| took(1.0 + 1e-4 * ((at * 7919) % 97) as f64 / 97.0));
    assert_eq!((study.race.settled, &study.race.crossed), (Some(ArmId::BASELINE), &None));
    assert_eq!(study.plan.arms().len(), 6);
}

#[test]
fn without_room_for_a_second_look_the_first_stage_is_the_end() {
    let mut plan = plan(treatments());
    plan.rounds = Rounds::Exactly(14);
    let study = conduct(plan, |arm, at| {
        let gain = if arm.placement.policy == memory(0).policy { 0.8 } else { 0.99 };
        took(gain * (1.0 + 1e-4 * ((at * 7919) % 97) as f64 / 97.0))
    });
    assert_eq!((study.end, study.race.crossed), (End::Settled, None));
}
