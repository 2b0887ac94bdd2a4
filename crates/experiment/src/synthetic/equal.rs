//! Equal arms: how often the engine says what is not so, whatever disturbs the runs; and arms with a gain
//! that is known: how often it is found where that was stated, and how often the interval holds it.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::disturbance::{Disturbance, Disturbed};
use super::{PlayedClock, RESAMPLES};
use crate::executor::{Arm, Ending, Executor, Run};
use crate::experiment::{Event, Experiment};
use crate::metric::Metric;
use crate::race::{Race, Rules};
use crate::schedule::ArmId;
use crate::study::{Plan, Rounds, Study, Treatment};
use crate::verdict::{Advice, Analysis, Verdict};
use nodewise_machine::conditions::Conditions;
use nodewise_machine::placement::Placement;
use nodewise_stats::Interval;
use nodewise_stats::share::share_interval;

/// The size of a played study: this many arms, the default among them, and rounds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    pub arms: u32,
    pub rounds: u32,
}

impl Design {
    /// From two arms to twelve and from 10 rounds to 200.
    pub const ALL: [Self; 6] = [
        Self { arms: 2, rounds: 40 },
        Self { arms: 4, rounds: 10 },
        Self { arms: 4, rounds: 40 },
        Self { arms: 4, rounds: 200 },
        Self { arms: 12, rounds: 40 },
        Self { arms: 12, rounds: 200 },
    ];

    /// Whether a gain that a study without a race states to be found with 80 % power is promised to be found in 75 of 100
    /// studies.
    ///
    /// It is not where the noise changes with time: another study has other noise than the one that states the gain. And
    /// not in few rounds of noise of which most is in rare runs: most studies have seen none of them. A race states
    /// the power of its bet over all planned rounds, and promises it under every disturbance.
    pub fn promises_power_without_race(&self, disturbance: Disturbance) -> bool {
        !disturbance.depends_on_time() && (!disturbance.is_rare() || self.rounds >= ROUNDS_FOR_RARE)
    }
}

/// How often rounds are drawn again where the gain that a study without a race states is looked at: the estimate makes a
/// fortieth of them, and fewer make it too small. The program draws five times as many, which changes little more.
const RESAMPLES_OF_POWER: u32 = 2000;

/// From this many rounds on power without a race is promised also where most of the noise is in rare runs.
const ROUNDS_FOR_RARE: u32 = 20;

/// Runs whose cost is that of their arm and the disturbance.
struct Disturbing<'a> {
    costs: &'a [f64],
    noise: Disturbed,
    clock: &'a PlayedClock,
}

impl Executor for Disturbing<'_> {
    fn run(&mut self, arm: &Arm) -> Run {
        let cost = self.costs[arm.id.number() as usize] + self.noise.next_run();
        // A metric of its own rather than a duration, whose nanoseconds would break ties.
        self.clock.0.set(self.clock.0.get() + Duration::from_millis(1));
        Run {
            printed: Some(10.0 * cost.exp()),
            wall: Some(Duration::from_millis(1)),
            ..Run::ended(Ending::Done)
        }
    }
}

/// Plays a race of arms with these costs, as logarithms, the default first.
fn play(disturbance: Disturbance, costs: &[f64], rounds: u32, seed: u64, metric: &Metric) -> Study {
    conduct(disturbance, costs, seed, plan(costs.len(), rounds, seed, metric).with_race(Rules::DEFAULT))
}

fn plan(arms: usize, rounds: u32, seed: u64, metric: &Metric) -> Plan {
    let names = (0..arms).map(|arm| Treatment::new(format!("arm {arm}"), Placement::DEFAULT));
    Plan::new(names, metric.clone(), Rounds::Exactly(rounds), seed).expect("there are arms and rounds")
}

fn conduct(disturbance: Disturbance, costs: &[f64], seed: u64, plan: Plan) -> Study {
    let clock = PlayedClock(Cell::new(Duration::ZERO));
    let mut executor = Disturbing { costs, noise: disturbance.begin(seed), clock: &clock };
    Experiment {
        executor: &mut executor,
        clock: &clock,
        observer: &mut |_: Event<'_>| {},
        interrupt: &AtomicBool::new(false),
    }
    .conduct(plan, Conditions::default())
}

/// A number that the program prints, where less is better.
fn printed() -> Metric {
    Metric::Printed(
        crate::metric::Pattern::new("([0-9.]+)").expect("the pattern is one"),
        nodewise_stats::Direction::LowerIsBetter,
    )
}

/// Statements of studies of equal arms: counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FalseSayings {
    pub studies: u32,
    /// An arm was called better than the default.
    pub better: u32,
    /// An arm was called worse.
    pub worse: u32,
    /// An arm dropped out, the default among them.
    pub out: u32,
    /// Another arm than the default was to be used.
    pub used: u32,
    pub any: u32,
    /// Rounds of all of them.
    pub rounds: u64,
}

