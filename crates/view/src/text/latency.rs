//! The text of `nodewise latency`.

use nodewise_measure::cell::PageKind;
use nodewise_measure::latency::LatencyReport;
use nodewise_measure::survey::{CellReport, Figure};

use crate::digest::latency::{Shown, ending, matrix, page_walks};
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};
use crate::text::{matrix, survey};

/// Up to this many cells are reported one by one.
const TOLD: usize = 16;

/// Writes a matrix of latencies.
pub fn latency(report: &LatencyReport, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading("Latency", "idle: one load after another, each at the address the last one read");
    let mut matrices: Vec<_> =
        report.page_kinds().into_iter().map(|pages| matrix(report, pages, Shown::Median)).collect();
    matrices.extend(page_walks(report));
    for matrix in &matrices {
        matrix::write_measured(matrix, &mut page);
    }
    if report.cells.iter().all(|cell| cell.figure.is_none()) {
        // The end says why.
    } else if report.cells.len() <= TOLD {
        page.heading("Cells", "");
        cells(report).write(&mut page);
    } else {
        for pages in report.page_kinds() {
            matrix::write_measured(&matrix(report, pages, Shown::Best), &mut page);
        }
        page.line(2, &Line::from(format!("  {}", intervals(report))));
    }
    survey::write(&ending(report), &mut page);
    page.finish()
}

/// A row per cell.
fn cells(report: &LatencyReport) -> Table {
    let column = |head, align, keep| Column { head, align, keep };
    let mut table = Table::new(vec![
        column("from", Align::Right, Keep::Always),
        column("memory", Align::Right, Keep::Always),
        column("pages", Align::Left, Keep::Always),
        column("CPU", Align::Right, Keep::Unless(1)),
        column("median ns", Align::Right, Keep::Always),
        column("95% interval", Align::Right, Keep::Unless(4)),
        column("best ns", Align::Right, Keep::Always),
        column("disturbed", Align::Right, Keep::Unless(3)),
        column("placed", Align::Left, Keep::Always),
    ]);
    for cell in report.cells.iter().filter(|cell| cell.is_reached()) {
        let figure = cell.figure.as_ref();
        let text =
            |of: &dyn Fn(&Figure) -> Option<String>| figure.and_then(of).map_or_else(Line::new, Line::from);
        table.row(vec![
            cell.from.to_string().into(),
            cell.memory.to_string().into(),
            pages_word(cell.pages).into(),
            cell.cpus.to_string().into(),
            text(&|figure| Some(format!("{:.1}", figure.median))),
            text(&|figure| {
                figure.interval.map(|interval| format!("{:.1}-{:.1}", interval.low, interval.high))
            }),
            text(&|figure| Some(format!("{:.1}", figure.best))),
            disturbed(cell),
            placed(cell).map_or_else(Line::new, Line::from),
        ]);
    }
    table
}

/// Short, for a column.
fn pages_word(pages: PageKind) -> String {
    match pages {
        PageKind::Small => "small".to_owned(),
        PageKind::TransparentHuge => "thp".to_owned(),
        PageKind::Hugetlb(size) => size.bytes().to_string(),
    }
}

/// `3/30`, with a mark where it stays disturbed.
pub(super) fn disturbed(cell: &CellReport) -> Line {
    if cell.marks.samples == 0 {
        return Line::new();
    }
    let mark = if cell.disturbed { "!" } else { "" };
    let again = if cell.again { " again" } else { "" };
    let text = format!("{}/{}{mark}{again}", cell.marks.disturbed, cell.marks.samples);
    Line::new().with(if cell.disturbed { Ink::Notable } else { Ink::Plain }, text)
}

/// `100/100 %`: before and after.
fn placed(cell: &CellReport) -> Option<String> {
    let percent = |share: Option<f64>| share.map(|share| format!("{:.0}", share * 100.0));
    let before = percent(cell.before.as_ref()?.share())?;
    let after = percent(cell.after.as_ref().and_then(|placed| placed.share()));
    Some(format!("{before}/{} %", after.as_deref().unwrap_or("-")))
}

/// How wide the intervals are that a matrix has no room for.
fn intervals(report: &LatencyReport) -> String {
    let shares = || {
        let cells = report.cells.iter().filter_map(|cell| Some((cell, cell.figure?.uncertainty()?)));
        cells.map(|(cell, share)| (share * 100.0, cell))
    };
    let least = shares().min_by(|a, b| a.0.total_cmp(&b.0));
    let most = shares().max_by(|a, b| a.0.total_cmp(&b.0));
    match (least, most) {
        (Some((least, _)), Some((most, cell))) => format!(
            "95% intervals of the medians reach {least:.1} to {most:.1} % to either side, the widest from \
             node {} to node {} ({})",
            cell.from,
            cell.memory,
            pages_word(cell.pages)
        ),
        _ => "no intervals: an interval needs 6 rounds".to_owned(),
    }
}
