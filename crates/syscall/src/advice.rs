//! What a range of memory is to be made of, and who is to have it.

use std::ffi::c_int;
use std::fmt;

use nodewise_machine::Bytes;

use crate::call::Call;
use crate::error::CallError;
use crate::raw;

/// What `madvise(2)` can be told about a range of memory; none of it changes what the range holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Advice {
    /// `MADV_HUGEPAGE`: back the range with transparent huge pages. Linux 2.6.38.
    HugePages,
    /// `MADV_NOHUGEPAGE`: keep to small pages. Linux 2.6.38.
    SmallPages,
    /// `MADV_DONTFORK`: leave the range out of what `fork(2)` copies. Linux 2.6.16.
    NotForChildren,
    /// `MADV_DOFORK`: take [`Advice::NotForChildren`] back. Linux 2.6.16.
    ForChildren,
    /// `MADV_POPULATE_WRITE`: allocate every page now, as a write would. Linux 5.14.
    Populate,
}

impl Advice {
    pub(crate) const fn number(self) -> c_int {
        match self {
            Self::HugePages => libc::MADV_HUGEPAGE,
            Self::SmallPages => libc::MADV_NOHUGEPAGE,
            Self::NotForChildren => libc::MADV_DONTFORK,
            Self::ForChildren => libc::MADV_DOFORK,
            Self::Populate => libc::MADV_POPULATE_WRITE,
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HugePages => "MADV_HUGEPAGE",
            Self::SmallPages => "MADV_NOHUGEPAGE",
            Self::NotForChildren => "MADV_DONTFORK",
            Self::ForChildren => "MADV_DOFORK",
            Self::Populate => "MADV_POPULATE_WRITE",
        })
    }
}

/// Advises the kernel about the pages of a range; the address is a multiple of the page size.
///
/// # Units
/// `address` and `length` in bytes.
///
/// # Errors
/// `EINVAL` where the kernel does not know the advice (for huge pages: it was built without them),
/// `ENOMEM` where part of the range is not mapped; for [`Advice::Populate`] also `EFAULT` where a
/// write would have raised `SIGBUS`, which is how an exhausted pool of huge pages shows.
pub fn advise(address: usize, length: usize, advice: Advice) -> Result<(), CallError> {
    raw::madvise(address, length, advice).map_err(|errno| {
        CallError::new(Call::Madvise { address, length: Bytes::new(length as u64), advice }, errno)
    })
}
