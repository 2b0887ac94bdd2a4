//! Curves of latency under load, in words.

use nodewise_measure::latency::loaded::{Curve, Knee, LoadedFinding, LoadedReport, Path, findings};
use nodewise_measure::survey::{CellReport, extent};

use crate::digest::counts::{by_count, cpu_names};
use crate::digest::survey::{Ending, FindingSentence, digits, missing, pages_words};

/// The meaning of GB/s and ns here.
const COUNTED: &str = "GB/s (10^9 bytes) that the traffic names, the chase not counted; on the bus it may be \
                           more, for what is written is read before; the knee is where a load takes twice its \
                           idle time";

/// Who chases and who moves data, in one line.
pub fn path_words(path: &Path) -> String {
    let chase = &path.idle;
    format!(
        "{} of node {} chases in node {}; {} of node {} {} data in node {}; {}",
        cpu_names(&chase.cpus),
        chase.from,
        chase.memory,
        cpu_names(&path.traffic_cpus),
        path.traffic_from,
        by_count(&path.traffic_cpus.len(), "moves", "move"),
        path.traffic_memory,
        pages_words(chase.pages)
    )
}

/// The chase of a path, as short as a column wants it: nodes of the CPU and of the memory, such as `--chase`
/// takes them.
pub fn chase_short(path: &Path) -> String {
    format!("{}:{}", path.idle.from, path.idle.memory)
}

/// Likewise its traffic.
pub fn traffic_short(path: &Path) -> String {
    format!("{}:{}", path.traffic_from, path.traffic_memory)
}

/// Where a curve bends, in words; `None` where there is nothing to say it of.
pub fn knee_words(path: &Path, curve: &Curve) -> Option<String> {
    Some(match path.knee(curve)? {
        Knee::At { gb_per_s } => format!("at {} GB/s", digits(gb_per_s)),
        Knee::NotReached { most, .. } => format!("not reached: {most:.2}x"),
    })
}

/// Returns the findings of the report, and how far they can be believed.
pub fn finding_sentences(report: &LoadedReport) -> Vec<FindingSentence> {
    findings(report).iter().map(|finding| FindingSentence::from_finding(finding, sentence)).collect()
}

/// How the report ends.
pub fn ending(report: &LoadedReport) -> Ending {
    let how = [method(report), COUNTED.to_owned()];
    Ending::of_cells(how, &report.account, report.cells(), report.size, finding_sentences(report).into_iter())
        .with_not_reached(missing("point", report.cells().map(CellReport::is_reached)))
}

/// How it was measured, in one line.
pub fn method(report: &LoadedReport) -> String {
    let (rounds, samples) = extent(report.cells().filter_map(|cell| cell.figure.as_ref()));
    format!(
        "one random cycle through {}, medians and 90th percentiles of 512 loads each; traffic over {}, with a \
         pause after each 4 KiB; {rounds} rounds, {samples} samples per point, interleaved; seed {}; {:.0} s",
        report.size,
        report.traffic_size,
        report.account.seed,
        report.account.took.as_secs_f64()
    )
}

/// A finding as a sentence.
fn sentence(finding: &LoadedFinding) -> String {
    match finding {
        LoadedFinding::SharedCore { cpu, node } => format!(
            "CPU {cpu}, which chases, shares its core with a CPU that moves data: node {node} has no other core to \
             use; part of what a load waits for is the core"
        ),
    }
}
