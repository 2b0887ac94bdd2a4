//! A folder that stands for `/`, and paths that never lead out of it: an image that is mounted
//! somewhere, or the running system.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::{Errno, read};

use crate::error::BootError;

/// Links that are followed on one path, as many as the kernel does.
const MOST_LINKS: usize = 40;
/// The largest file that is read.
const MOST_BYTES: usize = 1 << 20;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// The folder.
#[derive(Debug)]
pub struct Root {
    top: OwnedFd,
}

/// Where a path leads: a folder, and a name in it that is not a link.
#[derive(Debug)]
pub(crate) struct ResolvedPath {
    pub(crate) folder: OwnedFd,
    pub(crate) name: OsString,
    /// The folder's path, seen from the root.
    pub(crate) path: String,
}

impl ResolvedPath {
    /// The path of something in the same folder.
    pub(crate) fn beside(&self, name: &OsStr) -> String {
        format!("{}/{}", self.path, name.to_string_lossy())
    }

    /// The names in the folder.
    pub(crate) fn names(&self) -> Result<Vec<String>, Errno> {
        names(&self.folder, OsStr::new("."))
    }

    /// Reads a file in the folder. `FBIG`, `ISDIR` and `LOOP` stand for what is none or too large.
    pub(crate) fn read(&self, name: &OsStr) -> Result<Found, Errno> {
        let (file, stat) = open(&self.folder, name)?;
        Ok(Found { bytes: contents(&file)?, stat })
    }
}

/// A file as it was read.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) bytes: Vec<u8>,
    pub(crate) stat: Stat,
}

impl Root {
    /// Opens a folder; `/` for the running system.
    ///
    /// # Errors
    /// A path that cannot be opened, or is not a folder.
    pub fn open(path: &Path) -> Result<Self, BootError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = openat(CWD, path, flags, Mode::empty())
            .map_err(|errno| BootError::Root { path: path.to_string_lossy().into_owned(), errno })?;
        Ok(Self { top })
    }

    /// Reads a file; `None` when it does not exist.
    ///
    /// # Errors
    /// What is there and is not a regular file of at most 1 MiB, or cannot be read.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, BootError> {
        Ok(self.look(path, |place| place.read(&place.name))?.map(|found| found.bytes))
    }

    /// The names in a folder, sorted; none when it is missing. Names that are not UTF-8 are none of
    /// any boot loader.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn list(&self, path: &str) -> Result<Vec<String>, BootError> {
        Ok(self.names_in(path)?.unwrap_or_default())
    }

    /// The same; `None` where there is no such folder.
    pub(crate) fn names_in(&self, path: &str) -> Result<Option<Vec<String>>, BootError> {
        let error = |errno| BootError::Read { path: path.to_owned(), errno };
        let Some(place) = self.resolve(path).map_err(error)? else { return Ok(None) };
        match names(&place.folder, &place.name) {
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            result => result.map(Some).map_err(error),
        }
    }

    /// Which file this is, by whatever name; `None` when it does not exist. It refuses what [`Root::read`]
    /// refuses, without reading it.
    pub(crate) fn stat(&self, path: &str) -> Result<Option<Stat>, BootError> {
        self.look(path, |place| open(&place.folder, &place.name).map(|(_, stat)| stat))
    }

    fn look<T>(
        &self,
        path: &str,
        look: impl FnOnce(&ResolvedPath) -> Result<T, Errno>,
    ) -> Result<Option<T>, BootError> {
        let error = |errno| BootError::Read { path: path.to_owned(), errno };
        let Some(place) = self.resolve(path).map_err(error)? else { return Ok(None) };
        there(path, look(&place))
    }

    /// Follows a path to its end; `None` when a folder on the way is missing. The last name need not
    /// be there.
    pub(crate) fn resolve(&self, path: &str) -> Result<Option<ResolvedPath>, Errno> {
        let mut folders: Vec<(OwnedFd, OsString)> = Vec::new();
        let mut rest: VecDeque<OsString> = components(path.as_bytes()).collect();
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            // `..` at the top stays there, as in a root directory.
            if name == ".." {
                folders.pop();
                continue;
            }
            let folder = folders.last().map_or(self.top.as_fd(), |(folder, _)| folder.as_fd());
            match readlinkat(folder, &name, Vec::new()) {
                Ok(target) => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Errno::LOOP);
                    }
                    if target.as_bytes().starts_with(b"/") {
                        folders.clear();
                    }
                    let target: Vec<OsString> = components(target.as_bytes()).collect();
                    target.into_iter().rev().for_each(|name| rest.push_front(name));
                }
                Err(Errno::INVAL | Errno::NOENT) if rest.is_empty() => {
                    let folder = reopen(folder)?;
                    let path =
                        folders.iter().map(|(_, name)| format!("/{}", name.to_string_lossy())).collect();
                    return Ok(Some(ResolvedPath { folder, name, path }));
                }
                Err(Errno::INVAL) => match openat(folder, &name, FOLDER, Mode::empty()) {
                    Ok(folder) => folders.push((folder, name)),
                    Err(Errno::NOTDIR) => return Ok(None),
                    Err(errno) => return Err(errno),
                },
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
                Err(errno) => return Err(errno),
            }
        }
        // The path, or a link, named a folder: it has no name of its own there.
        Ok(None)
    }
}

