//! Where pages are, and moving them.
//!
//! Pages are named by their addresses and asked for in batches, so that a buffer of any size costs
//! a fixed amount of memory here.

use std::collections::BTreeMap;
use std::ffi::c_int;

use nodewise_machine::{NodeId, NodeSet};

use crate::arguments::PageScope;
use crate::call::{Call, Task};
use crate::error::{CallError, Errno};
use crate::raw;

/// Pages per call: 64 KiB of arguments. The kernel itself works through them 16 at a time when
/// asked. Each call that moves pages empties the caches of freed pages on every CPU (`lru_cache_disable()`), so
/// whoever moves much makes larger calls: [`try_moves`].
const BATCH: usize = 4096;

/// Set where the kernel has not written a place: no error number and no node looks like it.
const UNWRITTEN: c_int = c_int::MIN;

impl PageScope {
    pub(crate) const fn bits(self) -> c_int {
        match self {
            Self::Own => raw::MPOL_MF_MOVE,
            Self::All => raw::MPOL_MF_MOVE_ALL,
        }
    }
}

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageLocation {
    Node(NodeId),
    /// Nowhere: not allocated yet, or swapped out (`ENOENT`).
    NotPresent,
    /// It is the zero page, shared by all that was read and never written, or nothing is mapped
    /// (`EFAULT`): the kernel does not distinguish these.
    ZeroOrUnmapped,
    /// Unknown, or not moved, for this reason: `EBUSY` while in use, `EACCES` when shared, `EIO`
    /// when it cannot be written back, `ENOMEM` when the node is full.
    Error(Errno),
}

impl PageLocation {
    /// Decodes a status of `move_pages(2)`.
    pub fn from_status(status: i32) -> Self {
        if let Ok(node) = u32::try_from(status) {
            return Self::Node(NodeId::new(node));
        }
        match Errno::new(status.checked_neg().unwrap_or(i32::MAX)) {
            Errno::ENOENT => Self::NotPresent,
            Errno::EFAULT => Self::ZeroOrUnmapped,
            errno => Self::Error(errno),
        }
    }
}

/// How many pages are where.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PageCounts {
    /// Pages on each node that has any.
    pub nodes: BTreeMap<NodeId, u64>,
    /// Pages that are not allocated, or swapped out.
    pub not_present: u64,
    /// Addresses that show the zero page, or where nothing is mapped.
    pub zero_or_unmapped: u64,
    /// Pages that the kernel gave an error for.
    pub errors: BTreeMap<Errno, u64>,
}

impl PageCounts {
    /// Counts one more page.
    pub fn add(&mut self, location: PageLocation) {
        let counter = match location {
            PageLocation::Node(node) => self.nodes.entry(node).or_default(),
            PageLocation::NotPresent => &mut self.not_present,
            PageLocation::ZeroOrUnmapped => &mut self.zero_or_unmapped,
            PageLocation::Error(errno) => self.errors.entry(errno).or_default(),
        };
        *counter += 1;
    }

    /// Pages on this node.
    pub fn on(&self, node: NodeId) -> u64 {
        self.nodes.get(&node).copied().unwrap_or(0)
    }

    /// Pages on any node.
    pub fn present(&self) -> u64 {
        self.nodes.values().sum()
    }

    /// All pages that were asked for.
    pub fn total(&self) -> u64 {
        self.present() + self.not_present + self.zero_or_unmapped + self.errors.values().sum::<u64>()
    }

    /// The nodes that have any of the pages.
    pub fn node_set(&self) -> NodeSet {
        self.nodes.keys().copied().collect()
    }
}

impl FromIterator<PageLocation> for PageCounts {
    fn from_iter<T: IntoIterator<Item = PageLocation>>(locations: T) -> Self {
        let mut counts = Self::default();
        locations.into_iter().for_each(|location| counts.add(location));
        counts
    }
}

/// The size of a small page in bytes.
pub fn page_size() -> usize {
    raw::page_size()
}

