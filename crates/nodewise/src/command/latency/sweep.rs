//! `nodewise latency --sweep` and `--table`: latency by the size of what is chased.

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CacheKind, CpuId, CpuSet, Machine, NodeId};
use nodewise_measure::cell::{Cell, PageKind};
use nodewise_measure::latency::sweep::{ChaseReport, Claimed, SweepReport, sizes};
use nodewise_measure::latency::{Chase, LatencyBench, Pattern, best_cpu};
use nodewise_measure::survey::{Account, CellReport};
use nodewise_source::Detail;
use nodewise_stats::Direction;
use nodewise_view::svg::sweep_svg;
use nodewise_view::{csv, json, text};

use super::checked;
use crate::cli::Global;
use crate::cli::latency::Latency;
use crate::cli::measure_options::Huge;
use crate::failure::{Failure, Outcome};
use crate::measuring::{self, Field, Forms, Measurement};
use crate::{input, live};

/// The table of old: sizes of its columns, and elements of 8 bytes from one access to the next.
const COLUMNS: [Bytes; 9] = [
    Bytes::from_kib(2),
    Bytes::from_kib(8),
    Bytes::from_kib(32),
    Bytes::from_kib(128),
    Bytes::from_kib(512),
    Bytes::from_mib(2),
    Bytes::from_mib(8),
    Bytes::from_mib(32),
    Bytes::from_mib(128),
];
const STRIDES: [u32; 3] = [1, 32, 64];
/// The sizes of a sweep.
const LEAST: Bytes = Bytes::from_kib(4);
const MOST: Bytes = Bytes::from_mib(256);
const MOST_QUICK: Bytes = Bytes::from_mib(64);

/// Runs the verb.
pub(super) fn run(args: &Latency, global: &Global) -> Outcome {
    let measurement = Measurement::begin(&args.measure)?;
    let machine = input::load("live", Detail::Full)?.machine;
    let field = Field::from_options(&args.measure, &machine)?;
    let shape = if args.table { Shape::Table } else { Shape::Sweep };
    show(&measure(args, &machine, &field, measurement)?, shape, args, global)
}

/// The form in which chases of many sizes are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A staircase, and the caches that it shows.
    Sweep,
    /// A table of sizes and ways.
    Table,
}

/// Shows a report as the options want it.
pub(super) fn show(report: &SweepReport, shape: Shape, args: &Latency, global: &Global) -> Outcome {
    let forms = Forms {
        picture: &|theme| sweep_svg(report, theme),
        json: &|| match shape {
            Shape::Sweep => json::sweep::sweep(report),
            Shape::Table => json::sweep::table(report),
        },
        csv: &|| csv::sweep(report),
        text: &|style| match shape {
            Shape::Sweep => text::sweep::sweep(report, style),
            Shape::Table => text::sweep::table(report, style),
        },
    };
    measuring::show(&args.measure, global, &forms)?;
    let refused = report.chases.iter().map(|chase| chase.cell.refused.as_deref());
    let measured = report.chases.iter().any(|chase| chase.cell.figure.is_some());
    measuring::ended(measured, &report.account, refused)
}

fn measure(
    args: &Latency,
    machine: &Machine,
    field: &Field,
    measurement: Measurement,
) -> Result<SweepReport, Failure> {
    let chases = if args.table { table(args, machine, field)? } else { sweep(args, machine, field)? };
    let seed = measuring::seed(args.measure.seed);
    let mut bench = LatencyBench::new(seed);
    let mut facts = measurement.facts(machine, &args.measure, field.nodes());
    let pace = measuring::pace(&args.measure, 1);
    let conditions = live::conditions(machine, &[]);
    let survey = measuring::conduct(&mut bench, &chases, pace, seed, &mut facts);
    let cpu = chases.first().and_then(|chase| best_cpu(&chase.cell.cpus));
    let reports = chases.iter().zip(&survey.outcomes).map(|(chase, outcome)| {
        let cpus: CpuSet = best_cpu(&chase.cell.cpus).into_iter().collect();
        let explain = |refusal: &_| measuring::explain(refusal, machine);
        let cell = CellReport::new(&chase.cell, cpus, outcome, Direction::LowerIsBetter, &explain);
        ChaseReport { size: chase.size, pattern: chase.pattern, cell }
    });
    Ok(SweepReport {
        account: Account::from_survey(&survey, conditions, bench.timer().source().name()),
        chases: reports.collect(),
        claimed: cpu.map(|cpu| claimed(machine, cpu)).unwrap_or_default(),
    })
}

