//! `nodewise bandwidth`: options to ways, ways to a survey, the survey to its reader.

mod file;
mod weights;

use std::path::Path;
use std::time::Duration;

use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, CpuId, CpuSet, Machine, NodeId};
use nodewise_measure::bandwidth::{
    BandwidthBench, BandwidthReport, BandwidthYardstick, MemoryTransfer, TransferReport,
};
use nodewise_measure::cell::{Cell, PageKind};
use nodewise_measure::kernel::bandwidth::{Kernel, Variant};
use nodewise_measure::latency::best_cpu;
use nodewise_measure::survey::{Account, Survey};
use nodewise_source::Detail;
use nodewise_view::json::Saved;
use nodewise_view::svg::bandwidth_svg;
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::bandwidth::Bandwidth;
use crate::cli::measure_options::MeasureOptions;
use crate::command::figures::{self, FigureSubject};
use crate::failure::{Failure, Outcome};
use crate::measuring::{self, Field, Forms, Measurement, Share, Wanted};
use crate::{input, live};

/// The part of the memory that a node has to spare which memory of a default size takes.
const PART_OF_SPARE: u64 = 4;

/// Runs the verb.
pub fn run(args: &Bandwidth, global: &Global) -> Outcome {
    if let Some(path) = &args.from {
        return show_again(path, args, global);
    }
    if let Some(path) = &args.undo_weights {
        return weights::undo(path, args.dry_run);
    }
    if args.dry_run && args.apply_weights.is_none() {
        return Err(Failure::usage(
            "--dry-run goes with --apply-weights or --undo-weights: nothing else is set",
        ));
    }
    if let Some(folder) = &args.file {
        return file::run(args, folder.as_deref(), global);
    }
    let measurement = Measurement::begin(&args.measure)?;
    let machine = input::load("live", Detail::Full)?.machine;
    if let Some(path) = &args.apply_weights {
        weights::check(path, &machine, args.dry_run)?;
    }
    let report = measure(args, &machine, measurement)?;
    let code = show(&report, args, global)?;
    match &args.apply_weights {
        Some(path) => weights::apply(&report, &machine, path, args.dry_run),
        None => Ok(code),
    }
}

/// The document of a measurement, in place of showing it.
///
/// # Errors
/// As the verb.
pub fn document(args: &Bandwidth) -> Result<String, Failure> {
    let measurement = Measurement::begin(&args.measure)?;
    let machine = input::load("live", Detail::Full)?.machine;
    Ok(json::bandwidth(&measure(args, &machine, measurement)?))
}

/// Shows a report as the options want it.
fn show(report: &BandwidthReport, args: &Bandwidth, global: &Global) -> Outcome {
    let forms = Forms {
        picture: &|theme| bandwidth_svg(report, theme),
        json: &|| json::bandwidth(report),
        csv: &|| csv::bandwidth(report),
        text: &|style| text::bandwidth(report, style),
    };
    measuring::show(&args.measure, global, &forms)?;
    let refused = report.ways().map(|way| way.cell.refused.as_deref());
    measuring::ended(report.ways().any(|way| way.cell.figure.is_some()), &report.account, refused)
}

/// Shows what `--json` has written, as its schema says, or what another tool has printed.
fn show_again(path: &Path, args: &Bandwidth, global: &Global) -> Outcome {
    measuring::read_saved_as("--from", path, "bandwidth", |text| {
        if let Some(of_tool) = figures::read(text, FigureSubject::Bandwidth)? {
            return Ok(figures::show(&of_tool, &args.measure, global));
        }
        let saved = &Saved::from_json(text)?;
        match saved.schema() {
            schema if json::file::READ.contains(&schema) => {
                json::file::read(saved).map(|report| file::show(&report, args, global))
            }
            _ => json::bandwidth::read(saved).map(|report| show(&report, args, global)),
        }
    })?
}

