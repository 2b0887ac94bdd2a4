//! Files that are read again and again.

use std::os::fd::OwnedFd;

use super::file::again;
use super::live::end_of;
use super::{Kind, ReadError, Tree};

/// A file that is read again and again: on the running system it stays open, which saves most of the price of
/// a small file, and a file of a process never speaks of a successor with the same number.
#[derive(Debug)]
pub struct Kept {
    path: Box<str>,
    file: Option<OwnedFd>,
}

impl Kept {
    /// Its path, as it was given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether the file is open, and so takes a descriptor.
    pub const fn is_open(&self) -> bool {
        self.file.is_some()
    }
}

impl Tree {
    /// A file to be read many times. Nothing is opened before the first reading.
    pub fn keep(&self, path: &str) -> Kept {
        Kept { path: path.into(), file: None }
    }

    /// Reads a kept file from its beginning into a buffer, which is emptied first; says whether the file is
    /// there. A process that has ended is not, also when its number belongs to another one by now: that one is
    /// found by the next reading.
    ///
    /// # Errors
    /// Those of [`Tree::read`].
    pub fn read_kept(&self, kept: &mut Kept, buffer: &mut Vec<u8>) -> Result<bool, ReadError> {
        let Kind::Live(live) = &self.kind else { return self.read_into(&kept.path, buffer) };
        let end = end_of(&kept.path);
        if let Some(file) = &kept.file {
            buffer.clear();
            match again(file, buffer, end) {
                Ok(Some(())) => return Ok(true),
                Ok(None) => {
                    kept.file = None;
                    return Ok(false);
                }
                // The file of a device or node that went and came back answers with an error forever.
                Err(_) => kept.file = None,
            }
        }
        buffer.clear();
        let result = live.open(&kept.path).and_then(|file| {
            let Some(file) = file else { return Ok(false) };
            let there = again(&file, buffer, end)?.is_some();
            kept.file = there.then_some(file);
            Ok(there)
        });
        result.map_err(|cause| ReadError::new(&kept.path, cause))
    }
}
