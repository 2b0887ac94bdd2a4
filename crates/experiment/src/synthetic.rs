//! Experiments whose truth is known: how often the engine is wrong, and how many runs it takes.
//!
//! A [`Setting`] is a machine with one kind of noise and some arms whose true costs are drawn. The
//! whole engine plays it, from the order of runs to the advice; only the program is made up. Over
//! thousands of settings a [`Tally`] counts how often the advice is worse than the best arm by more
//! than the margin, how often the race was settled, and the runs; `cargo xtask stats` prints it.
//!
//! A setting can have arms of several kinds ([`Setting::of_kinds`]), which a race crosses when it is
//! settled: what two do together is drawn too, from both gains to no gain at all.
//!
//! Whether the engine keeps its promise where nothing differs, whatever disturbs the runs, and finds what
//! it says that it would: see [`equal`].
//!
//! Whether comparisons of suites keep theirs: see [`suites`].
//!
//! What a race saves is measured against fixed designs, which run every arm in every block: see
//! [`is_certain`].

pub mod disturbance;
pub mod equal;
mod noise;
pub(crate) mod series;
pub mod suites;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nodewise_machine::{CpuId, NodeId, PolicyMode};
use nodewise_syscall::TransparentHuge;

use crate::executor::{Arm, Ending, Executor, Run};
use crate::experiment::{Event, Experiment};
use crate::metric::Metric;
use crate::race::crossing::parts;
use crate::race::{Costs, Rules, Shares, Shown, differences, median_difference};
use crate::schedule::{ArmId, Block};
use crate::study::{Plan, Rounds, Study, Treatment};
use crate::verdict::{Advice, Analysis};
use nodewise_machine::conditions::Conditions;
use nodewise_machine::placement::{HugePages, Placement};
use nodewise_stats::aligned::{Aligned, aligned_rank, shift};
use nodewise_stats::median;
use nodewise_stats::random::Random;
use nodewise_stats::signed_rank::signed_rank;
use nodewise_syscall::clock::Clock;
pub use noise::{Noise, NoiseKind};

/// How often blocks are drawn again for an interval.
const RESAMPLES: u32 = 100;

/// Most arms besides the baseline.
const MOST_ARMS: usize = 12;

/// Bound that thousands of studies must keep: the share whose advice is over the margin worse than the best.
pub const MOST_WRONG: f64 = 0.05;

/// The same of studies whose race was settled.
pub const MOST_CERTAIN_AND_WRONG: f64 = 0.01;

/// The share of studies whose race is settled, where nothing is crossed.
pub const LEAST_CERTAIN: f64 = 0.9;

/// The runs of a race, as a share of those of the fixed design that is as good, where nothing is crossed.
pub const MOST_RUNS: f64 = 0.5;

/// A machine and arms whose costs are known.
#[derive(Clone, Debug)]
pub struct Setting {
    pub kind: NoiseKind,
    /// The costs of the arms, as logarithms; the baseline is the first and costs 0.
    pub costs: Vec<f64>,
    /// How much of a gain is left when it comes on top of another; `None` where arms are of one kind.
    pub together: Option<f64>,
    seed: u64,
}

impl Setting {
    /// The setting of this number: noises in turn, everything else drawn from the seed.
    pub fn draw(number: u32, seed: u64) -> Self {
        let mut random = Random::stream(seed, u64::from(number));
        let kind = NoiseKind::ALL[number as usize % NoiseKind::ALL.len()];
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
        Self { kind, costs, together: None, seed: random.bits() }
    }

    /// As [`Setting::draw`], with arms that set memory, CPUs or huge pages, and can be crossed.
    pub fn of_kinds(number: u32, seed: u64) -> Self {
        let setting = Self::draw(number, seed);
        let mut random = Random::stream(seed ^ setting.seed, u64::from(number));
        // Gains that add up, that hide each other in part, or that spoil each other.
        let together = between(-0.5, 1.2, &mut random);
        Self { together: Some(together), ..setting }
    }

    /// Returns the treatments of the arms: merely distinct, or setting parts of a placement in turn.
    fn treatments(&self) -> Vec<Treatment> {
        let placement = |arm: u32| match (self.together, arm % 3) {
            (None, _) => Placement::DEFAULT,
            _ if arm == 0 => Placement::DEFAULT,
            (_, 0) => Placement::on_cpus([CpuId::new(arm)].into_iter().collect()),
            (_, 1) => Placement::memory(PolicyMode::Preferred, [NodeId::new(arm)].into_iter().collect()),
            (_, _) => Placement { huge: Some(huge_of(arm)), ..Placement::DEFAULT },
        };
        let treatment = |arm| Treatment::new(format!("arm {arm}"), placement(arm));
        (0..self.costs.len() as u32).map(treatment).collect()
    }

