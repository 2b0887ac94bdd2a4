//! Parts shared by the verbs that measure memory: options to cells and a pace, a survey with its line of
//! progress, and where the results go.

pub mod line;

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nodewise_machine::expr::{Devices, ExprError, Scope, SetExpr};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::placement;
use nodewise_machine::printable::quote;
use nodewise_machine::{AccessClass, Bytes, CpuId, CpuSet, Machine, NodeId, NodeSet};
use nodewise_measure::cell::{Cell, Facts as _, PageKind, Refusal};
use nodewise_measure::latency::cache::{self, LastLevel};
use nodewise_measure::stop::Stop;
use nodewise_measure::survey::{Account, Bench, Declared, Pace, Survey, Surveyor};
use nodewise_measure::workload::Size;
use nodewise_model::cost::Costs;
use nodewise_syscall::clock::Monotonic;
use nodewise_syscall::inherited;
use nodewise_view::Style;
use nodewise_view::json::{self, Saved};
use nodewise_view::svg::Theme;

use crate::cli::Global;
use crate::cli::measure_options::{Huge, MeasureOptions, PageOptions};
use crate::facts::LiveFacts;
use crate::failure::{Failure, INTERNAL, Outcome};
use crate::output::Pictures;
use crate::{input, live, output};
use line::ProgressLine;

/// The least memory that is measured with by default.
const LEAST: Bytes = Bytes::from_mib(4);
/// The most with `--quick`: making more takes too much of its time.
const MOST_QUICK: Bytes = Bytes::from_mib(256);

/// The largest size of the sweep that looks for the last-level cache: four times most of them.
const MOST_SWEPT: Bytes = Bytes::from_mib(512);

/// Time that `--quick` keeps for reading the machine before, and giving memory back and printing after.
const KEPT: Duration = Duration::from_secs(1);

/// The share of the time that is left which the search for the last-level cache may take.
const FOR_LAST_LEVEL: f64 = 0.2;

/// The share of a limit that samples are planned for: finding caches, filling memory and looking at pages take time, too.
const QUICK_SHARE: f64 = 0.6;

/// The largest result that is read back: one of a thousand nodes is smaller.
const MOST_READ: u64 = 1 << 30;

/// A measurement from its first moment: its clock, its line of progress, and what ends it early.
pub struct Measurement {
    clock: Arc<Monotonic>,
    interrupt: Arc<AtomicBool>,
    line: Rc<ProgressLine>,
}

impl Measurement {
    /// Begins it: from now on Ctrl-C ends it with what was measured so far.
    ///
    /// # Errors
    /// A picture that could not be written at the end, a signal that cannot be listened for.
    pub fn begin(options: &MeasureOptions) -> Result<Self, Failure> {
        pictures(options).check()?;
        let line = Rc::new(ProgressLine::new());
        line.enter("reading this machine");
        Ok(Self { clock: Arc::new(Monotonic::start()), interrupt: interrupt()?, line })
    }

    /// Returns the facts for measuring on this machine, on this many nodes.
    pub fn facts(self, machine: &Machine, options: &MeasureOptions, nodes: usize) -> LiveFacts {
        let mut stop = Stop::on(self.interrupt);
        if options.quick && options.rounds.is_none() {
            stop = stop.at(
                self.clock,
                options.limit.unwrap_or_else(|| Pace::quick_limit(nodes)).saturating_sub(KEPT),
            );
        }
        LiveFacts::new(machine, stop, self.line)
    }
}

/// Where to measure.
#[derive(Debug)]
pub struct Field {
    /// Nodes whose CPUs reach for memory, with the CPUs that may be used; none where none may.
    pub sources: Vec<(NodeId, CpuSet)>,
    /// Nodes whose memory is reached for, also those that may not be used: their cells say so.
    pub targets: NodeSet,
}

