//! What bandwidths show, and how far they can be believed.

use nodewise_machine::NodeId;

use super::report::{Report, WayReport};
use super::weights::Weights;
use crate::survey::{Figure, Noise};

/// Two ways differ when one gives this much more than the other and their intervals are apart.
const DIFFERENT: f64 = 1.05;
/// Measured bandwidths that are this far from those that the firmware tells are worth a word.
const FAR_FROM_DECLARED: f64 = 1.15;

/// Something that bandwidths show.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The nodes have distances, and memory gives the same everywhere: one controller serves them.
    Nominal {
        /// The most over the least.
        ratio: f64,
        /// The largest distance that the kernel tells.
        distance: u32,
    },
    /// The way there and the way back differ.
    Asymmetric {
        /// The better way: node of the CPUs, node of the memory.
        way: (NodeId, NodeId),
        /// Its median, GB/s.
        there: f64,
        /// The median of the way back, GB/s.
        back: f64,
        /// How many pairs differ so.
        pairs: usize,
    },
    /// Measured bandwidths differ from those that the firmware tells.
    Hmat {
        /// The pair that differs most.
        way: (NodeId, NodeId),
        /// Its median, GB/s.
        measured: f64,
        /// What the firmware tells, GB/s.
        declared: f64,
        /// How many pairs differ.
        pairs: usize,
    },
    /// More threads than these gain next to nothing.
    Knee {
        /// So many give what all give.
        threads: usize,
        /// All.
        of: usize,
    },
    /// What weights for weighted interleaving would be in proportion.
    Weights(Weights),
    /// How far all of it can be believed.
    Noise(Noise),
}

impl Finding {
    /// Whether it says that figures may not repeat, here and now.
    pub fn is_noise(&self) -> bool {
        matches!(self, Self::Noise(_))
    }
}

/// What a report shows.
pub fn findings(report: &Report) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    match nominal(report) {
        Some(nominal) => findings.push(nominal),
        None => findings.extend(asymmetric(report)),
    }
    findings.extend(hmat(report));
    if let (Some(threads), Some(last)) = (report.knee(), report.scaling.last()) {
        findings.push(Finding::Knee { threads, of: last.threads });
    }
    findings.extend(report.weights().map(Finding::Weights));
    findings.extend(report.account.noise(report.cells()).into_iter().map(Finding::Noise));
    findings
}

fn figures(report: &Report) -> impl Iterator<Item = (&WayReport, &Figure)> {
    report.matrix.iter().filter_map(|way| Some((way, way.cell.figure.as_ref()?)))
}

fn nominal(report: &Report) -> Option<Finding> {
    let distance = |way: &WayReport| report.declared(way.cell.from, way.cell.memory)?.distance;
    let distances = || figures(report).filter_map(|(way, _)| distance(way));
    let (nearest, farthest) = (distances().min()?, distances().max()?);
    let medians = || figures(report).map(|(_, figure)| figure.median);
    let ratio = medians().reduce(f64::max)? / medians().reduce(f64::min)?;
    let nominal = medians().count() > 1 && nearest < farthest && ratio < DIFFERENT;
    nominal.then_some(Finding::Nominal { ratio, distance: farthest })
}

/// Whether one figure is above another beyond its noise.
fn is_above(one: &Figure, other: &Figure) -> bool {
    let apart = one.interval.zip(other.interval).is_some_and(|(one, other)| one.low > other.high);
    apart && one.median > other.median * DIFFERENT
}

fn asymmetric(report: &Report) -> Option<Finding> {
    let back = |way: &WayReport| report.cell(way.cell.memory, way.cell.from)?.cell.figure.as_ref();
    let ways: Vec<(&WayReport, f64, f64)> = figures(report)
        .filter_map(|(way, there)| Some((way, there, back(way)?)))
        .filter(|(way, there, back)| {
            // Nodes with different numbers of CPUs are no pair to be compared.
            let threads = report.cell(way.cell.memory, way.cell.from).map(|back| back.threads);
            threads == Some(way.threads) && is_above(there, back)
        })
        .map(|(way, there, back)| (way, there.median, back.median))
        .collect();
    let (way, there, back) = ways.iter().max_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)))?;
    Some(Finding::Asymmetric {
        way: (way.cell.from, way.cell.memory),
        there: *there,
        back: *back,
        pairs: ways.len(),
    })
}