fn measure(
    args: &Bandwidth,
    machine: &Machine,
    measurement: Measurement,
) -> Result<BandwidthReport, Failure> {
    let field = Field::from_options(&args.measure, machine)?;
    let seed = measuring::seed(args.measure.seed);
    let mut facts = measurement.facts(machine, &args.measure, field.nodes());
    let (size, cache) = match args.size {
        Some(size) => (checked(size)?, None),
        None => {
            let share = Share { part: PART_OF_SPARE, nodes: field.targets.len() };
            let cache = measuring::last_level(&args.measure, args.pages, machine, &field, seed, &mut facts);
            let wanted = Wanted::of_team(machine, &cache);
            (measuring::default_size(wanted, &args.measure, &field, share, &mut facts), Some(cache))
        }
    };
    let plan = Plan::from_args(args, machine, &field)?;
    let mut bench = BandwidthBench::new(size, sample_time(&args.measure));
    let ways = plan.ways();
    let conditions = live::conditions(machine, &[]);
    let pace = measuring::pace(&args.measure, field.nodes());
    let survey = measuring::conduct(&mut bench, &ways, pace, seed, &mut facts);
    let report = Reporter { ways: &ways, survey: &survey, bench: &bench, machine };
    let yardstick =
        yardstick(machine, &field, conditions.hypervisor.is_some() || machine.product.is_virtual());
    Ok(BandwidthReport {
        account: Account::from_survey(&survey, conditions, bench.timer().source().name()).sized_by(cache),
        size,
        kernel: args.kernel,
        matrix: report.of(&plan.matrix),
        kernels: report.of(&plan.kernels),
        scaling: report.of(&plan.scaling),
        everywhere: report.of(plan.everywhere.as_slice()).pop(),
        declared: field.declared(machine),
        yardstick: Some(yardstick),
    })
}

/// The peaks of the machine. Its sockets are those of real hardware, and only where all CPUs took part.
fn yardstick(machine: &Machine, field: &Field, is_virtual: bool) -> BandwidthYardstick {
    let used: CpuSet = field.sources.iter().flat_map(|(_, cpus)| cpus.iter()).collect();
    let is_whole = !is_virtual && used == machine.cpu_ids() && field.targets == machine.memory_nodes();
    let sockets = u32::try_from(machine.packages().len()).ok().filter(|sockets| *sockets > 0 && is_whole);
    BandwidthYardstick::new(machine.memory_peaks(is_virtual), sockets)
}

/// A size that was typed: arrays of whole pages for one thread at least, and no more than any node has.
fn checked(size: Bytes) -> Result<Bytes, Failure> {
    let (least, most) = (Bytes::from_kib(256), Bytes::from_gib(16 << 10));
    if (least..=most).contains(&size) {
        Ok(size)
    } else {
        Err(Failure::usage(format_args!(
            "--size: {size} is not a size to measure with: expected {least} to {most}"
        )))
    }
}

/// How long a sample takes.
const fn sample_time(options: &MeasureOptions) -> Duration {
    match (options.quick, options.thorough) {
        (true, _) => Duration::from_millis(15),
        (false, true) => Duration::from_millis(100),
        (false, false) => Duration::from_millis(40),
    }
}

/// The ways to measure, by table.
struct Plan {
    matrix: Vec<MemoryTransfer>,
    kernels: Vec<MemoryTransfer>,
    scaling: Vec<MemoryTransfer>,
    everywhere: Option<MemoryTransfer>,
}

impl Plan {
    fn from_args(args: &Bandwidth, machine: &Machine, field: &Field) -> Result<Self, Failure> {
        if Variant::all(args.kernel).is_empty() {
            return Err(Failure::cannot(format_args!(
                "this architecture has no stores past the caches, which {} needs",
                args.kernel
            )));
        }
        let pages = measuring::one_page_kind(args.pages, machine);
        let way = |cells: Vec<Cell>, kernel| MemoryTransfer { cells, kernel };
        let cells = field.cells(&[pages]);
        let local = if args.matrix { Vec::new() } else { local(field, machine) };
        let near = local.first();
        let with = |cell: &Cell, cpus: CpuSet| vec![Cell { cpus, ..cell.clone() }];
        let kernels = || Kernel::ALL.into_iter().filter(|kernel| !Variant::all(*kernel).is_empty());
        let of_kernels = |cell: &Cell| -> Vec<MemoryTransfer> {
            let one: CpuSet = best_cpu(&cell.cpus).into_iter().collect();
            let mut teams = vec![one, cell.cpus.clone()];
            teams.dedup_by_key(|cpus| cpus.len());
            let of = |kernel| teams.iter().map(move |cpus| (kernel, cpus.clone()));
            kernels().flat_map(of).map(|(kernel, cpus)| way(with(cell, cpus), kernel)).collect()
        };
        let of_threads = |cell: &Cell| -> Vec<MemoryTransfer> {
            let order = cores_first(machine, &cell.cpus);
            let teams =
                counts(order.len()).into_iter().map(|count| order.iter().copied().take(count).collect());
            teams.map(|cpus| way(with(cell, cpus), args.kernel)).collect()
        };
        let local = cells_of(&local, pages);
        Ok(Self {
            matrix: cells.into_iter().map(|cell| way(vec![cell], args.kernel)).collect(),
            kernels: near.map(|near| of_kernels(&cell_of(near, pages))).unwrap_or_default(),
            scaling: near.map(|near| of_threads(&cell_of(near, pages))).unwrap_or_default(),
            everywhere: (local.len() > 1).then(|| way(local, args.kernel)),
        })
    }

