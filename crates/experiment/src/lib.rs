//! Which placement is best: programs run under placements, in experiments.
//!
//! ```text
//! Machine ─► candidates ─► Plan ─► Experiment ─► Study ─► Analysis
//!                                    │  ▲
//!                              an Arm▼  │a Run
//!                                  Executor: command, serve, or a mock in tests
//! ```
//!
//! | to find | look in |
//! |---|---|
//! | which placements are worth trying here | [`candidates`] |
//! | in which order they run | [`schedule`] |
//! | which arms drop out, and when the best is known | [`race`] |
//! | the loop over runs, its stop rules, progress and interruption | [`experiment`] |
//! | the plan, and the record of what ran | [`study`] |
//! | starting a program, and one run's record | [`executor`], [`command`] |
//! | the kernel's counters during a run, and repeated runs | [`evidence`] |
//! | whether a program ran as its arm asks | [`fidelity`] |
//! | waiting until the CPUs are cool | [`cooling`] |
//! | a study that outlives its process | [`journal`] |
//! | a server with a client | [`serve`] |
//! | the number to compare: time, or what the program prints | [`metric`] |
//! | which arm is better, and how sure that is | [`verdict`] |
//! | suites of benchmarks, and running them | [`suite`] |
//! | differences between two sessions of a suite | [`compare`] |
//!
//! Nothing here reads a file of the kernel or prints. What a run cannot see of itself comes through
//! [`executor::Witness`]. Planning, order and verdicts are pure: the same seed and the same runs give
//! the same words.
#![forbid(unsafe_code)]

pub mod candidates;
pub mod command;
pub mod compare;
pub mod cooling;
pub mod evidence;
pub mod executor;
pub mod experiment;
pub mod fidelity;
pub mod journal;
pub mod metric;
#[cfg(test)]
pub(crate) mod mock;
pub mod race;
pub mod schedule;
pub mod serve;
pub mod study;
pub mod suite;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;
pub mod verdict;
