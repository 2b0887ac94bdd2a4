//! Tables of numbers that are learnt later, as large as this machine needs. They are allocated by the
//! constructor: tables for any machine, as part of the library's own memory, would be a mapping more
//! for every program that links it, a sixth of the time of loading; and those that a thread allocated
//! when it needs one would look to race checkers as if that thread wrote them behind the others' backs.

use core::ptr::null_mut;
use core::slice;
use core::sync::atomic::{AtomicPtr, AtomicU16, AtomicUsize, Ordering};

use crate::kernel;

/// Tables from this size on are mapped, so that what is not used takes no memory.
const MAPPED_BYTES: usize = 16 << 10;

/// A table, empty until it is allocated, and then all zeros at first.
pub struct Table {
    start: AtomicPtr<AtomicU16>,
    length: AtomicUsize,
}

impl Table {
    /// An empty table.
    pub const fn new() -> Self {
        Self { start: AtomicPtr::new(null_mut()), length: AtomicUsize::new(0) }
    }

    /// For the constructor: gives it this length, once. Without memory for that it stays empty.
    pub fn allocate(&self, length: usize) {
        if !self.numbers().is_empty() {
            return;
        }
        let bytes = length.saturating_mul(size_of::<AtomicU16>());
        let start = if bytes < MAPPED_BYTES { kernel::zeroed(bytes).cast() } else { kernel::map(bytes) };
        if !start.is_null() {
            self.start.store(start.cast(), Ordering::Relaxed);
            self.length.store(length, Ordering::Release);
        }
    }

    /// For the destructor: empties it.
    pub fn free(&self) {
        let length = self.length.swap(0, Ordering::AcqRel);
        let start = self.start.swap(null_mut(), Ordering::Relaxed);
        let bytes = length.saturating_mul(size_of::<AtomicU16>());
        if bytes >= MAPPED_BYTES {
            kernel::unmap(start.cast(), bytes);
        } else {
            // SAFETY: it is NULL or came from malloc, in `allocate`, and the table does not know it any longer.
            unsafe { libc::free(start.cast()) };
        }
    }

    /// Its numbers.
    #[inline]
    pub fn numbers(&self) -> &'static [AtomicU16] {
        let length = self.length.load(Ordering::Acquire);
        if length == 0 {
            return &[];
        }
        let start = self.start.load(Ordering::Relaxed);
        // SAFETY: `allocate` stored a length, so before it a place for that many numbers, zeroed; it is
        // freed when the library is unloaded only, and shared only, as atomics can be.
        unsafe { slice::from_raw_parts(start, length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_empty_until_it_is_allocated_and_zero_then() {
        for length in [1, 100, MAPPED_BYTES] {
            let table = Table::new();
            assert!(table.numbers().is_empty());
            table.allocate(length);
            assert_eq!(table.numbers().len(), length);
            assert!(table.numbers().iter().all(|number| number.load(Ordering::Relaxed) == 0));
            for number in table.numbers() {
                number.store(7, Ordering::Relaxed);
            }
            assert!(table.numbers().iter().all(|number| number.load(Ordering::Relaxed) == 7));
        }
    }

    #[test]
    fn a_table_that_is_freed_is_empty() {
        for length in [1, 100, MAPPED_BYTES] {
            let table = Table::new();
            table.free();
            table.allocate(length);
            table.free();
            assert!(table.numbers().is_empty());
        }
    }

    #[test]
    fn a_table_that_no_memory_can_hold_stays_empty() {
        let table = Table::new();
        table.allocate(usize::MAX);
        assert!(table.numbers().is_empty());
    }
}
