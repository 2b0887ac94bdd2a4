//! Suites in which nothing differs: how often a comparison calls something faster or slower, whatever
//! disturbs the runs; and a row with a known gain: how often it is found where that was stated, and how
//! often intervals hold the truth.
//!
//! The conductor of suites plays them, from the order of runs to the verdict; only the programs are made up.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::PlayedClock;
use super::disturbance::{Disturbance, Disturbed};
use crate::compare::{Comparison, Verdict};
use crate::executor::{Arm, Ending, Run};
use crate::metric::Metric;
use crate::study::{Plan, Rounds, Treatment};
use crate::suite::conduct::{Agenda, Conductor, Stage};
use crate::suite::parse::parse;
use crate::suite::session::Session;
use crate::suite::{Case, Suite};
use nodewise_machine::conditions::Conditions;
use nodewise_machine::placement::Placement;
use nodewise_stats::Interval;
use nodewise_stats::share::share_interval;

/// How often rounds are drawn again for an interval: enough for what is counted here.
const RESAMPLES: u32 = 400;

/// The rows of each suite.
const ROWS: u32 = 5;

/// From this many rounds on power is promised also where most of the noise is in rare runs.
const ROUNDS_FOR_RARE: u32 = 20;

/// A change that is stated to be found with 80 % power is found in at least and at most these shares.
const POWER: (f64, f64) = (0.75, 0.85);

/// The kind of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// This many placements with the first, in one session.
    Placements(u32),
    Sessions,
}

/// The kind and the length of a played suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    pub compared: Compared,
    pub rounds: u32,
}

impl Design {
    /// One placement and three beside the first, and two sessions; few rounds and many.
    pub const ALL: [Self; 5] = [
        Self { compared: Compared::Placements(1), rounds: 8 },
        Self { compared: Compared::Placements(1), rounds: 100 },
        Self { compared: Compared::Placements(3), rounds: 10 },
        Self { compared: Compared::Sessions, rounds: 7 },
        Self { compared: Compared::Sessions, rounds: 20 },
    ];

    /// Whether the promise is made under this disturbance: for placements always, because their order is
    /// drawn in each round; for two sessions where runs do not depend on when they ran, because what is
    /// different in one session as a whole is a difference between the two.
    pub fn promises(&self, disturbance: Disturbance) -> bool {
        self.compared != Compared::Sessions || !disturbance.depends_on_time()
    }

    /// Whether a change that is stated to be found with 80 % power is promised to be: for two sessions, where the same
    /// is promised as above, and what was seen can say how likely a change is found.
    ///
    /// It cannot where values repeat: there a slightly smaller change is found never, and a slightly larger one
    /// always. And not in few rounds of noise of which most is in rare runs: most studies have seen none of them.
    pub fn promises_power(&self, disturbance: Disturbance) -> bool {
        let repeats = matches!(
            disturbance,
            Disturbance::Quantised | Disturbance::Ties | Disturbance::Constant | Disturbance::TwoValued
        );
        let is_of_sessions = self.compared == Compared::Sessions;
        is_of_sessions
            && self.promises(disturbance)
            && !repeats
            && (!disturbance.is_rare() || self.rounds >= ROUNDS_FOR_RARE)
    }

    /// Plays it once; the first row gains this much, as a logarithm.
    fn play(&self, disturbance: Disturbance, gain: f64, resamples: u32, seed: u64) -> Comparison {
        match self.compared {
            Compared::Placements(others) => {
                let session = session(disturbance, others + 1, self.rounds, gain, seed);
                Comparison::from_placements_with(&session, resamples)
            }
            Compared::Sessions => {
                let before = session(disturbance, 1, self.rounds, 0.0, seed);
                let after = session(disturbance, 1, self.rounds, gain, !seed);
                Comparison::between_with(&before, &after, resamples)
            }
        }
    }
}

