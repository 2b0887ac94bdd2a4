//! Calls of a program answered by this process instead of the kernel: seccomp user notification.
//!
//! A [`Watch`] gives a program a filter before its exec, inherited by all that the program starts. The
//! kernel then stops a thread at each watched call until the [`Listener`] answers: with a value, an error,
//! a file, or by leaving the call to the kernel. When the listener is closed, calls that wait and all later
//! ones fail with `ENOSYS`: a supervisor that ends does not hang its program.
//!
//! This is a means of showing a program another machine, not a barrier: the program can change its
//! arguments while they are read, and calls of another ABI (32-bit, x32) pass.
//!
//! # Source
//! `seccomp_unotify(2)`, `include/uapi/linux/seccomp.h`; Linux 5.5, files as answers 5.14.

mod filter;
mod handover;
mod listener;
mod supervisor;

use std::ffi::c_long;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command};

use handover::Wait;
pub use listener::{Answer, Listener, Request};
pub use supervisor::supervise_this_process;

use crate::error::Errno;

/// A call that can be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatchedCall {
    SetMempolicy,
    GetMempolicy,
    Mbind,
    SetMempolicyHomeNode,
    MovePages,
    MigratePages,
    SchedSetaffinity,
    SchedGetaffinity,
    Getcpu,
    /// `openat(2)`, of any file: a filter cannot read the path.
    Openat,
    /// `open(2)`, where the architecture has it.
    Open,
    Munmap,
    /// `mmap(2)` with `MAP_FIXED` alone, which may replace memory.
    Mmap,
    Mremap,
    /// `madvise(2)` with `MADV_DONTNEED` or `MADV_DONTNEED_LOCKED` alone.
    Madvise,
    Clone,
    Clone3,
    /// `fork(2)` and `vfork(2)`, where the architecture has them.
    Fork,
    Vfork,
    /// The end of a process that ends by itself.
    ExitGroup,
}

/// Calls that later architectures left out.
#[cfg(target_arch = "x86_64")]
const OLD: [(WatchedCall, c_long); 3] = [
    (WatchedCall::Open, libc::SYS_open),
    (WatchedCall::Fork, libc::SYS_fork),
    (WatchedCall::Vfork, libc::SYS_vfork),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: [(WatchedCall, c_long); 0] = [];

impl WatchedCall {
    pub const ALL: [Self; 20] = [
        Self::SetMempolicy,
        Self::GetMempolicy,
        Self::Mbind,
        Self::SetMempolicyHomeNode,
        Self::MovePages,
        Self::MigratePages,
        Self::SchedSetaffinity,
        Self::SchedGetaffinity,
        Self::Getcpu,
        Self::Openat,
        Self::Open,
        Self::Munmap,
        Self::Mmap,
        Self::Mremap,
        Self::Madvise,
        Self::Clone,
        Self::Clone3,
        Self::Fork,
        Self::Vfork,
        Self::ExitGroup,
    ];

    /// The number of the call in this program's ABI, if it has the call.
    fn number(self) -> Option<c_long> {
        Some(match self {
            Self::SetMempolicy => libc::SYS_set_mempolicy,
            Self::GetMempolicy => libc::SYS_get_mempolicy,
            Self::Mbind => libc::SYS_mbind,
            Self::SetMempolicyHomeNode => libc::SYS_set_mempolicy_home_node,
            Self::MovePages => libc::SYS_move_pages,
            Self::MigratePages => libc::SYS_migrate_pages,
            Self::SchedSetaffinity => libc::SYS_sched_setaffinity,
            Self::SchedGetaffinity => libc::SYS_sched_getaffinity,
            Self::Getcpu => libc::SYS_getcpu,
            Self::Openat => libc::SYS_openat,
            Self::Munmap => libc::SYS_munmap,
            Self::Mmap => libc::SYS_mmap,
            Self::Mremap => libc::SYS_mremap,
            Self::Madvise => libc::SYS_madvise,
            Self::Clone => libc::SYS_clone,
            Self::Clone3 => libc::SYS_clone3,
            Self::ExitGroup => libc::SYS_exit_group,
            Self::Open | Self::Fork | Self::Vfork => OLD.iter().find(|(call, _)| *call == self)?.1,
        })
    }

    /// Which of these calls are watched; all of `None`.
    const fn condition(self) -> Option<Condition> {
        const GIVES_BACK: [u32; 2] = [libc::MADV_DONTNEED as u32, libc::MADV_DONTNEED_LOCKED as u32];
        match self {
            Self::Mmap => Some(Condition::AnyBit(3, libc::MAP_FIXED as u32)),
            Self::Madvise => Some(Condition::OneOf(2, &GIVES_BACK)),
            _ => None,
        }
    }

    fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|call| call.number() == Some(c_long::from(number)))
    }
}

