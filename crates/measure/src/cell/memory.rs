//! Memory that is proven to be on the node its cell names.

use nodewise_machine::{Bytes, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_syscall::{NodeBuffer, PageCounts, PageKind};

use super::{Facts, Phase, Refusal};

/// Memory that a node must have left when that of a cell is taken: it is not ours alone, and page
/// tables need some too.
const LEFT_FREE: Bytes = Bytes::from_mib(32);

/// The least part of a buffer that must be in transparent huge pages for it to count as huge.
const HUGE_ENOUGH: f64 = 0.95;

/// Where the pages of a buffer were, by the kernel's own account.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Placed {
    /// Pages on the node they should be on.
    pub on_node: u64,
    /// All pages that were asked for.
    pub pages: u64,
    /// Other nodes that have some.
    pub elsewhere: NodeSet,
    /// How much is in huge pages, of a pool or transparent; `None` where that is unknown.
    pub huge: Option<Bytes>,
}

impl Placed {
    /// Evaluates the counts of a buffer for one node.
    pub fn from_counts(counts: &PageCounts, node: NodeId, huge: Option<Bytes>) -> Self {
        let elsewhere = counts.node_set().difference(&NodeSet::from([node.number()]));
        Self { on_node: counts.on(node), pages: counts.total(), elsewhere, huge }
    }

    /// Whether every page is where it should be.
    pub fn is_full(&self) -> bool {
        self.pages > 0 && self.on_node == self.pages
    }

    /// The share of the pages that are, of 1; `None` without pages.
    pub fn share(&self) -> Option<f64> {
        (self.pages > 0).then(|| self.on_node as f64 / self.pages as f64)
    }

    /// The one of which a smaller share is in place: what a summary of several must show.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        // Shares as fractions, compared without rounding.
        let (own, others) = (
            u128::from(self.on_node) * u128::from(other.pages),
            u128::from(other.on_node) * u128::from(self.pages),
        );
        if others < own { other } else { self }
    }
}

/// A buffer whose pages are all on one node.
#[derive(Debug)]
pub struct PlacedMemory {
    buffer: NodeBuffer,
    node: NodeId,
}

impl PlacedMemory {
    /// Makes a buffer on a node, touches all of it, and asks the kernel where its pages are.
    ///
    /// # Errors
    /// Before anything is taken: where the node may not be used, or has too little memory or too few
    /// huge pages. Afterwards: what the calls are refused with, pages that came elsewhere, and an end of
    /// the measurement meanwhile.
    pub fn new(size: Bytes, node: NodeId, pages: PageKind, facts: &mut dyn Facts) -> Result<Self, Refusal> {
        check_room(size, node, pages, facts)?;
        let policy = MemPolicy::new(PolicyMode::Bind, NodeSet::from([node.number()]));
        facts.enter(Phase::Filling { size, node });
        let mut buffer = NodeBuffer::reserve(size, pages, Some(&policy))?;
        if !buffer.prefault_while(&mut || facts.go_on().is_ok())? {
            return Err(Refusal::Stopped);
        }
        let placed = locate(&buffer, node, facts)?;
        if !placed.is_full() {
            return Err(Refusal::Elsewhere { node, on_node: placed.on_node, pages: placed.pages });
        }
        match placed.huge {
            Some(got) if pages == PageKind::TransparentHuge && !is_huge(got, size) => {
                Err(Refusal::NotHuge { got, wanted: size })
            }
            _ => Ok(Self { buffer, node }),
        }
    }

    /// Where its pages are now.
    ///
    /// # Errors
    /// A refused `move_pages(2)`.
    pub fn now(&self, facts: &mut dyn Facts) -> Result<Placed, Refusal> {
        locate(&self.buffer, self.node, facts)
    }

    /// The node.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The memory; its owner then has to [locate] its pages.
    pub fn into_buffer(self) -> NodeBuffer {
        self.buffer
    }

    /// The memory.
    pub fn buffer(&self) -> &NodeBuffer {
        &self.buffer
    }

    /// The memory, to write.
    pub fn buffer_mut(&mut self) -> &mut NodeBuffer {
        &mut self.buffer
    }
}

fn is_huge(got: Bytes, size: Bytes) -> bool {
    got.get() as f64 >= HUGE_ENOUGH * size.get() as f64
}

/// Where the pages of a buffer are now, as seen by the one who wants them on a node.
///
/// # Errors
/// A refused `move_pages(2)`, and an end of the measurement meanwhile.
pub fn locate(buffer: &NodeBuffer, node: NodeId, facts: &mut dyn Facts) -> Result<Placed, Refusal> {
    facts.enter(Phase::Locating { node });
    let counts = buffer.locations_while(&mut || facts.go_on().is_ok())?.ok_or(Refusal::Stopped)?;
    let huge = match buffer.kind() {
        PageKind::Hugetlb(_) => Some(buffer.length()),
        PageKind::Small | PageKind::TransparentHuge => {
            facts.transparent_huge(buffer.address(), buffer.length())
        }
    };
    Ok(Placed::from_counts(&counts, node, huge))
}

