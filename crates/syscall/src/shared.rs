//! Memory that processes share: files of tmpfs and hugetlbfs, and segments of System V. A policy
//! that is set on such memory belongs to it, and stays when the process is gone.

use std::ffi::c_int;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;

use crate::arguments::Advice;
use crate::error::Errno;
use crate::raw;

/// Pages that are asked for at once.
const SEEN_AT_ONCE: usize = 1 << 16;

/// A segment of System V shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment(c_int);

/// In which pages a new segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentPages {
    Small,
    /// Those of the default huge size, from the pool.
    Huge,
}

impl Segment {
    /// Finds a segment by its key; `None` when there is none.
    ///
    /// # Source
    /// `shmget(2)`.
    ///
    /// # Errors
    /// `EACCES` for a segment of another user.
    pub fn find(key: i32) -> Result<Option<Self>, Errno> {
        match raw::shmget(key, 0, 0) {
            Ok(id) => Ok(Some(Self(id))),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Makes a segment, or finds the one that has come in between.
    ///
    /// # Source
    /// `shmget(2)` with `IPC_CREAT`.
    ///
    /// # Units
    /// `length` in bytes; `mode` as of files. Bits above those of files are flags of `shmget`.
    ///
    /// # Errors
    /// `EINVAL` for flags that contradict each other, `ENOMEM` without enough huge pages, `EINVAL` above the limit of the system, `ENOSPC` for too
    /// many segments.
    pub fn create(key: i32, length: usize, mode: u32, pages: SegmentPages) -> Result<Self, Errno> {
        let huge = if pages == SegmentPages::Huge { libc::SHM_HUGETLB } else { 0 };
        raw::shmget(key, length, libc::IPC_CREAT | huge | mode as c_int).map(Self)
    }

    /// The segment with this number, whether it exists or not; `None` for a number that no segment has.
    pub fn from_id(id: u32) -> Option<Self> {
        c_int::try_from(id).ok().map(Self)
    }

    /// Its length in bytes.
    ///
    /// # Source
    /// `shmctl(2)`, `IPC_STAT`.
    ///
    /// # Errors
    /// `EACCES` without the right to read it.
    pub fn length(self) -> Result<usize, Errno> {
        raw::shm_length(self.0)
    }
}

/// Shared memory that this process has mapped; unmapped when dropped.
#[derive(Debug)]
pub struct SharedMemory {
    address: NonNull<u8>,
    length: usize,
    kind: Kind,
}

// SAFETY: the mapping belongs to this value alone, no thread is special to it, and nothing is read or written through the
// pointer but by the kernel, which unmaps it when this is dropped.
unsafe impl Send for SharedMemory {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Segment,
}

impl SharedMemory {
    /// Maps part of a file.
    ///
    /// # Source
    /// `mmap(2)`, `MAP_SHARED`.
    ///
    /// # Units
    /// `offset` and `length` in bytes; the offset is a multiple of the page size.
    ///
    /// # Errors
    /// `EINVAL` for an offset between pages or an empty part, `EOVERFLOW` for an offset that no file has.
    pub fn map(file: BorrowedFd<'_>, offset: u64, length: usize) -> Result<Self, Errno> {
        let address =
            raw::map_shared(file.as_raw_fd(), offset as i64, length, libc::PROT_READ | libc::PROT_WRITE)?;
        Ok(Self { address, length, kind: Kind::File })
    }

    /// Attaches a segment.
    ///
    /// # Source
    /// `shmat(2)`.
    ///
    /// # Errors
    /// `EACCES` without the right to write it.
    pub fn attach(segment: Segment) -> Result<Self, Errno> {
        let length = segment.length()?;
        let address = raw::shmat(segment.0, 0)?;
        Ok(Self { address, length, kind: Kind::Segment })
    }

    /// Maps part of a file for looking at it.
    ///
    /// # Source
    /// `mmap(2)`, `MAP_SHARED` and `PROT_READ`.
    ///
    /// # Errors
    /// As [`SharedMemory::map`].
    pub fn map_to_read(file: BorrowedFd<'_>, offset: u64, length: usize) -> Result<Self, Errno> {
        let address = raw::map_shared(file.as_raw_fd(), offset as i64, length, libc::PROT_READ)?;
        Ok(Self { address, length, kind: Kind::File })
    }

    /// Attaches a segment for looking at it.
    ///
    /// # Source
    /// `shmat(2)`, `SHM_RDONLY`.
    ///
    /// # Errors
    /// `EACCES` without the right to read it, `EINVAL` where there is none.
    pub fn attach_to_read(segment: Segment) -> Result<Self, Errno> {
        let length = segment.length()?;
        let address = raw::shmat(segment.0, libc::SHM_RDONLY)?;
        Ok(Self { address, length, kind: Kind::Segment })
    }

    /// Brings the pages that are there into the page tables of this process, so that the kernel can be asked for their
    /// nodes; what is not allocated stays so. Of a file it is known to who may write to it only: others would
    /// allocate what is missing.
    ///
    /// # Source
    /// `mincore(2)`; `madvise(2)`, `MADV_POPULATE_READ`, Linux 5.14.
    ///
    /// # Errors
    /// `EINVAL` before Linux 5.14, `ENOMEM` without memory for page tables.
    pub fn see(&self) -> Result<(), Errno> {
        let page = crate::pages::page_size();
        let mut at = 0;
        let mut resident = vec![0; SEEN_AT_ONCE];
        while at < self.length {
            let length = (self.length - at).min(SEEN_AT_ONCE * page);
            let count = length.div_ceil(page);
            raw::mincore(self.address() + at, length, &mut resident[..count])?;
            let mut first = 0;
            while first < count {
                let is_there = |byte: &u8| byte & 1 == 1;
                let run = resident[first..count].iter().take_while(|byte| is_there(byte)).count();
                if run > 0 {
                    raw::madvise(self.address() + at + first * page, run * page, Advice::PopulateToRead)?;
                }
                first += run.max(1);
            }
            at += length;
        }
        Ok(())
    }

    /// Where it is mapped: for the calls of [`crate::mempolicy`] and [`crate::pages`].
    pub fn address(&self) -> usize {
        self.address.as_ptr() as usize
    }

    /// Its length in bytes.
    pub const fn length(&self) -> usize {
        self.length
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // What fails here leaves a mapping until the process ends, which harms no one.
        let _ = match self.kind {
            // SAFETY: the mapping was made by `map`, is this value's alone and has lent no reference.
            Kind::File => unsafe { raw::unmap(self.address, self.length) },
            // SAFETY: the segment was attached by `attach`, and no reference into it was lent.
            Kind::Segment => unsafe { raw::shmdt(self.address) },
        };
    }
}
