//! A supervisor beside this process, which becomes the program itself.

use std::ffi::{c_int, c_uint};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixStream;
use std::panic::{self, AssertUnwindSafe};

use super::handover::{self, Wait};
use super::{Listener, NotifyError, WatchedCall, filter};
use crate::error::Errno;
use crate::raw;

/// Gives this process the filter, and has a new process answer the calls of this one and of all that it
/// starts, also after exec. The supervisor is not a child of the program: `wait(2)` never meets it. It is in a
/// session of its own, without the program's descriptors, and ends with the last program under the filter.
///
/// It also sets `no_new_privs`, as [`super::Watch`] does.
///
/// The process must have a single thread: the supervisor begins as a copy of it.
///
/// # Errors
/// The filter cannot be installed, or no more processes can be had. This process is unchanged then, but for
/// `no_new_privs`.
pub fn supervise_this_process(
    calls: &[WatchedCall],
    supervise: impl FnOnce(Listener),
) -> Result<(), NotifyError> {
    let (line, supervisors_end) = UnixStream::pair()?;
    let statements = filter::program(calls)?;
    // SAFETY: the process has a single thread (the caller's promise), so no lock is held by a thread that
    // the copy lacks. A copy of more would be a fault of this program, not of its memory: it may hang.
    match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error().into()),
        0 => {
            drop(line);
            detach();
            // Nothing that fails here may unwind into the program's code.
            let _ = panic::catch_unwind(AssertUnwindSafe(|| answer_calls(supervisors_end, supervise)));
            end(0)
        }
        starter => wait_for(starter)?,
    }
    drop(supervisors_end);
    match filter::install(&statements) {
        Ok(listener) => handover::send(line.as_raw_fd(), Ok(listener)).map_err(|_| NotifyError::NoSupervisor),
        Err(errno) => Err(NotifyError::from_installation(errno)),
    }
}

/// Waits for the process that starts the supervisor.
fn wait_for(starter: libc::pid_t) -> Result<(), NotifyError> {
    loop {
        match raw::wait4(starter, 0) {
            Ok((_, 0, _)) => return Ok(()),
            Ok(_) => return Err(NotifyError::NoSupervisor),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(io::Error::from_raw_os_error(errno.number()).into()),
        }
    }
}

/// Goes on in a grandchild of the program, which the kernel hands to init, in a session without a terminal.
fn detach() {
    // SAFETY: no pointers.
    unsafe { libc::setsid() };
    // SAFETY: as above.
    let child = unsafe { libc::fork() };
    if child != 0 {
        end(c_int::from(child < 0));
    }
}

fn answer_calls(line: UnixStream, supervise: impl FnOnce(Listener)) {
    let kept = close_others(&line);
    // Closed already, or the one that was kept.
    std::mem::forget(line);
    if let Ok(Ok(Some(Ok(listener)))) = kept.map(|line| handover::receive(line, Wait::Yes)) {
        supervise(Listener::new(listener));
    }
}

/// Closes all descriptors but this one: a pipe of the program ends when the program closes it. Standard input
/// and output lead nowhere. Objects of the copied process own what is closed, and none of them is used again.
fn close_others(line: &UnixStream) -> io::Result<RawFd> {
    const KEPT: RawFd = 3;
    let nowhere = File::open("/dev/null")?;
    // SAFETY: no pointers; the copy is above all that is replaced.
    let moved = unsafe { libc::fcntl(line.as_raw_fd(), libc::F_DUPFD_CLOEXEC, KEPT + 1) };
    for standard in 0..KEPT {
        replace(standard, nowhere.as_raw_fd())?;
    }
    replace(KEPT, moved)?;
    // SAFETY: no pointers. Linux 5.9; what stays open on an older kernel is closed when the supervisor ends.
    unsafe { libc::syscall(libc::SYS_close_range, (KEPT + 1) as c_uint, c_uint::MAX, 0 as c_uint) };
    std::mem::forget(nowhere);
    Ok(KEPT)
}

/// Makes a descriptor lead where another does.
fn replace(descriptor: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: no pointers; what is replaced belongs to objects that are not used again.
    if unsafe { libc::dup2(to, descriptor) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Ends the process without running anything of the copied program.
fn end(code: c_int) -> ! {
    // SAFETY: no memory of this process is used after it.
    unsafe { libc::_exit(code) }
}
