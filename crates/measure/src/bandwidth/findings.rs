//! Findings from bandwidths, and how far they can be believed.

use std::collections::HashMap;

use nodewise_machine::{Bytes, NodeId};

use super::report::{BandwidthReport, TransferReport};
use super::weights::Weights;
use super::yardstick::{MOST_SHARE, PeakOwner};
use crate::survey::pairs::{self, Measured};
use crate::survey::{Declared, SurveyFinding};

/// How many times larger than the caches a buffer is at least, so that a pass finds most of it in memory.
const TIMES_CACHES: u64 = 2;

/// Something that bandwidths show.
#[derive(Clone, Debug, PartialEq)]
pub enum BandwidthFinding {
    /// A part of the memory may stay in the caches.
    Cached {
        /// The memory on each node.
        size: Bytes,
        /// Memory that the CPUs of a node hold together.
        caches: Bytes,
    },
    /// The nodes have distances, and memory gives the same everywhere: one controller serves them.
    Nominal {
        /// The most over the least.
        ratio: f64,
        /// The largest distance that the kernel reports.
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
    /// Measured bandwidths differ from those that the firmware declares.
    Hmat {
        /// The pair that differs most.
        way: (NodeId, NodeId),
        /// Its median, GB/s.
        measured: f64,
        /// The bandwidth that the firmware declares, GB/s.
        declared: f64,
        pairs: usize,
    },
    /// More was measured than the channels of memory can move.
    AbovePeak {
        owner: PeakOwner,
        /// The share of the peak, of 1.
        share: f64,
    },
    /// More threads than these gain next to nothing.
    Knee {
        /// This many give what all give.
        threads: usize,
        of: usize,
    },
    /// Weights for weighted interleaving in proportion to the bandwidths.
    Weights(Weights),
}

/// The contents of a report.
pub fn findings(report: &BandwidthReport) -> Vec<SurveyFinding<BandwidthFinding>> {
    let lookup = Lookup::from_report(report);
    let measured: Vec<Measured<'_>> =
        report.matrix.iter().filter_map(|way| Measured::from_cell(&way.cell)).collect();
    let mut findings: Vec<SurveyFinding<BandwidthFinding>> = Vec::new();
    findings.extend(cached(report).map(SurveyFinding::Shown));
    findings.extend(above_peak(report).map(SurveyFinding::Shown));
    match nominal(&measured, &lookup) {
        Some(nominal) => findings.push(SurveyFinding::Shown(nominal)),
        None => findings.extend(asymmetric(&measured, &lookup).map(SurveyFinding::Shown)),
    }
    findings.extend(hmat(&measured, &lookup).map(SurveyFinding::Shown));
    if let (Some(threads), Some(last)) = (report.knee(), report.scaling.last()) {
        findings.push(SurveyFinding::Shown(BandwidthFinding::Knee { threads, of: last.threads }));
    }
    findings.extend(report.weights().map(|weights| SurveyFinding::Shown(BandwidthFinding::Weights(weights))));
    findings.extend(report.account.noise(report.cells()).into_iter().map(SurveyFinding::Noise));
    findings
}

fn cached(report: &BandwidthReport) -> Option<BandwidthFinding> {
    let (size, caches) = (report.size, report.account.last_level?.together?);
    (size < caches.times(TIMES_CACHES)).then_some(BandwidthFinding::Cached { size, caches })
}

/// The memory whose share of its peak is the highest, where that is too high.
fn above_peak(report: &BandwidthReport) -> Option<BandwidthFinding> {
    let shares = report.peak_shares();
    let known = shares.iter().filter_map(|peak| Some((peak.owner, peak.share()?)));
    let (owner, share) = known.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    (share > MOST_SHARE).then_some(BandwidthFinding::AbovePeak { owner, share })
}

/// The matrix and what is declared, by pairs of nodes.
struct Lookup<'a> {
    ways: HashMap<(NodeId, NodeId), &'a TransferReport>,
    declared: HashMap<(NodeId, NodeId), &'a Declared>,
}

impl<'a> Lookup<'a> {
    fn from_report(report: &'a BandwidthReport) -> Self {
        Self {
            ways: report.matrix.iter().map(|way| ((way.cell.from, way.cell.memory), way)).collect(),
            declared: report.declared.iter().map(|one| ((one.from, one.memory), one)).collect(),
        }
    }

    fn declared(&self, pair: &Measured<'_>) -> Option<&'a Declared> {
        self.declared.get(&(pair.from, pair.memory)).copied()
    }
}

fn nominal(measured: &[Measured<'_>], lookup: &Lookup<'_>) -> Option<BandwidthFinding> {
    let (ratio, distance) = pairs::nominal(measured, |pair| lookup.declared(pair)?.distance)?;
    Some(BandwidthFinding::Nominal { ratio, distance })
}

fn asymmetric<'a>(measured: &[Measured<'a>], lookup: &Lookup<'a>) -> Option<BandwidthFinding> {
    let back = |pair: &Measured<'_>| {
        let there = lookup.ways.get(&(pair.from, pair.memory))?;
        let back = lookup.ways.get(&(pair.memory, pair.from))?;
        // Nodes with different numbers of CPUs are not a pair to compare.
        back.cell.figure.as_ref().filter(|_| there.threads == back.threads)
    };
    let found = pairs::asymmetric(measured, back)?;
    Some(BandwidthFinding::Asymmetric {
        way: found.way,
        there: found.median,
        back: found.other,
        pairs: found.pairs,
    })
}