impl Field {
    /// Selects the part of a machine that the options leave.
    ///
    /// # Errors
    /// Options that name what is missing, and a machine where nothing is left.
    pub fn from_options(options: &MeasureOptions, machine: &Machine) -> Result<Self, Failure> {
        let nodes = options.nodes.as_deref().map(|text| nodes(text, machine)).transpose()?;
        let cpus = options.cpus.as_deref().map(|text| cpus(text, machine)).transpose()?;
        let wanted = |node: &NodeId| nodes.as_ref().is_none_or(|nodes| nodes.contains(*node));
        let targets: NodeSet = machine.memory_nodes().iter().filter(wanted).collect();
        let scope = placement::Scope::from_machine(machine);
        let mut sources: Vec<(NodeId, CpuSet)> = Vec::new();
        for node in machine.nodes_with_cpus().iter().filter(wanted) {
            let own = machine.cpus_of(node).intersection(&machine.online_cpus());
            let allowed = scope.cpus_of(node);
            match &cpus {
                // CPUs that were named choose the rows.
                Some(named) if own.intersection(named).is_empty() => {}
                Some(named) => sources.push((node, allowed.intersection(named))),
                None => sources.push((node, allowed)),
            }
        }
        if targets.is_empty() {
            return Err(Failure::cannot("no node with memory is left to measure"));
        }
        if sources.is_empty() {
            return Err(Failure::cannot("no node with CPUs is left to measure from"));
        }
        Ok(Self { sources, targets })
    }

    /// A cell for each pair of nodes and each kind of pages.
    pub fn cells(&self, kinds: &[PageKind]) -> Vec<Cell> {
        let mut cells = Vec::new();
        for pages in kinds {
            for (from, cpus) in &self.sources {
                for memory in self.targets.iter() {
                    cells.push(Cell { from: *from, cpus: cpus.clone(), memory, pages: *pages });
                }
            }
        }
        cells
    }

    /// The firmware's facts about the pairs that are measured.
    pub fn declared(&self, machine: &Machine) -> Vec<Declared> {
        let mut declared = Vec::new();
        for (from, _) in &self.sources {
            for memory in self.targets.iter() {
                let access = machine
                    .access(memory, AccessClass::Cpu)
                    .filter(|access| access.initiators.contains(*from));
                let rate = access.as_ref().and_then(|access| access.read_bandwidth_mb_per_s);
                declared.push(Declared {
                    from: *from,
                    memory,
                    distance: machine.distance(*from, memory),
                    read_latency_ns: access.as_ref().and_then(|access| access.read_latency_ns),
                    read_gb_per_s: rate.map(|rate| f64::from(rate) / 1e3),
                });
            }
        }
        declared
    }

    /// The node to measure from where one is enough, with its CPUs: the first that has any to use.
    pub fn source(&self) -> Option<&(NodeId, CpuSet)> {
        self.sources.iter().find(|(_, cpus)| !cpus.is_empty())
    }

    /// The memory of a node itself, where it takes part, or else the nearest that does; any where no distance
    /// is known.
    pub fn nearest(&self, machine: &Machine, from: NodeId) -> Option<NodeId> {
        let nearest = || machine.closest(from).into_iter().find(|node| self.targets.contains(*node));
        let own = Some(from).filter(|node| self.targets.contains(*node));
        own.or_else(nearest).or_else(|| self.targets.first())
    }

    /// How many nodes take part.
    pub fn nodes(&self) -> usize {
        let sources: NodeSet = self.sources.iter().map(|(node, _)| *node).collect();
        sources.union(&self.targets).len()
    }
}

/// Refuses a machine that is not the running one.
///
/// # Errors
/// `--machine`, with what is measured, and what can be had instead.
pub fn must_be_live(global: &Global, what: &str, instead: &str) -> Result<(), Failure> {
    if input::is_live(&global.machine) {
        return Ok(());
    }
    Err(Failure::usage(format_args!(
        "{what} is measured on this machine: --machine has no meaning with it{instead}"
    )))
}

/// How much of what is spare a measurement takes.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// One part in this many of a node's.
    pub part: u64,
    /// How many nodes have their part at the same time.
    pub nodes: usize,
}

/// The wanted sizes of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    size: Bytes,
    /// The size with `--quick`.
    quick: Bytes,
}

impl From<Bytes> for Wanted {
    fn from(size: Bytes) -> Self {
        Self { size, quick: size.min(MOST_QUICK) }
    }
}

impl Wanted {
    /// The sizes for a team. With `--quick`, too, it is twice what the team holds in caches: with less, figures are
    /// those of the caches (279 GB/s with 256 MiB beside 300 MiB of cache, 151 with 600 MiB, 139 with 2 GiB).
    pub fn of_team(machine: &Machine, cache: &LastLevel) -> Self {
        let Self { size, quick } = Size::of_team(machine, cache.found).bytes.into();
        let held = cache.together.map_or(quick, |held| held.times(2));
        Self { size, quick: quick.max(held).min(size) }
    }
}

