//! `numactl --show`: the policy of this process.

use std::io::Write;

use nodewise_machine::id::Id;
use nodewise_machine::{CpuSet, IdSet, MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode};
use nodewise_notation::warning::CPU_MASK;
use nodewise_source::facts;
use serde_json::json;

use super::Session;
use crate::members;
use crate::release::Release;

/// The facts that `--show` prints.
struct Shown {
    policy: MemPolicy,
    /// The node of the next page, where pages are interleaved.
    next: Option<NodeId>,
    /// The weights, where they matter and the kernel says them.
    weights: Option<Vec<u32>>,
    cpus: CpuSet,
    /// Nodes with one of these CPUs.
    cpu_nodes: NodeSet,
    /// Nodes that memory may come from.
    memory: NodeSet,
}

/// Shows the policy; returns the exit status.
pub(super) fn run(session: &mut Session<'_>) -> u8 {
    let cpus = session.kernel.cpus().unwrap_or_default();
    if !session.numa_is_available() {
        let _ = writeln!(session.out, "physcpubind: {}", spaced(&cpus));
        let _ = writeln!(session.out, "No NUMA support available on this system.");
        return 1;
    }
    let policy = policy(session);
    let shown = look(session, policy, cpus);
    if session.json {
        write_json(&shown, session.out);
    } else {
        write(&shown, session);
    }
    0
}

/// The policy. 2.0.16 goes on when the call is blocked, and says so for each of the four times that
/// it asks.
fn policy(session: &mut Session<'_>) -> MemPolicy {
    match session.kernel.policy() {
        Ok(Some(policy)) => policy,
        Ok(None) => MemPolicy::DEFAULT,
        Err(errno) => {
            for _ in 0..4 {
                let _ = writeln!(session.warnings.err(), "get_mempolicy: {}", super::strerror(errno));
            }
            MemPolicy::DEFAULT
        }
    }
}

fn look(session: &mut Session<'_>, policy: MemPolicy, cpus: CpuSet) -> Shown {
    let tree = session.call.tree;
    let strict = session.call.settings.strict;
    let allowed = members::allowed_nodes(tree, session.kernel);
    let there = facts::nodes(tree).unwrap_or_default();
    // The originals count only nodes that memory may come from.
    let too_wide = strict && has_too_wide(session, &there);
    let candidates = if strict { there.intersection(&allowed) } else { there };
    let cpu_nodes = if too_wide { NodeSet::new() } else { session.node_cpus.nodes_with(&candidates, &cpus) };
    let interleaves = matches!(policy.mode, PolicyMode::Interleave | PolicyMode::WeightedInterleave);
    let weights = (policy.mode == PolicyMode::WeightedInterleave)
        .then(|| policy.nodes.iter().map(|id| facts::interleave_weight(tree, id).ok().flatten()).collect());
    Shown {
        next: if interleaves { session.kernel.next_interleaved().ok() } else { None },
        weights: weights.flatten(),
        cpu_nodes,
        memory: if is_bind(&policy, strict) { policy.nodes.clone() } else { allowed },
        policy,
        cpus,
    }
}

/// Whether the originals cannot read the CPUs of these nodes; reports it as they do.
fn has_too_wide(session: &mut Session<'_>, nodes: &NodeSet) -> bool {
    let tree = session.call.tree;
    let mut all = nodes.iter().filter_map(|node| session.node_cpus.cpus(node));
    let found = all.any(|cpus| members::is_too_wide(tree, &cpus));
    if found {
        session.warnings.warn(CPU_MASK, &[]);
    }
    found
}

/// Whether memory comes from the policy's nodes only. The originals do not know the mode when it has
/// a flag.
fn is_bind(policy: &MemPolicy, strict: bool) -> bool {
    policy.mode == PolicyMode::Bind && (!strict || policy.flags == ModeFlags::NONE)
}

/// The members with a blank behind each.
fn spaced<I: Id>(set: &IdSet<I>) -> String {
    set.iter().map(|id| format!("{id} ")).collect()
}

