//! Findings from the figures of pairs of nodes, whether they are times or rates: that distances are
//! nominal, that ways there and back differ, that the firmware declares something else.

use nodewise_machine::NodeId;

#[cfg(test)]
use super::Declared;
use super::{CellReport, Figure};

/// Two ways differ when the figure of one is this much more than that of the other and their intervals
/// are apart. What is less than a tenth of the step to a neighbour (1.1 by the SLIT's own scale) places
/// no memory.
const DIFFERENT: f64 = 1.05;
/// Measured figures that are this far from those that the firmware declares are worth a word.
const FAR_FROM_DECLARED: f64 = 1.15;

/// A pair of nodes that has a figure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured<'a> {
    /// The node of the CPUs.
    pub(crate) from: NodeId,
    /// The node of the memory.
    pub(crate) memory: NodeId,
    pub(crate) figure: &'a Figure,
}

impl<'a> Measured<'a> {
    /// The pair of a cell; `None` for one without a figure.
    pub(crate) fn from_cell(cell: &'a CellReport) -> Option<Self> {
        Some(Self { from: cell.from, memory: cell.memory, figure: cell.figure.as_ref()? })
    }

    /// The two nodes.
    const fn way(&self) -> (NodeId, NodeId) {
        (self.from, self.memory)
    }
}

/// Two values that should be alike, of the pair where they are farthest apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Apart {
    /// The pair: node of the CPUs, node of the memory.
    pub(crate) way: (NodeId, NodeId),
    pub(crate) median: f64,
    pub(crate) other: f64,
    /// How many pairs have values that differ.
    pub(crate) pairs: usize,
}

/// The most over the least median and the largest distance, where pairs have different distances and
/// their figures are alike.
pub(crate) fn nominal(
    measured: &[Measured<'_>],
    distance: impl Fn(&Measured<'_>) -> Option<u32>,
) -> Option<(f64, u32)> {
    let distances = || measured.iter().filter_map(&distance);
    let (nearest, farthest) = (distances().min()?, distances().max()?);
    let medians = || measured.iter().map(|pair| pair.figure.median);
    let ratio = medians().reduce(f64::max)? / medians().reduce(f64::min)?;
    (measured.len() > 1 && nearest < farthest && ratio < DIFFERENT).then_some((ratio, farthest))
}

/// Ways whose figure is above that of their way back, which `back` finds where the two can be compared:
/// the one with the largest ratio.
pub(crate) fn asymmetric<'a>(
    measured: &[Measured<'a>],
    back: impl Fn(&Measured<'a>) -> Option<&'a Figure>,
) -> Option<Apart> {
    let against = |pair: &Measured<'a>| Some((*pair, back(pair)?));
    let above = measured.iter().filter_map(against).filter(|(there, back)| is_above(there.figure, back));
    farthest(above.map(|(there, back)| (there, back.median)), |there, back| there / back)
}

/// Whether one figure is above another beyond its noise.
fn is_above(one: &Figure, other: &Figure) -> bool {
    let apart = one.interval.zip(other.interval).is_some_and(|(one, other)| one.low > other.high);
    apart && one.median > other.median * DIFFERENT
}

/// Pairs whose figure is far from what the firmware declares of them, which is above nothing.
pub(crate) fn far_from_declared<'a>(
    measured: &[Measured<'a>],
    declared: impl Fn(&Measured<'a>) -> Option<f64>,
) -> Option<Apart> {
    let against = |pair: &Measured<'a>| Some((*pair, declared(pair)?));
    let far = measured.iter().filter_map(against).filter(|(pair, told)| is_far(pair.figure.median, *told));
    farthest(far, ratio)
}

/// Whether a measured value is far from one that was reported.
pub(crate) fn is_far(measured: f64, told: f64) -> bool {
    ratio(measured, told) > FAR_FROM_DECLARED
}

/// The larger over the smaller.
fn ratio(one: f64, other: f64) -> f64 {
    (one / other).max(other / one)
}

fn farthest<'a>(
    pairs: impl Iterator<Item = (Measured<'a>, f64)>,
    by: impl Fn(f64, f64) -> f64,
) -> Option<Apart> {
    let apart = |(pair, other): &(Measured<'a>, f64)| by(pair.figure.median, *other);
    let pairs: Vec<(Measured<'a>, f64)> = pairs.collect();
    let (pair, other) = pairs.iter().max_by(|one, other| apart(one).total_cmp(&apart(other)))?;
    Some(Apart { way: pair.way(), median: pair.figure.median, other: *other, pairs: pairs.len() })
}

/// A matrix for tests: a cell for each median, rows and columns by node, and the distances beside them.
#[cfg(test)]
pub(crate) fn made(medians: &[&[f64]], distances: &[&[u32]]) -> (Vec<CellReport>, Vec<Declared>) {
    let rows = (0_u32..).zip(medians.iter().zip(distances));
    let pairs = rows.flat_map(|(from, (medians, distances))| {
        let columns = (0_u32..).zip(medians.iter().zip(*distances));
        columns.map(move |(memory, (median, distance))| (from, memory, *median, *distance))
    });
    let cell = |(from, memory, median, _)| CellReport::made(from, memory, median);
    let declared = |(from, memory, _, distance)| Declared {
        from: NodeId::new(from),
        memory: NodeId::new(memory),
        distance: Some(distance),
        read_latency_ns: None,
        read_gb_per_s: None,
    };
    pairs.map(|pair| (cell(pair), declared(pair))).unzip()
}
