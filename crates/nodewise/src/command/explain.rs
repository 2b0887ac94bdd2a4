//! `nodewise explain`: a request, played by the model of the kernel's allocator.

mod groups;
mod policy;
mod process;
mod room;
mod victim;

use std::collections::BTreeMap;

use nodewise_machine::check::node_names;
use nodewise_machine::placement;
use nodewise_machine::printable::{printable, quote};
use nodewise_machine::{Bytes, Machine, Node, NodeId, NodeSet};
use nodewise_model::caches;
use nodewise_model::cost::Costs;
use nodewise_model::memory::HugeEffort;
use nodewise_model::policy::interleave::InterleavePosition;
use nodewise_model::policy::{system, weights};
use nodewise_model::ram::{PAGE, huge_order, page_bytes};
use nodewise_model::thp::TransparentHuge;
use nodewise_model::walk::{Class, Request};
use nodewise_model::{Change, Memory, Policy, Release, Relief, trace};
use nodewise_source::Detail;
use nodewise_syscall::affinity;
use nodewise_view::digest::cost::{Access, Reading};
use nodewise_view::digest::counts::by_count;
use nodewise_view::digest::walk::{HugeReason, MemoryKind, Walk};
use nodewise_view::{csv, json, text};

use super::zones::built;
use crate::cli::Global;
use crate::cli::explain::Explain;
use crate::failure::{Failure, Outcome};
use crate::input::Input;
use crate::output::Form;
use crate::zones::Zones;
use crate::{cli, input, measuring, output};
pub(super) use policy::{node_set, parse};

/// The memory of a process that is foreseen, unless a size was typed.
const NEXT: Bytes = Bytes::from_gib(10);

/// Runs `explain`.
pub fn run(args: &Explain, global: &Global) -> Outcome {
    check(args).map_err(Failure::usage)?;
    let mut input = input::load_for(&args.supplied, &global.machine, Detail::Full)?;
    let typed = room::supply(&mut input.machine, args).map_err(Failure::usage)?;
    let machine = &input.machine;
    let release = Release::from_kernel(args.kernel.as_ref().or(machine.kernel.as_ref()));
    let zones = Zones::from_input(&input, release)?.with_free(machine, &typed);
    let huge = huge(args, machine).map_err(Failure::cannot)?;
    let before = zones.memory(machine, built(args.rebuilt), release).with_huge_effort(huge.effort);
    let wanted = args.pid.as_deref();
    let memory = wanted.map(|wanted| process::read(args, wanted, &input, &global.machine)).transpose()?;
    let allowed = match &memory {
        Some(memory) if args.allowed.is_none() => memory.allowed.clone(),
        _ => allowed(args, &input)?,
    };
    let (mut policy, left_out) = match &memory {
        Some(memory) => (policy::kept(&memory.policy, &input, &allowed, release)?, NodeSet::new()),
        None => policy::read(&args.policy, &input, &allowed, release).map_err(Failure::usage)?,
    };
    policy.home = home(args, &policy, &input, release).map_err(Failure::usage)?;
    let is_systems = policy == Policy::DEFAULT;
    if is_systems {
        policy = system::initial_policy(machine, release);
    }
    let last = memory.as_ref().and_then(|memory| process::last_node(memory, &input, &global.machine));
    let number = args.cpu_node.or(last.map(NodeId::number));
    let cpu_node = cpu_node(number, &input, global).map_err(Failure::usage)?;
    let size = args.size.or(memory.as_ref().map(|_| NEXT));
    let weights = weights::in_force(machine, release);
    let process = memory.as_ref().map(|memory| memory.pid);
    let mut groups = groups::read(args, process, &input, &global.machine, before.page_bytes())?;
    let pages = pages(size, &before, huge.order);
    let request = Request {
        policy: &policy,
        weights: &weights,
        cpu_node,
        allowed: &allowed,
        pages: groups.as_mut().map_or(pages, |groups| groups.cut(pages, size)),
        order: huge.order,
        place: place(args),
        class: Class::User,
    };
    let mut after = before.clone();
    let outcome = after.touch(&request);
    let relief = outcome.out_of_memory.as_ref();
    let relief = relief.and_then(|end| Relief::from_machine(machine, &after, end));
    let inside = outcome.out_of_memory.as_ref().map_or_else(
        || outcome.nodes().into_iter().map(|(node, _)| node).collect(),
        |end| end.inside.clone(),
    );
    let caches = page_caches(machine, &before);
    let trace = if args.trace { trace::trace(policy.mode, &outcome) } else { Vec::new() };
    let walk = Walk {
        policy: &policy,
        left_out: &left_out,
        process: memory.as_ref(),
        is_systems,
        kind: kind(args.memory),
        first_page: args.first_page,
        cpu_node,
        allowed: &allowed,
        size_bytes: size.map(|size| size.get()),
        release,
        basis: zones.basis,
        before: &before,
        after: &after,
        outcome: &outcome,
        relief,
        victim: None,
        droppable: caches::of_nodes(machine, &before, &inside),
        swap: machine.swap_free.map(|size| size.get() / before.page_bytes()),
        groups: groups.as_ref().map(|groups| &groups.walk),
        caches: &caches,
        huge: huge.reason,
        trace: &trace,
        reading: None,
    };
    let reading = if args.cost { cost(args, &input.machine, &walk)? } else { None };
    let limited = groups.as_ref().map_or(&[][..], |groups| &groups.read);
    let victim = victim::victim(&walk, limited, &zones, &input, &global.machine);
    let walk = Walk { reading: reading.as_ref(), victim: victim.as_ref(), ..walk };
    let json = || json::walk::walk(&walk);
    let (form, csv) = (Form::new(args.json, args.csv), || csv::walk(&walk));
    output::show_table(form, global.color, json, csv, |style| text::walk::walk(&walk, style))?;
    Ok(0)
}