fn write(shown: &Shown, session: &mut Session<'_>) {
    let strict = session.call.settings.strict;
    let (name, preferred) = if strict { as_the_originals(shown) } else { plainly(shown) };
    complain_as_2_0_16(shown, session);
    let out = &mut *session.out;
    let _ = writeln!(out, "policy: {name}");
    let _ = write!(out, "preferred node: {preferred}");
    if let (Some(next), false) = (shown.next, name.starts_with('[')) {
        let _ = writeln!(out, "interleavemask: {}", spaced(&shown.policy.nodes));
        if let Some(weights) = &shown.weights {
            let weights: Vec<String> = weights.iter().map(ToString::to_string).collect();
            let _ = writeln!(out, "interleaveweights: {}", weights.join(" "));
        }
        let _ = writeln!(out, "interleavenode: {next}");
    }
    let _ = writeln!(out, "physcpubind: {}", spaced(&shown.cpus));
    let _ = writeln!(out, "cpubind: {}", spaced(&shown.cpu_nodes));
    let _ = writeln!(out, "nodebind: {}", spaced(&shown.cpu_nodes));
    let _ = writeln!(out, "membind: {}", spaced(&shown.memory));
    let _ = writeln!(out, "preferred: {}", spaced(&shown.policy.nodes));
}

/// The names that the originals know, with the line that says where the next page comes from.
/// Without such a line there is no line feed either.
fn as_the_originals(shown: &Shown) -> (String, String) {
    let policy = &shown.policy;
    if policy.flags != ModeFlags::NONE || policy.mode == PolicyMode::WeightedInterleave {
        return (format!("[{}]", policy.mode.number() | policy.flags.bits()), String::new());
    }
    let preferred = match policy.mode {
        PolicyMode::Local => String::new(),
        // The position in an interleaved set, which this mode has none of.
        PolicyMode::PreferredMany => "0 (preferred-many)\n".to_owned(),
        _ => plainly(shown).1,
    };
    (policy.mode.word().to_owned(), preferred)
}

fn plainly(shown: &Shown) -> (String, String) {
    let policy = &shown.policy;
    let name = if policy.flags == ModeFlags::NONE {
        policy.mode.word().to_owned()
    } else {
        format!("{} ({})", policy.mode.word(), policy.flags)
    };
    let first = || policy.nodes.first().map_or_else(|| "current".to_owned(), |first| first.to_string());
    let preferred = match policy.mode {
        PolicyMode::Default | PolicyMode::Local => "current".to_owned(),
        PolicyMode::Preferred | PolicyMode::Bind => first(),
        PolicyMode::PreferredMany => format!("{} (preferred-many)", first()),
        PolicyMode::Interleave | PolicyMode::WeightedInterleave => {
            let next = shown.next.map_or_else(|| "unknown".to_owned(), |next| next.to_string());
            format!("{next} (interleave next)")
        }
    };
    (name, format!("{preferred}\n"))
}

/// 2.0.16 takes more than one preferred node for an error and names one that happened earlier: its
/// probe of preferred-many, which asks for node 0.
fn complain_as_2_0_16(shown: &Shown, session: &mut Session<'_>) {
    let policy = &shown.policy;
    let known = policy.flags == ModeFlags::NONE
        && matches!(policy.mode, PolicyMode::Bind | PolicyMode::PreferredMany)
        && policy.nodes.len() > 1;
    if session.call.settings.release == Release::V2_0_16 && known {
        let allowed = members::allowed_nodes(session.call.tree, session.kernel);
        let errno = if allowed.contains(NodeId::new(0)) { "Success" } else { "Invalid argument" };
        let _ = writeln!(session.warnings.err(), "libnuma.c: {errno}");
    }
}

fn write_json(shown: &Shown, out: &mut dyn Write) {
    let nodes = |set: &NodeSet| set.iter().map(NodeId::number).collect::<Vec<_>>();
    let document = json!({
        "schema": "nodewise.numactl-show/1",
        "policy": shown.policy.mode.word(),
        "flags": (shown.policy.flags != ModeFlags::NONE).then(|| shown.policy.flags.to_string()),
        "policy_nodes": nodes(&shown.policy.nodes),
        "next_interleaved_node": shown.next.map(NodeId::number),
        "interleave_weights": shown.weights,
        "cpus": shown.cpus.iter().map(|cpu| cpu.number()).collect::<Vec<_>>(),
        "cpu_nodes": nodes(&shown.cpu_nodes),
        "memory_nodes": nodes(&shown.memory),
    });
    let _ = writeln!(out, "{document:#}");
}
