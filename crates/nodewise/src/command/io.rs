//! `nodewise io`: words to devices, devices to ways, ways to a survey, the survey to its reader.

mod client;
mod rdma;
mod saved;
mod subject;

use std::time::Duration;

use nodewise_machine::{Bytes, CpuSet, Machine, NodeId};
use nodewise_measure::cell::{Cell, PageKind};
use nodewise_measure::io::{
    Access, DeviceKind, DeviceReport, IoBench, IoReport, IoTransfer, IoTransferReport, SMALL,
};
use nodewise_measure::survey::{Account, Survey};
use nodewise_source::Detail;
use nodewise_view::svg::io_svg;
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::io::Io;
use crate::cli::measure_options::{Huge, MeasureOptions};
use crate::failure::{Failure, Outcome};
use crate::measuring::{self, Field, Forms, Measurement};
use crate::{input, live};

use subject::Subject;

/// The buffer on each node: four of the largest blocks.
const BUFFER: Bytes = Bytes::from_mib(16);

/// Runs the verb.
pub fn run(args: &Io, global: &Global) -> Outcome {
    if !args.from.is_empty() {
        return saved::run(args, global);
    }
    show(&report(args, global)?, args, global)
}

/// The document of a measurement, in place of showing it.
///
/// # Errors
/// As the verb.
pub fn document(args: &Io, global: &Global) -> Result<String, Failure> {
    Ok(json::io(&report(args, global)?))
}

fn report(args: &Io, global: &Global) -> Result<IoReport, Failure> {
    if !input::is_live(&global.machine) {
        let input = input::load(&global.machine, Detail::Full)?;
        return listed(args, global, subject::find(&args.subjects, &input));
    }
    let measurement = Measurement::begin(&args.measure)?;
    let input = input::load(&global.machine, Detail::Full)?;
    let subjects = subject::find(&args.subjects, &input);
    measure(args, &input.machine, subjects, measurement)
}

/// Shows a report as the options want it.
fn show(report: &IoReport, args: &Io, global: &Global) -> Outcome {
    let forms = Forms {
        picture: &|theme| io_svg(report, theme),
        json: &|| json::io(report),
        csv: &|| csv::io(report),
        text: &|style| text::io(report, style),
    };
    measuring::show(&args.measure, global, &forms)?;
    let refused = |device: &DeviceReport| device.refused.is_some() || !device.ways.is_empty();
    let asked = report.devices.iter().any(refused);
    let whole = report.devices.iter().map(|device| device.refused.as_deref());
    let refused = whole.chain(report.cells().map(|cell| cell.refused.as_deref()));
    measuring::ended(!asked || report.has_figures(), &report.account, refused)
}

/// The devices of another machine, with nothing but their nodes known.
fn listed(args: &Io, global: &Global, subjects: Vec<Subject>) -> Result<IoReport, Failure> {
    if !args.subjects.is_empty() || args.rdma_peer.is_some() {
        measuring::must_be_live(global, "io", " but to list devices: name none")?;
    }
    let devices = subjects.into_iter().map(|subject| subject.report).collect();
    Ok(IoReport { account: Account::default(), size: BUFFER, devices })
}

fn measure(
    args: &Io,
    machine: &Machine,
    subjects: Vec<Subject>,
    measurement: Measurement,
) -> Result<IoReport, Failure> {
    let field = Field::from_options(&args.measure, machine)?;
    let seed = measuring::seed(args.measure.seed);
    let size = checked(args.size.unwrap_or(BUFFER))?;
    let ways: Vec<IoTransfer> =
        subjects.iter().flat_map(|subject| ways(args, machine, &field, subject)).collect();
    let conditions = live::conditions(machine, &[]);
    let mut bench = IoBench::new(size, sample_time(&args.measure), seed);
    let pace = measuring::pace(&args.measure, field.nodes());
    let mut facts = measurement.facts(machine, &args.measure, field.nodes());
    let survey = measuring::conduct(&mut bench, &ways, pace, seed, &mut facts);
    let account = Account::from_survey(&survey, conditions, bench.timer().source().name());
    let mut devices = Vec::new();
    for subject in subjects {
        let mut device = DeviceReport { ways: results(&subject, &ways, &survey, machine), ..subject.report };
        if let (Some(host), DeviceKind::Rdma, false) = (&args.rdma_peer, device.kind, survey.interrupted) {
            let peer = rdma::Peer { host, port: args.rdma_port };
            let cpus = near(machine, &field, device.home.node()).map(|(_, cpus)| cpus);
            peer.measure(&mut device, &cpus.unwrap_or_default(), &field.targets)?;
        }
        devices.push(device);
    }
    Ok(IoReport { account, size, devices })
}

