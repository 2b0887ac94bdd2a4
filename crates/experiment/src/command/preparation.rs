//! A command before a run, which makes caches and files what they are to be: not timed, not counted, and
//! under no placement.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use super::environment::Padding;
use super::output::Output;
use super::supervise::Supervision;
use super::{Program, no_output, setup};
use crate::executor::{Arm, Ending, Executor, NoWitness, Run, Unprepared};
use crate::schedule::ArmId;
use nodewise_machine::placement::Placement;

/// Runs a command before every run of another executor.
pub struct PreparedExecutor<'a> {
    executor: Box<dyn Executor + 'a>,
    command: Program,
    interrupt: &'a AtomicBool,
}

impl<'a> PreparedExecutor<'a> {
    /// The executor with this command before each of its runs. `interrupt` ends the command, too.
    pub fn new(executor: Box<dyn Executor + 'a>, command: Program, interrupt: &'a AtomicBool) -> Self {
        Self { executor, command, interrupt }
    }
}

impl Executor for PreparedExecutor<'_> {
    fn prepare(&mut self, arm: &Arm) -> Result<(), Unprepared> {
        self.executor.prepare(arm)?;
        run(&self.command, arm.threads, self.interrupt)
    }

    fn limit(&mut self, limit: Option<std::time::Duration>) {
        self.executor.limit(limit);
    }

    fn run(&mut self, arm: &Arm) -> Run {
        self.executor.run(arm)
    }
}

/// Runs a command under no placement and waits for its end. `threads` stand for `{threads}` in its words.
pub(crate) fn run(command: &Program, threads: Option<u32>, interrupt: &AtomicBool) -> Result<(), Unprepared> {
    let not_started = |why| Unprepared { ending: Ending::NotStarted(why), complaint: None };
    let no_file = |error: std::io::Error| not_started(no_output(&error));
    let untouched = Arm {
        id: ArmId::BASELINE,
        name: "preparation".to_owned(),
        placement: Placement::DEFAULT,
        environment: BTreeMap::new(),
        threads,
    };
    let output = Output::of_complaints().map_err(no_file)?;
    let started = command.command(&untouched, Padding::over(std::iter::empty()), &output).map_err(no_file)?;
    let setup = setup(&untouched.placement);
    let supervision = Supervision { limit: command.time_limit, interrupt, witness: &mut NoWitness };
    let ended = supervision
        .run(|| setup.spawn_guarded(started))
        .map_err(|error| not_started(command.start_error(&error)))?;
    match ended.cut_short.unwrap_or_else(|| Ending::from_status(ended.finished.status)) {
        Ending::Done => Ok(()),
        ending => Err(Unprepared { ending, complaint: output.complaint() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn check(words: &[&str], limit: Option<Duration>, expected: Result<(), &str>) {
        let mut command = Program::new(words).unwrap();
        command.time_limit = limit;
        let done = run(&command, Some(7), &AtomicBool::new(false));
        assert_eq!(done.map_err(|why| why.to_string()), expected.map_err(str::to_owned), "{words:?}");
    }

    #[test]
    fn a_preparation_is_done_or_says_why_not() {
        check(&["true"], None, Ok(()));
        check(&["test", "{threads}", "=", "7"], None, Ok(()));
        let said = "echo no disk >&2; echo >&2; exit 3";
        check(&["sh", "-c", said], None, Err("ended with exit code 3: no disk"));
        check(&["sh", "-c", "kill -15 $$"], None, Err("ended by signal 15 (SIGTERM)"));
        let never = "/no/such/program: no such file or directory";
        check(&["/no/such/program"], None, Err(&format!("could not be started: {never}")));
        let limit = Duration::from_millis(50);
        check(&["sleep", "100"], Some(limit), Err("did not end within 50ms"));
    }

    #[test]
    fn an_interrupt_ends_a_preparation() {
        let command = Program::new(["sleep", "100"]).unwrap();
        let why = run(&command, None, &AtomicBool::new(true)).unwrap_err();
        assert_eq!(why.ending, Ending::Interrupted);
    }

    #[test]
    fn what_a_preparation_prints_is_thrown_away_and_its_input_is_empty() {
        check(&["sh", "-c", "[ /dev/null -ef /proc/self/fd/1 ] && ! read line"], None, Ok(()));
    }
}
