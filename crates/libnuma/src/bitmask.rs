//! `struct bitmask`: a size in bits and the words, both allocated with malloc.

use core::ffi::{c_int, c_uint, c_ulong};
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::slice;

use crate::data::{NODEMASK_BITS, Nodemask};
use crate::error;
use crate::kernel;
use crate::words::{self, WORD_BITS, Word};

/// `struct bitmask` of numa.h.
#[repr(C)]
pub struct Bitmask {
    pub size: c_ulong,
    /// `size` bits in whole words.
    pub maskp: *mut Word,
}

const _: () = assert!(size_of::<Bitmask>() == 2 * size_of::<usize>());

impl Bitmask {
    /// The words of a mask that C passed, and its bits; no words for NULL.
    ///
    /// # Safety
    /// `mask` is NULL or points to a bitmask whose words are allocated, and no one writes to them
    /// while the result is in use.
    pub unsafe fn words<'a>(mask: *const Self) -> (&'a [Word], usize) {
        // SAFETY: the caller says that the pointer is NULL or good.
        let Some(mask) = (unsafe { mask.as_ref() }) else { return (&[], 0) };
        let bits = mask.size as usize;
        if mask.maskp.is_null() {
            return (&[], 0);
        }
        // SAFETY: the words of a bitmask are as many as its size needs, and initialised by its
        // allocation.
        (unsafe { slice::from_raw_parts(mask.maskp, words::words_for(bits)) }, bits)
    }

    /// As [`Bitmask::words`], to be changed.
    ///
    /// # Safety
    /// As there, and no one reads them either.
    pub unsafe fn words_mut<'a>(mask: *mut Self) -> (&'a mut [Word], usize) {
        // SAFETY: the caller says that the pointer is NULL or good.
        let Some(mask) = (unsafe { mask.as_ref() }) else { return (&mut [], 0) };
        let bits = mask.size as usize;
        if mask.maskp.is_null() {
            return (&mut [], 0);
        }
        // SAFETY: as above, and the caller says that there is no other access.
        (unsafe { slice::from_raw_parts_mut(mask.maskp, words::words_for(bits)) }, bits)
    }
}

impl Bitmask {
    /// The word with a bit of a mask that C passed; `None` when the bit is beyond its size.
    ///
    /// # Safety
    /// `mask` is NULL or points to a bitmask whose words are allocated.
    #[inline]
    unsafe fn word_of(mask: *const Self, bit: c_uint) -> Option<*mut Word> {
        // SAFETY: the caller says that the pointer is NULL or good.
        let mask = unsafe { mask.as_ref() }?;
        let is_inside = c_ulong::from(bit) < mask.size && !mask.maskp.is_null();
        is_inside.then(|| mask.maskp.wrapping_add(bit as usize / WORD_BITS))
    }
}

/// A bitmask of our own, until C gets it.
pub struct OwnedMask {
    mask: NonNull<Bitmask>,
}

impl OwnedMask {
    /// An empty mask; `None` when there is no memory, which was reported then.
    pub fn new(bits: usize) -> Option<Self> {
        let bytes = words::words_for(bits).checked_mul(size_of::<Word>());
        let maskp = bytes.map_or(ptr::null_mut(), kernel::zeroed).cast::<Word>();
        let mask = kernel::zeroed(size_of::<Bitmask>()).cast::<Bitmask>();
        match NonNull::new(mask).filter(|_| !maskp.is_null()) {
            Some(mask) => {
                // SAFETY: malloc gave memory of the size of a Bitmask, aligned for any type.
                unsafe { mask.write(Bitmask { size: bits as c_ulong, maskp }) };
                Some(Self { mask })
            }
            None => {
                // SAFETY: it is NULL or comes from malloc, and it has no other owner.
                unsafe { libc::free(maskp.cast()) };
                // SAFETY: as above.
                unsafe { libc::free(mask.cast()) };
                kernel::set_errno(libc::ENOMEM);
                error::report(c"Out of memory allocating bitmask");
                None
            }
        }
    }

