//! A yardstick beside bandwidths: the theoretical peak of each node's memory, and the share that was reached.

use nodewise_machine::NodeId;
use nodewise_machine::memory_slot::peak::{MemoryPeaks, PeakBandwidth};

use super::report::{BandwidthReport, TransferReport};

/// A share above this cannot be that of memory alone: intervals reach so far, and a channel moves no more than its peak.
pub(super) const MOST_SHARE: f64 = 1.02;

/// Facts of the machine that its bandwidths are held against.
#[derive(Clone, Debug, PartialEq)]
pub struct BandwidthYardstick {
    /// The peak of each node's memory, or why it is not known; ascending by node.
    pub nodes: Vec<(NodeId, Result<PeakBandwidth, String>)>,
    /// That of all memory.
    pub machine: Result<PeakBandwidth, String>,
    /// The processor sockets, where all CPUs of all of them took part.
    pub sockets: Option<u32>,
}

impl BandwidthYardstick {
    /// The yardstick of a machine with these peaks.
    pub fn new(peaks: MemoryPeaks, sockets: Option<u32>) -> Self {
        let nodes = peaks.nodes.into_iter();
        Self {
            nodes: nodes.map(|(node, peak)| (node, peak.map_err(|why| why.to_string()))).collect(),
            machine: peaks.machine.map_err(|why| why.to_string()),
            sockets,
        }
    }
}

/// The memory that a peak is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeakOwner {
    Node(NodeId),
    /// All nodes, each used by its own CPUs at the same time.
    Machine,
}

/// A peak, and the fastest way to that memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeakShare<'a> {
    pub owner: PeakOwner,
    /// The peak, or why it is not known.
    pub peak: Result<&'a PeakBandwidth, &'a str>,
    /// The way with the highest median; `None` where no way to that memory has a figure.
    pub most: Option<&'a TransferReport>,
}

impl PeakShare<'_> {
    /// The median of that way, GB/s that the program reads and writes. As much at least crossed the bus.
    pub fn reached_gb_per_s(&self) -> Option<f64> {
        Some(self.most?.cell.figure.as_ref()?.median)
    }

    /// The share of the peak, of 1.
    pub fn share(&self) -> Option<f64> {
        Some(self.reached_gb_per_s()? / self.peak.ok()?.gb_per_s())
    }
}

impl BandwidthReport {
    /// The shares of the peaks: of each node that was measured, and of all memory where all nodes were used at once.
    /// Empty where nothing is known of the machine's slots.
    pub fn peak_shares(&self) -> Vec<PeakShare<'_>> {
        let Some(yardstick) = &self.yardstick else { return Vec::new() };
        let targets = self.targets();
        let of_node =
            |node: NodeId| most(self.ways().filter(move |way| !way.everywhere && way.cell.memory == node));
        let measured = yardstick.nodes.iter().filter(|(node, _)| targets.contains(node));
        let mut shares: Vec<PeakShare<'_>> = measured
            .map(|(node, peak)| PeakShare {
                owner: PeakOwner::Node(*node),
                peak: borrowed(peak),
                most: of_node(*node),
            })
            .collect();
        let is_whole = yardstick.nodes.iter().all(|(node, _)| targets.contains(node));
        if let Some(way) = self.everywhere.as_ref().filter(|_| is_whole) {
            let most = most(std::iter::once(way));
            shares.push(PeakShare { owner: PeakOwner::Machine, peak: borrowed(&yardstick.machine), most });
        }
        shares
    }

    /// The best median of these kernels with all CPUs of the machine, GB/s: of all nodes at once, or of the only node
    /// with CPUs.
    pub fn whole_machine(&self, is_wanted: impl Fn(&TransferReport) -> bool) -> Option<f64> {
        let ways: Vec<&TransferReport> = match (&self.everywhere, &self.sources()[..]) {
            (Some(way), _) => vec![way],
            (None, [_]) => {
                let threads = self.ways().map(|way| way.threads).max()?;
                self.ways().filter(|way| way.threads == threads).collect()
            }
            _ => Vec::new(),
        };
        let best = most(ways.into_iter().filter(|way| is_wanted(way)))?;
        Some(best.cell.figure.as_ref()?.median)
    }
}

fn borrowed(peak: &Result<PeakBandwidth, String>) -> Result<&PeakBandwidth, &str> {
    peak.as_ref().map_err(String::as_str)
}

/// The way with the highest median.
fn most<'a>(ways: impl Iterator<Item = &'a TransferReport>) -> Option<&'a TransferReport> {
    let figures = ways.filter_map(|way| Some((way.cell.figure.as_ref()?.median, way)));
    figures.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, way)| way)
}

#[cfg(test)]
mod tests;
