//! The record of `nodewise bandwidth`: everything that is shown, as plain data.

use nodewise_machine::{Bytes, NodeId};

use super::MemoryTransfer;
use super::weights::{Weights, weights};
use super::yardstick::BandwidthYardstick;
use crate::cell::Refusal;
use crate::kernel::bandwidth::Kernel;
use crate::survey::account::distinct;
use crate::survey::{Account, CellReport, Declared, Figure, Outcome};
use crate::team::work::GROUP;
use nodewise_stats::Direction;

/// A thread more counts as gain while it adds this share of what the first thread had.
const GAIN: f64 = 0.05;

/// One way and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct TransferReport {
    pub kernel: Kernel,
    /// How, in words; `None` where there was no contest.
    pub variant: Option<String>,
    pub threads: usize,
    /// Whether all nodes were used at the same time, each by its own CPUs; the cell then names the
    /// first of them.
    pub everywhere: bool,
    /// Its figure in GB/s that the program reads and writes, and where its memory was.
    pub cell: CellReport,
}

impl TransferReport {
    /// The outcome of a way; `explain` makes a sentence of a refusal. `None` for a way without cells.
    pub fn new(
        way: &MemoryTransfer,
        variant: Option<String>,
        outcome: &Outcome,
        explain: &dyn Fn(&Refusal) -> String,
    ) -> Option<Self> {
        let direction = Direction::HigherIsBetter;
        let cell = CellReport::new(way.cells.first()?, way.cpus(), outcome, direction, explain);
        let everywhere = way.cells.len() > 1;
        Some(Self { kernel: way.kernel, variant, threads: way.threads(), everywhere, cell })
    }

    /// Returns the factor by which the bus moves more than the program names, at most, as memory is read
    /// because it is written: 1 for no more.
    pub fn bus_factor(&self) -> f64 {
        let traffic = self.kernel.traffic(GROUP);
        traffic.bus() as f64 / traffic.program() as f64
    }

    /// The median in GB/s that crossed the bus, at most.
    pub fn bus_gb_per_s(&self) -> Option<f64> {
        Some(self.cell.figure.as_ref()?.median * self.bus_factor())
    }
}

/// All bandwidths and how they were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct BandwidthReport {
    /// The survey as a whole.
    pub account: Account,
    /// The size of the memory that a way uses on each node.
    pub size: Bytes,
    /// The kernel of the matrix and of the scaling curve.
    pub kernel: Kernel,
    /// The cells of the matrix: all threads of a node on the memory of each node.
    pub matrix: Vec<TransferReport>,
    /// Every kernel near its memory, with one thread and with all of a node.
    pub kernels: Vec<TransferReport>,
    /// More and more threads of one node on its memory.
    pub scaling: Vec<TransferReport>,
    /// All nodes at the same time, each on its own memory.
    pub everywhere: Option<TransferReport>,
    /// The firmware's facts about the pairs.
    pub declared: Vec<Declared>,
    /// The peaks of the memory; `None` for a document from before they were looked for.
    pub yardstick: Option<BandwidthYardstick>,
}

impl BandwidthReport {
    /// The nodes whose CPUs were measured, ascending.
    pub fn sources(&self) -> Vec<NodeId> {
        distinct(self.matrix.iter().map(|way| way.cell.from))
    }

    /// The nodes whose memory was, ascending.
    pub fn targets(&self) -> Vec<NodeId> {
        distinct(self.matrix.iter().map(|way| way.cell.memory))
    }

    /// All ways of all tables.
    pub fn ways(&self) -> impl Iterator<Item = &TransferReport> {
        let tables = self.matrix.iter().chain(&self.kernels).chain(&self.scaling);
        tables.chain(self.everywhere.as_ref())
    }

    /// The cells of all ways.
    pub fn cells(&self) -> impl Iterator<Item = &CellReport> {
        self.ways().map(|way| &way.cell)
    }

    /// The number of threads beyond which another one gains next to nothing. `None` where the curve has
    /// fewer than three points, or still rises at its end.
    pub fn knee(&self) -> Option<usize> {
        let points: Vec<(usize, f64)> = self
            .scaling
            .iter()
            .filter_map(|way| Some((way.threads, way.cell.figure.as_ref()?.median)))
            .collect();
        knee(&points)
    }

    /// Weights for weighted interleaving, by what the memory of each node gives to the CPUs that reach
    /// it best. `None` with fewer than two nodes of memory, or where one has no figure.
    pub fn weights(&self) -> Option<Weights> {
        let best = |memory: NodeId| -> Option<(NodeId, f64)> {
            let to = self.matrix.iter().filter(|way| way.cell.memory == memory);
            let medians = to.filter_map(|way| way.cell.figure.as_ref()).map(|figure: &Figure| figure.median);
            Some((memory, medians.reduce(f64::max)?))
        };
        let bandwidths: Option<Vec<(NodeId, f64)>> = self.targets().into_iter().map(best).collect();
        weights(&bandwidths?)
    }
}

/// The knee of a curve of threads and rates, ascending by threads.
fn knee(points: &[(usize, f64)]) -> Option<usize> {
    let (first, last) = (points.first()?, points.last()?);
    let per_thread = first.1 / first.0 as f64;
    let gains =
        |from: &(usize, f64), to: &(usize, f64)| to.1 - from.1 >= GAIN * per_thread * (to.0 - from.0) as f64;
    // The first point from which nothing that follows is worth its threads.
    let at = points.iter().position(|point| {
        points.iter().filter(|later| later.0 > point.0).all(|later| !gains(point, later))
    })?;
    (points.len() >= 3 && points[at].0 < last.0).then_some(points[at].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(points: &[(usize, f64)], expected: Option<usize>) {
        assert_eq!(knee(points), expected, "{points:?}");
    }

    #[test]
    fn a_knee_is_where_more_threads_gain_nothing() {
        check(&[(1, 10.0), (2, 20.0), (4, 38.0), (8, 39.0), (16, 39.5)], Some(4));
        check(&[(1, 10.0), (2, 20.0), (4, 40.0), (8, 80.0)], None);
        check(&[(1, 10.0), (2, 10.1), (4, 10.0)], Some(1));
        // A dip is not a knee where the curve rises again.
        check(&[(1, 10.0), (2, 9.0), (4, 30.0), (8, 30.0)], Some(4));
        check(&[(1, 10.0), (2, 10.0)], None);
        check(&[], None);
    }
}