/// The wanted size, as far as the nodes have it to spare: a cell should not be refused for a size that
/// no one asked for.
pub fn default_size(
    wanted: Wanted,
    options: &MeasureOptions,
    field: &Field,
    share: Share,
    facts: &mut LiveFacts,
) -> Bytes {
    let wanted = if options.quick { wanted.quick } else { wanted.size };
    let spare = field.targets.iter().filter_map(|node| facts.available(node)).min();
    let limit = facts.below_limit().map(|limit| Bytes::new(limit.get() / share.nodes.max(1) as u64));
    let most = spare.into_iter().chain(limit).min();
    let most = most.map_or(wanted, |most| Bytes::from_mib((most.get() / share.part) >> 20));
    wanted.min(most).max(LEAST)
}

/// The last-level cache beside the CPUs that measure, by a short sweep of the first of them in the memory
/// that is nearest to it. It takes a quarter of a second with `--quick`, and half of one without; on a busy
/// machine it is given up after a fifth of the time that `--quick` leaves.
pub fn last_level(
    options: &MeasureOptions,
    pages: PageOptions,
    machine: &Machine,
    field: &Field,
    seed: u64,
    facts: &mut LiveFacts,
) -> LastLevel {
    let most = default_size(MOST_SWEPT.into(), options, field, Share { part: 4, nodes: 1 }, facts);
    let cell = field.source().and_then(|(from, cpus)| {
        let memory = field.nearest(machine, *from)?;
        Some(Cell { from: *from, cpus: cpus.clone(), memory, pages: one_page_kind(pages, machine) })
    });
    let search = |facts: &mut LiveFacts| Some(cache::last_level(&cell?, most, seed, facts));
    let found = facts.for_part(FOR_LAST_LEVEL, search);
    let is_cut_short = found == Some(Err(Refusal::Stopped));
    // An obstacle to this is one to that cell, which then says so.
    let found = found.and_then(Result::ok).flatten();
    let together = Size::held_by_team(machine, found);
    LastLevel { claimed: Size::claimed(machine), found, together, is_cut_short }
}

/// The kinds of pages to measure: huge ones first, small ones always.
pub fn page_kinds(options: PageOptions) -> Vec<PageKind> {
    match options.huge {
        None => vec![PageKind::TransparentHuge, PageKind::Small],
        Some(Huge::Pages(kind)) => vec![kind, PageKind::Small],
        Some(Huge::Never) => vec![PageKind::Small],
    }
}

/// The one kind of pages to measure with: the one that was asked for; else huge ones where the system has
/// any.
pub fn one_page_kind(options: PageOptions, machine: &Machine) -> PageKind {
    let kinds = page_kinds(options);
    let none = matches!(machine.settings.transparent_hugepage.as_deref(), None | Some("never"));
    let first = if options.huge.is_none() && none { kinds.last() } else { kinds.first() };
    first.copied().unwrap_or(PageKind::Small)
}

/// How much is measured.
pub fn pace(options: &MeasureOptions, nodes: usize) -> Pace {
    let pace = match (options.quick, options.thorough) {
        (true, _) => Pace::quick(nodes),
        (false, true) => Pace::thorough(),
        (false, false) => Pace::usual(nodes),
    };
    let budget = match (pace.budget, options.limit) {
        (Some(budget), Some(limit)) => Some(budget.min(limit.mul_f64(QUICK_SHARE))),
        (budget, _) => budget,
    };
    Pace { rounds: options.rounds.unwrap_or(pace.rounds), budget, ..pace }
}

/// The seed that was named, or one from the clock.
pub fn seed(named: Option<u64>) -> u64 {
    named.unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_secs() ^ u64::from(since.subsec_nanos())
    })
}

/// A refusal as a sentence; the cause of a refused call is looked up.
pub fn explain(refusal: &Refusal, machine: &Machine) -> String {
    match refusal {
        Refusal::Call(error) => live::explain(error, machine).to_string(),
        other => other.to_string(),
    }
}

