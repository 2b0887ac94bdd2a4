//! `numa_alloc_*`: anonymous memory of whole pages with a policy of its own.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use crate::bitmask::Bitmask;
use crate::data;
use crate::kernel::{self, Failed, mpol};
use crate::memory;
use crate::words::Word;

/// Maps memory and sets its policy. Memory whose policy could not be set is returned anyway,
/// unless `numa_fail_alloc_on_error` is set.
fn map_with(bytes: usize, set_policy: impl FnOnce(*mut c_void) -> Result<(), Failed>) -> *mut c_void {
    let memory = kernel::map(bytes);
    if !memory.is_null() && set_policy(memory).is_err() && data::fails_on_error() {
        // SAFETY: the memory was mapped above and is not used again.
        unsafe { numa_free(memory, bytes) };
        return null_mut();
    }
    memory
}

/// Allocates memory by the thread's policy, and takes its pages.
#[unsafe(no_mangle)]
pub extern "C" fn numa_alloc(bytes: usize) -> *mut c_void {
    let memory = kernel::map(bytes);
    if !memory.is_null() {
        // SAFETY: the memory was mapped above for reading and writing.
        unsafe { memory::numa_police_memory(memory, bytes) };
    }
    memory
}

/// Allocates memory of a node.
#[unsafe(no_mangle)]
pub extern "C" fn numa_alloc_onnode(bytes: usize, node: c_int) -> *mut c_void {
    map_with(bytes, |memory| memory::set_node(memory, bytes, node))
}

/// Allocates memory of the node of the CPU that touches it first.
#[unsafe(no_mangle)]
pub extern "C" fn numa_alloc_local(bytes: usize) -> *mut c_void {
    map_with(bytes, |memory| memory::set(memory, bytes, mpol::LOCAL, (&[], 0)))
}

/// Allocates memory that is interleaved over nodes.
pub fn interleaved(bytes: usize, mode: c_int, nodes: (&[Word], usize)) -> *mut c_void {
    map_with(bytes, |memory| memory::set(memory, bytes, mode, nodes))
}

/// The nodes that the task may take memory of.
fn all_nodes() -> (&'static [Word], usize) {
    // SAFETY: the constructor made the mask, which is never changed or freed.
    unsafe { Bitmask::words(data::all_nodes()) }
}

/// Allocates memory that is interleaved page by page over all nodes.
#[unsafe(no_mangle)]
pub extern "C" fn numa_alloc_interleaved(bytes: usize) -> *mut c_void {
    interleaved(bytes, mpol::INTERLEAVE, all_nodes())
}

/// Allocates memory that is interleaved page by page over these nodes.
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_alloc_interleaved_subset(bytes: usize, nodes: *mut Bitmask) -> *mut c_void {
    // SAFETY: passed on to the caller.
    interleaved(bytes, mpol::INTERLEAVE, unsafe { Bitmask::words(nodes) })
}

/// Allocates memory that is interleaved by weights over all nodes (Linux 6.9).
#[unsafe(no_mangle)]
pub extern "C" fn numa_alloc_weighted_interleaved(bytes: usize) -> *mut c_void {
    interleaved(bytes, mpol::WEIGHTED_INTERLEAVE, all_nodes())
}

/// Allocates memory that is interleaved by weights over these nodes (Linux 6.9).
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_alloc_weighted_interleaved_subset(
    bytes: usize,
    nodes: *mut Bitmask,
) -> *mut c_void {
    // SAFETY: passed on to the caller.
    interleaved(bytes, mpol::WEIGHTED_INTERLEAVE, unsafe { Bitmask::words(nodes) })
}

/// Changes the size of memory that was allocated here; its policy and contents stay, its address
/// may not. NULL and `errno` when that cannot be, and then nothing has changed.
///
/// # Safety
/// `old` was allocated here with `old_bytes`, and is not used again unless the result is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_realloc(old: *mut c_void, old_bytes: usize, bytes: usize) -> *mut c_void {
    // SAFETY: passed on to the caller.
    let memory = unsafe { libc::mremap(old, old_bytes, bytes, libc::MREMAP_MAYMOVE) };
    if memory == libc::MAP_FAILED { null_mut() } else { memory }
}

/// Frees memory that was allocated here.
///
/// # Safety
/// `memory` was allocated here with this size, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_free(memory: *mut c_void, bytes: usize) {
    // SAFETY: passed on to the caller.
    unsafe { libc::munmap(memory, bytes) };
}
