//! The cost of each way to memory: the loops that are timed, and the surveys around them.
//!
//! Nothing here reads a file of the kernel or prints: facts of the system that a cell needs come through a
//! trait that the caller fills.
//!
//! # Modules
//!
//! - `kernel.rs` what is timed: in `kernel/` the chase and the stream; `timer.rs` the clock
//! - `kernel/cycle.rs` the order of a chase, proven by a walk; `kernel/track.rs` that order laid into memory
//! - `cell.rs` who reaches for which memory; in `cell/` memory and threads that are proven to be where they
//!   should be, the memory of a round (`cell/memories.rs`), work between samples (`cell/phase.rs`), why a
//!   cell has no value, and questions to the system meanwhile
//! - `stop.rs` what ends a measurement before it is complete: the user, or a limit of time
//! - `survey.rs` the loop over the cells of a matrix, interleaved in rounds; in `survey/` what it leaves, the
//!   figure of a cell, the survey as a whole (`survey/account.rs`), what figures of pairs of nodes show
//!   (`survey/pairs.rs`), and the frame of all findings (`survey/finding.rs`)
//! - `latency.rs` latency of memory; in `latency/` the record of a matrix, what it shows, sweeps over sizes,
//!   and the last-level cache that decides default sizes (`latency/cache.rs`); `latency/loaded.rs` latency
//!   while others move data, in `latency/loaded/` these others (`latency/loaded/traffic.rs`), the record,
//!   where a curve bends (`latency/loaded/knee.rs`), what it shows
//! - `kernel/bandwidth.rs` passes over memory: in `kernel/bandwidth/` which there are and the bytes they move
//!   (`kernel/bandwidth/count.rs`), the ways to run one, one pass, and the loops: in plain Rust, for x86 and
//!   for Arm; `kernel/lines.rs` cache lines that two CPUs hand to each other
//! - `team.rs` threads that pass over memory at the same time; in `team/` the window in which they are
//!   counted, and what each works on
//! - `bandwidth.rs` bandwidth of memory; in `bandwidth/` the contest of variants, the record, what it shows,
//!   weights for interleaving, and the peak of the memory beside it (`bandwidth/yardstick.rs`)
//! - `bandwidth/file.rs` files in memory; in `bandwidth/file/` one that is proven to be on a node
//!   (`bandwidth/file/pages.rs`), and the record
//! - `io.rs` disks and files that are read into memory of each node; in `io/` opening one for direct I/O
//!   (`io/target.rs`), the record, what it shows
//! - `perftest.rs` what perftest prints; in `perftest/` its columns, reading a table, tables side by side
//!   (`perftest/compare.rs`), where a curve bends as it should not (`perftest/kink.rs`)
//! - `figures.rs` what other tools for memory print; in `figures/` a file per tool: Intel Memory Latency Checker
//!   (`figures/mlc.rs`), STREAM (`figures/stream.rs`), perf (`figures/perf.rs`), and what they share
//!   (`figures/text.rs`)
//! - `c2c.rs` core to core; in `c2c/` how CPUs are related, and the record
//! - `workload.rs` the programs built in; in `workload/` how large they are, and what they report
#![deny(unsafe_code)]

pub mod bandwidth;
pub mod c2c;
pub mod cell;
pub mod figures;
pub mod io;
pub mod kernel;
pub mod latency;
pub mod perftest;
pub mod stop;
pub mod survey;
pub mod team;
pub mod timer;
pub mod workload;
