//! libnuma: the C interface of numa(3), with the versions and sizes of libnuma.so.1.
//!
//! The functions here are what C programs call. `cargo xtask libnuma` links them, with the little
//! that only C and the assembler can say (`link/`), into `libnuma.so.1` and `libnuma.a`. There is
//! no standard library and no allocator below but libc's, and no path to a panic: the link step
//! refuses a library that has one.
//!
//! Whatever is read of the system after the start is kept in tables of atomics, written by
//! read-modify-write operations only: no locks, nothing to free, and race checkers see no race.
//!
//! # Modules
//!
//! Beside `src`: `link`, the parts that only C, the assembler and the linker can express, with the lists of
//! symbols; `include`, the headers; `benches` and `tests/programs`, programs in C.
//!
//! - `available.rs`, `nodes.rs`, `distance.rs`, `cpus.rs`, `affinity.rs`, `policy.rs`, `memory.rs`,
//!   `alloc.rs`, `migrate.rs`, `parse.rs` the functions by the groups of numa(3); in `parse/` nodes by a
//!   device that is near
//! - `bitmask.rs` `struct bitmask` and its functions; `words.rs` bits in arrays of words; `table.rs` tables
//!   of what is learnt later, as large as the machine needs
//! - `compat1.rs` version 1 of the interface
//! - `data.rs` the variables that programs see; `start.rs` the constructor that fills them
//! - `error.rs` `numa_error` and `numa_warn`
//! - `kernel.rs` system calls; `system.rs` files of /sys and /proc; `text.rs` their text
//! - `link.rs` what a library without the standard library must bring
#![cfg_attr(not(test), no_std)]

mod affinity;
mod alloc;
mod available;
mod bitmask;
mod compat1;
mod cpus;
mod data;
mod distance;
mod error;
mod kernel;
#[cfg(all(feature = "link", not(test)))]
mod link;
mod memory;
mod migrate;
mod nodes;
mod parse;
mod policy;
mod start;
mod system;
mod table;
mod text;
mod words;