/// A test of an argument, counted from 0, that a filter can make: of its lower 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    AnyBit(usize, u32),
    OneOf(usize, &'static [u32]),
}

impl Condition {
    const fn argument(self) -> usize {
        match self {
            Self::AnyBit(argument, _) | Self::OneOf(argument, _) => argument,
        }
    }
}

/// Why calls cannot be watched, or a request not be answered.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    #[error(
        "the kernel has no seccomp user notification ({0}): Linux 5.5 or newer with CONFIG_SECCOMP_FILTER is needed"
    )]
    Missing(Errno),
    #[error(
        "another supervisor (a container's, or nodewise pretend) already watches this program's calls: the kernel allows one"
    )]
    AlreadyWatched,
    #[error("the kernel or a container refuses a seccomp filter: {0}")]
    Refused(Errno),
    #[error("calls can be watched on x86-64 and aarch64 only")]
    UnknownAbi,
    /// The program was not started, or its preparation ended before the filter.
    #[error("the program did not install its filter")]
    NoFilter,
    #[error("the supervisor ended before the program began")]
    NoSupervisor,
    /// The thread has ended, or a signal interrupted the call; the program may repeat it.
    #[error("the call does not wait for an answer any more")]
    Gone,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl NotifyError {
    fn from_installation(errno: Errno) -> Self {
        match errno {
            // An unknown flag, or a kernel without filters.
            Errno::EINVAL | Errno::ENOSYS => Self::Missing(errno),
            Errno::EBUSY => Self::AlreadyWatched,
            _ => Self::Refused(errno),
        }
    }
}

/// The parent's end while a program is started.
#[derive(Debug)]
pub struct Watch {
    line: UnixStream,
}

impl Watch {
    /// Has the program of this command install a filter for these calls before its exec. It also sets
    /// `no_new_privs`: set-user-ID programs start without privileges.
    ///
    /// The command has to be spawned: `CommandExt::exec` of it fails with `EINVAL`.
    ///
    /// Hooks that the command gets later are watched too, and wait for answers before the program has
    /// started: they should make none of these calls.
    ///
    /// # Errors
    /// [`NotifyError::UnknownAbi`], or no more descriptors can be had.
    pub fn prepare(command: &mut Command, calls: &[WatchedCall]) -> Result<Self, NotifyError> {
        let (line, program_end) = UnixStream::pair()?;
        let statements = filter::program(calls)?;
        let parent = process::id();
        let hook = move || {
            // `CommandExt::exec` runs hooks without a fork: a process must not supervise itself.
            if process::id() == parent {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            match filter::install(&statements) {
                Ok(listener) => handover::send(program_end.as_raw_fd(), Ok(listener)),
                Err(errno) => {
                    handover::send(program_end.as_raw_fd(), Err(errno))?;
                    Err(io::Error::from_raw_os_error(errno.number()))
                }
            }
        };
        // SAFETY: between fork and exec the hook makes system calls only, on statements and a descriptor
        // that it owns and its own stack; it allocates nothing (an error from a number does not) and takes
        // no lock.
        unsafe { command.pre_exec(hook) };
        Ok(Self { line })
    }

    /// Takes the listener after the command was spawned, whether that succeeded or not.
    ///
    /// # Errors
    /// The filter could not be installed ([`NotifyError::Missing`], [`NotifyError::AlreadyWatched`],
    /// [`NotifyError::Refused`]); [`NotifyError::NoFilter`] where the start failed before or for another reason.
    pub fn listener(self) -> Result<Listener, NotifyError> {
        match handover::receive(self.line.as_raw_fd(), Wait::No)? {
            Some(Ok(descriptor)) => Ok(Listener::new(descriptor)),
            Some(Err(errno)) => Err(NotifyError::from_installation(errno)),
            None => Err(NotifyError::NoFilter),
        }
    }
}

#[cfg(test)]
mod tests;
