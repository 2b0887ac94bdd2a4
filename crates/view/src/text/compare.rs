//! Suites as `nodewise compare` prints them: the table of the articles, then figure by figure.

use std::collections::BTreeMap;

use nodewise_experiment::compare::{Mean, Row, Table as Compared, Verdict};
use nodewise_experiment::metric::Metric;
use nodewise_experiment::suite::session::Session;
use nodewise_experiment::suite::{Suite, Threads};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_stats::{median, median_absolute_deviation};

use crate::digest::change::{change_words, range_words};
use crate::digest::compare::{
    Shown, benchmarks, changed, difference_words, end_words, missing, residency_by_placement, stolen,
    threads, threads_words, undefined, value_words, verdict_words,
};
use crate::digest::counts::plural;
use crate::digest::study::{duration, load_words, pages_words};
use crate::digest::survey::platform;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

const fn column(head: &'static str, align: Align, keep: Keep) -> Column {
    Column { head, align, keep }
}

/// Writes a comparison: what differs in the circumstances, the table, the figures.
pub fn compare(shown: &Shown<'_>, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.line(2, &shown.head().into());
    let sessions = [Some(("before", shown.before)), shown.after.map(|after| ("after", after))];
    for (name, session) in sessions.into_iter().flatten() {
        let name = if shown.after.is_some() { format!("{name}: ") } else { String::new() };
        let words = origin(session);
        if !words.is_empty() {
            page.line(2, &Line::new().with(Ink::Faint, format!("{name}{words}")));
        }
    }
    differences(shown, &mut page);
    for table in &shown.comparison.tables {
        page.heading(&format!("{} against {}", table.subject, table.reference), "change of speed");
        pivot(table, &mut page);
        figures(table, &mut page);
    }
    if shown.after.is_none() {
        pages(shown.before, &mut page);
    }
    let mut notes: Vec<String> = Vec::new();
    for (name, session) in sessions.into_iter().flatten() {
        let of = if shown.after.is_some() { format!("{name}: ") } else { String::new() };
        let unknown = undefined(session).filter(|_| shown.after.is_some()).map(str::to_owned);
        notes.extend(session_notes(session).into_iter().chain(unknown).map(|note| format!("{of}{note}")));
    }
    write_notes(&notes, &mut page);
    page.finish()
}

/// Writes what one session measured.
pub fn session(session: &Session, style: &Style) -> String {
    let mut page = Page::new(*style);
    let rounds = plural(session.rounds, "round");
    let took = duration(session.took);
    page.line(2, &format!("{}: {rounds} in {took}, seed {}", session.suite, session.seed).into());
    let words = origin(session);
    if !words.is_empty() {
        page.line(2, &Line::new().with(Ink::Faint, words));
    }
    page.line(0, &Line::new());
    let mut table = Table::new(vec![
        column("benchmark", Align::Left, Keep::Always),
        column("threads", Align::Right, Keep::Always),
        column("placement", Align::Left, Keep::Always),
        column("median", Align::Right, Keep::Always),
        column("unit", Align::Left, Keep::Always),
        column("spread", Align::Right, Keep::Unless(1)),
        column("runs", Align::Left, Keep::Always),
    ]);
    let several = session.placements.len() > 1;
    for case in &session.cases {
        for (arm, placement) in case.arms.iter().zip(&session.placements) {
            let values = arm.values();
            let middle = median(&values);
            let spread =
                median_absolute_deviation(&values).zip(middle).map(|(spread, middle)| spread / middle);
            let runs = match &arm.failed {
                Some(why) => Line::new().with(Ink::Notable, format!("failed: {why}")),
                None => values.len().to_string().into(),
            };
            table.row(vec![
                case.benchmark.as_str().into(),
                case.threads.to_string().into(),
                if several { placement.as_str().into() } else { Line::blank() },
                middle.map_or_else(Line::new, |middle| value_words(middle).into()),
                if case.unit.is_empty() { Line::blank() } else { case.unit.as_str().into() },
                spread.map_or_else(Line::new, |spread| format!("{:.1} %", spread * 100.0).into()),
                runs,
            ]);
        }
    }
    table.write(&mut page);
    skipped(session, &mut page);
    write_notes(&session_notes(session), &mut page);
    page.finish()
}