/// A stage without programs. Of several placements the second has the gain, of one the first.
struct Played<'a> {
    noise: Disturbed,
    gain: f64,
    gaining: u32,
    clock: &'a PlayedClock,
}

impl Stage for Played<'_> {
    fn prepare(&mut self, _: &Case<'_>) -> Result<(), String> {
        Ok(())
    }

    fn run(&mut self, case: &Case<'_>, arm: &Arm) -> Run {
        let gains = case.benchmark.name == "row 0" && arm.id.number() == self.gaining;
        let cost = self.noise.next_run() - if gains { self.gain } else { 0.0 };
        let wall = Duration::from_millis(1);
        self.clock.0.set(self.clock.0.get() + wall);
        Run { printed: Some(10.0 * cost.exp()), wall: Some(wall), ..Run::ended(Ending::Done) }
    }
}

fn suite() -> Suite {
    let row = |row| {
        format!(
            "[[benchmark]]\nname = \"row {row}\"\ncommand = \"x\"\nmetric = \"([0-9.]+)\"\nthreads = [1]\nbetter = \"lower\"\n"
        )
    };
    let rows: String = (0..ROWS).map(row).collect();
    parse(&format!("title = \"played\"\n{rows}")).expect("the suite is well-formed")
}

fn session(disturbance: Disturbance, placements: u32, rounds: u32, gain: f64, seed: u64) -> Session {
    let suite = suite();
    let cases = suite.cases(1);
    let names = (0..placements).map(|arm| Treatment::new(format!("arm {arm}"), Placement::DEFAULT));
    let rounds = Rounds::Exactly(rounds);
    let plan = Plan::new(names, Metric::Wall, rounds, seed).expect("there are arms and rounds");
    let clock = PlayedClock::default();
    let gaining = u32::from(placements > 1);
    let mut stage = Played { noise: disturbance.begin(seed), gain, gaining, clock: &clock };
    let agenda = Agenda { cases: &cases, arms: plan.arms(), rounds, seed };
    let outcome = Conductor {
        stage: &mut stage,
        clock: &clock,
        observer: &mut |_| {},
        interrupt: &AtomicBool::new(false),
    }
    .conduct(&agenda);
    Session {
        suite: suite.title.clone(),
        origin: None,
        conditions: Conditions::default(),
        settings: Default::default(),
        tools: Default::default(),
        seed,
        rounds: outcome.rounds,
        end: outcome.end,
        took: outcome.took,
        placements: plan.arms().iter().map(|arm| arm.name.clone()).collect(),
        cases: outcome.cases,
        skipped: Vec::new(),
    }
}

/// Results of comparisons: counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Comparisons of what is equal.
    pub comparisons: u32,
    /// A row was called faster.
    pub faster: u32,
    /// A row was called slower.
    pub slower: u32,
    pub any: u32,
    pub rows: u32,
    /// Those whose interval held the truth.
    pub rows_held: u32,
    /// Geometric means with an interval.
    pub means: u32,
    /// Those whose interval held the truth.
    pub means_held: u32,
    /// Comparisons that stated which change of the first row would be found with 80 % power.
    pub stated: u32,
    /// Those in which it was found when the row had it, as a gain or as a loss.
    pub found: u32,
}

impl Tally {
    /// Plays this many comparisons of what is equal, and beside each of the first `with_gain` one in which a
    /// row has the change that was stated, as a gain or as a loss.
    pub fn play(
        disturbance: Disturbance,
        design: Design,
        comparisons: u32,
        with_gain: u32,
        seed: u64,
    ) -> Self {
        let mut tally = Self::default();
        // A change that is stated is drawn from them, too.
        let resamples = if with_gain > 0 { 4 * RESAMPLES } else { RESAMPLES };
        for number in 0..comparisons {
            let seed = seed.wrapping_mul(0x9e37_79b9).wrapping_add(2 * u64::from(number));
            let comparison = design.play(disturbance, 0.0, resamples, seed);
            tally.add(&comparison);
            let row = &comparison.tables[0].rows[0];
            let stated = row.change.filter(|_| number < with_gain && row.verdict == Verdict::NoDifference);
            let Some(stated) = stated.and_then(|change| change.smallest_detectable) else { continue };
            // Every other one is a loss: with skewed noise that is found more often, or more seldom.
            let (gain, verdict) = match number % 2 {
                0 => (stated.ln_1p(), Verdict::Better),
                _ => (-stated.ln_1p(), Verdict::Worse),
            };
            let other = design.play(disturbance, gain, RESAMPLES, seed.wrapping_add(1));
            tally.stated += 1;
            tally.found += u32::from(other.tables[0].rows[0].verdict == verdict);
        }
        tally
    }

