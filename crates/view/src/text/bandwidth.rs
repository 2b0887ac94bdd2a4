//! The text of `nodewise bandwidth`.

use nodewise_measure::bandwidth::{BandwidthReport, TransferReport};

use crate::digest::bandwidth::{
    KernelRow, PeakRow, ending, kernel_rows, matrix, median, peak_rows, percent, place_words,
};
use crate::digest::survey::digits;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};
use crate::text::{matrix, survey};

/// Writes bandwidths.
pub fn bandwidth(report: &BandwidthReport, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading("Bandwidth", "all threads of a node at once, a thread per CPU");
    matrix::write_measured(&matrix(report), &mut page);
    if let Some(everywhere) = report.everywhere.as_ref().filter(|way| way.cell.is_reached()) {
        write_everywhere(everywhere, &mut page);
    }
    if has_figures(&report.kernels) {
        page.heading("Kernels", &place(&report.kernels));
        kernels(report).write(&mut page);
    }
    if has_figures(&report.scaling) {
        page.heading("Threads", &format!("{}, {}", report.kernel, place(&report.scaling)));
        scaling(report).write(&mut page);
    }
    let peaks = peak_rows(report);
    if !peaks.is_empty() {
        page.heading("Peak", "theoretical, by the memory slots: channels x speed x width");
        peak_table(peaks).write(&mut page);
    }
    survey::write(&ending(report), &mut page);
    page.finish()
}

/// A row per peak, with the most that was reached of it.
fn peak_table(rows: Vec<PeakRow>) -> Table {
    let column = |head, align, keep| Column { head, align, keep };
    let mut table = Table::new(vec![
        column("memory", Align::Left, Keep::Always),
        column("peak GB/s", Align::Right, Keep::Always),
        column("reached", Align::Right, Keep::Always),
        column("share", Align::Right, Keep::Always),
        column("with", Align::Left, Keep::Unless(1)),
        column("computed from", Align::Left, Keep::Always),
    ]);
    for row in rows {
        let reached = row.reached.map_or_else(String::new, |(reached, _)| digits(reached));
        table.row(vec![
            row.memory.into(),
            digits(row.peak_gb_per_s).into(),
            reached.into(),
            Line::new().with(Ink::Strong, row.share.map_or_else(String::new, percent)),
            row.reached.map_or_else(String::new, |(_, kernel)| kernel.to_string()).into(),
            row.computed.into(),
        ]);
    }
    table
}

/// Whether a table of these ways has anything to show.
fn has_figures(ways: &[TransferReport]) -> bool {
    ways.iter().any(|way| way.cell.figure.is_some())
}

/// From where to where, for a heading.
fn place(ways: &[TransferReport]) -> String {
    ways.first().map_or_else(String::new, place_words)
}

fn write_everywhere(way: &TransferReport, page: &mut Page) {
    let value = number(way).map_or_else(|| "not measured".to_owned(), |value| format!("{value} GB/s"));
    let line = Line::from("  ")
        .with(Ink::Plain, "all nodes at once, each on its own memory: ")
        .with(Ink::Strong, value)
        .with(Ink::Faint, format!("  {} threads", way.threads));
    page.line(4, &line);
}

/// A median with three digits, and a mark where the way stayed disturbed.
fn number(way: &TransferReport) -> Option<String> {
    let mark = if way.cell.disturbed { "!" } else { "" };
    median(way).map(|value| format!("{}{mark}", digits(value)))
}

fn cell(way: Option<&TransferReport>, of: impl Fn(&TransferReport) -> Option<String>) -> Line {
    let ink = if way.is_some_and(|way| way.cell.disturbed) { Ink::Notable } else { Ink::Plain };
    way.and_then(of).map_or_else(Line::new, |text| Line::new().with(ink, text))
}

/// A row per kernel.
fn kernels(report: &BandwidthReport) -> Table {
    let column = |head, align, keep| Column { head, align, keep };
    let mut table = Table::new(vec![
        column("kernel", Align::Left, Keep::Always),
        column("1 thread", Align::Right, Keep::Always),
        column("all", Align::Right, Keep::Always),
        column("95% interval", Align::Right, Keep::Unless(1)),
        column("best", Align::Right, Keep::Unless(2)),
        column("on the bus", Align::Right, Keep::Unless(3)),
        column("won with", Align::Left, Keep::Always),
    ]);
    let is_reached =
        |row: &KernelRow<'_>| row.one.into_iter().chain(row.all).any(|way| way.cell.is_reached());
    for row in kernel_rows(report).into_iter().filter(is_reached) {
        let most = row.most();
        let interval = |way: &TransferReport| {
            let interval = way.cell.figure.as_ref()?.interval?;
            Some(format!("{}-{}", digits(interval.low), digits(interval.high)))
        };
        table.row(vec![
            row.kernel.to_string().into(),
            cell(row.one, number),
            cell(row.all, number),
            cell(most, interval),
            cell(most, |way| Some(digits(way.cell.figure.as_ref()?.best))),
            cell(most, |way| {
                let sign = if way.bus_factor() > 1.0 { "<=" } else { "" };
                Some(format!("{sign}{}", digits(way.bus_gb_per_s()?)))
            }),
            cell(most, |way| way.variant.clone()),
        ]);
    }
    table
}

/// A row per number of threads.
fn scaling(report: &BandwidthReport) -> Table {
    let column = |head, align, keep| Column { head, align, keep };
    let mut table = Table::new(vec![
        column("threads", Align::Right, Keep::Always),
        column("GB/s", Align::Right, Keep::Always),
        column("per thread", Align::Right, Keep::Always),
        column("", Align::Left, Keep::Always),
    ]);
    let knee = report.knee();
    for way in report.scaling.iter().filter(|way| way.cell.is_reached()) {
        let per_thread = |way: &TransferReport| median(way).map(|value| digits(value / way.threads as f64));
        let mark = if knee == Some(way.threads) { Line::from("the knee") } else { Line::blank() };
        table.row(vec![
            way.threads.to_string().into(),
            cell(Some(way), number),
            cell(Some(way), per_thread),
            mark,
        ]);
    }
    table
}