/// Surveys cells, with a line of progress on a terminal. Ctrl-C ends it early and well.
pub fn conduct<B: Bench>(
    bench: &mut B,
    cells: &[B::Cell],
    pace: Pace,
    seed: u64,
    facts: &mut LiveFacts,
) -> Survey {
    let line = facts.line();
    Surveyor { facts, clock: &Monotonic::start(), observer: &mut |progress| line.draw(progress) }
        .conduct(bench, cells, pace, seed)
}

/// Returns a flag that becomes true when the user, or the system, wants an end; listened for from the first
/// call on.
///
/// # Errors
/// A signal that cannot be listened for.
pub fn interrupt() -> Result<Arc<AtomicBool>, Failure> {
    static INTERRUPT: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(interrupt) = INTERRUPT.get() {
        return Ok(Arc::clone(interrupt));
    }
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in ending_signals() {
        signal_hook::flag::register(signal, Arc::clone(&interrupt))
            .map_err(|error| Failure::new(INTERNAL, format_args!("cannot listen for Ctrl-C: {error}")))?;
    }
    Ok(Arc::clone(INTERRUPT.get_or_init(|| interrupt)))
}

/// The signals that end a verb early.
pub fn ending_signals() -> impl Iterator<Item = i32> {
    // What nohup has started goes on when the terminal closes.
    let hangup = Some(signal_hook::consts::SIGHUP).filter(|signal| !inherited::is_ignored(*signal));
    [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM].into_iter().chain(hangup)
}

/// How often a wait looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until a moment, or until the user wants an end, or something else has one.
pub fn wait(until: Instant, interrupt: &AtomicBool, mut is_over: impl FnMut() -> bool) {
    while !interrupt.load(Ordering::Relaxed) && !is_over() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(LOOK));
    }
}

/// A result in every form that it is shown in; only those that are wanted are made.
pub struct Forms<'a> {
    pub picture: &'a dyn Fn(Theme) -> String,
    pub json: &'a dyn Fn() -> String,
    pub csv: &'a dyn Fn() -> String,
    pub text: &'a dyn Fn(&Style) -> String,
}

/// The pictures that the options name.
fn pictures(options: &MeasureOptions) -> Pictures<'_> {
    Pictures::new(&options.svg, &options.png)
}

/// Shows a result as the options want it.
///
/// # Errors
/// A picture that cannot be written: the figures are printed anyway; an output that cannot be.
pub fn show(options: &MeasureOptions, global: &Global, forms: &Forms) -> Result<(), Failure> {
    let drawn = pictures(options).draw(forms.picture);
    if options.json {
        output::print_json(&(forms.json)())?;
    } else if options.csv {
        output::print(&(forms.csv)())?;
    } else {
        output::print(&(forms.text)(&output::style(global.color)))?;
    }
    drawn
}

/// How a measurement ends, which has these reasons for what has no figure.
///
/// # Errors
/// A measurement without any figure, unless the user ended it: this machine cannot do it.
pub fn ended<'r>(
    measured: bool,
    account: &Account,
    refused: impl IntoIterator<Item = Option<&'r str>>,
) -> Outcome {
    if measured || account.interrupted {
        return Ok(0);
    }
    let reasons: BTreeSet<&str> = refused.into_iter().flatten().collect_set();
    let why = match (reasons.first(), reasons.len()) {
        (Some(why), 1) => (*why).to_owned(),
        (Some(why), all) => format!("{why} (the first of {all} reasons)"),
        (None, _) if account.left_out.is_some() => {
            "the time was over before the first sample (without --quick there is no limit)".to_owned()
        }
        (None, _) => "no sample was taken".to_owned(),
    };
    Err(Failure::cannot(format_args!("nothing was measured: {why}")))
}

/// Reads a file that `--from` names, as [`read_saved`] does.
///
/// # Errors
/// As there.
pub fn read_result(path: &Path) -> Result<String, Failure> {
    read_saved("--from", path)
}