    /// An empty mask for nodes.
    pub fn for_nodes() -> Option<Self> {
        Self::new(NODEMASK_BITS.get())
    }

    /// The words.
    pub fn words_mut(&mut self) -> &mut [Word] {
        // SAFETY: the mask was made by `new`, and `self` is borrowed as long as the words are.
        unsafe { Bitmask::words_mut(self.mask.as_ptr()) }.0
    }

    /// Gives the mask to C, which frees it with `numa_bitmask_free`.
    pub fn into_raw(self) -> *mut Bitmask {
        ManuallyDrop::new(self).mask.as_ptr()
    }
}

impl Drop for OwnedMask {
    fn drop(&mut self) {
        // SAFETY: the mask was made by `new`, and it has no other owner.
        unsafe { numa_bitmask_free(self.mask.as_ptr()) };
    }
}

/// The mask for C, or NULL.
pub fn into_raw(mask: Option<OwnedMask>) -> *mut Bitmask {
    mask.map_or(ptr::null_mut(), OwnedMask::into_raw)
}

/// Allocates an empty mask of `bits` bits; NULL and `numa_error` when that is 0 or too much.
#[unsafe(no_mangle)]
pub extern "C" fn numa_bitmask_alloc(bits: c_uint) -> *mut Bitmask {
    if bits == 0 {
        kernel::set_errno(libc::EINVAL);
        error::report(c"request to allocate mask for invalid number");
        return ptr::null_mut();
    }
    into_raw(OwnedMask::new(bits as usize))
}

/// Frees a mask and its words; NULL is nothing to free.
///
/// # Safety
/// `mask` is NULL or comes from this library, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_bitmask_free(mask: *mut Bitmask) {
    // SAFETY: the caller says that it is NULL or good.
    if let Some(inner) = unsafe { mask.as_ref() } {
        // SAFETY: the words of a mask come from malloc, and the caller gives them up.
        unsafe { libc::free(inner.maskp.cast()) };
        // SAFETY: so does the mask.
        unsafe { libc::free(mask.cast()) };
    }
}

/// Sets all bits.
///
/// # Safety
/// `mask` is NULL or a mask that no other code uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_bitmask_setall(mask: *mut Bitmask) -> *mut Bitmask {
    // SAFETY: passed on to the caller.
    let (words, bits) = unsafe { Bitmask::words_mut(mask) };
    words::fill(words, bits);
    mask
}

/// Clears all bits.
///
/// # Safety
/// `mask` is NULL or a mask that no other code uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_bitmask_clearall(mask: *mut Bitmask) -> *mut Bitmask {
    // SAFETY: passed on to the caller.
    unsafe { Bitmask::words_mut(mask) }.0.fill(0);
    mask
}

/// Sets a bit; nothing when it is beyond the size.
///
/// # Safety
/// `mask` is NULL or a mask that no other code uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_bitmask_setbit(mask: *mut Bitmask, bit: c_uint) -> *mut Bitmask {
    // SAFETY: passed on to the caller.
    if let Some(place) = unsafe { Bitmask::word_of(mask, bit) } {
        // SAFETY: it is a word of the mask, which no other code uses.
        unsafe { *place |= 1 << (bit as usize % WORD_BITS) };
    }
    mask
}

/// Clears a bit; nothing when it is beyond the size.
///
/// # Safety
/// `mask` is NULL or a mask that no other code uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_bitmask_clearbit(mask: *mut Bitmask, bit: c_uint) -> *mut Bitmask {
    // SAFETY: passed on to the caller.
    if let Some(place) = unsafe { Bitmask::word_of(mask, bit) } {
        // SAFETY: it is a word of the mask, which no other code uses.
        unsafe { *place &= !(1 << (bit as usize % WORD_BITS)) };
    }
    mask
}

