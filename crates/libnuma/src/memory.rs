//! Policies of ranges of memory: `mbind` by its numa(3) names.

use core::ffi::{c_int, c_uint, c_ulong, c_void};
use core::hint::black_box;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::available::has_preferred_many;
use crate::bitmask::Bitmask;
use crate::data::NODEMASK_BITS;
use crate::error;
use crate::kernel::{self, Failed, mpol};
use crate::words::{self, Word, words_for};

unsafe extern "C" {
    /// Two numbers of the calling thread, both 0 at first; in `link/weak.c`.
    #[cfg(not(test))]
    safe fn nodewise_libnuma_thread() -> *mut Thread;
}

/// The settings of a thread for its calls. The zeros are the defaults.
#[repr(C)]
struct Thread {
    /// Whether a node is only preferred where it would be bound to.
    prefers: c_int,
    /// Flags for `mbind`.
    flags: c_uint,
}

#[cfg(test)]
extern "C" fn nodewise_libnuma_thread() -> *mut Thread {
    std::thread_local! {
        static THREAD: core::cell::UnsafeCell<Thread> = const { core::cell::UnsafeCell::new(Thread { prefers: 0, flags: 0 }) };
    }
    THREAD.with(core::cell::UnsafeCell::get)
}

/// Sets the policy of a range, with the flags of the thread. A failure is reported.
pub fn set(start: *mut c_void, bytes: usize, mode: c_int, nodes: (&[Word], usize)) -> Result<(), Failed> {
    // SAFETY: the numbers belong to this thread and live as long as it.
    let flags = unsafe { (*nodewise_libnuma_thread()).flags };
    let result = kernel::set_range_policy(start, bytes, mode, nodes, flags);
    if result.is_err() {
        error::report(c"mbind");
    }
    result
}

/// The mode for memory that belongs on certain nodes.
fn bind_mode() -> c_int {
    // SAFETY: the numbers belong to this thread and live as long as it.
    let prefers = unsafe { (*nodewise_libnuma_thread()).prefers };
    match prefers {
        0 => mpol::BIND,
        _ if has_preferred_many() => mpol::PREFERRED_MANY,
        _ => mpol::PREFERRED,
    }
}

/// Puts a range on certain nodes.
pub fn set_nodes(start: *mut c_void, bytes: usize, nodes: (&[Word], usize)) -> Result<(), Failed> {
    set(start, bytes, bind_mode(), nodes)
}

/// Puts a range on a node.
pub fn set_node(start: *mut c_void, bytes: usize, node: c_int) -> Result<(), Failed> {
    let mut words: [Word; words_for(crate::system::NODE_LIMIT)] = [0; words_for(crate::system::NODE_LIMIT)];
    let bits = NODEMASK_BITS.get();
    // A node that no mask can hold leaves the mask empty, which the kernel refuses.
    if let Some(node) = usize::try_from(node).ok().filter(|node| *node < bits) {
        words::set(&mut words, node);
    } else if bind_mode() != mpol::BIND {
        // Except as a preference, where it would mean the local node.
        kernel::set_errno(libc::EINVAL);
        error::report(c"mbind");
        return Err(Failed);
    }
    set_nodes(start, bytes, (&words, bits))
}

/// Says whether memory that belongs on nodes must (1) or should (0) be there, for this thread.
#[unsafe(no_mangle)]
pub extern "C" fn numa_set_bind_policy(strict: c_int) {
    // SAFETY: the numbers belong to this thread and live as long as it.
    unsafe { (*nodewise_libnuma_thread()).prefers = c_int::from(strict == 0) };
}

/// Says whether a range with pages elsewhere is an error (`MPOL_MF_STRICT`), for this thread.
#[unsafe(no_mangle)]
pub extern "C" fn numa_set_strict(strict: c_int) {
    // SAFETY: the numbers belong to this thread and live as long as it.
    unsafe { (*nodewise_libnuma_thread()).flags = c_uint::from(strict != 0) };
}

/// Interleaves a range page by page over these nodes.
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_interleave_memory(start: *mut c_void, bytes: usize, nodes: *mut Bitmask) {
    // SAFETY: passed on to the caller.
    let nodes = unsafe { Bitmask::words(nodes) };
    // A failure was reported, and there is nothing to return.
    let _ = set(start, bytes, mpol::INTERLEAVE, nodes);
}

/// Interleaves a range by weights over these nodes (Linux 6.9).
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_weighted_interleave_memory(
    start: *mut c_void,
    bytes: usize,
    nodes: *mut Bitmask,
) {
    // SAFETY: passed on to the caller.
    let nodes = unsafe { Bitmask::words(nodes) };
    let _ = set(start, bytes, mpol::WEIGHTED_INTERLEAVE, nodes);
}

/// Puts a range on a node.
#[unsafe(no_mangle)]
pub extern "C" fn numa_tonode_memory(start: *mut c_void, bytes: usize, node: c_int) {
    let _ = set_node(start, bytes, node);
}

/// Puts a range on these nodes.
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_tonodemask_memory(start: *mut c_void, bytes: usize, nodes: *mut Bitmask) {
    // SAFETY: passed on to the caller.
    let nodes = unsafe { Bitmask::words(nodes) };
    let _ = set_nodes(start, bytes, nodes);
}

/// Puts a range on the node of the CPU that touches it first.
#[unsafe(no_mangle)]
pub extern "C" fn numa_setlocal_memory(start: *mut c_void, bytes: usize) {
    let _ = set(start, bytes, mpol::LOCAL, (&[], 0));
}

/// Sets the home node of a range that is bound or prefers (Linux 5.17): the node that is tried
/// first. -1 and `errno` when the kernel refuses.
#[unsafe(no_mangle)]
pub extern "C" fn numa_set_mempolicy_home_node(
    start: *mut c_void,
    bytes: c_ulong,
    node: c_int,
    flags: c_int,
) -> c_int {
    // A negative number becomes one that no node has.
    kernel::set_home_node(start, bytes, node as c_uint as c_ulong, flags as c_uint as c_ulong) as c_int
}

/// Takes the pages of a range now, by the policy that is set: touches one byte of each, and leaves
/// it as it is even when other threads write to it.
///
/// # Safety
/// The range can be read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_police_memory(start: *mut c_void, bytes: usize) {
    let page = kernel::page_size();
    // An `and` that changes nothing would be compiled to a read, which takes no page of its own;
    // `black_box` keeps the compiler from seeing that it changes nothing.
    let all = black_box(0xff);
    let mut offset = 0;
    // Not `step_by`, which divides.
    while offset < bytes {
        let byte = start.cast::<u8>().wrapping_add(offset);
        // SAFETY: the byte is within the range of the caller; atomic, because others may use it.
        let byte = unsafe { AtomicU8::from_ptr(byte) };
        byte.fetch_and(all, Ordering::Relaxed);
        offset = offset.saturating_add(page);
    }
}
