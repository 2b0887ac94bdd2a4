//! A program that runs once under a placement, for what it prints.

use std::ffi::OsString;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nodewise_machine::placement::Placement;
use nodewise_machine::printable::io_words;
use nodewise_syscall::StartError;

use super::output::Output;
use super::setup;
use super::supervise::Supervision;
use crate::executor::{Ending, NoWitness};

/// The end of a run, and what the program printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    pub ending: Ending,
    /// The end of its standard output.
    pub stdout: String,
    /// The last line of its standard error.
    pub complaint: Option<String>,
}

/// Runs the command with these words (at least one) under a placement, with an empty input; `interrupt`
/// ends it when it becomes true.
///
/// # Errors
/// Why it could not be started, in words. A run that fails or takes longer than `limit` is not an error here.
///
/// # Panics
/// Panics if `words` is empty.
pub fn run_once(
    words: &[OsString],
    placement: &Placement,
    limit: Duration,
    interrupt: &AtomicBool,
) -> Result<Printed, String> {
    let io = |error: std::io::Error| io_words(&error);
    let output = Output::new().map_err(io)?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    output.attach(&mut command).map_err(io)?;
    let setup = setup(placement);
    let supervision = Supervision { limit: Some(limit), interrupt, witness: &mut NoWitness };
    let ended = supervision.run(|| setup.spawn_guarded(command)).map_err(|error| match error {
        StartError::Setup(error) => error.to_string(),
        StartError::Start(error) => io_words(&error),
    })?;
    Ok(Printed {
        ending: ended.cut_short.unwrap_or_else(|| Ending::from_status(ended.finished.status)),
        stdout: output.stdout_end(),
        complaint: output.complaint(),
    })
}
