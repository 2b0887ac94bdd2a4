//! Many machines: what to do first, then groups, outliers, unusual facts, findings, and what is missing.

use nodewise_fleet::FleetReport;
use nodewise_fleet::group::Group;
use nodewise_fleet::survey::Quantity;
use nodewise_machine::Severity;

use crate::digest::counts::plural;
use crate::digest::fleet::{
    change_words, conclusion, extent, outlier_words, pair_words, rule, some_hosts, usual_words,
};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Rows of a table, and hosts of a line; the JSON document has all.
const MOST: usize = 20;
const MOST_HOSTS: usize = 8;

/// Writes a report.
pub fn fleet(report: &FleetReport, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.line(2, &Line::new().with(Ink::Strong, conclusion(report)));
    page.line(2, &Line::new().with(Ink::Faint, extent(report)));
    suspects(report, &mut page);
    groups(report, &mut page);
    outliers(report, &mut page);
    facts(report, &mut page);
    findings(report, &mut page);
    absent(report, &mut page);
    changes(report, &mut page);
    page.finish()
}

const fn column(head: &'static str, align: Align) -> Column {
    Column { head, align, keep: Keep::Always }
}

/// Says how many rows are left out of a table.
fn more(all: usize, thing: &str, page: &mut Page) {
    if let Some(left) = all.checked_sub(MOST).filter(|left| *left > 0) {
        let text = format!("  and {} more; --json has all", plural(left, thing));
        page.line(2, &Line::new().with(Ink::Faint, text));
    }
}

fn suspects(report: &FleetReport, page: &mut Page) {
    if report.suspects.is_empty() {
        return;
    }
    let remark = format!("{} with a reason", plural(report.suspected, "host"));
    page.heading("Look at first", &remark);
    let mut table = Table::new(vec![column("host", Align::Left), column("reasons", Align::Left)]);
    for suspect in &report.suspects {
        table.row(vec![Line::from(&*suspect.host), Line::from(suspect.reasons.join("; "))]);
    }
    table.write(page);
}

fn groups(report: &FleetReport, page: &mut Page) {
    if report.groups.is_empty() {
        return;
    }
    page.heading("Groups", "equal hardware, divided into nodes alike");
    let mut table = Table::new(vec![
        column("group", Align::Left),
        column("hosts", Align::Right),
        column("machine", Align::Left),
    ]);
    for group in report.groups.iter().take(MOST) {
        let machine = format!("{}; {}", group.kind, group.layout);
        table.row(vec![
            Line::from(&*group.name),
            Line::from(group.hosts.len().to_string()),
            Line::from(machine),
        ]);
        for words in figures(group) {
            table.row(vec![Line::blank(), Line::blank(), Line::new().with(Ink::Faint, words)]);
        }
    }
    table.write(page);
    more(report.groups.len(), "group", page);
}

/// Lines on the figures of a group.
fn figures(group: &Group) -> Vec<String> {
    let mut lines = Vec::new();
    for quantity in Quantity::ALL {
        let usual = usual_words(group, quantity);
        let figure =
            group.figures.iter().find(|one| one.name.quantity == quantity && one.name.memory.is_none());
        let Some(figure) = figure.filter(|_| !usual.is_empty()) else { continue };
        let populations: Vec<String> = figure
            .populations
            .iter()
            .map(|one| {
                let hosts = if figure.populations.len() > 1 {
                    format!("{}: ", plural(one.hosts.len(), "host"))
                } else {
                    String::new()
                };
                let limit = one.yardstick.limit();
                let limit = limit.map_or_else(
                    || "too few for a verdict".to_owned(),
                    |limit| {
                        format!("outliers from {:.1} % slower", 100.0 * (limit / one.yardstick.median - 1.0))
                    },
                );
                format!("{hosts}{limit}")
            })
            .collect();
        let two = if figure.populations.len() > 1 { "two populations, " } else { "" };
        lines.push(format!("{}: {usual}; {two}{}", quantity.word(), populations.join(", ")));
    }
    lines
}

fn outliers(report: &FleetReport, page: &mut Page) {
    let outliers = report.outliers();
    if report.groups.iter().all(|group| group.figures.is_empty()) {
        return;
    }
    page.heading("Outliers", &plural(report.outlier_hosts(), "host"));
    if !outliers.is_empty() {
        let mut table = Table::new(vec![
            column("host", Align::Left),
            column("deviations", Align::Right),
            column("figure", Align::Left),
        ]);
        for outlier in outliers.iter().take(MOST) {
            let pairs: Vec<String> = outlier.pairs.iter().map(pair_words).collect();
            let again =
                if report.confirmed.contains(&outlier.host) { "; in the earlier survey, too" } else { "" };
            let words = format!("{}{again} ({})", outlier_words(outlier), pairs.join("; "));
            let deviations = format!("{:.1}", outlier.deviations);
            table.row(vec![Line::from(&*outlier.host), Line::from(deviations), Line::from(words)]);
        }
        table.write(page);
        more(outliers.len(), "outlier", page);
    }
    page.line(2, &Line::new().with(Ink::Faint, format!("  {}", rule())));
    if !outliers.is_empty() {
        page.line(
            2,
            &Line::new().with(Ink::Faint, "  Survey an outlier again before you take it out of service."),
        );
    }
}

