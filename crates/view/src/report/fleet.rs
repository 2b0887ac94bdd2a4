//! The report on many machines: a page of what to look at first, one for each group, and the tables behind them.

use nodewise_fleet::FleetReport;
use nodewise_fleet::group::{FALSE_ALARMS, Group};
use nodewise_fleet::suspect::inverse;

use super::{DataTable, HtmlReport, Page, Part, WIDTH};
use crate::digest::fleet::{change_words, conclusion, extent, pair_words, rule, usual_words};
use crate::digest::running::words::percent;
use crate::json;
use crate::style::Style;
use crate::svg::{Theme, fleet_svg};
use crate::text;
use nodewise_fleet::survey::{Pages, Quantity};

/// The largest document that goes into the file: that of some thousand hosts.
const MOST_DOCUMENT: usize = 2 << 20;
/// Rows of figures of a group; machines with more nodes have all of them in JSON.
const MOST_ROWS: usize = 512;
/// Groups with a page of their own.
const MOST_GROUPS: usize = 40;

/// Makes the report. The document is in it as long as it is not larger than everything else.
pub fn fleet(report: &FleetReport) -> HtmlReport {
    let document = Some(json::fleet(report)).filter(|document| document.len() <= MOST_DOCUMENT);
    let is_whole = document.is_some();
    let mut first = vec![Part::Text(text::fleet(report, &Style::plain(WIDTH)))];
    if !is_whole {
        first.push(Part::Note("All figures of all hosts: nodewise fleet report --json.".to_owned()));
    }
    let mut pages = vec![Page {
        name: "fleet".to_owned(),
        heading: "Fleet".to_owned(),
        conclusion: Some(conclusion(report)),
        parts: first,
        document,
    }];
    pages.extend(report.groups.iter().take(MOST_GROUPS).enumerate().map(group_page));
    pages.push(tables(report));
    let mut facts = vec![("Extent".to_owned(), extent(report))];
    facts.push(("False alarms".to_owned(), format!("at most {} of healthy groups", percent(FALSE_ALARMS))));
    HtmlReport { title: "Fleet".to_owned(), facts, pages }
}

fn table(name: &str, head: &[&str], rows: Vec<Vec<String>>) -> Part {
    let head = head.iter().map(|head| (*head).to_owned()).collect();
    Part::Table(name.to_owned(), DataTable { head, rows })
}

/// A number of a table.
fn number(value: f64) -> String {
    format!("{value:.3}")
}

fn pages_words(pages: Pages) -> String {
    match pages {
        Pages::Small => "small".to_owned(),
        Pages::TransparentHuge => "huge".to_owned(),
        Pages::Pool(size) => format!("pool {size} B"),
    }
}

fn group_page((at, group): (usize, &Group)) -> Page {
    let mut parts = Vec::new();
    if !group.figures.is_empty() {
        parts.push(Part::Picture(fleet_svg(group, Theme::Auto)));
    }
    let usual = Quantity::ALL.map(|quantity| (quantity, usual_words(group, quantity)));
    let usual = usual.iter().filter(|(_, words)| !words.is_empty());
    let usual: Vec<String> = usual.map(|(quantity, words)| format!("{} {words}", quantity.word())).collect();
    if !usual.is_empty() {
        parts.push(Part::Note(format!("Medians of the group: {}.", usual.join("; "))));
    }
    let rows = group.distributions.iter().take(MOST_ROWS).map(|one| {
        let numbers = [one.least, one.quarter, one.median, one.three_quarters, one.most].map(number);
        let mut row =
            vec![one.cell.quantity.word().to_owned(), one.cell.from.to_string(), one.cell.memory.to_string()];
        row.extend([pages_words(one.cell.pages), one.cell.quantity.unit().to_owned(), one.count.to_string()]);
        row.extend(numbers);
        row
    });
    if !group.distributions.is_empty() {
        let head = [
            "figure",
            "from node",
            "memory node",
            "pages",
            "unit",
            "hosts",
            "least",
            "quarter",
            "median",
            "three quarters",
            "most",
        ];
        parts.push(table(
            &format!("Group {}: distribution of every figure", group.name),
            &head,
            rows.collect(),
        ));
        if let Some(left) = group.distributions.len().checked_sub(MOST_ROWS).filter(|left| *left > 0) {
            parts.push(Part::Note(format!("{left} figures more are in nodewise fleet report --json.")));
        }
    }
    let hosts = group.hosts.iter().map(|host| vec![host.clone()]).collect();
    parts.push(table(&format!("Group {}: hosts", group.name), &["host"], hosts));
    Page {
        name: format!("group-{at}"),
        heading: format!("Group {}", group.name),
        conclusion: Some(format!("{}; {}", group.kind, group.layout)),
        parts,
        document: None,
    }
}

