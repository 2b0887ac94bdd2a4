//! Experiments whose truth is known: how often the engine is wrong, and how many runs it takes.
//!
//! A [`Setting`] is a machine with one kind of noise and some arms whose true costs are drawn. The
//! whole engine plays it, from the order of runs to the advice; only the program is made up. Over
//! thousands of settings a [`Tally`] counts how often the advice is worse than the best arm by more
//! than the margin, how often the race was settled, and the runs; `cargo xtask stats` prints it.
//!
//! What a race saves is measured against fixed designs, which run every arm in every block: see
//! [`is_certain`].

mod noise;

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::conditions::Conditions;
use crate::executor::{Arm, Clock, Ending, Executor, Run};
use crate::experiment::{Event, Experiment};
use crate::metric::Metric;
use crate::placement::Placement;
use crate::race::{Costs, Rules, judge};
use crate::random::Random;
use crate::schedule::{ArmId, Block};
use crate::stats::distribution::student_quantile;
use crate::stats::mean;
use crate::study::{Plan, Rounds, Study, Treatment};
use crate::verdict::{Advice, Analysis};
pub use noise::{Kind, Noise};

/// How often blocks are drawn again for an interval.
const RESAMPLES: u32 = 100;

/// Most arms besides the baseline.
const MOST_ARMS: usize = 12;

/// A machine and arms whose costs are known.
#[derive(Clone, Debug)]
pub struct Setting {
    /// What disturbs the runs.
    pub kind: Kind,
    /// What the arms cost, as logarithms; the baseline is the first and costs 0.
    pub costs: Vec<f64>,
    seed: u64,
}

impl Setting {
    /// The setting of this number: noises in turn, everything else drawn from the seed.
    pub fn draw(number: u32, seed: u64) -> Self {
        let mut random = Random::stream(seed, u64::from(number));
        let kind = Kind::ALL[number as usize % Kind::ALL.len()];
        let arms = 1 + random.index(MOST_ARMS);
        let style = random.index(4);
        let lucky = random.index(arms);
        let cost = |arm: usize, random: &mut Random| match style {
            // Nothing makes a difference.
            0 => 0.0,
            // Half of the arms are like the baseline, the others anything from much better to a disaster.
            1 if random.unit() < 0.5 => 0.003 * random.normal(),
            1 => between(-0.15, 0.4, random),
            // All differ, by little.
            2 => between(-0.05, 0.05, random),
            // One is better than all others, which are nearly the same.
            _ if arm == lucky => -between(0.02, 0.1, random),
            _ => 0.005 * random.normal(),
        };
        let costs = std::iter::once(0.0).chain((0..arms).map(|arm| cost(arm, &mut random))).collect();
        Self { kind, costs, seed: random.bits() }
    }

    /// Plays a study of this setting.
    pub fn play(&self, rounds: u32, race: Option<Rules>) -> Study {
        let treatments =
            (0..self.costs.len()).map(|arm| Treatment::new(format!("arm {arm}"), Placement::DEFAULT));
        let mut plan = Plan::new(treatments, Metric::Wall, Rounds::Exactly(rounds), self.seed)
            .expect("there are arms and rounds");
        plan.race = race;
        let clock = PlayedClock(Cell::new(Duration::ZERO));
        let mut executor = Played { setting: self, noise: self.kind.begin(self.seed), clock: &clock };
        Experiment {
            executor: &mut executor,
            clock: &clock,
            observer: &mut |_: Event<'_>| {},
            interrupt: &AtomicBool::new(false),
        }
        .conduct(plan, Conditions::default())
    }

    /// By how much an arm costs more than the best, as a share.
    pub fn loss(&self, arm: ArmId) -> f64 {
        let best = self.costs.iter().copied().fold(f64::INFINITY, f64::min);
        (self.costs[arm.number() as usize] - best).exp_m1()
    }
}

fn between(low: f64, high: f64, random: &mut Random) -> f64 {
    low + (high - low) * random.unit()
}

struct PlayedClock(Cell<Duration>);

impl Clock for PlayedClock {
    fn now(&self) -> Duration {
        self.0.get()
    }
}

/// Runs that cost no time.
struct Played<'a> {
    setting: &'a Setting,
    noise: Noise,
    clock: &'a PlayedClock,
}

impl Executor for Played<'_> {
    fn run(&mut self, arm: &Arm) -> Run {
        let cost = self.setting.costs[arm.id.number() as usize] + self.noise.next_run();
        let wall = Duration::from_secs_f64(10.0 * cost.exp());
        self.clock.0.set(self.clock.0.get() + wall);
        Run { wall: Some(wall), ..Run::ended(Ending::Done) }
    }
}