fn facts(report: &FleetReport, page: &mut Page) {
    let deviations = report.deviations();
    if !deviations.is_empty() {
        page.heading("Unusual facts", "what four in five hosts of equal hardware have otherwise");
        let mut table = Table::new(vec![
            column("host", Align::Left),
            column("fact", Align::Left),
            column("value", Align::Left),
            column("usually", Align::Left),
        ]);
        for one in deviations.iter().take(MOST) {
            let usual = format!("{} ({} of {})", one.usual, one.agreed, one.of);
            let cells = [&*one.host, &*one.fact, &*one.value, &*usual];
            table.row(cells.into_iter().map(Line::from).collect());
        }
        table.write(page);
        more(deviations.len(), "fact", page);
    }
    let mixed: Vec<_> = report.kinds.iter().flat_map(|kind| &kind.mixed).collect();
    if !mixed.is_empty() {
        page.heading("Mixed facts", "no value is usual");
        let mut table = Table::new(vec![column("fact", Align::Left), column("values", Align::Left)]);
        for one in mixed.iter().take(MOST) {
            let values: Vec<String> =
                one.values.iter().map(|(value, hosts)| format!("{value} ({hosts})")).collect();
            let left = one.different - one.values.len();
            let left = if left > 0 { format!(", {left} more") } else { String::new() };
            table.row(vec![Line::from(&*one.fact), Line::from(format!("{}{left}", values.join(", ")))]);
        }
        table.write(page);
        more(mixed.len(), "fact", page);
    }
}

fn findings(report: &FleetReport, page: &mut Page) {
    if report.findings.is_empty() {
        return;
    }
    page.heading("Findings", "of doctor, by rule");
    let mut table = Table::new(vec![
        column("severity", Align::Left),
        column("hosts", Align::Right),
        column("rule", Align::Left),
        column("where", Align::Left),
    ]);
    for one in report.findings.iter().take(MOST) {
        let ink = if one.severity >= Severity::Warning { Ink::Notable } else { Ink::Plain };
        table.row(vec![
            Line::new().with(ink, one.severity.word()),
            Line::from(one.hosts.len().to_string()),
            Line::from(&*one.id),
            Line::from(some_hosts(&one.hosts, MOST_HOSTS)),
        ]);
    }
    table.write(page);
    more(report.findings.len(), "rule", page);
}

fn absent(report: &FleetReport, page: &mut Page) {
    let collection = &report.collection;
    let mut rows: Vec<(String, String)> = Vec::new();
    if !collection.missing.is_empty() {
        rows.push(("no answer".to_owned(), some_hosts(&collection.missing, MOST)));
    }
    let failed = collection.failed.iter().map(|one| (format!("{} failed", one.host), one.reason.clone()));
    rows.extend(failed);
    let lacking = report.hosts.iter().flat_map(|host| {
        host.lacking.iter().map(|lack| (format!("{} has no {}", host.host, lack.part), lack.reason.clone()))
    });
    rows.extend(lacking);
    rows.extend(collection.refused.iter().map(|one| (format!("{} refused", one.file), one.reason.clone())));
    let repeated = collection.repeated.iter().map(|one| {
        (
            format!("{} ran twice", one.host),
            format!("{}; attempt {} counts", plural(one.results, "result"), one.attempt),
        )
    });
    rows.extend(repeated);
    let others = collection.other_runs.iter().map(|(run, hosts)| {
        let run = if run.is_empty() { "without a name" } else { run };
        (format!("run {run}"), format!("not in this report: {}", plural(*hosts, "host")))
    });
    rows.extend(others);
    if rows.is_empty() {
        return;
    }
    page.heading("Not in the figures", "");
    let mut table = Table::new(vec![column("", Align::Left), column("", Align::Left)]);
    for (what, why) in rows.iter().take(MOST) {
        table.row(vec![Line::from(&**what), Line::from(&**why)]);
    }
    table.write(page);
    more(rows.len(), "line", page);
}

fn changes(report: &FleetReport, page: &mut Page) {
    let Some(changes) = &report.changes else { return };
    let remark = format!(
        "{} since the earlier survey, {} compared",
        plural(changes.changes.len(), "change"),
        plural(changes.compared, "host")
    );
    page.heading("Changes", &remark);
    let mut table = Table::new(vec![column("host", Align::Left), column("change", Align::Left)]);
    for one in changes.changes.iter().take(MOST) {
        table.row(vec![Line::from(&*one.host), Line::from(change_words(&one.change))]);
    }
    for (hosts, words) in [(&changes.appeared, "new"), (&changes.gone, "gone")] {
        if !hosts.is_empty() {
            table.row(vec![Line::from(words), Line::from(some_hosts(hosts, MOST))]);
        }
    }
    table.write(page);
    more(changes.changes.len(), "change", page);
}
