//! Facts of suites and their comparison, for text, JSON, lines with commas and pictures.

use nodewise_experiment::compare::differences::{Difference, differences};
use nodewise_experiment::compare::{Comparison, Row, Table, Verdict};
use nodewise_experiment::executor::Residency;
use nodewise_experiment::suite::session::{End, Session};

use crate::digest::change::stolen_words;
use crate::digest::counts::{each_once, plural};

/// The sessions that are shown: two, or one whose placements are compared.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The session before the change, or the only one.
    pub before: &'a Session,
    pub after: Option<&'a Session>,
    pub comparison: &'a Comparison,
}

impl Shown<'_> {
    /// The circumstances that differ.
    pub fn differences(&self) -> Vec<Difference> {
        self.after.map_or_else(Vec::new, |after| differences(self.before, after))
    }

    /// Names the compared sessions, in one line.
    pub fn head(&self) -> String {
        let rounds = |session: &Session| plural(session.rounds, "round");
        let what = match self.after {
            Some(after) if self.before.rounds == after.rounds => {
                format!("after against before, {} each", rounds(after))
            }
            Some(after) => {
                format!("after ({}) against before ({})", rounds(after), rounds(self.before))
            }
            None => format!(
                "{} placements, {}, seed {}",
                self.before.placements.len(),
                rounds(self.before),
                self.before.seed
            ),
        };
        format!("{}: {what}; changes are of speed, + is faster", self.before.suite)
    }
}

/// How a circumstance changed: `6.1 -> 6.12`.
pub fn difference_words(difference: &Difference) -> String {
    let words = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
    format!("{} -> {}", words(&difference.before), words(&difference.after))
}

/// The number of threads as a column's head.
pub fn threads_words(threads: u32) -> String {
    plural(threads, "thread")
}

/// A measured value with about four digits.
pub fn value_words(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{value:.3e}"),
        value if value >= 1000.0 => format!("{value:.0}"),
        value if value >= 100.0 => format!("{value:.1}"),
        value if value >= 10.0 => format!("{value:.2}"),
        value if value >= 0.001 => format!("{value:.4}"),
        value => format!("{value:.3e}"),
    }
}

/// The conclusion about a row, in words.
pub fn verdict_words(row: &Row) -> String {
    // Where memory lies cannot be what changed.
    let cause = if row.memory_traffic { "" } else { ", but not by memory" };
    let detectable = row.change.and_then(|change| change.smallest_detectable);
    match &row.verdict {
        Verdict::Better => format!("faster{cause}"),
        Verdict::Worse => format!("slower{cause}"),
        Verdict::NoDifference => match detectable {
            Some(least) => {
                format!("no difference shown (smallest detectable: {:.1} %)", least * 100.0)
            }
            None => "no difference shown".to_owned(),
        },
        Verdict::TooFewRounds { rounds: 1, .. } => "no repeats".to_owned(),
        Verdict::TooFewRounds { rounds, needed } => format!("too few rounds: {rounds} of {needed}"),
        Verdict::Changed(_) => "not compared".to_owned(),
        Verdict::Missing(_) => "missing".to_owned(),
    }
}

/// The rows of a table that have no change, with the reason.
pub fn missing(table: &Table) -> Vec<String> {
    with_reason(table, |verdict| match verdict {
        Verdict::Missing(why) => Some(why),
        _ => None,
    })
}

/// The rows of a table whose two sides have run different things, with how they differ.
pub fn changed(table: &Table) -> Vec<String> {
    with_reason(table, |verdict| match verdict {
        Verdict::Changed(how) => Some(how),
        _ => None,
    })
}

fn with_reason(table: &Table, reason: fn(&Verdict) -> Option<&String>) -> Vec<String> {
    let row = |row: &Row| {
        let why = reason(&row.verdict)?;
        Some(format!("{}, {}: {why}", row.benchmark, threads_words(row.threads)))
    };
    table.rows.iter().filter_map(row).collect()
}

/// Describes the gap in a session that was saved without what its benchmarks run.
pub fn undefined(session: &Session) -> Option<&'static str> {
    let lacks = session.origin.is_none() && session.cases.iter().any(|case| case.definition.is_none());
    lacks.then_some("saved without its commands: whether the benchmarks themselves have changed is not known")
}

/// The verdict as one word, for programs.
pub const fn verdict_name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifference => "no_difference",
        Verdict::TooFewRounds { .. } => "too_few_rounds",
        Verdict::Changed(_) => "changed",
        Verdict::Missing(_) => "missing",
    }
}

/// How a session ended, for programs.
pub const fn end_name(end: End) -> &'static str {
    match end {
        End::Completed => "completed",
        End::Interrupted => "interrupted",
        End::BudgetSpent => "budget_spent",
    }
}

/// How a session ended, where that was before its time.
pub const fn end_words(end: End) -> Option<&'static str> {
    match end {
        End::Completed => None,
        End::Interrupted => Some("ended before its time: these are the runs until then"),
        End::BudgetSpent => Some("the time was up before all rounds were run"),
    }
}

/// Describes the time that the hypervisor took from a run, where it is worth a word.
pub fn stolen(session: &Session) -> Option<String> {
    let samples = session.cases.iter().flat_map(|case| &case.arms).flat_map(|arm| &arm.samples);
    stolen_words(samples.filter_map(|sample| sample.steal_share))
}

/// Where the pages of all benchmarks were under each placement.
pub fn residency_by_placement(session: &Session) -> Vec<(&str, Residency)> {
    let all_of = |at: usize| {
        let seen = session.cases.iter().filter_map(move |case| case.arms.get(at)?.residency.as_ref());
        seen.fold(Residency::default(), |mut all, one| {
            all.add(one);
            all
        })
    };
    let names = session.placements.iter().enumerate();
    let seen = names.map(|(at, name)| (name.as_str(), all_of(at)));
    seen.filter(|(_, seen)| !seen.by_node.is_empty()).collect()
}

/// The benchmarks of a table in order, each once.
pub fn benchmarks(table: &Table) -> Vec<&str> {
    each_once(table.rows.iter().map(|row| row.benchmark.as_str()))
}

/// The numbers of threads of a table, in order.
pub fn threads(table: &Table) -> Vec<u32> {
    let mut threads: Vec<u32> = table.rows.iter().map(|row| row.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// The row of a benchmark with a number of threads.
pub fn row<'a>(table: &'a Table, benchmark: &str, threads: u32) -> Option<&'a Row> {
    table.rows.iter().find(|row| row.benchmark == benchmark && row.threads == threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_about_four_digits() {
        for (value, words) in [
            (0.00123456, "0.0012"),
            (0.000012, "1.200e-5"),
            (3.24159, "3.2416"),
            (12.3456, "12.35"),
            (123.456, "123.5"),
            (123456.7, "123457"),
            (12345678.0, "1.235e7"),
        ] {
            assert_eq!(value_words(value), words);
        }
    }
}
