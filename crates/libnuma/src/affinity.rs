//! Where threads run: by CPU, and by node.

use core::ffi::c_int;

use crate::bitmask::{Bitmask, OwnedMask, into_raw};
use crate::cpus;
use crate::data::{self, CPUMASK_BITS, MAX_NODE, NODEMASK_BITS};
use crate::error::{self, Arguments, warning};
use crate::kernel;
use crate::nodes;
use crate::words::{self, Word};

/// CPUs that a task may run on. Returns the bytes of the kernel's mask; -1 and `errno` when the
/// mask is too small or there is no such task.
///
/// # Safety
/// `mask` is NULL or a mask that no other code uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_sched_getaffinity(task: libc::pid_t, mask: *mut Bitmask) -> c_int {
    // SAFETY: passed on to the caller.
    let (words, _) = unsafe { Bitmask::words_mut(mask) };
    match kernel::affinity(task, words) {
        Ok(bytes) => {
            for word in words.iter_mut().skip(bytes / size_of::<Word>()) {
                *word = 0;
            }
            bytes as c_int
        }
        Err(_) => -1,
    }
}

/// Makes a task run on these CPUs. -1 and `errno` when it cannot be done.
///
/// # Safety
/// `mask` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_sched_setaffinity(task: libc::pid_t, mask: *mut Bitmask) -> c_int {
    // SAFETY: passed on to the caller.
    let (words, _) = unsafe { Bitmask::words(mask) };
    kernel::set_affinity(task, words).map_or(-1, |()| 0)
}

/// The nodes whose CPUs the calling thread may run on.
pub fn run_node_mask() -> Option<OwnedMask> {
    let mut cpus = OwnedMask::new(CPUMASK_BITS.get())?;
    let mut nodes = OwnedMask::for_nodes()?;
    if kernel::affinity(0, cpus.words_mut()).is_err() {
        error::report(c"numa_sched_getaffinity() failed");
        return Some(nodes);
    }
    for node in words::ones(cpus.words_mut(), CPUMASK_BITS.get()).filter_map(cpus::node_of) {
        words::set(nodes.words_mut(), node);
    }
    Some(nodes)
}

/// See [`run_node_mask`].
#[unsafe(no_mangle)]
pub extern "C" fn numa_get_run_node_mask() -> *mut Bitmask {
    into_raw(run_node_mask())
}

/// Runs the calling thread on the CPUs of a node; -1 is all CPUs again.
#[unsafe(no_mangle)]
pub extern "C" fn numa_run_on_node(node: c_int) -> c_int {
    let bits = CPUMASK_BITS.get();
    if node < -1 || node >= NODEMASK_BITS.get() as c_int {
        kernel::set_errno(libc::EINVAL);
        return -1;
    }
    let Some(mut cpus) = OwnedMask::new(bits) else { return -1 };
    if node == -1 {
        words::fill(cpus.words_mut(), bits);
    } else if !cpus::is_known(node as usize) {
        error::warn(warning::NODE_CPUS_UNREADABLE, Arguments::None);
        kernel::set_errno(if node as usize > MAX_NODE.get() { libc::ERANGE } else { libc::ENOENT });
        return -1;
    } else if cpus::node_to_cpus(node, cpus.words_mut(), bits) < 0 {
        return -1;
    }
    kernel::set_affinity(0, cpus.words_mut()).map_or(-1, |()| 0)
}

/// Makes the calling thread run on the CPUs of these nodes. A node that is not allowed is warned of
/// and left out.
fn run_on(words: &[Word], bits: usize, is_allowed: impl Fn(usize) -> bool) -> c_int {
    let Some(mut cpus) = OwnedMask::new(CPUMASK_BITS.get()) else { return -1 };
    for node in words::ones(words, bits) {
        if is_allowed(node) {
            for cpu in cpus::of_node(node) {
                words::set(cpus.words_mut(), cpu);
            }
        } else {
            error::warn(warning::NODE_NOT_ALLOWED, Arguments::Int(node as c_int));
        }
    }
    match kernel::set_affinity(0, cpus.words_mut()) {
        Ok(()) => 0,
        Err(_) => {
            error::report(c"numa_sched_setaffinity_v2_int() failed");
            -1
        }
    }
}

/// Runs the calling thread on the CPUs of these nodes. The nodes of a cpuset are those with its
/// memory; a node that has no memory at all cannot be among them, and is allowed.
pub fn run_on_nodes(words: &[Word], bits: usize) -> c_int {
    // SAFETY: the constructor made the mask, which is never changed or freed.
    let (allowed, allowed_bits) = unsafe { Bitmask::words(data::all_nodes()) };
    let is_in = |node| node < allowed_bits && words::is_set(allowed, node);
    run_on(words, bits, |node| is_in(node) || has_no_memory(node))
}

fn has_no_memory(node: usize) -> bool {
    let errno = kernel::errno();
    let size = nodes::size(node);
    kernel::set_errno(errno);
    size.is_some_and(|size| size.total == 0)
}

/// See [`run_on_nodes`].
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_run_on_node_mask(nodes: *mut Bitmask) -> c_int {
    // SAFETY: passed on to the caller.
    let (words, bits) = unsafe { Bitmask::words(nodes) };
    run_on_nodes(words, bits)
}

/// As [`numa_run_on_node_mask`], on any node that exists.
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_run_on_node_mask_all(nodes: *mut Bitmask) -> c_int {
    // SAFETY: passed on to the caller.
    let (words, bits) = unsafe { Bitmask::words(nodes) };
    run_on(words, bits, cpus::is_known)
}
