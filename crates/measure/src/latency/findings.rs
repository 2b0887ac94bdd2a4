//! What a matrix of latencies shows, and how far it can be believed.

use nodewise_machine::NodeId;
use nodewise_syscall::PageKind;

use super::report::{Lookup, Report};
use crate::stats::median;
use crate::survey::{CellReport, Figure, Noise};

/// Two ways differ when one costs this much more than the other and their intervals are apart. What
/// is less than a tenth of the step to a neighbour (1.1 by the SLIT's own scale) places no memory.
const DIFFERENT: f64 = 1.05;
/// Measured ratios that are this far from those that the firmware tells are worth a word.
const FAR_FROM_DECLARED: f64 = 1.15;
/// Something that the matrix shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// The nodes have distances, and memory costs the same everywhere: one controller serves them.
    Nominal {
        /// The largest median over the least.
        ratio: f64,
        /// The largest distance that the kernel tells.
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
    /// Measured ratios differ from the distances that the kernel tells.
    Slit {
        /// The distance.
        distance: u32,
        /// The median over pairs with that distance of their cost against the local one.
        ratio: f64,
        /// How many pairs have it.
        pairs: usize,
    },
    /// Measured latencies differ from those that the firmware tells.
    Hmat {
        /// The pair that differs most.
        way: (NodeId, NodeId),
        /// Its median, ns.
        measured_ns: f64,
        /// What the firmware tells, ns.
        declared_ns: u32,
        /// How many pairs differ.
        pairs: usize,
    },
    /// How far all of it can be believed.
    Noise(Noise),
}

impl Finding {
    /// Whether it says that figures may not repeat, here and now.
    pub fn is_noise(&self) -> bool {
        matches!(self, Self::Noise(noise) if *noise != Noise::Interrupted)
    }
}

/// What a report shows.
pub fn findings(report: &Report) -> Vec<Finding> {
    let Some(pages) = report.page_kinds().first().copied() else { return Vec::new() };
    let lookup = Lookup::of(report);
    let mut findings: Vec<Finding> = Vec::new();
    if let Some(nominal) = nominal(report, &lookup, pages) {
        findings.push(nominal);
    } else {
        findings.extend(asymmetric(report, &lookup, pages));
        findings.extend(slit(report, &lookup, pages));
    }
    findings.extend(hmat(report, &lookup, pages));
    findings.extend(report.account.noise(report.cells.iter()).into_iter().map(Finding::Noise));
    findings
}

/// The figures of one kind of pages.
fn figures(report: &Report, pages: PageKind) -> impl Iterator<Item = (&CellReport, &Figure)> {
    report
        .cells
        .iter()
        .filter(move |cell| cell.pages == pages)
        .filter_map(|cell| Some((cell, cell.figure.as_ref()?)))
}

fn nominal(report: &Report, lookup: &Lookup<'_>, pages: PageKind) -> Option<Finding> {
    let distance = |cell: &CellReport| lookup.declared(cell.from, cell.memory)?.distance;
    let distances = || figures(report, pages).filter_map(|(cell, _)| distance(cell));
    let (nearest, farthest) = (distances().min()?, distances().max()?);
    let medians = || figures(report, pages).map(|(_, figure)| figure.median);
    let (least, most) = (medians().reduce(f64::min)?, medians().reduce(f64::max)?);
    let ratio = most / least;
    (medians().count() > 1 && nearest < farthest && ratio < DIFFERENT)
        .then_some(Finding::Nominal { ratio, distance: farthest })
}

/// Whether one figure is above another beyond its noise.
fn is_above(one: &Figure, other: &Figure) -> bool {
    let apart = match (one.interval, other.interval) {
        (Some(one), Some(other)) => one.low > other.high,
        _ => false,
    };
    apart && one.median > other.median * DIFFERENT
}

fn asymmetric(report: &Report, lookup: &Lookup<'_>, pages: PageKind) -> Option<Finding> {
    let back = |cell: &CellReport| lookup.cell(cell.memory, cell.from, pages)?.figure.as_ref();
    let ways: Vec<(&CellReport, &Figure, &Figure)> = figures(report, pages)
        .filter_map(|(cell, there)| Some((cell, there, back(cell)?)))
        .filter(|(_, there, back)| is_above(there, back))
        .collect();
    let ratio = |way: &(&CellReport, &Figure, &Figure)| way.1.median / way.2.median;
    let (cell, there, back) = ways.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    Some(Finding::Asymmetric {
        way: (cell.from, cell.memory),
        there_ns: there.median,
        back_ns: back.median,
        pairs: ways.len(),
    })
}

