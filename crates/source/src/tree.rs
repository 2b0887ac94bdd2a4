//! The only door to `/sys`, `/proc`, `/dev` and `/boot`.
//!
//! A [`Tree`] is the running system, a capture (a directory or an archive), or a map in memory. All
//! are asked with the machine's own absolute paths, `/sys/devices/system/node/online`, and answer
//! alike: `None` for what is missing, an error with its reason for what is there and cannot be
//! read. Nothing inside a capture leads out of it, whatever its links say.

pub mod archive;
mod compressed;
mod directory;
mod error;
mod file;
pub mod format;
mod kept;
mod live;
pub mod memory;
mod root;
mod walk;

use std::path::Path;

pub use archive::Limits;
pub use error::{OpenError, ReadCause, ReadError};
pub(crate) use file::MOST_LINE_BYTES;
pub use file::read_bounded;
pub use kept::Kept;
pub use memory::Memory;

use compressed::Compression;
use directory::Directory;
use format::Format;
use live::Live;

/// The largest file that is read into memory. The kernel's largest in a capture are a few hundred
/// KiB (`cpuinfo` of thousands of CPUs).
pub const MOST_FILE_BYTES: u64 = 16 << 20;
/// The largest archive file that is opened.
const MOST_ARCHIVE_BYTES: u64 = 256 << 20;

/// A machine's files.
#[derive(Debug)]
pub struct Tree {
    kind: Kind,
    notes: Vec<String>,
}

#[derive(Debug)]
enum Kind {
    Live(Live),
    Directory(Directory),
    Memory(Memory),
}

impl Tree {
    /// The running system.
    pub const fn live() -> Self {
        Self { kind: Kind::Live(Live::new()), notes: Vec::new() }
    }

    /// Files held in memory.
    pub const fn memory(files: Memory) -> Self {
        Self { kind: Kind::Memory(files), notes: Vec::new() }
    }

