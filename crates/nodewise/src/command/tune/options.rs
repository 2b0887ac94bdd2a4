//! Options of `tune` as values: what it compares, how often, and in which program.

use std::ffi::OsString;
use std::time::Duration;

use nodewise_experiment::command::Program;
use nodewise_experiment::evidence::Counter;
use nodewise_experiment::metric::{Metric, Pattern};
use nodewise_experiment::serve::{Patience, Ready, Service};
use nodewise_experiment::study::{Drive, Rounds};
use nodewise_machine::duration;
use nodewise_machine::printable::quote;
use nodewise_stats::Direction;

use super::words;
use crate::cli::tune::Tune;
use crate::failure::{Failure, INTERNAL};

/// Most rounds when only the time is limited.
pub const MOST_ROUNDS: u32 = 200;

/// The subject of a run.
pub enum Subject {
    Program(Program),
    /// A server and its client.
    Service(Box<Service>),
}

/// The subject, in the words in which it was given.
pub struct Named {
    /// The program that is placed.
    pub command: Vec<OsString>,
    /// Of a server, what drives it.
    pub drive: Option<Drive>,
    pub prepare: Option<Prepare>,
    /// How long is waited before every run at most.
    pub cool_down: Option<Duration>,
    pub subject: Subject,
}

/// A command before every run.
pub struct Prepare {
    pub words: Vec<String>,
    pub program: Program,
}

impl Named {
    /// Reads the subject that the options name; without a program the built-in workload of this name.
    ///
    /// # Errors
    /// Options that contradict each other or do not read.
    pub fn from_args(args: &Tune, workload: &str) -> Result<Self, Failure> {
        let limit = args.run_limit.as_deref().map(|text| time("--run-limit", text)).transpose()?;
        let limited = |program: Program| match limit {
            Some(limit) => program.with_time_limit(limit),
            None => program,
        };
        let prepare = |text: &str| -> Result<Prepare, Failure> {
            let words = split("--prepare", text)?;
            Ok(Prepare { program: limited(program(&words)?), words: text_of(&words) })
        };
        let prepare = args.prepare.as_deref().map(prepare).transpose()?;
        let cool_down = args.cool_down.as_deref().map(|text| time("--cool-down", text)).transpose()?;
        let Some(serve) = &args.serve else {
            let command = command(args, workload)?;
            let program = program(&command)?;
            let subject = Subject::Program(limited(program));
            return Ok(Self { command, drive: None, prepare, cool_down, subject });
        };
        if !args.command.is_empty() {
            return Err(Failure::usage(
                "--serve names the program that is placed: a client belongs into --drive",
            ));
        }
        let (Some(ready), Some(drive)) = (&args.ready, &args.drive) else {
            return Err(Failure::usage("--serve needs --ready PORT|REGEX and --drive CMD"));
        };
        let server = split("--serve", serve)?;
        let client = split("--drive", drive)?;
        let said = Ready::parse(ready).map_err(|error| Failure::usage(format_args!("--ready: {error}")))?;
        let limit = |option, text: &Option<String>, usual| match text {
            Some(text) => time(option, text),
            None => Ok(usual),
        };
        let patience = Patience {
            ready: limit("--ready-limit", &args.ready_limit, Patience::DEFAULT.ready)?,
            stop: limit("--stop-limit", &args.stop_limit, Patience::DEFAULT.stop)?,
        };
        let service =
            Service { server: program(&server)?, ready: said, client: limited(program(&client)?), patience };
        Ok(Self {
            drive: Some(Drive { ready: ready.clone(), client: text_of(&client) }),
            command: server,
            prepare,
            cool_down,
            subject: Subject::Service(Box::new(service)),
        })
    }
}

impl Named {
    /// Whether its words leave the number of threads open.
    pub fn asks_for_threads(&self) -> bool {
        match &self.subject {
            Subject::Program(program) => program.asks_for_threads(),
            Subject::Service(service) => {
                service.server.asks_for_threads() || service.client.asks_for_threads()
            }
        }
    }
}