impl FalseSayings {
    /// Plays this many studies of equal arms.
    pub fn play(disturbance: Disturbance, design: Design, studies: u32, seed: u64) -> Self {
        let mut said = Self::default();
        let metric = printed();
        let costs = vec![0.0; design.arms as usize];
        for number in 0..u64::from(studies) {
            let seed = seed.wrapping_mul(0x9e37_79b9).wrapping_add(number);
            said.add(&play(disturbance, &costs, design.rounds, seed, &metric));
        }
        said
    }

    fn add(&mut self, study: &Study) {
        let race = Race::from_study(study).expect("it is one");
        let others = || study.plan.treatments().iter().map(|arm| arm.id);
        let better = others().any(|arm| race.costs_more(ArmId::BASELINE, arm));
        let worse = others().any(|arm| race.costs_more(arm, ArmId::BASELINE));
        let out = !study.race.out.is_empty();
        // Nothing but an arm that is better can be advised, and nothing else settle a race for another arm.
        let is_settled_for_other = study.race.settled.is_some_and(|arm| !arm.is_baseline());
        let used = (better || is_settled_for_other)
            && matches!(Analysis::with_resamples(study, RESAMPLES).advice, Advice::Use { .. });
        self.studies += 1;
        self.better += u32::from(better);
        self.worse += u32::from(worse);
        self.out += u32::from(out);
        self.used += u32::from(used);
        self.any += u32::from(better || worse || out || used);
        self.rounds += u64::from(study.blocks_begun());
    }

    /// Whether more studies said something false than the promise allows, beyond what chance explains:
    /// the lower end of the interval of the share lies above it.
    pub fn breaks(&self, promise: f64) -> bool {
        share_interval(self.any, self.studies).0 > promise
    }
}

/// After how many rounds the gain of one arm was shown, for each study; `None` where it was not. The gain is
/// a logarithm.
pub fn rounds_until_shown(
    disturbance: Disturbance,
    design: Design,
    gain: f64,
    studies: u32,
    seed: u64,
) -> Vec<Option<u32>> {
    let metric = printed();
    let mut costs = vec![0.0; design.arms as usize];
    costs[1] = -gain;
    let shown = |number: u32| {
        let seed = seed.wrapping_mul(0x9e37_79b9).wrapping_add(u64::from(number));
        let study = play(disturbance, &costs, design.rounds, seed, &metric);
        let things: Vec<usize> = study.plan.arms().iter().map(|arm| study.plan.things(arm)).collect();
        let mut race = Race::new(Rules::DEFAULT, &things, false);
        study.costs_by_block().find_map(|(block, runs)| {
            race.observe(&runs);
            race.costs_more(ArmId::BASELINE, ArmId::new(1)).then_some(block.number())
        })
    };
    (0..studies).map(shown).collect()
}

/// Results of studies of an arm with a known gain: counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Known {
    /// Studies of equal arms that stated which gain would be found with 80 % power.
    pub stated: u32,
    /// Studies with that gain in which it was found.
    pub found: u32,
    /// Those that stated the margin: less would be found, but for a race that ends before. What is stated
    /// there is found more often than with 80 % power.
    pub at_margin: u32,
    /// The sum of the gains stated, as logarithms.
    pub gains: f64,
    /// Studies with a gain in which an arm was named.
    pub named: u32,
    /// Those whose interval of the named arm held its true cost.
    pub held: u32,
}

impl Known {
    /// Plays this many studies of equal arms, and beside each one in which an arm has the gain that was
    /// stated. What is named there has its interval looked at.
    pub fn play(disturbance: Disturbance, design: Design, studies: u32, seed: u64) -> Self {
        let mut known = Self::default();
        let metric = printed();
        let margin = Rules::DEFAULT.margin.ln_1p();
        let equal = vec![0.0; design.arms as usize];
        let arm = ArmId::new(1);
        for number in 0..u64::from(studies) {
            let seed = seed.wrapping_mul(0x9e37_79b9).wrapping_add(number);
            let study = play(disturbance, &equal, design.rounds, seed, &metric);
            let analysis = Analysis::with_resamples(&study, RESAMPLES);
            let result = &analysis.arms[1];
            let stated = result.effect.filter(|_| result.verdict == Verdict::NoDifference);
            let Some(stated) = stated.and_then(|effect| effect.smallest_detectable) else { continue };
            let gain = stated.ln_1p();
            let mut costs = equal.clone();
            costs[1] = -gain;
            let study = play(disturbance, &costs, design.rounds, !seed, &metric);
            let found = Race::from_study(&study).is_some_and(|race| race.costs_more(ArmId::BASELINE, arm));
            known.stated += 1;
            known.found += u32::from(found);
            known.gains += gain;
            known.at_margin += u32::from(gain <= margin * 1.001);
            known.look_at_interval(&study, &costs);
        }
        known
    }

