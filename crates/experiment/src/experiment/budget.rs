//! Time limit of a study. The budget holds everything that a study does: the warm-up,
//! preparations, waiting for the CPUs to cool down. It is kept within the length of one run.

use std::time::Duration;

use crate::schedule::Block;
use crate::study::{Rounds, TooShort};

/// How long the steps of a study take, as far as it has come: a step is a run with all that comes
/// before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// Steps so far and their time.
    steps: u32,
    spent: Duration,
    /// The shortest step of the warm-up: no round is quicker than this promises.
    quickest: Option<Duration>,
    /// Steps and time of the last whole block.
    last_block: Option<(u32, Duration)>,
    /// Steps and time of the block that is under way.
    block: (u32, Duration),
}

impl Pace {
    /// Adds a step of a block.
    pub fn step(&mut self, block: Block, time: Duration) {
        self.steps += 1;
        self.spent = self.spent.saturating_add(time);
        self.block = (self.block.0 + 1, self.block.1.saturating_add(time));
        if block == Block::WarmUp {
            self.quickest = Some(self.quickest.map_or(time, |quickest| quickest.min(time)));
        }
    }

    /// A block has ended.
    pub fn end_of_block(&mut self) {
        self.last_block = Some(self.block).filter(|(steps, _)| *steps > 0);
        self.block = Default::default();
    }

    /// How long this many steps take, judged by the last block, or by all steps so far.
    pub fn of_steps(&self, steps: u32) -> Duration {
        let (of, time) = self.last_block.unwrap_or((self.steps, self.spent));
        time.checked_div(of).unwrap_or_default().saturating_mul(steps)
    }

    /// How long one step takes.
    pub fn of_one(&self) -> Duration {
        self.of_steps(1)
    }

    /// The time of a study that is too short for a round, as soon as the warm-up shows it: where even at
    /// the pace of its shortest step the rest of it and one round would not fit. `round` is the number of
    /// runs of a block, and `to_come` of these are left in the warm-up.
    pub fn too_short(&self, rounds: Rounds, elapsed: Duration, to_come: u32, round: u32) -> Option<TooShort> {
        let Rounds::Within { budget, .. } = rounds else { return None };
        let quickest = self.quickest?;
        // The first step may be slow for once: by itself it only counts for the round.
        let steps = if self.steps == 1 { round } else { to_come.saturating_add(round) };
        let spent = if self.steps == 1 { Duration::ZERO } else { elapsed };
        (spent.saturating_add(quickest.saturating_mul(steps)) > budget)
            .then(|| TooShort { budget, round: Some(self.of_steps(round)) })
    }

    /// Whether this many steps fit into what is left of the time.
    pub fn fits(&self, rounds: Rounds, elapsed: Duration, steps: u32) -> bool {
        match rounds {
            Rounds::Exactly(_) => true,
            Rounds::Within { budget, .. } => elapsed.saturating_add(self.of_steps(steps)) <= budget,
        }
    }
}

/// The rest of the time of a study; `None` where it has no limit.
pub(super) fn left(rounds: Rounds, elapsed: Duration) -> Option<Duration> {
    match rounds {
        Rounds::Exactly(_) => None,
        Rounds::Within { budget, .. } => Some(budget.saturating_sub(elapsed)),
    }
}