/// Writes what a suite holds. `missing` says what is not here, `installed` what is, with its version, both
/// in the order of the benchmarks.
pub fn list(
    suite: &Suite,
    missing: &[Option<String>],
    installed: &[Option<String>],
    style: &Style,
) -> String {
    let mut page = Page::new(*style);
    let about = suite.about.as_deref().map_or_else(String::new, |about| format!(": {about}"));
    page.line(2, &format!("{}{about}", suite.title).into());
    page.line(0, &Line::new());
    let mut columns = vec![
        column("benchmark", Align::Left, Keep::Always),
        column("threads", Align::Left, Keep::Always),
        column("compares", Align::Left, Keep::Unless(1)),
        column("what it does", Align::Left, Keep::Always),
    ];
    let knows = installed.iter().any(Option::is_some);
    columns.extend(knows.then(|| column("installed", Align::Left, Keep::Unless(2))));
    let mut table = Table::new(columns);
    for ((benchmark, missing), installed) in suite.benchmarks.iter().zip(missing).zip(installed) {
        let threads = benchmark.threads.iter().map(|threads| match threads {
            Threads::Count(count) => count.to_string(),
            Threads::All => "all".to_owned(),
        });
        let compares = match &benchmark.metric.metric {
            Metric::Wall => "time",
            Metric::CpuTime => "CPU time",
            Metric::MaxRss => "memory",
            Metric::Counted(counter) => counter.name(),
            Metric::Printed(..) if benchmark.metric.unit.is_empty() => "a number",
            Metric::Printed(..) => benchmark.metric.unit.as_str(),
        };
        let mut about = Line::from(benchmark.about.clone().unwrap_or_default());
        if let Some(missing) = missing {
            let between = if about.is_empty() { "" } else { "; " };
            about.push(Ink::Notable, format!("{between}{missing}"));
        }
        let mut row = vec![
            benchmark.name.as_str().into(),
            threads.collect::<Vec<_>>().join(", ").into(),
            compares.into(),
            if about.is_empty() { Line::blank() } else { about },
        ];
        row.extend(knows.then(|| installed.as_deref().map_or_else(Line::blank, Line::from)));
        table.row(row);
    }
    table.write(&mut page);
    page.finish()
}

/// Where a session's figures come from.
fn origin(session: &Session) -> String {
    session.origin.clone().unwrap_or_else(|| platform(&session.conditions))
}

fn differences(shown: &Shown<'_>, page: &mut Page) {
    let differences = shown.differences();
    if differences.is_empty() {
        return;
    }
    page.heading("Circumstances that differ", "");
    let mut table = Table::new(vec![
        column("what", Align::Left, Keep::Always),
        column("before -> after", Align::Left, Keep::Always),
    ]);
    for one in &differences {
        table.row(vec![one.what.as_str().into(), difference_words(one).into()]);
    }
    table.write(page);
}

/// The table of the articles: a row for each benchmark, a column for each number of threads, the
/// geometric mean below; in several blocks of columns where it is too wide for one.
fn pivot(table: &Compared, page: &mut Page) {
    let (names, threads) = (benchmarks(table), threads(table));
    let rows: BTreeMap<(&str, u32), &Row> =
        table.rows.iter().map(|row| ((row.benchmark.as_str(), row.threads), row)).collect_map();
    let first = names.iter().map(|name| crate::text::line::columns(name)).max().unwrap_or(0).max(MEAN.len());
    let of_cells = table.rows.iter().map(|row| cell(row).columns());
    let of_means = table.means.iter().flat_map(|mean| MEANS.map(|(_, line)| line(mean).columns()));
    let of_heads = threads.iter().map(|threads| threads_words(*threads).len());
    let width = of_cells.chain(of_means).chain(of_heads).max().unwrap_or(0);
    let fit = page.width().saturating_sub(2 + first) / (2 + width);
    for block in threads.chunks(fit.max(1)) {
        let line = |name: &str, ink: Ink, cells: &dyn Fn(u32) -> Line| {
            let blank = " ".repeat(first - crate::text::line::columns(name).min(first));
            block.iter().fold(Line::from("  ").with(ink, name).with(Ink::Plain, blank), |line, threads| {
                let cell = cells(*threads);
                let blank = " ".repeat(2 + width.saturating_sub(cell.columns()));
                line.with(Ink::Plain, blank).joined(&cell)
            })
        };
        let heads = |threads| Line::new().with(Ink::Faint, threads_words(threads));
        page.line(4, &line("benchmark", Ink::Faint, &heads));
        for name in &names {
            let cells = |threads| rows.get(&(*name, threads)).map_or_else(dash, |row| cell(row));
            page.line(4, &line(name, Ink::Plain, &cells));
        }
        // One row is not a mean.
        let means = if table.means.iter().any(|mean| mean.rows > 1) { &MEANS[..] } else { &[] };
        for (name, of_mean) in means {
            let mean = |threads| table.means.iter().find(|mean| mean.threads == threads);
            let cells = |threads| mean(threads).map_or_else(dash, of_mean);
            let ink = if *name == MEAN { Ink::Strong } else { Ink::Faint };
            page.line(4, &line(name, ink, &cells));
        }
    }
    if table.rows.iter().any(|row| row.change.is_some_and(|c| c.interval.is_some()) && !is_shown(row)) {
        let text = "  in parentheses: no difference shown";
        page.line(4, &Line::new().with(Ink::Faint, text));
    }
}

