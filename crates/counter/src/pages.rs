//! Zeroed memory of the system: the plugin has no allocator, and gives nothing back.

use core::ffi::{c_int, c_long, c_void};

unsafe extern "C" {
    fn mmap(
        address: *mut c_void,
        length: usize,
        rights: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
}

/// `PROT_READ | PROT_WRITE`
const RIGHTS: c_int = 1 | 2;
/// `MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE`: pages that are not touched cost nothing.
const FLAGS: c_int = 0x02 | 0x20 | 0x4000;

/// Types that are valid with all bytes zero, and need no drop.
///
/// # Safety
/// That is so.
pub unsafe trait Zeroed: Copy {}

// SAFETY: any bytes are an integer.
unsafe impl Zeroed for u64 {}

/// Zeroed values that are never freed; none if the system has no memory for them.
pub fn zeroed<T: Zeroed>(count: usize) -> &'static mut [T] {
    let Some(length) = count.checked_mul(size_of::<T>()).filter(|length| *length > 0) else { return &mut [] };
    // SAFETY: a mapping of pages that no one has, at a place of the system's choice, touches no other memory.
    let start = unsafe { mmap(core::ptr::null_mut(), length, RIGHTS, FLAGS, -1, 0) };
    if start.addr() == usize::MAX {
        return &mut [];
    }
    // SAFETY: the mapping has room for that many values, begins at a page, is zero, which is a value of the type, is known
    // to this function alone, and is never unmapped.
    unsafe { core::slice::from_raw_parts_mut(start.cast::<T>(), count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_can_be_written_to() {
        let words = zeroed::<u64>(10_000);
        assert_eq!((words.len(), words.iter().sum::<u64>()), (10_000, 0));
        words[9_999] = 1;
        assert!(zeroed::<u64>(0).is_empty() && zeroed::<u64>(usize::MAX).is_empty());
        assert!(zeroed::<u64>(1 << 60).is_empty());
    }
}
