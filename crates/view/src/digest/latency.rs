//! Matrices and sentences of a report of latencies.

use std::collections::BTreeSet;

use nodewise_machine::NodeId;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_measure::cell::PageKind;
use nodewise_measure::latency::{LatencyFinding, LatencyReport, Lookup, findings};
use nodewise_measure::survey::{CellReport, Figure, extent};
use nodewise_stats::{Direction, median};

use crate::digest::counts::{by_count, plural};
use crate::digest::matrix::{Entry, Matrix};
use crate::digest::published::{PublishedQuantity, PublishedRange};
use crate::digest::survey::{Ending, FindingSentence, missing, pages_words};

/// Which figure of a cell a matrix shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The median: what a program gets.
    Median,
    /// The best sample: what the hardware does undisturbed.
    Best,
}

/// The matrix of one kind of pages.
pub fn matrix(report: &LatencyReport, pages: PageKind, shown: Shown) -> Matrix {
    let (title, value): (_, fn(&Figure) -> f64) = match shown {
        Shown::Median => (pages_words(pages), |figure| figure.median),
        Shown::Best => (format!("{}, best", pages_words(pages)), |figure| figure.best),
    };
    let remark = match shown {
        Shown::Median => "ns per load, median of the rounds",
        Shown::Best => "ns per load, least of all samples",
    };
    let mut matrix = Matrix::new(title, "ns", remark, Direction::LowerIsBetter);
    for cell in report.cells.iter().filter(|cell| cell.pages == pages) {
        let entry = Entry { value: cell.figure.as_ref().map(value), disturbed: cell.disturbed };
        matrix.set(cell.from, cell.memory, entry);
    }
    matrix
}

/// The matrix of what looking up small pages adds; `None` where it was not measured.
pub fn page_walks(report: &LatencyReport) -> Option<Matrix> {
    let remark = "ns per load, small pages less huge ones";
    let mut matrix = Matrix::new("page walks", "ns", remark, Direction::LowerIsBetter);
    let lookup = Lookup::new(report);
    // The pairs that were asked for: all of both sides would be too many in a document from outside.
    for (from, memory) in report.cells.iter().map(|cell| (cell.from, cell.memory)) {
        let value = lookup.page_walk_ns(from, memory);
        matrix.set(from, memory, Entry { value, disturbed: lookup.is_disturbed(from, memory) });
    }
    (!matrix.is_empty()).then_some(matrix)
}

/// A finding as a sentence.
fn sentence(finding: &LatencyFinding) -> String {
    match finding {
        LatencyFinding::Nominal { ratio, distance } => format!(
            "distances are nominal: memory costs the same everywhere (within {:.1} %), though distances go \
             up to {distance}; one controller serves all nodes",
            (ratio - 1.0) * 100.0
        ),
        LatencyFinding::Asymmetric { way: (from, memory), there_ns, back_ns, pairs } => {
            let more = if *pairs > 1 { format!("; {pairs} pairs differ so") } else { String::new() };
            format!(
                "the matrix is asymmetric: node {from} to node {memory} costs {there_ns:.0} ns, the way back \
                 {back_ns:.0} ns{more}"
            )
        }
        LatencyFinding::Slit { distance, ratio, pairs } => format!(
            "distance {distance} says {:.1} times local, measured {ratio:.2} times ({})",
            f64::from(*distance) / 10.0,
            plural(*pairs, "pair")
        ),
        LatencyFinding::Hmat { way: (from, memory), measured_ns, declared_ns, pairs } => format!(
            "the firmware (HMAT) says {declared_ns} ns from node {from} to node {memory}, measured \
             {measured_ns:.0} ns ({} {} by more than 15 %)",
            plural(*pairs, "pair"),
            by_count(pairs, "differs", "differ")
        ),
    }
}

/// Returns the findings of the report, and how far they can be believed.
pub fn finding_sentences(report: &LatencyReport) -> Vec<FindingSentence> {
    findings(report).iter().map(|finding| FindingSentence::from_finding(finding, sentence)).collect()
}

/// How the report ends.
pub fn ending(report: &LatencyReport) -> Ending {
    let findings = finding_sentences(report).into_iter();
    let beside = published(report).into_iter().map(|(range, figure)| range.sentence(figure));
    let how: Vec<String> = std::iter::once(method(report)).chain(beside).collect();
    Ending::of_cells(how, &report.account, report.cells.iter(), report.size, findings)
        .with_not_reached(missing("cell", report.cells.iter().map(CellReport::is_reached)))
}

/// Published figures of this family of processors, each with the one measured here. That to another node is the way to
/// the other socket only where two nodes have CPUs.
pub fn published(report: &LatencyReport) -> Vec<(PublishedRange, f64)> {
    let nodes: BTreeSet<NodeId> = report.cells.iter().map(|cell| cell.from).collect_set();
    let kinds = report.page_kinds();
    let of = |is_local: bool| {
        let cells = report.cells.iter().filter(|cell| Some(&cell.pages) == kinds.first());
        let cells =
            cells.filter(|cell| (cell.from == cell.memory) == is_local && nodes.contains(&cell.memory));
        let figures: Vec<f64> = cells.filter_map(|cell| cell.figure.map(|figure| figure.median)).collect();
        median(&figures)
    };
    let local = of(true).map(|figure| (PublishedQuantity::LocalLatency, figure));
    let remote =
        of(false).filter(|_| nodes.len() == 2).map(|figure| (PublishedQuantity::RemoteLatency, figure));
    let conditions = &report.account.conditions;
    let found = |(quantity, figure)| Some((PublishedRange::find(quantity, conditions)?, figure));
    local.into_iter().chain(remote).filter_map(found).collect()
}

/// How it was measured, in one line.
pub fn method(report: &LatencyReport) -> String {
    let (rounds, samples) = extent(report.cells.iter().filter_map(|cell| cell.figure.as_ref()));
    format!(
        "one random cycle through {} per buffer; {rounds} rounds, {samples} samples of 65,536 loads per cell, \
         interleaved; seed {}; {:.0} s",
        report.size,
        report.account.seed,
        report.account.took.as_secs_f64()
    )
}
