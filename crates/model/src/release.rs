//! The differences between kernel releases, as data.
//!
//! The rules of this crate are those of Linux 6.12. A release before or after it follows other rules
//! where a [`Change`] says so; everything else was unchanged from 6.1 to at least 7.2.

use nodewise_machine::KernelRelease;

/// Something a kernel does since some release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// All memory of POWER is in zone Normal; before, in zone DMA.
    PowerInNormal,
    /// The flag `MPOL_F_NUMA_BALANCING` with `MPOL_BIND`.
    BalancingBind,
    /// The mode `MPOL_PREFERRED_MANY`.
    PreferredMany,
    /// `set_mempolicy_home_node(2)`.
    HomeNode,
    /// Pages are reclaimed by the multi-generational list, in a kernel that is built so; before, by the older
    /// lists alone.
    GenerationsOfPages,
    /// The index that says whose turn an interleaved page is counts with all its bits; before, with the
    /// lower 32. Pages above 16 TiB, where programs have theirs, then fall to other nodes wherever the
    /// number of nodes is not a power of two.
    WholeInterleaveIndex,
    /// A page of a file that `mbind` moves takes the turn that a touch would give it, by inode and number; before, by
    /// its number in the file alone.
    MovedPagesCountInode,
    /// The order that the log names for a node without memory leaves that node out; before, it came first,
    /// though it has nothing to give.
    BareNodesLeftOut,
    /// Memory tiers follow from the latencies and bandwidths that the firmware declares; before, all memory
    /// of the firmware's is in one tier.
    TiersOfLatencies,
    /// A pass of balancing over a process comes to mappings that its thread has not used last, one in a scan; before, it scanned
    /// them in turn, and from 6.4 on not at all. Seen on 6.12 and 6.18; the release is that of the kernel's history.
    UnusedMappingsLast,
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
    /// `move_pages(2)` says `ENOENT` of a page of memory without a file that was never touched; before, `EFAULT`, as of the
    /// page of zeros (`follow_page` with `FOLL_DUMP`, then `folio_walk`, in `mm/migrate.c`).
    AbsentPagesNotFound,
    /// The number of pages that is written for one node's part of a pool is added to the pages of the others without
    /// their surplus; before, with it, so that the node got more. Debian's 6.12.117 has it, its 6.1 has not.
    NodeCountWithoutSurplus,
    /// A pool that is written smaller keeps as many pages as are reserved and in use, those in use without surplus ones
    /// where there are no more surplus ones than that; before, with them. Found by scripts on 6.18 that differ on 6.12; the
    /// source was not read.
    SurplusInUseNotKept,
    /// A page of a pool that `mbind` moved to a new one of its own node cannot be moved any more; before, it
    /// could. Seen on 6.18, on Debian's 6.1.176, and not on 6.12.117.
    ReplacedInPlaceStays,
    /// A part of a huge page that was in common with a child and has been split is the writer's own again
    /// when no one else has any of it; before, a write to it is a copy even then.
    PartsKept,
    /// Weights of weighted interleave are worked out from the nodes' bandwidths, a weight of 0 is
    /// refused, and only nodes with memory have one.
    AutomaticWeights,
    /// `interleave_hit` counts pages of weighted interleave too.
    WeightedInterleaveHits,
    /// Pages that are written to files of ext4 come in larger ones, of up to what one call writes, and each takes one turn of an
    /// interleaving policy; before, each page has one. Seen on 6.18, not on 6.12; the release is that of ext4's history. Other file systems
    /// have had such pages before.
    LargerPagesOfFiles,
    /// Pages are not demoted where the nodes that come first for them are all outside the cpuset of their
    /// owner; before, cpusets did not count at all. Where one of them is inside, the others still take pages.
    DemotionKeepsCpuset,
    /// The first round of an allocation passes over nodes whose kswapd is running.
    BusyNodesPassedOver,
    /// `MPOL_F_NUMA_BALANCING` alone no longer makes the kernel keep the user's node set.
    BalancingKeepsNoSet,
    /// CXL windows are kept apart from the memory of the SRAT: a window does not fill another, and RAM in one
    /// that no range of the SRAT covers has no node. (Kernels built without `CONFIG_CXL_ACPI` do not read
    /// windows at all.)
    WindowsKeptApart,
    /// Demotion takes no node outside the cpuset of the pages' owner.
    DemotionTargetsInCpuset,
    /// Balancing leaves out programs whose cpuset allows one node.
    OneNodeNotBalanced,
}

