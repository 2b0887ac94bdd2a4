//! Measured latencies and bandwidths of pairs of nodes, for formats that hold such beside a machine.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Machine, NodeId};
use nodewise_measure::bandwidth::BandwidthReport;
use nodewise_measure::figures::{FigureTable, FigureUnit, MatrixSides, ToolFigures};
use nodewise_measure::kernel::bandwidth::Kernel;
use nodewise_measure::latency::LatencyReport;

/// The node of the CPUs, and that of the memory.
type Pair = (NodeId, NodeId);

/// Measured values by pair of nodes; those that were added last hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredMemory {
    /// ns per load.
    latencies: BTreeMap<Pair, f64>,
    /// GB/s.
    bandwidths: BTreeMap<Pair, f64>,
    /// Whether those are of reads alone.
    are_reads: bool,
}

/// Values by pair of nodes, in whole ns or MB/s, under the names of their attributes.
pub(super) type MeasuredTable = (&'static [&'static str], Vec<(Pair, u64)>);

impl MeasuredMemory {
    /// Adds the medians of a report, in the first kind of pages that it has; the number of pairs.
    pub fn add_latency(&mut self, report: &LatencyReport) -> usize {
        let kinds = report.page_kinds();
        let cells = report.cells.iter().filter(|cell| Some(&cell.pages) == kinds.first());
        let values = cells.filter_map(|cell| Some(((cell.from, cell.memory), cell.figure?.median)));
        let values: BTreeMap<Pair, f64> = values.collect_map();
        let count = values.len();
        self.latencies.extend(values);
        count
    }

    /// Adds the medians of a report's matrix; the number of pairs.
    pub fn add_bandwidth(&mut self, report: &BandwidthReport) -> usize {
        let values = report
            .matrix
            .iter()
            .filter_map(|way| Some(((way.cell.from, way.cell.memory), way.cell.figure?.median)));
        self.set_bandwidths(values.collect_map(), report.kernel == Kernel::Read)
    }

    /// Adds the matrices of nodes that another tool printed; the number of pairs.
    pub fn add_figures(&mut self, figures: &ToolFigures) -> usize {
        let mut count = 0;
        for group in &figures.groups {
            let FigureTable::Matrix { sides: MatrixSides::Memory, unit, cells } = &group.table else {
                continue;
            };
            count += match unit {
                FigureUnit::Ns => {
                    self.latencies.extend(cells.iter().map(|(pair, value)| (*pair, *value)));
                    cells.len()
                }
                FigureUnit::GbPerS => {
                    let are_reads = group.notes.iter().any(|note| note.contains("Read-only"));
                    self.set_bandwidths(cells.clone(), are_reads)
                }
            };
        }
        count
    }

    fn set_bandwidths(&mut self, values: BTreeMap<Pair, f64>, are_reads: bool) -> usize {
        let count = values.len();
        if count > 0 {
            self.are_reads = are_reads && (self.bandwidths.is_empty() || self.are_reads);
            self.bandwidths.extend(values);
        }
        count
    }

    /// A pair that a machine does not have: its first node without CPUs, or its second without memory.
    pub fn foreign_pair(&self, machine: &Machine) -> Option<Pair> {
        let (sources, targets) = (machine.nodes_with_cpus(), machine.memory_nodes());
        let pairs = self.latencies.keys().chain(self.bandwidths.keys());
        pairs.copied().find(|(from, memory)| !sources.contains(*from) || !targets.contains(*memory))
    }

    /// The values as attributes of memory: loads are reads, and both names of an attribute hold them.
    pub(super) fn tables(&self) -> Vec<MeasuredTable> {
        let whole = |values: &BTreeMap<Pair, f64>, factor: f64| {
            let one = |(pair, value): (&Pair, &f64)| (*pair, (value * factor).round().max(1.0) as u64);
            values.iter().map(one).collect::<Vec<(Pair, u64)>>()
        };
        let bandwidth: &[&str] =
            if self.are_reads { &["Bandwidth", "ReadBandwidth"] } else { &["Bandwidth"] };
        let tables: [MeasuredTable; 2] = [
            (bandwidth, whole(&self.bandwidths, 1e3)),
            (&["Latency", "ReadLatency"], whole(&self.latencies, 1.0)),
        ];
        tables.into_iter().filter(|(_, values)| !values.is_empty()).collect()
    }
}
