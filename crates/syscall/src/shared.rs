//! Memory that processes share: files of tmpfs and hugetlbfs, and segments of System V. A policy
//! that is set on such memory belongs to it, and stays when the process is gone.

use std::ffi::c_int;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;

use crate::error::Errno;
use crate::raw;

/// A segment of System V shared memory that exists.
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
        let address = raw::map_shared(file.as_raw_fd(), offset as i64, length)?;
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
        let address = raw::shmat(segment.0)?;
        Ok(Self { address, length, kind: Kind::Segment })
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
