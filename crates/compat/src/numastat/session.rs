//! The input and the output of one run of numastat.

use std::io::Write;

use nodewise_machine::printable::printable;
use nodewise_source::parse::Problems;
use nodewise_source::tree::{ReadCause, Tree};
use rustix::io::Errno;

use crate::{Settings, strerror};

/// The run ends here, with status 1. Why has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// One run.
pub struct Session<'c> {
    pub tree: &'c Tree,
    pub settings: Settings,
    pub out: &'c mut dyn Write,
    pub err: &'c mut dyn Write,
    /// Whether something that was asked for could not be shown.
    pub incomplete: bool,
}

impl Session<'_> {
    /// Writes that a file of a node cannot be opened.
    pub fn cannot_open(&mut self, path: &str, cause: Option<ReadCause>) -> Stop {
        let _ = writeln!(self.err, "cannot open {}: {}", printable(path), words(cause));
        self.incomplete = true;
        Stop
    }

    /// Writes that a file of a process cannot be read.
    pub fn cannot_read(&mut self, path: &str, cause: Option<ReadCause>) {
        let _ = writeln!(self.err, "Can't read {}: {}", printable(path), words(cause));
        self.incomplete = true;
    }

    /// Writes what is wrong in a file whose rest is shown. The originals take such lines for zeros.
    pub fn report_problems(&mut self, path: &str, problems: &Problems) {
        if problems.is_empty() || self.settings.strict {
            return;
        }
        for problem in &problems.first {
            let _ =
                writeln!(self.err, "numastat: {}:{}: {}", printable(path), problem.line, problem.sentence());
        }
        if problems.others > 0 {
            let _ = writeln!(
                self.err,
                "numastat: {}: {} more lines like these",
                printable(path),
                problems.others
            );
        }
        self.incomplete = true;
    }

    /// Writes that 2.0.16 does not know a name, where it writes that itself: among the tables.
    pub fn unknown_token(&mut self, name: &str) {
        let _ = writeln!(self.out, "Token {} not in hash table.", printable(name));
    }

    /// Foreign bytes as they may be written: escaped, or raw as the originals write them.
    pub fn shown(&self, bytes: &[u8]) -> Vec<u8> {
        if self.settings.strict {
            return bytes.to_vec();
        }
        printable(&String::from_utf8_lossy(bytes)).into_owned().into_bytes()
    }
}

/// Why something cannot be read, in the C library's words; `None` is what is missing.
pub fn words(cause: Option<ReadCause>) -> String {
    match cause {
        None => strerror::words(Errno::NOENT.raw_os_error()),
        Some(ReadCause::System(errno)) => strerror::words(errno),
        Some(other) => other.to_string(),
    }
}