    /// The cost of an arm: of a cross the least of its parts, and what is left of the others' gains.
    fn cost(&self, arm: &Arm) -> f64 {
        let number = arm.id.number() as usize;
        let (Some(together), true) = (self.together, number >= self.costs.len()) else {
            return self.costs[number];
        };
        let sets = |one: &Placement| {
            let Placement { policy, cpus, huge } = &arm.placement;
            let same = [
                one.policy.is_some() && one.policy == *policy,
                one.cpus.is_some() && one.cpus == *cpus,
                one.huge.is_some() && one.huge == *huge,
            ];
            same.contains(&true)
        };
        // Where two arms set the same, the cross was made of the better one.
        let mut least_of: BTreeMap<_, f64> = BTreeMap::new();
        for (treatment, cost) in self.treatments().iter().zip(&self.costs) {
            if sets(&treatment.placement) {
                let least = least_of.entry(parts(&treatment.placement)).or_insert(*cost);
                *least = least.min(*cost);
            }
        }
        let least = least_of.values().copied().fold(f64::INFINITY, f64::min);
        least + together * (least_of.values().sum::<f64>() - least)
    }

    /// Plays a study of this setting.
    pub fn play(&self, rounds: u32, race: Option<Rules>) -> Study {
        self.play_arms(self.treatments(), rounds, race)
    }

    /// Plays a study of these arms, the first of which are the setting's own.
    fn play_arms(&self, treatments: Vec<Treatment>, rounds: u32, race: Option<Rules>) -> Study {
        let mut plan = Plan::new(treatments, Metric::Wall, Rounds::Exactly(rounds), self.seed)
            .expect("there are arms and rounds");
        plan.race = race;
        let plan = if race.is_some() { plan.with_crossing() } else { plan };
        let clock = PlayedClock(Cell::new(Duration::ZERO));
        let noise = self.kind.begin(self.seed);
        let mut executor = Played { setting: self, costs: BTreeMap::new(), noise, clock: &clock };
        Experiment {
            executor: &mut executor,
            clock: &clock,
            observer: &mut |_: Event<'_>| {},
            interrupt: &AtomicBool::new(false),
        }
        .conduct(plan, Conditions::default())
    }

    /// By how much an arm of a study costs more than the best that ran there, as a share.
    pub fn loss(&self, arm: ArmId, study: &Study) -> f64 {
        let arms = study.plan.arms();
        let best = arms.iter().map(|arm| self.cost(arm)).fold(f64::INFINITY, f64::min);
        (self.cost(study.plan.arm(arm)) - best).exp_m1()
    }
}

/// There are three ways to have huge pages; more arms than that share them.
fn huge_of(arm: u32) -> HugePages {
    let advised = HugePages::Transparent(TransparentHuge::OnlyAdvised);
    [HugePages::ALWAYS, HugePages::NEVER, advised][arm as usize / 3 % 3]
}

fn between(low: f64, high: f64, random: &mut Random) -> f64 {
    low + (high - low) * random.unit()
}

#[derive(Default)]
struct PlayedClock(Cell<Duration>);

impl Clock for PlayedClock {
    fn now(&self) -> Duration {
        self.0.get()
    }
}

/// Runs that cost no time.
struct Played<'a> {
    setting: &'a Setting,
    /// Of the arms that have run.
    costs: BTreeMap<ArmId, f64>,
    noise: Noise,
    clock: &'a PlayedClock,
}

impl Executor for Played<'_> {
    fn run(&mut self, arm: &Arm) -> Run {
        let cost = *self.costs.entry(arm.id).or_insert_with(|| self.setting.cost(arm));
        let cost = cost + self.noise.next_run();
        let wall = Duration::from_secs_f64(10.0 * cost.exp());
        self.clock.0.set(self.clock.0.get() + wall);
        Run { wall: Some(wall), ..Run::ended(Ending::Done) }
    }
}

/// Result of one study.
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
    pub fn from_study(setting: &Setting, study: &Study, rules: &Rules) -> Self {
        let measured = study.records.iter().filter(|record| record.block != Block::WarmUp);
        Self {
            is_wrong: advised(study).is_some_and(|arm| setting.loss(arm, study) > rules.margin),
            is_certain: match study.plan.race {
                Some(_) => study.race.settled.is_some(),
                None => is_certain(study, rules),
            },
            runs: measured.count() as u64,
        }
    }
}

/// Results of many studies of one design: counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub studies: u32,
    pub wrong: u32,
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

