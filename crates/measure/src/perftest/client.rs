//! Runs a test of perftest against a server, under a placement.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nodewise_machine::printable::{io_words, printable};
use nodewise_syscall::StartError;

use super::{Kind, NoTable, Table};
use crate::command::output::Output;
use crate::command::setup;
use crate::command::supervise::Supervision;
use crate::executor::{Ending, NoWitness, last_line};
use nodewise_machine::placement::Placement;

/// How long a test of all sizes may take: with the usual 1000 and 5000 messages a slow link needs seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// A test from this machine to a server on another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// What is measured.
    pub kind: Kind,
    /// The RDMA device, by its kernel name.
    pub device: String,
    /// The host of the server.
    pub host: String,
    /// The TCP port on which the two find each other; `None` for perftest's own.
    pub port: Option<u16>,
}

/// Why a test left no table.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// It was not started.
    #[error("{program} could not be started: {why}")]
    NotStarted {
        /// The program.
        program: &'static str,
        /// Why, in words.
        why: String,
    },
    /// It did not end well.
    #[error("{program} {ending}{}", said(complaint))]
    Failed {
        /// The program.
        program: &'static str,
        /// How it ended.
        ending: Ending,
        /// What it said last.
        complaint: Option<String>,
    },
    /// It ended well, and what it printed holds no table.
    #[error("what {program} printed cannot be used: {why}")]
    NoTable {
        /// The program.
        program: &'static str,
        /// Why.
        why: NoTable,
    },
    /// The user wanted an end.
    #[error("ended early")]
    Interrupted,
}

fn said(complaint: &Option<String>) -> String {
    printable(&last_line(complaint.as_deref())).into_owned()
}

impl Kind {
    /// The program that measures it.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Latency => "ib_send_lat",
            Self::Bandwidth => "ib_send_bw",
        }
    }
}

impl Client {
    /// The words of the command: all sizes of messages, whatever the frequency of the CPUs, in Gbit/s.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = vec![self.kind.program().to_owned(), "-a".to_owned(), "-F".to_owned()];
        words.extend((self.kind == Kind::Bandwidth).then(|| "--report_gbits".to_owned()));
        words.extend(["-d".to_owned(), self.device.clone()]);
        words.extend(self.port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]));
        words.push(self.host.clone());
        words.into_iter().map(OsString::from).collect()
    }

    /// Runs it under a placement; `interrupt` ends it when it becomes true.
    ///
    /// # Errors
    /// A placement that cannot be applied, a program that is not there or ends with an error (as when no
    /// server answers), and one that prints no table.
    pub fn run(&self, placement: &Placement, interrupt: &AtomicBool) -> Result<Table, ClientError> {
        let program = self.kind.program();
        let not_started = |why: String| ClientError::NotStarted { program, why };
        let io = |error: std::io::Error| not_started(io_words(&error));
        let output = Output::new().map_err(io)?;
        let words = self.words();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        command.stdout(output.stdout().map_err(io)?).stderr(output.stderr().map_err(io)?);
        let setup = setup(placement);
        // What the program says of itself is enough.
        let supervision = Supervision { limit: Some(LIMIT), interrupt, witness: &mut NoWitness };
        let ended = supervision.run(|| setup.spawn_guarded(command)).map_err(|error| match error {
            StartError::Setup(error) => not_started(error.to_string()),
            StartError::Start(error) => not_started(io_words(&error)),
        })?;
        match ended.cut_short.unwrap_or_else(|| Ending::of(ended.finished.status)) {
            Ending::Done => {
                Table::parse(&output.stdout_end()).map_err(|why| ClientError::NoTable { program, why })
            }
            Ending::Interrupted => Err(ClientError::Interrupted),
            ending => Err(ClientError::Failed { program, ending, complaint: output.complaint() }),
        }
    }
}
