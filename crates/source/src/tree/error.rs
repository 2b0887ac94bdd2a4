//! Why a file, or a capture, cannot be read.

use std::fmt;

use nodewise_machine::Bytes;
use nodewise_machine::printable::{errno_words, printable};
use rustix::io::Errno;

/// Why a file that is there cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {path}: {cause}")]
pub struct ReadError {
    /// The file, fit for a terminal.
    pub path: String,
    #[source]
    pub cause: ReadCause,
}

impl ReadError {
    pub(crate) fn new(path: &str, cause: ReadCause) -> Self {
        Self { path: printable(path).into_owned(), cause }
    }

    /// Whether the process or thread whose file it is has ended: `ESRCH`.
    pub fn is_of_ended(&self) -> bool {
        self.cause == ReadCause::System(Errno::SRCH.raw_os_error())
    }
}

/// Why something cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCause {
    /// The system refused with this `errno`.
    System(i32),
    /// It is something else than a file: `a directory`, `a FIFO`.
    NotAFile(&'static str),
    /// It is larger than this many bytes.
    TooLarge(u64),
    /// It lies behind more symbolic links than the kernel follows, or behind a loop.
    TooManyLinks,
}

impl ReadCause {
    /// Whether the file is only closed to this user (`EACCES`, `EPERM`).
    pub const fn is_permission(self) -> bool {
        matches!(self, Self::System(errno) if errno == Errno::ACCESS.raw_os_error() || errno == Errno::PERM.raw_os_error())
    }
}

impl From<Errno> for ReadCause {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::LOOP => Self::TooManyLinks,
            Errno::ISDIR => Self::NotAFile("a directory"),
            // Opening a socket, or a device without a driver.
            Errno::NXIO => Self::NotAFile("a socket or a device without a driver"),
            errno => Self::System(errno.raw_os_error()),
        }
    }
}

impl fmt::Display for ReadCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(errno) => f.write_str(&errno_words(*errno)),
            Self::NotAFile(what) => write!(f, "it is {what}, not a file"),
            Self::TooLarge(limit) => write!(f, "it is larger than {}", Bytes::new(*limit)),
            Self::TooManyLinks => f.write_str("it lies behind too many symbolic links, or a loop of them"),
        }
    }
}

impl std::error::Error for ReadCause {}

/// Why something is not a capture. The name of the file is the caller's to add.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    #[error("{0}")]
    Io(String),
    #[error("the file is empty")]
    Empty,
    /// A file of another kind.
    #[error("it is {0}, not a tar archive (.tar, .tar.gz or .tar.bz2)")]
    NotAnArchive(&'static str),
    /// An archive that does not decompress, ends early, or whose checksums are wrong.
    #[error(
        "the archive is damaged: {0} (copy it again, or unpack what can be read of it and give the folder)"
    )]
    Damaged(String),
    /// An archive without an entry.
    #[error("it holds no file: expected a tar archive of a machine's files")]
    NoEntries,
    /// Something is beyond a limit.
    #[error("{0} holds more than {size}, the most that is read", size = Bytes::new(*.1))]
    TooLarge(&'static str, u64),
    #[error("the archive holds more than {0} files and folders, the most that are read")]
    TooMany(usize),
    #[error("it holds neither sys/ nor proc/, so it is not a capture of a machine")]
    NoMachine,
    /// The inside of `sys` or `proc`.
    #[error(
        "it is the inside of {0}/, not a capture: expected the folder that holds {0}/ (this machine itself is live)"
    )]
    Inside(&'static str),
    #[error("it holds several machines ({}): unpack it and give one of the folders", .0.join(", "))]
    Several(Vec<String>),
}

impl OpenError {
    pub(super) fn system(errno: Errno) -> Self {
        Self::Io(errno_words(errno.raw_os_error()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_in_words() {
        let error = |cause| ReadError::new("/sys/x\u{1b}", cause).to_string();
        assert_eq!(error(Errno::ACCESS.into()), "cannot read /sys/x\\x1b: permission denied");
        assert_eq!(error(ReadCause::NotAFile("a FIFO")), "cannot read /sys/x\\x1b: it is a FIFO, not a file");
        assert_eq!(error(ReadCause::TooLarge(16 << 20)), "cannot read /sys/x\\x1b: it is larger than 16 MiB");
        assert!(ReadCause::from(Errno::PERM).is_permission() && !ReadCause::from(Errno::IO).is_permission());
    }
}
