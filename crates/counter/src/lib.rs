//! The plugin by which QEMU counts the cache lines that a program moves, by node.
//!
//! QEMU calls it at every memory access of the guest's user code. A model of each CPU's private caches says which accesses
//! leave them, and the physical address says which node's memory they reach. Whose accesses those are is known from the
//! guest's kernel: a callback on its context switch names the task that a CPU runs, one on the start of a task makes
//! children of counted tasks counted, too. That holds over fork, clone and exec, and beside other programs.
//!
//! # Modules
//!
//! - `cache.rs` a cache with least-recently-used replacement; `cpu.rs` a CPU with its caches and its counts
//! - `tasks.rs` which of the guest's tasks are counted; `mappings.rs` whose an address is; `nodes.rs` the node of a physical address
//! - `report.rs` the counts as text; `sink.rs` a file to write it to
//! - `state.rs` everything that the plugin knows; `pages.rs` zeroed memory for it
#![cfg_attr(not(test), no_std)]

#[cfg(any(test, feature = "plugin"))]
mod cache;
#[cfg(any(test, feature = "plugin"))]
mod cpu;
#[cfg(any(test, feature = "plugin"))]
mod mappings;
#[cfg(any(test, feature = "plugin"))]
mod nodes;
#[cfg(any(test, feature = "plugin"))]
mod pages;
#[cfg(any(test, feature = "plugin"))]
mod report;
#[cfg(any(test, feature = "plugin"))]
mod sink;
#[cfg(any(test, feature = "plugin"))]
mod state;
#[cfg(any(test, feature = "plugin"))]
mod tasks;

/// How many sizes of the private cache are modelled at once: half of the machine's, the machine's, twice the machine's.
pub const SIZES: usize = 3;
