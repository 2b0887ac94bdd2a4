//! Which placement is best: programs run under placements, in experiments.
//!
//! ```text
//! Machine ─► candidates ─► Plan ─► Experiment ─► Study ─► Analysis
//!                                    │  ▲
//!                              an Arm▼  │a Run
//!                                  Executor: command, serve, or a mock in tests
//! ```
//!
//! Nothing here reads a file of the kernel or prints. What a run cannot see of itself comes through
//! [`executor::Witness`]. Planning, order and verdicts are pure: the same seed and the same runs give
//! the same words.
//!
//! # Modules
//!
//! - `candidates.rs` which placements are worth trying on a machine, and why the others are not; in
//!   `candidates/` nodes, cores, and sets of CPUs by name
//! - `experiment.rs` the loop behind `tune`, in `experiment/` when an arm that fails is given up
//!   (`experiment/failures.rs`) and what the time allows (`experiment/budget.rs`); `race.rs` which arms drop
//!   out of it and when the best is known, in `race/` how its error is divided (`race/shares.rs`) and the
//!   second stage, in which what helps alone is tried together (`race/crossing.rs`); `schedule.rs` the order
//!   of runs; `executor.rs` what runs an arm; `mock.rs` one for tests, without a clock
//! - `evidence.rs` what the kernel counted during a run, and which runs are made again; `fidelity.rs` whether
//!   a program ran as its arm asks
//! - `journal.rs` a study that outlives its process; in `journal/` its lines, and their entries as JSON
//! - `cooling.rs` waiting between runs until the CPUs are cool
//! - `serve.rs` the executor of a server with a client; in `serve/` when it is ready, and its process
//! - `command.rs` the executor that starts real programs; in `command/` their environment, output,
//!   supervision, one run for what it prints (`command/once.rs`), what runs before them
//!   (`command/preparation.rs`), and when to look at their pages
//! - `synthetic.rs` experiments whose truth is known; in `synthetic/` what disturbs their runs, equal arms
//!   (`synthetic/equal.rs`), suites in which nothing differs (`synthetic/suites.rs`) and the recorded series (`synthetic/series.rs`)
//! - `switching.rs` something that is switched on and off in blocks of time, as `balance --evaluate` does with
//!   itself: the order of blocks, what a time can show, and what they show
//! - `metric.rs` what is compared; `study.rs` what an experiment leaves, in `study/` what it was to do
//! - `verdict.rs` what a study shows and what it does not; in `verdict/` arms against the baseline in pairs
//! - `emit.rs` a placement in other tools' words; in `emit/` a file per kind of tool, and numbers of threads
//!   (`emit/threads.rs`); `shell.rs` words as a shell needs them
//! - `suite.rs` sets of benchmarks; in `suite/` their file (`suite/parse.rs`), commands with places to fill
//!   in (`suite/command.rs`), generated data (`suite/input.rs`), what a benchmark runs
//!   (`suite/definition.rs`), the rounds (`suite/conduct.rs`), the programs (`suite/programs.rs`), and what
//!   is left (`suite/session.rs`); `toml_text.rs` reads TOML that a user wrote
//! - `compare.rs` what two sessions of a suite show, or its placements; in `compare/` the statistics of a row
//!   (`compare/contrast.rs`), and circumstances that differ (`compare/differences.rs`); `detectable.rs` the change
//!   that a comparison would find
#![forbid(unsafe_code)]

pub mod candidates;
pub mod command;
pub mod compare;
pub mod cooling;
pub(crate) mod detectable;
pub mod emit;
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
pub mod shell;
pub mod study;
pub mod suite;
pub mod switching;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;
pub mod toml_text;
pub mod verdict;