    /// Opens a capture: a directory, or an archive of any name. The machine may lie in a folder
    /// inside it.
    ///
    /// # Errors
    /// A path that cannot be opened, a file that is not a tar archive (plain, gzip or bzip2), one that
    /// is damaged or too large, and what holds no machine, or several.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        if path.is_dir() { Self::open_directory(path) } else { Self::from_archive(&read_archive(path)?) }
    }

    fn open_directory(path: &Path) -> Result<Self, OpenError> {
        let directory = Directory::open(path).map_err(OpenError::system)?;
        let mut tree = Self { kind: Kind::Directory(directory), notes: Vec::new() };
        let folder = root::find(&tree)?;
        if let Kind::Directory(directory) = &mut tree.kind {
            directory.enter(&folder).map_err(OpenError::system)?;
        }
        Ok(tree)
    }

    /// Unpacks an archive in memory: tar, plain or compressed with gzip or bzip2.
    ///
    /// # Errors
    /// Those of [`Tree::open`] for a file.
    pub fn from_archive(bytes: &[u8]) -> Result<Self, OpenError> {
        Self::from_archive_within(bytes, &Limits::default())
    }

    /// Unpacks an archive in memory under limits of one's own.
    ///
    /// # Errors
    /// Those of [`Tree::open`] for a file.
    pub fn from_archive_within(bytes: &[u8], limits: &Limits) -> Result<Self, OpenError> {
        let (files, notes) = match Format::from_content(bytes) {
            Format::Gzip => archive::unpack_compressed(Compression::Gzip, bytes, limits),
            Format::Bzip2 => archive::unpack_compressed(Compression::Bzip2, bytes, limits),
            Format::Tar => archive::unpack(bytes, limits),
            Format::Empty => Err(OpenError::Empty),
            Format::Json => Err(OpenError::NotAnArchive("a JSON file")),
            Format::Other(what) => Err(OpenError::NotAnArchive(what)),
        }?;
        let mut tree = Self { kind: Kind::Memory(files), notes };
        let folder = root::find(&tree)?;
        if let Kind::Memory(files) = &mut tree.kind {
            files.enter(&folder);
        }
        Ok(tree)
    }

    /// Whether this is the running system, so that its files come from a kernel.
    pub const fn is_live(&self) -> bool {
        matches!(self.kind, Kind::Live(_))
    }

    /// Returns the oddities of the archive: sentences for the list of oddities.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Reads a file; `None` when it does not exist.
    ///
    /// # Errors
    /// What is there and is not a regular file, is larger than [`MOST_FILE_BYTES`], or cannot be read.
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, ReadError> {
        let mut bytes = Vec::new();
        Ok(self.read_into(path, &mut bytes)?.then_some(bytes))
    }

    /// Reads a file into a buffer, which is emptied first and keeps its memory; says whether the
    /// file is there.
    ///
    /// # Errors
    /// Those of [`Tree::read`].
    pub fn read_into(&self, path: &str, buffer: &mut Vec<u8>) -> Result<bool, ReadError> {
        buffer.clear();
        let result = match &self.kind {
            Kind::Live(live) => live.read(path, buffer),
            Kind::Directory(directory) => directory.read(path, buffer),
            Kind::Memory(files) => files.read(path, buffer),
        };
        result.map_err(|cause| ReadError::new(path, cause))
    }

    /// Reads the first bytes of a file into a buffer, which is emptied first, with one read where
    /// the kernel gives them at once; says whether the file is there. For very many files, where the
    /// beginning is enough, such as command lines.
    ///
    /// # Errors
    /// Those of [`Tree::read`] but the size.
    pub fn read_start(&self, path: &str, most: usize, buffer: &mut Vec<u8>) -> Result<bool, ReadError> {
        buffer.clear();
        let result = match &self.kind {
            Kind::Live(live) => live.start(path, most, buffer),
            Kind::Directory(directory) => directory.start(path, most, buffer),
            Kind::Memory(files) => files.read(path, buffer).inspect(|_| buffer.truncate(most)),
        };
        result.map_err(|cause| ReadError::new(path, cause))
    }

    /// Hands a file over piece by piece, as its bytes come, in bounded memory whatever its size;
    /// says whether it is there.
    ///
    /// # Errors
    /// Those of [`Tree::read`] but the size; pieces before the error have been handed over.
    pub fn read_chunks(&self, path: &str, chunk: &mut dyn FnMut(&[u8])) -> Result<bool, ReadError> {
        let result = match &self.kind {
            Kind::Live(live) => live.chunks(path, chunk),
            Kind::Directory(directory) => directory.chunks(path, chunk),
            Kind::Memory(files) => files.chunks(path, chunk),
        };
        result.map_err(|cause| ReadError::new(path, cause))
    }

    /// Reads a file as text; bytes that are not UTF-8 become the replacement character.
    ///
    /// # Errors
    /// Those of [`Tree::read`].
    pub fn read_text(&self, path: &str) -> Result<Option<String>, ReadError> {
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
        };
        Ok(self.read(path)?.map(text))
    }

    /// Hands a text file to `line` line by line, without the line feeds, in bounded memory whatever
    /// its size; says whether it is there. A line is cut after 64 KiB.
    ///
    /// # Errors
    /// Those of [`Tree::read`] but the size; lines before the error have been handed over.
    pub fn read_lines(&self, path: &str, line: &mut dyn FnMut(&str)) -> Result<bool, ReadError> {
        let result = match &self.kind {
            Kind::Live(live) => live.lines(path, line),
            Kind::Directory(directory) => directory.lines(path, line),
            Kind::Memory(files) => files.lines(path, line),
        };
        result.map_err(|cause| ReadError::new(path, cause))
    }

    /// The names in a directory, sorted; `None` when it does not exist or is not a directory.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn list(&self, path: &str) -> Result<Option<Vec<String>>, ReadError> {
        let result = match &self.kind {
            Kind::Live(live) => live.list(path),
            Kind::Directory(directory) => directory.list(path),
            Kind::Memory(files) => files.list(path),
        };
        result.map_err(|cause| ReadError::new(path, cause))
    }

    /// Reads the text of a symbolic link, as it is there; `None` when there is no link of this name.
    ///
    /// # Errors
    /// A link that cannot be read.
    pub fn link(&self, path: &str) -> Result<Option<String>, ReadError> {
        let result = match &self.kind {
            Kind::Live(live) => live.link(path),
            Kind::Directory(directory) => directory.link(path),
            Kind::Memory(files) => files.link(path),
        };
        result.map_err(|cause| ReadError::new(path, cause))
    }

    /// Where a symbolic link leads, as an absolute path that stays inside the tree; `None` when
    /// there is no link of this name. Only this one link is followed: in sysfs, folders that hold
    /// links are not links themselves.
    ///
    /// # Errors
    /// A link that cannot be read.
    pub fn target(&self, path: &str) -> Result<Option<String>, ReadError> {
        Ok(self.link(path)?.map(|target| join(path, &target)))
    }

    /// Whether there is anything of this name, links followed.
    pub fn exists(&self, path: &str) -> bool {
        match &self.kind {
            Kind::Live(live) => live.exists(path),
            Kind::Directory(directory) => directory.exists(path),
            Kind::Memory(files) => files.exists(path),
        }
    }
}

/// The path that a link at `path` with this target leads to. `..` at the top stays at the top.
fn join(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let base =
        if target.starts_with('/') { "" } else { path.rsplit_once('/').map_or("", |(folder, _)| folder) };
    for part in base.split('/').chain(target.split('/')) {
        match part {
            "" | "." => (),
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Reads an archive that the user named.
fn read_archive(path: &Path) -> Result<Vec<u8>, OpenError> {
    read_bounded(path, MOST_ARCHIVE_BYTES).map_err(|cause| match cause {
        ReadCause::TooLarge(most) => OpenError::TooLarge("the file", most),
        cause => OpenError::Io(cause.to_string()),
    })
}

#[cfg(test)]
mod tests;
