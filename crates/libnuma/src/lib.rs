//! libnuma: the C interface of numa(3), with the versions and sizes of libnuma.so.1.
//!
//! The functions here are what C programs call. `cargo xtask libnuma` links them, with the little
//! that only C and the assembler can say (`link/`), into `libnuma.so.1` and `libnuma.a`. There is
//! no standard library and no allocator below but libc's, and no path to a panic: the link step
//! refuses a library that has one.
//!
//! Whatever is read of the system after the start is kept in tables of atomics, written by
//! read-modify-write operations only: no locks, nothing to free, and race checkers see no race.
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
