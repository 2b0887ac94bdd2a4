//! Memory on chosen nodes, in pages of a chosen kind.

use std::ffi::c_int;
use std::ptr::NonNull;
use std::slice;

use nodewise_machine::{Bytes, MemPolicy};

use crate::advice::advise;
use crate::arguments::{Advice, BindOptions, PageKind};
use crate::call::{Call, Task};
use crate::error::{CallError, Errno};
use crate::huge;
use crate::mempolicy::bind_range;
use crate::pages::{self, PageCounts};
use crate::raw;

/// Bytes that are written, and bytes whose pages are asked for, between two questions whether to go on: some
/// ten milliseconds each.
const PART: usize = 16 << 20;
const PART_ASKED: usize = 256 << 20;

impl PageKind {
    /// Returns the alignment of a buffer of this kind, to which its size is rounded too, in bytes.
    fn alignment(self) -> Option<usize> {
        match self {
            Self::Small => Some(raw::page_size()),
            Self::TransparentHuge => Some(huge::transparent_huge_size()),
            Self::Hugetlb(size) => usize::try_from(size.bytes().get()).ok(),
        }
    }

    /// How `mmap(2)` gets it: the size of the pool's pages as a power of two, in the top bits.
    const fn map_flags(self) -> c_int {
        match self {
            Self::Small | Self::TransparentHuge => 0,
            Self::Hugetlb(size) => libc::MAP_HUGETLB | ((size.0 as c_int) << libc::MAP_HUGE_SHIFT),
        }
    }
}

/// Anonymous memory of its own, in pages of one kind, under a memory policy of its own; given back
/// when dropped.
///
/// Children do not have it: code that runs between `fork(2)` and `execve(2)` must not touch it.
#[derive(Debug)]
pub struct NodeBuffer {
    start: NonNull<u8>,
    length: usize,
    mapping: Mapping,
    kind: PageKind,
    policy: Option<MemPolicy>,
}

// SAFETY: the buffer owns its memory as a Box<[u8]> does; no thread is special to it.
unsafe impl Send for NodeBuffer {}
// SAFETY: through a shared reference the memory can only be read.
unsafe impl Sync for NodeBuffer {}

impl NodeBuffer {
    /// Maps a buffer, sets its policy, and writes to every page, so that each is where the policy,
    /// or the calling thread's, puts it. Without a policy that means: near this CPU.
    ///
    /// # Units
    /// The buffer is exactly `length` long; its mapping is rounded up to whole pages of its kind.
    ///
    /// # Errors
    /// What `mmap(2)`, `madvise(2)` and `mbind(2)` fail with: `ENOMEM` where the address space or a
    /// pool of huge pages is too small, `EINVAL` for length 0, a size of huge page that the kernel
    /// does not have, or nodes that cannot be used; `EFAULT` where the pool has no pages on the
    /// nodes of the policy. A node that is too full for a `Bind` policy is not an error but a case for
    /// the kernel's OOM killer: look at its free memory first.
    pub fn new(length: Bytes, kind: PageKind, policy: Option<&MemPolicy>) -> Result<Self, CallError> {
        let mut buffer = Self::reserve(length, kind, policy)?;
        buffer.prefault()?;
        Ok(buffer)
    }

    /// Maps a buffer and sets its policy, without touching it: its pages come with the first write
    /// to each, by whichever thread.
    ///
    /// # Errors
    /// As [`NodeBuffer::new`].
    pub fn reserve(length: Bytes, kind: PageKind, policy: Option<&MemPolicy>) -> Result<Self, CallError> {
        let (buffer, mapped) = Self::mapped(length, kind, policy)?;
        buffer.advise(mapped)?;
        if let Some(policy) = policy {
            bind_range(buffer.address(), mapped, policy, BindOptions::default())?;
        }
        Ok(buffer)
    }

    /// Maps a buffer that begins where a huge page can, without any advice: the system's settings decide about its pages, and
    /// children have it.
    ///
    /// # Errors
    /// As [`NodeBuffer::reserve`].
    pub fn unadvised(length: Bytes) -> Result<Self, CallError> {
        Self::mapped(length, PageKind::TransparentHuge, None).map(|(buffer, _)| buffer)
    }

