//! How a verb fails: a message and an exit code.

use std::fmt;
use std::io;

use nodewise_machine::printable::io_words;

/// Wrong usage.
pub const USAGE: u8 = 2;
/// This machine cannot do it.
pub const CANNOT: u8 = 3;
/// A mistake of ours, or of the system under us.
pub const INTERNAL: u8 = 4;
/// `run` and `lab`: nodewise itself failed, like `env` and `timeout`.
pub const NOT_STARTED: u8 = 125;
/// `run`: the program cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// `run`: the program is not found.
pub const NOT_FOUND: u8 = 127;

/// Result of a verb that does not end well.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    /// The fault, where, and what would be right.
    pub message: String,
}

impl Failure {
    /// A failure with this code.
    pub fn new(code: u8, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string() }
    }

    /// Wrong usage.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(USAGE, message)
    }

    /// Something this machine cannot do.
    pub fn cannot(message: impl fmt::Display) -> Self {
        Self::new(CANNOT, message)
    }
}

impl From<io::Error> for Failure {
    /// Output that could not be written: a full disk, for example.
    fn from(error: io::Error) -> Self {
        Self::new(CANNOT, format_args!("cannot write the output: {}", io_words(&error)))
    }
}

/// Result of a verb: an exit code, or a failure.
pub type Outcome = Result<u8, Failure>;
