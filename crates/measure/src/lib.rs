//! How fast it is: placements, kernels, the experiment engine and its statistics.
//!
//! Two things are measured here: programs under placements (`nodewise tune`), and memory by programs
//! of our own. The path of the first:
//!
//! ```text
//! Machine ─► candidates ─► Plan ─► Experiment ─► Study ─► Analysis
//!                                    │  ▲
//!                              an Arm▼  │a Run
//!                                  Executor: command, or a mock in tests
//! ```
//!
//! | to find | look in |
//! |---|---|
//! | what a placement is, its name and its command lines | [`placement`] |
//! | which placements are worth trying here | [`candidates`] |
//! | in which order they run | [`schedule`] |
//! | which arms drop out, and when the best is known | [`race`] |
//! | the loop over runs, its stop rules, progress and interruption | [`experiment`] |
//! | what is planned, and what is left afterwards | [`study`], [`conditions`] |
//! | what runs a program, and what one run leaves | [`executor`], [`command`] |
//! | what the kernel counted meanwhile, and which runs are repeated | [`evidence`] |
//! | whether a program ran as its arm asks | [`fidelity`] |
//! | a study that outlives its process | [`journal`] |
//! | a server with a client | [`serve`] |
//! | what is compared: time, or a number that is printed | [`metric`] |
//! | which arm is better, and how sure that is | [`verdict`] |
//! | suites of benchmarks, and running them | [`suite`] |
//! | what two sessions of a suite show | [`compare`] |
//! | medians, intervals, tests | [`stats`], [`random`] |
//! | the loops that are timed, and their clock | [`kernel`], [`timer`] |
//! | programs built in | [`workload`] |
//! | memory of a node and a thread on a CPU, both proven | [`cell`] |
//! | the loop over the cells of a matrix, and what it leaves | [`survey`] |
//! | what ends it before it is complete | [`stop`] |
//! | latency of memory, node by node | [`latency`] |
//! | disks and files that are read into memory of each node | [`io`] |
//! | what perftest prints of RDMA devices, side by side | [`perftest`] |
//!
//! Nothing here reads a file of the kernel or prints. What a run cannot see of itself comes through
//! [`executor::Witness`]. Planning, order, statistics and verdicts are pure: the same seed and the
//! same runs give the same words.
#![deny(unsafe_code)]

pub mod bandwidth;
pub mod c2c;
pub mod candidates;
pub mod cell;
pub mod command;
pub mod compare;
pub mod cooling;
pub mod evidence;
pub mod executor;
pub mod experiment;
pub mod fidelity;
pub mod io;
pub mod journal;
pub mod kernel;
pub mod latency;
pub mod metric;
#[cfg(test)]
pub(crate) mod mock;
pub mod perftest;
pub mod race;
pub mod schedule;
pub mod serve;
pub mod stop;
pub mod study;
pub mod suite;
pub mod survey;
pub mod synthetic;
pub mod team;
pub mod timer;
pub mod verdict;
pub mod workload;
