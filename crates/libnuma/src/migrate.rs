//! Moving pages: of a whole process, and one by one.

use core::ffi::{c_int, c_long, c_ulong, c_void};

use crate::bitmask::Bitmask;
use crate::data::NODEMASK_BITS;
use crate::system::NODE_LIMIT;
use crate::words::{self, Word, words_for};

/// Moves a process's pages from nodes to other nodes; 0 is the caller's own process. Returns how
/// many could not be moved; -1 and `errno` when the kernel refuses.
///
/// # Safety
/// Both are NULL or masks that no code changes during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_migrate_pages(process: c_int, from: *mut Bitmask, to: *mut Bitmask) -> c_int {
    // SAFETY: passed on to the caller.
    let from = from_c(unsafe { Bitmask::words(from) });
    // SAFETY: as above.
    let to = from_c(unsafe { Bitmask::words(to) });
    let maxnode = NODEMASK_BITS.get() as c_ulong + 1;
    let process = c_long::from(process);
    // SAFETY: the kernel reads `maxnode` - 1 bits of both arrays, which have more.
    let left =
        unsafe { libc::syscall(libc::SYS_migrate_pages, process, maxnode, from.as_ptr(), to.as_ptr()) };
    left as c_int
}

/// Both masks of the call have one size, those of the caller need not.
fn from_c((words, bits): (&[Word], usize)) -> [Word; words_for(NODE_LIMIT)] {
    let mut copy = [0; words_for(NODE_LIMIT)];
    for node in words::ones(words, bits) {
        words::set(&mut copy, node);
    }
    copy
}

/// Moves pages of a process, each to its node, or with no nodes shows where they are. See
/// move_pages(2).
///
/// # Safety
/// `pages` and `status` have `count` places; `nodes` too, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_move_pages(
    process: c_int,
    count: c_ulong,
    pages: *mut *mut c_void,
    nodes: *const c_int,
    status: *mut c_int,
    flags: c_int,
) -> c_int {
    let (process, flags) = (c_long::from(process), c_long::from(flags));
    // SAFETY: passed on to the caller.
    let result = unsafe { libc::syscall(libc::SYS_move_pages, process, count, pages, nodes, status, flags) };
    result as c_int
}