/// Page cache of the nodes that have some.
fn page_caches(machine: &Machine, memory: &Memory) -> BTreeMap<NodeId, u64> {
    let of = |node: &Node| caches::of_node(node, memory).map(|(_, files)| (node.id, files));
    machine.nodes.values().filter_map(of).filter(|(_, files)| *files > 0).collect()
}

/// The transparent huge pages of a request.
struct Huge {
    order: u32,
    effort: HugeEffort,
    reason: Option<HugeReason>,
}

/// Which huge pages there are: as it was typed, else what the machine gives all programs.
fn huge(args: &Explain, machine: &Machine) -> Result<Huge, String> {
    let none = Huge { order: 0, effort: HugeEffort::Everywhere, reason: None };
    let is_set = machine.settings.transparent_hugepage.as_deref() == Some("always");
    let is_private = args.memory == cli::explain::Memory::Private;
    let when = match args.huge {
        Some(when) => when,
        None if is_set && is_private => cli::explain::Huge::Always,
        None => cli::explain::Huge::Never,
    };
    let order = match huge_order(machine) {
        _ if when == cli::explain::Huge::Never => return Ok(none),
        Some(order) => order,
        None if args.huge.is_none() => return Ok(none),
        None => return Err(format!("--thp: {}", no_huge_pages(machine))),
    };
    let defrag = machine.settings.transparent_hugepage_defrag.as_deref();
    let effort = match when {
        cli::explain::Huge::Always => TransparentHuge::plain_effort(defrag),
        _ => TransparentHuge::advised_effort(defrag),
    };
    let reason = if args.huge.is_some() { HugeReason::Asked } else { HugeReason::Setting };
    Ok(Huge { order, effort, reason: Some(reason) })
}

/// Options that do not go together.
fn check(args: &Explain) -> Result<(), String> {
    if args.size.is_some_and(|size| size.get() == 0) {
        return Err("--size: 0 B is empty: expected at least 1 B".to_owned());
    }
    if args.limit.is_some_and(|limit| limit.get() == 0) {
        return Err("--limit: 0 B leaves no room for a program: expected at least 1 B".to_owned());
    }
    if args.memory != cli::explain::Memory::Cache {
        return Ok(());
    }
    let not_for_files = [
        (
            args.huge.is_some_and(|when| when != cli::explain::Huge::Never),
            "--thp: the page cache is modelled in small pages",
        ),
        (
            args.home.is_some(),
            "--home: a home node is a mapping's, and pages of the page cache follow the task's policy",
        ),
        (
            args.first_page.is_some(),
            "--first-page: pages of the page cache have their turns one after the other, whatever their number",
        ),
        (
            args.trace,
            "--trace: the functions that are known are those of faults, and the page cache is filled without one",
        ),
    ];
    match not_for_files.into_iter().find(|(is_typed, _)| *is_typed) {
        Some((_, why)) => Err(why.to_owned()),
        None => Ok(()),
    }
}

/// The missing parts where the size of a machine's huge pages is not known.
pub(super) fn no_huge_pages(machine: &Machine) -> String {
    let architecture = machine.architecture.as_deref().unwrap_or("this machine");
    let page = Bytes::new(page_bytes(machine));
    format!(
        "the size of huge pages of {} with pages of {page} is not known: --huge-page-size=SIZE supplies it (on POWER \
         2M with radix tables, 16M with hash tables)",
        printable(architecture)
    )
}

