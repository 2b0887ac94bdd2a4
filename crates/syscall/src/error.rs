//! Error of a failed call: its number, and the call with its arguments.

use std::fmt;
use std::io;

use nodewise_machine::printable::errno_words;

use crate::call::Call;

/// The number of an error, as the kernel gives it.
///
/// # Source
/// `errno(3)`; `include/uapi/asm-generic/errno-base.h`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(i32);

/// Numbers that the calls of this crate give, with their names.
const NAMES: [(Errno, &str); 18] = [
    (Errno::EPERM, "EPERM"),
    (Errno::ENOENT, "ENOENT"),
    (Errno::ESRCH, "ESRCH"),
    (Errno::EINTR, "EINTR"),
    (Errno::EIO, "EIO"),
    (Errno::E2BIG, "E2BIG"),
    (Errno::ECHILD, "ECHILD"),
    (Errno::EAGAIN, "EAGAIN"),
    (Errno::ENOMEM, "ENOMEM"),
    (Errno::EACCES, "EACCES"),
    (Errno::EFAULT, "EFAULT"),
    (Errno::EBUSY, "EBUSY"),
    (Errno::ENODEV, "ENODEV"),
    (Errno::EINVAL, "EINVAL"),
    (Errno::ENOTTY, "ENOTTY"),
    (Errno::ENOSYS, "ENOSYS"),
    (Errno::EOPNOTSUPP, "EOPNOTSUPP"),
    (Errno::EHWPOISON, "EHWPOISON"),
];

impl Errno {
    /// Operation not permitted.
    pub const EPERM: Self = Self(libc::EPERM);
    /// No such file, or no page.
    pub const ENOENT: Self = Self(libc::ENOENT);
    /// No such process.
    pub const ESRCH: Self = Self(libc::ESRCH);
    /// Interrupted by a signal.
    pub const EINTR: Self = Self(libc::EINTR);
    /// Input or output error; for `mbind(2)`, misplaced pages.
    pub const EIO: Self = Self(libc::EIO);
    /// Too many arguments.
    pub const E2BIG: Self = Self(libc::E2BIG);
    /// No such child.
    pub const ECHILD: Self = Self(libc::ECHILD);
    /// A limit is reached for now.
    pub const EAGAIN: Self = Self(libc::EAGAIN);
    /// Out of memory.
    pub const ENOMEM: Self = Self(libc::ENOMEM);
    /// Permission denied.
    pub const EACCES: Self = Self(libc::EACCES);
    /// Bad address.
    pub const EFAULT: Self = Self(libc::EFAULT);
    /// In use.
    pub const EBUSY: Self = Self(libc::EBUSY);
    /// No such device; for `move_pages(2)`, no such node.
    pub const ENODEV: Self = Self(libc::ENODEV);
    /// Invalid argument.
    pub const EINVAL: Self = Self(libc::EINVAL);
    /// The file does not know the request of an `ioctl(2)`.
    pub const ENOTTY: Self = Self(libc::ENOTTY);
    /// The kernel does not have the call.
    pub const ENOSYS: Self = Self(libc::ENOSYS);
    /// Operation not supported.
    pub const EOPNOTSUPP: Self = Self(libc::EOPNOTSUPP);
    /// The memory has a hardware error.
    pub const EHWPOISON: Self = Self(libc::EHWPOISON);

    /// The error with this number.
    pub const fn new(number: i32) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> i32 {
        self.0
    }

    /// Its name, such as `EINVAL`; `None` for one that the calls of this crate do not give.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(errno, _)| *errno == self).map(|(_, name)| *name)
    }

    /// Returns the error of this thread's last call, as the C library says.
    pub(crate) fn last() -> Self {
        Self(io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
}

impl fmt::Display for Errno {
    /// Writes the error in words: `invalid argument`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&errno_words(self.0))
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

/// A call that the kernel refused: what was asked, and the number it answered with.
///
/// Printed as one sentence, `mbind(0x7f2c00000000, 64 MiB, bind, nodes 0-1): invalid argument`.
/// Why it was refused is the business of [`crate::explain`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {errno}")]
pub struct CallError {
    /// The call with its arguments.
    pub call: Call,
    pub errno: Errno,
}

impl CallError {
    /// The error of this call.
    pub const fn new(call: Call, errno: Errno) -> Self {
        Self { call, errno }
    }
}

impl From<CallError> for io::Error {
    /// Keeps the kind that the number stands for, and the whole error as the inner one.
    fn from(error: CallError) -> Self {
        Self::new(Self::from_raw_os_error(error.errno.number()).kind(), error)
    }
}

/// Why a policy could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Call(#[from] CallError),
    /// The kernel answered with a mode that is newer than nodewise.
    #[error("{call}: mode {number} is not one of the modes nodewise knows (0 to 6)")]
    UnknownMode {
        /// The call with its arguments.
        call: Call,
        /// The mode that came back, without its flags.
        number: u16,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn an_error_is_written_in_words_and_named_for_programs() {
        assert_eq!(Errno::EINVAL.to_string(), "invalid argument");
        assert_eq!(Errno::EPERM.to_string(), "operation not permitted");
        assert_eq!(format!("{:?}", Errno::ENODEV), "ENODEV");
        assert_eq!(Errno::new(4095).name(), None);
        assert_eq!(format!("{:?}", Errno::new(4095)), "errno 4095");
    }

    #[test]
    fn an_io_error_keeps_the_call() {
        let error = CallError::new(Call::Getcpu, Errno::EPERM);
        let wrapped = io::Error::from(error.clone());
        assert_eq!(wrapped.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(wrapped.get_ref().unwrap().downcast_ref::<CallError>(), Some(&error));
    }

    proptest! {
        #[test]
        fn any_number_is_written_without_a_panic(number in any::<i32>()) {
            let errno = Errno::new(number);
            assert!(!errno.to_string().is_empty());
            assert!(!errno.to_string().contains("os error"));
        }
    }
}