/// What one study came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the advice is worse than the best arm by more than the margin.
    pub is_wrong: bool,
    /// Whether the study was sure of its advice: the race was settled, or see [`is_certain`].
    pub is_certain: bool,
    /// Runs, the warm-up not counted.
    pub runs: u64,
}

impl Outcome {
    /// Looks at a study. Of its intervals nothing but whether they hold 1 is needed, for which few
    /// resamples are enough.
    pub fn of(setting: &Setting, study: &Study, rules: &Rules) -> Self {
        let measured = study.records.iter().filter(|record| record.block != Block::WarmUp);
        Self {
            is_wrong: advised(study).is_some_and(|arm| setting.loss(arm) > rules.margin),
            is_certain: match study.plan.race {
                Some(_) => study.race.settled.is_some(),
                None => is_certain(&study.costs(), rules),
            },
            runs: measured.count() as u64,
        }
    }
}

/// What many studies of one design came to: counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Studies.
    pub studies: u32,
    /// Those that were wrong.
    pub wrong: u32,
    /// Those that were certain.
    pub certain: u32,
    /// Those that were certain and wrong.
    pub certain_and_wrong: u32,
    /// Runs of all of them.
    pub runs: u64,
}

impl Tally {
    fn add(&mut self, outcome: Outcome) {
        self.studies += 1;
        self.wrong += u32::from(outcome.is_wrong);
        self.certain += u32::from(outcome.is_certain);
        self.certain_and_wrong += u32::from(outcome.is_certain && outcome.is_wrong);
        self.runs += outcome.runs;
    }

    /// A count as a share of the studies.
    pub fn share(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.studies.max(1))
    }

    /// Runs of a study, on average.
    pub fn mean_runs(&self) -> f64 {
        self.runs as f64 / f64::from(self.studies.max(1))
    }
}

/// The arm that the advice comes to; to change nothing is the baseline.
fn advised(study: &Study) -> Option<ArmId> {
    match Analysis::with_resamples(study, RESAMPLES).advice {
        Advice::Use { best, .. } => Some(best),
        Advice::Keep { .. } => Some(ArmId::BASELINE),
        Advice::TooFewRounds { .. } | Advice::BaselineFailed(_) | Advice::NothingToCompare => None,
    }
}

/// Whether a fixed design can be as sure as a settled race is: the race's rule for its last block,
/// with Student's t, which needs fewer blocks than what may be looked at all the time.
pub fn is_certain(costs: &Costs, rules: &Rules) -> bool {
    let doubt = rules.doubt(costs.len().saturating_sub(1));
    let is_above = |differences: &[f64]| {
        let count = differences.len() as f64;
        let Some(mean) = mean(differences).filter(|_| differences.len() > 1) else { return false };
        let squares: f64 = differences.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        mean > error * student_quantile(1.0 - doubt, differences.len() as u32 - 1)
    };
    judge(costs, Block::WarmUp, rules.margin, is_above).settled.is_some()
}

/// A race and fixed designs over the same settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The race.
    pub race: Tally,
    /// The race by kind of noise.
    pub by_kind: Vec<(Kind, Tally)>,
    /// Fixed designs by their number of blocks, ascending.
    pub fixed: Vec<(u32, Tally)>,
}

impl Comparison {
    /// Plays this many settings, as a race of at most `rounds` blocks and as each of the fixed designs.
    pub fn play(studies: u32, seed: u64, rounds: u32, designs: &[u32]) -> Self {
        let rules = Rules::DEFAULT;
        let mut race = Tally::default();
        let mut by_kind: Vec<(Kind, Tally)> = Kind::ALL.map(|kind| (kind, Tally::default())).into();
        let mut fixed: Vec<(u32, Tally)> = designs.iter().map(|blocks| (*blocks, Tally::default())).collect();
        for number in 0..studies {
            let setting = Setting::draw(number, seed);
            let play = |blocks, race| Outcome::of(&setting, &setting.play(blocks, race), &rules);
            let outcome = play(rounds, Some(rules));
            race.add(outcome);
            by_kind
                .iter_mut()
                .filter(|(kind, _)| *kind == setting.kind)
                .for_each(|(_, tally)| tally.add(outcome));
            fixed.iter_mut().for_each(|(blocks, tally)| tally.add(play(*blocks, None)));
        }
        Self { race, by_kind, fixed }
    }

    /// The smallest of the fixed designs that is certain as often as the race and wrong no more often.
    pub fn equal(&self) -> Option<&(u32, Tally)> {
        let as_good =
            |(_, tally): &&(u32, Tally)| tally.certain >= self.race.certain && tally.wrong <= self.race.wrong;
        self.fixed.iter().find(as_good)
    }
}

#[cfg(test)]
mod tests;
