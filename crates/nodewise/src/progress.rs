//! The line that says how far an experiment is, on a terminal only.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nodewise_experiment::experiment::{Event, Observer};
use nodewise_experiment::schedule::Block;
use nodewise_experiment::study::{Plan, Record, Rounds};
use nodewise_view::digest::study::duration;

/// The line.
pub struct Progress {
    bar: ProgressBar,
    pace: Pace,
    began: Instant,
}

/// How far an experiment is, and how long the rest takes at most.
#[derive(Debug)]
struct Pace {
    /// Runs of a round now.
    per_round: u32,
    is_race: bool,
    /// Rounds at most; `None` before the warm-up is over.
    rounds: Option<u32>,
    budget: Option<Duration>,
    /// The round that is under way, and how many of its runs have ended.
    round: u32,
    ended: u32,
    /// Runs so far, and their time.
    runs: u32,
    of_runs: Duration,
}

impl Pace {
    fn new(plan: &Plan) -> Self {
        let budget = match plan.rounds {
            Rounds::Within { budget, .. } => Some(budget),
            Rounds::Exactly(_) => None,
        };
        Self {
            per_round: plan.runs_per_block(),
            is_race: plan.race.is_some(),
            rounds: None,
            budget,
            round: 0,
            ended: 0,
            runs: 0,
            of_runs: Duration::ZERO,
        }
    }

    fn ended(&mut self, record: &Record) {
        self.runs += 1;
        self.of_runs = self.of_runs.saturating_add(record.run.wall.unwrap_or_default());
        self.ended += u32::from(!record.set_aside);
    }

    fn begins(&mut self, block: Block) {
        if block.number() != self.round {
            self.round = block.number();
            self.ended = 0;
        }
    }

    /// How long the rest takes at most, after this time; `None` before the warm-up is over.
    fn left(&self, elapsed: Duration) -> Option<Duration> {
        let rounds = self.rounds?;
        let per_run = self.of_runs.checked_div(self.runs).unwrap_or_default();
        // What comes before runs counts, too, but runs of a journal took no time now.
        let per_run = per_run.max(elapsed.checked_div(self.runs).unwrap_or_default());
        let rest = self.per_round.saturating_sub(self.ended);
        let runs = rounds.saturating_sub(self.round).saturating_mul(self.per_round).saturating_add(rest);
        let left = per_run.saturating_mul(runs);
        Some(self.budget.map_or(left, |budget| left.min(budget.saturating_sub(elapsed))))
    }

    /// Says in words what is done now.
    fn words(&self, arm: &str, elapsed: Duration) -> String {
        let (Some(rounds), Some(left)) = (self.rounds, self.left(elapsed)) else {
            return format!("warm-up {} of {}: {arm}", self.ended + 1, self.per_round);
        };
        let (most, about) = if self.is_race { ("at most ", "at most") } else { ("", "about") };
        format!("round {} of {most}{rounds}: {arm}; {about} {} left", self.round, duration(left))
    }
}

impl Progress {
    /// A line for this plan, on standard error.
    pub fn new(plan: &Plan) -> Self {
        let bar = ProgressBar::with_draw_target(None, target());
        if let Ok(style) = ProgressStyle::with_template(WARM_UP) {
            bar.set_style(style);
        }
        // A warm-up is not measured, so its seconds may be counted while it runs.
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_secs(1));
        }
        Self { bar, pace: Pace::new(plan), began: Instant::now() }
    }

    /// Takes the line away.
    pub fn finish(&self) {
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
    }
}

/// The line of a warm-up, with the seconds of its run, and that of rounds.
const WARM_UP: &str = "{msg}, {elapsed}";
const ROUNDS: &str = "{wide_msg}";

