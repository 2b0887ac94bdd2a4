//! A device tree from a file.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use nodewise_machine::firmware::devicetree::NumaTree;
use nodewise_machine::printable::visible;

use super::{DtbError, MOST_BYTES, read};
use crate::tree::ReadCause;

/// Why there is no tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// It cannot be read.
    #[error("cannot read {path}: {cause}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        cause: String,
    },
    /// It is none.
    #[error("{path}: {source}")]
    NoTree {
        /// The file.
        path: String,
        /// What is wrong.
        source: DtbError,
    },
}

/// Reads what the device tree in a file says of nodes.
///
/// # Errors
/// A file that cannot be read, is larger than [`MOST_BYTES`], or is no device tree.
pub fn from_path(path: &Path) -> Result<NumaTree, TreeError> {
    let name = || visible(&path.to_string_lossy()).into_owned();
    let unreadable = |error: std::io::Error| TreeError::Unreadable {
        path: name(),
        cause: error.raw_os_error().map_or_else(|| error.to_string(), crate::tree::errno_words),
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(TreeError::Unreadable {
            path: name(),
            cause: ReadCause::TooLarge(MOST_BYTES).to_string(),
        });
    }
    read(&bytes).map_err(|source| TreeError::NoTree { path: name(), source })
}
