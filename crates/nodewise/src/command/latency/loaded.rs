//! `nodewise latency --loaded`: latency against the bandwidth that other CPUs use meanwhile.

use std::time::Duration;

use nodewise_machine::order::Order as _;
use nodewise_machine::placement::Scope;
use nodewise_machine::{Bytes, CpuId, CpuSet, Machine, NodeId};
use nodewise_measure::cell::{Cell, PageKind};
use nodewise_measure::kernel::bandwidth::{Kernel, Variant};
use nodewise_measure::latency::loaded::report::{cell, p90_ns};
use nodewise_measure::latency::loaded::{
    Curve, FEW_PAUSES, Loaded, LoadedBench, LoadedReport, PAUSES, Path, Point, Traffic,
};
use nodewise_measure::latency::{Chase, Pattern, best_cpu};
use nodewise_measure::survey::{Account, Outcome as Measured};
use nodewise_measure::workload::Size;
use nodewise_source::Detail;
use nodewise_view::svg::loaded_svg;
use nodewise_view::{csv, json, text};

use super::checked;
use super::sweep::{local, remote, source};
use crate::cli::Global;
use crate::cli::latency::Latency;
use crate::cli::measure_options::MeasureOptions;
use crate::failure::{Failure, Outcome};
use crate::measuring::{self, Field, Forms, Measurement, Share, Wanted};
use crate::{input, live};

/// The effect of the traffic by default: reads alone, more and more writes, and writes past the caches.
const MIX: [Kernel; 4] = [Kernel::Read, Kernel::Mix2To1, Kernel::Mix1To1, Kernel::CopyNt];
/// The part of the memory that a node has to spare which the buffers of a default size take.
const SHARE: Share = Share { part: 8, nodes: 2 };

/// Runs the verb.
pub(super) fn run(args: &Latency, global: &Global) -> Outcome {
    show(&measured(args)?, args, global)
}

/// The document of a measurement, in place of showing it.
pub(super) fn document(args: &Latency) -> Result<String, Failure> {
    Ok(json::loaded(&measured(args)?))
}

fn measured(args: &Latency) -> Result<LoadedReport, Failure> {
    let measurement = Measurement::begin(&args.measure)?;
    let machine = input::load("live", Detail::Full)?.machine;
    let field = Field::from_options(&args.measure, &machine)?;
    measure(args, &machine, &field, measurement)
}

/// Shows a report as the options want it.
pub(super) fn show(report: &LoadedReport, args: &Latency, global: &Global) -> Outcome {
    let forms = Forms {
        picture: &|theme| loaded_svg(report, theme),
        json: &|| json::loaded(report),
        csv: &|| csv::loaded(report),
        text: &|style| text::loaded(report, style),
    };
    measuring::show(&args.measure, global, &forms)?;
    let refused = report.cells().map(|cell| cell.refused.as_deref());
    measuring::ended(report.cells().any(|cell| cell.figure.is_some()), &report.account, refused)
}

fn measure(
    args: &Latency,
    machine: &Machine,
    field: &Field,
    measurement: Measurement,
) -> Result<LoadedReport, Failure> {
    let routes = routes(args, machine, field)?;
    let kernels = kernels(&args.mix)?;
    let pauses = pauses(args);
    let seed = measuring::seed(args.measure.seed);
    let mut facts = measurement.facts(machine, &args.measure, field.nodes());
    let (size, traffic_size, cache) = match args.size.map(checked).transpose()? {
        Some(size) => (size, size, None),
        None => {
            let cache = measuring::last_level(&args.measure, args.pages, machine, field, seed, &mut facts);
            let (chase, team) = (Size::of_chase(machine, cache.found), Wanted::of_team(machine, &cache));
            let mut default =
                |wanted: Wanted| measuring::default_size(wanted, &args.measure, field, SHARE, &mut facts);
            (default(chase.bytes.into()), default(team), Some(cache))
        }
    };
    let pages = measuring::one_page_kind(args.pages, machine);
    let plan = Plan { routes: &routes, kernels: &kernels, pauses: &pauses, size, pages };
    let points = plan.points();
    let mut bench = LoadedBench::new(seed, traffic_size, sample_time(&args.measure));
    let conditions = live::conditions(machine, &[]);
    let pace = measuring::pace(&args.measure, field.nodes());
    let survey = measuring::conduct(&mut bench, &points, pace, seed, &mut facts);
    let mut measured = points.iter().zip(&survey.outcomes);
    let paths = routes.iter().map(|route| plan.path(route, &bench, &mut measured, machine)).collect();
    let account = Account::from_survey(&survey, conditions, bench.timer().source().name()).sized_by(cache);
    Ok(LoadedReport { account, pages, size, traffic_size, paths })
}

