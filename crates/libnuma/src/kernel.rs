//! Calls of the kernel. All go through `syscall`: a symbol less to be found when the library is loaded
//! is 500 instructions less for every program. Masks go to the kernel with `maxnode` = bits + 1: it looks at
//! one bit less than it is given.

use core::ffi::{CStr, c_int, c_long, c_uint, c_ulong, c_void};
use core::hint::black_box;
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

pub use nodewise_notation::mpol;

use crate::words::{Word, words_for};

/// A call failed; `errno` says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// Where the calling thread's `errno` is.
fn errno_place() -> *mut c_int {
    // SAFETY: the function has no obligation.
    unsafe { libc::__errno_location() }
}

/// The calling thread's `errno`.
pub fn errno() -> c_int {
    // SAFETY: libc has an errno for every thread, aligned and initialised.
    unsafe { *errno_place() }
}

/// Sets the calling thread's `errno`.
pub fn set_errno(value: c_int) {
    // SAFETY: as in `errno`.
    unsafe { *errno_place() = value };
}

/// Zeroed memory of malloc, aligned for any type; NULL when there is none.
///
/// malloc and not calloc: in glibc before 2.41 calloc does not use the thread's cache, and takes
/// several times as long for the few words of a mask.
pub fn zeroed(bytes: usize) -> *mut u8 {
    // SAFETY: malloc takes any size.
    let memory = unsafe { libc::malloc(bytes.max(1)) }.cast::<u8>();
    // The compiler knows that malloc and zeroing are calloc.
    let memory = black_box(memory);
    if !memory.is_null() {
        // SAFETY: malloc gave that many bytes.
        unsafe { memory.write_bytes(0, bytes) };
    }
    memory
}

/// Maps zeroed memory for reading and writing; NULL when there is none.
pub fn map(bytes: usize) -> *mut c_void {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new memory at a place that the kernel chooses concerns no other.
    let memory = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if memory == libc::MAP_FAILED { ptr::null_mut() } else { memory }
}

/// Gives back memory of [`map`].
pub fn unmap(memory: *mut c_void, bytes: usize) {
    // SAFETY: the caller mapped that many bytes there, and nothing refers to them any longer.
    let _ = unsafe { libc::munmap(memory, bytes) };
}

fn result(value: c_long) -> Result<c_long, Failed> {
    if value < 0 { Err(Failed) } else { Ok(value) }
}

/// Bits that may be named to the kernel: not more than there are words.
fn maxnode(words: &[Word], bits: usize) -> c_ulong {
    if words_for(bits) <= words.len() { bits as c_ulong + 1 } else { 0 }
}

/// The mode of the calling thread's policy with its flags, and its nodes.
pub fn thread_policy(words: &mut [Word], bits: usize) -> Result<c_int, Failed> {
    let mut mode: c_int = 0;
    let maxnode = maxnode(words, bits);
    let none: *const c_void = ptr::null();
    // SAFETY: the kernel writes a number to `mode` and at most `bits` bits in whole words to
    // `words`, which has room for them.
    result(unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, words.as_mut_ptr(), maxnode, none, 0 as c_ulong)
    })?;
    Ok(mode)
}

/// Nodes that the calling thread's cpuset allows.
pub fn mems_allowed(words: &mut [Word], bits: usize) -> Result<(), Failed> {
    let maxnode = maxnode(words, bits);
    let none: *const c_void = ptr::null();
    let flags = mpol::F_MEMS_ALLOWED as c_ulong;
    // SAFETY: as in `thread_policy`.
    result(unsafe {
        libc::syscall(libc::SYS_get_mempolicy, none, words.as_mut_ptr(), maxnode, none, flags)
    })?;
    Ok(())
}

/// Whether this kernel's nodes are not more than `count`: `maxnode` itself is compared with their
/// number (`nr_node_ids`).
pub fn fits(count: usize) -> bool {
    let mut words: [Word; words_for(crate::system::NODE_LIMIT)] = [0; words_for(crate::system::NODE_LIMIT)];
    let none: *const c_void = ptr::null();
    let (count, flags) = (count.min(crate::system::NODE_LIMIT) as c_ulong, mpol::F_MEMS_ALLOWED as c_ulong);
    // SAFETY: the kernel writes less than `count` bits in whole words, for which there is room.
    let result =
        unsafe { libc::syscall(libc::SYS_get_mempolicy, none, words.as_mut_ptr(), count, none, flags) };
    result == 0
}

/// The node of the next interleaved page of the calling thread.
pub fn next_interleave_node() -> Result<c_int, Failed> {
    let mut node: c_int = 0;
    let none: *const c_void = ptr::null();
    let flags = mpol::F_NODE as c_ulong;
    // SAFETY: the kernel writes a number to `node`, and gets no mask.
    result(unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut node, none, 0 as c_ulong, none, flags)
    })?;
    Ok(node)
}

/// Whether the kernel answers calls about policies at all.
pub fn has_policies() -> Result<(), Failed> {
    let none: *const c_void = ptr::null();
    // SAFETY: the kernel gets nothing to write to.
    result(unsafe { libc::syscall(libc::SYS_get_mempolicy, none, none, 0 as c_ulong, none, 0 as c_ulong) })?;
    Ok(())
}

/// Sets the calling thread's policy.
pub fn set_thread_policy(mode: c_int, words: &[Word], bits: usize) -> Result<(), Failed> {
    let (mask, maxnode) = match bits {
        0 => (ptr::null(), 0),
        bits => (words.as_ptr(), maxnode(words, bits)),
    };
    // SAFETY: the kernel reads `bits` bits in whole words of `mask`.
    result(unsafe { libc::syscall(libc::SYS_set_mempolicy, c_long::from(mode), mask, maxnode) })?;
    Ok(())
}