/// The report in a file that `--from` names and a verb has written with `--json`.
///
/// # Errors
/// A file that cannot be read, and one that `read` does not know.
pub fn saved_report<R>(
    path: &Path,
    verb: &str,
    read: impl FnOnce(&Saved<'_>) -> Result<R, String>,
) -> Result<R, Failure> {
    read_saved_as("--from", path, verb, |text| Saved::from_json(text).and_then(|saved| read(&saved)))
}

/// Reads what `read` makes of a file that a verb has written with `--json`; `option` named it.
///
/// # Errors
/// As [`saved_report`].
pub fn read_saved_as<R>(
    option: &str,
    path: &Path,
    verb: &str,
    read: impl FnOnce(&str) -> Result<R, String>,
) -> Result<R, Failure> {
    read(&read_saved(option, path)?).map_err(|error| {
        let path = quote(&path.display().to_string());
        Failure::usage(format_args!("{option}: {path} is not a result of nodewise {verb}: {error}"))
    })
}

/// Adds the figures of saved results of `nodewise latency` and `nodewise bandwidth` to costs.
///
/// # Errors
/// A file that cannot be read, or is something else.
pub fn add_saved_costs(
    costs: &mut Costs,
    latency: Option<&Path>,
    bandwidth: Option<&Path>,
) -> Result<(), Failure> {
    type Reader = fn(&str, &mut Costs) -> Result<(), String>;
    let results: [(_, _, Reader); 2] = [
        ("--latency", latency, json::costs::add_latencies),
        ("--bandwidth", bandwidth, json::costs::add_bandwidths),
    ];
    for (option, path, add) in results {
        let Some(path) = path else { continue };
        let verb = option.trim_start_matches('-');
        read_saved_as(option, path, verb, |text| add(text, costs))?;
    }
    Ok(())
}

/// Reads a file that was written before and is text throughout; `option` named it.
///
/// # Errors
/// A file that cannot be read, is too large, or is not text.
pub fn read_saved(option: &str, path: &Path) -> Result<String, Failure> {
    input::read_text(path, MOST_READ).map_err(|why| {
        let path = quote(&path.display().to_string());
        Failure::usage(format_args!("{option}: cannot read {path}: {why}"))
    })
}

fn nodes(text: &str, machine: &Machine) -> Result<NodeSet, Failure> {
    let existing = machine.node_ids();
    let scope = Scope {
        existing: &existing,
        allowed: &existing,
        limit: "",
        own: &existing,
        same: None,
        device: None,
    };
    SetExpr::parse::<NodeId>(text, Devices::Refused)
        .and_then(|expr| expr.resolve(&scope))
        .map_err(|error| Failure::usage(format_args!("--nodes: {error}")))
}

fn cpus(text: &str, machine: &Machine) -> Result<CpuSet, Failure> {
    let online = machine.online_cpus();
    let own = placement::Scope::from_machine(machine).cpus;
    let scope = Scope {
        existing: &online,
        allowed: &own,
        limit: "the CPUs of this process",
        own: &own,
        same: None,
        device: None,
    };
    SetExpr::parse::<CpuId>(text, Devices::Refused).and_then(|expr| expr.resolve(&scope)).map_err(|error| {
        match error {
            ExprError::DoesNotExist { number, .. } if machine.cpu_ids().contains(CpuId::new(number)) => {
                Failure::usage(format_args!("--cpus: CPU {number} is offline: online are {online}"))
            }
            other => Failure::usage(format_args!("--cpus: {other}")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_measure::survey::LeftOut;

    #[test]
    fn a_measurement_without_figures_ends_with_the_reason() {
        let check = |account: &Account, refused: &[Option<&str>], expected: &str| {
            let failure = ended(false, account, refused.iter().copied()).unwrap_err();
            assert_eq!((failure.code, failure.message.as_str()), (crate::failure::CANNOT, expected));
            assert_eq!(ended(true, account, refused.iter().copied()).unwrap(), 0);
        };
        let whole = Account::default();
        check(&whole, &[None, Some("no room"), Some("no room")], "nothing was measured: no room");
        let two = "nothing was measured: no CPU (the first of 2 reasons)";
        check(&whole, &[Some("no room"), Some("no CPU")], two);
        check(&whole, &[], "nothing was measured: no sample was taken");
        let left_out = LeftOut { rounds: 0, of_rounds: 6, cells: 1, of_cells: 1, disturbed: 0 };
        let late = Account { left_out: Some(left_out), ..Account::default() };
        let over = "nothing was measured: the time was over before the first sample (without --quick there is no \
                    limit)";
        check(&late, &[None], over);
        let interrupted = Account { interrupted: true, ..Account::default() };
        assert_eq!(ended(false, &interrupted, []).unwrap(), 0);
    }
}
