//! The memory policy of the calling thread: `set_mempolicy` and `get_mempolicy` by their numa(3) names.

use core::ffi::{c_int, c_uint};

use crate::affinity;
use crate::available::has_preferred_many;
use crate::bitmask::{Bitmask, OwnedMask, into_raw};
use crate::data::{self, NODEMASK_BITS};
use crate::error;
use crate::kernel::{self, Failed, mpol};
use crate::words::{self, Word, words_for};

/// Room for the nodes of a policy.
type NodeWords = [Word; words_for(crate::system::NODE_LIMIT)];

/// Sets a policy and reports a failure.
pub fn set(mode: c_int, words: &[Word], bits: usize) {
    if kernel::set_thread_policy(mode, words, bits).is_err() {
        error::report(c"set_mempolicy");
    }
}

/// The mode without its flags, and the nodes, of the calling thread's policy. A failure was reported.
fn get(words: &mut [Word]) -> Result<c_int, Failed> {
    match kernel::thread_policy(words, NODEMASK_BITS.get()) {
        Ok(mode) => Ok(mode & !mpol::MODE_FLAGS),
        Err(failed) => {
            error::report(c"get_mempolicy");
            Err(failed)
        }
    }
}

/// The nodes of the calling thread's policy when its mode is one of these, else an empty mask.
pub fn nodes_if(modes: &[c_int]) -> Option<OwnedMask> {
    let mut mask = OwnedMask::for_nodes()?;
    if !get(mask.words_mut()).is_ok_and(|mode| modes.contains(&mode)) {
        mask.words_mut().fill(0);
    }
    Some(mask)
}

/// Interleaves over these nodes; over none is the default policy.
pub fn set_interleave(mode: c_int, words: &[Word], bits: usize) {
    match words::weight(words, bits) {
        0 => set(mpol::DEFAULT, &[], 0),
        _ => set(mode, words, bits),
    }
}

/// Interleaves the calling thread's memory page by page over these nodes.
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_set_interleave_mask(nodes: *mut Bitmask) {
    // SAFETY: passed on to the caller.
    let (words, bits) = unsafe { Bitmask::words(nodes) };
    set_interleave(mpol::INTERLEAVE, words, bits);
}

/// Interleaves by the weights of `/sys/kernel/mm/mempolicy/weighted_interleave` (Linux 6.9).
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_set_weighted_interleave_mask(nodes: *mut Bitmask) {
    // SAFETY: passed on to the caller.
    let (words, bits) = unsafe { Bitmask::words(nodes) };
    set_interleave(mpol::WEIGHTED_INTERLEAVE, words, bits);
}

/// The nodes that the calling thread interleaves over; none when it does not.
#[unsafe(no_mangle)]
pub extern "C" fn numa_get_interleave_mask() -> *mut Bitmask {
    into_raw(nodes_if(&[mpol::INTERLEAVE]))
}

/// The nodes that the calling thread interleaves over by weight; none when it does not.
#[unsafe(no_mangle)]
pub extern "C" fn numa_get_weighted_interleave_mask() -> *mut Bitmask {
    into_raw(nodes_if(&[mpol::WEIGHTED_INTERLEAVE]))
}

/// The node of the next interleaved page of the calling thread; 0 when it does not interleave.
#[unsafe(no_mangle)]
pub extern "C" fn numa_get_interleave_node() -> c_int {
    kernel::next_interleave_node().unwrap_or(0)
}

/// Takes memory of these nodes only.
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_set_membind(nodes: *mut Bitmask) {
    // SAFETY: passed on to the caller.
    let (words, bits) = unsafe { Bitmask::words(nodes) };
    set(mpol::BIND, words, bits);
}

