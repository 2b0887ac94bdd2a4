//! Setting a policy: what the kernel checks, in which order, and what it keeps.
//!
//! # Source
//! `sanitize_mpol_flags`, `mpol_new`, `mpol_set_nodemask` and `mpol_rebind_policy` in
//! `mm/mempolicy.c`; 5.15 to at least 7.2 with the changes of [`Change`]. The answers were compared
//! with those of 6.12 and 6.18.

use nodewise_machine::{MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode};

use super::mask::Mask;
use crate::errno::Errno;
use crate::release::{Change, Release};

/// Where a policy is set: what the checks depend on.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// Nodes that the process may use and that have memory: its cpuset's, those with memory only.
    pub allowed: &'a NodeSet,
    /// Number of nodes that the kernel is built for (`MAX_NUMNODES`).
    pub max_nodes: u32,
    pub release: Release,
}

/// A policy as the kernel keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How nodes are chosen. `Default` where there is no policy.
    pub mode: PolicyMode,
    pub flags: ModeFlags,
    /// The nodes it works with.
    pub nodes: NodeSet,
    /// The nodes that were asked for, where a flag makes the kernel remember them.
    pub asked: Option<NodeSet>,
    /// The cpuset's nodes that `nodes` was last fitted to.
    pub fitted_to: NodeSet,
    /// Whose fallback order is walked instead of that of the CPU's node:
    /// `set_mempolicy_home_node(2)`.
    pub home: Option<NodeId>,
}

impl Policy {
    /// No policy: pages come from near the CPU.
    pub const DEFAULT: Self = Self {
        mode: PolicyMode::Default,
        flags: ModeFlags::NONE,
        nodes: NodeSet::new(),
        asked: None,
        fitted_to: NodeSet::new(),
        home: None,
    };

    /// A policy that a node alone can serve (`__GFP_THISNODE`).
    pub(crate) fn only(node: NodeId) -> Self {
        Self { mode: PolicyMode::Bind, nodes: NodeSet::from_iter([node]), ..Self::DEFAULT }
    }

    /// Makes a policy of a mode word (`mode | flags`) and a node mask, as `set_mempolicy(2)` and `mbind(2)`
    /// do.
    ///
    /// # Errors
    /// `EINVAL`, for all that this release refuses.
    pub fn set(word: u32, mask: &Mask, scope: Scope<'_>) -> Result<Self, Errno> {
        let mode = mode_of(word, scope.release)?;
        Self::made(mode, mask.read(scope.max_nodes)?, scope)
    }

    /// The outcome of a mode and nodes that were read: the checks behind those of all arguments.
    pub(crate) fn made(
        (mode, flags): (PolicyMode, ModeFlags),
        asked: NodeSet,
        scope: Scope<'_>,
    ) -> Result<Self, Errno> {
        let Some(mode) = mode_with_nodes(mode, flags, &asked)? else { return Ok(Self::DEFAULT) };
        let mut policy = Self {
            mode,
            flags,
            fitted_to: scope.allowed.clone(),
            asked: None,
            nodes: NodeSet::new(),
            home: None,
        };
        if mode == PolicyMode::Local {
            return Ok(policy);
        }
        policy.nodes = if flags.contains(ModeFlags::RELATIVE_NODES) {
            fold(&asked, scope.allowed)
        } else {
            asked.intersection(scope.allowed)
        };
        if mode == PolicyMode::Preferred {
            policy.nodes = policy.nodes.iter().take(1).collect();
        }
        if policy.nodes.is_empty() {
            return Err(Errno::Einval);
        }
        policy.asked = keeps_set(flags, scope.release).then_some(asked);
        Ok(policy)
    }

    /// The policy of a mode, flags and nodes.
    ///
    /// # Errors
    /// Those of [`Policy::set`].
    pub fn from_mem_policy(policy: &MemPolicy, scope: Scope<'_>) -> Result<Self, Errno> {
        let word = policy.mode.number() | policy.flags.bits();
        Self::set(u32::from(word), &Mask::from_nodes(&policy.nodes), scope)
    }

    /// This policy, or another where it is none.
    pub fn or<'a>(&'a self, other: &'a Self) -> &'a Self {
        if self.mode == PolicyMode::Default { other } else { self }
    }

    /// Gives it a home node that [`check_home`] has let through.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a mode that has none.
    pub fn set_home(&mut self, node: NodeId) -> Result<(), Errno> {
        if !self.mode.has_home() {
            return Err(Errno::Eopnotsupp);
        }
        self.home = Some(node);
        Ok(())
    }

    /// Returns the policy that `get_mempolicy(2)` shows: with flags the nodes that were asked for, else those
    /// it works with.
    pub fn reported(&self) -> MemPolicy {
        let nodes = self.asked.as_ref().unwrap_or(&self.nodes).clone();
        MemPolicy { mode: self.mode, flags: self.flags, nodes }
    }

