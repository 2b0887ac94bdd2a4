//! The running system understood: samples in, findings out. No clock, no I/O.
//!
//! # Modules
//!
//! - `change.rs` the change between two samples, in `change/` that of a node's CPUs
//! - `attribution.rs` CPU time of a process by node, as far as it is certain
//! - `locality.rs` a process's memory against the nodes where it runs; uses of a node's memory; sizes of nodes
//! - `steering.rs` the CPUs that queues of network devices name, against the node of the device
//! - `matching.rs` which process of one moment is which of another
//! - `balance.rs` the controller of balance; `balance/limits.rs` its numbers, `balance/never.rs` processes that are left
//!   alone, `balance/means.rs` pages or threads, `balance/room.rs` budget and room, `balance/plan.rs` its answer
//! - `finding.rs` what is wrong, with proof and mend; `owner.rs` who places a process, and that owner's commands
//! - `situation.rs` a machine and its change in a window, `situation/process.rs` a process of it, `situation/pages.rs` its pages by node,
//!   `situation/fixture.rs` situations made by hand, for tests, and `situation/fixture/hostile.rs` their hostile texts;
//!   `thresholds.rs` the numbers of all rules, `thresholds/read.rs` a file that replaces some; `rule.rs` the frame of a rule; `rules.rs` the catalogue, one file per
//!   rule in `rules/`; `diagnosis.rs` rules asked, causes over their effects,
//!   `diagnosis/any.rs` samples that no kernel would write, for tests
//! - `advice.rs` the placement that a program should have: `advice/process.rs` a program's profile (`advice/profile.rs`) with
//!   its other processes (`advice/process/family.rs`), and the quality of each value (`advice/known.rs`,
//!   `advice/evidence.rs`), `advice/rows.rs` the decision table,
//!   `advice/decision.rs` which row decides, `advice/flip.rs` values that would lead to another one,
//!   `advice/in_force.rs` whether the process has it already, `advice/now.rs` commands that bring it there,
//!   `advice/apply.rs` the part that `--apply` can take back
//! - `knowledge.rs` programs that the field has advice about; `knowledge/read.rs` their file, with errors by entry and
//!   key, `knowledge/recognise.rs` which of them a process is, and how much memory its command line declares
//! - `identity.rs` sums that must hold; `example.rs` samples made by hand, for tests
#![forbid(unsafe_code)]

pub mod advice;
pub mod attribution;
pub mod balance;
pub mod change;
pub mod diagnosis;
#[cfg(test)]
mod example;
pub mod finding;
pub mod identity;
pub mod knowledge;
pub mod locality;
pub mod matching;
pub mod owner;
pub mod rule;
pub mod rules;
pub mod situation;
pub mod steering;
pub mod thresholds;

pub use advice::Advice;
pub use attribution::{CpuTime, Places};
pub use change::{Delta, DeltaError, Window};
pub use diagnosis::Diagnosis;
pub use finding::RuleFinding;
pub use identity::IdentityCheck;
pub use locality::{Locality, MemoryUse};
pub use matching::Relation;
pub use rule::Rule;
pub use situation::Situation;
pub use thresholds::Thresholds;

/// The raw values that this crate works on, for crates that may not use the readers.
pub use nodewise_source::{process::Pid, sample};
