//! What differs between kernel releases, as data.
//!
//! The rules of this crate are those of Linux 6.12. A release before or after it follows other rules
//! where a [`Change`] says so; everything else was unchanged from 6.1 to at least 7.2.

use nodewise_machine::KernelRelease;

/// Something a kernel does since some release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The flag `MPOL_F_NUMA_BALANCING` with `MPOL_BIND`.
    BalancingBind,
    /// The mode `MPOL_PREFERRED_MANY`.
    PreferredMany,
    /// `set_mempolicy_home_node(2)`.
    HomeNode,
    /// The index that says whose turn an interleaved page is counts with all its bits; before, with the
    /// lower 32. Pages above 16 TiB, where programs have theirs, then fall to other nodes wherever the
    /// number of nodes is no power of two.
    WholeInterleaveIndex,
    /// The mode `MPOL_WEIGHTED_INTERLEAVE`, each node's weight 1 unless it is set.
    WeightedInterleave,
    /// The flag `MPOL_F_NUMA_BALANCING` with `MPOL_PREFERRED_MANY`.
    BalancingPreferredMany,
    /// Fake nodes have the distance of the nodes they are cut from, and list all their CPUs, on
    /// every architecture; before, only on x86-64.
    GenericEmulation,
    /// A huge page that is mapped in parts is split before the parts are moved; before, it moved as one and
    /// was one afterwards.
    PartsMoveApart,
    /// Where a huge page is split before its parts are moved, parts that hold nothing but zeros are given
    /// back, and read as zeros.
    ZerosDropped,
    /// A part of a huge page that was in common with a child and has been split is the writer's own again
    /// when nobody else has any of it; before, a write to it is a copy even then.
    PartsKept,
    /// Weights of weighted interleave are worked out from the nodes' bandwidths, a weight of 0 is
    /// refused, and only nodes with memory have one.
    AutomaticWeights,
    /// `interleave_hit` counts pages of weighted interleave too.
    WeightedInterleaveHits,
    /// Demotion refuses a node outside the cpuset of the pages' owner.
    DemotionKeepsCpuset,
    /// The first round of an allocation passes over nodes whose kswapd is running.
    BusyNodesPassedOver,
    /// `MPOL_F_NUMA_BALANCING` alone no longer makes the kernel keep the user's node set.
    BalancingKeepsNoSet,
}

impl Change {
    /// Every change, oldest first, with the release that brought it.
    pub const ALL: [(Self, u16, u16); 15] = [
        (Self::BalancingBind, 5, 12),
        (Self::PreferredMany, 5, 15),
        (Self::HomeNode, 5, 17),
        (Self::WholeInterleaveIndex, 6, 7),
        (Self::WeightedInterleave, 6, 9),
        (Self::BalancingPreferredMany, 6, 10),
        (Self::PartsMoveApart, 6, 10),
        (Self::GenericEmulation, 6, 12),
        (Self::ZerosDropped, 6, 12),
        (Self::PartsKept, 6, 15),
        (Self::AutomaticWeights, 6, 16),
        (Self::WeightedInterleaveHits, 6, 16),
        (Self::DemotionKeepsCpuset, 6, 16),
        (Self::BusyNodesPassedOver, 6, 18),
        (Self::BalancingKeepsNoSet, 7, 0),
    ];

    /// The release that brought it: major and minor number.
    pub fn since(self) -> (u16, u16) {
        let entry = Self::ALL.into_iter().find(|(change, ..)| *change == self);
        entry.map(|(_, major, minor)| (major, minor)).expect("every change is in the table")
    }
}

/// A kernel release as far as the model tells releases apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    major: u16,
    minor: u16,
}

impl Release {
    /// The release whose behaviour the rules of this crate state.
    pub const REFERENCE: Self = Self::new(6, 12);

    /// The release with these numbers.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// The release of a machine's kernel, or the reference where that is not known.
    pub fn of(kernel: Option<&KernelRelease>) -> Self {
        kernel.map_or(Self::REFERENCE, |kernel| {
            let (major, minor) = kernel.version();
            Self::new(major, minor)
        })
    }

    /// Whether this release has a change.
    pub fn has(self, change: Change) -> bool {
        (self.major, self.minor) >= change.since()
    }
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_of_release() {
        let releases: Vec<(u16, u16)> =
            Change::ALL.iter().map(|(_, major, minor)| (*major, *minor)).collect();
        assert!(releases.is_sorted(), "{releases:?}");
    }

    #[test]
    fn a_release_has_what_came_before_it() {
        let release = Release::of(KernelRelease::new("6.12.107+deb13-amd64").as_ref());
        assert!(release.has(Change::WeightedInterleave));
        assert!(!release.has(Change::AutomaticWeights));
        assert_eq!(Release::of(None), Release::REFERENCE);
        assert_eq!(release.to_string(), "6.12");
    }
}