/// Whether the node can give so much, and may. What is not known is not an obstacle.
///
/// # Errors
/// The refusal, with its figures.
pub fn check_room(size: Bytes, node: NodeId, pages: PageKind, facts: &mut dyn Facts) -> Result<(), Refusal> {
    if let Some(allowed) = facts.allowed_nodes().filter(|allowed| !allowed.contains(node)) {
        return Err(Refusal::forbidden(node, &allowed));
    }
    if let PageKind::Hugetlb(huge) = pages {
        let needed = size.get().div_ceil(huge.bytes().get());
        let free = facts.free_huge_pages(node, huge);
        return match free.and_then(|free| Refusal::of_pool(node, pages, free, needed)) {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        };
    }
    let needed = size + LEFT_FREE;
    if let Some(available) = facts.available(node).filter(|available| *available < needed) {
        return Err(Refusal::TooLittleMemory { node, available, needed });
    }
    match facts.below_limit().filter(|available| *available < needed) {
        Some(available) => Err(Refusal::NearLimit { available, needed }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Glance;
    use nodewise_syscall::HugePageSize;

    /// Facts as a test sets them.
    #[derive(Default)]
    struct Stated {
        allowed: Option<NodeSet>,
        available: Option<Bytes>,
        below_limit: Option<Bytes>,
        free_huge_pages: Option<u64>,
    }

    impl Facts for Stated {
        fn allowed_nodes(&self) -> Option<NodeSet> {
            self.allowed.clone()
        }
        fn available(&mut self, _: NodeId) -> Option<Bytes> {
            self.available
        }
        fn below_limit(&mut self) -> Option<Bytes> {
            self.below_limit
        }
        fn free_huge_pages(&mut self, _: NodeId, _: HugePageSize) -> Option<u64> {
            self.free_huge_pages
        }
        fn transparent_huge(&mut self, _: usize, _: Bytes) -> Option<Bytes> {
            None
        }
        fn glance(&mut self) -> Glance {
            Glance::default()
        }
    }

    const NODE: NodeId = NodeId::new(0);

    fn check(mut facts: Stated, pages: PageKind, expected: Option<&str>) {
        let refused = check_room(Bytes::from_mib(64), NODE, pages, &mut facts).err();
        assert_eq!(refused.map(|refusal| refusal.to_string()).as_deref(), expected);
    }

    #[test]
    fn a_node_is_refused_before_anything_is_taken_of_it() {
        let small = PageKind::Small;
        check(Stated::default(), small, None);
        check(Stated { available: Some(Bytes::from_mib(96)), ..Stated::default() }, small, None);
        check(
            Stated { available: Some(Bytes::from_mib(95)), ..Stated::default() },
            small,
            Some("node 0 has 95 MiB to spare, 96 MiB are needed: try a smaller --size"),
        );
        check(
            Stated { below_limit: Some(Bytes::from_mib(20)), ..Stated::default() },
            PageKind::TransparentHuge,
            Some(
                "this process may take 20 MiB more before the limit of its control group, 96 MiB are needed: try a smaller --size",
            ),
        );
        check(
            Stated { allowed: Some(NodeSet::from([1])), ..Stated::default() },
            small,
            Some("node 0 is outside of this cpuset's memory nodes 1"),
        );
        let pool = PageKind::Hugetlb(HugePageSize::MIB_2);
        // Memory of a pool is taken already: what is free beside it does not matter.
        check(
            Stated { free_huge_pages: Some(32), available: Some(Bytes::new(0)), ..Stated::default() },
            pool,
            None,
        );
        check(
            Stated { free_huge_pages: Some(31), ..Stated::default() },
            pool,
            Some(
                "node 0 has 31 free huge pages of 2 MiB, 32 are needed: reserve them in its pool (nr_hugepages), or use --huge-pages=thp",
            ),
        );
    }

    #[test]
    fn a_share_is_of_all_pages_that_were_asked_for() {
        let mut counts = PageCounts::default();
        counts.nodes.insert(NodeId::new(0), 6);
        counts.nodes.insert(NodeId::new(1), 1);
        counts.not_present = 1;
        let placed = Placed::from_counts(&counts, NODE, None);
        assert_eq!((placed.on_node, placed.pages, placed.share()), (6, 8, Some(0.75)));
        assert_eq!(placed.elsewhere, NodeSet::from([1]));
        assert!(!placed.is_full());
        assert_eq!(Placed::default().share(), None);
        assert!(!Placed::default().is_full());
    }

    #[test]
    fn the_worse_of_two_is_kept() {
        let placed = |on_node, pages| Placed { on_node, pages, ..Placed::default() };
        assert_eq!(placed(8, 8).worse(placed(7, 8)), placed(7, 8));
        assert_eq!(placed(1, 8).worse(placed(7, 8)), placed(1, 8));
        assert_eq!(placed(8, 8).worse(placed(16, 16)), placed(8, 8));
    }
}
