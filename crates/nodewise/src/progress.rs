//! The line that tells how far an experiment is. Drawn between runs only, and on a terminal only.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nodewise_measure::experiment::{Event, Observer};
use nodewise_measure::schedule::Block;
use nodewise_measure::study::Plan;

/// The line.
pub struct Progress {
    bar: ProgressBar,
    runs_per_block: u64,
    rounds: u32,
}

impl Progress {
    /// A line for this plan, on standard error.
    pub fn new(plan: &Plan) -> Self {
        let runs_per_block = u64::from(plan.runs_per_block());
        let bar = ProgressBar::with_draw_target(Some(runs_per_block), target());
        let style = ProgressStyle::with_template("{bar:20} {pos}/{len}  {msg:!40}  {eta} left");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Self { bar, runs_per_block, rounds: 0 }
    }

    /// Takes the line away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Where lines of progress are drawn: on a terminal only. Nothing ticks by itself: a line is drawn by calls
/// that come between runs and samples.
pub fn target() -> ProgressDrawTarget {
    if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

impl Observer for Progress {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Begins { block, arm, .. } => {
                let round = match block {
                    Block::WarmUp => "warm-up".to_owned(),
                    Block::Measured(number) => format!("round {number}"),
                };
                self.bar.set_message(format!("{round}: {}", arm.name));
                self.bar.tick();
            }
            Event::Ended(_) => self.bar.inc(1),
            Event::Fixed { rounds, .. } => {
                self.rounds = rounds;
                self.bar.set_length(self.runs_per_block * (u64::from(rounds) + 1));
            }
            // The baseline goes on even when it is out.
            Event::Out(out) if out.arm.is_baseline() => {}
            Event::Out(out) => {
                let left = self.rounds.saturating_sub(out.block.number());
                self.bar.set_length(self.bar.length().unwrap_or_default().saturating_sub(left.into()));
            }
            Event::Crossed(crossed) => {
                let left = u64::from(self.rounds.saturating_sub(crossed.block.number()));
                let more = left * crossed.arms.len() as u64;
                self.bar.set_length(self.bar.length().unwrap_or_default().saturating_add(more));
            }
            Event::Dropped(dropped) => {
                self.bar.set_message(format!("given up: {}", dropped.ending));
            }
        }
    }
}