/// 1 when a bit is set; 0 when it is not, or is beyond the size.
///
/// # Safety
/// `mask` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_bitmask_isbitset(mask: *const Bitmask, bit: c_uint) -> c_int {
    // SAFETY: passed on to the caller.
    let Some(place) = (unsafe { Bitmask::word_of(mask, bit) }) else { return 0 };
    // SAFETY: it is a word of the mask, which no code changes.
    let word = unsafe { *place };
    (word >> (bit as usize % WORD_BITS) & 1) as c_int
}

/// Bytes of the words of a mask.
///
/// # Safety
/// `mask` is NULL or a mask.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_bitmask_nbytes(mask: *mut Bitmask) -> c_uint {
    // SAFETY: the caller says that it is NULL or good.
    let bits = unsafe { mask.as_ref() }.map_or(0, |mask| mask.size as usize);
    (words::words_for(bits) * size_of::<Word>()) as c_uint
}

/// How many bits are set.
///
/// # Safety
/// `mask` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_bitmask_weight(mask: *const Bitmask) -> c_uint {
    // SAFETY: passed on to the caller.
    let (words, bits) = unsafe { Bitmask::words(mask) };
    words::weight(words, bits) as c_uint
}

/// 1 when the same bits are set. Masks may differ in size: bits that one lacks count as clear.
///
/// # Safety
/// Both are NULL or masks that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_bitmask_equal(left: *const Bitmask, right: *const Bitmask) -> c_int {
    // SAFETY: passed on to the caller.
    let (left, left_bits) = unsafe { Bitmask::words(left) };
    // SAFETY: as above.
    let (right, right_bits) = unsafe { Bitmask::words(right) };
    if left_bits == right_bits && left_bits % WORD_BITS == 0 {
        return c_int::from(left == right);
    }
    let mut left = words::trimmed(left, left_bits);
    let mut right = words::trimmed(right, right_bits);
    loop {
        match (left.next(), right.next()) {
            (None, None) => return 1,
            (one, other) if one.unwrap_or(0) != other.unwrap_or(0) => return 0,
            _ => {}
        }
    }
}

/// Copies bits into another mask, cut or filled up with zeros to its size.
///
/// # Safety
/// Both are NULL or masks that no other code uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy_bitmask_to_bitmask(from: *mut Bitmask, to: *mut Bitmask) {
    // SAFETY: the caller says that it is NULL or good.
    let source = unsafe { from.as_ref() };
    // SAFETY: as above.
    let target = unsafe { to.as_ref() };
    match source.zip(target) {
        Some((source, target))
            if source.size == target.size && !source.maskp.is_null() && !target.maskp.is_null() =>
        {
            // The usual case, without detours: it takes little more than the copying.
            let count = words::words_for(source.size as usize);
            // SAFETY: both have as many words as their size needs; a mask may be copied onto itself.
            unsafe { source.maskp.copy_to(target.maskp, count) };
        }
        // SAFETY: passed on to the caller.
        _ => unsafe { copy_to_other_size(from, to) },
    }
}

/// Copies between masks of different sizes, NULL having no bits.
///
/// # Safety
/// Both are NULL or masks that no other code uses during the call, and only the same without bits.
#[cold]
#[inline(never)]
unsafe fn copy_to_other_size(from: *const Bitmask, to: *mut Bitmask) {
    // SAFETY: passed on to the caller.
    let (source, source_bits) = unsafe { Bitmask::words(from) };
    // SAFETY: as above.
    let (target, target_bits) = unsafe { Bitmask::words_mut(to) };
    copy_bits(source, source_bits, target, target_bits);
}

/// Copies bits, cut to the shorter of the two and filled up with zeros.
fn copy_bits(source: &[Word], source_bits: usize, target: &mut [Word], target_bits: usize) {
    words::copy(source, target);
    let bits = source_bits.min(target_bits);
    if bits % WORD_BITS != 0 {
        for bit in bits..words::words_for(bits) * WORD_BITS {
            words::clear(target, bit);
        }
    }
}