/// The names of a path, without those that mean nothing.
fn components(path: &[u8]) -> impl DoubleEndedIterator<Item = OsString> {
    let names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".");
    names.map(|name| OsStr::from_bytes(name).to_owned())
}

/// Opens a folder for reading and synchronising; a path descriptor can do neither.
fn reopen(folder: BorrowedFd) -> Result<OwnedFd, Errno> {
    openat(folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// The outcome of a look at a file; `None` when it does not exist.
pub(crate) fn there<T>(path: &str, result: Result<T, Errno>) -> Result<Option<T>, BootError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::FBIG | Errno::ISDIR | Errno::LOOP) => Err(BootError::NotAFile { path: path.to_owned() }),
        Err(errno) => Err(BootError::Read { path: path.to_owned(), errno }),
    }
}

/// Opens a regular file that is not too large to be read.
fn open(folder: impl AsFd, name: &OsStr) -> Result<(OwnedFd, Stat), Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty())?;
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::ISDIR);
    }
    if usize::try_from(stat.st_size).is_ok_and(|size| size > MOST_BYTES) {
        return Err(Errno::FBIG);
    }
    Ok((file, stat))
}

/// Everything in an open file, whose size may be none that counts.
fn contents(file: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let (mut bytes, mut chunk) = (Vec::new(), [0_u8; 4096]);
    loop {
        match read(file, &mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        if bytes.len() > MOST_BYTES {
            return Err(Errno::FBIG);
        }
    }
}

fn names(folder: &OwnedFd, name: &OsStr) -> Result<Vec<String>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(folder, name, flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder)? {
        if let Ok(name) = entry?.file_name().to_str() {
            names.push(name.to_owned());
        }
    }
    names.retain(|name| name != "." && name != "..");
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn root() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().expect("a folder of our own");
        fs::create_dir_all(folder.path().join("top/boot/firmware")).expect("made");
        fs::write(folder.path().join("outside"), "outside").expect("written");
        fs::write(folder.path().join("top/inside"), "inside").expect("written");
        let root = Root::open(&folder.path().join("top")).expect("it is there");
        (folder, root)
    }

    #[track_caller]
    fn check(target: &str, expected: Option<&[u8]>) {
        let (folder, root) = root();
        symlink(target, folder.path().join("top/boot/link")).expect("linked");
        assert_eq!(root.read("/boot/link").expect("readable").as_deref(), expected, "{target}");
    }

    #[test]
    fn links_end_inside_the_root() {
        check("../inside", Some(b"inside"));
        check("/inside", Some(b"inside"));
        check("/boot/../../../inside", Some(b"inside"));
        check("../../outside", None);
        check("/nowhere/x", None);
        check("/outside", None);
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let (folder, root) = root();
        symlink("link", folder.path().join("top/boot/link")).expect("linked");
        assert!(root.read("/boot/link").is_err());
        assert!(root.read("/boot/firmware").is_err());
        assert_eq!(root.read("/boot/none").expect("readable"), None);
        assert_eq!(root.read("/inside/none").expect("readable"), None);
        fs::write(folder.path().join("top/large"), vec![0; MOST_BYTES + 1]).expect("written");
        assert!(root.read("/large").is_err());
        for path in ["/boot/link", "/boot/firmware", "/large"] {
            assert!(root.stat(path).is_err(), "{path}");
        }
        assert!(root.stat("/boot/none").expect("readable").is_none());
        assert_eq!(root.list("/boot").expect("readable"), ["firmware", "link"]);
        assert_eq!(root.list("/none").expect("readable"), [""; 0]);
    }
}
