//! A kernel and the model beside each other: drawn machines, drawn scripts of system calls, and what differs.
//!
//! A script is played in a guest, by the kernel and by the model step by step: the answer to every call, the node of every
//! page after it, policies and counters. What differs is shrunk to the fewest calls that show it, in the same guest.
//! `nodewise lab --check` and the tests of the lab play the same scripts.
//!
//! This crate reads and writes the files of the guest's kernel itself, and shares no parser with the rest: the two can
//! then differ.
//!
//! # Modules
//!
//! - `random.rs` numbers from a seed; `machines.rs` drawn machines
//! - `kind.rs` kinds of scripts; `script.rs` scripts as data, `drawer.rs` drawing them, `text.rs` scripts in words
//! - `arena.rs` a guest in which scripts are played; `stage.rs` one script in the kernel and in the model: in `stage/` a child
//!   that shares memory, mappings, and pages of the pools; `program.rs` the program that a script starts; `threads.rs` its threads
//! - `group.rs` programs in a control group, as data; in `group/` drawing and shrinking them; `limited.rs` such a group in the
//!   kernel, `swap.rs` swap; `stage/group.rs` the programs in the kernel and in the model, `stage/group/foresight.rs` the model's part
//! - `cache.rs` programs with files on a disk, as data; in `cache/` drawing and shrinking them; `disk.rs` the disk;
//!   `stage/cache.rs` the programs in the kernel and in the model, `stage/cache/foresight.rs` the model's part
//! - `tally.rs` steps that were left out, and widths of intervals
//! - `nodes.rs` nodes of pages; `counters.rs` counters of the nodes; `difference.rs` what differs
//! - `trace.rs` what the model predicted in a play
//! - `outcome.rs` the outcome of a script as a guest reports it; `reproducer.rs` a C program that repeats a script
//! - `probe.rs` scripts for a program in C that plays them anywhere, and two of its outputs compared
//! - `shrink.rs` fewer calls that differ in the same way, `adapt.rs` scripts without some of their calls or pages
//! - `kernel.rs` the kernel's own words; `setting.rs` settings that are put back; `cpuset.rs` a control group
#![forbid(unsafe_code)]

mod adapt;
pub mod arena;
pub mod cache;
pub mod counters;
pub mod cpuset;
pub mod difference;
mod disk;
pub mod drawer;
pub mod group;
pub mod kernel;
pub mod kind;
mod limited;
pub mod machines;
pub mod nodes;
pub mod outcome;
pub mod probe;
pub mod program;
pub mod random;
pub mod reproducer;
pub mod script;
pub mod setting;
pub mod shrink;
mod stage;
mod swap;
pub mod tally;
mod text;
mod threads;
pub mod trace;

pub use adapt::Copies;
pub use arena::{Arena, Prediction};
pub use difference::{Difference, Trouble};
pub use drawer::Drawer;
pub use kind::{ScriptId, ScriptKind};
pub use outcome::{Found, Outcome, Shrinking};
pub use script::Script;
pub use tally::Tally;