const MEAN: &str = "geometric mean";
/// The cell of a row below a table, from the mean of its column.
type OfMean = fn(&Mean) -> Line;
/// The rows below a table: their names, and what they say of the mean of a column.
const MEANS: [(&str, OfMean); 4] = [
    (MEAN, |mean| Line::new().with(Ink::Strong, change_words(mean.ratio, 2))),
    ("  95 % interval", |mean| mean.interval.map_or_else(dash, |interval| range_words(interval).into())),
    ("  smallest", |mean| change_words(mean.least.1, 1).into()),
    ("  largest", |mean| change_words(mean.most.1, 1).into()),
];

fn dash() -> Line {
    Line::new().with(Ink::Faint, "-")
}

fn is_shown(row: &Row) -> bool {
    matches!(row.verdict, Verdict::Better | Verdict::Worse)
}

fn cell(row: &Row) -> Line {
    let words = row.change.map(|change| change_words(change.ratio, 1));
    match (&row.verdict, words) {
        (Verdict::Better, Some(words)) => Line::new().with(Ink::Accent, words),
        (Verdict::Worse, Some(words)) => Line::new().with(Ink::Notable, words),
        (Verdict::TooFewRounds { rounds: 1, .. }, Some(words)) => words.into(),
        (_, Some(words)) => format!("({words})").into(),
        (Verdict::Changed(_), None) => Line::new().with(Ink::Notable, "changed"),
        (_, None) => Line::new().with(Ink::Notable, "missing"),
    }
}

fn figures(table: &Compared, page: &mut Page) {
    page.heading("Figures", "medians of all runs; the change is estimated from rounds");
    let mut figures = Table::new(vec![
        column("benchmark", Align::Left, Keep::Always),
        column("threads", Align::Right, Keep::Always),
        column(if table.paired { "first" } else { "before" }, Align::Right, Keep::Unless(3)),
        column(if table.paired { "other" } else { "after" }, Align::Right, Keep::Unless(4)),
        column("unit", Align::Left, Keep::Unless(2)),
        column("change", Align::Right, Keep::Always),
        column("95 % interval", Align::Right, Keep::Unless(1)),
        column("verdict", Align::Left, Keep::Always),
    ])
    .naming_omitted();
    for row in &table.rows {
        let value = |value: Option<f64>| value.map_or_else(Line::new, |value| value_words(value).into());
        let interval = row.change.and_then(|change| change.interval);
        let ink = match row.verdict {
            Verdict::Better => Ink::Accent,
            Verdict::Worse | Verdict::Changed(_) | Verdict::Missing(_) => Ink::Notable,
            Verdict::NoDifference | Verdict::TooFewRounds { .. } => Ink::Plain,
        };
        figures.row(vec![
            row.benchmark.as_str().into(),
            row.threads.to_string().into(),
            value(row.before),
            value(row.after),
            if row.unit.is_empty() { Line::blank() } else { row.unit.as_str().into() },
            row.change.map_or_else(Line::new, |change| change_words(change.ratio, 1).into()),
            interval.map_or_else(Line::new, |interval| range_words(interval).into()),
            Line::new().with(ink, verdict_words(row)),
        ]);
    }
    figures.write(page);
    let lists = [
        ("Changed", "not compared: not the machine alone has changed, but what it ran", changed(table)),
        ("Missing", "", missing(table)),
    ];
    for (head, about, rows) in lists.into_iter().filter(|(_, _, rows)| !rows.is_empty()) {
        page.heading(head, about);
        for one in rows {
            page.line(4, &Line::new().with(Ink::Notable, format!("  {one}")));
        }
    }
}

fn pages(session: &Session, page: &mut Page) {
    let seen = residency_by_placement(session);
    if seen.is_empty() {
        return;
    }
    page.heading("Pages", "by node, of all benchmarks, when each had most of them");
    let mut table = Table::new(vec![
        column("placement", Align::Left, Keep::Always),
        column("pages on node", Align::Left, Keep::Always),
    ]);
    for (placement, residency) in seen {
        table.row(vec![placement.into(), pages_words(&residency).into()]);
    }
    table.write(page);
}

fn skipped(session: &Session, page: &mut Page) {
    if session.skipped.is_empty() {
        return;
    }
    page.heading("Not run", "");
    for one in &session.skipped {
        let threads = one.threads.map_or_else(String::new, |threads| format!(", {}", threads_words(threads)));
        page.line(4, &format!("  {}{threads}: {}", one.benchmark, one.why).into());
    }
}

fn session_notes(session: &Session) -> Vec<String> {
    let load = load_words(&session.conditions);
    let notes = [end_words(session.end).map(str::to_owned), load, stolen(session)];
    notes.into_iter().flatten().collect()
}

fn write_notes(notes: &[String], page: &mut Page) {
    if !notes.is_empty() {
        page.line(0, &Line::new());
    }
    for note in notes {
        page.line(2, &Line::new().with(Ink::Notable, note));
    }
}
