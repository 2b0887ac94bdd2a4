//! `nodewise explain`, `zonelist` and `zones`: the model of the kernel's allocator.

use nodewise_machine::expr::{Devices, Scope as ExprScope, SetExpr};
use nodewise_machine::printable::quote;
use nodewise_machine::{DeviceRef, Machine, MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode};
use nodewise_measure::placement;
use nodewise_model::cost::Costs;
use nodewise_model::policy::interleave::Place;
use nodewise_model::policy::weights;
use nodewise_model::ram::{Architecture, PAGE};
use nodewise_model::walk::{Class, HUGE_ORDER, Request};
use nodewise_model::{BuiltAt, Memory, Policy, Release, Scope, trace};
use nodewise_source::Detail;
use nodewise_syscall::affinity;
use nodewise_view::digest::cost::{Access, Reading};
use nodewise_view::digest::walk::Walk;
use nodewise_view::{json, text};

use crate::cli::Global;
use crate::cli::explain::{Explain, Zonelist, Zones as ZonesArgs};
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::zones::Zones;
use crate::{cli, input, measuring, output};

/// Runs `explain`.
pub fn run(args: &Explain, global: &Global) -> Outcome {
    let input = input::load(&global.machine, Detail::Full)?;
    let machine = &input.machine;
    let release = Release::of(args.kernel.as_ref().or(machine.kernel.as_ref()));
    let zones = Zones::of(&input, release);
    let before = zones.memory(machine, built(args.rebuilt), release);
    let allowed = placement::Scope::of(machine).memory_nodes;
    if allowed.is_empty() {
        return Err(Failure::cannot("no node of this machine has memory"));
    }
    let policy = policy(&args.policy, &input, &allowed, release).map_err(Failure::usage)?;
    let cpu_node = cpu_node(args.cpu_node, &input, global).map_err(Failure::usage)?;
    let weights = weights::of(machine, release);
    let order = if args.huge { HUGE_ORDER } else { 0 };
    let request = Request {
        policy: &policy,
        weights: &weights,
        cpu_node,
        allowed: &allowed,
        pages: pages(args, &before, order),
        order,
        place: Place::Address(0),
        class: Class::User,
    };
    let mut after = before.clone();
    let outcome = after.allocate(&request);
    let trace = if args.trace { trace::trace(policy.mode, &outcome) } else { Vec::new() };
    let walk = Walk {
        policy: &policy,
        cpu_node,
        allowed: &allowed,
        size_bytes: args.size.map(|size| size.get()),
        release,
        basis: zones.basis,
        before: &before,
        after: &after,
        outcome: &outcome,
        trace: &trace,
        reading: None,
    };
    let reading = if args.cost { cost(args, &input.machine, &walk)? } else { None };
    let walk = Walk { reading: reading.as_ref(), ..walk };
    if args.json {
        output::print_json(&json::walk::walk(&walk))?;
    } else {
        output::print(&text::walk::walk(&walk, &output::style(global.color)))?;
    }
    Ok(0)
}

/// What reading the memory of a request costs.
fn cost(args: &Explain, machine: &Machine, walk: &Walk<'_>) -> Result<Option<Reading>, Failure> {
    let mut costs = Costs::of(machine);
    type Reader = fn(&str, &mut Costs) -> Result<(), String>;
    let results: [(_, _, Reader); 2] = [
        ("--latency", &args.latency, json::costs::add_latencies),
        ("--bandwidth", &args.bandwidth, json::costs::add_bandwidths),
    ];
    for (option, path, add) in results {
        let Some(path) = path else { continue };
        let text = measuring::read_saved(option, path)?;
        let verb = option.trim_start_matches('-');
        let path = quote(&path.display().to_string());
        add(&text, &mut costs).map_err(|error| {
            Failure::usage(format_args!("{option}: {path} is no result of nodewise {verb}: {error}"))
        })?;
    }
    let cpus = u32::try_from(machine.cpus_of(walk.cpu_node).len()).unwrap_or(u32::MAX);
    let threads = args.threads.unwrap_or(cpus.max(1));
    let access = match args.access {
        cli::explain::Access::Stream => Access::Stream,
        cli::explain::Access::Chase => Access::Chase,
    };
    Reading::of(walk, &costs, threads, access).map_err(|unknown| {
        Failure::cannot(format_args!(
            "--cost: {unknown}: \"nodewise latency --json\" measures it, and --latency=FILE takes the result"
        ))
    })
}

/// Runs `zonelist`.
pub fn zonelist(args: &Zonelist, global: &Global) -> Outcome {
    let input = input::load(&global.machine, Detail::Full)?;
    let built = built(args.rebuilt);
    let zones = Zones::of(&input, Release::of(input.machine.kernel.as_ref()));
    let memory = zones.memory(&input.machine, built, Release::REFERENCE);
    let plain: Vec<_> = zones.rows.iter().map(|(zone, _)| *zone).collect();
    if args.json {
        output::print_json(&json::zones::zonelist(memory.orders(), &plain, built))?;
    } else {
        output::print(&text::zones::zonelist(memory.orders(), &plain, built, &output::style(global.color)))?;
    }
    Ok(0)
}