/// Distances whose pairs cost something else than they say.
fn slit(report: &Report, lookup: &Lookup<'_>, pages: PageKind) -> Vec<Finding> {
    let mut ratios: std::collections::BTreeMap<u32, Vec<f64>> = std::collections::BTreeMap::new();
    for (cell, figure) in figures(report, pages).filter(|(cell, _)| cell.from != cell.memory) {
        let local = lookup.cell(cell.from, cell.from, pages).and_then(|cell| cell.figure.as_ref());
        let distance = lookup.declared(cell.from, cell.memory).and_then(|declared| declared.distance);
        if let (Some(local), Some(distance)) = (local, distance) {
            ratios.entry(distance).or_default().push(figure.median / local.median);
        }
    }
    let finding = |(distance, ratios): (u32, Vec<f64>)| {
        let ratio = median(&ratios)?;
        let told = f64::from(distance) / 10.0;
        let far = (ratio / told).max(told / ratio) > FAR_FROM_DECLARED;
        far.then_some(Finding::Slit { distance, ratio, pairs: ratios.len() })
    };
    ratios.into_iter().filter_map(finding).collect()
}

fn hmat(report: &Report, lookup: &Lookup<'_>, pages: PageKind) -> Option<Finding> {
    let told = |cell: &CellReport| lookup.declared(cell.from, cell.memory)?.read_latency_ns;
    let far = |ratio: f64| ratio.max(1.0 / ratio);
    let pairs: Vec<(&CellReport, f64, u32)> = figures(report, pages)
        .filter_map(|(cell, figure)| Some((cell, figure.median, told(cell).filter(|told| *told > 0)?)))
        .filter(|(_, measured, told)| far(measured / f64::from(*told)) > FAR_FROM_DECLARED)
        .collect();
    let ratio = |pair: &(&CellReport, f64, u32)| far(pair.1 / f64::from(pair.2));
    let (cell, measured_ns, declared_ns) = pairs.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    Some(Finding::Hmat {
        way: (cell.from, cell.memory),
        measured_ns: *measured_ns,
        declared_ns: *declared_ns,
        pairs: pairs.len(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nodewise_machine::{Bytes, CpuSet};

    use super::*;
    use crate::stats::Interval;
    use crate::survey::{Account, Declared, Marks};

    /// A matrix of huge pages with 1% intervals, and the distances beside it.
    fn report(medians: &[&[f64]], distances: &[&[u32]]) -> Report {
        let nodes = || 0_u32..;
        let mut cells = Vec::new();
        let mut declared = Vec::new();
        for ((from, medians), distances) in nodes().zip(medians).zip(distances) {
            for ((memory, median), distance) in nodes().zip(*medians).zip(*distances) {
                let (from, memory) = (NodeId::new(from), NodeId::new(memory));
                let interval = Interval { low: median * 0.99, high: median * 1.01 };
                let figure = Figure {
                    median: *median,
                    interval: Some(interval),
                    best: median * 0.98,
                    rounds: 6,
                    samples: 30,
                };
                cells.push(CellReport {
                    from,
                    cpus: CpuSet::from([1]),
                    memory,
                    pages: PageKind::TransparentHuge,
                    figure: Some(figure),
                    refused: None,
                    before: None,
                    after: None,
                    marks: Marks::default(),
                    disturbed: false,
                    again: false,
                });
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
        assert_eq!(found, [Finding::Nominal { ratio: 81.0 / 80.0, distance: 21 }]);
        // All at distance 10: nothing is claimed, so nothing is nominal.
        assert_eq!(findings(&report(&[&[80.0, 81.0], &[80.5, 80.0]], &[&[10, 10], &[10, 10]])), []);
    }

    #[test]
    fn a_way_back_that_costs_more_is_named() {
        let found = findings(&report(&[&[80.0, 165.0], &[190.0, 80.0]], &TWO));
        let (node0, node1) = (NodeId::new(0), NodeId::new(1));
        assert_eq!(
            found,
            [Finding::Asymmetric { way: (node1, node0), there_ns: 190.0, back_ns: 165.0, pairs: 1 }]
        );
    }

    #[test]
    fn distances_that_are_not_the_cost_are_named_once_each() {
        let found = findings(&report(&[&[100.0, 130.0], &[130.0, 100.0]], &TWO));
        assert_eq!(found, [Finding::Slit { distance: 21, ratio: 1.3, pairs: 2 }]);
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
            [Finding::Hmat { way, measured_ns: 210.0, declared_ns: 140, pairs: 1 }]
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
                Finding::Noise(Noise::Interrupted),
                Finding::Noise(Noise::Stolen { share: 0.05 }),
                Finding::Noise(Noise::Others { cpus: 0.8 }),
                Finding::Noise(Noise::Disturbed { cells: 1, of: 1 }),
                Finding::Noise(Noise::Uncertain { cells: 1, of: 1, widest: 0.1 }),
            ]
        );
        assert_eq!(found.iter().filter(|finding| finding.is_noise()).count(), 4);
        report.cells[0].figure = None;
        assert_eq!(findings(&report), [Finding::Noise(Noise::Interrupted)], "noise has changed nothing");
    }
}
