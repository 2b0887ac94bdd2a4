//! Files in memory: what an archive unpacks to, and small machines made by hand in tests.
//!
//! Links work as in a root of its own: `/` is the top of the map and `..` stays inside.

use std::collections::BTreeMap;

use super::file::Splitter;
use super::walk::MOST_LINKS;
use super::{MOST_FILE_BYTES, ReadCause};

/// Longest path that is kept, as in the kernel (`PATH_MAX`).
const MOST_PATH_BYTES: usize = 4096;

/// Directories, files and links by path.
#[derive(Clone, Debug)]
pub struct Memory {
    inodes: Vec<Inode>,
    root: usize,
}

#[derive(Clone, Debug)]
enum Inode {
    Directory(BTreeMap<Box<str>, usize>),
    File(Box<[u8]>),
    Link(Box<str>),
    /// There, and cannot be read.
    Closed(ReadCause),
}

/// Why an entry was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// `..` in the path.
    Upwards,
    /// The path, or that of a link, is too long, empty or no path.
    Path,
    /// A part of the path is a file or a link.
    Through,
    /// Something else has this name already.
    Occupied,
    /// A hard link to what is missing, or is not a file.
    Dangling,
}

impl Refusal {
    /// In words, behind the name of the entry.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Upwards => "leads out of the archive",
            Self::Path => "is not a path, or leads nowhere",
            Self::Through => "lies below a file or a link",
            Self::Occupied => "has the name of a folder",
            Self::Dangling => "is a hard link to a missing file",
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl Memory {
    /// No files.
    pub fn new() -> Self {
        Self { inodes: vec![Inode::Directory(BTreeMap::new())], root: 0 }
    }

    /// With this file, in place of one that has its name.
    ///
    /// # Panics
    /// When the path is impossible: it holds `..`, or leads through a file.
    #[must_use]
    pub fn file(mut self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        self.add_file(path, contents.as_ref()).expect("a path made by hand leads through folders");
        self
    }

    /// With this symbolic link.
    ///
    /// # Panics
    /// When the path is impossible.
    #[must_use]
    pub fn link_to(mut self, path: &str, target: &str) -> Self {
        self.add_link(path, target).expect("a path made by hand leads through folders");
        self
    }

    /// With this empty directory.
    ///
    /// # Panics
    /// When the path is impossible.
    #[must_use]
    pub fn directory(mut self, path: &str) -> Self {
        self.add_directory(path).expect("a path made by hand leads through folders");
        self
    }

    /// With a file that is there and cannot be read.
    ///
    /// # Panics
    /// When the path is impossible.
    #[must_use]
    pub fn unreadable(mut self, path: &str, cause: ReadCause) -> Self {
        self.add_closed(path, cause).expect("a path made by hand leads through folders");
        self
    }

    /// Without this file, link or directory.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if let Ok(Some(at)) = self.resolve(folder, Follow::Links) {
            if let Inode::Directory(children) = &mut self.inodes[at] {
                children.remove(name);
            }
        }
        self
    }

    /// How many files, links and directories there are, the top included.
    pub fn len(&self) -> usize {
        self.inodes.len()
    }

    /// Whether nothing was put in.
    pub fn is_empty(&self) -> bool {
        self.inodes.len() == 1
    }

    pub(super) fn add_file(&mut self, path: &str, contents: &[u8]) -> Result<(), Refusal> {
        let cause = ReadCause::TooLarge(MOST_FILE_BYTES);
        let large = contents.len() as u64 > MOST_FILE_BYTES;
        self.insert(path, if large { Inode::Closed(cause) } else { Inode::File(contents.into()) })
    }

    pub(super) fn add_link(&mut self, path: &str, target: &str) -> Result<(), Refusal> {
        if target.is_empty() || target.len() > MOST_PATH_BYTES || target.contains('\0') {
            Err(Refusal::Path)
        } else {
            self.insert(path, Inode::Link(target.into()))
        }
    }

    pub(super) fn add_closed(&mut self, path: &str, cause: ReadCause) -> Result<(), Refusal> {
        self.insert(path, Inode::Closed(cause))
    }

    pub(super) fn add_directory(&mut self, path: &str) -> Result<(), Refusal> {
        let mut at = self.root;
        for part in parts(path)? {
            at = self.descend(at, part)?;
        }
        Ok(())
    }

    /// A second name for a file that is there.
    pub(super) fn add_hard_link(&mut self, path: &str, target: &str) -> Result<(), Refusal> {
        let mut at = self.root;
        for part in parts(target)? {
            let Inode::Directory(children) = &self.inodes[at] else { return Err(Refusal::Dangling) };
            at = *children.get(part).ok_or(Refusal::Dangling)?;
        }
        if !matches!(self.inodes[at], Inode::File(_) | Inode::Closed(_)) {
            return Err(Refusal::Dangling);
        }
        self.place(path, at)
    }

    /// Whether something with exactly this name is there.
    pub(super) fn holds(&self, path: &str) -> bool {
        matches!(self.resolve(path, Follow::NotTheLast), Ok(Some(_)))
    }

    fn insert(&mut self, path: &str, inode: Inode) -> Result<(), Refusal> {
        self.inodes.push(inode);
        let placed = self.place(path, self.inodes.len() - 1);
        if placed.is_err() {
            self.inodes.pop();
        }
        placed
    }

    fn place(&mut self, path: &str, inode: usize) -> Result<(), Refusal> {
        let parts = parts(path)?;
        let (name, folders) = parts.split_last().ok_or(Refusal::Path)?;
        // Folders are made only where nothing is yet, so that a refusal leaves no trace.
        let mut at = self.root;
        for (depth, part) in folders.iter().enumerate() {
            let Inode::Directory(children) = &self.inodes[at] else { return Err(Refusal::Through) };
            match children.get(*part) {
                Some(child) => at = *child,
                None => {
                    for part in &folders[depth..] {
                        at = self.descend(at, part)?;
                    }
                    break;
                }
            }
        }
        let Inode::Directory(children) = &self.inodes[at] else { return Err(Refusal::Through) };
        if let Some(known) = children.get(*name) {
            if matches!(self.inodes[*known], Inode::Directory(_)) {
                return Err(Refusal::Occupied);
            }
        }
        if let Inode::Directory(children) = &mut self.inodes[at] {
            children.insert((*name).into(), inode);
        }
        Ok(())
    }

    /// The folder of this name in a folder, made when it is missing.
    fn descend(&mut self, folder: usize, name: &str) -> Result<usize, Refusal> {
        let next = self.inodes.len();
        let Inode::Directory(children) = &mut self.inodes[folder] else { return Err(Refusal::Through) };
        let child = *children.entry(name.into()).or_insert(next);
        if child == next {
            self.inodes.push(Inode::Directory(BTreeMap::new()));
        } else if !matches!(self.inodes[child], Inode::Directory(_)) {
            return Err(Refusal::Through);
        }
        Ok(child)
    }

    /// Makes a folder inside the top.
    pub(super) fn enter(&mut self, folder: &str) {
        if let Ok(Some(root)) = self.resolve(folder, Follow::Links) {
            self.root = root;
        }
    }

    /// Finds the entry that a path leads to.
    fn resolve(&self, path: &str, follow: Follow) -> Result<Option<usize>, ReadCause> {
        let mut way = vec![self.root];
        let mut pending: Vec<&str> = steps(path).collect();
        let mut links = 0;
        while let Some(part) = pending.pop() {
            let at = way.last().copied().unwrap_or(self.root);
            let Inode::Directory(children) = &self.inodes[at] else { return Ok(None) };
            match part {
                "." => continue,
                ".." => {
                    way.truncate(way.len().saturating_sub(1).max(1));
                    continue;
                }
                _ => (),
            }
            let Some(child) = children.get(part) else { return Ok(None) };
            match &self.inodes[*child] {
                Inode::Link(target) if follow == Follow::Links || !pending.is_empty() => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(ReadCause::TooManyLinks);
                    }
                    if target.starts_with('/') {
                        way.truncate(1);
                    }
                    pending.extend(steps(target));
                }
                _ => way.push(*child),
            }
        }
        Ok(way.last().copied())
    }

    fn contents(&self, path: &str) -> Result<Option<&[u8]>, ReadCause> {
        let Some(at) = self.resolve(path, Follow::Links)? else { return Ok(None) };
        match &self.inodes[at] {
            Inode::File(contents) => Ok(Some(contents)),
            Inode::Directory(_) => Err(ReadCause::NotAFile("a directory")),
            Inode::Closed(cause) => Err(*cause),
            Inode::Link(_) => Err(ReadCause::TooManyLinks),
        }
    }

    pub(super) fn read(&self, path: &str, buffer: &mut Vec<u8>) -> Result<bool, ReadCause> {
        let contents = self.contents(path)?;
        buffer.extend_from_slice(contents.unwrap_or_default());
        Ok(contents.is_some())
    }

    pub(super) fn chunks(&self, path: &str, take: &mut dyn FnMut(&[u8])) -> Result<bool, ReadCause> {
        let Some(contents) = self.contents(path)? else { return Ok(false) };
        take(contents);
        Ok(true)
    }

    pub(super) fn lines(&self, path: &str, line: &mut dyn FnMut(&str)) -> Result<bool, ReadCause> {
        let Some(contents) = self.contents(path)? else { return Ok(false) };
        let mut splitter = Splitter { rest: Vec::new(), line };
        splitter.push(contents);
        splitter.finish();
        Ok(true)
    }

    pub(super) fn list(&self, path: &str) -> Result<Option<Vec<String>>, ReadCause> {
        let Some(at) = self.resolve(path, Follow::Links)? else { return Ok(None) };
        match &self.inodes[at] {
            Inode::Directory(children) => Ok(Some(children.keys().map(ToString::to_string).collect())),
            Inode::Closed(cause) => Err(*cause),
            Inode::File(_) | Inode::Link(_) => Ok(None),
        }
    }

    pub(super) fn link(&self, path: &str) -> Result<Option<String>, ReadCause> {
        let Some(at) = self.resolve(path, Follow::NotTheLast)? else { return Ok(None) };
        match &self.inodes[at] {
            Inode::Link(target) => Ok(Some(target.to_string())),
            _ => Ok(None),
        }
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        matches!(self.resolve(path, Follow::Links), Ok(Some(_)))
    }
}

/// Whether a link that comes last in a path is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Follow {
    Links,
    NotTheLast,
}

/// The steps of a path to follow, the first one last. A slash at the end asks for a folder, such as `.`
/// does.
fn steps(path: &str) -> impl Iterator<Item = &str> {
    let folder = path.ends_with('/').then_some(".");
    folder.into_iter().chain(path.split('/').rev().filter(|part| !part.is_empty()))
}

/// The parts of a path to put something at: `.` and empty parts are nothing, `..` is refused.
fn parts(path: &str) -> Result<Vec<&str>, Refusal> {
    if path.len() > MOST_PATH_BYTES || path.contains('\0') {
        return Err(Refusal::Path);
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") { Err(Refusal::Upwards) } else { Ok(parts) }
}
