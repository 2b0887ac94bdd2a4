//! The running system.
//!
//! The kernel's own files need no precautions: `/sys` and `/proc` hold neither FIFOs nor foreign
//! links. So a value costs three system calls: open, read and close. Opening is the dearest of them
//! and its price is the length of the path, so the two folders that hold nearly everything are
//! opened once and asked relative to them.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, openat, readlinkat};
use rustix::io::Errno;

use super::ReadCause;
use super::file::{End, LIST, READ, chunks, contents, found, lines, names, regular, start};

/// Folders with many files that are read.
const HUBS: [&str; 2] = ["/sys/devices/system/cpu/", "/sys/devices/system/node/"];

/// Whether the kernel made this file. Elsewhere (`/dev`, `/boot`) a name can stand for anything.
fn from_the_kernel(path: &str) -> bool {
    path.starts_with("/sys/") || path.starts_with("/proc/")
}

/// When a file is known to have ended: attributes of devices and of memory management, and files of processes with one
/// record (`single_open()` of `fs/seq_file.c`) or one number, come whole in a read of a page, or in as many as they fill.
/// Logs and control groups below `/sys`, and all else of `/proc`, may come in pieces of any size.
pub(super) fn end_of(path: &str) -> End {
    const ATTRIBUTES: [&str; 4] = ["/sys/devices/", "/sys/class/", "/sys/bus/", "/sys/kernel/mm/"];
    const RECORDS: [&str; 6] = ["stat", "schedstat", "statm", "status", "oom_score", "oom_score_adj"];
    let is_record = || {
        path.strip_prefix("/proc/")
            .filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
            .and_then(|rest| rest.rsplit_once('/'))
            .is_some_and(|(_, name)| RECORDS.contains(&name))
    };
    let is_whole = ATTRIBUTES.iter().any(|folder| path.starts_with(folder)) || is_record();
    if is_whole { End::Short } else { End::Nothing }
}

/// The running system, with the folders that were opened.
#[derive(Debug)]
pub(super) struct Live {
    hubs: [OnceLock<Option<OwnedFd>>; HUBS.len()],
}

impl Live {
    pub(super) const fn new() -> Self {
        Self { hubs: [OnceLock::new(), OnceLock::new()] }
    }

    /// The folder to start from, and the rest of the path.
    fn place<'p>(&self, path: &'p str) -> (BorrowedFd<'_>, &'p str) {
        for (hub, folder) in self.hubs.iter().zip(HUBS) {
            if let Some(rest) = path.strip_prefix(folder) {
                let open = || openat(CWD, folder, OFlags::PATH | LIST, Mode::empty()).ok();
                if let Some(hub) = hub.get_or_init(open) {
                    return (hub.as_fd(), rest);
                }
            }
        }
        (CWD, path)
    }

    pub(super) fn open(&self, path: &str) -> Result<Option<OwnedFd>, ReadCause> {
        let (folder, rest) = self.place(path);
        let Some(file) = found(openat(folder, rest, READ, Mode::empty()))? else { return Ok(None) };
        if !from_the_kernel(path) {
            regular(&file)?;
        }
        Ok(Some(file))
    }

    pub(super) fn read(&self, path: &str, buffer: &mut Vec<u8>) -> Result<bool, ReadCause> {
        let Some(file) = self.open(path)? else { return Ok(false) };
        Ok(contents(file, buffer, end_of(path))?.is_some())
    }

    pub(super) fn start(&self, path: &str, most: usize, buffer: &mut Vec<u8>) -> Result<bool, ReadCause> {
        let Some(file) = self.open(path)? else { return Ok(false) };
        Ok(start(file, most, buffer)?.is_some())
    }

    pub(super) fn chunks(&self, path: &str, take: &mut dyn FnMut(&[u8])) -> Result<bool, ReadCause> {
        let Some(file) = self.open(path)? else { return Ok(false) };
        Ok(chunks(file, take)?.is_some())
    }

    pub(super) fn lines(&self, path: &str, line: &mut dyn FnMut(&str)) -> Result<bool, ReadCause> {
        let Some(file) = self.open(path)? else { return Ok(false) };
        Ok(lines(file, line)?.is_some())
    }

    pub(super) fn list(&self, path: &str) -> Result<Option<Vec<String>>, ReadCause> {
        let (folder, rest) = self.place(path);
        found(openat(folder, rest, LIST, Mode::empty()))?.map(|directory| names(&directory)).transpose()
    }

    pub(super) fn link(&self, path: &str) -> Result<Option<String>, ReadCause> {
        match readlinkat(CWD, path, Vec::new()) {
            Err(Errno::INVAL) => Ok(None),
            result => Ok(found(result)?.map(|target| target.to_string_lossy().into_owned())),
        }
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        accessat(CWD, path, Access::EXISTS, AtFlags::empty()).is_ok()
    }
}
