//! A file that an option names to be written.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use nodewise_machine::printable::printable;
use nodewise_source::capture::{Overwrite, check_file, write_file};

use crate::failure::Failure;

/// A file that the user named, to be written at the end and checked at the beginning: a result that took an
/// hour is not to be lost because its file cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    path: PathBuf,
}

impl From<OsString> for Destination {
    fn from(path: OsString) -> Self {
        Self { path: path.into() }
    }
}

impl fmt::Display for Destination {
    /// Its name, fit for a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", printable(&self.path.to_string_lossy()))
    }
}

impl Destination {
    /// Finds out whether it can be written, without changing anything.
    ///
    /// # Errors
    /// What the system would say, with the path.
    pub fn check(&self) -> Result<(), Failure> {
        check_file(&self.path, Overwrite::Replace).map_err(Failure::cannot)
    }

    /// Writes it whole or not at all; a file of that name is replaced and keeps its permissions.
    ///
    /// # Errors
    /// What the system says, with the path. Whoever has something else to show shows it anyway.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        write_file(&self.path, bytes, Overwrite::Replace).map_err(Failure::cannot)
    }
}

/// Checks the files that options name; those that are not named need no check.
///
/// # Errors
/// As [`Destination::check`], of the first that cannot be written.
pub fn check<'d>(named: impl IntoIterator<Item = &'d Option<Destination>>) -> Result<(), Failure> {
    named.into_iter().flatten().try_for_each(Destination::check)
}