/// The addresses of the pages of a range, `step` bytes apart; a step of 0 counts as one small page.
pub fn addresses(start: usize, length: usize, step: usize) -> impl Iterator<Item = usize> {
    let step = if step == 0 { page_size() } else { step };
    (0..length.div_ceil(step)).map_while(move |page| start.checked_add(page.checked_mul(step)?))
}

/// Asks where pages are and hands each answer to `each`, in order. Nothing is touched or moved.
///
/// # Source
/// `move_pages(2)` without targets, Linux 2.6.18.
///
/// # Errors
/// `ESRCH` for a process that is gone, `EPERM` for one that may not be looked into. Answers that
/// came before the error have been handed out.
pub fn locate(
    task: Task,
    addresses: impl IntoIterator<Item = usize>,
    mut each: impl FnMut(usize, PageLocation),
) -> Result<(), CallError> {
    let mut addresses = addresses.into_iter();
    let (mut pages, mut places) = (Vec::new(), Vec::new());
    loop {
        pages.clear();
        pages.extend(addresses.by_ref().take(BATCH));
        if pages.is_empty() {
            return Ok(());
        }
        places.clear();
        places.resize(pages.len(), UNWRITTEN);
        raw::locate_pages(task.number(), &pages, &mut places).map_err(|errno| {
            CallError::new(Call::MovePages { task, pages: pages.len(), targets: None }, errno)
        })?;
        for (page, place) in pages.iter().zip(&places) {
            each(*page, PageLocation::from_status(*place));
        }
    }
}

/// Counts where pages are.
///
/// # Source
/// `move_pages(2)` without targets, Linux 2.6.18.
///
/// # Errors
/// As [`locate`].
pub fn count(task: Task, addresses: impl IntoIterator<Item = usize>) -> Result<PageCounts, CallError> {
    let mut counts = PageCounts::default();
    locate(task, addresses, |_, location| counts.add(location))?;
    Ok(counts)
}

/// Moves each page to the node beside it, and counts where the pages are afterwards.
///
/// A page that cannot be moved is counted under its error; pages that the kernel gave up on are
/// asked for once more and counted where they are.
///
/// # Source
/// `move_pages(2)`, Linux 2.6.18.
///
/// # Errors
/// `ENODEV` for a node that does not exist or has no memory, `EACCES` for one outside of the
/// process's cpuset, `EPERM` for [`PageScope::All`] without `CAP_SYS_NICE`, `ESRCH`, and `ENOMEM`.
/// Pages of earlier batches have been moved then.
pub fn move_each(
    task: Task,
    moves: impl IntoIterator<Item = (usize, NodeId)>,
    scope: PageScope,
) -> Result<PageCounts, CallError> {
    let mut moves = moves.into_iter();
    let mut counts = PageCounts::default();
    loop {
        let (pages, nodes): (Vec<usize>, Vec<NodeId>) = moves.by_ref().take(BATCH).unzip();
        if pages.is_empty() {
            return Ok(counts);
        }
        move_batch(task, &pages, &nodes, scope, &mut counts)?;
    }
}

/// The answer of one call that was to move pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The kernel's word on each page; `None` where it wrote none. A page may have moved whatever this says: ask
    /// again with [`locate`].
    pub said: Vec<Option<PageLocation>>,
    /// Why the call failed as a whole; pages may have been moved before.
    pub failed: Option<CallError>,
}

/// Moves each page to the node beside it, in one call. The answer is a hint only: after `ENOMEM` the kernel has
/// moved pages and written no status, and of a huge page that is named twice the second name gets `EBUSY`.
///
/// # Source
/// `move_pages(2)`, Linux 2.6.18.
pub fn try_moves(task: Task, moves: &[(usize, NodeId)], scope: PageScope) -> Tried {
    let (pages, nodes): (Vec<usize>, Vec<NodeId>) = moves.iter().copied().unzip();
    let targets: Vec<c_int> =
        nodes.iter().map(|node| c_int::try_from(node.number()).unwrap_or(c_int::MAX)).collect();
    let mut places = vec![UNWRITTEN; pages.len()];
    let result = raw::move_pages(task.number(), &pages, &targets, &mut places, scope.bits());
    let failed = result.err().map(|errno| {
        let targets = Some((nodes.iter().copied().collect(), scope));
        CallError::new(Call::MovePages { task, pages: pages.len(), targets }, errno)
    });
    let said = |place| (place != UNWRITTEN).then(|| PageLocation::from_status(place));
    Tried { said: places.into_iter().map(said).collect(), failed }
}