    /// A buffer without advice or policy, and the bytes of its mapping.
    fn mapped(length: Bytes, kind: PageKind, policy: Option<&MemPolicy>) -> Result<(Self, usize), CallError> {
        let refused = |errno| CallError::new(Call::Mmap { length, pages: kind }, errno);
        if length == Bytes::new(0) {
            // mmap(2) would say so, but for the room that huge pages are aligned in.
            return Err(refused(Errno::EINVAL));
        }
        let (asked, mapped, alignment) = sizes(length, kind).ok_or(refused(Errno::ENOMEM))?;
        // The kernel aligns pool pages itself; transparent ones need room to align in.
        let slack = if kind == PageKind::TransparentHuge { alignment } else { 0 };
        let whole = mapped.checked_add(slack).ok_or(refused(Errno::ENOMEM))?;
        let mapping = Mapping::new(whole, kind.map_flags()).map_err(refused)?;
        let skipped = if slack == 0 { 0 } else { mapping.start.addr().get().wrapping_neg() % alignment };
        // SAFETY: `skipped` is less than `alignment`, so the result lies inside the mapping of
        // `mapped + alignment` bytes, with at least `mapped` bytes behind it.
        let start = unsafe { mapping.start.add(skipped) };
        Ok((Self { start, length: asked, mapping, kind, policy: policy.cloned() }, mapped))
    }

    /// Reports the kernel which pages to use, and for whom.
    fn advise(&self, mapped: usize) -> Result<(), CallError> {
        let advise = |advice| advise(self.address(), mapped, advice);
        // While a child has not yet become its program it shares every page, and what is written
        // then is copied first, to wherever the writer is; shared pages are not moved either.
        advise(Advice::NotForChildren)?;
        match self.kind {
            PageKind::Hugetlb(_) => Ok(()),
            PageKind::TransparentHuge => advise(Advice::HugePages),
            // A kernel without transparent huge pages does not know the advice, nor need it.
            PageKind::Small => {
                advise(Advice::SmallPages).or_else(|e| if e.errno == Errno::EINVAL { Ok(()) } else { Err(e) })
            }
        }
    }

    /// Writes to every page, so that all are allocated and no two are alike: what is all zero, or
    /// the same everywhere, may be merged below (by KSM on the host of a virtual machine).
    ///
    /// # Errors
    /// For pages of a pool under a policy, what `MADV_POPULATE_WRITE` (Linux 5.14) fails with:
    /// writing at once would end the process with `SIGBUS` where the pool has no pages on the nodes
    /// of the policy. Without a policy `mmap(2)` has reserved the pages.
    pub fn prefault(&mut self) -> Result<(), CallError> {
        self.prefault_while(&mut || true).map(|_| ())
    }