/// Sets the policy of a range of memory.
pub fn set_range_policy(
    start: *mut c_void,
    bytes: usize,
    mode: c_int,
    (words, bits): (&[Word], usize),
    flags: c_uint,
) -> Result<(), Failed> {
    let (mask, maxnode) = match bits {
        0 => (ptr::null(), 0),
        bits => (words.as_ptr(), maxnode(words, bits)),
    };
    // SAFETY: the kernel reads `bits` bits in whole words of `mask`; the policy of memory, and even
    // moving its pages, changes nothing that a program can see of its contents.
    result(unsafe {
        libc::syscall(
            libc::SYS_mbind,
            start,
            bytes as c_ulong,
            c_long::from(mode),
            mask,
            maxnode,
            c_ulong::from(flags),
        )
    })?;
    Ok(())
}

/// Whether `mbind` would take this mode with these nodes. The range is empty, so nothing is done:
/// the kernel checks mode and mask before it sees that.
pub fn takes(mode: c_int, words: &[Word], bits: usize) -> bool {
    set_range_policy(ptr::null_mut(), 0, mode, (words, bits), 0).is_ok()
}

/// Sets the home node of a range of memory (Linux 5.17).
pub fn set_home_node(start: *mut c_void, bytes: c_ulong, node: c_ulong, flags: c_ulong) -> c_long {
    // SAFETY: the kernel changes the policy of the range and writes to no memory.
    unsafe { libc::syscall(libc::SYS_set_mempolicy_home_node, start, bytes, node, flags) }
}

/// CPUs a task may run on. Returns the bytes that the kernel wrote: the size of its own mask.
pub fn affinity(task: libc::pid_t, words: &mut [Word]) -> Result<usize, Failed> {
    let bytes = size_of_val(words) as c_ulong;
    // SAFETY: the kernel writes at most `bytes` bytes to `words`.
    let written = result(unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, c_long::from(task), bytes, words.as_mut_ptr())
    })?;
    Ok(written as usize)
}

/// Sets the CPUs a task may run on.
pub fn set_affinity(task: libc::pid_t, words: &[Word]) -> Result<(), Failed> {
    let bytes = size_of_val(words) as c_ulong;
    // SAFETY: the kernel reads at most `bytes` bytes of `words`.
    result(unsafe { libc::syscall(libc::SYS_sched_setaffinity, c_long::from(task), bytes, words.as_ptr()) })?;
    Ok(())
}

/// Bytes of a page. Every allocation that touches its pages needs it, so libc is asked once.
pub fn page_size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    match SIZE.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: sysconf reads a number that libc has since the start of the program.
            let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            let size = if size > 0 { size as usize } else { 4096 };
            SIZE.store(size, Ordering::Relaxed);
            size
        }
        size => size,
    }
}

/// Opens a file for reading.
pub fn open(path: &CStr) -> Result<c_int, Failed> {
    let flags = c_long::from(libc::O_RDONLY | libc::O_CLOEXEC);
    let here = c_long::from(libc::AT_FDCWD);
    // SAFETY: the path ends with NUL.
    let file = result(unsafe { libc::syscall(libc::SYS_openat, here, path.as_ptr(), flags, 0 as c_long) })?;
    Ok(file as c_int)
}

/// Reads from a file. Returns how many bytes came; 0 at its end.
pub fn read(file: c_int, buffer: &mut [u8]) -> Result<usize, Failed> {
    let (file, start) = (c_long::from(file), buffer.as_mut_ptr());
    // SAFETY: the kernel writes at most as many bytes as the buffer has.
    let count = result(unsafe { libc::syscall(libc::SYS_read, file, start, buffer.len()) })?;
    Ok(count as usize)
}

/// Closes a file or socket of our own, and leaves `errno` as it is.
pub fn close(file: c_int) {
    let errno = errno();
    // SAFETY: a descriptor is a number; the callers close those that they opened.
    unsafe { libc::syscall(libc::SYS_close, c_long::from(file)) };
    set_errno(errno);
}

/// Whether there is a file or folder of this name.
pub fn exists(path: &CStr) -> bool {
    // SAFETY: the path ends with NUL.
    unsafe {
        libc::syscall(libc::SYS_faccessat, c_long::from(libc::AT_FDCWD), path.as_ptr(), 0 as c_long) == 0
    }
}

/// Reads where a link leads. Returns how many bytes came.
pub fn read_link(path: &CStr, buffer: &mut [u8]) -> Result<usize, Failed> {
    let (here, start) = (c_long::from(libc::AT_FDCWD), buffer.as_mut_ptr());
    // SAFETY: the path ends with NUL, and the kernel writes at most as many bytes as the buffer has.
    let count =
        result(unsafe { libc::syscall(libc::SYS_readlinkat, here, path.as_ptr(), start, buffer.len()) })?;
    Ok(count as usize)
}

/// Asks for the status of a file: its kind and its device.
pub fn status(path: &CStr) -> Option<libc::statx> {
    let mut status = MaybeUninit::<libc::statx>::uninit();
    let (here, mask) = (c_long::from(libc::AT_FDCWD), c_ulong::from(libc::STATX_TYPE));
    // SAFETY: the path ends with NUL, and there is room for the status.
    let result = unsafe {
        libc::syscall(libc::SYS_statx, here, path.as_ptr(), 0 as c_long, mask, status.as_mut_ptr())
    };
    // SAFETY: the call succeeded, so the kernel has written the whole status.
    (result == 0).then(|| unsafe { status.assume_init() })
}