impl Change {
    /// Every change, oldest first, with the release that brought it.
    pub const ALL: [(Self, u16, u16); 29] = [
        (Self::PowerInNormal, 5, 0),
        (Self::BalancingBind, 5, 12),
        (Self::PreferredMany, 5, 15),
        (Self::HomeNode, 5, 17),
        (Self::GenerationsOfPages, 6, 1),
        (Self::WholeInterleaveIndex, 6, 7),
        (Self::MovedPagesCountInode, 6, 7),
        (Self::BareNodesLeftOut, 6, 7),
        (Self::TiersOfLatencies, 6, 7),
        (Self::UnusedMappingsLast, 6, 7),
        (Self::WeightedInterleave, 6, 9),
        (Self::BalancingPreferredMany, 6, 10),
        (Self::PartsMoveApart, 6, 10),
        (Self::GenericEmulation, 6, 12),
        (Self::ZerosDropped, 6, 12),
        (Self::AbsentPagesNotFound, 6, 12),
        (Self::NodeCountWithoutSurplus, 6, 12),
        (Self::ReplacedInPlaceStays, 6, 14),
        (Self::PartsKept, 6, 15),
        (Self::AutomaticWeights, 6, 16),
        (Self::WeightedInterleaveHits, 6, 16),
        (Self::LargerPagesOfFiles, 6, 16),
        (Self::DemotionKeepsCpuset, 6, 16),
        (Self::BusyNodesPassedOver, 6, 18),
        (Self::SurplusInUseNotKept, 6, 18),
        (Self::BalancingKeepsNoSet, 7, 0),
        (Self::WindowsKeptApart, 7, 0),
        (Self::DemotionTargetsInCpuset, 7, 0),
        (Self::OneNodeNotBalanced, 7, 0),
    ];

    /// Changes that a long-term release got with a later patch, as Debian's kernel of it shows; the releases between this one and
    /// the one in [`Change::ALL`] may lack them.
    const BACKPORTED: [(Self, u16, u16); 1] = [(Self::ReplacedInPlaceStays, 6, 1)];

    /// The release that brought it: major and minor number.
    pub fn since(self) -> (u16, u16) {
        let entry = Self::ALL.into_iter().find(|(change, ..)| *change == self);
        entry.map(|(_, major, minor)| (major, minor)).expect("every change is in the table")
    }
}

/// A kernel release as far as the model distinguishes releases.
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
    pub fn from_kernel(kernel: Option<&KernelRelease>) -> Self {
        kernel.map_or(Self::REFERENCE, |kernel| {
            let (major, minor) = kernel.version();
            Self::new(major, minor)
        })
    }

    /// Whether this release has a change.
    pub fn has(self, change: Change) -> bool {
        let Self { major, minor } = self;
        (major, minor) >= change.since() || Change::BACKPORTED.contains(&(change, major, minor))
    }
}

impl Default for Release {
    fn default() -> Self {
        Self::REFERENCE
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
    use std::path::Path;

    #[test]
    fn the_table_is_in_order_of_release() {
        let releases: Vec<(u16, u16)> =
            Change::ALL.iter().map(|(_, major, minor)| (*major, *minor)).collect();
        assert!(releases.is_sorted(), "{releases:?}");
    }

    #[test]
    fn a_release_has_what_came_before_it() {
        let release = Release::from_kernel(KernelRelease::new("6.12.107+deb13-amd64").as_ref());
        assert!(release.has(Change::WeightedInterleave));
        assert!(!release.has(Change::AutomaticWeights));
        assert_eq!(Release::from_kernel(None), Release::REFERENCE);
        assert_eq!(release.to_string(), "6.12");
    }

    #[test]
    fn a_patch_brings_a_change_to_its_own_release_alone() {
        let has = |minor| Release::new(6, minor).has(Change::ReplacedInPlaceStays);
        assert_eq!([0, 1, 2, 13, 14].map(has), [false, true, false, false, true]);
    }

    /// The sources of this crate beside this file, without what tests them.
    fn sources(folder: &Path, found: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.file_name().is_some_and(|name| name != "release.rs" && name != "tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push_str(text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default());
            }
        }
    }

    #[test]
    fn every_change_has_a_rule() {
        let mut text = String::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut text);
        let used = |change: &Change| text.contains(&format!("has(Change::{change:?})"));
        let idle: Vec<Change> =
            Change::ALL.map(|(change, ..)| change).into_iter().filter(|c| !used(c)).collect();
        assert_eq!(idle, []);
    }

    #[test]
    fn every_change_is_in_the_table() {
        // A variant that the table lacks has no release, and asking for one would panic.
        let source = include_str!("release.rs");
        let body = source.split_once("pub enum Change {").unwrap().1.split_once("\n}").unwrap().0;
        let variants = body.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        let variants: Vec<&str> = variants.filter_map(|line| line.strip_suffix(',')).collect();
        let mut listed: Vec<String> = Change::ALL.iter().map(|(change, ..)| format!("{change:?}")).collect();
        listed.sort();
        let mut variants: Vec<String> = variants.into_iter().map(str::to_owned).collect();
        variants.sort();
        assert_eq!(variants, listed);
    }
}
