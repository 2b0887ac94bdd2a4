//! Runs real programs: one process, its process group, its time and what it used.
//!
//! What is measured lies between the start of the program and its end. Its standard input is empty;
//! its output goes to files without a name, and only their end is read, afterwards; its
//! environment has the same size in every arm. It has a session of its own: the terminal's Ctrl-C ends
//! none of it, for that one is for the experiment to hear, and a program that opens its terminal finds
//! none, where it would be stopped otherwise (`SIGTTIN`, `SIGTTOU`) and never end. It runs under guard
//! ([`nodewise_syscall::guard`]): what is left of what it started when it has ended is ended too, for
//! it would disturb the next run, and nothing of it outlives this process, however that ends.

pub mod environment;
pub mod once;
pub(crate) mod output;
pub mod preparation;
mod sampling;
pub(crate) mod supervise;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{Command, ExitStatus};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::{io_words, printable};
use nodewise_syscall::perf::{Counter, Counting};
use nodewise_syscall::{CallError, Finished, Setup, StartError};

use crate::evidence::Evidence;
pub use crate::executor::THREADS;
use crate::executor::{Arm, Ending, Executor, Run, Usage, Witness};
use crate::fidelity::Fidelity;
use crate::metric::{Metric, MetricError, Metrics, Pattern};
use environment::Padding;
use nodewise_machine::placement::{HugePages, Placement};
use output::Output;
use supervise::{Ended, Supervision};

/// A program with its arguments, and how long one run of it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    name: OsString,
    arguments: Vec<OsString>,
    /// A run that takes longer is ended and counts as failed; `None`: as long as it takes.
    pub time_limit: Option<Duration>,
}

impl Program {
    /// The program with these words, its name first; `None` without any.
    pub fn new(words: impl IntoIterator<Item = impl Into<OsString>>) -> Option<Self> {
        let mut words = words.into_iter().map(Into::into);
        Some(Self { name: words.next()?, arguments: words.collect(), time_limit: None })
    }

    /// With a limit for the time of a run.
    #[must_use]
    pub fn with_time_limit(self, limit: Duration) -> Self {
        Self { time_limit: Some(limit), ..self }
    }

    /// Its limit or another, whichever is shorter.
    pub(crate) fn limited(&self, other: Option<Duration>) -> Option<Duration> {
        self.time_limit.into_iter().chain(other).min()
    }

    /// Whether its words leave the number of threads open, with `{threads}`.
    pub fn asks_for_threads(&self) -> bool {
        self.arguments.iter().any(|word| word.to_str().is_some_and(|word| word.contains(THREADS)))
    }

    /// The program as an arm runs it, with an empty input.
    pub(crate) fn command(&self, arm: &Arm, padding: Padding, output: &Output) -> std::io::Result<Command> {
        let mut command = Command::new(&self.name);
        let filled =
            |word: &OsString| word.to_str().map_or_else(|| word.clone(), |text| arm.fill(text).into());
        command.args(self.arguments.iter().map(filled)).envs(&arm.environment);
        let (name, value) = padding.variable(&arm.environment);
        command.env(name, value);
        output.attach(&mut command)?;
        Ok(command)
    }

    /// Why it could not be started under a placement.
    pub(crate) fn start_error(&self, error: &StartError) -> String {
        match error {
            StartError::Setup(CallError { .. }) => error.to_string(),
            StartError::Start(error) => {
                format!("{}: {}", printable(&self.name.to_string_lossy()), io_words(error))
            }
        }
    }
}

/// Files for what a program writes, or why there are none.
pub(crate) fn no_output(error: &std::io::Error) -> String {
    let folder = std::env::temp_dir();
    let folder = printable(&folder.to_string_lossy()).into_owned();
    format!("no file for its output in {folder} (TMPDIR names another folder): {}", io_words(error))
}

/// Runs one program under the placements of arms.
pub struct CommandExecutor<'a> {
    program: Program,
    metrics: Metrics,
    padding: Padding,
    counters: Vec<Counter>,
    limit: Option<Duration>,
    witness: &'a mut dyn Witness,
    interrupt: &'a AtomicBool,
}

impl<'a> CommandExecutor<'a> {
    /// An executor for the arms of a plan.
    ///
    /// `interrupt` ends a run when it becomes true; it is looked at ten times a second.
    pub fn new(
        program: Program,
        plan: &crate::study::Plan,
        witness: &'a mut dyn Witness,
        interrupt: &'a AtomicBool,
    ) -> Self {
        let padding = Padding::over(plan.arms().iter().map(|arm| &arm.environment));
        let metrics = plan.metrics();
        Self { program, metrics, padding, counters: Vec::new(), limit: None, witness, interrupt }
    }

    /// Whether a placement can be applied by this process, as the kernel answers without running
    /// anything.
    ///
    /// # Errors
    /// The call that would fail.
    pub fn check(placement: &Placement) -> Result<(), StartError> {
        setup(placement).try_on_scratch_thread()
    }

