//! Source of reads: a block device or a file, opened for direct I/O.

use std::fs::{File, Metadata};
use std::io::{self, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _};
use std::path::Path;

use nodewise_machine::Bytes;
use nodewise_machine::printable::{io_words, printable};
use nodewise_syscall::Errno;
use rustix::fs::{Mode, OFlags, open};

use super::SMALL;

/// A block device or a file that is open to be read past the page cache.
#[derive(Debug)]
pub struct Target {
    file: File,
    size: Bytes,
    name: String,
}

/// Why something cannot be read. Paths are fit to be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("{path} is a directory: expected a block device or a file")]
    Directory { path: String },
    /// It is something else that has no blocks.
    #[error("{path} is neither a block device nor a file")]
    NoBlocks { path: String },
    /// Its file system refuses direct I/O.
    #[error(
        "{path} lies on a file system without direct I/O (O_DIRECT), and reads through the page cache do not \
         measure of a device: expected a file on a disk, or see nodewise bandwidth --file"
    )]
    NoDirect { path: String },
    /// There is too little in it.
    #[error("{path} has {size}: expected {SMALL} or more")]
    TooSmall { path: String, size: Bytes },
    /// It may not be read.
    #[error("{path} cannot be read: permission denied (block devices are for root and the group disk)")]
    Denied { path: String },
    /// Its mode would let this process read it, and something else does not.
    #[error(
        "{path} cannot be read: operation not permitted (the devices of this container, or control group, are \
         limited)"
    )]
    NotPermitted { path: String },
    /// The kernel refuses to open it.
    #[error("{path} cannot be opened: {why}")]
    NotOpened { path: String, why: String },
    /// A read failed: the device has gone, or is broken.
    #[error("{path} cannot be read: {why}")]
    NotRead { path: String, why: String },
    /// It has become shorter since it was opened.
    #[error("{path} has become shorter while it was read")]
    Shorter { path: String },
}

impl Target {
    /// Opens a block device or a file, to be read and nothing else.
    ///
    /// # Source
    /// `open(2)`: `O_RDONLY | O_DIRECT`.
    ///
    /// # Errors
    /// What is not a block device and no file, or holds too little; a file system without direct I/O (tmpfs
    /// before Linux 6.6 is one), and no permission.
    pub fn open(path: &Path) -> Result<Self, TargetError> {
        let name = printable(&path.to_string_lossy()).into_owned();
        let refused = |error: io::Error| Self::refused(&name, &error);
        // Looked at first: opening a pipe would wait for its other end.
        Self::check_kind(&name, &std::fs::metadata(path).map_err(refused)?)?;
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        let opened = open(path, flags, Mode::empty()).map_err(|errno| match errno {
            rustix::io::Errno::INVAL => TargetError::NoDirect { path: name.clone() },
            errno => refused(errno.into()),
        })?;
        let mut file = File::from(opened);
        // The end of a block device, whose metadata does not hold the size.
        let size = Bytes::new(file.seek(SeekFrom::End(0)).map_err(refused)?);
        if size < SMALL {
            return Err(TargetError::TooSmall { path: name, size });
        }
        Ok(Self { file, size, name })
    }

    fn check_kind(name: &str, metadata: &Metadata) -> Result<(), TargetError> {
        let (path, kind) = (name.to_owned(), metadata.file_type());
        if kind.is_dir() {
            Err(TargetError::Directory { path })
        } else if kind.is_file() || kind.is_block_device() {
            Ok(())
        } else {
            Err(TargetError::NoBlocks { path })
        }
    }

    fn refused(name: &str, error: &io::Error) -> TargetError {
        let path = name.to_owned();
        match error.raw_os_error().map(Errno::new) {
            Some(Errno::EACCES) => TargetError::Denied { path },
            Some(Errno::EPERM) => TargetError::NotPermitted { path },
            _ => TargetError::NotOpened { path, why: io_words(error) },
        }
    }

    /// How much it holds.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Fills a buffer from an offset on; both, and the buffer's address, are multiples of [`SMALL`].
    ///
    /// # Errors
    /// A device that has gone or is broken, and one that has become shorter.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), TargetError> {
        let path = || self.name.clone();
        loop {
            match self.file.read_at(buffer, offset) {
                Ok(read) if read == buffer.len() => return Ok(()),
                Ok(_) => return Err(TargetError::Shorter { path: path() }),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(TargetError::NotRead { path: path(), why: io_words(&error) }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_answers_becomes_a_sentence() {
        let refused =
            |errno: Errno| Target::refused("/dev/sda", &io::Error::from_raw_os_error(errno.number()));
        assert_eq!(
            refused(Errno::EACCES).to_string(),
            "/dev/sda cannot be read: permission denied (block devices are for root and the group disk)"
        );
        let contained = refused(Errno::EPERM).to_string();
        assert!(contained.ends_with("(the devices of this container, or control group, are limited)"));
        assert!(refused(Errno::ENODEV).to_string().starts_with("/dev/sda cannot be opened: "));
    }
}
