//! Sentences and tables about a fleet, for every form.

use nodewise_fleet::FleetReport;
use nodewise_fleet::changes::Change;
use nodewise_fleet::group::{FALSE_ALARMS, Group, Outlier, OutlierPair};
use nodewise_fleet::outlier::{FEWEST, LEAST_DIFFERENCE};
use nodewise_fleet::survey::{CellKey, Pages, Quantity};
use nodewise_fleet::suspect::inverse;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, Severity};

use super::counts::{by_count, plural};
use super::running::words::percent;

/// The report in a sentence.
pub fn conclusion(report: &FleetReport) -> String {
    let collection = &report.collection;
    let mut parts = Vec::new();
    let outliers = report.outlier_hosts();
    if outliers > 0 {
        parts.push(format!(
            "{} slower than {} group",
            plural(outliers, "host"),
            by_count(&outliers, "its", "their")
        ));
    }
    let deviating = report.hosts.iter().filter(|host| host.deviations > 0).count();
    if deviating > 0 {
        parts.push(format!("{} with unusual facts", plural(deviating, "host")));
    }
    let warnings = report.findings.iter().filter(|one| one.severity >= Severity::Warning).count();
    if warnings > 0 {
        parts.push(plural(warnings, "finding"));
    }
    for (count, words) in
        [(collection.missing.len(), "without an answer"), (collection.failed.len(), "failed")]
    {
        if count > 0 {
            parts.push(format!("{} {words}", plural(count, "host")));
        }
    }
    if !collection.refused.is_empty() {
        parts.push(format!("{} refused", plural(collection.refused.len(), "file")));
    }
    match (report.hosts.len(), parts.is_empty()) {
        (0, true) => "no survey found".to_owned(),
        (_, true) => "no host differs from its group".to_owned(),
        _ => parts.join(", "),
    }
}

/// The extent of the report: `64 of 65 hosts in 2 groups, run 7`.
pub fn extent(report: &FleetReport) -> String {
    let surveyed = report.hosts.len();
    let hosts = match report.collection.expected {
        Some(expected) if expected != surveyed => format!("{surveyed} of {}", plural(expected, "host")),
        _ => plural(surveyed, "host"),
    };
    let recorded = report.hosts.iter().filter(|host| !host.recorded.is_empty()).count();
    let recorded = match recorded {
        0 => String::new(),
        all if all == surveyed => ", from recorded measurements".to_owned(),
        some => format!(", {some} from recorded measurements"),
    };
    let run = if report.run.is_empty() { String::new() } else { format!(", run {}", report.run) };
    format!("{hosts} in {}{recorded}{run}", plural(report.groups.len(), "group"))
}

/// The rule for outliers, with its rate of false alarms.
pub fn rule() -> String {
    format!(
        "A host is an outlier where it is at least {} slower than the median of its group and beyond the threshold for the \
         size of the group. A healthy group has an outlier in {} of surveys at most, if differences between its hosts are \
         normally distributed; groups below {FEWEST} hosts have no verdict.",
        percent(LEAST_DIFFERENCE),
        percent(FALSE_ALARMS),
    )
}

/// The outlier in words: `latency of node 1's memory 1.31 times that of its group`.
pub fn outlier_words(outlier: &Outlier) -> String {
    format!("{} {:.2} times that of its group", outlier.figure, inverse(outlier.figure, outlier.slowness))
}

/// A pair of nodes of an outlier in words: `0>1 182.0 ns, usually 140.1 ns`.
pub fn pair_words(pair: &OutlierPair) -> String {
    let unit = pair.cell.quantity.unit();
    format!("{} {:.1} {unit}, usually {:.1} {unit}", cell_words(pair.cell), pair.value, pair.usual)
}

/// A pair of nodes in words: `0>1`, `0>1 in pages of 2 MiB`.
pub fn cell_words(cell: CellKey) -> String {
    let pages = match cell.pages {
        Pages::Small => String::new(),
        Pages::TransparentHuge => " in huge pages".to_owned(),
        Pages::Pool(size) => format!(" in pages of {}", Bytes::new(size)),
    };
    format!("{}>{}{pages}", cell.from, cell.memory)
}

/// A change in words.
pub fn change_words(change: &Change) -> String {
    match change {
        Change::Fact { fact, before, now } => format!("{fact}: {before}, now {now}"),
        Change::Figure { figure, slowness } => {
            format!("{figure} {:.2} times what it was", inverse(*figure, *slowness))
        }
        Change::FindingAppeared { id, summary } => format!("new finding {id}: {summary}"),
        Change::FindingGone { id } => format!("finding {id} is gone"),
    }
}

/// The usual figures of a group in words: those of local memory, and of the slowest pair.
pub fn usual_words(group: &Group, quantity: Quantity) -> String {
    let of = || {
        group
            .distributions
            .iter()
            .filter(|one| one.cell.quantity == quantity && one.cell.pages == Pages::Small)
    };
    let of_any = || group.distributions.iter().filter(|one| one.cell.quantity == quantity);
    let is_small = of().next().is_some();
    let medians = |is_local: bool| -> Vec<f64> {
        let wanted = |cell: &CellKey| (cell.from == cell.memory) == is_local;
        let known = of_any().filter(|one| !is_small || one.cell.pages == Pages::Small);
        let mut medians: Vec<f64> = known.filter(|one| wanted(&one.cell)).map(|one| one.median).collect();
        medians.order_by(f64::total_cmp);
        medians
    };
    let range = |medians: &[f64]| match medians {
        [] => None,
        [low, .., high] if format!("{low:.1}") != format!("{high:.1}") => Some(format!("{low:.1}-{high:.1}")),
        [low, ..] => Some(format!("{low:.1}")),
    };
    let unit = quantity.unit();
    let parts = [("local", medians(true)), ("remote", medians(false))];
    let parts = parts.iter().filter_map(|(word, medians)| Some(format!("{} {unit} {word}", range(medians)?)));
    parts.collect::<Vec<_>>().join(", ")
}

/// Hosts in a few words: all of a few, the first of many.
pub fn some_hosts(hosts: &[String], most: usize) -> String {
    match hosts.len().checked_sub(most) {
        Some(left) if left > 0 => format!("{} and {left} more", hosts[..most].join(", ")),
        _ => hosts.join(", "),
    }
}
