//! The text of `nodewise doctor`: the conclusion, findings with their proof and mend, and what was examined.

use nodewise_diagnose::finding::{Evidence, Mend, RuleFinding, Severity};
use nodewise_diagnose::thresholds::ALL_RULES;
use nodewise_machine::Bytes;

use crate::digest::counts::{by_count, plural};
use crate::digest::doctor::{
    DoctorReport, LackingProcesses, LackingRules, check_of, owner, price, replaced, rule_of, subject, value,
};
use crate::digest::running::words;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page, columns};
use crate::text::table::{Align, Column, Keep, Table};

/// The widest fact that has its value in a column beside it.
const FACT: usize = 28;
/// Processes that a line names.
const NAMED: usize = 5;

/// Writes the report.
pub fn doctor(report: &DoctorReport<'_>, style: &Style) -> String {
    let mut page = Page::new(*style);
    let conclusion = format!("{}: {}", report.scene(), report.conclusion());
    page.line(2, &Line::new().with(Ink::Strong, conclusion));
    for (number, found) in (1..).zip(report.shown()) {
        finding(number, found, report.thresholds, &mut page);
    }
    let left = report.diagnosis.findings.len() - report.shown().len();
    if left > 0 {
        page.blank();
        page.line(
            2,
            &Line::from(format!("{left} more {}, shown with --all", by_count(&left, "finding", "findings"))),
        );
    }
    examined(report, &mut page);
    not_examined(report, &mut page);
    replaced_thresholds(report, &mut page);
    hidden(report, &mut page);
    page.finish()
}

fn finding(number: usize, finding: &RuleFinding, thresholds: Option<&str>, page: &mut Page) {
    let ink = if finding.severity >= Severity::Warning { Ink::Notable } else { Ink::Plain };
    page.blank();
    let mut head = Line::from(format!("{number}  "));
    head.push(ink, format!("{}, {}", finding.severity.word(), finding.confidence.word()));
    head.push(Ink::Plain, "  ");
    head.push(Ink::Strong, finding.rule);
    head.push(Ink::Plain, format!("  {}", subject(&finding.subject)));
    if let Some(owner) = owner(&finding.subject) {
        head.push(Ink::Plain, format!(", {owner}"));
    }
    page.line(3, &head);
    page.line(3, &Line::from(format!("   {}", finding.summary)));
    let widest = finding.evidence.iter().map(|evidence| columns(&evidence.fact)).filter(|wide| *wide <= FACT);
    let widest = widest.max().unwrap_or(0);
    for fact in &finding.evidence {
        page.line(7, &evidence(fact, widest));
    }
    if let Some(words) = replaced_of(finding) {
        labelled("replaced thresholds", &words, page);
    }
    if let Some(cause) = &finding.cause {
        labelled("cause", cause, page);
    }
    for explained in &finding.explains {
        let replaced = replaced_of(explained).map(|words| format!(" (replaced thresholds: {words})"));
        let words = format!(
            "{}, {}: {}{}",
            explained.rule,
            subject(&explained.subject),
            explained.summary,
            replaced.unwrap_or_default()
        );
        labelled("explains", &words, page);
    }
    for way in &finding.mends {
        mend(way, page);
    }
    if let Some(experiment) = &finding.experiment {
        labelled("experiment", experiment, page);
    }
    page.verbatim(3, &format!("check: {}", check_of(finding, thresholds)));
    let sources = rule_of(finding).map(|rule| rule.sources.join("; ")).unwrap_or_default();
    labelled("sources", &sources, page);
}

