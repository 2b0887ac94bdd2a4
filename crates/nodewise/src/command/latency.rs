//! `nodewise latency`: options to cells, cells to a survey, the survey to its reader.

mod loaded;
mod sweep;

use nodewise_machine::{Bytes, CpuSet, Machine};
use nodewise_measure::cell::Cell;
use nodewise_measure::latency::{Chase, LatencyBench, LatencyReport, Pattern, best_cpu};
use nodewise_measure::survey::{Account, CellReport, Survey};
use nodewise_measure::workload::Size;
use nodewise_source::Detail;
use nodewise_stats::Direction;
use nodewise_view::json::Saved;
use nodewise_view::svg::latency_svg;
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::latency::Latency;
use crate::command::figures::{self, FigureSubject};
use crate::failure::{Failure, Outcome};
use crate::measuring::{self, Field, Forms, Measurement, Share};
use crate::{input, live};

use sweep::Shape;

/// The part of the memory that a node has to spare which the buffers of a default size take: one in
/// small pages and one in huge ones are there at once.
const SHARE: Share = Share { part: 8, nodes: 1 };

/// Runs the verb.
pub fn run(args: &Latency, global: &Global) -> Outcome {
    if args.loaded {
        return loaded::run(args, global);
    }
    if args.sweep || args.table {
        return sweep::run(args, global);
    }
    if !args.sizes.is_empty() {
        return Err(Failure::usage(
            "--sizes has no meaning without --table or --sweep: --size is that of a matrix",
        ));
    }
    let Some(path) = &args.from else { return show(&measure(args)?, args, global) };
    measuring::read_saved_as("--from", path, "latency", |text| show_again(text, args, global))?
}

/// Shows what `--json` has written, as its schema says, or what another tool has printed.
fn show_again(text: &str, args: &Latency, global: &Global) -> Result<Outcome, String> {
    if let Some(of_tool) = figures::read(text, FigureSubject::Latency)? {
        return Ok(figures::show(&of_tool, &args.measure, global));
    }
    let saved = &Saved::from_json(text)?;
    match saved.schema() {
        json::loaded::SCHEMA => json::loaded::read(saved).map(|report| loaded::show(&report, args, global)),
        json::sweep::SWEEP_SCHEMA => {
            json::sweep::read(saved).map(|report| sweep::show(&report, Shape::Sweep, args, global))
        }
        json::sweep::TABLE_SCHEMA => {
            json::sweep::read(saved).map(|report| sweep::show(&report, Shape::Table, args, global))
        }
        _ => json::latency::read(saved).map(|report| show(&report, args, global)),
    }
}

/// The document of a measurement, in place of showing it: a matrix, or curves under load.
///
/// # Errors
/// As the verb.
pub fn document(args: &Latency) -> Result<String, Failure> {
    if args.loaded { loaded::document(args) } else { Ok(json::latency(&measure(args)?)) }
}

fn show(report: &LatencyReport, args: &Latency, global: &Global) -> Outcome {
    let forms = Forms {
        picture: &|theme| latency_svg(report, theme),
        json: &|| json::latency(report),
        csv: &|| csv::latency(report),
        text: &|style| text::latency(report, style),
    };
    measuring::show(&args.measure, global, &forms)?;
    let refused = report.cells.iter().map(|cell| cell.refused.as_deref());
    measuring::ended(report.cells.iter().any(|cell| cell.figure.is_some()), &report.account, refused)
}

fn measure(args: &Latency) -> Result<LatencyReport, Failure> {
    let measurement = Measurement::begin(&args.measure)?;
    let machine = input::load("live", Detail::Full)?.machine;
    let field = Field::from_options(&args.measure, &machine)?;
    let seed = measuring::seed(args.measure.seed);
    let mut facts = measurement.facts(&machine, &args.measure, field.nodes());
    let (size, cache) = match args.size {
        Some(size) => (checked(size)?, None),
        None => {
            let cache = measuring::last_level(&args.measure, args.pages, &machine, &field, seed, &mut facts);
            let wanted = Size::of_chase(&machine, cache.found).bytes.into();
            (measuring::default_size(wanted, &args.measure, &field, SHARE, &mut facts), Some(cache))
        }
    };
    let cells = field.cells(&measuring::page_kinds(args.pages));
    let chases: Vec<Chase> =
        cells.iter().map(|cell| Chase { cell: cell.clone(), size, pattern: Pattern::Random }).collect();
    let mut bench = LatencyBench::new(seed);
    let pace = measuring::pace(&args.measure, field.nodes());
    let conditions = live::conditions(&machine, &[]);
    let survey = measuring::conduct(&mut bench, &chases, pace, seed, &mut facts);
    Ok(LatencyReport {
        account: Account::from_survey(&survey, conditions, bench.timer().source().name()).sized_by(cache),
        size,
        cells: reports(&cells, &survey, &machine),
        declared: field.declared(&machine),
    })
}

/// A size that was typed: at least a page, and not more lines than can be numbered.
fn checked(size: Bytes) -> Result<Bytes, Failure> {
    let (least, most) = (Bytes::from_kib(4), Bytes::from_gib(255));
    if (least..=most).contains(&size) {
        Ok(size)
    } else {
        Err(Failure::usage(format_args!("--size: {size} is not a buffer size: expected {least} to {most}")))
    }
}

fn reports(cells: &[Cell], survey: &Survey, machine: &Machine) -> Vec<CellReport> {
    let report = |(cell, outcome): (&Cell, _)| {
        let cpus: CpuSet = best_cpu(&cell.cpus).into_iter().collect();
        let explain = |refusal: &_| measuring::explain(refusal, machine);
        CellReport::new(cell, cpus, outcome, Direction::LowerIsBetter, &explain)
    };
    cells.iter().zip(&survey.outcomes).map(report).collect()
}
