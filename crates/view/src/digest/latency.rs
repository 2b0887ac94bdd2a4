//! What a report of latencies shows, as matrices and sentences.

use nodewise_machine::NodeId;
use nodewise_measure::cell::PageKind;
use nodewise_measure::latency::sweep::SweepReport;
use nodewise_measure::latency::{Finding, Lookup, Pattern, Report};
use nodewise_measure::metric::Direction;
use nodewise_measure::survey::{Figure, extent};

use crate::digest::matrix::{Entry, Matrix};
use crate::digest::survey::{noise_sentence, pages_words};

/// Which figure of a cell a matrix shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The median: what a program gets.
    Median,
    /// The best sample: what the hardware does undisturbed.
    Best,
}

/// The matrix of one kind of pages.
pub fn matrix(report: &Report, pages: PageKind, shown: Shown) -> Matrix {
    let (title, value): (_, fn(&Figure) -> f64) = match shown {
        Shown::Median => (pages_words(pages), |figure| figure.median),
        Shown::Best => (format!("{}, best", pages_words(pages)), |figure| figure.best),
    };
    let remark = match shown {
        Shown::Median => "ns per load, median of the rounds",
        Shown::Best => "ns per load, least of all samples",
    };
    let mut matrix = Matrix::new(title, remark, "ns", Direction::LowerIsBetter);
    for cell in report.cells.iter().filter(|cell| cell.pages == pages) {
        let entry = Entry { value: cell.figure.as_ref().map(value), disturbed: cell.disturbed };
        matrix.set(cell.from, cell.memory, entry);
    }
    matrix
}

/// The matrix of what looking up small pages adds; `None` where it was not measured.
pub fn page_walks(report: &Report) -> Option<Matrix> {
    let remark = "ns per load, small pages less huge ones";
    let mut matrix = Matrix::new("page walks", remark, "ns", Direction::LowerIsBetter);
    let lookup = Lookup::of(report);
    let targets = report.targets();
    for from in report.sources() {
        for memory in targets.iter().copied() {
            let value = lookup.page_walk_ns(from, memory);
            matrix.set(from, memory, Entry { value, disturbed: lookup.is_disturbed(from, memory) });
        }
    }
    (!matrix.is_empty()).then_some(matrix)
}

/// A finding as a sentence.
pub fn sentence(finding: &Finding) -> String {
    match finding {
        Finding::Nominal { ratio, distance } => format!(
            "distances are nominal: memory costs the same everywhere (within {:.1} %), though distances go \
             up to {distance}; one controller serves all nodes",
            (ratio - 1.0) * 100.0
        ),
        Finding::Asymmetric { way: (from, memory), there_ns, back_ns, pairs } => {
            let more = if *pairs > 1 { format!("; {pairs} pairs differ so") } else { String::new() };
            format!(
                "the matrix is asymmetric: node {from} to node {memory} costs {there_ns:.0} ns, the way back \
                 {back_ns:.0} ns{more}"
            )
        }
        Finding::Slit { distance, ratio, pairs } => format!(
            "distance {distance} says {:.1} times local, measured {ratio:.2} times ({pairs} pair{})",
            f64::from(*distance) / 10.0,
            plural(*pairs)
        ),
        Finding::Hmat { way: (from, memory), measured_ns, declared_ns, pairs } => format!(
            "the firmware (HMAT) says {declared_ns} ns from node {from} to node {memory}, measured \
             {measured_ns:.0} ns ({pairs} pair{} differ by more than 15 %)",
            plural(*pairs)
        ),
        Finding::Noise(noise) => noise_sentence(noise),
    }
}

const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// How it was measured, in one line.
pub fn method(report: &Report) -> String {
    let (rounds, samples) = extent(report.cells.iter().filter_map(|cell| cell.figure.as_ref()));
    format!(
        "one random cycle through {} per buffer; {rounds} rounds, {samples} samples of 65,536 loads per cell, \
         interleaved; seed {}; {:.0} s",
        report.size,
        report.account.seed,
        report.account.took.as_secs_f64()
    )
}

/// What a way through a buffer is called.
pub fn pattern_words(pattern: Pattern) -> String {
    match pattern {
        Pattern::Random => "random (latency)".to_owned(),
        Pattern::Stride(elements) => format!("stride {elements} (access)"),
    }
}

/// The nodes whose memory a sweep has reached for, in its order.
pub fn nodes_with_memory(report: &SweepReport) -> Vec<NodeId> {
    let mut nodes: Vec<NodeId> = Vec::new();
    for chase in &report.chases {
        if !nodes.contains(&chase.cell.memory) {
            nodes.push(chase.cell.memory);
        }
    }
    nodes
}

/// How a sweep was measured, in one line.
pub fn sweep_method(report: &SweepReport) -> String {
    let (rounds, samples) = extent(report.chases.iter().filter_map(|chase| chase.cell.figure.as_ref()));
    let cpus: Vec<String> =
        report.chases.first().map(|chase| chase.cell.cpus.to_string()).into_iter().collect();
    let ended = if report.account.interrupted { "; ended early" } else { "" };
    format!(
        "from CPU {}; {rounds} rounds, {samples} samples of 65,536 loads for each size, interleaved; pages proven \
         on their node before and after; seed {}; {:.0} s{ended}",
        cpus.join(","),
        report.account.seed,
        report.account.took.as_secs_f64()
    )
}

/// Why chases of a sweep have no figure, each reason once, and whether it was too noisy.
pub fn sweep_refusals(report: &SweepReport) -> Vec<String> {
    let noise = report.noise().map(|(disturbed, of)| {
        format!("too noisy: {disturbed} of {of} were disturbed; the levels found need not be true")
    });
    let mut reasons: Vec<String> = noise.into_iter().collect();
    for chase in &report.chases {
        let Some(why) = &chase.cell.refused else { continue };
        if !reasons.contains(why) {
            reasons.push(why.clone());
        }
    }
    reasons
}
