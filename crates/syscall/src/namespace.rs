//! Namespaces: what the calling process mounts, and who it is, apart from other processes.

use std::io;

use crate::error::Errno;
use crate::raw;

/// Gives this process a namespace of mounts. Mounts still spread to where they are shared: that is the caller's to change.
///
/// # Source
/// `unshare(2)` with `CLONE_NEWNS`.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN`.
pub fn unshare_mounts() -> io::Result<()> {
    raw::unshare(libc::CLONE_NEWNS).map_err(io_error)
}

/// Gives this process a user namespace, and in it a namespace of mounts that it may change. No user is mapped yet.
///
/// # Source
/// `unshare(2)` with `CLONE_NEWUSER`, Linux 3.8.
///
/// # Errors
/// `EINVAL` where the process has several threads, `ENOSPC` at the limit of namespaces, `EPERM` where they are forbidden.
pub fn unshare_user_and_mounts() -> io::Result<()> {
    raw::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS).map_err(io_error)
}

fn io_error(errno: Errno) -> io::Error {
    io::Error::from_raw_os_error(errno.number())
}
