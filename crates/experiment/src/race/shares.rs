//! How the error of a race is divided among what it may say.

use crate::schedule::ArmId;
use nodewise_stats::betting::fewest_rounds;

/// The part of the error that is kept for crosses, where there may be any.
const FOR_CROSSES: f64 = 0.25;

/// The part of a stage's error that goes to pairs without the baseline, where there are any.
const WITHOUT_BASELINE: f64 = 0.25;

/// The part that naming the baseline has at least: it is named in most studies, and wrong only for
/// one other arm, the best, however many there are.
const NAMING_BASELINE: f64 = 0.25;

/// The levels of error of a race's statements.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    first: Stage,
    /// The error that is kept for crosses.
    kept: f64,
    crosses: Option<Stage>,
}

/// Levels of the pairs that came into the race together.
#[derive(Clone, Debug, PartialEq)]
struct Stage {
    /// The number of arms when it began.
    before: usize,
    /// That an arm costs more than the baseline, or less.
    with_baseline: f64,
    /// That an arm costs more than another one.
    without_baseline: f64,
    /// That the baseline is within the margin of the best.
    naming_baseline: f64,
}

impl Stage {
    /// `new` arms that join `old` ones besides the baseline.
    fn new(error: f64, old: usize, new: usize) -> Self {
        let pairs = (new * (new.saturating_sub(1)) / 2 + old * new) as f64;
        let arms = new.max(1) as f64;
        let for_others = if pairs > 0.0 { WITHOUT_BASELINE * error } else { 0.0 };
        let for_baseline = error - for_others;
        // A false "within the margin" of the baseline takes the place of both statements about one pair.
        let naming_baseline = (NAMING_BASELINE * error).max(for_baseline / arms);
        let others = (for_baseline - naming_baseline) / (2.0 * (arms - 1.0)).max(1.0);
        let with_baseline =
            if new > 1 { others.min(for_baseline / (2.0 * arms)) } else { for_baseline / 2.0 };
        let without_baseline = for_others / (2.0 * pairs).max(1.0);
        Self { before: old + 1, with_baseline, without_baseline, naming_baseline }
    }
}

impl Shares {
    /// Divides an error among this many arms besides the baseline.
    pub fn new(error: f64, arms: usize, crossing: bool) -> Self {
        let kept = if crossing { FOR_CROSSES * error } else { 0.0 };
        Self { first: Stage::new(error - kept, 0, arms), kept, crosses: None }
    }

    /// Divides what was kept among this many crosses, which join the others.
    pub fn add(&mut self, old_arms: usize, crosses: usize) {
        self.crosses = Some(Stage::new(self.kept, old_arms, crosses));
    }

    /// The stage that a pair came in with.
    fn stage(&self, one: ArmId, other: ArmId) -> &Stage {
        let last = one.number().max(other.number()) as usize;
        self.crosses.as_ref().filter(|crosses| last >= crosses.before).unwrap_or(&self.first)
    }

    /// The level of "the first arm costs more than the second".
    pub fn costs_more(&self, one: ArmId, other: ArmId) -> f64 {
        let stage = self.stage(one, other);
        if one.is_baseline() || other.is_baseline() { stage.with_baseline } else { stage.without_baseline }
    }

    /// The level of "`named` is within the margin of `other`".
    pub fn is_within(&self, named: ArmId, other: ArmId) -> f64 {
        let stage = self.stage(named, other);
        if named.is_baseline() { stage.naming_baseline } else { 2.0 * self.costs_more(named, other) }
    }

    /// The fewest rounds that can show an arm of the first stage to differ from the baseline.
    pub fn rounds_needed(&self) -> u32 {
        fewest_rounds(self.first.with_baseline)
    }

    /// The fewest rounds that can show a cross to be better than each of its parts, among this many crosses
    /// that join this many other arms.
    pub fn rounds_for_crosses(&self, old_arms: usize, crosses: usize) -> u32 {
        let stage = Stage::new(self.kept, old_arms, crosses);
        fewest_rounds(stage.with_baseline.min(stage.without_baseline))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worst that can add up over all pairs: both directions of each, or the named baseline instead
    /// of one.
    fn risk(shares: &Shares, arms: u32) -> f64 {
        let ids: Vec<ArmId> = (0..=arms).map(ArmId::new).collect();
        let of_pair =
            |(one, other): (ArmId, ArmId)| shares.costs_more(one, other) + shares.costs_more(other, one);
        let pairs = ids.iter().flat_map(|one| ids.iter().map(move |other| (*one, *other)));
        let all: f64 = pairs.filter(|(one, other)| one < other).map(of_pair).sum();
        let naming = |other: &ArmId| {
            let named = shares.is_within(ArmId::BASELINE, *other);
            named - of_pair((ArmId::BASELINE, *other))
        };
        all + ids[1..].iter().map(naming).fold(0.0, f64::max)
    }

    #[test]
    fn all_statements_together_have_the_error_of_the_race() {
        for arms in 1..=40 {
            let alone = Shares::new(0.05, arms as usize, false);
            let sum = risk(&alone, arms);
            assert!(sum <= 0.05 + 1e-12 && sum > 0.045, "{arms} arms: {sum}");
            for crosses in 1..=7 {
                let mut shares = Shares::new(0.05, arms as usize, true);
                shares.add(arms as usize, crosses as usize);
                let sum = risk(&shares, arms + crosses);
                assert!(sum <= 0.05 + 1e-12 && sum > 0.04, "{arms} and {crosses} arms: {sum}");
            }
        }
    }

    #[test]
    fn within_the_margin_has_the_level_of_its_pair() {
        let shares = Shares::new(0.05, 4, false);
        for (one, other) in [(1, 2), (3, 1), (2, 0)] {
            let (one, other) = (ArmId::new(one), ArmId::new(other));
            let of_pair = shares.costs_more(one, other) + shares.costs_more(other, one);
            assert_eq!(shares.is_within(one, other), of_pair);
        }
        assert!(shares.is_within(ArmId::BASELINE, ArmId::new(1)) >= 0.0125);
    }

    #[test]
    fn more_arms_take_more_rounds() {
        let needed = |arms| Shares::new(0.05, arms, false).rounds_needed();
        assert_eq!([1, 2, 3, 6, 12].map(needed), [7, 9, 10, 11, 12]);
    }
}
