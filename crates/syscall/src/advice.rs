//! Advice about a range of memory: the pages that it is made of, and the processes that get it.

use nodewise_machine::Bytes;

use crate::arguments::Advice;
use crate::call::Call;
use crate::error::CallError;
use crate::raw;

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