fn split(option: &str, text: &str) -> Result<Vec<OsString>, Failure> {
    let words = words::split(text).map_err(|error| Failure::usage(format_args!("{option}: {error}")))?;
    Ok(words.into_iter().map(Into::into).collect())
}

fn text_of(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

fn program(words: &[OsString]) -> Result<Program, Failure> {
    Program::new(words).ok_or_else(|| Failure::usage("no program to tune"))
}

/// The program: the user's, or one of ours.
fn command(args: &Tune, workload: &str) -> Result<Vec<OsString>, Failure> {
    if !args.command.is_empty() {
        return Ok(args.command.clone());
    }
    let own = std::env::current_exe().map_err(|error| {
        Failure::new(INTERNAL, format_args!("cannot find nodewise itself to run its workload: {error}"))
    })?;
    Ok(vec![own.into(), "workload".into(), workload.into()])
}

/// Reads the compared metric, and those that are shown too.
///
/// # Errors
/// A pattern that does not read, a direction that contradicts the metric, and what is named twice.
pub fn metrics(args: &Tune) -> Result<(Metric, Vec<Metric>), Failure> {
    let is_same =
        |one: &str, other: &str| one == other || counter(one).is_some_and(|it| counter(other) == Some(it));
    for (at, text) in args.metric.iter().enumerate() {
        match args.metric[..at].iter().find(|earlier| is_same(earlier, text)) {
            None => {}
            Some(same) if same == text => {
                return Err(Failure::usage(format_args!("--metric: {} is named twice", quote(text))));
            }
            Some(same) => {
                let names = format_args!("--metric: {} and {} are one counter", quote(same), quote(text));
                return Err(Failure::usage(names));
            }
        }
    }
    let Some((first, others)) = args.metric.split_first() else {
        return Ok((directed("wall", args.higher_is_better)?, Vec::new()));
    };
    // Which way is better is a question of what decides.
    let others = others.iter().map(|text| directed(text, false)).collect::<Result<_, _>>()?;
    Ok((directed(first, args.higher_is_better)?, others))
}

fn directed(text: &str, higher_is_better: bool) -> Result<Metric, Failure> {
    let of = |metric, less: &str| match higher_is_better {
        true => {
            Err(Failure::usage(format_args!("--higher-is-better contradicts --metric={text}: {less} better")))
        }
        false => Ok(metric),
    };
    match text {
        "wall" => of(Metric::Wall, "less time is"),
        "cpu" => of(Metric::CpuTime, "less time is"),
        "rss" => of(Metric::MaxRss, "less memory is"),
        text => match counter(text) {
            Some(counter) => of(Metric::Counted(counter), "fewer are"),
            None => {
                let pattern = Pattern::new(text);
                let pattern = pattern.map_err(|error| Failure::usage(format_args!("--metric: {error}")))?;
                Ok(Metric::Printed(pattern, direction(higher_is_better)))
            }
        },
    }
}

const fn direction(higher_is_better: bool) -> Direction {
    if higher_is_better { Direction::HigherIsBetter } else { Direction::LowerIsBetter }
}

/// The counter of this name, as perf has it or as people say it.
fn counter(text: &str) -> Option<Counter> {
    match text {
        "dTLB-misses" => Some(Counter::TlbLoadMisses),
        name => Counter::HARDWARE.into_iter().find(|counter| counter.name() == name),
    }
}

/// How many rounds.
///
/// # Errors
/// A time that does not read.
pub fn rounds(args: &Tune) -> Result<Rounds, Failure> {
    let budget = args.time.as_deref().map(|text| time("--time", text)).transpose()?;
    Ok(match (args.runs, budget) {
        (Some(runs), None) => Rounds::Exactly(runs),
        (runs, Some(budget)) => Rounds::Within { budget, at_most: runs.unwrap_or(MOST_ROUNDS) },
        (None, None) if args.no_race => Rounds::DEFAULT,
        (None, None) => Rounds::RACE,
    })
}

/// A time, as [`duration::parse`] reads it.
///
/// # Errors
/// What is none, with the option.
pub fn time(option: &str, text: &str) -> Result<Duration, Failure> {
    duration::parse(text).map_err(|error| Failure::usage(format_args!("{option}: {error}")))
}
