//! The record of `nodewise latency`: everything that is shown, as plain data.

use std::collections::HashMap;

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, NodeId};
use nodewise_syscall::PageKind;

use crate::survey::account::distinct;
use crate::survey::{Account, CellReport, Declared};

/// The matrix of latencies and how it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyReport {
    /// The survey as a whole.
    pub account: Account,
    /// The size of each buffer.
    pub size: Bytes,
    pub cells: Vec<CellReport>,
    /// The firmware's facts about the same pairs.
    pub declared: Vec<Declared>,
}

impl LatencyReport {
    /// The kinds of pages that were measured: huge ones first.
    pub fn page_kinds(&self) -> Vec<PageKind> {
        let mut kinds: Vec<PageKind> = Vec::new();
        for cell in &self.cells {
            if !kinds.contains(&cell.pages) {
                kinds.push(cell.pages);
            }
        }
        kinds.order_by_key(|kind| *kind == PageKind::Small);
        kinds
    }

    /// The nodes whose CPUs were measured, ascending.
    pub fn sources(&self) -> Vec<NodeId> {
        distinct(self.cells.iter().map(|cell| cell.from))
    }

    /// The nodes whose memory was, ascending.
    pub fn targets(&self) -> Vec<NodeId> {
        distinct(self.cells.iter().map(|cell| cell.memory))
    }
}

/// A report by its pairs of nodes: one of a thousand nodes has a million of them.
#[derive(Debug)]
pub struct Lookup<'a> {
    cells: HashMap<(NodeId, NodeId, PageKind), &'a CellReport>,
    declared: HashMap<(NodeId, NodeId), &'a Declared>,
    huge: Option<PageKind>,
}

impl<'a> Lookup<'a> {
    /// Of this report.
    pub fn new(report: &'a LatencyReport) -> Self {
        let place = |cell: &CellReport| (cell.from, cell.memory, cell.pages);
        Self {
            cells: report.cells.iter().map(|cell| (place(cell), cell)).collect(),
            declared: report.declared.iter().map(|one| ((one.from, one.memory), one)).collect(),
            huge: report.page_kinds().into_iter().find(|kind| *kind != PageKind::Small),
        }
    }

    /// The cell of a pair in pages of a kind.
    pub fn cell(&self, from: NodeId, memory: NodeId, pages: PageKind) -> Option<&'a CellReport> {
        self.cells.get(&(from, memory, pages)).copied()
    }

    /// Returns the cost of a page walk in a load, ns: the median in small pages above that in huge ones.
    pub fn page_walk_ns(&self, from: NodeId, memory: NodeId) -> Option<f64> {
        let median = |pages| Some(self.cell(from, memory, pages)?.figure.as_ref()?.median);
        Some(median(PageKind::Small)? - median(self.huge?)?)
    }

    /// Whether the cell of a pair was disturbed in pages of any kind.
    pub fn is_disturbed(&self, from: NodeId, memory: NodeId) -> bool {
        let kinds = [Some(PageKind::Small), self.huge].into_iter().flatten();
        kinds.filter_map(|pages| self.cell(from, memory, pages)).any(|cell| cell.disturbed)
    }

    /// The firmware's facts about a pair.
    pub fn declared(&self, from: NodeId, memory: NodeId) -> Option<&'a Declared> {
        self.declared.get(&(from, memory)).copied()
    }
}