fn hmat(report: &Report) -> Option<Finding> {
    let far = |ratio: f64| ratio.max(1.0 / ratio);
    let told = |way: &WayReport| report.declared(way.cell.from, way.cell.memory)?.read_gb_per_s;
    let pairs: Vec<(&WayReport, f64, f64)> = figures(report)
        .filter_map(|(way, figure)| Some((way, figure.median, told(way).filter(|told| *told > 0.0)?)))
        .filter(|(_, measured, told)| far(measured / told) > FAR_FROM_DECLARED)
        .collect();
    let (way, measured, declared) = pairs.iter().max_by(|a, b| far(a.1 / a.2).total_cmp(&far(b.1 / b.2)))?;
    Some(Finding::Hmat {
        way: (way.cell.from, way.cell.memory),
        measured: *measured,
        declared: *declared,
        pairs: pairs.len(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nodewise_machine::{Bytes, CpuSet};
    use nodewise_syscall::PageKind;

    use super::*;
    use crate::kernel::bandwidth::Kernel;
    use crate::stats::Interval;
    use crate::survey::{Account, CellReport, Declared, Marks};

    /// A way of so many threads with a 1% interval.
    fn way(from: u32, memory: u32, threads: u32, median: f64) -> WayReport {
        let interval = Some(Interval { low: median * 0.99, high: median * 1.01 });
        let figure = Figure { median, interval, best: median * 1.02, rounds: 6, samples: 30 };
        let cell = CellReport {
            from: NodeId::new(from),
            cpus: CpuSet::from_iter((0..threads).map(nodewise_machine::CpuId::new)),
            memory: NodeId::new(memory),
            pages: PageKind::Small,
            figure: Some(figure),
            refused: None,
            before: None,
            after: None,
            marks: Marks::default(),
            disturbed: false,
            again: false,
        };
        let threads = threads as usize;
        WayReport { kernel: Kernel::Read, variant: None, threads, everywhere: false, cell }
    }

    fn report(medians: &[&[f64]], distances: &[&[u32]]) -> Report {
        let nodes = || 0_u32..;
        let (mut matrix, mut declared) = (Vec::new(), Vec::new());
        for ((from, medians), distances) in nodes().zip(medians).zip(distances) {
            for ((memory, median), distance) in nodes().zip(*medians).zip(*distances) {
                matrix.push(way(from, memory, 4, *median));
                let (from, memory) = (NodeId::new(from), NodeId::new(memory));
                let distance = Some(*distance);
                declared.push(Declared {
                    from,
                    memory,
                    distance,
                    read_latency_ns: None,
                    read_gb_per_s: None,
                });
            }
        }
        Report {
            account: Account { took: Duration::from_secs(10), ..Account::default() },
            size: Bytes::from_mib(64),
            kernel: Kernel::Read,
            matrix,
            kernels: Vec::new(),
            scaling: Vec::new(),
            everywhere: None,
            declared,
        }
    }

    const TWO: [&[u32]; 2] = [&[10, 21], &[21, 10]];

    fn check(report: &Report, expected: &[Finding]) {
        assert_eq!(findings(report), expected);
    }

    #[test]
    fn a_symmetric_matrix_gives_weights_and_no_more() {
        let found = findings(&report(&[&[100.0, 50.0], &[50.0, 100.0]], &TWO));
        let [Finding::Weights(weights)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(weights.weights.values().copied().collect::<Vec<_>>(), [1, 1]);
        check(&report(&[&[100.0]], &[&[10]]), &[]);
        check(&report(&[], &[]), &[]);
    }

    #[test]
    fn a_slow_node_gets_a_smaller_weight() {
        let found = findings(&report(&[&[120.0, 40.0]], &[&[10, 20]]));
        let [Finding::Weights(weights)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(weights.weights.values().copied().collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn nodes_that_give_the_same_have_nominal_distances() {
        let found = findings(&report(&[&[100.0, 101.0], &[100.5, 100.0]], &TWO));
        assert_eq!(found[0], Finding::Nominal { ratio: 1.01, distance: 21 });
    }

    #[test]
    fn a_way_back_that_gives_less_is_named_where_as_many_threads_ran() {
        let (node0, node1) = (NodeId::new(0), NodeId::new(1));
        let mut report = report(&[&[100.0, 60.0], &[40.0, 100.0]], &TWO);
        let asymmetric = Finding::Asymmetric { way: (node0, node1), there: 60.0, back: 40.0, pairs: 1 };
        assert_eq!(findings(&report)[0], asymmetric);
        report.matrix[1].threads = 8;
        assert!(matches!(findings(&report)[0], Finding::Weights(_)));
    }

    #[test]
    fn the_firmware_s_bandwidths_are_compared_where_there_are_any() {
        let mut report = report(&[&[100.0]], &[&[10]]);
        report.declared[0].read_gb_per_s = Some(110.0);
        check(&report, &[]);
        report.declared[0].read_gb_per_s = Some(200.0);
        let way = (NodeId::new(0), NodeId::new(0));
        check(&report, &[Finding::Hmat { way, measured: 100.0, declared: 200.0, pairs: 1 }]);
    }

    #[test]
    fn the_knee_and_noise_are_told() {
        let mut report = report(&[&[100.0]], &[&[10]]);
        report.scaling = vec![way(0, 0, 1, 30.0), way(0, 0, 2, 60.0), way(0, 0, 4, 60.5)];
        report.account.interrupted = true;
        check(&report, &[Finding::Knee { threads: 2, of: 4 }, Finding::Noise(Noise::Interrupted)]);
    }
}