    /// All ways, each once.
    fn ways(&self) -> Vec<MemoryTransfer> {
        let mut ways: Vec<MemoryTransfer> = Vec::new();
        for way in self.matrix.iter().chain(&self.kernels).chain(&self.scaling).chain(&self.everywhere) {
            if !ways.contains(way) {
                ways.push(way.clone());
            }
        }
        ways
    }
}

/// Nodes with CPUs, and the memory that is nearest to each: each memory once.
type Local = Vec<(NodeId, CpuSet, NodeId)>;

fn local(field: &Field, machine: &Machine) -> Local {
    let mut local: Local = Vec::new();
    for (from, cpus) in field.sources.iter().filter(|(_, cpus)| !cpus.is_empty()) {
        let nearest = field.nearest(machine, *from);
        if let Some(memory) = nearest.filter(|memory| local.iter().all(|(_, _, taken)| taken != memory)) {
            local.push((*from, cpus.clone(), memory));
        }
    }
    local
}

fn cell_of((from, cpus, memory): &(NodeId, CpuSet, NodeId), pages: PageKind) -> Cell {
    Cell { from: *from, cpus: cpus.clone(), memory: *memory, pages }
}

fn cells_of(local: &Local, pages: PageKind) -> Vec<Cell> {
    local.iter().map(|of| cell_of(of, pages)).collect()
}

/// CPUs in the order in which threads are added: one of each core before the second of any.
fn cores_first(machine: &Machine, cpus: &CpuSet) -> Vec<CpuId> {
    let place = |cpu: &CpuId| {
        let siblings = machine.cpus.get(cpu).map(|cpu| cpu.siblings.intersection(cpus));
        siblings.and_then(|siblings| siblings.iter().position(|of| of == *cpu)).unwrap_or(0)
    };
    let mut order: Vec<CpuId> = cpus.iter().collect();
    order.order_by_key(|cpu| (place(cpu), *cpu));
    order
}

/// How many threads: twice as many each time, and all. Nothing to compare with fewer than two.
fn counts(all: usize) -> Vec<usize> {
    if all < 2 {
        return Vec::new();
    }
    let mut counts: Vec<usize> = std::iter::successors(Some(1), |count: &usize| count.checked_mul(2))
        .take_while(|count| *count < all)
        .collect();
    counts.push(all);
    counts
}

/// Finds the outcomes of ways.
struct Reporter<'a> {
    ways: &'a [MemoryTransfer],
    survey: &'a Survey,
    bench: &'a BandwidthBench,
    machine: &'a Machine,
}

impl Reporter<'_> {
    fn of(&self, ways: &[MemoryTransfer]) -> Vec<TransferReport> {
        let report = |way: &MemoryTransfer| {
            let at = self.ways.iter().position(|known| known == way)?;
            let variant = self.bench.variant(way).map(|variant| variant.to_string());
            let explain = |refusal: &_| measuring::explain(refusal, self.machine);
            TransferReport::new(way, variant, &self.survey.outcomes[at], &explain)
        };
        ways.iter().filter_map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    #[test]
    fn threads_double_up_to_all() {
        for (all, expected) in
            [(0, vec![]), (1, vec![]), (2, vec![1, 2]), (6, vec![1, 2, 4, 6]), (8, vec![1, 2, 4, 8])]
        {
            assert_eq!(counts(all), expected);
        }
    }

    #[test]
    fn every_core_has_a_thread_before_any_has_two() {
        let machine = spec::machine("(4c2t 8G)").unwrap();
        let order = cores_first(&machine, &machine.cpu_ids());
        let cores: Vec<CpuSet> = order.iter().take(4).map(|cpu| machine.cpus[cpu].siblings.clone()).collect();
        assert_eq!(order.len(), 8);
        for (at, core) in cores.iter().enumerate() {
            assert!(cores[at + 1..].iter().all(|other| other != core), "{order:?}");
        }
    }

    #[test]
    fn every_node_with_cpus_has_a_memory_of_its_own() {
        let check = |text: &str, expected: &[(u32, u32)]| {
            let machine = spec::machine(text).unwrap();
            let sources =
                machine.nodes_with_cpus().iter().map(|node| (node, machine.cpus_of(node))).collect();
            let field = Field { sources, targets: machine.memory_nodes() };
            let local = local(&field, &machine);
            let found: Vec<(u32, u32)> =
                local.iter().map(|(from, _, memory)| (from.number(), memory.number())).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("2x(4c 8G)", &[(0, 0), (1, 1)]);
        check("(4c 8G) (8G)", &[(0, 0)]);
        check("(4c 8G) (4c)", &[(0, 0)]);
    }
}
