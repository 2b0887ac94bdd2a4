//! The variables that C programs see, and the facts behind them. Filled by the constructor
//! (`start.rs`) before any other code of a program runs, and not changed after it.
//!
//! Programs take copy relocations of the variables, so their sizes are part of the interface.

use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::bitmask::Bitmask;
use crate::words::{Word, words_for};

/// `nodemask_t` of numa.h: 128 bits on x86, 2048 elsewhere.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Nodemask {
    pub words: [Word; words_for(Self::BITS)],
}

impl Nodemask {
    /// Its size in bits.
    pub const BITS: usize = if cfg!(any(target_arch = "x86_64", target_arch = "x86")) { 128 } else { 2048 };
    /// No node.
    pub const EMPTY: Self = Self { words: [0; words_for(Self::BITS)] };
}

mod exported {
    use super::{Bitmask, Nodemask, c_int, null_mut};

    /// Nodes that the task may take memory of.
    #[unsafe(no_mangle)]
    pub static mut numa_all_nodes_ptr: *mut Bitmask = null_mut();
    /// Nodes that exist.
    #[unsafe(no_mangle)]
    pub static mut numa_nodes_ptr: *mut Bitmask = null_mut();
    /// No node.
    #[unsafe(no_mangle)]
    pub static mut numa_no_nodes_ptr: *mut Bitmask = null_mut();
    /// CPUs that the task may run on.
    #[unsafe(no_mangle)]
    pub static mut numa_all_cpus_ptr: *mut Bitmask = null_mut();
    /// As `numa_all_nodes_ptr`, for version 1 of the interface.
    #[unsafe(no_mangle)]
    pub static mut numa_all_nodes: Nodemask = Nodemask::EMPTY;
    /// No node, for version 1 of the interface.
    #[unsafe(no_mangle)]
    pub static mut numa_no_nodes: Nodemask = Nodemask::EMPTY;
    /// Whether `numa_error` ends the program.
    #[unsafe(no_mangle)]
    pub static mut numa_exit_on_error: c_int = 0;
    /// Whether `numa_warn` ends the program.
    #[unsafe(no_mangle)]
    pub static mut numa_exit_on_warn: c_int = 0;
    /// Whether an allocation fails when its policy cannot be set.
    #[unsafe(no_mangle)]
    pub static mut numa_fail_alloc_on_error: c_int = 0;
}

/// A number that the constructor finds out.
pub struct Fact(AtomicUsize);

impl Fact {
    const fn new(value: usize) -> Self {
        Self(AtomicUsize::new(value))
    }

    /// The number.
    #[inline]
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// For the constructor: stores it.
    pub fn set(&self, value: usize) {
        self.0.store(value, Ordering::Relaxed);
    }
}

/// Bits of the kernel's masks of nodes: its `MAX_NUMNODES`.
pub static NODEMASK_BITS: Fact = Fact::new(64);
/// Bits of the kernel's masks of CPUs.
pub static CPUMASK_BITS: Fact = Fact::new(64);
/// The highest node.
pub static MAX_NODE: Fact = Fact::new(0);
/// How many nodes there are.
pub static NODES: Fact = Fact::new(0);
/// How many nodes the task could take memory of when it started.
pub static TASK_NODES: Fact = Fact::new(0);
/// How many CPUs the task could run on when it started.
pub static TASK_CPUS: Fact = Fact::new(0);

/// For the constructor: hands the masks to C.
pub fn publish(all_nodes: *mut Bitmask, nodes: *mut Bitmask, no_nodes: *mut Bitmask, all_cpus: *mut Bitmask) {
    // SAFETY: the constructor runs before any code that reads the variable.
    unsafe { exported::numa_all_nodes_ptr = all_nodes };
    // SAFETY: as above.
    unsafe { exported::numa_nodes_ptr = nodes };
    // SAFETY: as above.
    unsafe { exported::numa_no_nodes_ptr = no_nodes };
    // SAFETY: as above.
    unsafe { exported::numa_all_cpus_ptr = all_cpus };
}

/// For the destructor: takes the masks back.
pub fn withdraw() -> [*mut Bitmask; 4] {
    let masks = [all_nodes(), nodes(), no_nodes(), all_cpus()];
    publish(null_mut(), null_mut(), null_mut(), null_mut());
    masks
}

/// For the constructor: the nodes for version 1.
pub fn publish_version1(all_nodes: Nodemask) {
    // SAFETY: the constructor runs before any code that reads the variable.
    unsafe { exported::numa_all_nodes = all_nodes };
}

/// `numa_all_nodes_ptr`.
pub fn all_nodes() -> *mut Bitmask {
    // SAFETY: programs do not assign to it (numa(3): the user should not alter it).
    unsafe { exported::numa_all_nodes_ptr }
}

/// `numa_nodes_ptr`.
pub fn nodes() -> *mut Bitmask {
    // SAFETY: as `numa_all_nodes_ptr`.
    unsafe { exported::numa_nodes_ptr }
}

/// `numa_no_nodes_ptr`.
fn no_nodes() -> *mut Bitmask {
    // SAFETY: as `numa_all_nodes_ptr`.
    unsafe { exported::numa_no_nodes_ptr }
}

/// `numa_all_cpus_ptr`.
pub fn all_cpus() -> *mut Bitmask {
    // SAFETY: as `numa_all_nodes_ptr`.
    unsafe { exported::numa_all_cpus_ptr }
}

/// `numa_fail_alloc_on_error`.
pub fn fails_on_error() -> bool {
    let flag = &raw const exported::numa_fail_alloc_on_error;
    // SAFETY: the variable lives as long as the library; a program may assign to it at any time,
    // and a volatile read takes whatever is there.
    unsafe { flag.read_volatile() != 0 }
}
