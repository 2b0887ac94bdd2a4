//! A server process: started, waited for, stopped, and never left behind.

use std::os::unix::process::ExitStatusExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nodewise_machine::printable::printable;
use nodewise_syscall::{Finished, Guarded};

use super::Ready;
use crate::command::environment::Padding;
use crate::command::output::Output;
use crate::command::{Program, no_output, setup};
use crate::executor::{Arm, Ending, last_line, signal_name};

/// How often a server is looked at that is waited for.
const LOOK: Duration = Duration::from_millis(5);

/// A server that runs. When it is dropped, it is ended at once with all that it has started.
pub(super) struct Server {
    program: Guarded,
    output: Output,
}

impl Server {
    /// Starts it under the placement of an arm.
    pub fn start(program: &Program, arm: &Arm, padding: Padding) -> Result<Self, Ending> {
        let no_output = |error: std::io::Error| Ending::NotStarted(no_output(&error));
        let output = Output::new().map_err(no_output)?;
        let command = program.command(arm, padding, &output).map_err(no_output)?;
        let started = setup(&arm.placement).spawn_guarded(command);
        let program = started.map_err(|error| Ending::NotStarted(program.start_error(&error)))?;
        Ok(Self { program, output })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.program.program()
    }

    /// Returns its last complaint.
    pub fn complaint(&self) -> Option<String> {
        self.output.complaint()
    }

    /// Waits until it is ready, or says why it never will be.
    pub fn wait_until(&self, ready: &Ready, limit: Duration, interrupt: &AtomicBool) -> Result<(), Ending> {
        let began = Instant::now();
        loop {
            // First this: a server that has died may have said that it is ready, or left its port open.
            if let Some(how) = self.end_by_itself() {
                return Err(Ending::Service(format!(
                    "the server {how} before it was ready{}",
                    self.last_words()
                )));
            }
            if ready.is_ready(&self.output) {
                return Ok(());
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err(Ending::Interrupted);
            }
            if began.elapsed() >= limit {
                return Err(Ending::Service(format!(
                    "the server was not ready within {limit:?}: {ready}{}",
                    self.last_words()
                )));
            }
            thread::sleep(LOOK);
        }
    }

    /// The last line that it complained with, as the end of a sentence.
    fn last_words(&self) -> String {
        printable(&last_line(self.complaint().as_deref())).into_owned()
    }

    /// How it ended, where it has without being asked to.
    pub fn end_by_itself(&self) -> Option<String> {
        let status = self.program.ended()?;
        Some(match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}{}", signal_name(signal)),
            (None, None) => "ended".to_owned(),
        })
    }

    /// Asks it to stop, and ends it when it does not; then ends all that it has left behind.
    pub fn stop(self, patience: Duration) -> Result<Finished, Ending> {
        self.program.terminate();
        let began = Instant::now();
        while self.program.ended().is_none() && began.elapsed() < patience {
            thread::sleep(LOOK);
        }
        let finished = self.program.finish();
        finished.map_err(|error| Ending::Service(format!("the server cannot be waited for: {error}")))
    }
}