/// The node to measure from, with its CPUs: the first that has any to use.
pub(super) fn source(field: &Field) -> Result<&(NodeId, CpuSet), Failure> {
    field
        .source()
        .ok_or_else(|| Failure::cannot("no CPU of the nodes to measure from may be used by this process"))
}

/// The memory of the node itself, or the nearest.
pub(super) fn local(field: &Field, machine: &Machine, from: NodeId) -> Result<NodeId, Failure> {
    field.nearest(machine, from).ok_or_else(|| Failure::cannot("no node with memory is left"))
}

/// The memory that is farthest by distance, where there is another node at all.
pub(super) fn remote(field: &Field, machine: &Machine, from: NodeId, local: NodeId) -> Option<NodeId> {
    let others = field.targets.iter().filter(|node| *node != local);
    others.max_by_key(|node| machine.distance(from, *node))
}

fn sweep(args: &Latency, machine: &Machine, field: &Field) -> Result<Vec<Chase>, Failure> {
    let (from, cpus) = source(field)?;
    let memory = local(field, machine, *from)?;
    let most = match args.sizes[..] {
        [] if args.measure.quick => MOST_QUICK,
        [] => MOST,
        [most] => checked(most)?,
        _ => return Err(Failure::usage("--sizes: a sweep takes one, its largest")),
    };
    let mut chases = Vec::new();
    for pages in measuring::page_kinds(args.pages) {
        for size in sizes(LEAST, most) {
            let cell = Cell { from: *from, cpus: cpus.clone(), memory, pages };
            chases.push(Chase { cell, size, pattern: Pattern::Random });
        }
    }
    Ok(chases)
}

/// In huge pages, so that the ways differ by what caches do and not by page walks; in small ones with
/// `--huge=never`.
fn table(args: &Latency, machine: &Machine, field: &Field) -> Result<Vec<Chase>, Failure> {
    let (from, cpus) = source(field)?;
    let local = local(field, machine, *from)?;
    let pages = match args.pages.huge {
        None => PageKind::TransparentHuge,
        Some(Huge::Pages(kind)) => kind,
        Some(Huge::Never) => PageKind::Small,
    };
    let columns = if args.sizes.is_empty() { COLUMNS.to_vec() } else { args.sizes.clone() };
    for size in &columns {
        if *size < Bytes::new(64) || *size > Bytes::from_gib(16) {
            return Err(Failure::usage(format_args!(
                "--sizes: {size} is not a column size: expected 64 B to 16 GiB"
            )));
        }
    }
    let mut chases = Vec::new();
    for memory in [Some(local), remote(field, machine, *from, local)].into_iter().flatten() {
        for pattern in STRIDES.map(Pattern::Stride).into_iter().chain([Pattern::Random]) {
            for size in &columns {
                let cell = Cell { from: *from, cpus: cpus.clone(), memory, pages };
                chases.push(Chase { cell, size: *size, pattern });
            }
        }
    }
    Ok(chases)
}

/// The data caches that the system claims for a CPU, from the nearest.
fn claimed(machine: &Machine, cpu: CpuId) -> Vec<Claimed> {
    let own =
        |cache: &&nodewise_machine::Cache| cache.kind != CacheKind::Instruction && cache.cpus.contains(cpu);
    let mut caches: Vec<(u8, Claimed)> = machine
        .caches
        .iter()
        .filter(own)
        .filter_map(|cache| Some((cache.level, Claimed { name: cache.name(), size: cache.size? })))
        .collect();
    caches.order_by_key(|(level, _)| *level);
    caches.into_iter().map(|(_, claimed)| claimed).collect()
}