fn hmat(measured: &[Measured<'_>], lookup: &Lookup<'_>) -> Option<BandwidthFinding> {
    let told = |pair: &Measured<'_>| lookup.declared(pair)?.read_gb_per_s.filter(|told| *told > 0.0);
    let found = pairs::far_from_declared(measured, told)?;
    let pairs::Apart { way, median, other, pairs } = found;
    Some(BandwidthFinding::Hmat { way, measured: median, declared: other, pairs })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::kernel::bandwidth::Kernel;
    use crate::latency::cache::LastLevel;
    use crate::survey::{Account, CellReport, Noise};

    /// A way of this many threads with a 1% interval.
    fn way(from: u32, memory: u32, threads: u32, median: f64) -> TransferReport {
        let cpus = (0..threads).map(nodewise_machine::CpuId::new).collect();
        let cell = CellReport { cpus, ..CellReport::made(from, memory, median) };
        let threads = threads as usize;
        TransferReport { kernel: Kernel::Read, variant: None, threads, everywhere: false, cell }
    }

    fn report(medians: &[&[f64]], distances: &[&[u32]]) -> BandwidthReport {
        let (cells, declared) = pairs::made(medians, distances);
        let way = |cell| TransferReport { cell, ..way(0, 0, 4, 1.0) };
        let matrix = cells.into_iter().map(way).collect();
        BandwidthReport {
            account: Account { took: Duration::from_secs(10), ..Account::default() },
            size: Bytes::from_mib(64),
            kernel: Kernel::Read,
            matrix,
            kernels: Vec::new(),
            scaling: Vec::new(),
            everywhere: None,
            declared,
            yardstick: None,
        }
    }

    const TWO: [&[u32]; 2] = [&[10, 21], &[21, 10]];

    fn check(report: &BandwidthReport, expected: &[SurveyFinding<BandwidthFinding>]) {
        assert_eq!(findings(report), expected);
    }

    #[test]
    fn a_symmetric_matrix_gives_weights_and_no_more() {
        let found = findings(&report(&[&[100.0, 50.0], &[50.0, 100.0]], &TWO));
        let [SurveyFinding::Shown(BandwidthFinding::Weights(weights))] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(weights.weights.values().copied().collect::<Vec<_>>(), [1, 1]);
        check(&report(&[&[100.0]], &[&[10]]), &[]);
        check(&report(&[], &[]), &[]);
    }

    #[test]
    fn memory_that_stays_in_caches_is_a_finding() {
        let held = |mib| {
            let together = Some(Bytes::from_mib(mib));
            let last_level = LastLevel { claimed: None, found: None, together, is_cut_short: false };
            let account = Account { last_level: Some(last_level), ..Account::default() };
            findings(&BandwidthReport { account, ..report(&[&[100.0]], &[&[10]]) })
        };
        let (size, caches) = (Bytes::from_mib(64), Bytes::from_mib(33));
        assert_eq!(held(33), [SurveyFinding::Shown(BandwidthFinding::Cached { size, caches })]);
        assert_eq!(held(32), []);
    }

    #[test]
    fn a_slow_node_gets_a_smaller_weight() {
        let found = findings(&report(&[&[120.0, 40.0]], &[&[10, 20]]));
        let [SurveyFinding::Shown(BandwidthFinding::Weights(weights))] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(weights.weights.values().copied().collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn nodes_that_give_the_same_have_nominal_distances() {
        let found = findings(&report(&[&[100.0, 101.0], &[100.5, 100.0]], &TWO));
        assert_eq!(found[0], SurveyFinding::Shown(BandwidthFinding::Nominal { ratio: 1.01, distance: 21 }));
    }

    #[test]
    fn a_way_back_that_gives_less_is_named_where_as_many_threads_ran() {
        let (node0, node1) = (NodeId::new(0), NodeId::new(1));
        let mut report = report(&[&[100.0, 60.0], &[40.0, 100.0]], &TWO);
        let asymmetric = SurveyFinding::Shown(BandwidthFinding::Asymmetric {
            way: (node0, node1),
            there: 60.0,
            back: 40.0,
            pairs: 1,
        });
        assert_eq!(findings(&report)[0], asymmetric);
        report.matrix[1].threads = 8;
        assert!(matches!(findings(&report)[0], SurveyFinding::Shown(BandwidthFinding::Weights(_))));
    }

    #[test]
    fn the_firmware_s_bandwidths_are_compared_where_there_are_any() {
        let mut report = report(&[&[100.0]], &[&[10]]);
        report.declared[0].read_gb_per_s = Some(110.0);
        check(&report, &[]);
        report.declared[0].read_gb_per_s = Some(200.0);
        let way = (NodeId::new(0), NodeId::new(0));
        check(
            &report,
            &[SurveyFinding::Shown(BandwidthFinding::Hmat {
                way,
                measured: 100.0,
                declared: 200.0,
                pairs: 1,
            })],
        );
    }

    #[test]
    fn the_knee_and_noise_are_told() {
        let mut report = report(&[&[100.0]], &[&[10]]);
        report.scaling = vec![way(0, 0, 1, 30.0), way(0, 0, 2, 60.0), way(0, 0, 4, 60.5)];
        report.account.interrupted = true;
        check(
            &report,
            &[
                SurveyFinding::Shown(BandwidthFinding::Knee { threads: 2, of: 4 }),
                SurveyFinding::Noise(Noise::Interrupted),
            ],
        );
    }
}
