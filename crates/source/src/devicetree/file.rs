//! A device tree from a file.

use std::path::Path;

use nodewise_machine::firmware::devicetree::NumaTree;
use nodewise_machine::printable::visible;

use super::{DtbError, MOST_BYTES, read};
use crate::tree::read_bounded;

/// Why there is no tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    #[error("cannot read {path}: {cause}")]
    Unreadable { path: String, cause: String },
    #[error("{path}: {source}")]
    NoTree { path: String, source: DtbError },
}

/// Reads what the device tree in a file says of nodes.
///
/// # Errors
/// A file that cannot be read, is larger than [`MOST_BYTES`], or is not a device tree.
pub fn from_path(path: &Path) -> Result<NumaTree, TreeError> {
    let name = || visible(&path.to_string_lossy()).into_owned();
    let bytes = read_bounded(path, MOST_BYTES)
        .map_err(|cause| TreeError::Unreadable { path: name(), cause: cause.to_string() })?;
    read(&bytes).map_err(|source| TreeError::NoTree { path: name(), source })
}
