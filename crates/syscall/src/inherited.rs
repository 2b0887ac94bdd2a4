//! The state that this process was started with, as it was before the Rust runtime changed it.
//!
//! Before `main`, the runtime (or [`prepare`](crate::prepare) in its place) ignores SIGPIPE and opens
//! `/dev/null` in the place of standard streams that are closed; when the runtime starts a program it
//! sets SIGPIPE to its default. A program that takes our place must get what we got, as it does behind
//! `env(1)`: systemd, for one, starts services with SIGPIPE ignored, and one that relies on it would
//! be killed by the first connection that breaks.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, Ordering};

/// The standard streams, which are also the bits that say that one is closed.
const STREAMS: [c_int; 3] = [0, 1, 2];
/// The bit that says that SIGPIPE is ignored.
const SIGPIPE_IGNORED: u8 = 1 << 3;

/// Written once, by [`look`], before `main`: there is no other way to know, for the runtime keeps no
/// record of what it found.
static FOUND: AtomicU8 = AtomicU8::new(0);

/// The dynamic loader, and in static programs the C library, calls the functions in this section
/// before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let ignored = if is_ignored(libc::SIGPIPE) { SIGPIPE_IGNORED } else { 0 };
    FOUND.store(closed_streams() | ignored, Ordering::Relaxed);
}

/// A bit for each standard stream that is closed.
fn closed_streams() -> u8 {
    let mut streams = STREAMS.map(|fd| libc::pollfd { fd, events: 0, revents: 0 });
    // SAFETY: the pointer and the count are those of an array that lives until the call returns.
    let found = unsafe { libc::poll(streams.as_mut_ptr(), STREAMS.len() as libc::nfds_t, 0) };
    let closed = |stream: &&libc::pollfd| found > 0 && stream.revents & libc::POLLNVAL != 0;
    streams.iter().filter(closed).map(|stream| 1 << stream.fd).sum()
}

/// Whether a signal is ignored now, as SIGHUP is in what `nohup(1)` starts. A program that handles it anyway
/// would end what was to go on.
pub fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with a null second argument nothing is changed, and the third has room for an action.
    if unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call succeeded, so it wrote the whole action.
    let action = unsafe { action.assume_init() };
    action.sa_sigaction == libc::SIG_IGN
}

/// Whether standard output was closed when this process began: what is written to it is lost without
/// an error.
pub fn stdout_is_closed() -> bool {
    FOUND.load(Ordering::Relaxed) & 1 << libc::STDOUT_FILENO != 0
}

/// Fills the places of closed standard streams with `/dev/null`, so that no file that is opened later
/// becomes one of them, and ignores SIGPIPE, so that a reader that leaves is an error of a write.
pub(crate) fn prepare() {
    let found = FOUND.load(Ordering::Relaxed);
    for _ in STREAMS.into_iter().filter(|stream| found & 1 << stream != 0) {
        // The lowest free number is taken. If there is no /dev/null the stream stays closed.
        // SAFETY: the path is a string with its NUL.
        unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    }
    if found & SIGPIPE_IGNORED == 0 {
        // SAFETY: ignoring a signal runs no code of ours; nothing else in the process changes SIGPIPE.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    }
}

/// Makes the program that is about to take this process's place find what we found. System calls
/// alone: fit for the moment between `fork(2)` and `execve(2)`.
///
/// # Errors
/// Those of `sigaction(2)` and `fcntl(2)`, which have none for these arguments.
pub(crate) fn hand_on() -> io::Result<()> {
    let found = FOUND.load(Ordering::Relaxed);
    for stream in STREAMS.into_iter().filter(|stream| found & 1 << stream != 0) {
        // Closed by the execve itself, so that one that fails can still be reported.
        // SAFETY: F_SETFD takes an integer and touches no memory.
        if unsafe { libc::fcntl(stream, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: ignoring a signal runs no code of ours; nothing else in the process changes SIGPIPE.
    if found & SIGPIPE_IGNORED != 0 && unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) } == libc::SIG_ERR
    {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
