//! Suites: sets of benchmarks that are run before and after a change, as `nodewise compare` does.
//!
//! | to find | look in |
//! |---|---|
//! | the file of a suite | [`parse`] |
//! | commands with places to fill in | [`command`] |
//! | what a benchmark runs, to be compared with another day's | [`definition`] |
//! | the data that benchmarks work on, generated from a seed | [`input`] |
//! | the order of runs, the time, the end | [`conduct`] |
//! | starting the programs | [`programs`] |
//! | what is left afterwards | [`session`] |
//!
//! What two sessions show is in [`crate::compare`].

pub mod command;
pub mod conduct;
pub mod definition;
pub mod input;
pub mod parse;
pub mod programs;
pub mod session;

use std::time::Duration;

use crate::metric::Metric;
use command::Command;
use input::Input;
use nodewise_stats::Direction;

/// The suites that come with nodewise: the name and the file.
pub const SHIPPED: [(&str, &str); 2] = [
    ("board", include_str!("../../../suites/board.toml")),
    ("server", include_str!("../../../suites/server.toml")),
];

/// A set of benchmarks.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    pub title: String,
    pub about: Option<String>,
    /// Data that its benchmarks work on.
    pub inputs: Vec<Input>,
    /// The benchmarks, in the order of the table.
    pub benchmarks: Vec<Benchmark>,
}

/// A program with a number that shows how fast it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Benchmark {
    /// Its name in tables, unique in the suite.
    pub name: String,
    pub about: Option<String>,
    pub command: Command,
    /// The command before the first run, not timed.
    pub prepare: Option<Command>,
    /// The command before every run, not timed.
    pub prepare_each: Option<Command>,
    pub metric: Gauge,
    /// With how many threads it runs.
    pub threads: Vec<Threads>,
    /// Programs it needs, and where they come from.
    pub needs: Vec<Need>,
    /// Whether the benchmark moves more memory than the caches hold. One that does not cannot gain from
    /// where memory is.
    pub memory_traffic: bool,
    /// A run that takes longer has failed.
    pub timeout: Duration,
}

/// The compared quantity, and what a table writes behind it.
#[derive(Clone, Debug)]
pub struct Gauge {
    pub metric: Metric,
    /// Its unit: `s` for time.
    pub unit: String,
}

impl Gauge {
    /// The time from start to end.
    pub fn wall() -> Self {
        Self { metric: Metric::Wall, unit: "s".to_owned() }
    }

    /// Which way is better.
    pub fn direction(&self) -> Direction {
        self.metric.direction()
    }
}

impl PartialEq for Gauge {
    fn eq(&self, other: &Self) -> bool {
        let same = match (&self.metric, &other.metric) {
            (Metric::Wall, Metric::Wall) => true,
            (Metric::Printed(a, up), Metric::Printed(b, down)) => a == b && up == down,
            _ => false,
        };
        same && self.unit == other.unit
    }
}

/// With how many threads a benchmark runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    Count(u32),
    /// One for each CPU that may be used.
    All,
}

/// A program that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Its name, or its path from the root.
    pub program: String,
    pub origin: Origin,
}

/// Where a program comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Package(String),
    /// Not Debian: an address for people.
    Address(String),
}

/// A benchmark with a number of threads: a row's cell in the table.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub benchmark: &'a Benchmark,
    pub threads: u32,
    /// The inputs of its suite.
    pub inputs: &'a [Input],
}

impl Suite {
    /// The suite with only the benchmarks that have one of these names; all of them without a name.
    ///
    /// # Errors
    /// The first name that no benchmark has.
    pub fn only(mut self, names: &[String]) -> Result<Self, String> {
        let missing = |name: &&String| !self.benchmarks.iter().any(|one| one.name == **name);
        if let Some(missing) = names.iter().find(missing) {
            return Err(missing.clone());
        }
        if !names.is_empty() {
            self.benchmarks.retain(|one| names.contains(&one.name));
        }
        Ok(self)
    }

    /// Its cases on this many CPUs, in the order of the table. Where two numbers of threads are the same
    /// here there is one case.
    pub fn cases(&self, cpus: u32) -> Vec<Case<'_>> {
        let cases = self.benchmarks.iter().flat_map(|benchmark| {
            let mut threads: Vec<u32> = benchmark.threads.iter().map(|threads| threads.on(cpus)).collect();
            threads.sort_unstable();
            threads.dedup();
            threads.into_iter().map(move |threads| Case { benchmark, threads, inputs: &self.inputs })
        });
        cases.collect()
    }

    /// The inputs that some of its benchmarks name in their commands.
    pub fn inputs_in_use(&self) -> impl Iterator<Item = &Input> {
        let used = |input: &&Input| {
            let place = input.place();
            self.benchmarks.iter().flat_map(Benchmark::commands).any(|command| command.names(&place))
        };
        self.inputs.iter().filter(used)
    }
}

impl Benchmark {
    /// Everything it runs.
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        [Some(&self.command), self.prepare.as_ref(), self.prepare_each.as_ref()].into_iter().flatten()
    }
}

impl Threads {
    /// The number on this many CPUs.
    pub fn on(self, cpus: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::All => cpus.max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suites_that_come_with_nodewise_are_read() {
        for (name, text) in SHIPPED {
            let suite = parse::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(suite.benchmarks.len() >= 5, "{name}");
            // Every benchmark says what it needs; what is always there needs nothing.
            for benchmark in &suite.benchmarks {
                assert!(benchmark.about.is_some(), "{name}: {}", benchmark.name);
            }
            assert_eq!(suite.inputs_in_use().count(), suite.inputs.len(), "{name}");
        }
    }

    #[test]
    fn the_board_has_the_rows_of_the_articles_with_one_thread_and_with_all() {
        let board = parse::parse(SHIPPED[0].1).unwrap();
        let rows: Vec<&str> = board.benchmarks.iter().map(|one| one.name.as_str()).collect();
        let expected = [
            "Geekbench",
            "STREAM add",
            "C compile",
            "HPL",
            "bzip3",
            "pigz",
            "zstd",
            "xz",
            "sysbench cpu",
            "sysbench memory",
        ];
        assert_eq!(rows, expected);
        assert!(board.benchmarks.iter().all(|one| one.threads == [Threads::Count(1), Threads::All]));
        let without_traffic = board.benchmarks.iter().filter(|one| !one.memory_traffic);
        assert_eq!(without_traffic.map(|one| one.name.as_str()).collect::<Vec<_>>(), ["sysbench cpu"]);
    }

    #[test]
    fn equal_numbers_of_threads_are_one_case() {
        let board = parse::parse(SHIPPED[0].1).unwrap();
        assert_eq!(board.cases(1).len(), board.benchmarks.len());
        assert_eq!(board.cases(4).len(), 2 * board.benchmarks.len());
    }

    #[test]
    fn only_what_is_named_is_kept() {
        let board = || parse::parse(SHIPPED[0].1).unwrap();
        let kept = board().only(&["xz".to_owned()]).unwrap();
        assert_eq!(kept.benchmarks.len(), 1);
        assert_eq!(kept.inputs_in_use().map(|input| input.name.as_str()).collect::<Vec<_>>(), ["text"]);
        assert_eq!(board().only(&["xy".to_owned()]), Err("xy".to_owned()));
        assert_eq!(board().only(&[]), Ok(board()));
    }
}
