//! The plugin by which QEMU counts the cache lines that a program moves, by node.
//!
//! QEMU calls it at every memory access of the guest's user code. A model of each CPU's private caches says which accesses
//! leave them, and the physical address says which node's memory they reach. Whose accesses those are is known from the
//! guest's kernel: a callback on its context switch names the task that a CPU runs, one on the start of a task makes
//! children of counted tasks counted, too. That holds over fork, clone and exec, and beside other programs.
//!
//! The sources are compiled twice: into the library of other crates, which has the plugin as [`PLUGIN`] and the words of
//! [marks](mark), and by the build script into the plugin itself (the feature `plugin`), a shared library without the
//! standard library or an allocator.
//!
//! # Modules
//!
//! - `mark.rs` marks: a no-op with arguments by which the guest speaks to the plugin
//! - `cache.rs` a cache with least-recently-used replacement; `cpu.rs` a CPU with its caches and its counts;
//!   `recent.rs` the lines that it accessed last; `streams.rs` which lines are read in order; `writers.rs` which threads write
//!   to a line
//! - `code.rs` where in programs instructions are; `maple.rs` the kernel's tree of mappings
//! - `tasks.rs` which of the guest's tasks are counted; `mappings.rs` whose an address is; `nodes.rs` the node of a physical address
//! - `phases.rs` phases that the program names
//! - `report.rs` the counts as text; `sink.rs` a file to write it to
//! - `state.rs` everything that the plugin knows; `pages.rs` zeroed memory for it
//! - `qemu.rs` the functions that QEMU calls; `qemu/api.rs` those of QEMU's that it has for
//!   plugins; `qemu/read.rs` the guest's registers and memory; `qemu/mapped.rs` its mappings;
//!   `qemu/located.rs` files of instructions
#![cfg_attr(not(test), no_std)]

pub mod mark;

#[cfg(any(test, feature = "plugin"))]
mod cache;
#[cfg(any(test, feature = "plugin"))]
mod code;
#[cfg(any(test, feature = "plugin"))]
mod cpu;
#[cfg(any(test, feature = "plugin"))]
mod maple;
#[cfg(any(test, feature = "plugin"))]
mod mappings;
#[cfg(any(test, feature = "plugin"))]
mod nodes;
#[cfg(any(test, feature = "plugin"))]
mod pages;
#[cfg(any(test, feature = "plugin"))]
mod phases;
#[cfg(any(test, feature = "plugin"))]
#[cfg_attr(test, expect(dead_code, reason = "only QEMU calls it; here it is compiled for its lints"))]
mod qemu;
#[cfg(any(test, feature = "plugin"))]
mod recent;
#[cfg(any(test, feature = "plugin"))]
mod report;
#[cfg(any(test, feature = "plugin"))]
mod sink;
#[cfg(any(test, feature = "plugin"))]
mod state;
#[cfg(any(test, feature = "plugin"))]
mod streams;
#[cfg(any(test, feature = "plugin"))]
mod tasks;
#[cfg(any(test, feature = "plugin"))]
mod writers;

/// The shared library for QEMU; empty on architectures for which the lab builds no guests.
#[cfg(not(feature = "plugin"))]
pub const PLUGIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/counter.so"));

/// Name of the kernel among the paths of files with code, which begin with a slash. Its code has addresses instead of places in a file.
pub const KERNEL: &str = "[kernel]";

/// How many sizes of the private cache are modelled at once: half of the machine's, the machine's, twice the machine's.
pub const SIZES: usize = 3;
/// The place of the machine's size among them.
pub const OWN: usize = 1;

#[cfg(all(feature = "plugin", not(test)))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        safe fn abort() -> !;
    }
    abort()
}