const fn kind(memory: cli::explain::Memory) -> MemoryKind {
    match memory {
        cli::explain::Memory::Private => MemoryKind::Private,
        cli::explain::Memory::PrivateFile => MemoryKind::PrivateFile,
        cli::explain::Memory::Shared => MemoryKind::Shared,
        cli::explain::Memory::Cache => MemoryKind::Cache,
    }
}

/// Where the first page is. Turns go by numbers of pages: a place counts in pages of 4 KiB, whatever they are here. A task's cursor begins at the lowest node and then goes on as the numbers of
/// pages do.
fn place(args: &Explain) -> InterleavePosition {
    let first = args.first_page.unwrap_or(0);
    match args.memory {
        cli::explain::Memory::Private | cli::explain::Memory::Cache => {
            InterleavePosition::Address(first.wrapping_mul(PAGE))
        }
        cli::explain::Memory::PrivateFile | cli::explain::Memory::Shared => {
            InterleavePosition::File { inode: 0, page: first }
        }
    }
}

/// The nodes whose memory may be used.
fn allowed(args: &Explain, input: &Input) -> Result<NodeSet, Failure> {
    let own = placement::Scope::from_machine(&input.machine).memory_nodes;
    if own.is_empty() {
        return Err(Failure::cannot("no node of this machine has memory"));
    }
    let Some(text) = &args.allowed else { return Ok(own) };
    let wrong = |why: String| Failure::usage(format_args!("--allowed: {why}"));
    // A cpuset is none of this process's: all memory of the machine can be in it.
    let all = input.machine.memory_nodes();
    let nodes = node_set(text, input, &all).map_err(wrong)?;
    if nodes.is_empty() { Err(wrong(format!("{} names no node", quote(text)))) } else { Ok(nodes) }
}

/// The home node that was typed, where the kernel takes one.
fn home(args: &Explain, policy: &Policy, input: &Input, release: Release) -> Result<Option<NodeId>, String> {
    let Some(number) = args.home else { return Ok(None) };
    let (node, nodes) = (NodeId::new(number), input.machine.node_ids());
    if !release.has(Change::HomeNode) {
        let (major, minor) = Change::HomeNode.since();
        return Err(format!("--home: home nodes need Linux {major}.{minor} or newer: this is {release}"));
    }
    if !nodes.contains(node) {
        return Err(format!("--home: node {node} does not exist: this machine has {}", node_names(&nodes)));
    }
    if !policy.mode.has_home() {
        let mode = policy.mode;
        return Err(format!(
            "--home: {mode} has none: Linux {release} answers EOPNOTSUPP for all but bind and preferred-many"
        ));
    }
    Ok(Some(node))
}

/// Computes the cost of reading the memory of a request.
fn cost(args: &Explain, machine: &Machine, walk: &Walk<'_>) -> Result<Option<Reading>, Failure> {
    let mut costs = Costs::from_firmware(machine);
    measuring::add_saved_costs(&mut costs, args.latency.as_deref(), args.bandwidth.as_deref())?;
    let cpus = u32::try_from(machine.cpus_of(walk.cpu_node).len()).unwrap_or(u32::MAX);
    let threads = args.threads.unwrap_or(cpus.max(1));
    let access = match args.access {
        cli::explain::Access::Stream => Access::Stream,
        cli::explain::Access::Chase => Access::Chase,
    };
    Reading::from_walk(walk, &costs, threads, access).map_err(|unknown| {
        Failure::cannot(format_args!(
            "--cost: {unknown}: \"nodewise latency --json\" measures it, and --latency=FILE takes the result"
        ))
    })
}

/// Small pages for the size that was typed; without one, one page more than there are, of the size that is tried first.
fn pages(size: Option<Bytes>, memory: &Memory, order: u32) -> u64 {
    let free: u64 = memory.zones().iter().map(|zone| zone.free).sum();
    size.map_or(((free >> order) + 1) << order, |size| size.get().div_ceil(memory.page_bytes()))
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
            let (others, have) = (node_names(&with_cpus), by_count(&with_cpus.len(), "has", "have"));
            Err(format!("--cpu-node: node {node} has no CPUs: {others} {have} some"))
        };
    }
    let current = || affinity::current_cpu().ok().map(|(_, node)| node);
    let here = if input::is_live(&global.machine) { current() } else { None };
    let first = with_cpus.first().or(machine.node_ids().first());
    here.or(first).ok_or_else(|| "--cpu-node: this machine has no node".to_owned())
}
