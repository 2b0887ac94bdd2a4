//! `nodewise workload`.

use nodewise_machine::placement::Scope;
use nodewise_machine::{Bytes, Machine};
use nodewise_measure::workload::{
    Basis, ChaseOptions, Size, StreamOptions, WorkloadError, chase as chase_workload,
    stream as stream_workload,
};
use nodewise_source::Detail;
use nodewise_view::json;

use crate::cli::Global;
use crate::cli::workload::{Both, Chase, Stream, Workload, WorkloadProgram};
use crate::failure::{Failure, Outcome};
use crate::{input, output};

/// Runs the verb.
pub fn run(args: &Workload, _global: &Global) -> Outcome {
    match &args.kind {
        WorkloadProgram::Stream(options) => stream(options),
        WorkloadProgram::Chase(options) => chase(options),
        WorkloadProgram::Both(options) => both(options),
    }
}

fn stream(args: &Stream) -> Outcome {
    let machine = input::load("live", Detail::Overview)?.machine;
    let size = chosen(args.size, || Size::of_stream(&machine));
    let threads = args.threads.unwrap_or_else(|| own_cpus(&machine));
    let mut options = StreamOptions::new(size.bytes, threads);
    options.passes = args.passes.unwrap_or(options.passes);
    options.operation = args.operation.unwrap_or(options.operation);
    options.seed = args.common.seed;
    let result = stream_workload::run(&options).map_err(fail)?;
    output::print(&if args.common.json {
        json::workload::stream(&result)
    } else {
        format!(
            "{} over {} ({}) with {threads} threads, {} passes\nmedian {:.2} GB/s, best {:.2} GB/s, program bytes\n",
            result.operation.name(),
            result.size,
            reason(size.basis),
            result.gb_per_s.len(),
            result.median_gb_per_s(),
            result.most_gb_per_s()
        )
    })?;
    Ok(0)
}

fn chase(args: &Chase) -> Outcome {
    let machine = input::load("live", Detail::Overview)?.machine;
    let size = chosen(args.size, || Size::of_chase(&machine, None));
    let mut options = ChaseOptions::new(size.bytes);
    options.samples = args.samples.unwrap_or(options.samples);
    options.seed = args.common.seed;
    let result = chase_workload::run(&options).map_err(fail)?;
    output::print(&if args.common.json {
        json::workload::chase(&result)
    } else {
        format!(
            "random chain over {} ({}), {} samples of 65536 loads\nmedian {:.1} ns per load, least {:.1} ns\n",
            result.size,
            reason(size.basis),
            result.ns_per_load.len(),
            result.median_ns(),
            result.least_ns()
        )
    })?;
    Ok(0)
}

/// The least memory of a chain for a first look: beyond the reach of any TLB.
const LEAST_CHAIN: Bytes = Bytes::from_mib(64);
/// Samples of the chain and passes of the stream in a first look.
const FEW: u32 = 3;

fn both(args: &Both) -> Outcome {
    let machine = input::load("live", Detail::Overview)?.machine;
    let half = |size: Size| Bytes::new(size.bytes.get() / 2);
    let threads = own_cpus(&machine);
    let mut chain = ChaseOptions::new(half(Size::of_chase(&machine, None)).max(LEAST_CHAIN));
    (chain.samples, chain.seed) = (FEW, args.common.seed);
    let mut arrays = StreamOptions::new(half(Size::of_stream(&machine)), threads);
    (arrays.passes, arrays.seed) = (FEW, args.common.seed);
    let latency = chase_workload::run(&chain).map_err(fail)?;
    let bandwidth = stream_workload::run(&arrays).map_err(fail)?;
    if args.common.json {
        output::print(&json::workload::both(&latency, &bandwidth))?;
        return Ok(0);
    }
    output::print(&format!(
        "latency {:.1} ns per load, random chain over {}\nbandwidth {:.2} GB/s, {} over {} with {threads} threads\n",
        latency.median_ns(),
        latency.size,
        bandwidth.median_gb_per_s(),
        bandwidth.operation.name(),
        bandwidth.size,
    ))?;
    Ok(0)
}

fn chosen(asked: Option<Bytes>, of_machine: impl FnOnce() -> Size) -> Size {
    asked.map_or_else(of_machine, |bytes| Size { bytes, basis: Basis::Chosen })
}

/// Why the memory is as large as it is.
fn reason(basis: Basis) -> String {
    match basis {
        Basis::Cache(cache) => format!("four times the last-level cache of {cache}"),
        Basis::Least => "the least; the cache is small or not known".to_owned(),
        Basis::Most(cache) => format!("the most; this machine claims a cache of {cache}"),
        Basis::Memory(memory) => format!("a quarter of the smallest node's {memory}"),
        Basis::Chosen => "as asked".to_owned(),
    }
}

/// CPUs that this process may use: those of its binding, which `run` and `tune` set.
fn own_cpus(machine: &Machine) -> u32 {
    u32::try_from(Scope::from_machine(machine).cpus.len()).unwrap_or(1).max(1)
}

fn fail(error: WorkloadError) -> Failure {
    match error {
        WorkloadError::Wrong { .. } => Failure::new(crate::failure::INTERNAL, error),
        WorkloadError::TooSmall { .. } | WorkloadError::Nothing { .. } => Failure::usage(error),
        other => Failure::cannot(other),
    }
}