/// Moves one batch and counts where its pages are now.
fn move_batch(
    task: Task,
    pages: &[usize],
    nodes: &[NodeId],
    scope: PageScope,
    counts: &mut PageCounts,
) -> Result<(), CallError> {
    let targets: Vec<c_int> =
        nodes.iter().map(|node| c_int::try_from(node.number()).unwrap_or(c_int::MAX)).collect();
    let mut places = vec![UNWRITTEN; pages.len()];
    raw::move_pages(task.number(), pages, &targets, &mut places, scope.bits()).map_err(|errno| {
        let targets = Some((nodes.iter().copied().collect(), scope));
        CallError::new(Call::MovePages { task, pages: pages.len(), targets }, errno)
    })?;
    // When pages cannot be moved for passing reasons the call stops early (from Linux 4.17 it says
    // how many were left), and does not write the places of the rest.
    let mut left = Vec::new();
    for (page, place) in pages.iter().zip(places) {
        if place == UNWRITTEN {
            left.push(*page);
        } else {
            counts.add(PageLocation::from_status(place));
        }
    }
    locate(task, left, |_, location| counts.add(location))
}

/// Moves all pages of a process that are on some nodes to others, keeping their relative order.
/// Returns how many pages could not be moved.
///
/// # Source
/// `migrate_pages(2)`, Linux 2.6.16.
///
/// # Errors
/// `EINVAL` when none of the target nodes can be used, `EPERM` for a process of another user or for
/// targets outside of its cpuset, `ESRCH`.
pub fn migrate(task: Task, from: &NodeSet, to: &NodeSet) -> Result<u64, CallError> {
    let bits =
        [from, to].iter().filter_map(|nodes| nodes.last()).map(|last| last.number() as usize + 1).max();
    let bits = bits.unwrap_or(0);
    let result = raw::migrate_pages(task.number(), &from.to_words(bits), &to.to_words(bits));
    result.map_err(|errno| {
        CallError::new(Call::MigratePages { task, from: from.clone(), to: to.clone() }, errno)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    fn check(status: i32, expected: PageLocation) {
        assert_eq!(PageLocation::from_status(status), expected, "{status}");
    }

    #[test]
    fn a_status_is_a_node_or_a_reason() {
        check(0, PageLocation::Node(NodeId::new(0)));
        check(1023, PageLocation::Node(NodeId::new(1023)));
        check(-libc::ENOENT, PageLocation::NotPresent);
        check(-libc::EFAULT, PageLocation::ZeroOrUnmapped);
        check(-libc::EBUSY, PageLocation::Error(Errno::EBUSY));
        check(UNWRITTEN, PageLocation::Error(Errno::new(i32::MAX)));
    }

    #[test]
    fn the_addresses_of_a_range_cover_it_and_stay_inside_the_address_space() {
        assert_eq!(addresses(0x1000, 0x2001, 0x1000).collect::<Vec<_>>(), [0x1000, 0x2000, 0x3000]);
        assert_eq!(addresses(0x1000, 0, 0x1000).count(), 0);
        assert_eq!(addresses(0, page_size() * 3, 0).count(), 3);
        assert_eq!(addresses(usize::MAX - 1, usize::MAX, 1 << 12).count(), 1);
    }

    proptest! {
        #[test]
        fn any_status_is_counted_exactly_once(statuses in prop::collection::vec(any::<i32>(), 0..100)) {
            let counts: PageCounts = statuses.iter().copied().map(PageLocation::from_status).collect();
            prop_assert_eq!(counts.total(), statuses.len() as u64);
            prop_assert_eq!(counts.present(), statuses.iter().filter(|status| **status >= 0).count() as u64);
            prop_assert!(counts.nodes.values().all(|pages| *pages > 0));
        }
    }
}