    /// Returns [`Policy::reported`] as a program sees it in a mask that is wide enough: the kernel copies
    /// whole words, so nodes that were asked for are reported up to the next multiple of 64 of the nodes
    /// that can be (`nr_node_ids`), and not beyond. Seen on 6.12.
    pub fn reported_in_mask(&self, nr_node_ids: u32) -> MemPolicy {
        let mut policy = self.reported();
        let seen = |node: &NodeId| node.number() < nr_node_ids.next_multiple_of(64);
        policy.nodes = policy.nodes.iter().filter(seen).collect();
        policy
    }

    /// Returns the policy it works with, as the walk reads it.
    pub fn effective(&self) -> MemPolicy {
        MemPolicy { mode: self.mode, flags: self.flags, nodes: self.nodes.clone() }
    }

    /// Fits the policy to a cpuset that has changed its nodes. Policies of shared memory are left as
    /// they are, so this is not called for them.
    pub fn rebind(&mut self, allowed: &NodeSet) {
        if matches!(self.mode, PolicyMode::Default | PolicyMode::Local) {
            return;
        }
        if self.asked.is_none() && self.fitted_to == *allowed {
            return;
        }
        if matches!(self.mode, PolicyMode::Preferred | PolicyMode::PreferredMany) {
            // The nodes it works with stay; those that were asked for are overwritten anyway.
            self.asked = self.asked.is_some().then(|| allowed.clone());
            self.fitted_to = allowed.clone();
            return;
        }
        let asked = self.asked.as_ref().unwrap_or(&self.nodes);
        let nodes = if self.flags.contains(ModeFlags::STATIC_NODES) {
            asked.intersection(allowed)
        } else if self.flags.contains(ModeFlags::RELATIVE_NODES) {
            fold(asked, allowed)
        } else {
            // A kernel that keeps the nodes asked for because of MPOL_F_NUMA_BALANCING keeps them where
            // it otherwise keeps the cpuset's: it takes them for those, and puts the cpuset's there.
            let old = self.asked.as_ref().unwrap_or(&self.fitted_to);
            let nodes = remap(&self.nodes, old, allowed);
            self.asked = self.asked.is_some().then(|| allowed.clone());
            nodes
        };
        self.nodes = if nodes.is_empty() { allowed.clone() } else { nodes };
        self.fitted_to = allowed.clone();
    }
}

/// Whether `set_mempolicy_home_node(2)` takes a node, whatever the policies are.
///
/// # Errors
/// `ENOSYS` before 5.17, `EINVAL` for a missing node.
pub(crate) fn check_home(node: u64, online: &NodeSet, release: Release) -> Result<(), Errno> {
    if !release.has(Change::HomeNode) {
        return Err(Errno::Enosys);
    }
    let is_online = u32::try_from(node).is_ok_and(|node| online.contains(NodeId::new(node)));
    if is_online { Ok(()) } else { Err(Errno::Einval) }
}

/// Splits a mode word and checks the flags.
pub(crate) fn mode_of(word: u32, release: Release) -> Result<(PolicyMode, ModeFlags), Errno> {
    let flags = ModeFlags::from_bits((word & 0xffff) as u16);
    let number = u16::try_from(word & !u32::from(flags.bits())).map_err(|_| Errno::Einval)?;
    let mode = PolicyMode::from_number(number).ok_or(Errno::Einval)?;
    let known = match mode {
        PolicyMode::PreferredMany => release.has(Change::PreferredMany),
        PolicyMode::WeightedInterleave => release.has(Change::WeightedInterleave),
        _ => true,
    };
    let both = ModeFlags::STATIC_NODES.with(ModeFlags::RELATIVE_NODES);
    let balanced = match mode {
        PolicyMode::Bind => release.has(Change::BalancingBind),
        PolicyMode::PreferredMany => release.has(Change::BalancingPreferredMany),
        _ => false,
    };
    let fine = known && !flags.contains(both) && (balanced || !flags.contains(ModeFlags::NUMA_BALANCING));
    if fine { Ok((mode, flags)) } else { Err(Errno::Einval) }
}

/// Checks the nodes against the mode; `None` takes a policy away.
fn mode_with_nodes(mode: PolicyMode, flags: ModeFlags, nodes: &NodeSet) -> Result<Option<PolicyMode>, Errno> {
    let counts = flags.contains(ModeFlags::STATIC_NODES) || flags.contains(ModeFlags::RELATIVE_NODES);
    match (mode, nodes.is_empty()) {
        (PolicyMode::Default, true) => Ok(None),
        (PolicyMode::Preferred | PolicyMode::Local, true) if !counts => Ok(Some(PolicyMode::Local)),
        (PolicyMode::Default | PolicyMode::Local, false) | (_, true) => Err(Errno::Einval),
        (mode, false) => Ok(Some(mode)),
    }
}

