//! One file of a tree, read and parsed.

use nodewise_machine::printable::printable;

use crate::parse::{ParseError, Parsed, text_of};
use crate::tree::{ReadError, Tree};

/// Why a file that is there gave no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It is not as it should be.
    #[error("{path}:{}: {}", .error.line, .error.sentence())]
    Parse {
        /// The file, fit for a terminal.
        path: String,
        error: ParseError,
    },
}

/// Reads a file of one value; `None` when it does not exist.
///
/// # Errors
/// A file that cannot be read or does not parse.
pub fn value<T>(
    tree: &Tree,
    path: &str,
    parse: impl FnOnce(&str) -> Result<T, ParseError>,
) -> Result<Option<T>, FileError> {
    let Some(bytes) = tree.read(path)? else { return Ok(None) };
    let value = parse(&text_of(&bytes).0);
    value.map(Some).map_err(|error| FileError::Parse { path: printable(path).into_owned(), error })
}

/// Reads a file of many lines, what is wrong with some of them beside what could be read; `None` when it does
/// not exist.
///
/// # Errors
/// A file that cannot be read.
pub fn parsed<T>(
    tree: &Tree,
    path: &str,
    parse: impl FnOnce(&str) -> Parsed<T>,
) -> Result<Option<Parsed<T>>, ReadError> {
    Ok(tree.read(path)?.map(|bytes| parse(&text_of(&bytes).0)))
}
