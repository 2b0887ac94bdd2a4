//! The answer of a call that the kernel refuses.

use std::fmt;

/// The reason of a refusal. Only those that this crate's calls can have.
///
/// # Source
/// `errno(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Errno {
    /// The call needs a capability that the caller lacks, or a process that it may not touch.
    Eperm,
    /// A range without any policy where one is needed; a page that is missing.
    Enoent,
    /// No process with this number.
    Esrch,
    /// Misplaced pages with `MPOL_MF_STRICT`.
    Eio,
    /// Too few free huge pages where the policy looks for them.
    Enomem,
    /// A node outside the cpuset of the process whose pages are to move.
    Eacces,
    /// No memory mapped there, or none that a mask can be read from.
    Efault,
    /// A node that does not exist or has no memory.
    Enodev,
    Einval,
    /// A call that this kernel does not have.
    Enosys,
    /// A policy whose mode has no home node.
    Eopnotsupp,
}

impl Errno {
    /// The name, as in `errno.h`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Eperm => "EPERM",
            Self::Enoent => "ENOENT",
            Self::Esrch => "ESRCH",
            Self::Eio => "EIO",
            Self::Enomem => "ENOMEM",
            Self::Eacces => "EACCES",
            Self::Efault => "EFAULT",
            Self::Enodev => "ENODEV",
            Self::Einval => "EINVAL",
            Self::Enosys => "ENOSYS",
            Self::Eopnotsupp => "EOPNOTSUPP",
        }
    }

    /// The number on Linux.
    pub const fn number(self) -> i32 {
        match self {
            Self::Eperm => 1,
            Self::Enoent => 2,
            Self::Esrch => 3,
            Self::Eio => 5,
            Self::Enomem => 12,
            Self::Eacces => 13,
            Self::Efault => 14,
            Self::Enodev => 19,
            Self::Einval => 22,
            Self::Enosys => 38,
            Self::Eopnotsupp => 95,
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::error::Error for Errno {}
