//! Tables of the same test side by side: near and far, by node of the buffers.

use std::collections::BTreeSet;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, NodeId};

use super::kink::is_worse;
use super::{Kink, PerftestQuantity, Table, kinks};

/// One of the tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Its name. Foreign text.
    pub label: String,
    /// The node of the buffers, where that is known.
    pub node: Option<NodeId>,
    pub table: Table,
}

/// Tables of one kind; the first is what the others are compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    kind: PerftestQuantity,
    sides: Vec<Side>,
}

/// How far a side is from the first, over all sizes that both have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extremes {
    /// The size at which it comes off best, and its value there as a multiple of the first's.
    pub best: (Bytes, f64),
    pub worst: (Bytes, f64),
}

impl Comparison {
    /// A comparison for each kind of table that is among these; their order is kept.
    pub fn from_sides(sides: Vec<Side>) -> Vec<Self> {
        let of_kind =
            |kind| -> Vec<Side> { sides.iter().filter(|side| side.table.kind == kind).cloned().collect() };
        let all = PerftestQuantity::ALL.into_iter().map(|kind| Self { kind, sides: of_kind(kind) });
        all.filter(|comparison| !comparison.sides.is_empty()).collect()
    }

    /// The measured values.
    pub fn kind(&self) -> PerftestQuantity {
        self.kind
    }

    /// The tables; at least one.
    pub fn sides(&self) -> &[Side] {
        &self.sides
    }

    /// All sizes of all tables, ascending.
    pub fn sizes(&self) -> Vec<Bytes> {
        let all: BTreeSet<Bytes> =
            self.sides.iter().flat_map(|side| side.table.rows.keys().copied()).collect_set();
        all.into_iter().collect()
    }

    /// The value of a side at a size as a multiple of the first side's; `None` where either has none.
    pub fn ratio(&self, side: usize, size: Bytes) -> Option<f64> {
        let first = self.sides.first()?.table.value(size).filter(|value| *value > 0.0)?;
        Some(self.sides.get(side)?.table.value(size)? / first)
    }

    /// How far a side is from the first; `None` for sides that have no size in common.
    pub fn extremes(&self, side: usize) -> Option<Extremes> {
        let ratios = self.sizes().into_iter().filter_map(|size| Some((size, self.ratio(side, size)?)));
        ratios.fold(None, |found: Option<Extremes>, of_size| {
            let mut found = found.unwrap_or(Extremes { best: of_size, worst: of_size });
            if is_worse(self.kind, of_size.1, found.worst.1) {
                found.worst = of_size;
            }
            if is_worse(self.kind, found.best.1, of_size.1) {
                found.best = of_size;
            }
            Some(found)
        })
    }

    /// The kinks of all sides, each with the place of its side.
    pub fn kinks(&self) -> Vec<(usize, Kink)> {
        let of = |(at, side): (usize, &Side)| kinks(&side.table).into_iter().map(move |kink| (at, kink));
        self.sides.iter().enumerate().flat_map(of).collect()
    }
}
