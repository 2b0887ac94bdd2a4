//! A program with all that it starts; nothing of it outlives the process that wanted it.
//!
//! Between this process and the program is a guard: a copy of this process that becomes no other
//! program, does nothing but wait, and is the one to whom the kernel hands every orphan among the
//! program's descendants (`PR_SET_CHILD_SUBREAPER`, Linux 3.4), also one that made a session of its own
//! and forked twice. When the program has ended, when it is asked to, or when this process has gone,
//! however it went, the guard ends all that is left with SIGKILL, and then itself. That holds after
//! SIGKILL too: what connects the two is a socket, and the kernel closes that.
//!
//! The two have nothing in common that is usually killed as a whole: neither a name nor a process group. A
//! guard that is itself killed takes the program with it (`PR_SET_PDEATHSIG`), but not what the
//! program has started.

mod watch;

use std::ffi::c_int;
use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};

use crate::error::CallError;
use crate::setup::{Setup, StartError};
use crate::wait::{Finished, Running};

/// A message of the guard; the first is the number of the program, the second how it ended.
type Message = [u8; size_of::<c_int>()];

/// A program under guard. When this is dropped, the program and all that it has started are ended.
#[derive(Debug)]
pub struct Guarded {
    /// The guard, which is what was started.
    guard: Running,
    /// The guard ends everything when this is closed.
    line: UnixStream,
    program: u32,
}

impl Setup {
    /// Starts the program under this setup as the child of a guard, the guard in a process group and the
    /// program in a session of its own; the caller and the guard stay as they are.
    ///
    /// # Errors
    /// As [`Setup::spawn`], and no more processes or descriptors can be had.
    pub fn spawn_guarded(&self, mut command: Command) -> Result<Guarded, StartError> {
        let (line, guards) = UnixStream::pair()?;
        let descriptor = guards.as_raw_fd();
        command.process_group(0);
        // SAFETY: between fork and exec the hook makes system calls only, on its own stack and on a
        // descriptor that lives until the program has started; it allocates nothing and takes no lock.
        unsafe { command.pre_exec(move || watch::stand_before(descriptor)) };
        let guard = Running::from(self.spawn(command)?);
        drop(guards);
        let mut guarded = Guarded { guard, line, program: 0 };
        guarded.program = guarded.read()?.unsigned_abs();
        Ok(guarded)
    }
}

impl Guarded {
    /// The process id of the program.
    pub fn program(&self) -> u32 {
        self.program
    }

    /// The next number that the guard has sent; waits for it.
    fn read(&mut self) -> io::Result<c_int> {
        let mut message = Message::default();
        self.line.read_exact(&mut message)?;
        Ok(c_int::from_ne_bytes(message))
    }

    /// How the program ended, where it has; what it has started may still be there.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.peek(libc::MSG_DONTWAIT)
    }

    /// Waits until the program has ended by itself, or was ended.
    pub fn wait_for_end(&self) -> ExitStatus {
        loop {
            if let Some(status) = self.peek(libc::MSG_WAITALL) {
                return status;
            }
        }
    }

    /// Looks at the message of the end and leaves it there.
    fn peek(&self, flags: c_int) -> Option<ExitStatus> {
        let mut message = Message::default();
        let (pointer, length) = (message.as_mut_ptr().cast(), message.len());
        // SAFETY: the kernel writes at most `length` bytes into the array, which has as many.
        let read = unsafe { libc::recv(self.line.as_raw_fd(), pointer, length, flags | libc::MSG_PEEK) };
        match usize::try_from(read) {
            Ok(all) if all == length => Some(ExitStatus::from_raw(c_int::from_ne_bytes(message))),
            // The guard has gone without a word: it was killed, and the program with it.
            Ok(_) => Some(ExitStatus::from_raw(libc::SIGKILL)),
            Err(_) => None,
        }
    }

    /// Has SIGTERM sent to the program's process group, by the guard, which alone knows whether the number
    /// is still the program's. That nothing is left of it is not an error, and what may not be signalled (a
    /// set-user-ID program) cannot be helped.
    pub fn terminate(&self) {
        // A guard that has gone has taken the program along.
        watch::send(self.line.as_raw_fd(), libc::SIGTERM);
    }

    /// Has the program, if it still runs, and all that it has started ended with SIGKILL; does not wait
    /// for that.
    pub fn end(&self) {
        // Half closed: the guard learns of it and can still say how the program ended. That cannot fail
        // for a socket that is connected, and where it is not, there is no guard any more.
        let _ = self.line.shutdown(Shutdown::Write);
    }

    /// Ends what still runs and shows how the program ended, and what it used with all that it started.
    ///
    /// # Errors
    /// Somebody else has waited for the guard.
    pub fn finish(mut self) -> Result<Finished, CallError> {
        self.end();
        let usage = self.guard.wait()?.usage.clone();
        // A guard without a word was killed, and the program with it.
        let status = self.read().unwrap_or(libc::SIGKILL);
        Ok(Finished { status: ExitStatus::from_raw(status), usage })
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.end();
        // No one asks how it ended.
        let _ = self.guard.wait();
    }
}

#[cfg(test)]
mod tests;
