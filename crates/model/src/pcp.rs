//! Pages in the lists of the CPUs, which are why the page at which a zone yields is not exact.
//!
//! A CPU takes pages from a zone in batches; the batch is counted as used at once, though most of it
//! is not given to anybody yet. When the zone reaches its watermark, what is left in the CPU's list
//! can still be asked for only while the zone passes the test.
//!
//! # Source
//! `zone_batchsize` and `nr_pcp_alloc` in `mm/page_alloc.c`; 6.7 to at least 7.2.

/// Bytes that a batch is a quarter of at most.
const MOST_BATCH: u64 = 1 << 20;
/// The most that a batch is doubled while nothing is freed.
const MOST_DOUBLINGS: u32 = 5;

/// Pages in one batch of a zone with this many managed pages of this many bytes.
pub fn batch(managed: u64, page: u64) -> u64 {
    let share = ((managed / 1024).min(MOST_BATCH / page.max(1)) / 4).max(1);
    let wanted = share + share / 2;
    (1 << wanted.ilog2()) - 1
}

/// The most pages that one refill of a CPU's list takes from such a zone. Runs on a real kernel
/// differed by as much at the page where one node yielded to the next.
pub fn largest_refill(managed: u64, page: u64) -> u64 {
    batch(managed, page) << MOST_DOUBLINGS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_with_the_zone_up_to_63_pages() {
        for (managed, expected) in [(0, 0), (3840, 0), (128_915, 31), (300_000, 63), (u64::MAX, 63)] {
            assert_eq!(batch(managed, 4096), expected, "{managed}");
        }
        assert_eq!(largest_refill(128_915, 4096), 992);
        assert_eq!(batch(128_915, 65536), 3);
    }
}