    /// The executor with events counted in what it runs; those that cannot be counted here are passed
    /// over ([`crate::evidence::Evidence::events`] lacks them).
    #[must_use]
    pub fn with_counters(self, counters: impl IntoIterator<Item = Counter>) -> Self {
        Self { counters: counters.into_iter().collect(), ..self }
    }

    fn try_run(&mut self, arm: &Arm) -> Result<Run, String> {
        let output = Output::new().map_err(|error| no_output(&error))?;
        let command = self.program.command(arm, self.padding, &output).map_err(|error| no_output(&error))?;
        let setup = setup(&arm.placement);
        self.witness.before();
        let counting = Counters::open(&self.counters);
        let supervision = Supervision {
            limit: self.program.limited(self.limit),
            interrupt: self.interrupt,
            witness: &mut *self.witness,
        };
        let ended = supervision.run(|| setup.spawn_guarded(command));
        let surroundings = self.witness.after();
        let evidence = Evidence { events: counting.read(), ..self.witness.evidence() };
        let ended = ended.map_err(|error| self.program.start_error(&error))?;
        let run = judge(ended, &self.metrics, &arm.placement, &output);
        let own = run.usage.as_ref().map(Usage::cpu_time);
        Ok(Run { surroundings, evidence: Evidence { own, ..evidence }, ..run })
    }
}

/// Judges a run that ended under a placement.
pub(crate) fn judge(ended: Ended, metrics: &Metrics, placement: &Placement, output: &Output) -> Run {
    let Finished { status, usage } = ended.finished;
    let (ending, printed) = match ended.cut_short {
        Some(ending) => (ending, None),
        None => ending(status, &metrics.first, output),
    };
    let also_printed = if ending.is_done() { also_printed(&metrics.also, output) } else { BTreeMap::new() };
    let complaint = if ending.is_failure() { output.complaint() } else { None };
    Run {
        wall: Some(ended.wall),
        usage: Some(usage),
        fidelity: Fidelity::from_look(&ended.seen, placement),
        residency: ended.seen.residency,
        printed,
        also_printed,
        complaint,
        ..Run::ended(ending)
    }
}

fn ending(status: ExitStatus, metric: &Metric, output: &Output) -> (Ending, Option<f64>) {
    match (Ending::from_status(status), metric) {
        (Ending::Done, Metric::Printed(pattern, _)) => match printed(pattern, output) {
            Ok(number) => (Ending::Done, Some(number)),
            Err(error) => (Ending::NoMetric(error), None),
        },
        (ending, _) => (ending, None),
    }
}

/// The numbers of metrics that decide nothing; one that is missing is not shown.
fn also_printed(metrics: &[Metric], output: &Output) -> BTreeMap<String, f64> {
    let number = |metric: &Metric| match metric {
        Metric::Printed(pattern, _) => Some((pattern.text().to_owned(), printed(pattern, output).ok()?)),
        _ => None,
    };
    metrics.iter().filter_map(number).collect_map()
}

/// Counters that are open for the programs that this thread starts next.
pub(crate) struct Counters(Vec<(Counter, Counting)>);

impl Counters {
    /// Those of them that can be counted here.
    pub fn open(counters: &[Counter]) -> Self {
        let open = |counter: &Counter| Some((*counter, Counting::open(*counter).ok()?));
        Self(counters.iter().filter_map(open).collect())
    }

    /// Reads the counts; without the counters that could not be read.
    pub fn read(self) -> BTreeMap<Counter, u64> {
        let read =
            |(counter, mut counting): (Counter, Counting)| Some((counter, counting.read().ok().flatten()?));
        self.0.into_iter().filter_map(read).collect_map()
    }
}

impl Executor for CommandExecutor<'_> {
    fn limit(&mut self, limit: Option<Duration>) {
        self.limit = limit;
    }

    fn run(&mut self, arm: &Arm) -> Run {
        self.try_run(arm).unwrap_or_else(|why| Run::ended(Ending::NotStarted(why)))
    }
}

/// The number in what the program printed: on its standard output, or, as `dd` does, on its standard
/// error.
fn printed(pattern: &Pattern, output: &Output) -> Result<f64, MetricError> {
    match pattern.number(&output.stdout_end()) {
        Err(MetricError::NoMatch { .. }) => pattern.number(&output.stderr_end()),
        found => found,
    }
}

/// The system calls of a placement.
pub fn setup(placement: &Placement) -> Setup {
    let mut setup = Setup::new();
    if let Some(cpus) = &placement.cpus {
        setup = setup.with_cpus(cpus.clone());
    }
    // Those of the pool are for its malloc to take.
    if let Some(HugePages::Transparent(huge)) = placement.huge {
        setup = setup.with_transparent_huge(huge);
    }
    if let Some(policy) = &placement.policy {
        setup = setup.with_policy(policy.clone());
    }
    setup
}

#[cfg(test)]
mod tests;