/// A size that was typed: whole small blocks, and no more than any node has.
fn checked(size: Bytes) -> Result<Bytes, Failure> {
    let (least, most) = (SMALL, Bytes::from_gib(64));
    if (least..=most).contains(&size) {
        Ok(size)
    } else {
        Err(Failure::usage(format_args!("--size: {size} is not a buffer size: expected {least} to {most}")))
    }
}

/// How long a sample takes.
const fn sample_time(options: &MeasureOptions) -> Duration {
    match (options.quick, options.thorough) {
        (true, _) => Duration::from_millis(20),
        (false, true) => Duration::from_millis(150),
        (false, false) => Duration::from_millis(50),
    }
}

/// Everything that is read of a device: by CPUs near it, into the memory of each node.
fn ways(args: &Io, machine: &Machine, field: &Field, subject: &Subject) -> Vec<IoTransfer> {
    let Some(path) = subject.path.as_ref().filter(|_| subject.report.refused.is_none()) else {
        return Vec::new();
    };
    let Some((from, cpus)) = near(machine, field, subject.report.home.node()) else { return Vec::new() };
    let pages = match args.pages.huge {
        Some(Huge::Pages(kind)) => kind,
        None | Some(Huge::Never) => PageKind::Small,
    };
    let cell = |memory| Cell { from, cpus: cpus.clone(), memory, pages };
    let way = |(memory, access)| IoTransfer { path: path.clone(), access, cell: cell(memory) };
    let pairs = field.targets.iter().flat_map(|memory| Access::ALL.map(|access| (memory, access)));
    pairs.map(way).collect()
}

/// The node with CPUs that may be used which is nearest to a device; any where its node is not known.
fn near(machine: &Machine, field: &Field, home: Option<NodeId>) -> Option<(NodeId, CpuSet)> {
    let of = |node: NodeId| field.sources.iter().find(|(from, cpus)| *from == node && !cpus.is_empty());
    let nearest = home.and_then(|home| std::iter::once(home).chain(machine.closest(home)).find_map(of));
    nearest.or_else(|| field.sources.iter().find(|(_, cpus)| !cpus.is_empty())).cloned()
}

fn results(
    subject: &Subject,
    ways: &[IoTransfer],
    survey: &Survey,
    machine: &Machine,
) -> Vec<IoTransferReport> {
    let own = ways.iter().zip(&survey.outcomes).filter(|(way, _)| subject.path.as_ref() == Some(&way.path));
    let explain = |refusal: &_| measuring::explain(refusal, machine);
    own.map(|(way, outcome)| IoTransferReport::new(way, outcome, &explain)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    #[test]
    fn a_device_is_read_by_the_nearest_cpus_and_by_any_where_its_node_is_not_known() {
        let check = |text: &str, home: Option<u32>, expected: u32| {
            let machine = spec::machine(text).unwrap();
            let sources =
                machine.nodes_with_cpus().iter().map(|node| (node, machine.cpus_of(node))).collect();
            let field = Field { sources, targets: machine.memory_nodes() };
            let found = near(&machine, &field, home.map(NodeId::new)).unwrap().0;
            assert_eq!(found.number(), expected, "{text} {home:?}");
        };
        check("2x(4c 8G); dist=21", Some(1), 1);
        check("2x(4c 8G); dist=21", None, 0);
        // Memory alone, nearer to node 1.
        check("2x(4c 8G) (8G); dist=10,21,28/21,10,14/28,14,10", Some(2), 1);
    }
}
