//! `explain --pid`: the memory of a process, its policy, its CPUs and its cpuset.

use std::collections::BTreeMap;

use nodewise_machine::mapping::{
    MappedPages, Mapping, MappingKind, MappingPolicy, MappingsMethod, ProcessMappings,
};
use nodewise_machine::printable::{printable, quote};
use nodewise_machine::{Bytes, CpuSet, Machine, MemPolicy, NodeId, NodeSet, Pid};
use nodewise_source::mappings::Thoroughness;
use nodewise_source::process::{self as processes, claims};
use nodewise_source::system;
use nodewise_source::tree::Tree;
use nodewise_view::digest::process_memory::{NodeMemory, PolicyOwner, ProcessMemory};

use crate::cli::explain::Explain;
use crate::command::process;
use crate::failure::Failure;
use crate::input::Input;
use crate::live_pages;
use crate::{input, measuring};

/// The memory of the process that was named.
///
/// # Errors
/// No such process or mapping, and what cannot be read.
pub(super) fn read(
    args: &Explain,
    wanted: &str,
    input: &Input,
    machine: &str,
) -> Result<ProcessMemory, Failure> {
    let live = Tree::live();
    let tree = if input::is_live(machine) {
        &live
    } else {
        input.tree().ok_or_else(|| {
            Failure::usage("--pid: expected this machine, or a capture that holds the files of processes")
        })?
    };
    let pid = process::find(tree, wanted)?;
    let read = if input::is_live(machine) {
        live_pages::mappings(tree, pid, Thoroughness::ByPrice)
    } else {
        nodewise_source::mappings::read(tree, pid, Thoroughness::ByPrice, measuring::seed(None), None)
    };
    let mappings = read.map_err(Failure::cannot)?;
    let (what, chosen) = choose(args, &mappings)?;
    let (policy, own) = largest_policy(&chosen, &mappings);
    let claims = claims::claims(tree, pid);
    let allowed = allowed(tree, pid, &input.machine);
    let cpus = claims.cpus.as_ref().map(|cpus| cpus.iter().fold(CpuSet::new(), |all, own| all.union(own)));
    let cpu_nodes = cpus.map(|cpus| nodes_of(&cpus, &input.machine));
    // A mapping without a policy shows that of its thread: the threads' own policies distinguish the two.
    let owner = match &claims.policies {
        _ if policy.text == "default" => PolicyOwner::System,
        Some(of_threads) if of_threads.contains(&policy.text) => PolicyOwner::Thread,
        Some(_) => PolicyOwner::Mapping,
        None => PolicyOwner::Unknown,
    };
    let mut other_policies: Vec<String> = claims.policies.into_iter().flatten().collect();
    let texts = mappings.mappings.iter().filter_map(|mapping| mapping.policy.as_ref());
    other_policies.extend(texts.map(|policy| policy.text.clone()));
    other_policies.retain(|text| *text != policy.text && text != "default");
    other_policies.sort_unstable();
    other_policies.dedup();
    let nodes = by_node(&own).into_iter();
    let nodes = nodes.map(|(node, size)| NodeMemory { node, size, missed: missed(tree, node) });
    let parsed = policy.policy.clone().ok_or_else(|| {
        Failure::cannot(format_args!("the policy {} of process {pid} is not known", quote(&policy.text)))
    })?;
    Ok(ProcessMemory {
        pid: pid.number(),
        name: mappings.name.as_deref().map(|name| printable(name).into_owned()),
        what: format!("{what}, {}", plural_mappings(own.len())),
        policy_text: printable(&policy.text).into_owned(),
        policy: parsed,
        owner,
        other_policies: other_policies.iter().map(|text| printable(text).into_owned()).collect(),
        cpu_nodes,
        allowed,
        is_sampled: matches!(mappings.method, MappingsMethod::Sampled { .. }),
        nodes: nodes.collect(),
        notes: mappings.notes.clone(),
    })
}

/// The node of the CPU that a process ran on last.
pub(super) fn last_node(wanted: &ProcessMemory, input: &Input, machine: &str) -> Option<NodeId> {
    let live = Tree::live();
    let tree = if input::is_live(machine) { &live } else { input.tree()? };
    let cpu = processes::last_cpu(tree, Pid::new(wanted.pid))?;
    input.machine.node_of(cpu)
}

fn plural_mappings(count: usize) -> String {
    nodewise_machine::plural::plural(count, "mapping")
}