    /// As [`NodeBuffer::prefault`], part by part for as long as `go_on` says so; `false` where it ended that
    /// before all pages were there.
    ///
    /// # Errors
    /// As there.
    pub fn prefault_while(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<bool, CallError> {
        let from_pool = matches!((self.kind, &self.policy), (PageKind::Hugetlb(_), Some(_)));
        let part = self.part();
        let (step, mapped) = (raw::page_size(), self.mapped_from_start());
        let mut number = 0_u64;
        for at in (0..self.length).step_by(part) {
            if !go_on() {
                return Ok(false);
            }
            if from_pool {
                advise(self.address() + at, part.min(mapped - at), Advice::Populate)?;
            }
            let end = self.length.min(at + part);
            for page in self.as_mut_slice()[at..end].chunks_mut(step) {
                number += 1;
                let mark = number.to_ne_bytes();
                let length = mark.len().min(page.len());
                page[..length].copy_from_slice(&mark[..length]);
            }
        }
        Ok(true)
    }

    /// Bytes that are worked on between two questions whether to go on: whole pages of its kind.
    fn part(&self) -> usize {
        self.kind.alignment().unwrap_or(1).max(PART)
    }

    /// Bytes from its first to the end of its mapping.
    fn mapped_from_start(&self) -> usize {
        self.mapping.length - (self.address() - self.mapping.start.addr().get())
    }

    /// The address of its first byte.
    pub fn address(&self) -> usize {
        self.start.addr().get()
    }

    /// Its length.
    pub fn length(&self) -> Bytes {
        Bytes::new(self.length as u64)
    }

    /// Its parts.
    pub fn kind(&self) -> PageKind {
        self.kind
    }

    /// The policy it was made with.
    pub fn policy(&self) -> Option<&MemPolicy> {
        self.policy.as_ref()
    }

    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the mapping is readable, at least `length` (checked against isize::MAX) long,
        // zeroed by the kernel and so initialised, and lives as long as `self`, which is borrowed.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// Its bytes, to write.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`; the mapping is writable, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }

    /// Its memory as numbers of 64 bits; a rest of less than 8 bytes is left out.
    pub fn as_words(&self) -> &[u64] {
        // SAFETY: as in `as_slice`; a mapping starts on a page and so is aligned for u64, whose
        // every bit pattern is a value, and `length / 8` of them fit.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.length / 8) }
    }

    /// Its memory as numbers of 64 bits, to write; a rest of less than 8 bytes is left out.
    pub fn as_mut_words(&mut self) -> &mut [u64] {
        // SAFETY: as in `as_words`; the mapping is writable, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.length / 8) }
    }

    /// Where its pages are, from the kernel; counted in small pages, or in those of its pool.
    ///
    /// # Errors
    /// A refused `move_pages(2)`.
    pub fn locations(&self) -> Result<PageCounts, CallError> {
        self.locations_while(&mut || true).map(Option::unwrap_or_default)
    }

    /// As [`NodeBuffer::locations`], part by part for as long as `go_on` says so; `None` where it ended that
    /// before all pages were asked for.
    ///
    /// # Errors
    /// As there.
    pub fn locations_while(&self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<PageCounts>, CallError> {
        let step = match self.kind {
            PageKind::Hugetlb(_) => self.kind.alignment().unwrap_or(0),
            PageKind::Small | PageKind::TransparentHuge => raw::page_size(),
        };
        let part = self.part().max(PART_ASKED);
        let mut counts = PageCounts::default();
        for at in (0..self.length).step_by(part) {
            if !go_on() {
                return Ok(None);
            }
            let addresses = pages::addresses(self.address() + at, part.min(self.length - at), step);
            pages::locate(Task::CURRENT, addresses, |_, location| counts.add(location))?;
        }
        Ok(Some(counts))
    }
}

/// Length asked for, length rounded up to whole pages of the kind, and the size of these pages;
/// `None` where one does not fit in the address space.
fn sizes(length: Bytes, kind: PageKind) -> Option<(usize, usize, usize)> {
    let asked = usize::try_from(length.get()).ok()?;
    let alignment = kind.alignment()?;
    let mapped = asked.checked_next_multiple_of(alignment)?;
    // A slice may not be longer than isize::MAX.
    isize::try_from(mapped).ok()?;
    Some((asked, mapped, alignment))
}

/// A range of the address space that belongs to a buffer, unmapped when dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    fn new(length: usize, flags: c_int) -> Result<Self, Errno> {
        Ok(Self { start: raw::map_anonymous(length, flags)?, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to the buffer that is being dropped; every slice of it
        // borrowed that buffer and is gone.
        let result = unsafe { raw::unmap(self.start, self.length) };
        debug_assert!(result.is_ok(), "munmap of a mapping of our own: {result:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::HugePageSize;

    #[test]
    fn a_size_of_huge_page_is_a_power_of_two_that_some_kernel_has() {
        for (size, expected) in [
            (Bytes::from_mib(2), Some(HugePageSize::MIB_2)),
            (Bytes::from_gib(1), Some(HugePageSize::GIB_1)),
            (Bytes::from_mib(3), None),
            (Bytes::from_kib(4), None),
            (Bytes::new(0), None),
            (Bytes::new(1 << 63), None),
        ] {
            assert_eq!(HugePageSize::new(size), expected, "{size}");
        }
        assert_eq!(HugePageSize::GIB_1.bytes(), Bytes::GIB);
    }

    #[test]
    fn a_pool_is_named_to_mmap_by_its_power_of_two() {
        assert_eq!(
            PageKind::Hugetlb(HugePageSize::MIB_2).map_flags(),
            libc::MAP_HUGETLB | libc::MAP_HUGE_2MB
        );
        assert_eq!(
            PageKind::Hugetlb(HugePageSize::GIB_1).map_flags(),
            libc::MAP_HUGETLB | libc::MAP_HUGE_1GB
        );
    }

    #[test]
    fn a_length_beyond_the_address_space_is_refused_before_it_is_rounded() {
        for length in [u64::MAX, u64::MAX - 4096, 1 << 63] {
            for kind in [PageKind::Small, PageKind::TransparentHuge, PageKind::Hugetlb(HugePageSize::GIB_1)] {
                let error = NodeBuffer::new(Bytes::new(length), kind, None).unwrap_err();
                assert_eq!(error.errno, Errno::ENOMEM, "{error}");
            }
        }
    }
}