/// Where lines of progress are drawn: on a terminal only. Nothing ticks by itself while anything is
/// measured: a line is drawn by calls that come between runs and samples.
pub fn target() -> ProgressDrawTarget {
    if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

impl Observer for Progress {
    fn event(&mut self, event: Event<'_>) {
        let Self { bar, pace, began } = self;
        match event {
            Event::Begins { block, arm, .. } => {
                pace.begins(block);
                bar.set_message(pace.words(&arm.name, began.elapsed()));
                if block == Block::WarmUp {
                    bar.reset_elapsed();
                }
                bar.tick();
            }
            Event::Ended(record) => pace.ended(record),
            Event::Fixed { rounds, .. } => {
                pace.rounds = Some(rounds);
                bar.disable_steady_tick();
                if let Ok(style) = ProgressStyle::with_template(ROUNDS) {
                    bar.set_style(style);
                }
            }
            // The baseline goes on even when it is out.
            Event::Out(out) if out.arm.is_baseline() => {}
            Event::Out(_) => pace.per_round = pace.per_round.saturating_sub(1),
            Event::Crossed(crossed) => {
                pace.per_round = pace.per_round.saturating_add(crossed.arms.len() as u32);
            }
            Event::Dropped(dropped) => {
                pace.per_round = pace.per_round.saturating_sub(1);
                bar.set_message(format!("given up: {}", dropped.ending));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_experiment::executor::{Ending, Run};
    use nodewise_experiment::metric::Metric;
    use nodewise_experiment::race::Rules;
    use nodewise_experiment::schedule::{ArmId, Slot};
    use nodewise_experiment::study::Treatment;
    use nodewise_machine::placement::Placement;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A plan of three placements: four runs a round.
    fn pace(rounds: Rounds, race: bool) -> Pace {
        let arms = ["default", "a", "b"].map(|name| Treatment::new(name, Placement::DEFAULT));
        let plan = Plan::new(arms, Metric::Wall, rounds, 1).unwrap();
        Pace::new(&if race { plan.with_race(Rules::DEFAULT) } else { plan })
    }

    fn run(pace: &mut Pace, block: Block, took: u64) {
        pace.begins(block);
        let run = Run { wall: Some(seconds(took)), ..Run::ended(Ending::Done) };
        let slot = Slot { arm: ArmId::BASELINE, replicate: 0 };
        pace.ended(&Record { block, place: 0, slot, began: Duration::ZERO, run, set_aside: false });
    }

    #[test]
    fn the_warm_up_is_counted_by_runs_and_rounds_have_an_estimate_that_is_never_below_what_they_take() {
        let mut pace = pace(Rounds::Exactly(10), true);
        assert_eq!(pace.words("default", Duration::ZERO), "warm-up 1 of 4: default");
        run(&mut pace, Block::WarmUp, 3);
        assert_eq!(pace.words("a", seconds(3)), "warm-up 2 of 4: a");
        (0..3).for_each(|_| run(&mut pace, Block::WarmUp, 3));
        pace.rounds = Some(10);
        pace.begins(Block::Measured(1));
        assert_eq!(pace.words("b", seconds(12)), "round 1 of at most 10: b; at most 2m 00s left");
        run(&mut pace, Block::Measured(1), 3);
        pace.per_round = 3;
        assert_eq!(pace.left(seconds(15)), Some(seconds(3 * (2 + 9 * 3))));
        // Preparations count.
        assert_eq!(pace.left(seconds(50)), Some(seconds(10 * (2 + 9 * 3))));
    }

    #[test]
    fn a_budget_bounds_the_estimate() {
        let mut pace = pace(Rounds::Within { budget: seconds(60), at_most: 200 }, true);
        (0..4).for_each(|_| run(&mut pace, Block::WarmUp, 3));
        pace.rounds = Some(200);
        pace.begins(Block::Measured(1));
        assert_eq!(pace.left(seconds(12)), Some(seconds(48)));
        assert_eq!(pace.left(seconds(70)), Some(Duration::ZERO));
    }

    #[test]
    fn without_a_race_every_round_is_run() {
        let mut pace = pace(Rounds::Exactly(7), false);
        (0..4).for_each(|_| run(&mut pace, Block::WarmUp, 1));
        pace.rounds = Some(7);
        pace.begins(Block::Measured(7));
        assert_eq!(pace.words("a", seconds(28)), "round 7 of 7: a; about 28.0 s left");
    }
}
