//! Version 1 of the interface: functions that programs of before 2008 call by the names of version
//! 2. `link/version1.S` gives them their names, such as `numa_bind@libnuma_1.1`.

use core::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use core::slice;

use crate::affinity;
use crate::alloc;
use crate::bitmask::OwnedMask;
use crate::cpus;
use crate::data::{CPUMASK_BITS, Nodemask};
use crate::kernel::{self, mpol};
use crate::memory;
use crate::parse;
use crate::policy;
use crate::words::{self, WORD_BITS, Word, words_for};

/// The nodes of a mask that C passed; NULL has none.
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
unsafe fn nodes_of(nodes: *const Nodemask) -> Nodemask {
    // SAFETY: passed on to the caller.
    unsafe { nodes.as_ref() }.copied().unwrap_or(Nodemask::EMPTY)
}

fn nodemask(mask: Option<OwnedMask>) -> Nodemask {
    let mut nodes = Nodemask::EMPTY;
    if let Some(mut mask) = mask {
        words::copy(mask.words_mut(), &mut nodes.words);
    }
    nodes
}

/// See [`policy::numa_bind`].
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nodewise_v1_numa_bind(nodes: *const Nodemask) {
    // SAFETY: passed on to the caller.
    let nodes = unsafe { nodes_of(nodes) };
    affinity::run_on_nodes(&nodes.words, Nodemask::BITS);
    policy::set(mpol::BIND, &nodes.words, Nodemask::BITS);
}

/// See [`policy::numa_set_membind`].
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nodewise_v1_numa_set_membind(nodes: *const Nodemask) {
    // SAFETY: passed on to the caller.
    let nodes = unsafe { nodes_of(nodes) };
    policy::set(mpol::BIND, &nodes.words, Nodemask::BITS);
}

/// See [`policy::numa_get_membind`].
#[unsafe(no_mangle)]
pub extern "C" fn nodewise_v1_numa_get_membind() -> Nodemask {
    nodemask(policy::membind())
}

/// See [`policy::numa_set_interleave_mask`].
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nodewise_v1_numa_set_interleave_mask(nodes: *const Nodemask) {
    // SAFETY: passed on to the caller.
    let nodes = unsafe { nodes_of(nodes) };
    policy::set_interleave(mpol::INTERLEAVE, &nodes.words, Nodemask::BITS);
}

/// See [`policy::numa_get_interleave_mask`].
#[unsafe(no_mangle)]
pub extern "C" fn nodewise_v1_numa_get_interleave_mask() -> Nodemask {
    nodemask(policy::nodes_if(&[mpol::INTERLEAVE]))
}

/// See [`affinity::numa_run_on_node_mask`].
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nodewise_v1_numa_run_on_node_mask(nodes: *const Nodemask) -> c_int {
    // SAFETY: passed on to the caller.
    affinity::run_on_nodes(&unsafe { nodes_of(nodes) }.words, Nodemask::BITS)
}

/// See [`affinity::numa_get_run_node_mask`].
#[unsafe(no_mangle)]
pub extern "C" fn nodewise_v1_numa_get_run_node_mask() -> Nodemask {
    nodemask(affinity::run_node_mask())
}

/// See [`memory::numa_interleave_memory`].
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nodewise_v1_numa_interleave_memory(
    start: *mut c_void,
    bytes: usize,
    nodes: *const Nodemask,
) {
    // SAFETY: passed on to the caller.
    let nodes = unsafe { nodes_of(nodes) };
    // A failure was reported, and there is nothing to return.
    let _ = memory::set(start, bytes, mpol::INTERLEAVE, (&nodes.words, Nodemask::BITS));
}

/// See [`memory::numa_tonodemask_memory`].
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nodewise_v1_numa_tonodemask_memory(
    start: *mut c_void,
    bytes: usize,
    nodes: *const Nodemask,
) {
    // SAFETY: passed on to the caller.
    let nodes = unsafe { nodes_of(nodes) };
    let _ = memory::set_nodes(start, bytes, (&nodes.words, Nodemask::BITS));
}

/// See [`alloc::numa_alloc_interleaved_subset`].
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nodewise_v1_numa_alloc_interleaved_subset(
    bytes: usize,
    nodes: *const Nodemask,
) -> *mut c_void {
    // SAFETY: passed on to the caller.
    let nodes = unsafe { nodes_of(nodes) };
    alloc::interleaved(bytes, mpol::INTERLEAVE, (&nodes.words, Nodemask::BITS))
}

/// The words of a buffer that C passed; none for NULL.
///
/// # Safety
/// `buffer` is NULL or has that many bytes, aligned for words, and no other code uses it now.
unsafe fn buffer_of<'a>(buffer: *mut c_ulong, bytes: usize) -> &'a mut [Word] {
    if buffer.is_null() {
        return &mut [];
    }
    // SAFETY: passed on to the caller; a rest of less than a word is left alone.
    unsafe { slice::from_raw_parts_mut(buffer, bytes / size_of::<Word>()) }
}

/// See [`cpus::numa_node_to_cpus`]; `bytes` is the size of `buffer`.
///
/// # Safety
/// `buffer` is NULL or has that many bytes, aligned for words, and no other code uses it now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nodewise_v1_numa_node_to_cpus(
    node: c_int,
    buffer: *mut c_ulong,
    bytes: c_int,
) -> c_int {
    // SAFETY: passed on to the caller.
    let words = unsafe { buffer_of(buffer, usize::try_from(bytes).unwrap_or(0)) };
    if words.len() < words_for(CPUMASK_BITS.get()) {
        kernel::set_errno(libc::ERANGE);
        return -1;
    }
    let bits = words.len() * WORD_BITS;
    cpus::node_to_cpus(node, words, bits)
}

/// See [`parse::numa_parse_bitmap`]; `cpus` is the size of `buffer` in bits.
///
/// # Safety
/// `line` is NULL or a text; `buffer` is NULL or has that many bits in whole words, and no other code uses it
/// now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nodewise_v1_numa_parse_bitmap(
    line: *mut c_char,
    buffer: *mut c_ulong,
    cpus: c_int,
) -> c_int {
    let bytes = words_for(usize::try_from(cpus).unwrap_or(0)) * size_of::<Word>();
    // SAFETY: passed on to the caller.
    let words = unsafe { buffer_of(buffer, bytes) };
    // SAFETY: as above.
    unsafe { parse::bitmap(line, words) }
}

/// See [`affinity::numa_sched_getaffinity`]; `bytes` is the size of `buffer`.
///
/// # Safety
/// `buffer` is NULL or has that many bytes, aligned for words, and no other code uses it now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nodewise_v1_numa_sched_getaffinity(
    task: libc::pid_t,
    bytes: c_uint,
    buffer: *mut c_ulong,
) -> c_int {
    // SAFETY: passed on to the caller.
    let words = unsafe { buffer_of(buffer, bytes as usize) };
    kernel::affinity(task, words).map_or(-1, |written| written as c_int)
}

/// See [`affinity::numa_sched_setaffinity`]; `bytes` is the size of `buffer`.
///
/// # Safety
/// `buffer` is NULL or has that many bytes, aligned for words, and no other code uses it now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nodewise_v1_numa_sched_setaffinity(
    task: libc::pid_t,
    bytes: c_uint,
    buffer: *mut c_ulong,
) -> c_int {
    // SAFETY: passed on to the caller.
    let words = unsafe { buffer_of(buffer, bytes as usize) };
    kernel::set_affinity(task, words).map_or(-1, |()| 0)
}