    fn add(&mut self, comparison: &Comparison) {
        let rows = || comparison.tables.iter().flat_map(|table| &table.rows);
        let has = |verdict: Verdict| rows().any(|row| row.verdict == verdict);
        let (faster, slower) = (has(Verdict::Better), has(Verdict::Worse));
        self.comparisons += 1;
        self.faster += u32::from(faster);
        self.slower += u32::from(slower);
        self.any += u32::from(faster || slower);
        for interval in rows().filter_map(|row| row.change?.interval) {
            self.rows += 1;
            self.rows_held += u32::from(holds_one(interval));
        }
        let means = comparison.tables.iter().flat_map(|table| &table.means);
        for interval in means.filter_map(|mean| mean.interval) {
            self.means += 1;
            self.means_held += u32::from(holds_one(interval));
        }
    }

    /// Whether more comparisons said something false than the promise allows, beyond what chance explains:
    /// the lower end of the interval of the share lies above it.
    pub fn breaks(&self, promise: f64) -> bool {
        share_interval(self.any, self.comparisons).0 > promise
    }

    /// Whether the changes that were stated are found more seldom or more often than that, beyond what chance explains.
    pub fn breaks_power(&self) -> bool {
        let (low, high) = share_interval(self.found, self.stated);
        self.stated > 0 && (high < POWER.0 || low > POWER.1)
    }

    /// Whether intervals of rows, or of means, hold the truth in fewer comparisons than this, beyond what chance
    /// explains.
    pub fn breaks_intervals(&self, least: f64) -> bool {
        let falls_short = |held: u32, all: u32| all > 0 && share_interval(held, all).1 < least;
        falls_short(self.rows_held, self.rows) || falls_short(self.means_held, self.means)
    }
}

/// Whether an interval holds 1, but for the last digits.
fn holds_one(interval: Interval) -> bool {
    interval.low <= 1.0 + 1e-9 && interval.high >= 1.0 - 1e-9
}

#[cfg(test)]
mod simulated {
    use super::*;

    /// The short form of the table that `cargo xtask stats --table compare` prints: skewed, bimodal and
    /// spiky noise, ties, and noise that depends on time.
    #[test]
    fn what_is_equal_is_called_different_in_at_most_5_of_100_comparisons_whatever_disturbs_it() {
        let mut all = Tally::default();
        for disturbance in [
            Disturbance::Pareto,
            Disturbance::Levels(0.35, 0.5, 0.005),
            Disturbance::Levels(0.1, 0.3, 0.005),
            Disturbance::Spikes(0.2),
            Disturbance::Ties,
            Disturbance::Bursts,
        ] {
            for design in [Design::ALL[0], Design::ALL[3]] {
                if !design.promises(disturbance) {
                    continue;
                }
                let tally = Tally::play(disturbance, design, 50, 0, 3);
                assert!(!tally.breaks(0.05), "{}, {design:?}: {tally:?}", disturbance.name());
                all.comparisons += tally.comparisons;
                all.any += tally.any;
            }
        }
        assert!(share_interval(all.any, all.comparisons).1 < 0.05, "{all:?}");
        assert!(all.any > 3, "a comparison that never says anything proves nothing: {all:?}");
    }
}
