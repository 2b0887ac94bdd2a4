//! The record of `nodewise latency`: everything that is shown, as plain data.

use std::collections::HashMap;
use std::time::Duration;

use nodewise_machine::{Bytes, NodeId};
use nodewise_syscall::PageKind;

use crate::cell::Glance;
use crate::conditions::Conditions;
use crate::survey::CellReport;

/// What the firmware says of a pair of nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Declared {
    /// The node of the CPUs.
    pub from: NodeId,
    /// The node of the memory.
    pub memory: NodeId,
    /// Its distance in the SLIT: 10 is local.
    pub distance: Option<u32>,
    /// Its read latency in the HMAT, ns.
    pub read_latency_ns: Option<u32>,
}

/// The matrix of latencies and how it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The circumstances.
    pub conditions: Conditions,
    /// The size of each buffer.
    pub size: Bytes,
    /// The seed of the order of samples and of the chain.
    pub seed: u64,
    /// The kernel's name of the clock.
    pub clock: String,
    /// How long all of it took.
    pub took: Duration,
    /// Whether it was ended early.
    pub interrupted: bool,
    /// What happened around it, from its beginning to its end.
    pub meanwhile: Glance,
    /// The cells.
    pub cells: Vec<CellReport>,
    /// What the firmware says of the same pairs.
    pub declared: Vec<Declared>,
}

impl Report {
    /// The kinds of pages that were measured: huge ones first.
    pub fn page_kinds(&self) -> Vec<PageKind> {
        let mut kinds: Vec<PageKind> = Vec::new();
        for cell in &self.cells {
            if !kinds.contains(&cell.pages) {
                kinds.push(cell.pages);
            }
        }
        kinds.sort_by_key(|kind| *kind == PageKind::Small);
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
    pub fn of(report: &'a Report) -> Self {
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

    /// What a page walk adds to a load, ns: the median in small pages above that in huge ones.
    pub fn page_walk_ns(&self, from: NodeId, memory: NodeId) -> Option<f64> {
        let median = |pages| Some(self.cell(from, memory, pages)?.figure.as_ref()?.median);
        Some(median(PageKind::Small)? - median(self.huge?)?)
    }

    /// Whether the cell of a pair was disturbed in pages of any kind.
    pub fn is_disturbed(&self, from: NodeId, memory: NodeId) -> bool {
        let kinds = [Some(PageKind::Small), self.huge].into_iter().flatten();
        kinds.filter_map(|pages| self.cell(from, memory, pages)).any(|cell| cell.disturbed)
    }

    /// What the firmware says of a pair.
    pub fn declared(&self, from: NodeId, memory: NodeId) -> Option<&'a Declared> {
        self.declared.get(&(from, memory)).copied()
    }
}

fn distinct(nodes: impl Iterator<Item = NodeId>) -> Vec<NodeId> {
    let mut nodes: Vec<NodeId> = nodes.collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}
