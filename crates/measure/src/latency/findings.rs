//! Findings from a matrix of latencies, and how far they can be believed.

use nodewise_machine::NodeId;
use nodewise_syscall::PageKind;

use super::report::{LatencyReport, Lookup};
use crate::survey::SurveyFinding;
use crate::survey::pairs::{self, Measured};
use nodewise_stats::median;

/// Something that the matrix shows.
#[derive(Clone, Debug, PartialEq)]
pub enum LatencyFinding {
    /// The nodes have distances, and memory costs the same everywhere: one controller serves them.
    Nominal {
        /// The largest median over the least.
        ratio: f64,
        /// The largest distance that the kernel reports.
        distance: u32,
    },
    /// The way there and the way back cost differently.
    Asymmetric {
        /// The costlier way: node of the CPUs, node of the memory.
        way: (NodeId, NodeId),
        /// Its median, ns.
        there_ns: f64,
        /// The median of the way back, ns.
        back_ns: f64,
        /// How many pairs differ so.
        pairs: usize,
    },
    /// Measured ratios differ from the distances that the kernel reports.
    Slit {
        distance: u32,
        /// The median over pairs with that distance of their cost against the local one.
        ratio: f64,
        /// How many pairs have it.
        pairs: usize,
    },
    /// Measured latencies differ from those that the firmware declares.
    Hmat {
        /// The pair that differs most.
        way: (NodeId, NodeId),
        /// Its median, ns.
        measured_ns: f64,
        /// The latency that the firmware declares, ns.
        declared_ns: u32,
        pairs: usize,
    },
}

/// The contents of a report.
pub fn findings(report: &LatencyReport) -> Vec<SurveyFinding<LatencyFinding>> {
    let Some(pages) = report.page_kinds().first().copied() else { return Vec::new() };
    let lookup = Lookup::new(report);
    let of_kind = report.cells.iter().filter(|cell| cell.pages == pages);
    let measured: Vec<Measured<'_>> = of_kind.filter_map(Measured::from_cell).collect();
    let mut findings: Vec<SurveyFinding<LatencyFinding>> = Vec::new();
    if let Some(nominal) = nominal(&measured, &lookup) {
        findings.push(SurveyFinding::Shown(nominal));
    } else {
        findings.extend(asymmetric(&measured, &lookup, pages).map(SurveyFinding::Shown));
        findings.extend(slit(&measured, &lookup, pages).into_iter().map(SurveyFinding::Shown));
    }
    findings.extend(hmat(&measured, &lookup).map(SurveyFinding::Shown));
    findings.extend(report.account.noise(report.cells.iter()).into_iter().map(SurveyFinding::Noise));
    findings
}

fn nominal(measured: &[Measured<'_>], lookup: &Lookup<'_>) -> Option<LatencyFinding> {
    let distance = |pair: &Measured<'_>| lookup.declared(pair.from, pair.memory)?.distance;
    let (ratio, distance) = pairs::nominal(measured, distance)?;
    Some(LatencyFinding::Nominal { ratio, distance })
}

fn asymmetric<'a>(measured: &[Measured<'a>], lookup: &Lookup<'a>, pages: PageKind) -> Option<LatencyFinding> {
    let back = |pair: &Measured<'_>| lookup.cell(pair.memory, pair.from, pages)?.figure.as_ref();
    let found = pairs::asymmetric(measured, back)?;
    Some(LatencyFinding::Asymmetric {
        way: found.way,
        there_ns: found.median,
        back_ns: found.other,
        pairs: found.pairs,
    })
}

