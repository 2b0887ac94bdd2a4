//! Matrices, rows and sentences of a report of bandwidths.

use nodewise_machine::printable::printable;
use nodewise_measure::bandwidth::{
    BandwidthFinding, BandwidthReport, PeakOwner, PeakShare, TransferReport, Weights, findings,
};
use nodewise_measure::kernel::bandwidth::Kernel;
use nodewise_measure::survey::extent;
use nodewise_stats::Direction;

use crate::digest::counts::{by_count, plural};
use crate::digest::matrix::{Entry, Matrix};
use crate::digest::published::{PublishedQuantity, PublishedRange};
use crate::digest::survey::{Ending, FindingSentence, by_reason, missing, pages_words};

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
        BandwidthFinding::AbovePeak { owner, share } => format!(
            "{} reached {} of its theoretical peak: the figures are those of caches, or the firmware states a lower \
             speed or fewer channels than there are",
            owner_words(*owner),
            percent(*share)
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

/// A row of the table of peaks.
#[derive(Clone, Debug, PartialEq)]
pub struct PeakRow {
    /// Whose memory: `node 0`, `all nodes`.
    pub memory: String,
    pub peak_gb_per_s: f64,
    /// How it was computed: `8 channels x 3200 MT/s x 8 bytes`.
    pub computed: String,
    /// The most that was measured, GB/s, with the kernel that reached it.
    pub reached: Option<(f64, Kernel)>,
    /// The share of the peak, of 1.
    pub share: Option<f64>,
}

/// The peaks that are known.
pub fn peak_rows(report: &BandwidthReport) -> Vec<PeakRow> {
    let row = |share: PeakShare<'_>| {
        let peak = share.peak.ok()?;
        Some(PeakRow {
            memory: owner_words(share.owner),
            peak_gb_per_s: peak.gb_per_s(),
            computed: peak.to_string(),
            reached: share.reached_gb_per_s().zip(share.most.map(|way| way.kernel)),
            share: share.share(),
        })
    };
    report.peak_shares().into_iter().filter_map(row).collect()
}

/// The peaks that are not known, with the memory that each is of, and why.
pub fn unknown_peaks(report: &BandwidthReport) -> Vec<String> {
    let shares = report.peak_shares();
    let reasons =
        by_reason(shares.iter().filter_map(|share| Some((share.peak.err()?, owner_words(share.owner)))));
    let are_all = |owners: &[String]| owners.len() == shares.len();
    let sentence = |(why, owners): (&str, Vec<String>)| {
        let of = if are_all(&owners) { String::new() } else { format!(" of {}", owners.join(", ")) };
        format!("theoretical peak{of} unknown: {}", printable(why))
    };
    reasons.into_iter().map(sentence).collect()
}

/// The shares of the peaks in one line, for a picture: `share of the theoretical peak: node 0 68 %`.
pub fn share_words(report: &BandwidthReport) -> Option<String> {
    let rows = peak_rows(report).into_iter();
    let shares: Vec<String> =
        rows.filter_map(|row| Some(format!("{} {}", row.memory, percent(row.share?)))).collect();
    (!shares.is_empty()).then(|| format!("share of the theoretical peak: {}", shares.join(", ")))
}

/// A share in percent: `68 %`.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn owner_words(owner: PeakOwner) -> String {
    match owner {
        PeakOwner::Node(node) => format!("node {node}"),
        PeakOwner::Machine => "all nodes".to_owned(),
    }
}

/// Published bandwidths of this family of processors, each with the one measured here. A part of a machine is not
/// compared, and neither is one whose sockets are not known.
pub fn published(report: &BandwidthReport) -> Vec<(PublishedRange, f64)> {
    let Some(sockets) = report.yardstick.as_ref().and_then(|yardstick| yardstick.sockets) else {
        return Vec::new();
    };
    let of = |quantity, kernels: &[Kernel]| {
        let measured = report.whole_machine(|way| kernels.contains(&way.kernel))? / f64::from(sockets.max(1));
        Some((PublishedRange::find(quantity, &report.account.conditions)?, measured))
    };
    let read = of(PublishedQuantity::ReadBandwidth, &[Kernel::Read]);
    // Compilers make either of STREAM's source.
    let triad = of(PublishedQuantity::TriadBandwidth, &[Kernel::Triad, Kernel::TriadNt]);
    read.into_iter().chain(triad).collect()
}

/// How the report ends.
pub fn ending(report: &BandwidthReport) -> Ending {
    let beside = published(report).into_iter().map(|(range, figure)| range.sentence(figure));
    let how = [method(report), COUNTED.to_owned()].into_iter().chain(unknown_peaks(report)).chain(beside);
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
