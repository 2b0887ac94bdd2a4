//! Matrices, rows and sentences of a report of bandwidths.

use nodewise_measure::bandwidth::{BandwidthFinding, BandwidthReport, TransferReport, Weights, findings};
use nodewise_measure::kernel::bandwidth::Kernel;
use nodewise_measure::survey::extent;
use nodewise_stats::Direction;

use crate::digest::counts::{by_count, plural};
use crate::digest::matrix::{Entry, Matrix};
use crate::digest::survey::{Ending, FindingSentence, missing, pages_words};

/// The matrix of nodes: all threads of a node on the memory of each.
pub fn matrix(report: &BandwidthReport) -> Matrix {
    let pages = report.matrix.first().map(|way| pages_words(way.cell.pages)).unwrap_or_default();
    let title = format!("{}, {pages}", report.kernel);
    let remark = "GB/s, median of the rounds";
    let mut matrix = Matrix::new(title, "GB/s", remark, Direction::HigherIsBetter);
    for way in &report.matrix {
        let entry = Entry { value: median(way), disturbed: way.cell.disturbed };
        matrix.set(way.cell.from, way.cell.memory, entry);
    }
    matrix
}

/// The median of a way, GB/s.
pub fn median(way: &TransferReport) -> Option<f64> {
    Some(way.cell.figure.as_ref()?.median)
}

/// The known facts about one kernel near its memory.
#[derive(Clone, Copy, Debug)]
pub struct KernelRow<'a> {
    pub kernel: Kernel,
    pub one: Option<&'a TransferReport>,
    /// With all threads of the node.
    pub all: Option<&'a TransferReport>,
}

impl<'a> KernelRow<'a> {
    /// The way with the most threads.
    pub fn most(&self) -> Option<&'a TransferReport> {
        self.all.or(self.one)
    }
}

/// A row per kernel.
pub fn kernel_rows(report: &BandwidthReport) -> Vec<KernelRow<'_>> {
    let of = |kernel: Kernel, one: bool| {
        report.kernels.iter().find(|way| way.kernel == kernel && (way.threads == 1) == one)
    };
    let row = |kernel| KernelRow { kernel, one: of(kernel, true), all: of(kernel, false) };
    Kernel::ALL.into_iter().map(row).filter(|row| row.most().is_some()).collect()
}

/// A finding as a sentence.
fn sentence(finding: &BandwidthFinding) -> String {
    match finding {
        BandwidthFinding::Cached { size, caches } => format!(
            "figures of all threads can be those of caches: they hold up to {caches}, and {size} are read and written; \
             --size {} measures memory",
            caches.times(4)
        ),
        BandwidthFinding::Nominal { ratio, distance } => format!(
            "distances are nominal: memory gives the same everywhere (within {:.1} %), though distances go up \
             to {distance}; one controller serves all nodes",
            (ratio - 1.0) * 100.0
        ),
        BandwidthFinding::Asymmetric { way: (from, memory), there, back, pairs } => {
            let more = if *pairs > 1 { format!("; {pairs} pairs differ so") } else { String::new() };
            format!(
                "the matrix is asymmetric: node {from} to node {memory} has {there:.1} GB/s, the way back \
                 {back:.1} GB/s{more}"
            )
        }
        BandwidthFinding::Hmat { way: (from, memory), measured, declared, pairs } => format!(
            "the firmware (HMAT) says {declared:.1} GB/s from node {from} to node {memory}, measured \
             {measured:.1} GB/s ({} {} by more than 15 %)",
            plural(*pairs, "pair"),
            by_count(pairs, "differs", "differ")
        ),
        BandwidthFinding::Knee { threads, of } => format!(
            "{} {} what {of} do: more wait for memory",
            plural(*threads, "thread"),
            by_count(threads, "gives", "give")
        ),
        BandwidthFinding::Weights(weights) => format!(
            "weights for weighted interleaving in proportion: {} (within {:.0} %; --apply-weights=FILE sets \
             them and keeps the old ones in FILE)",
            weights_words(weights),
            weights.error * 100.0
        ),
    }
}

/// Weights as they are written: `node 0: 3, node 1: 1`.
fn weights_words(weights: &Weights) -> String {
    let one = |(node, weight): (&nodewise_machine::NodeId, &u32)| format!("node {node}: {weight}");
    weights.weights.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// From where to where, in words.
pub fn place_words(way: &TransferReport) -> String {
    format!("CPUs of node {} to the memory of node {}", way.cell.from, way.cell.memory)
}

/// Where the curve of threads bends, in words.
pub fn knee_words(report: &BandwidthReport) -> String {
    report
        .knee()
        .map_or_else(|| "no knee".to_owned(), |threads| format!("knee: {}", plural(threads, "thread")))
}

/// Returns the findings of the report, and how far they can be believed.
pub fn finding_sentences(report: &BandwidthReport) -> Vec<FindingSentence> {
    findings(report).iter().map(|finding| FindingSentence::from_finding(finding, sentence)).collect()
}

/// How the report ends.
pub fn ending(report: &BandwidthReport) -> Ending {
    let how = [method(report), COUNTED.to_owned()];
    Ending::of_cells(how, &report.account, report.cells(), report.size, finding_sentences(report).into_iter())
        .with_not_reached(not_reached(report))
}

/// The tables, or parts of them, that the survey has not reached: `matrix, 9 of 12 kernels`.
fn not_reached(report: &BandwidthReport) -> Option<String> {
    let are_reached =
        |ways: &[TransferReport]| ways.iter().map(|way| way.cell.is_reached()).collect::<Vec<bool>>();
    let rows = kernel_rows(report);
    let kernels =
        rows.iter().map(|row| [row.one, row.all].into_iter().flatten().all(|way| way.cell.is_reached()));
    let everywhere = report.everywhere.iter().map(|way| way.cell.is_reached());
    let parts = [
        ("matrix", "matrix cell", are_reached(&report.matrix)),
        ("kernels", "kernel", kernels.collect()),
        ("threads", "thread count", are_reached(&report.scaling)),
        ("all nodes at once", "", everywhere.collect()),
    ];
    let words = parts.into_iter().filter_map(|(all, one, reached)| {
        if reached.iter().any(|is_reached| *is_reached) {
            missing(one, reached.into_iter())
        } else {
            (!reached.is_empty()).then(|| all.to_owned())
        }
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// How it was measured, in one line.
pub fn method(report: &BandwidthReport) -> String {
    let (rounds, samples) = extent(report.cells().filter_map(|cell| cell.figure.as_ref()));
    format!(
        "{} on each node, refilled and checked in every sample; threads bound, counted over the time in \
         which all run; {rounds} rounds, {samples} samples per way, interleaved; seed {}; {:.0} s",
        report.size,
        report.account.seed,
        report.account.took.as_secs_f64()
    )
}

/// How bytes are counted, in one line.
const COUNTED: &str = "GB/s are 10^9 bytes that the program reads and writes; on the bus come lines \
                           that are read because they are written, at most";
