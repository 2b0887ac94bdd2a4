//! Evaluations whose truth is known: without any effect, and with one of the size that is promised to be found.

use nodewise_stats::betting::fewest_rounds;
use nodewise_stats::random::Random;

use super::*;
use crate::synthetic::disturbance::Disturbance;

const THROUGHPUT: Outcome = Outcome { scale: Scale::Ratio, direction: Direction::HigherIsBetter };
const SHARE: Outcome = Outcome { scale: Scale::Difference, direction: Direction::LowerIsBetter };

fn blocks(pairs: u32, seed: u64) -> Blocks {
    let second = Duration::from_secs(1);
    Blocks { pairs, length: second, wash_out: second / 3, seed }
}

/// Plays an evaluation that ends as soon as something is shown; `order` is that of the blocks.
fn play(
    blocks: &Blocks,
    noise: Disturbance,
    effect: f64,
    order: impl Fn(&Blocks, u32) -> [Switch; 2],
) -> Evaluation {
    let mut evaluation = Evaluation::new(THROUGHPUT);
    let mut disturbed = noise.begin(blocks.seed);
    for pair in 1..=blocks.pairs {
        let mut values = Pair { off: 0.0, on: 0.0 };
        for switch in order(blocks, pair) {
            let shift = if switch == Switch::On { effect } else { 0.0 };
            let value = (shift - disturbed.next_run()).exp();
            match switch {
                Switch::Off => values.off = value,
                Switch::On => values.on = value,
            }
        }
        assert!(evaluation.add(values));
        if evaluation.verdict() != Verdict::Open {
            break;
        }
    }
    evaluation
}

/// How many of these evaluations end with a verdict.
fn shown(
    studies: u64,
    noise: Disturbance,
    effect: f64,
    pairs: u32,
    order: impl Fn(&Blocks, u32) -> [Switch; 2] + Copy,
) -> [u64; 2] {
    let mut found = [0, 0];
    for seed in 0..studies {
        match play(&blocks(pairs, seed), noise, effect, order).verdict() {
            Verdict::Helps => found[0] += 1,
            Verdict::Harms => found[1] += 1,
            Verdict::Open => {}
        }
    }
    found
}

#[test]
fn the_fewest_pairs_are_those_of_the_bets() {
    assert_eq!(FEWEST, fewest_rounds(EACH));
    let pair = Duration::from_secs(20 * 60);
    let short = Blocks::within(pair * 6, pair / 2, pair / 6, 1).unwrap_err();
    assert_eq!((short.pairs, short.needed), (6, pair * 7));
    assert_eq!(Blocks::within(pair * 7, pair / 2, pair / 6, 1).unwrap().pairs, 7);
    assert_eq!(Blocks::within(Duration::MAX, pair, pair, 1).unwrap().pairs, MOST_ROUNDS);
}

#[test]
fn either_block_of_a_pair_is_first_about_equally_often() {
    let blocks = blocks(4000, 5);
    let first_on = (1..=4000).filter(|pair| blocks.order(*pair)[0] == Switch::On).count();
    // Deviation 32, five of them.
    assert!(first_on.abs_diff(2000) < 160, "{first_on}");
    assert_eq!(blocks.order(3), blocks.order(3), "a seed repeats its order");
}

/// Twenty noises, 400 evaluations of each, looked at after every pair up to the fortieth.
#[test]
fn without_an_effect_at_most_one_in_twenty_ends_with_a_verdict() {
    let mut all = 0;
    for noise in Disturbance::ALL {
        let [helps, harms] = shown(400, noise, 0.0, 40, Blocks::order);
        // 5 % of 400, and three deviations of that.
        assert!(helps + harms <= 33, "{}: {helps} help, {harms} harm", noise.name());
        all += helps + harms;
    }
    // 8,000 evaluations: 5 % are 400. Fewer than 80 would be a test that never says anything.
    assert!((80..=400).contains(&all), "{all} of 8000");
}

#[test]
fn a_fixed_order_would_find_a_drift_that_the_drawn_one_does_not() {
    let fixed = |_: &Blocks, _: u32| [Switch::Off, Switch::On];
    let [helps, harms] = shown(200, Disturbance::Drift, 0.0, 40, fixed);
    assert!(helps + harms > 30, "{helps} and {harms} of 200");
    let [helps, harms] = shown(200, Disturbance::Drift, 0.0, 40, Blocks::order);
    assert!(helps + harms <= 20, "{helps} and {harms} of 200");
}

#[test]
fn what_is_said_to_be_findable_is_found_in_four_of_five() {
    for pairs in [7, 12, 24, 48] {
        // The difference of two blocks with 2 % each.
        let effect = findable(pairs).deviations * 0.02 * 2f64.sqrt();
        let [helps, harms] = shown(400, Disturbance::Normal, effect, pairs, Blocks::order);
        assert!((292..=348).contains(&helps) && harms <= 2, "{pairs} pairs: {helps} and {harms} of 400");
    }
}

#[test]
fn a_shift_is_estimated_and_its_interval_holds_it() {
    let held = (0..400u64).filter(|seed| {
        let evaluation = play(&blocks(40, *seed), Disturbance::Lognormal, 0.03, Blocks::order);
        let effect = evaluation.effect(40).unwrap();
        effect.interval.is_none_or(|interval| interval.contains(0.03f64.exp()))
    });
    assert!(held.count() >= 380);
    let mut evaluation = Evaluation::new(SHARE);
    for tenth in 0..20 {
        assert!(evaluation.add(Pair { off: 0.4 + f64::from(tenth) * 0.001, on: 0.02 }));
    }
    let effect = evaluation.effect(20).unwrap();
    assert_eq!(evaluation.verdict(), Verdict::Helps);
    assert!((effect.estimate + 0.3895).abs() < 1e-9 && effect.p < 0.05, "{effect:?}");
    assert!(effect.noise.is_some_and(|noise| (noise - 0.001).abs() < 1e-9), "{effect:?}");
    assert!(effect.detectable.is_some_and(|least| least < 0.0), "an improvement is less: {effect:?}");
}

#[test]
fn pairs_that_cannot_be_compared_do_not_count_and_equal_ones_decide_nothing() {
    let mut evaluation = Evaluation::new(THROUGHPUT);
    assert!(!evaluation.add(Pair { off: 0.0, on: 3.0 }));
    assert!(!evaluation.add(Pair { off: 1.0, on: f64::NAN }));
    assert!(evaluation.effect(10).is_none());
    (0..50).for_each(|_| assert!(evaluation.add(Pair { off: 2.0, on: 2.0 })));
    assert_eq!((evaluation.verdict(), evaluation.pairs().len()), (Verdict::Open, 50));
    let mut worse = Evaluation::new(THROUGHPUT);
    let mut random = Random::new(1);
    (0..20).for_each(|_| assert!(worse.add(Pair { off: 2.0, on: 1.5 + 0.1 * random.unit() })));
    assert_eq!(worse.verdict(), Verdict::Harms);
}

/// The table in docs/balance.md.
#[test]
fn the_power_in_the_documentation_is_that_of_the_bets() {
    let docs = include_str!("../../../../docs/balance.md");
    for pairs in [7, 12, 18, 24, 48] {
        let Findable { share, deviations } = findable(pairs);
        let row = format!("| {pairs} | {:.0} % | {deviations:.1} |", share * 100.0);
        assert!(docs.lines().any(|line| line.starts_with(&row)), "{row}");
    }
}