/// Thresholds of its rule that a file replaced; `None` without any.
fn replaced_of(finding: &RuleFinding) -> Option<String> {
    let words: Vec<String> = finding.replaced.iter().map(replaced).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

fn labelled(label: &str, words: &str, page: &mut Page) {
    let line = Line::from("   ").with(Ink::Faint, format!("{label}: ")).with(Ink::Plain, words);
    page.line(5, &line);
}

fn evidence(evidence: &Evidence, widest: usize) -> Line {
    let blank = " ".repeat(widest.saturating_sub(columns(&evidence.fact)));
    let mut line = Line::from(format!("     {}{blank}  {}", evidence.fact, value(&evidence.value)));
    if let Some(threshold) = &evidence.threshold {
        let words = format!("; threshold {} ({})", value(&threshold.value), threshold.origin);
        line.push(Ink::Plain, words);
    }
    line.with(Ink::Faint, format!("  {}", evidence.read_from))
}

/// A mend: each command alone on its line, however long, so that it can be copied.
fn mend(mend: &Mend, page: &mut Page) {
    labelled("mend", &format!("{} ({})", mend.what, price(mend)), page);
    for command in &mend.commands {
        page.verbatim(5, command);
    }
    if !mend.undo.is_empty() {
        page.line(5, &Line::from("   ").with(Ink::Faint, "undo:"));
        for command in &mend.undo {
            page.verbatim(5, command);
        }
    }
}

fn examined(report: &DoctorReport<'_>, page: &mut Page) {
    let diagnosis = report.diagnosis;
    let [processes, known, significant] = diagnosis.processes;
    let mut parts = vec![plural(diagnosis.examined.len(), "rule")];
    if processes > 0 {
        let known = if known == processes { String::new() } else { format!("memory of {known} known, ") };
        let processes =
            if processes == 1 { "1 process".to_owned() } else { format!("{processes} processes") };
        parts.push(format!("{processes} ({known}{significant} significant)"));
    }
    if diagnosis.interrupts > 0 {
        parts.push(format!("interrupts of {}", plural(diagnosis.interrupts, "device")));
    }
    if diagnosis.devices > 0 {
        parts.push(plural(diagnosis.devices, "device"));
    }
    page.heading("Examined", &parts.join(", "));
    if diagnosis.findings.is_empty() {
        nodes(report, page);
    }
}

fn nodes(report: &DoctorReport<'_>, page: &mut Page) {
    let column = |head| Column { head, align: Align::Right, keep: Keep::Always };
    let mut table = Table::new(vec![
        column("node"),
        column("free"),
        column("available"),
        column("reclaims below"),
        Column { head: "", align: Align::Left, keep: Keep::Always },
    ]);
    let size = |size: Option<Bytes>| size.map_or_else(Line::new, |size| Line::from(size.to_string()));
    for (node, state) in &report.diagnosis.nodes {
        table.row(vec![
            Line::from(node.to_string()),
            size(Some(state.free)),
            size(state.available),
            size(state.high),
            Line::blank(),
        ]);
    }
    table.write(page);
}

/// A lack in words, with the rules that it keeps silent.
fn lack(fact: &str, lacking: &LackingRules<'_>) -> String {
    let remedy = lacking.lack.remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
    format!("{fact}: {}{remedy} ({})", lacking.lack.reason, lacking.rules.join(", "))
}

fn not_examined(report: &DoctorReport<'_>, page: &mut Page) {
    let missing = report.diagnosis.not_examined.len();
    if missing > 0 {
        page.heading("Not examined", &plural(missing, "rule"));
        for lacking in report.lacking() {
            page.line(4, &Line::from(format!("  {}", lack(lacking.lack.fact, &lacking))));
        }
    }
    let in_part = report.lacking_about_processes();
    if !in_part.is_empty() {
        page.heading("Not examined for", "");
        for LackingProcesses { lacking, processes } in in_part {
            let first = processes.iter().take(NAMED).map(|process| subject(process)).collect::<Vec<_>>();
            let more = match processes.len() - first.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let fact = format!("{}{more}: {}", first.join(", "), lacking.lack.fact);
            page.line(4, &Line::from(format!("  {}", lack(&fact, &lacking))));
        }
    }
    if !report.unread.is_empty() {
        page.heading("Not read", "");
        for unread in report.unread {
            page.line(4, &Line::from(format!("  {}", words::unread(unread))));
        }
    }
}

/// Thresholds of a file: a rule may be silent because of one.
fn replaced_thresholds(report: &DoctorReport<'_>, page: &mut Page) {
    let all = &report.diagnosis.replaced;
    if all.is_empty() {
        return;
    }
    page.heading("Replaced thresholds", &plural(all.len(), "number"));
    for of in all {
        let shared = of.threshold.table == ALL_RULES;
        let rule = if shared { String::new() } else { format!("{}: ", of.threshold.table) };
        page.line(4, &Line::from(format!("  {rule}{}", replaced(of))));
    }
}

/// Rules and findings that are left out: silence must be trustworthy.
fn hidden(report: &DoctorReport<'_>, page: &mut Page) {
    let mut parts = Vec::new();
    match report.diagnosis.elsewhere {
        0 => {}
        rules => parts.push(format!("{} for other kinds of machines", plural(rules, "rule"))),
    }
    match report.others {
        0 => {}
        findings => parts.push(format!("{} about other processes", plural(findings, "finding"))),
    }
    match report.ignored.len() {
        0 => {}
        findings => parts.push(format!("{} ignored", plural(findings, "finding"))),
    }
    if !parts.is_empty() {
        page.blank();
        page.line(2, &Line::new().with(Ink::Faint, format!("Left out: {}", parts.join(", "))));
    }
}
