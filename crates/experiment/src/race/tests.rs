use super::*;

/// A race among arms that set these many things, with values in percent above 1, block by block: of the
/// baseline both runs, of the others one.
fn race(things: &[usize], blocks: u32, percent: impl Fn(usize, u32) -> f64) -> Race {
    let mut race = Race::new(Rules::DEFAULT, things, false);
    for block in 0..blocks {
        let run = |arm: usize, replicate: u32| (percent(arm, 2 * block + replicate) / 100.0).ln_1p();
        let runs =
            |arm: usize| (0..if arm == 0 { 2 } else { 1 }).map(|replicate| run(arm, replicate)).collect();
        race.observe(&(0..things.len()).map(runs).collect::<Vec<_>>());
    }
    race
}

fn ids(arms: &[u32]) -> Vec<ArmId> {
    arms.iter().copied().map(ArmId::new).collect()
}

/// Which arms are out, and what the race is settled for, when arms cost this much every time.
fn check(things: &[usize], blocks: u32, percent: &[f64], out: &[u32], settled: Option<u32>) {
    // Tiny differences of either sign, so that nothing is equal by accident.
    let jitter = |arm: usize, run: u32| 1e-6 * f64::from((run * 7 + arm as u32 * 3) % 5);
    let race = race(things, blocks, |arm, run| percent[arm] + jitter(arm, run));
    let left: Vec<ArmId> = (0..things.len() as u32).map(ArmId::new).collect();
    let gone: Vec<ArmId> = race.out(&left, Block::Measured(blocks)).iter().map(|out| out.arm).collect();
    assert_eq!(gone, ids(out), "{percent:?}");
    let left: Vec<ArmId> = left.into_iter().filter(|arm| !gone.contains(arm)).collect();
    let found = race.settled(&left, |arm| percent[arm.number() as usize]);
    assert_eq!(found.map(ArmId::number), settled, "{percent:?}");
}

#[test]
fn an_arm_that_is_worse_in_every_block_drops_out() {
    check(&[0, 1], 7, &[0.0, 9.0], &[1], Some(0));
    check(&[0, 1], 7, &[9.0, 0.0], &[0], Some(1));
    check(&[0, 1], 5, &[0.0, 9.0], &[], None);
}

#[test]
fn arms_within_the_margin_settle_the_race_for_the_baseline_even_where_one_is_shown_to_be_better() {
    check(&[0, 1], 7, &[1.0, 0.0], &[0], Some(0));
    check(&[0, 1, 1], 8, &[0.5, 0.0, 1.0], &[], Some(0));
}

#[test]
fn the_simplest_arm_within_the_margin_is_named() {
    // A cross that is 1 % better than its part: the part is within the margin, and simpler.
    check(&[0, 1, 2], 12, &[20.0, 1.0, 0.0], &[0, 1], Some(2));
    check(&[0, 1, 2], 9, &[20.0, 1.0, 0.0], &[0], Some(1));
    // One that is 6 % better is named, once it is shown to be.
    check(&[0, 1, 2], 12, &[20.0, 6.0, 0.0], &[0, 1], Some(2));
    check(&[0, 1, 1], 12, &[20.0, 0.5, 0.4], &[0, 1], Some(2));
}

#[test]
fn an_arm_without_values_can_neither_be_named_nor_let_the_race_be_settled() {
    let mut empty = Race::new(Rules::DEFAULT, &[0, 1, 1], false);
    for _ in 0..30 {
        empty.observe(&[vec![0.0, 1e-6], vec![1e-7], Vec::new()]);
    }
    assert_eq!(empty.settled(&ids(&[0, 1, 2]), |_| 0.0), None);
    assert_eq!(empty.settled(&ids(&[0, 1]), |_| 0.0), Some(ArmId::BASELINE));
}

#[test]
fn equal_values_show_nothing_but_that_they_are_within_the_margin() {
    let equal = race(&[0, 1], 30, |_, _| 5.0);
    let all = ids(&[0, 1]);
    assert!(equal.out(&all, Block::Measured(30)).is_empty());
    assert_eq!(equal.settled(&all, |_| 0.0), Some(ArmId::BASELINE));
    assert_eq!(equal.p(all[0], all[1]), (1.0, 1.0));
}

#[test]
fn an_adjusted_p_value_is_below_the_error_where_the_difference_is_shown() {
    for blocks in 1..20 {
        let race =
            race(&[0, 1, 1, 1], blocks, |arm, run| f64::from(run % 3) + if arm == 1 { 9.0 } else { 0.0 });
        let (worse, baseline) = (ArmId::new(1), ArmId::BASELINE);
        let (p, adjusted) = race.p(worse, baseline);
        assert_eq!(race.costs_more(worse, baseline), adjusted <= Rules::DEFAULT.error, "{blocks} blocks");
        assert!(p <= adjusted);
    }
}

#[test]
fn crosses_are_judged_by_blocks_of_their_own() {
    let mut crossed = Race::new(Rules::DEFAULT, &[0, 1, 1], true);
    let single = [vec![0.1, 0.1001], vec![0.0], vec![0.05]];
    (0..11).for_each(|_| crossed.observe(&single));
    let (part, cross) = (ArmId::new(1), ArmId::new(3));
    crossed.add(&[2]);
    assert!(crossed.costs_more(ArmId::BASELINE, part) && !crossed.costs_more(part, cross));
    let both = [&single[..], &[vec![-0.1]]].concat();
    (0..20).for_each(|_| crossed.observe(&both));
    assert!(crossed.costs_more(part, cross));
    assert_eq!(crossed.settled(&[part, cross], |_| 0.0), Some(cross));
}
