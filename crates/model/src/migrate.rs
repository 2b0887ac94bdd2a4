//! Moving pages that are there: `migrate_pages(2)`, `move_pages(2)`, and `mbind(2)` with its flags.
//!
//! # Source
//! `do_migrate_pages`, `kernel_migrate_pages`, `do_mbind` and `queue_pages_range` in
//! `mm/mempolicy.c`, `do_pages_move` in `mm/migrate.c`; 6.8 to at least 7.2. Seen on 6.12 and 6.18.

use nodewise_machine::{MemPolicy, NodeId, NodeSet, PolicyMode};

use crate::errno::Errno;
use crate::policy::set::remap_one;
use crate::release::{Change, Release};

/// The moves that `migrate_pages(2)` makes one after the other: all pages of the first node go to
/// the second.
///
/// A node goes to the one with its position in the other set. Moves whose target is itself yet to be
/// emptied come later, so that pages are not moved twice where that can be avoided.
pub fn moves(old: &NodeSet, new: &NodeSet) -> Vec<(NodeId, NodeId)> {
    let mut moves = Vec::new();
    let mut todo = old.clone();
    while let Some((from, to)) = next_move(&todo, old, new) {
        moves.push((from, to));
        todo.remove(from);
    }
    moves
}

/// The status in `move_pages(2)` of a page that was never touched.
///
/// # Source
/// `do_pages_stat_array` and `add_page_for_migration` in `mm/migrate.c`: `follow_page` with `FOLL_DUMP`, then `folio_walk`.
pub fn untouched_page(has_file: bool, release: Release) -> Errno {
    if has_file || release.has(Change::AbsentPagesNotFound) { Errno::Enoent } else { Errno::Efault }
}

fn next_move(todo: &NodeSet, old: &NodeSet, new: &NodeSet) -> Option<(NodeId, NodeId)> {
    let mut found = None;
    for from in todo {
        if old.len() != new.len() && new.contains(from) {
            continue;
        }
        let to = remap_one(from, old, new);
        if to == from {
            continue;
        }
        found = Some((from, to));
        if !todo.contains(to) {
            break;
        }
    }
    found
}

/// Checks the nodes that `migrate_pages(2)` is to move to. `allowed` are the caller's memory nodes.
///
/// # Errors
/// `EINVAL` when none of them is allowed.
pub fn check_migration(new: &NodeSet, allowed: &NodeSet) -> Result<(), Errno> {
    if new.is_disjoint(allowed) { Err(Errno::Einval) } else { Ok(()) }
}

/// Checks a node that `move_pages(2)` is to move a page to. `with_memory` are the nodes that have
/// memory, `allowed` those of the cpuset of the process whose page it is.
///
/// # Errors
/// `ENODEV` for a node that does not exist or has no memory, `EACCES` for one outside the cpuset.
pub fn check_move(node: NodeId, with_memory: &NodeSet, allowed: &NodeSet) -> Result<(), Errno> {
    match (with_memory.contains(node), allowed.contains(node)) {
        (false, _) => Err(Errno::Enodev),
        (true, false) => Err(Errno::Eacces),
        (true, true) => Ok(()),
    }
}

/// The treatment by `mbind(2)` of pages that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Present {
    Stay,
    /// `MPOL_MF_STRICT`: refuse if one lies outside the nodes.
    Refuse,
    /// `MPOL_MF_MOVE` or `MPOL_MF_MOVE_ALL`: those outside the nodes move.
    Move,
}

/// Sets a policy on pages that are there: changes their nodes as `mbind(2)` does. `target` gives the
/// node that a page would come from under the new policy, by its place in `pages`.
///
/// Only the node set counts, and it is that of the call, before flags or a cpuset make another of it:
/// interleaved pages inside the set are not sorted, and under `MPOL_F_RELATIVE_NODES` a page may have
/// to leave a node that its new policy would choose again. A policy is taken away by one without
/// nodes, so then every page moves.
///
/// # Errors
/// `EIO`, when a page lies outside and [`Present::Refuse`] is asked for; nothing is changed then, the
/// policy neither.
pub fn mbind(
    pages: &mut [NodeId],
    policy: &MemPolicy,
    present: Present,
    mut target: impl FnMut(usize) -> NodeId,
) -> Result<(), Errno> {
    let outside = |node: NodeId| !policy.nodes.contains(node);
    match present {
        Present::Stay => {}
        Present::Refuse => {
            if policy.mode != PolicyMode::Default && pages.iter().any(|node| outside(*node)) {
                return Err(Errno::Eio);
            }
        }
        Present::Move => {
            for (at, node) in pages.iter_mut().enumerate().filter(|(_, node)| outside(**node)) {
                *node = target(at);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, proptest};

    #[test]
    fn an_untouched_page_without_a_file_is_not_found_since_6_12() {
        let status = |has_file, minor| untouched_page(has_file, Release::new(6, minor));
        assert_eq!([status(false, 11), status(false, 12)], [Errno::Efault, Errno::Enoent]);
        assert_eq!([status(true, 11), status(true, 12)], [Errno::Enoent; 2]);
    }

    #[test]
    fn sets_have_no_order_so_nothing_is_swapped() {
        assert_eq!(moves(&NodeSet::from([0, 1]), &NodeSet::from([1, 0])), []);
        assert_eq!(moves(&NodeSet::new(), &NodeSet::from([0])), []);
    }

    #[test]
    fn a_target_is_emptied_before_it_is_filled() {
        let pairs: Vec<(u32, u32)> = moves(&NodeSet::from([0, 1, 2]), &NodeSet::from([1, 2, 3]))
            .iter()
            .map(|(from, to)| (from.number(), to.number()))
            .collect();
        assert_eq!(pairs, [(2, 3), (1, 2), (0, 1)]);
    }

    proptest! {
        #[test]
        fn pages_of_the_old_set_end_in_the_new_one(
            old in proptest::collection::vec(0u32..12, 0..8),
            new in proptest::collection::vec(0u32..12, 1..8),
        ) {
            let set = |numbers: &[u32]| numbers.iter().copied().map(NodeId::new).collect::<NodeSet>();
            let (old, new) = (set(&old), set(&new));
            let moves = moves(&old, &new);
            prop_assert!(moves.len() <= old.len());
            for node in &old {
                let end = moves.iter().fold(node, |at, (from, to)| if at == *from { *to } else { at });
                prop_assert!(new.contains(end));
            }
        }
    }
}