/// Copies a `nodemask_t` into a mask, cut or filled up with zeros to its size.
///
/// # Safety
/// Both are NULL or masks that no other code uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy_nodemask_to_bitmask(nodemask: *mut Nodemask, to: *mut Bitmask) {
    // SAFETY: the caller says that it is NULL or good.
    let Some(nodemask) = (unsafe { nodemask.as_ref() }) else { return };
    // SAFETY: passed on to the caller.
    let (target, bits) = unsafe { Bitmask::words_mut(to) };
    copy_bits(&nodemask.words, Nodemask::BITS, target, bits);
}

/// Copies a mask into a `nodemask_t`, cut or filled up with zeros to its size.
///
/// # Safety
/// Both are NULL or masks that no other code uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn copy_bitmask_to_nodemask(from: *mut Bitmask, nodemask: *mut Nodemask) {
    // SAFETY: passed on to the caller.
    let (source, bits) = unsafe { Bitmask::words(from) };
    // SAFETY: the caller says that it is NULL or good.
    let Some(nodemask) = (unsafe { nodemask.as_mut() }) else { return };
    copy_bits(source, bits, &mut nodemask.words, Nodemask::BITS);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};
    use std::collections::BTreeSet;

    /// A mask with these bits, which must be given to `numa_bitmask_free`.
    fn mask_of(bits: u32, numbers: &BTreeSet<u32>) -> *mut Bitmask {
        let mask = numa_bitmask_alloc(bits);
        for number in numbers {
            // SAFETY: the mask is our own.
            unsafe { numa_bitmask_setbit(mask, *number) };
        }
        mask
    }

    fn numbers_of(mask: *mut Bitmask) -> BTreeSet<u32> {
        // SAFETY: the mask is our own.
        (0..4096).filter(|bit| unsafe { numa_bitmask_isbitset(mask, *bit) } == 1).collect()
    }

    #[test]
    fn a_mask_of_no_bits_is_refused() {
        assert!(numa_bitmask_alloc(0).is_null());
        assert_eq!(error::reported(), ["request to allocate mask for invalid number"]);
        assert_eq!(kernel::errno(), libc::EINVAL);
    }

    #[test]
    fn no_mask_is_no_bits() {
        let none: *mut Bitmask = ptr::null_mut();
        // SAFETY: NULL is allowed.
        unsafe { numa_bitmask_free(none) };
        // SAFETY: as above.
        assert_eq!(unsafe { numa_bitmask_weight(none) }, 0);
        // SAFETY: as above.
        assert!(unsafe { numa_bitmask_setbit(none, 0) }.is_null());
        // SAFETY: as above.
        assert_eq!(unsafe { numa_bitmask_isbitset(none, 0) }, 0);
    }

    proptest! {
        #[test]
        fn masks_of_different_sizes_are_compared_and_copied_by_bits(
            numbers in proptest::collection::btree_set(0u32..200, 0..30),
            others in proptest::collection::btree_set(0u32..200, 0..30),
            bits in 1u32..200,
            other_bits in 1u32..200,
        ) {
            let left = mask_of(bits, &numbers);
            let right = mask_of(other_bits, &others);
            let inside = |numbers: &BTreeSet<u32>, bits: u32| -> BTreeSet<u32> {
                numbers.iter().copied().filter(|number| *number < bits).collect()
            };
            let (numbers, others) = (inside(&numbers, bits), inside(&others, other_bits));
            // SAFETY: both masks are our own.
            prop_assert_eq!(unsafe { numa_bitmask_equal(left, right) } == 1, numbers == others);
            // SAFETY: as above.
            unsafe { copy_bitmask_to_bitmask(left, right) };
            prop_assert_eq!(numbers_of(right), inside(&numbers, other_bits));
            // SAFETY: as above.
            prop_assert_eq!(unsafe { numa_bitmask_weight(right) } as usize, inside(&numbers, other_bits).len());
            // SAFETY: they are not used again.
            unsafe { numa_bitmask_free(left) };
            // SAFETY: as above.
            unsafe { numa_bitmask_free(right) };
        }
    }
}