/// Whether a fixed design can be as sure as a settled race is: the race's rule for its last block, with
/// the same division of the error, by the aligned rank test (arms with the baseline) and the signed-rank
/// test (two other arms), which need fewer blocks than what may be looked at all the time and trust no
/// model of the noise either.
pub fn is_certain(study: &Study, rules: &Rules) -> bool {
    let costs = study.costs();
    let plan = &study.plan;
    let shares = Shares::new(rules.error, plan.treatments().len(), false);
    let left: Vec<ArmId> = costs.keys().copied().collect();
    let shown = Shown {
        costs_more: |one, other| is_above(&costs, one, other, 0.0, shares.costs_more(one, other)),
        is_no_better: |one, other| {
            is_above(&costs, one, other, rules.margin.ln_1p(), shares.is_within(other, one))
        },
    };
    let cost = |arm| median_difference(&costs, arm, ArmId::BASELINE).unwrap_or(f64::INFINITY);
    shown.settled(&left, |arm| plan.things(plan.arm(arm)), cost).is_some()
}

/// Whether one arm, with `more` on top of its costs, is shown at this one-sided level to cost more than
/// another.
fn is_above(costs: &Costs, one: ArmId, other: ArmId, more: f64, level: f64) -> bool {
    let (Some(first), Some(second)) = (costs.get(&one), costs.get(&other)) else { return false };
    if !one.is_baseline() && !other.is_baseline() {
        let differences: Vec<f64> = differences(first, second).concat().iter().map(|d| d + more).collect();
        let is_positive = median(&differences).is_some_and(|middle| middle > 0.0);
        return is_positive && signed_rank(&differences).is_some_and(|test| test.p / 2.0 <= level);
    }
    // The baseline's two runs are the others of a block, whichever side it is on.
    let (arm, baseline, sign) = if one.is_baseline() { (second, first, -1.0) } else { (first, second, 1.0) };
    let block = |(block, runs): (&Block, &Vec<f64>)| {
        Some(Aligned { run: *runs.first()? + sign * more, others: baseline.get(block)?.clone() })
    };
    let blocks: Vec<Aligned> = arm.iter().filter_map(block).collect();
    let is_positive = shift(&blocks).is_some_and(|shift| sign * shift > 0.0);
    is_positive && aligned_rank(&blocks).is_some_and(|p| p / 2.0 <= level)
}

/// A race and fixed designs over the same settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub race: Tally,
    /// Studies in which it went on with crosses.
    pub crossed: u32,
    /// The race by kind of noise.
    pub by_kind: Vec<(NoiseKind, Tally)>,
    /// Fixed designs by their number of blocks, ascending.
    pub fixed: Vec<(u32, Tally)>,
}

impl Comparison {
    /// Plays this many settings, as a race of at most `rounds` blocks and as each of the fixed designs.
    pub fn play(studies: u32, seed: u64, rounds: u32, designs: &[u32]) -> Self {
        Self::from_draws(studies, rounds, designs, |number| Setting::draw(number, seed))
    }

    /// As [`Comparison::play`], with arms of several kinds: the fixed designs run all arms of the race,
    /// its crosses among them, from their first block on.
    pub fn play_kinds(studies: u32, seed: u64, rounds: u32, designs: &[u32]) -> Self {
        Self::from_draws(studies, rounds, designs, |number| Setting::of_kinds(number, seed))
    }

    fn from_draws(studies: u32, rounds: u32, designs: &[u32], draw: impl Fn(u32) -> Setting) -> Self {
        let rules = Rules::DEFAULT;
        let (mut race, mut crossed) = (Tally::default(), 0);
        let mut by_kind: Vec<(NoiseKind, Tally)> = NoiseKind::ALL.map(|kind| (kind, Tally::default())).into();
        let mut fixed: Vec<(u32, Tally)> = designs.iter().map(|blocks| (*blocks, Tally::default())).collect();
        for number in 0..studies {
            let setting = draw(number);
            let study = setting.play(rounds, Some(rules));
            let arms: Vec<Treatment> = study.plan.arms().iter().map(Treatment::from_arm).collect();
            let play = |blocks| {
                Outcome::from_study(&setting, &setting.play_arms(arms.clone(), blocks, None), &rules)
            };
            let outcome = Outcome::from_study(&setting, &study, &rules);
            crossed += u32::from(study.race.crossed.is_some());
            race.add(outcome);
            by_kind
                .iter_mut()
                .filter(|(kind, _)| *kind == setting.kind)
                .for_each(|(_, tally)| tally.add(outcome));
            fixed.iter_mut().for_each(|(blocks, tally)| tally.add(play(*blocks)));
        }
        Self { race, crossed, by_kind, fixed }
    }

    /// The smallest of the fixed designs that is certain as often as the race and wrong no more often.
    pub fn equal(&self) -> Option<&(u32, Tally)> {
        let as_good =
            |(_, tally): &&(u32, Tally)| tally.certain >= self.race.certain && tally.wrong <= self.race.wrong;
        self.fixed.iter().find(as_good)
    }
}

#[cfg(test)]
mod simulated;
