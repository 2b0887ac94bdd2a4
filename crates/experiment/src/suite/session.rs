//! Record of one run of a suite: every sample, the circumstances, and what was not run.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::executor::Residency;
use crate::suite::definition::Definition;
use nodewise_machine::conditions::Conditions;
use nodewise_stats::Direction;

/// The name of the placement that leaves everything as it is.
pub const DEFAULT: &str = "default";

/// A suite that was run, or figures that were recorded elsewhere in its shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The title of the suite.
    pub suite: String,
    /// Where the figures come from, when nodewise has not measured them.
    pub origin: Option<String>,
    pub conditions: Conditions,
    /// More of them, under the names that tables give them: `microcode`, `kernel command line`.
    pub settings: BTreeMap<String, String>,
    /// The programs that benchmarks need, with the packages of Debian that they are of and their versions
    /// (`xz-utils 5.4.1-1`); `None` for a program that no package has. Empty where that was not noted.
    pub tools: BTreeMap<String, Option<String>>,
    pub seed: u64,
    /// Measured rounds that were begun.
    pub rounds: u32,
    pub end: End,
    pub took: Duration,
    /// The names of the placements, the one that others are compared with first.
    pub placements: Vec<String>,
    /// The cases that were run, in the order of the suite.
    pub cases: Vec<CaseRecord>,
    pub skipped: Vec<Skipped>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Completed,
    Interrupted,
    BudgetSpent,
}

/// A benchmark with a number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseRecord {
    /// The name of the benchmark.
    pub benchmark: String,
    pub threads: u32,
    /// The unit of its values; empty where it has none.
    pub unit: String,
    pub direction: Direction,
    /// Whether the case moves more memory than the caches hold.
    pub memory_traffic: bool,
    /// The definition of what was run; `None` where that was not noted.
    pub definition: Option<Definition>,
    /// Its runs under each placement, in the order of [`Session::placements`].
    pub arms: Vec<ArmRecord>,
}

/// Runs under one placement.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ArmRecord {
    /// The values, in the order in which they were taken.
    pub samples: Vec<Sample>,
    /// Why it was given up, where it was.
    pub failed: Option<String>,
    /// Where its pages were, over all runs; `None` where that was not seen.
    pub residency: Option<Residency>,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The round it belongs to, from 1.
    pub round: u32,
    /// Which of its runs in this round, from 0.
    pub replicate: u8,
    /// The measured value, above 0.
    pub value: f64,
    /// The share of the CPUs' time that the hypervisor gave to others meanwhile, of 1.
    pub steal_share: Option<f64>,
}

/// A benchmark that was not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    pub benchmark: String,
    /// With this many threads; `None`: with any.
    pub threads: Option<u32>,
    /// Why; fit to be shown.
    pub why: String,
}

impl Session {
    /// The record of a case.
    pub fn case(&self, benchmark: &str, threads: u32) -> Option<&CaseRecord> {
        self.cases.iter().find(|case| case.benchmark == benchmark && case.threads == threads)
    }

    /// Why a case was not run, where that is known.
    pub fn why_skipped(&self, benchmark: &str, threads: u32) -> Option<&str> {
        let is_it = |one: &&Skipped| {
            one.benchmark == benchmark && one.threads.is_none_or(|skipped| skipped == threads)
        };
        self.skipped.iter().find(is_it).map(|one| one.why.as_str())
    }
}

impl ArmRecord {
    /// The values by round, those of one round together.
    pub fn rounds(&self) -> BTreeMap<u32, Vec<f64>> {
        let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for sample in &self.samples {
            rounds.entry(sample.round).or_default().push(sample.value);
        }
        rounds
    }

    /// All values.
    pub fn values(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.value).collect()
    }
}
