//! How many nodes and CPUs there are, how large a node is, and the size of a page.

use core::ffi::{c_int, c_long, c_longlong};
use core::sync::atomic::{AtomicI32, Ordering};

use crate::bitmask::{Bitmask, OwnedMask, into_raw};
use crate::data::{CPUMASK_BITS, MAX_NODE, NODEMASK_BITS, NODES, TASK_CPUS, TASK_NODES};
use crate::error;
use crate::kernel;
use crate::system::{self, FILE_BYTES};
use crate::text;

/// The highest node that the kernel could have.
#[unsafe(no_mangle)]
pub extern "C" fn numa_max_possible_node() -> c_int {
    NODEMASK_BITS.get() as c_int - 1
}

/// Bits of the kernel's masks of nodes.
#[unsafe(no_mangle)]
pub extern "C" fn numa_num_possible_nodes() -> c_int {
    NODEMASK_BITS.get() as c_int
}

/// Bits of the kernel's masks of CPUs.
#[unsafe(no_mangle)]
pub extern "C" fn numa_num_possible_cpus() -> c_int {
    CPUMASK_BITS.get() as c_int
}

/// The highest node that exists.
#[unsafe(no_mangle)]
pub extern "C" fn numa_max_node() -> c_int {
    MAX_NODE.get() as c_int
}

/// How many nodes exist.
#[unsafe(no_mangle)]
pub extern "C" fn numa_num_configured_nodes() -> c_int {
    NODES.get() as c_int
}

/// How many CPUs exist, those that are off included. Read from libc once.
#[unsafe(no_mangle)]
pub extern "C" fn numa_num_configured_cpus() -> c_int {
    static COUNT: AtomicI32 = AtomicI32::new(0);
    match COUNT.load(Ordering::Relaxed) {
        0 => {
            // SAFETY: sysconf has no obligation.
            let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) } as c_int;
            COUNT.swap(count, Ordering::Relaxed);
            count
        }
        count => count,
    }
}

/// How many nodes the task could take memory of when the library was loaded.
#[unsafe(no_mangle)]
pub extern "C" fn numa_num_task_nodes() -> c_int {
    TASK_NODES.get() as c_int
}

/// The older name of `numa_num_task_nodes`.
#[unsafe(no_mangle)]
pub extern "C" fn numa_num_thread_nodes() -> c_int {
    numa_num_task_nodes()
}

/// How many CPUs the task could run on when the library was loaded.
#[unsafe(no_mangle)]
pub extern "C" fn numa_num_task_cpus() -> c_int {
    TASK_CPUS.get() as c_int
}

/// The older name of `numa_num_task_cpus`.
#[unsafe(no_mangle)]
pub extern "C" fn numa_num_thread_cpus() -> c_int {
    numa_num_task_cpus()
}

/// An empty mask for nodes.
#[unsafe(no_mangle)]
pub extern "C" fn numa_allocate_nodemask() -> *mut Bitmask {
    into_raw(OwnedMask::for_nodes())
}

/// An empty mask for CPUs.
#[unsafe(no_mangle)]
pub extern "C" fn numa_allocate_cpumask() -> *mut Bitmask {
    into_raw(OwnedMask::new(CPUMASK_BITS.get()))
}

/// Nodes that the calling thread may take memory of now.
#[unsafe(no_mangle)]
pub extern "C" fn numa_get_mems_allowed() -> *mut Bitmask {
    let Some(mut mask) = OwnedMask::for_nodes() else { return core::ptr::null_mut() };
    if kernel::mems_allowed(mask.words_mut(), NODEMASK_BITS.get()).is_err() {
        error::report(c"get_mempolicy");
    }
    mask.into_raw()
}

/// How large a node is, in bytes.
pub struct Size {
    pub total: c_longlong,
    /// The free part; `None` when the kernel does not say.
    pub free: Option<c_longlong>,
}

/// The size of a node, from its `meminfo`.
pub fn size(node: usize) -> Option<Size> {
    let mut buffer = [0; FILE_BYTES];
    let meminfo = system::read(system::node_file(node, b"meminfo").c_str(), &mut buffer).ok()?;
    // Neither can be above what a signed number holds.
    let size = |name: &[u8]| text::meminfo(meminfo, name).and_then(|size| c_longlong::try_from(size).ok());
    Some(Size { total: size(b"MemTotal:")?, free: size(b"MemFree:") })
}

/// Bytes of memory of a node, and how many are free; -1 when the kernel does not say.
///
/// # Safety
/// `free` is NULL or a number to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_node_size64(node: c_int, free: *mut c_longlong) -> c_longlong {
    let size = usize::try_from(node).map_or_else(
        |_| {
            kernel::set_errno(libc::ENOENT);
            None
        },
        size,
    );
    if !free.is_null() {
        let bytes = size.as_ref().and_then(|size| size.free).unwrap_or(-1);
        // SAFETY: the caller says that it can be written to.
        unsafe { free.write(bytes) };
    }
    size.map_or(-1, |size| size.total)
}

/// As [`numa_node_size64`], in the machine's `long`.
///
/// # Safety
/// `free` is NULL or a number to write to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn numa_node_size(node: c_int, free: *mut c_long) -> c_long {
    let mut free64: c_longlong = -1;
    // SAFETY: the number is our own.
    let size = unsafe { numa_node_size64(node, &raw mut free64) };
    if !free.is_null() {
        // SAFETY: the caller says that it can be written to.
        unsafe { free.write(free64 as c_long) };
    }
    size as c_long
}

/// Bytes of a page.
#[unsafe(no_mangle)]
pub extern "C" fn numa_pagesize() -> c_int {
    static SIZE: AtomicI32 = AtomicI32::new(0);
    match SIZE.load(Ordering::Relaxed) {
        0 => {
            let size = kernel::page_size() as c_int;
            SIZE.swap(size, Ordering::Relaxed);
            size
        }
        size => size,
    }
}
