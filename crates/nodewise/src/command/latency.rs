//! `nodewise latency`: options to cells, cells to a survey, the survey to its reader.

mod sweep;

use std::path::Path;

use nodewise_machine::{AccessClass, Bytes, CpuSet, Machine};
use nodewise_measure::cell::{Cell, Facts};
use nodewise_measure::latency::{Chase, Declared, LatencyBench, Pattern, Report, best_cpu};
use nodewise_measure::metric::Direction;
use nodewise_measure::survey::{CellReport, Survey};
use nodewise_measure::workload::Size;
use nodewise_source::Detail;
use nodewise_view::svg::{Theme, latency_svg};
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::latency::Latency;
use crate::facts::LiveFacts;
use crate::failure::{CANNOT, Failure, Outcome};
use crate::measuring::{self, Field};
use crate::{input, live, output};

/// The part of the memory that a node has to spare which the buffers of a default size take: one in
/// small pages and one in huge ones are there at once.
const PART_OF_SPARE: u64 = 8;
/// The least default size.
const LEAST: Bytes = Bytes::from_mib(4);
/// The largest with `--quick`: making a larger chain takes too much of its time.
const MOST_QUICK: Bytes = Bytes::from_mib(256);

/// Runs the verb.
pub fn run(args: &Latency, global: &Global) -> Outcome {
    if args.sweep || args.table {
        return sweep::run(args, global);
    }
    if !args.sizes.is_empty() {
        return Err(Failure::usage(
            "--sizes has no meaning without --table or --sweep: --size is that of a matrix",
        ));
    }
    let report = match &args.from {
        Some(path) => read(path)?,
        None => measure(args, global)?,
    };
    if let Some(path) = &args.measure.svg {
        output::write_file(path, latency_svg(&report, Theme::Auto).as_bytes())?;
    }
    if args.measure.json {
        output::print_json(&json::latency(&report))?;
    } else if args.measure.csv {
        output::print(&csv::latency(&report))?;
    } else {
        output::print(&text::latency(&report, &output::style(global.color)))?;
    }
    let measured = report.cells.iter().any(|cell| cell.figure.is_some());
    Ok(if measured || report.interrupted { 0 } else { CANNOT })
}

fn read(path: &Path) -> Result<Report, Failure> {
    let text = measuring::read_result(path)?;
    json::latency::read(&text).map_err(|error| {
        let path = nodewise_machine::printable::quote(&path.display().to_string());
        Failure::usage(format_args!("--from: {path} is no result of nodewise latency: {error}"))
    })
}

/// Latency is measured on the running system.
fn must_be_live(global: &Global) -> Result<(), Failure> {
    if !input::is_live(&global.machine) {
        return Err(Failure::usage(
            "latency is measured on this machine: --machine has no meaning with it (--from=FILE shows a \
             result from elsewhere)",
        ));
    }
    Ok(())
}

fn measure(args: &Latency, global: &Global) -> Result<Report, Failure> {
    must_be_live(global)?;
    let machine = input::load("live", Detail::Full)?.machine;
    let field = Field::of(&args.measure, &machine)?;
    let seed = measuring::seed(&args.measure);
    let mut facts = LiveFacts::new(&machine);
    let size = match args.size {
        Some(size) => checked(size)?,
        None => default_size(args, &machine, &field, &mut facts),
    };
    let cells = field.cells(&measuring::page_kinds(&args.measure));
    let chases: Vec<Chase> =
        cells.iter().map(|cell| Chase { cell: cell.clone(), size, pattern: Pattern::Random }).collect();
    let mut bench = LatencyBench::new(seed);
    let pace = measuring::pace(&args.measure, field.nodes());
    let conditions = live::conditions(&machine, &[]);
    let survey = measuring::conduct(&mut bench, &chases, pace, seed, &mut facts)?;
    Ok(Report {
        conditions,
        size,
        seed,
        clock: bench.timer().source().name().to_owned(),
        took: survey.took,
        interrupted: survey.interrupted,
        meanwhile: survey.meanwhile,
        cells: reports(&cells, &survey, &machine),
        declared: declared(&field, &machine),
    })
}

/// A size that was typed: at least a page, and not more lines than can be numbered.
fn checked(size: Bytes) -> Result<Bytes, Failure> {
    let (least, most) = (Bytes::from_kib(4), Bytes::from_gib(255));
    if (least..=most).contains(&size) {
        Ok(size)
    } else {
        Err(Failure::usage(format_args!("--size: {size} is no size of a buffer: expected {least} to {most}")))
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

/// The size that [`Size::of_chase`] finds, as far as the nodes have it to spare: a cell should not be
/// refused for a size that nobody asked for.
fn default_size(args: &Latency, machine: &Machine, field: &Field, facts: &mut LiveFacts) -> Bytes {
    let wanted = Size::of_chase(machine).bytes;
    let wanted = if args.measure.quick { wanted.min(MOST_QUICK) } else { wanted };
    let spare = field.targets.iter().filter_map(|node| facts.available(node)).min();
    let most = spare.into_iter().chain(facts.below_limit()).min();
    let most = most.map_or(wanted, |most| Bytes::from_mib((most.get() / PART_OF_SPARE) >> 20));
    wanted.min(most).max(LEAST)
}

/// What the firmware says of the pairs that are measured.
fn declared(field: &Field, machine: &Machine) -> Vec<Declared> {
    let mut declared = Vec::new();
    for (from, _) in &field.sources {
        for memory in field.targets.iter() {
            let read_latency_ns = machine
                .access(memory, AccessClass::Cpu)
                .filter(|access| access.initiators.contains(*from))
                .and_then(|access| access.read_latency_ns);
            let distance = machine.distance(*from, memory);
            declared.push(Declared { from: *from, memory, distance, read_latency_ns });
        }
    }
    declared
}
