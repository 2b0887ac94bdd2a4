//! Latencies by the size of the chased memory, in words.

use nodewise_machine::{Bytes, NodeId};
use nodewise_measure::cell::PageKind;
use nodewise_measure::latency::Pattern;
use nodewise_measure::latency::sweep::SweepReport;
use nodewise_measure::survey::extent;

use crate::digest::counts::each_once;
use crate::digest::survey::{Ending, FindingSentence, missing};

/// Names a way through a buffer.
pub fn pattern_words(pattern: Pattern) -> String {
    match pattern {
        Pattern::Random => "random (latency)".to_owned(),
        Pattern::Stride(elements) => format!("stride {elements} (access)"),
    }
}

/// The nodes whose memory a sweep has reached for, in its order.
pub fn nodes_with_memory(report: &SweepReport) -> Vec<NodeId> {
    each_once(report.chases.iter().map(|chase| chase.cell.memory))
}

/// The kinds of pages of a sweep, in its order.
pub fn page_kinds(report: &SweepReport) -> Vec<PageKind> {
    each_once(report.chases.iter().map(|chase| chase.cell.pages))
}

/// A size as it is typed: `4K`, `1.5M`.
pub fn short(size: Bytes) -> String {
    size.to_string().replace(" B", "").replace([' ', 'i', 'B'], "")
}

/// The end of the report. Reasons are among what it shows: levels that were found may be wrong for them.
pub fn ending(report: &SweepReport) -> Ending {
    Ending { how: vec![method(report)], not_measured: Vec::new(), findings: reasons(report) }
        .with_not_reached(missing("size", report.chases.iter().map(|chase| chase.cell.is_reached())))
}

/// How it was measured, in one line.
pub fn method(report: &SweepReport) -> String {
    let (rounds, samples) = extent(report.chases.iter().filter_map(|chase| chase.cell.figure.as_ref()));
    let cpus = report.chases.first().map(|chase| chase.cell.cpus.to_string()).unwrap_or_default();
    format!(
        "from CPU {cpus}; {rounds} rounds, {samples} samples of 65,536 loads for each size, interleaved; pages proven \
         on their node before and after; seed {}; {:.0} s",
        report.account.seed,
        report.account.took.as_secs_f64()
    )
}

/// Says whether the sweep was too noisy, and why chases have no figure, each reason once.
fn reasons(report: &SweepReport) -> Vec<FindingSentence> {
    let noisy = |sentence| FindingSentence { sentence, is_noise: true };
    let noise = report.noise().map(|(disturbed, of)| {
        format!("too noisy: {disturbed} of {of} were disturbed; the levels found need not be true")
    });
    let refused = report.chases.iter().filter_map(|chase| chase.cell.refused.clone());
    let shortened = report.account.shortened().map(|why| FindingSentence::from_noise(&why));
    noise.map(noisy).into_iter().chain(shortened).chain(each_once(refused).into_iter().map(noisy)).collect()
}