/// As [`numa_set_membind`], with the kernel's NUMA balancing among the nodes where it can do that
/// (Linux 5.12).
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_set_membind_balancing(nodes: *mut Bitmask) {
    // SAFETY: passed on to the caller.
    let (words, bits) = unsafe { Bitmask::words(nodes) };
    match kernel::set_thread_policy(mpol::BIND | mpol::F_NUMA_BALANCING, words, bits) {
        Ok(()) => {}
        Err(_) if kernel::errno() == libc::EINVAL => set(mpol::BIND, words, bits),
        Err(_) => error::report(c"set_mempolicy"),
    }
}

/// The nodes that the calling thread may take memory of: those it is bound to, or else all that the
/// task could use when it started.
pub fn membind() -> Option<OwnedMask> {
    let mut mask = OwnedMask::for_nodes()?;
    if get(mask.words_mut()) != Ok(mpol::BIND) {
        // SAFETY: the constructor made the mask, which is never changed or freed.
        let (all, _) = unsafe { Bitmask::words(data::all_nodes()) };
        words::copy(all, mask.words_mut());
    }
    Some(mask)
}

/// See [`membind`].
#[unsafe(no_mangle)]
pub extern "C" fn numa_get_membind() -> *mut Bitmask {
    into_raw(membind())
}

/// Runs on the CPUs of these nodes and takes memory of them only.
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_bind(nodes: *mut Bitmask) {
    // SAFETY: passed on to the caller.
    let (words, bits) = unsafe { Bitmask::words(nodes) };
    affinity::run_on_nodes(words, bits);
    set(mpol::BIND, words, bits);
}

/// Takes memory of the node of the CPU that asks for it.
#[unsafe(no_mangle)]
pub extern "C" fn numa_set_localalloc() {
    set(mpol::LOCAL, &[], 0);
}

/// Takes memory of a node first; -1 is [`numa_set_localalloc`].
#[unsafe(no_mangle)]
pub extern "C" fn numa_set_preferred(node: c_int) {
    if node < 0 {
        return numa_set_localalloc();
    }
    let mut words: NodeWords = [0; words_for(crate::system::NODE_LIMIT)];
    words::set(&mut words, node as c_uint as usize);
    // A node that no mask can hold leaves the mask empty, which would mean the local node.
    if node as usize >= NODEMASK_BITS.get() {
        kernel::set_errno(libc::EINVAL);
        return error::report(c"set_mempolicy");
    }
    set(mpol::PREFERRED, &words, NODEMASK_BITS.get());
}

/// Takes memory of these nodes first. A kernel without `MPOL_PREFERRED_MANY` takes one node only.
///
/// # Safety
/// `nodes` is NULL or a mask that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_set_preferred_many(nodes: *mut Bitmask) {
    // SAFETY: passed on to the caller.
    let (words, bits) = unsafe { Bitmask::words(nodes) };
    if has_preferred_many() {
        return set(mpol::PREFERRED_MANY, words, bits);
    }
    if words::weight(words, bits) > 1 {
        error::warn(error::warning::ONE_PREFERRED, error::Arguments::None);
    }
    match words::ones(words, bits).next() {
        Some(first) => numa_set_preferred(first as c_int),
        None => numa_set_localalloc(),
    }
}

/// The first node of the thread's policy, whatever its mode is; -1 when it has none.
#[unsafe(no_mangle)]
pub extern "C" fn numa_preferred() -> c_int {
    let mut words: NodeWords = [0; words_for(crate::system::NODE_LIMIT)];
    // A failure was reported, and leaves no node.
    let _ = get(&mut words);
    words::ones(&words, NODEMASK_BITS.get()).next().map_or(-1, |node| node as c_int)
}

/// As [`numa_preferred`].
#[unsafe(no_mangle)]
pub extern "C" fn numa_preferred_err() -> c_int {
    numa_preferred()
}

/// The nodes of the thread's policy, whatever its mode is. numactl shows them under `preferred:`.
#[unsafe(no_mangle)]
pub extern "C" fn numa_preferred_many() -> *mut Bitmask {
    let Some(mut mask) = OwnedMask::for_nodes() else { return core::ptr::null_mut() };
    let _ = get(mask.words_mut());
    mask.into_raw()
}