/// How long a sample takes.
const fn sample_time(options: &MeasureOptions) -> Duration {
    match (options.quick, options.thorough) {
        (true, _) => Duration::from_millis(10),
        (false, true) => Duration::from_millis(50),
        (false, false) => Duration::from_millis(20),
    }
}

/// From the longest to none.
fn pauses(args: &Latency) -> Vec<u32> {
    let mut pauses = match (&args.pauses[..], args.measure.quick) {
        ([], true) => FEW_PAUSES.to_vec(),
        ([], false) => PAUSES.to_vec(),
        (named, _) => named.to_vec(),
    };
    pauses.order_by(|one, other| other.cmp(one));
    pauses.dedup();
    pauses
}

/// The kernels that were named, each once, or those of [`MIX`] that this architecture has.
fn kernels(named: &[Kernel]) -> Result<Vec<Kernel>, Failure> {
    let has = |kernel: &Kernel| !Variant::all(*kernel).is_empty();
    if let Some(none) = named.iter().find(|kernel| !has(kernel)) {
        return Err(Failure::cannot(format_args!(
            "this architecture has no stores past the caches, which {none} needs"
        )));
    }
    let mut kernels: Vec<Kernel> = Vec::new();
    for kernel in if named.is_empty() { &MIX[..] } else { named }.iter().filter(|kernel| has(kernel)) {
        if !kernels.contains(kernel) {
            kernels.push(*kernel);
        }
    }
    Ok(kernels)
}

/// Who chases where, and who moves data meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Route {
    chaser: (NodeId, CpuId, NodeId),
    traffic: (NodeId, CpuSet, NodeId),
    shares_core: bool,
}

/// The routes that were asked for; else the first node's own memory, and the farthest where there is
/// another.
fn routes(args: &Latency, machine: &Machine, field: &Field) -> Result<Vec<Route>, Failure> {
    let chases: Vec<(NodeId, NodeId)> = match args.chase {
        Some((from, memory)) => vec![(from, has_memory("--chase", memory, machine)?)],
        None => {
            let (from, _) = source(field)?;
            let near = local(field, machine, *from)?;
            // Cross-traffic is compared with the chase that is near its memory.
            let far = remote(field, machine, *from, near).filter(|_| args.traffic.is_none());
            [Some(near), far].into_iter().flatten().map(|memory| (*from, memory)).collect()
        }
    };
    chases.into_iter().map(|chase| route(chase, args.traffic, machine, field)).collect()
}

fn has_memory(option: &str, node: NodeId, machine: &Machine) -> Result<NodeId, Failure> {
    let nodes = machine.memory_nodes();
    nodes.contains(node).then_some(node).ok_or_else(|| {
        Failure::usage(format_args!("{option}: node {node} has no memory: expected one of nodes {nodes}"))
    })
}

/// The CPUs of a node that may be used.
fn cpus(option: &str, node: NodeId, machine: &Machine, field: &Field) -> Result<CpuSet, Failure> {
    let known = field.sources.iter().find(|(from, _)| *from == node).map(|(_, cpus)| cpus.clone());
    let nodes = machine.nodes_with_cpus();
    let allowed = || Scope::from_machine(machine).cpus_of(node);
    Some(known.unwrap_or_else(allowed)).filter(|cpus| !cpus.is_empty()).ok_or_else(|| {
        if nodes.contains(node) {
            return Failure::cannot(format_args!("no CPU of node {node} may be used by this process"));
        }
        Failure::usage(format_args!("{option}: node {node} has no CPUs: expected one of nodes {nodes}"))
    })
}