/// Distances whose pairs cost something else than they say.
fn slit(measured: &[Measured<'_>], lookup: &Lookup<'_>, pages: PageKind) -> Vec<LatencyFinding> {
    let mut ratios: std::collections::BTreeMap<u32, Vec<f64>> = std::collections::BTreeMap::new();
    for pair in measured.iter().filter(|pair| pair.from != pair.memory) {
        let local = lookup.cell(pair.from, pair.from, pages).and_then(|cell| cell.figure.as_ref());
        let distance = lookup.declared(pair.from, pair.memory).and_then(|declared| declared.distance);
        if let (Some(local), Some(distance)) = (local, distance) {
            ratios.entry(distance).or_default().push(pair.figure.median / local.median);
        }
    }
    let finding = |(distance, ratios): (u32, Vec<f64>)| {
        let ratio = median(&ratios)?;
        let far = pairs::is_far(ratio, f64::from(distance) / 10.0);
        far.then_some(LatencyFinding::Slit { distance, ratio, pairs: ratios.len() })
    };
    ratios.into_iter().filter_map(finding).collect()
}

fn hmat(measured: &[Measured<'_>], lookup: &Lookup<'_>) -> Option<LatencyFinding> {
    let told = |(from, memory): (NodeId, NodeId)| lookup.declared(from, memory)?.read_latency_ns;
    let known = |pair: &Measured<'_>| told((pair.from, pair.memory)).filter(|told| *told > 0).map(f64::from);
    let found = pairs::far_from_declared(measured, known)?;
    let declared_ns = told(found.way)?;
    Some(LatencyFinding::Hmat { way: found.way, measured_ns: found.median, declared_ns, pairs: found.pairs })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nodewise_machine::Bytes;

    use super::*;
    use crate::survey::{Account, CellReport, Noise};
    use nodewise_stats::Interval;

    /// A matrix of huge pages with 1% intervals, and the distances beside it.
    fn report(medians: &[&[f64]], distances: &[&[u32]]) -> LatencyReport {
        let (cells, declared) = pairs::made(medians, distances);
        let huge = |cell| CellReport { pages: PageKind::TransparentHuge, ..cell };
        let cells = cells.into_iter().map(huge).collect();
        LatencyReport {
            account: Account { took: Duration::from_secs(10), ..Account::default() },
            size: Bytes::from_mib(64),
            cells,
            declared,
        }
    }

    const TWO: [&[u32]; 2] = [&[10, 21], &[21, 10]];

    #[test]
    fn a_matrix_as_the_firmware_tells_it_shows_nothing() {
        assert_eq!(findings(&report(&[&[80.0, 165.0], &[166.0, 81.0]], &TWO)), []);
        assert_eq!(findings(&report(&[&[80.0]], &[&[10]])), []);
        assert_eq!(findings(&report(&[], &[])), []);
    }

    #[test]
    fn nodes_that_cost_the_same_have_nominal_distances() {
        let found = findings(&report(&[&[80.0, 81.0], &[80.5, 80.0]], &TWO));
        assert_eq!(
            found,
            [SurveyFinding::Shown(LatencyFinding::Nominal { ratio: 81.0 / 80.0, distance: 21 })]
        );
        // All at distance 10: nothing is claimed, so nothing is nominal.
        assert_eq!(findings(&report(&[&[80.0, 81.0], &[80.5, 80.0]], &[&[10, 10], &[10, 10]])), []);
    }

    #[test]
    fn a_way_back_that_costs_more_is_named() {
        let found = findings(&report(&[&[80.0, 165.0], &[190.0, 80.0]], &TWO));
        let (node0, node1) = (NodeId::new(0), NodeId::new(1));
        assert_eq!(
            found,
            [SurveyFinding::Shown(LatencyFinding::Asymmetric {
                way: (node1, node0),
                there_ns: 190.0,
                back_ns: 165.0,
                pairs: 1
            })]
        );
    }

    #[test]
    fn distances_that_are_not_the_cost_are_named_once_each() {
        let found = findings(&report(&[&[100.0, 130.0], &[130.0, 100.0]], &TWO));
        assert_eq!(
            found,
            [SurveyFinding::Shown(LatencyFinding::Slit { distance: 21, ratio: 1.3, pairs: 2 })]
        );
    }

    #[test]
    fn the_firmware_s_latencies_are_compared_where_there_are_any() {
        let mut report = report(&[&[100.0, 210.0], &[210.0, 100.0]], &TWO);
        report.declared[0].read_latency_ns = Some(95);
        assert_eq!(findings(&report), []);
        report.declared[1].read_latency_ns = Some(140);
        report.declared[2].read_latency_ns = Some(0);
        let way = (NodeId::new(0), NodeId::new(1));
        assert_eq!(
            findings(&report),
            [SurveyFinding::Shown(LatencyFinding::Hmat {
                way,
                measured_ns: 210.0,
                declared_ns: 140,
                pairs: 1
            })]
        );
    }

    #[test]
    fn noise_is_told_with_its_size() {
        let mut report = report(&[&[100.0]], &[&[10]]);
        report.account.meanwhile.stolen = Some(Duration::from_millis(500));
        report.account.meanwhile.others = Some(Duration::from_secs(8));
        report.cells[0].disturbed = true;
        if let Some(figure) = &mut report.cells[0].figure {
            figure.interval = Some(Interval { low: 90.0, high: 110.0 });
        }
        report.account.interrupted = true;
        let found = findings(&report);
        assert_eq!(
            found,
            [
                SurveyFinding::Noise(Noise::Interrupted),
                SurveyFinding::Noise(Noise::Stolen { share: 0.05 }),
                SurveyFinding::Noise(Noise::Others { cpus: 0.8 }),
                SurveyFinding::Noise(Noise::Disturbed { cells: 1, of: 1 }),
                SurveyFinding::Noise(Noise::Uncertain { cells: 1, of: 1, widest: 0.1 }),
            ]
        );
        assert_eq!(found.iter().filter(|finding| finding.is_noise()).count(), 4);
        report.cells[0].figure = None;
        assert_eq!(
            findings(&report),
            [SurveyFinding::Noise(Noise::Interrupted)],
            "noise has changed nothing"
        );
    }
}