/// The tables of all groups together.
fn tables(report: &FleetReport) -> Page {
    let mut parts = vec![Part::Note(rule())];
    let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
    let hosts = report.hosts.iter().map(|host| {
        let lacking: Vec<&str> = host.lacking.iter().map(|lack| lack.part.as_str()).collect();
        vec![
            host.host.clone(),
            host.group.clone(),
            optional(host.latency),
            optional(host.bandwidth),
            if host.outlier { "yes".to_owned() } else { String::new() },
            host.deviations.to_string(),
            host.findings.to_string(),
            host.attempt.to_string(),
            host.recorded.join(" "),
            lacking.join(" "),
        ]
    });
    let head = [
        "host",
        "group",
        "latency, times usual",
        "bandwidth, times slower",
        "outlier",
        "unusual facts",
        "findings",
        "attempt",
        "recorded",
        "lacking",
    ];
    parts.push(table("Hosts", &head, hosts.collect()));
    let outliers = report.outliers().into_iter().map(|one| {
        let pairs: Vec<String> = one.pairs.iter().map(pair_words).collect();
        let ratio = number(inverse(one.figure, one.slowness));
        vec![one.host.clone(), one.figure.to_string(), ratio, number(one.deviations), pairs.join("; ")]
    });
    parts.push(table(
        "Outliers",
        &["host", "figure", "times its group", "deviations", "pairs"],
        outliers.collect(),
    ));
    let deviations = report.deviations().into_iter().map(|one| {
        vec![
            one.host.clone(),
            one.fact.clone(),
            one.value.clone(),
            one.usual.clone(),
            one.agreed.to_string(),
            one.of.to_string(),
        ]
    });
    parts.push(table(
        "Unusual facts",
        &["host", "fact", "value", "usually", "agree", "of"],
        deviations.collect(),
    ));
    let findings = report.findings.iter().map(|one| {
        vec![one.id.clone(), one.severity.word().to_owned(), one.hosts.len().to_string(), one.hosts.join(" ")]
    });
    parts.push(table("Findings by rule", &["rule", "severity", "hosts", "where"], findings.collect()));
    let collection = &report.collection;
    let absent = collection
        .missing
        .iter()
        .map(|host| vec![host.clone(), "no answer".to_owned(), String::new()])
        .chain(
            collection
                .failed
                .iter()
                .map(|one| vec![one.host.clone(), "failed".to_owned(), one.reason.clone()]),
        )
        .chain(
            collection
                .refused
                .iter()
                .map(|one| vec![one.file.clone(), "refused".to_owned(), one.reason.clone()]),
        );
    parts.push(table("Hosts and files without figures", &["name", "state", "reason"], absent.collect()));
    if let Some(changes) = &report.changes {
        let rows = changes.changes.iter().map(|one| vec![one.host.clone(), change_words(&one.change)]);
        parts.push(table("Changes since the earlier survey", &["host", "change"], rows.collect()));
    }
    Page { name: "tables".to_owned(), heading: "Tables".to_owned(), conclusion: None, parts, document: None }
}
