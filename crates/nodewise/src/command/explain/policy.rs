//! A policy as it is typed: `bind=static:0-1`.

use nodewise_machine::expr::{Devices, Scope as ExprScope, SetExpr};
use nodewise_machine::nearest::nearest;
use nodewise_machine::printable::quote;
use nodewise_machine::{
    DeviceRef, KernelRelease, Machine, MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode,
};
use nodewise_model::ram::Architecture;
use nodewise_model::{Policy, Release, Scope};
use nodewise_syscall::{Call, CallError, Circumstances, Errno, Limit};

use crate::failure::Failure;
use crate::input::Input;

/// The handling of nodes of a policy that cannot be used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unusable {
    /// As in a call: the kernel leaves them out.
    LeftOut,
    /// They are taken for a slip.
    Refused,
}

/// The policy that was typed, as the kernel would keep it, and the nodes that it leaves out without a word.
pub(super) fn read(
    text: &str,
    input: &Input,
    allowed: &NodeSet,
    release: Release,
) -> Result<(Policy, NodeSet), String> {
    let policy = read_with(text, input, allowed, Unusable::LeftOut)?;
    let max_nodes = Architecture::from_machine(&input.machine).max_nodes();
    let is_kept =
        policy.flags.contains(ModeFlags::STATIC_NODES) || policy.flags.contains(ModeFlags::RELATIVE_NODES);
    let left_out = if is_kept { NodeSet::new() } else { policy.nodes.difference(allowed) };
    let made = Policy::from_mem_policy(&policy, Scope { allowed, max_nodes, release });
    made.map(|made| (made, left_out)).map_err(|errno| {
        let why = if policy.nodes.last().is_some_and(|node| node.number() >= max_nodes) {
            Some(format!("kernels of this architecture are built for nodes 0-{}", max_nodes - 1))
        } else {
            why(&policy, &input.machine, allowed, release)
        };
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        format!("{policy}: Linux {release} answers {errno}{why}")
    })
}

/// A policy of a process, as the kernel keeps it.
pub(super) fn kept(
    policy: &MemPolicy,
    input: &Input,
    allowed: &NodeSet,
    release: Release,
) -> Result<Policy, Failure> {
    let max_nodes = Architecture::from_machine(&input.machine).max_nodes();
    Policy::from_mem_policy(policy, Scope { allowed, max_nodes, release }).map_err(|errno| {
        Failure::cannot(format_args!(
            "{policy}: Linux {release} answers {errno} where its cpuset allows nodes {allowed}"
        ))
    })
}

/// Why a kernel refuses a policy on a machine.
fn why(policy: &MemPolicy, machine: &Machine, allowed: &NodeSet, release: Release) -> Option<String> {
    let circumstances = Circumstances {
        release: KernelRelease::new(&release.to_string()),
        online_nodes: Some(machine.node_ids()),
        memory_nodes: Some(machine.memory_nodes()),
        allowed_nodes: Some(allowed.clone()),
        ..Circumstances::default()
    };
    let refused = CallError::new(Call::SetMempolicy { policy: policy.clone() }, Errno::EINVAL);
    let explanation = nodewise_syscall::explain(&refused, &circumstances);
    Some(explanation.cause).filter(|_| explanation.limit != Limit::Unknown)
}

/// A policy that is typed: `bind=static:0-1`.
pub(in crate::command) fn parse(text: &str, input: &Input, allowed: &NodeSet) -> Result<MemPolicy, String> {
    read_with(text, input, allowed, Unusable::Refused)
}

/// numactl's words for modes, where they are not the kernel's or ours.
const NUMACTLS: [(&str, PolicyMode); 2] = [("membind", PolicyMode::Bind), ("localalloc", PolicyMode::Local)];

fn read_with(text: &str, input: &Input, allowed: &NodeSet, unusable: Unusable) -> Result<MemPolicy, String> {
    let (head, nodes) = text.split_once(':').map_or((text, None), |(head, nodes)| (head, Some(nodes)));
    let (word, flags) = head.split_once('=').map_or((head, None), |(word, flags)| (word, Some(flags)));
    let named = |mode: &PolicyMode| mode.word() == word || mode.kernel_word() == word;
    let numactls = || NUMACTLS.into_iter().find(|(own, _)| *own == word).map(|(_, mode)| mode);
    let mode = PolicyMode::ALL.into_iter().find(named).or_else(numactls).ok_or_else(|| {
        let words = PolicyMode::ALL.map(PolicyMode::word);
        let expected = format!("expected one of {}, with nodes as in bind:0-1", words.join(", "));
        match nearest(word, words) {
            Some(meant) => {
                format!("{} is not a memory policy: did you mean {meant}? ({expected})", quote(text))
            }
            None => format!("{} is not a memory policy: {expected}", quote(text)),
        }
    })?;
    // The flags have one reader, that of whole policies.
    let flags = flags.map_or(Ok(ModeFlags::NONE), |flags| {
        format!("{}={flags}", mode.kernel_word()).parse().map(|policy: MemPolicy| policy.flags)
    });
    let flags = flags.map_err(|_| {
        let expected = "expected static, relative or balancing after \"=\", several joined with \"|\"";
        format!("{}: {expected} as in bind=static|balancing:0", quote(text))
    })?;
    let nodes = match nodes {
        None => NodeSet::new(),
        Some(nodes) => nodes_of(nodes, flags, input, allowed, unusable)?,
    };
    // The kernel takes "preferred" without a node for "local"; with a flag it answers EINVAL.
    if mode == PolicyMode::Preferred && nodes.is_empty() {
        return Ok(MemPolicy { mode, flags, nodes });
    }
    let takes_nodes = !matches!(mode, PolicyMode::Default | PolicyMode::Local);
    match (takes_nodes, nodes.is_empty()) {
        (true, true) => Err(format!("{}: {mode} needs nodes, as in {mode}:{allowed}", quote(text))),
        (false, false) => Err(format!("{}: {mode} takes no nodes", quote(text))),
        _ => Ok(MemPolicy { mode, flags, nodes }),
    }
}

/// The nodes of a policy. Static and relative ones need not be there: the first wait for nodes to come,
/// the others are places in what is allowed.
fn nodes_of(
    text: &str,
    flags: ModeFlags,
    input: &Input,
    allowed: &NodeSet,
    unusable: Unusable,
) -> Result<NodeSet, String> {
    let is_free = unusable == Unusable::LeftOut
        || flags.contains(ModeFlags::STATIC_NODES)
        || flags.contains(ModeFlags::RELATIVE_NODES);
    match text.parse() {
        Ok(nodes) if is_free => Ok(nodes),
        _ => node_set(text, input, allowed),
    }
}

/// Nodes that are typed, as far as their memory can be used.
pub(in crate::command) fn node_set(text: &str, input: &Input, allowed: &NodeSet) -> Result<NodeSet, String> {
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
