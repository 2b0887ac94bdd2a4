//! A cell of a matrix as it is reported: plain data, without samples.

use nodewise_machine::{CpuSet, NodeId};
use nodewise_syscall::PageKind;

use super::{Figure, Marks, Outcome};
use crate::cell::{Cell, Placed, Refusal};
use nodewise_stats::Direction;

/// A cell and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct CellReport {
    /// The node of the CPUs.
    pub from: NodeId,
    /// The CPUs that were used.
    pub cpus: CpuSet,
    /// The node of the memory.
    pub memory: NodeId,
    pub pages: PageKind,
    /// The figure; `None` for a cell that was refused, whose pages moved, or without samples.
    pub figure: Option<Figure>,
    /// Why there is none, in words.
    pub refused: Option<String>,
    /// Where its pages were before samples were taken.
    pub before: Option<Placed>,
    pub after: Option<Placed>,
    pub marks: Marks,
    pub disturbed: bool,
    /// Whether the cell was measured once more for that.
    pub again: bool,
}

impl CellReport {
    /// Whether the cell has a result: a figure, or a reason why not.
    /// The survey ended before it reached the others.
    pub fn is_reached(&self) -> bool {
        self.figure.is_some() || self.refused.is_some()
    }

    /// The outcome of a cell; `explain` makes a sentence of a refusal.
    pub fn new(
        cell: &Cell,
        cpus: CpuSet,
        outcome: &Outcome,
        direction: Direction,
        explain: &dyn Fn(&Refusal) -> String,
    ) -> Self {
        let figure = outcome.figure(direction);
        let moved = || {
            let placed = outcome.after.as_ref().filter(|placed| !placed.is_full())?;
            Some(format!(
                "its pages did not stay: {} of {} were left on node {}",
                placed.on_node, placed.pages, cell.memory
            ))
        };
        let refused = outcome.refusal.as_ref().map(explain).or_else(moved);
        Self {
            from: cell.from,
            cpus,
            memory: cell.memory,
            pages: cell.pages,
            figure,
            refused,
            before: outcome.before.clone(),
            after: outcome.after.clone(),
            marks: outcome.marks(),
            disturbed: outcome.is_disturbed(),
            again: outcome.again,
        }
    }
}

#[cfg(test)]
impl CellReport {
    /// A cell for tests: a figure with an interval of 1 % around its median, in small pages.
    pub(crate) fn made(from: u32, memory: u32, median: f64) -> Self {
        let interval = Some(nodewise_stats::Interval { low: median * 0.99, high: median * 1.01 });
        Self {
            from: NodeId::new(from),
            cpus: CpuSet::from([from]),
            memory: NodeId::new(memory),
            pages: PageKind::Small,
            figure: Some(Figure { median, interval, best: median, rounds: 6, samples: 30 }),
            refused: None,
            before: None,
            after: None,
            marks: Marks::default(),
            disturbed: false,
            again: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Glance;
    use crate::survey::Timed;

    #[test]
    fn pages_that_moved_are_the_reason_when_nothing_else_is() {
        let cell = Cell {
            from: NodeId::new(0),
            cpus: CpuSet::from([1]),
            memory: NodeId::new(2),
            pages: PageKind::Small,
        };
        let timed = Timed { value: 3.0, probe: None, meanwhile: Glance::default(), beside: None };
        let placed = |on_node| Some(Placed { on_node, pages: 8, ..Placed::default() });
        let mut outcome =
            Outcome { rounds: vec![vec![timed]], before: placed(8), after: placed(8), ..Outcome::default() };
        let report = |outcome: &Outcome| {
            CellReport::new(&cell, cell.cpus.clone(), outcome, Direction::LowerIsBetter, &|refusal| {
                format!("refused: {refusal}")
            })
        };
        assert_eq!((report(&outcome).refused, report(&outcome).figure.unwrap().median), (None, 3.0));
        outcome.after = placed(5);
        let moved = report(&outcome);
        assert_eq!(moved.refused.as_deref(), Some("its pages did not stay: 5 of 8 were left on node 2"));
        assert_eq!(moved.figure, None);
        outcome.refusal = Some(Refusal::TooShort);
        assert!(report(&outcome).refused.unwrap().starts_with("refused: a sample is too short"));
    }
}
