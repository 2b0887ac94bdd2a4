//! Commands that bring a running process to its placement at once, with the way back.

use std::collections::BTreeMap;

use nodewise_machine::placement::Placement;
use nodewise_machine::{Bytes, MemPolicy, NodeId, NodeSet, PolicyMode};

use super::profile::{Profile, total};
use crate::finding::{Mend, Owner, Scope};

/// A smaller part of the memory is not worth moving.
pub(super) const WORTH_MOVING: f64 = 0.01;

/// The commands; none where the owner takes back whatever others set, or a restart has to do it.
pub(super) fn at_once(profile: &Profile, placement: &Placement, pid: u32, owner: &Owner) -> Vec<Mend> {
    if !is_open(owner) {
        return Vec::new();
    }
    pages(profile, placement, pid).into_iter().chain(cpus(profile, placement, pid, owner)).collect()
}

/// Whether its owner leaves what others set.
pub(super) const fn is_open(owner: &Owner) -> bool {
    matches!(owner, Owner::Itself | Owner::Service(_) | Owner::Container(..))
}

/// The nodes that its pages have to leave, and how much that is; `None` where it is not worth the trouble.
pub(super) fn pages_away(memory: &BTreeMap<NodeId, Bytes>, nodes: &NodeSet) -> Option<(NodeSet, Bytes)> {
    let away = memory.iter().filter(|(node, size)| size.get() > 0 && !nodes.contains(**node));
    let (from, size) = away.fold((NodeSet::new(), 0_u64), |(mut from, sum), (node, size)| {
        from.insert(*node);
        (from, sum.saturating_add(size.get()))
    });
    (size as f64 > WORTH_MOVING * total(memory).get() as f64).then_some((from, Bytes::new(size)))
}

/// Moves pages to nodes that the process may use.
fn pages(profile: &Profile, placement: &Placement, pid: u32) -> Option<Mend> {
    let MemPolicy { mode, nodes, .. } = placement.policy.as_ref()?;
    let memory = profile.memory.value()?;
    let common = total(&profile.common);
    let shared = common.get() as f64 > WORTH_MOVING * total(memory).get() as f64;
    let with_shared = |mend: Mend| if shared { mend.with_shared_pages() } else { mend };
    let is_allowed = !nodes.is_empty() && nodes.is_subset(&profile.scope.memory_nodes);
    match mode {
        PolicyMode::Bind | PolicyMode::Preferred if is_allowed => {
            let (from, size) = pages_away(memory, nodes)?;
            let what = "move its pages there; the policy for new pages stays as it is";
            Some(with_shared(Mend::migrate(what, pid, Some(&from), &nodes.to_string(), size)))
        }
        PolicyMode::Interleave if is_allowed => {
            let what = "spread its pages; the policy for new pages stays as it is";
            let to = format!("interleave:{nodes}");
            Some(with_shared(Mend::migrate(what, pid, None, &to, total(memory))))
        }
        _ => None,
    }
}

/// Binds the threads of a process that no one else binds.
fn cpus(profile: &Profile, placement: &Placement, pid: u32, owner: &Owner) -> Option<Mend> {
    let (wanted, held) = (placement.cpus.as_ref()?, profile.cpus.value()?);
    if held.is_subset(wanted) || *owner != Owner::Itself {
        return None;
    }
    Some(Mend {
        commands: vec![format!("taskset -apc {wanted} {pid}")],
        needs_root: true,
        undo: vec![format!("taskset -apc {held} {pid}")],
        ..Mend::words("bind its threads to these CPUs", Scope::Now)
    })
}
