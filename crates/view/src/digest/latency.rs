//! What a report of latencies shows, as matrices and sentences.

use nodewise_machine::NodeId;
use nodewise_measure::cell::PageKind;
use nodewise_measure::latency::sweep::SweepReport;
use nodewise_measure::latency::{Finding, Lookup, Pattern, Report};
use nodewise_measure::metric::Direction;
use nodewise_measure::survey::{CellReport, Figure};

use crate::digest::matrix::{Entry, Matrix};

/// What pages are called in a table's title.
pub fn pages_words(pages: PageKind) -> String {
    match pages {
        PageKind::Small => "small pages".to_owned(),
        PageKind::TransparentHuge => "huge pages, transparent".to_owned(),
        PageKind::Hugetlb(size) => format!("huge pages of {} from the pool", size.bytes()),
    }
}

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

/// The cells that have no figure, by reason: how many, where, why.
pub fn refusals(report: &Report) -> Vec<(String, String)> {
    let mut reasons: Vec<(&str, Vec<&CellReport>)> = Vec::new();
    for cell in &report.cells {
        let Some(why) = cell.refused.as_deref() else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, cells)) => cells.push(cell),
            None => reasons.push((why, vec![cell])),
        }
    }
    reasons.into_iter().map(|(why, cells)| (place(report, &cells), why.to_owned())).collect()
}

/// Where some cells are, in as few words as say it.
fn place(report: &Report, cells: &[&CellReport]) -> String {
    let same = |of: fn(&CellReport) -> NodeId| {
        let first = cells.first().map(|cell| of(cell))?;
        cells.iter().all(|cell| of(cell) == first).then_some(first)
    };
    let kinds = report.page_kinds();
    let pages = match cells.first() {
        Some(first) if kinds.len() > 1 && cells.iter().all(|cell| cell.pages == first.pages) => {
            format!(", {}", pages_words(first.pages))
        }
        _ => String::new(),
    };
    let where_ = match (same(|cell| cell.from), same(|cell| cell.memory)) {
        (Some(from), Some(memory)) => format!("node {from} to node {memory}"),
        (None, Some(memory)) => format!("memory of node {memory}"),
        (Some(from), None) => format!("CPUs of node {from}"),
        (None, None) => format!("{} cells", cells.len()),
    };
    format!("{where_}{pages}")
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
        Finding::Stolen { share } => {
            format!("too noisy: this machine's host took {:.0} % of a CPU's time meanwhile", share * 100.0)
        }
        Finding::Others { cpus } => {
            format!("too noisy: other programs used {cpus:.1} CPUs on average meanwhile")
        }
        Finding::Disturbed { cells, of } => format!(
            "too noisy: {cells} of {of} cells (marked !) were disturbed in more than a quarter of their \
             samples, also when measured once more"
        ),
        Finding::Uncertain { cells, of, widest } if widest.is_finite() => format!(
            "too noisy: {cells} of {of} intervals reach more than 5 % from their median (the widest {:.0} %)",
            widest * 100.0
        ),
        Finding::Uncertain { cells, of, .. } => {
            format!("{cells} of {of} cells have too few rounds for an interval: expected 6 or more")
        }
        Finding::Interrupted => "ended early: figures are those of the samples taken so far".to_owned(),
    }
}

const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// How it was measured, in one line.
pub fn method(report: &Report) -> String {
    let figures = || report.cells.iter().filter_map(|cell| cell.figure.as_ref());
    let rounds = figures().map(|figure| figure.rounds).max().unwrap_or(0);
    let samples = figures().map(|figure| figure.samples).max().unwrap_or(0);
    format!(
        "one random cycle through {} per buffer; {rounds} rounds, {samples} samples of 65,536 loads per cell, \
         interleaved; seed {}; {:.0} s",
        report.size,
        report.seed,
        report.took.as_secs_f64()
    )
}

/// What was proven of the placement, in one line: the worst over all cells with a figure.
pub fn proof(report: &Report) -> Option<String> {
    let cells = || report.cells.iter().filter(|cell| cell.figure.is_some());
    let share = |of: fn(&CellReport) -> Option<f64>| cells().filter_map(of).reduce(f64::min);
    let before = share(|cell| cell.before.as_ref()?.share())?;
    let after = share(|cell| cell.after.as_ref()?.share());
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let huge = cells().filter(|cell| cell.pages != PageKind::Small).filter_map(|cell| {
        let huge = cell.before.as_ref()?.huge?;
        Some(huge.get() as f64 / report.size.get().max(1) as f64)
    });
    let huge = huge.reduce(f64::min).map_or_else(
        || "; how much is huge the kernel does not say".to_owned(),
        |share| format!("; {} of the huge ones are", percent(share.min(1.0))),
    );
    let huge = if cells().any(|cell| cell.pages != PageKind::Small) { huge } else { String::new() };
    Some(format!(
        "pages on the node they should be on (move_pages): {} before, {} after{huge}",
        percent(before),
        after.map_or_else(|| "not asked".to_owned(), percent)
    ))
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
    let figures = || report.chases.iter().filter_map(|chase| chase.cell.figure.as_ref());
    let rounds = figures().map(|figure| figure.rounds).max().unwrap_or(0);
    let samples = figures().map(|figure| figure.samples).max().unwrap_or(0);
    let cpus: Vec<String> =
        report.chases.first().map(|chase| chase.cell.cpus.to_string()).into_iter().collect();
    let ended = if report.interrupted { "; ended early" } else { "" };
    format!(
        "from CPU {}; {rounds} rounds, {samples} samples of 65,536 loads for each size, interleaved; pages proven \
         on their node before and after; seed {}; {:.0} s{ended}",
        cpus.join(","),
        report.seed,
        report.took.as_secs_f64()
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
