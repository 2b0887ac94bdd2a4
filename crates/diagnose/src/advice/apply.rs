//! The part of a placement that a running process can be given, and given back: its pages and the CPUs of its threads.

use nodewise_machine::placement::Placement;
use nodewise_machine::{Bytes, MemPolicy, NodeSet, PolicyMode};

use super::now::{is_open, pages_away};
use super::profile::{Profile, total};
use crate::balance::{Means, PageMove, Spread};
use crate::finding::Owner;

/// The undoable part of an advice.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Undoable {
    /// Pages to move and CPUs to set: empty where nothing has to be, or nothing can.
    pub means: Means,
    /// The part of its memory that is elsewhere, from 0 to 1.
    pub elsewhere: f64,
    /// The rest, each with the reason.
    pub left: Vec<String>,
}

/// Pages that can be moved here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MovablePages {
    /// Those that no other process maps.
    Own,
    /// Those of shared segments, too, which needs `CAP_SYS_NICE`.
    WithShared,
}

/// Takes a placement apart.
pub(super) fn undoable(
    profile: &Profile,
    placements: &[Placement],
    owner: &Owner,
    movable: MovablePages,
) -> Undoable {
    let mut undoable = Undoable::default();
    let placement = match placements {
        [] => return undoable,
        [placement] => placement,
        several => {
            let instances = several.len();
            undoable.left.push(format!("{instances} instances: a running process does not become several"));
            return undoable;
        }
    };
    if !is_open(owner) {
        let who = match owner {
            Owner::Kubelet => "the kubelet",
            Owner::Slurm => "Slurm",
            _ => "libvirt",
        };
        undoable.left.push(format!("{who} places it, and takes back what others set"));
        return undoable;
    }
    pages(profile, placement, movable, &mut undoable);
    cpus(profile, placement, &mut undoable);
    if let Some(policy) = placement.policy.as_ref().filter(|policy| !is_held(profile, policy)) {
        undoable.left.push(format!(
            "its memory policy ({policy}): only the program can set its own, so that pages it touches later follow the \
             one that it has"
        ));
    }
    undoable
}

fn is_held(profile: &Profile, policy: &MemPolicy) -> bool {
    profile.policy.value().is_some_and(|held| held.as_ref() == Some(policy))
}

fn pages(profile: &Profile, placement: &Placement, movable: MovablePages, undoable: &mut Undoable) {
    let Some(policy) = &placement.policy else { return };
    let memory = match movable {
        MovablePages::Own => profile.own_memory(),
        MovablePages::WithShared => profile.memory.value().cloned(),
    };
    let Some(memory) = memory else {
        undoable.left.push("its pages: where they are is not known".to_owned());
        return;
    };
    let nodes = &policy.nodes;
    if nodes.is_empty() {
        return;
    }
    let outside = nodes.difference(&profile.scope.memory_nodes);
    if !outside.is_empty() {
        undoable.left.push(format!("its pages: node {outside} is outside of its cpuset"));
        return;
    }
    let common = total(&profile.common);
    if movable == MovablePages::Own && common.get() > 0 {
        undoable.left.push(format!(
            "{common} that it shares with other processes: moving them needs CAP_SYS_NICE and CAP_SYS_PTRACE"
        ));
    }
    let all = total(&memory).get().max(1);
    match policy.mode {
        PolicyMode::Bind | PolicyMode::Preferred => {
            let Some((from, size)) = pages_away(&memory, nodes) else { return };
            undoable.elsewhere = size.get() as f64 / all as f64;
            let moves = from.iter().zip(nodes.iter().cycle());
            let moves = moves.map(|(from, to)| PageMove { from, to, size: memory[&from] });
            undoable.means.pages = moves.collect();
        }
        PolicyMode::Interleave => {
            let part = all / nodes.len() as u64;
            let stays =
                |(node, size): (&_, &Bytes)| if nodes.contains(*node) { size.get().min(part) } else { 0 };
            let size = Bytes::new(total(&memory).get() - memory.iter().map(stays).sum::<u64>());
            let from: NodeSet =
                memory.iter().filter(|(_, size)| size.get() > 0).map(|(node, _)| *node).collect();
            undoable.elsewhere = size.get() as f64 / all as f64;
            if undoable.elsewhere > super::now::WORTH_MOVING {
                undoable.means.spread = Some(Spread { from, over: nodes.clone(), size });
            }
        }
        PolicyMode::WeightedInterleave | PolicyMode::PreferredMany => {
            undoable.left.push(format!("its pages: {policy} is up to the kernel as pages are touched"));
        }
        PolicyMode::Local | PolicyMode::Default => {}
    }
}

fn cpus(profile: &Profile, placement: &Placement, undoable: &mut Undoable) {
    let Some(wanted) = &placement.cpus else { return };
    match profile.cpus.value() {
        None => undoable.left.push("CPUs of its threads: those that it has are not known".to_owned()),
        Some(held) if held.is_subset(wanted) => {}
        Some(_) => {
            let is_of = |node: &_| !profile.scope.cpus_of(*node).is_disjoint(wanted);
            let nodes = profile.nodes.keys().copied().filter(is_of).collect();
            undoable.means.cpus = Some((wanted.clone(), nodes));
        }
    }
}