fn route(
    (from, memory): (NodeId, NodeId),
    traffic: Option<(NodeId, NodeId)>,
    machine: &Machine,
    field: &Field,
) -> Result<Route, Failure> {
    let own = cpus("--chase", from, machine, field)?;
    let cpu = best_cpu(&own).ok_or_else(|| Failure::cannot("there is no CPU to chase with"))?;
    let mut core = machine.cpus.get(&cpu).map_or_else(CpuSet::new, |cpu| cpu.siblings.clone());
    core.insert(cpu);
    let chaser = (from, cpu, memory);
    if let Some((mover, target)) = traffic {
        let target = has_memory("--traffic", target, machine)?;
        let all = cpus("--traffic", mover, machine, field)?;
        let Some((movers, shares_core)) = others(&all, cpu, &core) else { return Err(alone(cpu, mover)) };
        return Ok(Route { chaser, traffic: (mover, movers, target), shares_core });
    }
    // Of the node itself, or of the nearest that has CPUs to spare; better another core than a nearer one.
    let mut near: Vec<&(NodeId, CpuSet)> = field.sources.iter().collect();
    near.order_by_key(|(node, _)| (*node != from, machine.distance(from, *node).unwrap_or(u32::MAX)));
    let of = |(node, all): &(NodeId, CpuSet)| {
        others(all, cpu, &core).map(|(movers, shares)| (*node, movers, shares))
    };
    let found: Vec<(NodeId, CpuSet, bool)> = near.into_iter().filter_map(of).collect();
    let best = found.iter().find(|(_, _, shares)| !shares).or_else(|| found.first()).cloned();
    let (mover, movers, shares_core) = best.ok_or_else(|| alone(cpu, from))?;
    Ok(Route { chaser, traffic: (mover, movers, memory), shares_core })
}

/// CPUs beside the one that chases: those of other cores, or else its siblings, and whether they are that.
fn others(all: &CpuSet, cpu: CpuId, core: &CpuSet) -> Option<(CpuSet, bool)> {
    let elsewhere = all.difference(core);
    if !elsewhere.is_empty() {
        return Some((elsewhere, false));
    }
    let siblings: CpuSet = all.iter().filter(|other| *other != cpu).collect();
    (!siblings.is_empty()).then_some((siblings, true))
}

fn alone(cpu: CpuId, node: NodeId) -> Failure {
    Failure::cannot(format_args!(
        "latency under load needs two CPUs, one that chases and one that moves data: beside CPU {cpu} none of \
         node {node} may be used"
    ))
}

/// The measured quantity.
struct Plan<'a> {
    routes: &'a [Route],
    kernels: &'a [Kernel],
    pauses: &'a [u32],
    size: Bytes,
    pages: PageKind,
}

