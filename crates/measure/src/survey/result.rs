//! Result of a survey: a record for each cell, with all that was noticed about it.

use std::time::Duration;

use super::{Figure, Timed};
use crate::cell::{Glance, Placed, Refusal};
use nodewise_stats::Direction;

/// A CPU counts as slower than itself when its probe takes this much longer than the quickest of the
/// same cell: the probe alone repeats within 1%.
const SLOWER: f64 = 1.05;

/// The share of disturbed samples from which on a cell is.
const DISTURBED: f64 = 0.25;

/// One sample and what happened meanwhile.
pub type Sample = Timed;

/// How many samples of a cell were disturbed by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Marks {
    /// The hypervisor gave time to others.
    pub stolen: usize,
    /// The thread had to leave its CPU.
    pub switched: usize,
    /// A page fault came into the timed loop.
    pub faulted: usize,
    /// The CPU was slower than at other times.
    pub slower: usize,
    /// Samples with any of these.
    pub disturbed: usize,
    pub samples: usize,
}

impl Marks {
    /// The share of disturbed samples, of 1; `None` without samples.
    pub fn share(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.disturbed as f64 / self.samples as f64)
    }
}

/// The outcome of one cell.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Outcome {
    /// The samples, round by round.
    pub rounds: Vec<Vec<Sample>>,
    /// Where its memory was before samples were taken: of all rounds, that with the least in place.
    pub before: Option<Placed>,
    pub after: Option<Placed>,
    /// Why it has no value, or lost it on the way.
    pub refusal: Option<Refusal>,
    /// Whether the cell was measured once more because it was disturbed.
    pub again: bool,
}

impl Outcome {
    pub(super) fn begin_round(&mut self, placed: Option<Placed>) {
        self.before = worse(self.before.take(), placed);
        self.rounds.push(Vec::new());
    }

    pub(super) fn end_round(&mut self, placed: Option<Placed>) {
        self.after = worse(self.after.take(), placed);
    }

    pub(super) fn add(&mut self, sample: Sample) {
        if let Some(round) = self.rounds.last_mut() {
            round.push(sample);
        }
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.refusal = Some(refusal);
    }

    pub(super) fn begin_again(&mut self) {
        *self = Self { again: true, ..Self::default() };
    }

    /// After a repetition: keeps the measurement that was less disturbed. A repetition that was
    /// refused or left unfinished is worth nothing.
    pub(super) fn keep_better(&mut self, first: Self) {
        if !self.again {
            return;
        }
        let whole = self.refusal.is_none() && self.rounds.len() >= first.rounds.len();
        if !whole || self.marks().share() > first.marks().share() {
            *self = Self { again: true, ..first };
        }
    }

    /// Whether the cell has a result: a sample, or a reason why not.
    /// The survey ended before it reached the others.
    pub fn is_reached(&self) -> bool {
        self.refusal.is_some() || self.rounds.iter().any(|round| !round.is_empty())
    }

    /// Its figure; `None` for a cell that was refused, or whose memory has moved.
    pub fn figure(&self, direction: Direction) -> Option<Figure> {
        self.figure_of(direction, |sample| Some(sample.value))
    }

    /// As [`Self::figure`], of something else that its samples hold.
    pub fn figure_of(&self, direction: Direction, value: impl Fn(&Sample) -> Option<f64>) -> Option<Figure> {
        if self.refusal.is_some() || self.has_moved() {
            return None;
        }
        let values: Vec<Vec<f64>> =
            self.rounds.iter().map(|round| round.iter().filter_map(&value).collect()).collect();
        Figure::from_rounds(&values, direction)
    }

    /// Whether pages had left the node by the end of a round: what was measured is then not what the
    /// cell says.
    pub fn has_moved(&self) -> bool {
        self.after.as_ref().is_some_and(|placed| !placed.is_full())
    }

    /// Returns the disturbances of its samples.
    pub fn marks(&self) -> Marks {
        let samples = || self.rounds.iter().flatten();
        let quickest = samples().filter_map(|sample| sample.probe).map(|probe| probe.ns_per_step);
        let limit = quickest.fold(f64::INFINITY, f64::min) * SLOWER;
        let mut marks = Marks { samples: samples().count(), ..Marks::default() };
        for sample in samples() {
            let stolen = sample.meanwhile.stolen.is_some_and(|time| time > Duration::ZERO);
            let switched = sample.meanwhile.switched.is_some_and(|count| count > 0);
            let faulted = sample.meanwhile.faults.is_some_and(|count| count > 0);
            let slower = sample.probe.is_some_and(|probe| probe.ns_per_step > limit);
            marks.stolen += usize::from(stolen);
            marks.switched += usize::from(switched);
            marks.faulted += usize::from(faulted);
            marks.slower += usize::from(slower);
            marks.disturbed += usize::from(stolen || switched || faulted || slower);
        }
        marks
    }

    /// Whether this many of its samples were disturbed that it is measured once more, and marked when
    /// that was no better.
    pub fn is_disturbed(&self) -> bool {
        self.marks().share().is_some_and(|share| share > DISTURBED)
    }
}

fn worse(one: Option<Placed>, other: Option<Placed>) -> Option<Placed> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.worse(other)),
        (one, other) => one.or(other),
    }
}

/// The parts that a survey left out in order to end in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Whole rounds that were done.
    pub rounds: u32,
    pub of_rounds: u32,
    pub cells: usize,
    pub of_cells: usize,
    /// Disturbed cells that were not measured once more.
    pub disturbed: usize,
}

/// Result of a survey.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// The outcome of each cell, in their order.
    pub outcomes: Vec<Outcome>,
    /// Whether the user ended it early.
    pub interrupted: bool,
    /// The parts that a limit of time has left out.
    pub left_out: Option<LeftOut>,
    pub took: Duration,
    /// Events around the survey, from its beginning to its end.
    pub meanwhile: Glance,
    /// The seed of the order of samples.
    pub seed: u64,
}
