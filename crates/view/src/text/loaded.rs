//! The text of `nodewise latency --loaded`.

use nodewise_measure::latency::loaded::{Curve, LoadedReport, Path, Point};
use nodewise_measure::survey::CellReport;

use super::latency::disturbed;
use crate::digest::loaded::{chase_short, ending, knee_words, path_words, traffic_short};
use crate::digest::survey::digits;
use crate::style::{Ink, Style};
use crate::text::line::{Line, Page};
use crate::text::survey;
use crate::text::table::{Align, Column, Keep, Table};

/// Writes curves of latency under load: a summary, and a table per curve.
pub fn loaded(report: &LoadedReport, style: &Style) -> String {
    let mut page = Page::new(*style);
    page.heading("Loaded latency", "of one load after another, while other CPUs move data");
    for path in &report.paths {
        page.line(4, &Line::from(format!("  {}", path_words(path))));
    }
    if report.cells().any(CellReport::is_reached) {
        summary(report).write(&mut page);
    }
    for path in &report.paths {
        for curve in path.curves.iter().filter(|curve| is_reached(curve)) {
            let mut remark = curve.variant.clone().unwrap_or_default();
            if report.paths.len() > 1 {
                remark = format!("{}, chase {}; {remark}", traffic_short(path), chase_short(path));
            }
            page.heading(&format!("Traffic: {}", curve.kernel), &remark);
            points(path, curve).write(&mut page);
        }
    }
    survey::write(&ending(report), &mut page);
    page.finish()
}

/// Whether any of its points has a result.
fn is_reached(curve: &Curve) -> bool {
    curve.points.iter().any(|point| point.cell.is_reached())
}

const fn column(head: &'static str, align: Align, keep: Keep) -> Column {
    Column { head, align, keep }
}

fn known(value: Option<String>) -> Line {
    value.map_or_else(Line::new, Line::from)
}

/// A row per curve: how far it goes, and where it bends.
fn summary(report: &LoadedReport) -> Table {
    let several = report.paths.len() > 1;
    let mut columns = vec![
        column("traffic", Align::Left, Keep::Always),
        column("idle ns", Align::Right, Keep::Always),
        column("most GB/s", Align::Right, Keep::Always),
        column("ns at that", Align::Right, Keep::Always),
        column("knee (2x idle)", Align::Left, Keep::Always),
    ];
    if several {
        columns.insert(0, column("chase", Align::Left, Keep::Always));
    }
    let mut table = Table::new(columns);
    for path in &report.paths {
        for curve in path.curves.iter().filter(|curve| is_reached(curve)) {
            let most = curve.most().and_then(Point::place);
            let place = if several { format!(" {}", traffic_short(path)) } else { String::new() };
            let mut row = vec![
                Line::from(format!("{}{place}", curve.kernel)),
                latency(&path.idle, digits),
                known(most.map(|(gb_per_s, _)| digits(gb_per_s))),
                known(most.map(|(_, ns)| digits(ns))),
                known(knee_words(path, curve)),
            ];
            if several {
                row.insert(0, Line::from(chase_short(path)));
            }
            table.row(row);
        }
    }
    table
}

/// A median with a mark where the cell stayed disturbed.
fn latency(cell: &CellReport, digits: fn(f64) -> String) -> Line {
    let Some(figure) = &cell.figure else { return Line::new() };
    let (mark, ink) = if cell.disturbed { ("!", Ink::Notable) } else { ("", Ink::Plain) };
    Line::new().with(ink, format!("{}{mark}", digits(figure.median)))
}

/// A row per point, from idle to no pause.
fn points(path: &Path, curve: &Curve) -> Table {
    let mut table = Table::new(vec![
        column("pause ns", Align::Right, Keep::Always),
        column("GB/s", Align::Right, Keep::Always),
        column("on the bus", Align::Right, Keep::Unless(1)),
        column("ns", Align::Right, Keep::Always),
        column("95% interval", Align::Right, Keep::Unless(4)),
        column("p90 ns", Align::Right, Keep::Unless(5)),
        column("times idle", Align::Right, Keep::Unless(3)),
        column("disturbed", Align::Left, Keep::Always),
    ]);
    let figures = |cell: &CellReport, p90: Option<f64>| {
        let figure = cell.figure.as_ref();
        let interval = figure.and_then(|figure| figure.interval);
        let times = figure.zip(path.idle_ns()).map(|(figure, idle)| figure.median / idle);
        [
            latency(cell, digits),
            known(interval.map(|interval| format!("{}-{}", digits(interval.low), digits(interval.high)))),
            known(p90.map(digits)),
            known(times.map(|times| format!("{times:.2}"))),
            disturbed(cell),
        ]
    };
    let mut row = |pause: String, load: [Line; 2], figures: [Line; 5]| {
        table.row([Line::from(pause)].into_iter().chain(load).chain(figures).collect());
    };
    row("idle".to_owned(), [Line::new(), Line::new()], figures(&path.idle, path.idle_p90_ns));
    for point in curve.points.iter().filter(|point| point.cell.is_reached()) {
        let load = point.load.as_ref().map(|load| load.median);
        let factor = curve.kernel.bus_factor();
        let sign = if factor > 1.0 { "<=" } else { "" };
        let bus = load.map(|load| format!("{sign}{}", digits(load * factor)));
        let load = [known(load.map(digits)), known(bus)];
        row(point.pause_ns.to_string(), load, figures(&point.cell, point.p90_ns));
    }
    table
}