    /// As [`Known::play`], without a race: every arm in every round.
    pub fn play_fixed(disturbance: Disturbance, design: Design, studies: u32, seed: u64) -> Self {
        let mut known = Self::default();
        let metric = printed();
        let equal = vec![0.0; design.arms as usize];
        for number in 0..u64::from(studies) {
            let seed = seed.wrapping_mul(0x9e37_79b9).wrapping_add(number);
            let effect = |costs: &[f64], seed: u64| {
                let plan = plan(costs.len(), design.rounds, seed, &metric);
                let study = conduct(disturbance, costs, seed, plan);
                Analysis::with_resamples(&study, RESAMPLES_OF_POWER).arms[1].effect
            };
            let Some(stated) = effect(&equal, seed).filter(|effect| !effect.is_shown) else { continue };
            let Some(gain) = stated.smallest_detectable.map(f64::ln_1p) else { continue };
            let mut costs = equal.clone();
            costs[1] = -gain;
            let found = effect(&costs, !seed).is_some_and(|effect| effect.is_shown && effect.ratio < 1.0);
            known.stated += 1;
            known.found += u32::from(found);
            known.gains += gain;
        }
        known
    }

    fn look_at_interval(&mut self, study: &Study, costs: &[f64]) {
        let analysis = Analysis::with_resamples(study, RESAMPLES);
        let Advice::Use { best, .. } = analysis.advice else { return };
        let interval = analysis.arm(best).and_then(|result| result.effect?.interval);
        self.named += 1;
        let cost = costs[best.number() as usize].exp();
        // Where values repeat, an end of the interval is the truth, but for the last digit.
        let is_held =
            |interval: Interval| interval.low <= cost * (1.0 + 1e-9) && interval.high >= cost * (1.0 - 1e-9);
        self.held += u32::from(interval.is_none_or(is_held));
    }
}

#[cfg(test)]
mod simulated {
    use super::*;

    /// The short form of the table that `cargo xtask stats` prints: every disturbance, few studies of a
    /// design that had the most false sayings when differences were drawn in to a normal shape.
    #[test]
    fn equal_arms_are_said_to_differ_in_at_most_5_of_100_studies_whatever_disturbs_them() {
        let mut all = FalseSayings::default();
        for disturbance in Disturbance::ALL {
            let said = FalseSayings::play(disturbance, Design { arms: 4, rounds: 40 }, 120, 3);
            assert!(!said.breaks(0.05), "{}: {said:?}", disturbance.name());
            all.studies += said.studies;
            all.any += said.any;
        }
        // Over all of them the promise is held with room to spare, and not by saying nothing ever.
        assert!(share_interval(all.any, all.studies).1 < 0.05, "{all:?}");
        assert!(all.any > 10, "{all:?}");
    }

    #[test]
    fn a_stated_gain_is_found_in_about_four_studies_of_five_and_intervals_of_the_named_hold() {
        let mut all = Known::default();
        for disturbance in
            [Disturbance::Pareto, Disturbance::Spikes(0.3), Disturbance::Levels(0.35, 0.5, 0.02)]
        {
            let known = Known::play(disturbance, Design { arms: 4, rounds: 40 }, 150, 5);
            all.stated += known.stated;
            all.found += known.found;
            all.named += known.named;
            all.held += known.held;
            all.at_margin += known.at_margin;
        }
        // 75 to 85 and 93 to 97 of 100, as far as the 95 % interval of the share of so few studies can say.
        let may_lie_in = |count: u32, all: u32, least: f64, most: f64| {
            let (low, high) = share_interval(count, all);
            high >= least && low <= most
        };
        assert!(may_lie_in(all.found, all.stated, 0.75, 0.85), "{all:?}");
        assert!(may_lie_in(all.held, all.named, 0.93, 0.97), "{all:?}");
    }

    #[test]
    fn without_a_race_a_stated_gain_is_found_in_about_four_studies_of_five_too() {
        for disturbance in [Disturbance::Normal, Disturbance::Spikes(0.3)] {
            let known = Known::play_fixed(disturbance, Design { arms: 3, rounds: 12 }, 150, 5);
            let (low, high) = share_interval(known.found, known.stated);
            assert!(high >= 0.75 && low <= 0.85, "{}: {known:?}", disturbance.name());
            assert!(known.stated > 140, "{known:?}");
        }
    }

    #[test]
    fn a_clear_gain_is_shown_after_the_fewest_rounds_that_can_show_one() {
        for (arms, fewest) in [(2, 7), (4, 10), (13, 12)] {
            let design = Design { arms, rounds: 40 };
            let rounds = rounds_until_shown(Disturbance::Constant, design, 0.1, 3, 1);
            assert_eq!(rounds, [Some(fewest); 3], "{arms} arms");
        }
    }

    #[test]
    fn disturbances_are_finite_and_repeat_with_their_seed() {
        for disturbance in Disturbance::ALL {
            let draw = || {
                let mut noise = disturbance.begin(4);
                (0..500).map(|_| noise.next_run()).collect::<Vec<f64>>()
            };
            assert!(draw().iter().all(|value| value.is_finite()), "{disturbance:?}");
            assert_eq!(draw(), draw());
        }
    }
}
