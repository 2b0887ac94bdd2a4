//! Runs of pages that are present, in huge pages, or swapped out: what there is to draw pages from.

use std::os::fd::BorrowedFd;

use crate::error::Errno;
use crate::raw::{self, Region};

/// Categories of pages.
///
/// # Source
/// `PAGE_IS_*` of `include/uapi/linux/fs.h`, Linux 6.7.
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
const ZERO: u64 = 1 << 5;
const HUGE: u64 = 1 << 6;

/// Runs per call: 24 KiB.
const BATCH: usize = 1024;

/// Neighbouring pages that are alike; a run may reach over several mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    pub state: PageState,
}

/// The state of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageState {
    Small,
    /// In huge pages, transparent ones or those of a pool.
    Huge,
    /// The page of zeros, which all that is read and was never written shares.
    Zero,
    Swapped,
}

impl PageState {
    const fn from_categories(categories: u64) -> Self {
        match categories {
            categories if categories & PRESENT == 0 => Self::Swapped,
            categories if categories & ZERO != 0 => Self::Zero,
            categories if categories & HUGE != 0 => Self::Huge,
            _ => Self::Small,
        }
    }
}

/// Hands over each run of pages that are present or swapped out in a range of addresses, in order. Nothing is
/// touched or changed.
///
/// # Source
/// `ioctl(2)` with `PAGEMAP_SCAN` on `/proc/PID/pagemap`, Linux 6.7. Swapped pages of shared memory are not
/// reported: its page tables have nothing for them.
///
/// # Errors
/// `ENOTTY` on an older kernel, `EINVAL` for addresses between pages, `EFAULT` for those that no program has.
/// Runs before the error have been handed over.
pub fn scan(
    pagemap: BorrowedFd<'_>,
    (start, end): (u64, u64),
    mut each: impl FnMut(PageRun),
) -> Result<(), Errno> {
    let mut regions = [Region::default(); BATCH];
    let mut from = start;
    while from < end {
        let wanted = (PRESENT | SWAPPED, PRESENT | SWAPPED | HUGE | ZERO);
        let (count, to) = raw::pagemap_scan(pagemap, (from, end), wanted, &mut regions)?;
        for Region { start, end, categories } in regions.iter().take(count) {
            each(PageRun { start: *start, end: *end, state: PageState::from_categories(*categories) });
        }
        // A kernel that does not get on is not asked forever.
        if to <= from {
            return Ok(());
        }
        from = to;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_raw_sys::general as kernel;

    #[test]
    fn categories_are_those_of_the_kernel_header() {
        for (ours, expected) in [
            (PRESENT, kernel::PAGE_IS_PRESENT),
            (SWAPPED, kernel::PAGE_IS_SWAPPED),
            (ZERO, kernel::PAGE_IS_PFNZERO),
            (HUGE, kernel::PAGE_IS_HUGE),
        ] {
            assert_eq!(ours, u64::from(expected));
        }
    }

    #[test]
    fn a_page_that_is_not_present_is_swapped_whatever_else_is_set() {
        let check = |categories, state| assert_eq!(PageState::from_categories(categories), state);
        check(PRESENT, PageState::Small);
        check(PRESENT | HUGE, PageState::Huge);
        check(PRESENT | HUGE | ZERO, PageState::Zero);
        check(SWAPPED, PageState::Swapped);
        check(SWAPPED | HUGE, PageState::Swapped);
    }
}
