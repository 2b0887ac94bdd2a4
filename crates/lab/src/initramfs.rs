//! A first file system for a kernel: an archive that it unpacks into memory.
//!
//! # Source
//! The format "newc" of cpio, described in Linux's
//! `Documentation/driver-api/early-userspace/buffer-format.rst`: a header of hexadecimal numbers, the name,
//! the content, each filled up to four bytes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use nodewise_machine::printable::{io_words, quote};

/// Precedes every header.
const MAGIC: &str = "070701";
/// The name of the entry behind the last.
const TRAILER: &str = "TRAILER!!!";

/// Type and permissions of a folder, as in `st_mode`.
const FOLDER: u32 = 0o40_755;
/// Type and permissions of a file that can be executed.
const FILE: u32 = 0o100_755;

/// Why something cannot be put into an archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// Its size does not fit the format.
    #[error("{} has {size} bytes: a first file system takes files of less than 4 GiB", quote(name))]
    TooLarge {
        name: String,
        /// Its bytes.
        size: usize,
    },
}

/// Reads a file that an archive is to hold.
///
/// # Errors
/// It cannot be read; the message names it.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path).map_err(|error| named(path, &error))
}

/// An error with the path that it is about.
pub fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {}", path.display(), io_words(error)))
}

/// An archive that grows.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
    folders: BTreeSet<String>,
}

impl Archive {
    /// An empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder, and those that it is in.
    pub fn folder(&mut self, path: &str) {
        let path = path.trim_matches('/');
        self.parents(path);
        if !path.is_empty() && self.folders.insert(path.to_owned()) {
            self.entry(path, FOLDER, 2, 0);
        }
    }

    /// Adds a file that can be executed, and the folders that it is in.
    ///
    /// # Errors
    /// A file of 4 GiB or more.
    pub fn file(&mut self, path: &str, content: &[u8]) -> Result<(), ArchiveError> {
        let path = path.trim_matches('/');
        let too_large = |_| ArchiveError::TooLarge { name: path.to_owned(), size: content.len() };
        let size = u32::try_from(content.len()).map_err(too_large)?;
        self.parents(path);
        self.entry(path, FILE, 1, size);
        self.bytes.extend(content);
        self.fill();
        Ok(())
    }

    /// The archive as the kernel reads it.
    pub fn finish(mut self) -> Vec<u8> {
        self.entries = 0;
        self.entry(TRAILER, 0, 1, 0);
        self.bytes
    }

    fn parents(&mut self, path: &str) {
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.folder(parent);
        }
    }

    fn entry(&mut self, name: &str, mode: u32, links: u32, size: u32) {
        // With the zero behind it.
        let length = name.len() as u32 + 1;
        // Number, mode, user, group, links, time, size, four numbers of devices, name, check sum.
        let fields = [self.entries, mode, 0, 0, links, 0, size, 0, 0, 0, 0, length, 0];
        self.entries += 1;
        self.bytes.extend(MAGIC.bytes());
        self.bytes.extend(fields.iter().flat_map(|field| format!("{field:08x}").into_bytes()));
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.fill();
    }

    fn fill(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// Bytes of a header: the magic and thirteen numbers of eight digits.
    const HEADER: usize = 110;

    /// Name, mode and content of every entry, read by the format's rules.
    fn read(bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let (mut at, mut entries) = (0, Vec::new());
        loop {
            let header = std::str::from_utf8(&bytes[at..at + HEADER]).unwrap();
            assert_eq!(&header[..6], MAGIC);
            let field = |number: usize| u32::from_str_radix(&header[6 + 8 * number..][..8], 16).unwrap();
            let (mode, size, length) = (field(1), field(6) as usize, field(11) as usize);
            let name = std::str::from_utf8(&bytes[at + HEADER..][..length - 1]).unwrap().to_owned();
            assert_eq!(bytes[at + HEADER + length - 1], 0);
            let content = (at + HEADER + length).next_multiple_of(4);
            at = (content + size).next_multiple_of(4);
            if name == TRAILER {
                assert_eq!(at, bytes.len());
                return entries;
            }
            entries.push((name, mode, bytes[content..content + size].to_vec()));
        }
    }

    #[test]
    fn folders_stand_before_what_is_in_them_and_once() {
        let mut archive = Archive::new();
        archive.file("/bin/one", b"1").unwrap();
        archive.file("bin/more/two", b"22").unwrap();
        archive.folder("/bin/");
        archive.folder("/");
        let names: Vec<String> = read(&archive.finish()).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["bin", "bin/one", "bin/more", "bin/more/two"]);
    }

    #[test]
    fn another_reader_unpacks_it() {
        let mut archive = Archive::new();
        archive.file("a/b", b"content of b").unwrap();
        archive.folder("empty");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("archive"), archive.finish()).unwrap();
        let unpack = Command::new("busybox")
            .args(["cpio", "-i", "-d", "-F", "archive"])
            .current_dir(folder.path())
            .stderr(Stdio::null())
            .status();
        let Ok(status) = unpack else {
            // Straight to the descriptor: what a passing test prints is otherwise swallowed.
            let _ = writeln!(io::stderr(), "skipped: busybox is missing (cargo xtask lab-setup)");
            return;
        };
        assert!(status.success());
        assert_eq!(fs::read(folder.path().join("a/b")).unwrap(), b"content of b");
        assert!(folder.path().join("empty").is_dir());
    }

    proptest! {
        #[test]
        fn any_content_is_read_back(files in proptest::collection::vec(any::<Vec<u8>>(), 0..6)) {
            let mut archive = Archive::new();
            for (number, content) in files.iter().enumerate() {
                archive.file(&format!("{}/{number}", "x".repeat(number)), content).unwrap();
            }
            let entries = read(&archive.finish());
            let contents: Vec<Vec<u8>> =
                entries.into_iter().filter(|(_, mode, _)| *mode == FILE).map(|(_, _, content)| content).collect();
            prop_assert_eq!(contents, files);
        }
    }
}