impl Plan<'_> {
    /// All points: of each route the idle one, then curve by curve.
    fn points(&self) -> Vec<Loaded> {
        let mut points = Vec::new();
        for route in self.routes {
            let (from, cpu, memory) = route.chaser;
            let cell = Cell { from, cpus: CpuSet::from([cpu.number()]), memory, pages: self.pages };
            let chase = Chase { cell, size: self.size, pattern: Pattern::Random };
            points.push(Loaded { chase: chase.clone(), traffic: None });
            for kernel in self.kernels {
                for pause_ns in self.pauses {
                    let (from, cpus, memory) = route.traffic.clone();
                    let cell = Cell { from, cpus, memory, pages: self.pages };
                    let traffic = Some(Traffic { cell, kernel: *kernel, pause_ns: *pause_ns });
                    points.push(Loaded { chase: chase.clone(), traffic });
                }
            }
        }
        points
    }

    /// The path of a route, from the outcomes of the next points.
    fn path<'p>(
        &self,
        route: &Route,
        bench: &LoadedBench,
        measured: &mut impl Iterator<Item = (&'p Loaded, &'p Measured)>,
        machine: &Machine,
    ) -> Path {
        let explain = |refusal: &_| measuring::explain(refusal, machine);
        let (idle, outcome) = measured.next().expect("every route has an idle point");
        let mut curve = |kernel: &Kernel| {
            let points: Vec<(&Loaded, &Measured)> = measured.by_ref().take(self.pauses.len()).collect();
            let traffic = points.first().and_then(|(loaded, _)| loaded.traffic.as_ref());
            let variant =
                traffic.and_then(|traffic| bench.variant(traffic)).map(|variant| variant.to_string());
            let points =
                points.into_iter().filter_map(|(point, outcome)| Point::new(point, outcome, &explain));
            Curve { kernel: *kernel, variant, points: points.collect() }
        };
        let curves = self.kernels.iter().map(&mut curve).collect();
        let (traffic_from, traffic_cpus, traffic_memory) = route.traffic.clone();
        Path {
            idle: cell(idle, outcome, &explain),
            idle_p90_ns: p90_ns(outcome),
            traffic_from,
            traffic_cpus,
            traffic_memory,
            shares_core: route.shares_core,
            curves,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use nodewise_machine::spec;

    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        latency: Latency,
    }

    fn check(text: &str, words: &[&str], expected: &[&str]) {
        let machine = spec::machine(text).unwrap();
        let all = [&["latency", "--loaded"], words].concat();
        let args = Words::try_parse_from(all).unwrap_or_else(|error| panic!("{error}")).latency;
        let field = Field::from_options(&args.measure, &machine).unwrap();
        let routes = routes(&args, &machine, &field);
        let words = |route: &Route| {
            let ((from, cpu, memory), (mover, cpus, target)) = (route.chaser, &route.traffic);
            let shared = if route.shares_core { ", one core" } else { "" };
            format!("CPU {cpu} {from}:{memory}, CPUs {cpus} {mover}:{target}{shared}")
        };
        let found =
            routes.map_or_else(|failure| vec![failure.message], |routes| routes.iter().map(words).collect());
        assert_eq!(found, expected, "{text} {words:?}", words = all_words(&args));
    }

    fn all_words(args: &Latency) -> String {
        format!("{:?} {:?}", args.chase, args.traffic)
    }

    #[test]
    fn the_first_node_chases_near_and_far_and_its_other_cpus_move_data() {
        check("(4c 8G)", &[], &["CPU 1 0:0, CPUs 0,2-3 0:0"]);
        check("2x(4c 8G); dist=21", &[], &["CPU 1 0:0, CPUs 0,2-3 0:0", "CPU 1 0:1, CPUs 0,2-3 0:1"]);
        check("(2c 8G) (8G)", &[], &["CPU 1 0:0, CPUs 0 0:0", "CPU 1 0:1, CPUs 0 0:1"]);
    }

    #[test]
    fn the_other_thread_of_the_core_stays_idle_where_there_is_another_core() {
        check("(2c2t 8G)", &[], &["CPU 1 0:0, CPUs 0,2 0:0"]);
        check("(1c2t 8G)", &[], &["CPU 1 0:0, CPUs 0 0:0, one core"]);
        check("2x(1c2t 8G); dist=21", &["--nodes=0"], &["CPU 2 0:0, CPUs 0 0:0, one core"]);
    }

    #[test]
    fn a_node_of_one_cpu_has_its_traffic_from_the_nearest_other() {
        check("2x(2x(1c 512M)); dist=11,20", &[], &["CPU 0 0:0, CPUs 1 1:0", "CPU 0 0:3, CPUs 1 1:3"]);
        check(
            "(1c 8G)",
            &[],
            &[
                "latency under load needs two CPUs, one that chases and one that moves data: beside CPU 0 none of node 0 may be used",
            ],
        );
    }

    #[test]
    fn pairs_that_are_named_are_the_ones_that_are_used() {
        let two = "2x(2c 8G); dist=21";
        check(two, &["--traffic=1:0"], &["CPU 1 0:0, CPUs 2-3 1:0"]);
        check(two, &["--chase=1:0", "--traffic=0:1"], &["CPU 2 1:0, CPUs 0-1 0:1"]);
        check(two, &["--chase=0:1"], &["CPU 1 0:1, CPUs 0 0:1"]);
        check(two, &["--cpus=0,2", "--traffic=1:1"], &["CPU 0 0:0, CPUs 2 1:1"]);
        check(two, &["--chase=0:7"], &["--chase: node 7 has no memory: expected one of nodes 0-1"]);
        check(two, &["--traffic=9:0"], &["--traffic: node 9 has no CPUs: expected one of nodes 0-1"]);
        check(
            "(2c 8G) (8G)",
            &["--traffic=1:1"],
            &["--traffic: node 1 has no CPUs: expected one of nodes 0"],
        );
    }

    #[test]
    fn kernels_and_pauses_come_once_and_in_order() {
        let args = |words: &[&str]| {
            Words::try_parse_from([&["latency", "--loaded"], words].concat()).unwrap().latency
        };
        assert_eq!(pauses(&args(&["--pauses=5,0,700,5"])), [700, 5, 0]);
        assert_eq!((pauses(&args(&[])).len(), pauses(&args(&["--quick"])).len()), (19, 7));
        let named = args(&["--mix=copy,read,COPY"]).mix;
        assert_eq!(kernels(&named).unwrap(), [Kernel::Copy, Kernel::Read]);
        assert!(kernels(&[]).unwrap().contains(&Kernel::Read));
    }
}
