//! A capture in a directory. Its links are the capture's own: `/` and `..` end at its top.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};
use rustix::io::Errno;

use super::file::{End, LIST, READ, chunks, contents, found, lines, names, regular, start};
use super::{ReadCause, walk};

/// How often a resolution is tried again that a rename elsewhere disturbed (`EAGAIN`).
const TRIES: usize = 8;

/// An open directory that is the root of a machine.
#[derive(Debug)]
pub(super) struct Directory {
    root: OwnedFd,
    /// Whether the kernel resolves paths for us: `openat2(2)` needs Linux 5.6, and the filters of
    /// many containers refuse it (EPERM, ENOSYS).
    kernel: bool,
}

impl Directory {
    pub(super) fn open(path: &Path) -> Result<Self, Errno> {
        let root = openat(CWD, path, OFlags::PATH | LIST, Mode::empty())?;
        let kernel = openat2(&root, ".", OFlags::PATH | LIST, Mode::empty(), ResolveFlags::IN_ROOT).is_ok();
        Ok(Self { root, kernel })
    }

    /// Resolves paths by hand from now on.
    #[cfg(test)]
    pub(super) fn without_openat2(&mut self) {
        self.kernel = false;
    }

    /// Makes a folder inside the root.
    pub(super) fn enter(&mut self, folder: &str) -> Result<(), Errno> {
        if !folder.is_empty() {
            self.root = self.at(folder, OFlags::PATH | LIST)?;
        }
        Ok(())
    }

    fn at(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        // Inside a root an absolute path is relative to it, but an empty one is nothing.
        let path = if path.is_empty() { "/" } else { path };
        if !self.kernel {
            return walk::open(&self.root, path, flags);
        }
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let mut result = Err(Errno::AGAIN);
        for _ in 0..TRIES {
            result = openat2(&self.root, path, flags, Mode::empty(), resolve);
            if !matches!(result, Err(Errno::AGAIN)) {
                break;
            }
        }
        result
    }

    fn file(&self, path: &str) -> Result<Option<OwnedFd>, ReadCause> {
        let Some(file) = found(self.at(path, READ))? else { return Ok(None) };
        regular(&file)?;
        Ok(Some(file))
    }

    pub(super) fn read(&self, path: &str, buffer: &mut Vec<u8>) -> Result<bool, ReadCause> {
        let Some(file) = self.file(path)? else { return Ok(false) };
        Ok(contents(file, buffer, End::Nothing)?.is_some())
    }

    pub(super) fn start(&self, path: &str, most: usize, buffer: &mut Vec<u8>) -> Result<bool, ReadCause> {
        let Some(file) = self.file(path)? else { return Ok(false) };
        Ok(start(file, most, buffer)?.is_some())
    }

    pub(super) fn chunks(&self, path: &str, take: &mut dyn FnMut(&[u8])) -> Result<bool, ReadCause> {
        let Some(file) = self.file(path)? else { return Ok(false) };
        Ok(chunks(file, take)?.is_some())
    }

    pub(super) fn lines(&self, path: &str, line: &mut dyn FnMut(&str)) -> Result<bool, ReadCause> {
        let Some(file) = self.file(path)? else { return Ok(false) };
        Ok(lines(file, line)?.is_some())
    }

    pub(super) fn list(&self, path: &str) -> Result<Option<Vec<String>>, ReadCause> {
        found(self.at(path, LIST))?.map(|directory| names(&directory)).transpose()
    }

    pub(super) fn link(&self, path: &str) -> Result<Option<String>, ReadCause> {
        let Some(link) = found(self.at(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC))? else {
            return Ok(None);
        };
        // An open descriptor of something that is not a link answers ENOENT.
        Ok(found(readlinkat(&link, "", Vec::new()))?.map(|target| target.to_string_lossy().into_owned()))
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.at(path, OFlags::PATH | OFlags::CLOEXEC).is_ok()
    }
}