/// The mappings that were asked for, in words and as they are; without a word all that follow a policy.
fn choose<'m>(args: &Explain, all: &'m ProcessMappings) -> Result<(String, Vec<&'m Mapping>), Failure> {
    if let Some(address) = args.address {
        let found = all.mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&address));
        let found = found.ok_or_else(|| {
            Failure::usage(format_args!("--address: process {} has nothing mapped at {address:x}", all.pid))
        })?;
        return Ok((format!("{:x}-{:x}, {}", found.start, found.end, found.kind.words()), vec![found]));
    }
    let Some(word) = &args.mapping else {
        let follow = all.mappings.iter().filter(|mapping| mapping.kind.follows_policy());
        return Ok(("all memory that follows a policy".to_owned(), follow.collect()));
    };
    let kind = MappingKind::ALL.into_iter().find(|kind| kind.key() == word);
    let is_wanted = |mapping: &&Mapping| match kind {
        Some(kind) => mapping.kind == kind,
        None => mapping.name.as_ref().is_some_and(|name| name.contains(word.as_str())),
    };
    let found: Vec<&Mapping> = all.mappings.iter().filter(is_wanted).collect();
    if found.is_empty() {
        let kinds = MappingKind::ALL.map(MappingKind::key).join(", ");
        return Err(Failure::usage(format_args!(
            "--mapping: process {} has no mapping {}: expected a part of a name, or one of {kinds}",
            all.pid,
            quote(word)
        )));
    }
    Ok((kind.map_or_else(|| printable(word).into_owned(), |kind| kind.words().to_owned()), found))
}

/// The policy that most of some memory has, with the mappings that have it.
fn largest_policy<'m>(chosen: &[&'m Mapping], all: &ProcessMappings) -> (MappingPolicy, Vec<&'m Mapping>) {
    let default = || MappingPolicy { text: "default".to_owned(), policy: Some(MemPolicy::DEFAULT) };
    let of = |mapping: &Mapping| {
        mapping.policy.clone().or_else(|| all.thread_policy.clone()).unwrap_or_else(default)
    };
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    for mapping in chosen {
        let size = mapping.resident().unwrap_or_default().get();
        *sizes.entry(of(mapping).text).or_default() += size;
    }
    let largest = sizes.iter().max_by_key(|(_, size)| **size).map(|(text, _)| text.clone());
    let own: Vec<&Mapping> =
        chosen.iter().copied().filter(|mapping| Some(of(mapping).text) == largest).collect();
    (own.first().map_or_else(default, |mapping| of(mapping)), own)
}

/// The memory of some mappings by node, those that were drawn as estimates.
fn by_node(mappings: &[&Mapping]) -> BTreeMap<NodeId, Bytes> {
    let mut nodes: BTreeMap<NodeId, Bytes> = BTreeMap::new();
    let mut add = |node, size: Bytes| {
        let sum = nodes.entry(node).or_default();
        *sum = Bytes::new(sum.get().saturating_add(size.get()));
    };
    for mapping in mappings {
        match &mapping.pages {
            MappedPages::Unknown { .. } => {}
            MappedPages::Counted(counted) => counted.iter().for_each(|(node, size)| add(*node, *size)),
            MappedPages::Drawn(drawn) if drawn.drawn > 0 => {
                for (node, found) in &drawn.nodes {
                    add(*node, drawn.candidates.share(*found as f64 / drawn.drawn as f64));
                }
            }
            MappedPages::Drawn(_) => {}
        }
    }
    nodes
}

/// The nodes that the cpuset of a process allows and that have memory.
fn allowed(tree: &Tree, pid: Pid, machine: &Machine) -> NodeSet {
    let all = machine.memory_nodes();
    let status = processes::status(tree, pid).ok().flatten().map(|parsed| parsed.value);
    let own = status.and_then(|status| status.mems_allowed);
    own.map_or_else(|| all.clone(), |own| own.intersection(&all))
}

fn nodes_of(cpus: &CpuSet, machine: &Machine) -> NodeSet {
    machine.nodes.values().filter(|node| !node.cpus.is_disjoint(cpus)).map(|node| node.id).collect()
}

/// Pages that a node gave although they were wanted from another.
fn missed(tree: &Tree, node: NodeId) -> Option<u64> {
    system::numastat(tree, node).ok()??.value.miss
}