/// Runs `zones`.
pub fn zones(args: &ZonesArgs, global: &Global) -> Outcome {
    let input = input::load(&global.machine, Detail::Full)?;
    let zones = Zones::of(&input, Release::of(input.machine.kernel.as_ref()));
    let model = zones.modelled(&input);
    if args.json {
        output::print_json(&json::zones::zones(&zones.rows, zones.basis, &model))?;
    } else {
        output::print(&text::zones::zones(&zones.rows, zones.basis, &model, &output::style(global.color)))?;
    }
    Ok(0)
}

const fn built(rebuilt: bool) -> BuiltAt {
    if rebuilt { BuiltAt::RunTime } else { BuiltAt::Boot }
}

/// Pages for the size that was typed; without one, one more than there are.
fn pages(args: &Explain, memory: &Memory, order: u32) -> u64 {
    let free: u64 = memory.zones().iter().map(|zone| zone.free).sum();
    args.size.map_or((free >> order) + 1, |size| size.get().div_ceil(PAGE << order))
}

fn cpu_node(typed: Option<u32>, input: &Input, global: &Global) -> Result<NodeId, String> {
    let machine = &input.machine;
    let with_cpus = machine.nodes_with_cpus();
    if let Some(number) = typed {
        let node = NodeId::new(number);
        return if !machine.nodes.contains_key(&node) {
            Err(format!(
                "--cpu-node: node {node} does not exist: this machine has nodes {}",
                machine.node_ids()
            ))
        } else if with_cpus.contains(node) {
            Ok(node)
        } else {
            Err(format!("--cpu-node: node {node} has no CPUs: nodes {with_cpus} have some"))
        };
    }
    let current = || affinity::current_cpu().ok().map(|(_, node)| node);
    let here = if input::is_live(&global.machine) { current() } else { None };
    let first = with_cpus.first().or(machine.node_ids().first());
    here.or(first).ok_or_else(|| "--cpu-node: this machine has no node".to_owned())
}

/// The policy that was typed, as the kernel would keep it.
fn policy(text: &str, input: &Input, allowed: &NodeSet, release: Release) -> Result<Policy, String> {
    let policy = parse(text, input, allowed)?;
    let max_nodes = Architecture::of(&input.machine).max_nodes();
    Policy::of(&policy, Scope { allowed, max_nodes, release }).map_err(|errno| {
        format!("{policy}: Linux {release} answers {errno}{}", why(&policy, release, max_nodes))
    })
}

/// Why a policy is refused, where its mode is too new or a node's number too large.
fn why(policy: &MemPolicy, release: Release, max_nodes: u32) -> String {
    match policy.mode.since() {
        Some((major, minor)) if release < Release::new(major, minor) => {
            format!(": {} needs Linux {major}.{minor} or newer", policy.mode)
        }
        _ if policy.nodes.last().is_some_and(|node| node.number() >= max_nodes) => {
            format!(": kernels of this architecture are built for nodes 0-{}", max_nodes - 1)
        }
        _ => String::new(),
    }
}

/// A policy that is typed: `bind=static:0-1`.
pub(super) fn parse(text: &str, input: &Input, allowed: &NodeSet) -> Result<MemPolicy, String> {
    let (head, nodes) = text.split_once(':').map_or((text, None), |(head, nodes)| (head, Some(nodes)));
    let (word, flags) = head.split_once('=').map_or((head, None), |(word, flags)| (word, Some(flags)));
    let named = |mode: &PolicyMode| mode.word() == word || mode.kernel_word() == word;
    let mode = PolicyMode::ALL.into_iter().find(named).ok_or_else(|| {
        let words = PolicyMode::ALL.map(PolicyMode::word).join(", ");
        format!("{} is not a memory policy: expected one of {words}, with nodes as in bind:0-1", quote(text))
    })?;
    // The flags have one reader, that of whole policies.
    let flags = flags.map_or(Ok(ModeFlags::NONE), |flags| {
        format!("{}={flags}", mode.kernel_word()).parse().map(|policy: MemPolicy| policy.flags)
    });
    let flags =
        flags.map_err(|_| format!("{}: expected static, relative or balancing after \"=\"", quote(text)))?;
    let nodes = match nodes {
        None => NodeSet::new(),
        Some(nodes) => node_set(nodes, input, allowed)?,
    };
    let takes_nodes = !matches!(mode, PolicyMode::Default | PolicyMode::Local);
    match (takes_nodes, nodes.is_empty()) {
        (true, true) => Err(format!("{}: {mode} needs nodes, as in {mode}:{allowed}", quote(text))),
        (false, false) => Err(format!("{}: {mode} takes no nodes", quote(text))),
        _ => Ok(MemPolicy { mode, flags, nodes }),
    }
}

/// Nodes that are typed, as far as their memory can be used.
pub(super) fn node_set(text: &str, input: &Input, allowed: &NodeSet) -> Result<NodeSet, String> {
    let expr = SetExpr::parse::<NodeId>(text, Devices::Accepted).map_err(|error| error.to_string())?;
    let existing = input.machine.node_ids();
    let device = |device: &DeviceRef| input.node_of(device).map(|node| NodeSet::from_iter([node]));
    let scope = ExprScope {
        existing: &existing,
        allowed,
        limit: "the nodes whose memory can be used,",
        own: allowed,
        same: None,
        device: Some(&device),
    };
    expr.resolve(&scope).map_err(|error| error.to_string())
}
