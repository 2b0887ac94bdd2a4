//! What each way to memory costs: the loops that are timed, and the surveys around them.
//!
//! | to find | look in |
//! |---|---|
//! | the loops that are timed, and their clock | [`kernel`], [`timer`] |
//! | memory of a node and a thread on a CPU, both proven | [`cell`] |
//! | threads that pass over memory at the same time | [`team`] |
//! | the loop over the cells of a matrix, and its record | [`survey`] |
//! | an early end: an interrupt, or a limit of time | [`stop`] |
//! | latency of memory, node by node | [`latency`] |
//! | bandwidth of memory | [`bandwidth`] |
//! | cache lines from core to core | [`c2c`] |
//! | disks and files that are read into memory of each node | [`io`] |
//! | what perftest prints of RDMA devices, side by side | [`perftest`] |
//! | programs built in | [`workload`] |
//!
//! Nothing here reads a file of the kernel or prints: facts of the system that a cell needs come through a
//! trait that the caller fills.
#![deny(unsafe_code)]

pub mod bandwidth;
pub mod c2c;
pub mod cell;
pub mod io;
pub mod kernel;
pub mod latency;
pub mod perftest;
pub mod stop;
pub mod survey;
pub mod team;
pub mod timer;
pub mod workload;
