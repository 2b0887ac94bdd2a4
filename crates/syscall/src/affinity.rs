//! The CPUs that a thread may run on, and the one it runs on now.

use std::ffi::c_ulong;

use nodewise_machine::id::Id;
use nodewise_machine::set::words::BITS_PER_WORD;
use nodewise_machine::{CpuId, CpuSet, NodeId};

use crate::call::{Call, Task};
use crate::error::{CallError, Errno};
use crate::raw;

/// Longest mask that is tried, in words: as many CPUs as a `CpuId` can name.
const LONGEST_MASK: usize = CpuId::LIMIT as usize / BITS_PER_WORD;

/// Sets the CPUs that a thread may run on. CPUs that are offline or outside of its cpuset are left
/// out without a word, as long as one remains: read back with [`cpus`] what holds.
///
/// Given the id of a process, this binds its first thread alone. Threads that are started later
/// inherit from the one that starts them.
///
/// # Source
/// `sched_setaffinity(2)`, with masks of any length.
///
/// # Errors
/// `EINVAL` when none of the CPUs is online and allowed, `ESRCH` for a thread that is gone, `EPERM`
/// for one of another user.
pub fn set_cpus(task: Task, cpus: &CpuSet) -> Result<(), CallError> {
    raw::sched_setaffinity(task.number(), &cpu_words(cpus))
        .map_err(|errno| CallError::new(Call::SchedSetaffinity { task, cpus: cpus.clone() }, errno))
}

/// The online CPUs that a thread may run on.
///
/// # Source
/// `sched_getaffinity(2)`, with masks of any length.
///
/// # Errors
/// `ESRCH` for a thread that is gone, `EPERM` where a security module forbids to look.
pub fn cpus(task: Task) -> Result<CpuSet, CallError> {
    // The kernel refuses a mask that is shorter than its highest possible CPU (`nr_cpu_ids`) and
    // says so with EINVAL alone; so the mask grows until it is taken.
    let mut words = vec![0; 1024 / BITS_PER_WORD];
    loop {
        match raw::sched_getaffinity(task.number(), &mut words) {
            Ok(bytes) => {
                words.truncate(bytes / size_of::<c_ulong>());
                return Ok(CpuSet::from_native_words(&words));
            }
            Err(Errno::EINVAL) if words.len() < LONGEST_MASK => words = vec![0; words.len() * 2],
            Err(errno) => return Err(CallError::new(Call::SchedGetaffinity { task }, errno)),
        }
    }
}

/// The CPU that the calling thread runs on, and its node. Unless the thread is bound to one CPU,
/// the answer may be old when it arrives.
///
/// # Source
/// `getcpu(2)`.
///
/// # Errors
/// A refused call.
pub fn current_cpu() -> Result<(CpuId, NodeId), CallError> {
    raw::getcpu()
        .map(|(cpu, node)| (CpuId::new(cpu), NodeId::new(node)))
        .map_err(|errno| CallError::new(Call::Getcpu, errno))
}

/// CPUs as a mask of at least one word.
pub(crate) fn cpu_words(cpus: &CpuSet) -> Vec<c_ulong> {
    cpus.to_words(1)
}