fn keeps_set(flags: ModeFlags, release: Release) -> bool {
    let balancing = flags == ModeFlags::NUMA_BALANCING;
    flags != ModeFlags::NONE && !(balancing && release.has(Change::BalancingKeepsNoSet))
}

/// Positions in a set as nodes of it, around its end as often as needed.
fn fold(positions: &NodeSet, into: &NodeSet) -> NodeSet {
    let members: Vec<NodeId> = into.iter().collect();
    if members.is_empty() {
        return NodeSet::new();
    }
    positions.iter().map(|node| members[node.number() as usize % members.len()]).collect()
}

/// Each node that is the k-th of `old` becomes the k-th of `new`, around its end as often as needed;
/// nodes outside `old` stay.
///
/// # Source
/// `bitmap_remap`.
pub fn remap(nodes: &NodeSet, old: &NodeSet, new: &NodeSet) -> NodeSet {
    nodes.iter().map(|node| remap_one(node, old, new)).collect()
}

pub(crate) fn remap_one(node: NodeId, old: &NodeSet, new: &NodeSet) -> NodeId {
    let place = old.iter().position(|member| member == node);
    let into = new.len();
    place.filter(|_| into > 0).and_then(|place| new.nth(place % into)).unwrap_or(node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::mask::Bits;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn scope(allowed: &NodeSet, release: Release) -> Scope<'_> {
        Scope { allowed, max_nodes: 1024, release }
    }

    fn check_release(mode: PolicyMode, flags: ModeFlags, release: (u16, u16), expected: bool) {
        let allowed = NodeSet::from([0, 1]);
        let policy = MemPolicy { mode, flags, nodes: NodeSet::from([0]) };
        let result = Policy::from_mem_policy(&policy, scope(&allowed, Release::new(release.0, release.1)));
        assert_eq!(result.is_ok(), expected, "{policy} on {release:?}");
    }

    #[test]
    fn modes_and_flags_are_unknown_before_their_release() {
        check_release(PolicyMode::PreferredMany, ModeFlags::NONE, (5, 14), false);
        check_release(PolicyMode::PreferredMany, ModeFlags::NONE, (5, 15), true);
        check_release(PolicyMode::WeightedInterleave, ModeFlags::NONE, (6, 8), false);
        check_release(PolicyMode::WeightedInterleave, ModeFlags::NONE, (6, 9), true);
        check_release(PolicyMode::Bind, ModeFlags::NUMA_BALANCING, (5, 12), true);
        check_release(PolicyMode::PreferredMany, ModeFlags::NUMA_BALANCING, (6, 9), false);
        check_release(PolicyMode::PreferredMany, ModeFlags::NUMA_BALANCING, (6, 12), true);
    }

    #[test]
    fn balancing_alone_reports_the_nodes_asked_for_until_7_0() {
        let allowed = NodeSet::from([0, 1]);
        let asked = MemPolicy {
            mode: PolicyMode::Bind,
            flags: ModeFlags::NUMA_BALANCING,
            nodes: NodeSet::from([1, 7]),
        };
        let reported = |major, minor| {
            Policy::from_mem_policy(&asked, scope(&allowed, Release::new(major, minor)))
                .unwrap()
                .reported()
                .nodes
        };
        assert_eq!(reported(6, 12), NodeSet::from([1, 7]));
        assert_eq!(reported(7, 0), NodeSet::from([1]));
    }

    #[test]
    fn nodes_behind_the_last_word_are_not_told() {
        let allowed = NodeSet::from([0, 1, 2]);
        let asked: MemPolicy = "bind=relative:2,9,64".parse().unwrap();
        let policy = Policy::from_mem_policy(&asked, scope(&allowed, Release::REFERENCE)).unwrap();
        assert_eq!(policy.reported_in_mask(3).nodes, NodeSet::from([2, 9]));
        assert_eq!(policy.reported_in_mask(65).nodes, NodeSet::from([2, 9, 64]));
    }

    fn check_rebind(mode: PolicyMode, flags: ModeFlags, steps: &[(NodeSet, NodeSet)]) {
        let all = NodeSet::from([0, 1, 2, 3]);
        let asked = MemPolicy { mode, flags, nodes: NodeSet::from([0, 2]) };
        let mut policy = Policy::from_mem_policy(&asked, scope(&all, Release::REFERENCE)).unwrap();
        for (allowed, expected) in steps {
            policy.rebind(allowed);
            assert_eq!(policy.nodes, *expected, "{asked} in {allowed}");
        }
    }

    // Worked out from the rules, which were seen on 6.12; these steps themselves were not recorded.

    #[test]
    fn plain_policies_move_with_the_cpuset_and_forget_on_the_way() {
        let steps =
            [(NodeSet::from([1, 2]), NodeSet::from([1])), (NodeSet::from([0, 1, 2, 3]), NodeSet::from([0]))];
        // 0 is the first of 0-3 and 2 the third: of two nodes both become the first.
        check_rebind(PolicyMode::Bind, ModeFlags::NONE, &steps);
        check_rebind(PolicyMode::Interleave, ModeFlags::NONE, &steps);
    }

    #[test]
    fn static_sets_stay_where_they_are() {
        check_rebind(
            PolicyMode::Bind,
            ModeFlags::STATIC_NODES,
            &[
                (NodeSet::from([1, 2]), NodeSet::from([2])),
                (NodeSet::from([1, 3]), NodeSet::from([1, 3])),
                (NodeSet::from([0, 1, 2, 3]), NodeSet::from([0, 2])),
            ],
        );
    }

    #[test]
    fn relative_sets_count_in_the_cpuset() {
        check_rebind(
            PolicyMode::Interleave,
            ModeFlags::RELATIVE_NODES,
            &[(NodeSet::from([1, 2]), NodeSet::from([1])), (NodeSet::from([1, 2, 3]), NodeSet::from([1, 3]))],
        );
    }

    #[test]
    fn nodes_kept_for_balancing_are_taken_for_those_of_the_cpuset() {
        // Found by a drawn script on 6.12.
        let all = NodeSet::from([0, 1, 2]);
        let asked = MemPolicy {
            mode: PolicyMode::Bind,
            flags: ModeFlags::NUMA_BALANCING,
            nodes: NodeSet::from([1, 2]),
        };
        let mut policy = Policy::from_mem_policy(&asked, scope(&all, Release::REFERENCE)).unwrap();
        policy.rebind(&NodeSet::from([0, 2]));
        assert_eq!((policy.reported().nodes, policy.nodes), (NodeSet::from([0, 2]), NodeSet::from([0, 2])));
        let mut later = Policy::from_mem_policy(&asked, scope(&all, Release::new(7, 0))).unwrap();
        later.rebind(&NodeSet::from([0, 2]));
        assert_eq!(later.nodes, NodeSet::from([0, 2]));
        assert_eq!(later.asked, None);
    }

    #[test]
    fn a_preferred_policy_forgets_the_nodes_that_were_asked_for() {
        // Found by a drawn script on 6.12.
        let all = NodeSet::from([0, 1, 2, 3]);
        let asked: MemPolicy = "prefer=static:0-1,3".parse().unwrap();
        let mut policy = Policy::from_mem_policy(&asked, scope(&all, Release::REFERENCE)).unwrap();
        policy.rebind(&NodeSet::from([0, 2]));
        assert_eq!((policy.reported().nodes, policy.nodes), (NodeSet::from([0, 2]), NodeSet::from([0])));
    }

    #[test]
    fn preferred_nodes_may_lie_outside_the_cpuset() {
        check_rebind(
            PolicyMode::PreferredMany,
            ModeFlags::NONE,
            &[(NodeSet::from([1]), NodeSet::from([0, 2]))],
        );
        check_rebind(PolicyMode::Preferred, ModeFlags::NONE, &[(NodeSet::from([1]), NodeSet::from([0]))]);
    }

    proptest! {
        #[test]
        fn what_is_accepted_works_inside_what_is_allowed(
            word in any::<u32>(),
            small in 0u32..8,
            flags in 0u32..8,
            nodes in proptest::collection::vec(0u32..1100, 0..6),
            allowed in proptest::collection::vec(0u32..1024, 0..6),
            other in proptest::collection::vec(0u32..1024, 1..6),
            maxnode in any::<u64>(),
        ) {
            let set = |numbers: &[u32]| numbers.iter().copied().map(NodeId::new).collect::<NodeSet>();
            let (nodes, allowed, other) = (set(&nodes), set(&allowed), set(&other));
            let scope = scope(&allowed, Release::REFERENCE);
            let _ = Policy::set(word, &Mask { bits: Bits::Of(nodes.clone()), maxnode }, scope);
            if let Ok(mut policy) = Policy::set(small | flags << 13, &Mask::from_nodes(&nodes), scope) {
                prop_assert!(policy.nodes.is_subset(&allowed));
                let empty = matches!(policy.mode, PolicyMode::Default | PolicyMode::Local);
                prop_assert_eq!(policy.nodes.is_empty(), empty);
                policy.rebind(&other);
                prop_assert_eq!(policy.nodes.is_empty(), empty);
            }
        }
    }
}
