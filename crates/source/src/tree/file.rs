//! Reading an open file: sizes are bounded, and nothing but a regular file is read.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, OFlags, RawDir, fstat};
use rustix::io::{Errno, pread, read};

use super::{MOST_FILE_BYTES, ReadCause};

/// How files are opened: a FIFO does not block, nothing is inherited, no terminal is acquired.
pub(super) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
/// How directories are opened.
pub(super) const LIST: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The number of the error that an argument is invalid.
const INVALID: i32 = Errno::INVAL.raw_os_error();
/// The bytes of an attribute that the kernel gives at once.
const PAGE: usize = 4096;
/// A line is cut here, so that a file without line feeds costs no more memory than this.
pub(crate) const MOST_LINE_BYTES: usize = 64 << 10;

/// When a file is known to have ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// At a read of nothing.
    Nothing,
    /// At a read of less than a page: an attribute of sysfs comes whole, and one longer than a
    /// page comes in pages.
    Short,
}

/// Interprets the result of `open`: not there is `None`, everything else keeps its reason.
pub(super) fn found<T>(result: Result<T, Errno>) -> Result<Option<T>, ReadCause> {
    match result {
        Ok(value) => Ok(Some(value)),
        // ESRCH is how a file of a process that ended while it was open answers.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::SRCH) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Reads a file that a user names. A pipe is as good as a file; one without an end is cut.
///
/// # Errors
/// Why it cannot be read; one that is larger than `most` is not.
pub fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>, ReadCause> {
    // Only a path with a zero byte is refused without the system.
    let cause = |error: io::Error| ReadCause::System(error.raw_os_error().unwrap_or(INVALID));
    let mut bytes = Vec::new();
    File::open(path).map_err(cause)?.take(most + 1).read_to_end(&mut bytes).map_err(cause)?;
    if bytes.len() as u64 > most { Err(ReadCause::TooLarge(most)) } else { Ok(bytes) }
}

/// Refuses everything but regular files.
pub(super) fn regular(file: &OwnedFd) -> Result<(), ReadCause> {
    let stat = fstat(file).map_err(ReadCause::from)?;
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "a directory",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink | FileType::Unknown => "something else",
    };
    Err(ReadCause::NotAFile(what))
}

/// Reads a file to its end into the buffer; `None` when its process ended.
pub(super) fn contents(file: impl AsFd, buffer: &mut Vec<u8>, end: End) -> Result<Option<()>, ReadCause> {
    buffer.reserve(PAGE);
    loop {
        let length = match read(&file, spare_capacity(buffer)) {
            Err(Errno::INTR) => continue,
            result => match found(result)? {
                Some(length) => length,
                None => return Ok(None),
            },
        };
        if length == 0 || end == End::Short && length < PAGE {
            return Ok(Some(()));
        }
        if buffer.len() as u64 > MOST_FILE_BYTES {
            return Err(ReadCause::TooLarge(MOST_FILE_BYTES));
        }
        if buffer.capacity() - buffer.len() < PAGE {
            buffer.reserve(buffer.len().max(PAGE));
        }
    }
}

/// Reads an open file from its beginning to its end into the buffer; `None` when its process ended.
pub(super) fn again(file: impl AsFd, buffer: &mut Vec<u8>, end: End) -> Result<Option<()>, ReadCause> {
    buffer.reserve(PAGE);
    loop {
        let at = buffer.len() as u64;
        let length = match pread(&file, spare_capacity(buffer), at) {
            Err(Errno::INTR) => continue,
            result => match found(result)? {
                Some(length) => length,
                None => return Ok(None),
            },
        };
        if length == 0 || end == End::Short && length < PAGE {
            return Ok(Some(()));
        }
        if buffer.len() as u64 > MOST_FILE_BYTES {
            return Err(ReadCause::TooLarge(MOST_FILE_BYTES));
        }
        if buffer.capacity() - buffer.len() < PAGE {
            buffer.reserve(buffer.len().max(PAGE));
        }
    }
}

/// Reads the first bytes of a file with one read; `None` when its process ended.
pub(super) fn start(file: impl AsFd, most: usize, buffer: &mut Vec<u8>) -> Result<Option<()>, ReadCause> {
    buffer.clear();
    // Not resized: writing the zeros took more instructions than all else in a search through command lines.
    buffer.reserve(most);
    let length = loop {
        match read(&file, spare_capacity(buffer)) {
            Err(Errno::INTR) => (),
            result => break found(result),
        }
    };
    buffer.truncate(most);
    Ok(length?.map(|_| ()))
}

/// Hands a file over piece by piece; `None` when its process ended before anything was read.
pub(super) fn chunks(file: impl AsFd, take: &mut dyn FnMut(&[u8])) -> Result<Option<()>, ReadCause> {
    let mut chunk = Vec::with_capacity(MOST_LINE_BYTES);
    loop {
        chunk.clear();
        match read(&file, spare_capacity(&mut chunk)) {
            Err(Errno::INTR) => (),
            result => match found(result)? {
                None => return Ok(None),
                Some(0) => return Ok(Some(())),
                Some(_) => take(&chunk),
            },
        }
    }
}

/// Hands a file over line by line; `None` when its process ended before anything was read.
pub(super) fn lines(file: impl AsFd, line: &mut dyn FnMut(&str)) -> Result<Option<()>, ReadCause> {
    let mut splitter = Splitter { rest: Vec::new(), line };
    let read = chunks(file, &mut |chunk| splitter.push(chunk))?;
    splitter.finish();
    Ok(read)
}

/// Cuts chunks into lines.
pub(super) struct Splitter<'a> {
    pub(super) rest: Vec<u8>,
    pub(super) line: &'a mut dyn FnMut(&str),
}

impl Splitter<'_> {
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let mut parts = chunk.split_inclusive(|byte| *byte == b'\n');
        parts.by_ref().for_each(|part| {
            let room = MOST_LINE_BYTES.saturating_sub(self.rest.len());
            let text = part.strip_suffix(b"\n").unwrap_or(part);
            self.rest.extend_from_slice(&text[..text.len().min(room)]);
            if text.len() < part.len() {
                (self.line)(&String::from_utf8_lossy(&self.rest));
                self.rest.clear();
            }
        });
    }

    pub(super) fn finish(&mut self) {
        if !self.rest.is_empty() {
            (self.line)(&String::from_utf8_lossy(&self.rest));
        }
    }
}

/// The names in an open directory, sorted.
pub(super) fn names(directory: &OwnedFd) -> Result<Vec<String>, ReadCause> {
    let mut space = [std::mem::MaybeUninit::uninit(); 8192];
    let mut entries = RawDir::new(directory, &mut space);
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(ReadCause::from)?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "1234").unwrap();
        assert_eq!(read_bounded(&path, 4), Ok(b"1234".to_vec()));
        assert_eq!(read_bounded(&path, 3), Err(ReadCause::TooLarge(3)));
        let missing = read_bounded(&folder.path().join("none"), 4);
        assert_eq!(missing, Err(ReadCause::System(Errno::NOENT.raw_os_error())));
        assert_eq!(read_bounded(Path::new("a\0b"), 4), Err(ReadCause::System(INVALID)));
    }
}
