//! Requests of a program, and their answers.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use super::{NotifyError, WatchedCall};
use crate::error::Errno;

/// `struct seccomp_notif` with `struct seccomp_data` in it, include/uapi/linux/seccomp.h.
#[repr(C)]
#[derive(Default)]
struct Notification {
    id: u64,
    pid: u32,
    flags: u32,
    number: i32,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

/// `struct seccomp_notif_resp`, include/uapi/linux/seccomp.h.
#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// `struct seccomp_notif_addfd`, include/uapi/linux/seccomp.h.
#[repr(C)]
struct AddedFile {
    id: u64,
    flags: u32,
    source: u32,
    target: u32,
    target_flags: u32,
}

const _: () = assert!(size_of::<Notification>() == 80);
const _: () = assert!(size_of::<Response>() == 24);
const _: () = assert!(size_of::<AddedFile>() == 24);

// The numbers contain the sizes: a kernel with longer structures has other numbers and refuses these.
const FAMILY: u32 = b'!' as u32;
/// `SECCOMP_IOCTL_NOTIF_RECV`.
const RECEIVE: libc::Ioctl = libc::_IOWR::<Notification>(FAMILY, 0);
/// `SECCOMP_IOCTL_NOTIF_SEND`.
const SEND: libc::Ioctl = libc::_IOWR::<Response>(FAMILY, 1);
/// `SECCOMP_IOCTL_NOTIF_ID_VALID`.
const IS_VALID: libc::Ioctl = libc::_IOW::<u64>(FAMILY, 2);
/// `SECCOMP_IOCTL_NOTIF_ADDFD`. Linux 5.9.
const ADD_FILE: libc::Ioctl = libc::_IOW::<AddedFile>(FAMILY, 3);
/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`: the kernel takes turns between program and supervisor on one CPU, which is
/// shorter than to wake one up on another. Linux 6.6.
const SAME_CPU: u64 = 1;
/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE`. Linux 5.5.
const CONTINUE: u32 = 1;
/// `SECCOMP_ADDFD_FLAG_SEND`: the new descriptor is also the answer. Linux 5.14.
const ADD_AND_SEND: u32 = 1 << 1;

/// A call that waits for its answer.
#[derive(Debug)]
pub struct Request {
    id: u64,
    /// The thread, numbered as this process sees it; 0 where it does not.
    pub thread: u32,
    pub call: WatchedCall,
    /// The arguments as they are in the registers.
    pub arguments: [u64; 6],
}

/// An answer to a request.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// The call returns this.
    Value(i64),
    /// The call fails; with an errno of 0 it returns 0.
    Error(Errno),
    /// The kernel carries out the call.
    Continue,
    /// [`WatchedCall::Openat`]: the program gets a descriptor of this file, closed by exec where its flags
    /// say so. Linux 5.14.
    File(BorrowedFd<'a>),
}

/// Where calls of a program and of all that it starts arrive.
#[derive(Debug)]
pub struct Listener {
    descriptor: OwnedFd,
}

impl Listener {
    pub(super) fn new(descriptor: OwnedFd) -> Self {
        // SAFETY: the request takes a number, and no memory. A kernel without it refuses, and is slower.
        let _ = unsafe { libc::ioctl(descriptor.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SAME_CPU) };
        Self { descriptor }
    }

    /// Waits for the next call; `None` when all programs under the filter have ended.
    ///
    /// # Errors
    /// The kernel refuses the request: its structures have other sizes.
    pub fn next_request(&mut self) -> Result<Option<Request>, NotifyError> {
        while self.wait()? {
            let mut notification = Notification::default();
            match self.request(RECEIVE, &mut notification) {
                Ok(()) => {}
                // The thread ended before its call was received.
                Err(Errno::ENOENT | Errno::EINTR) => continue,
                Err(errno) => return Err(io::Error::from_raw_os_error(errno.number()).into()),
            }
            let Notification { id, pid, number, arguments, .. } = notification;
            match WatchedCall::from_number(number) {
                Some(call) => return Ok(Some(Request { id, thread: pid, call, arguments })),
                None => match self.respond(id, 0, 0, CONTINUE) {
                    Ok(()) | Err(NotifyError::Gone) => {}
                    Err(error) => return Err(error),
                },
            }
        }
        Ok(None)
    }

    /// Waits for a call; false when none can come any more. Without it the kernel waits without end after the
    /// last program has ended.
    fn wait(&self) -> io::Result<bool> {
        let mut poll = libc::pollfd { fd: self.descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        loop {
            // SAFETY: the kernel reads and writes one structure, which lives until the end of this function.
            if unsafe { libc::poll(&raw mut poll, 1, -1) } >= 0 {
                return Ok(poll.revents & libc::POLLIN != 0);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }

    /// Answers a call.
    ///
    /// # Errors
    /// [`NotifyError::Gone`]: the call does not wait any more. [`Answer::File`]: the program has too many
    /// open files, or the kernel is older than the answer; the call then still waits.
    pub fn answer(&self, request: &Request, answer: Answer<'_>) -> Result<(), NotifyError> {
        match answer {
            Answer::Value(value) => self.respond(request.id, value, 0, 0),
            // The kernel expects it negative.
            Answer::Error(errno) => self.respond(request.id, 0, -errno.number().saturating_abs(), 0),
            Answer::Continue => self.respond(request.id, 0, 0, CONTINUE),
            Answer::File(file) => self.add_file(request, file),
        }
    }

    fn respond(&self, id: u64, value: i64, error: i32, flags: u32) -> Result<(), NotifyError> {
        self.request(SEND, &mut Response { id, value, error, flags }).map_err(refusal)
    }

    fn add_file(&self, request: &Request, file: BorrowedFd<'_>) -> Result<(), NotifyError> {
        let target_flags = request.arguments[2] as u32 & libc::O_CLOEXEC as u32;
        let source = file.as_raw_fd().unsigned_abs();
        let mut added = AddedFile { id: request.id, flags: ADD_AND_SEND, source, target: 0, target_flags };
        self.request(ADD_FILE, &mut added).map_err(refusal)
    }

    /// Whether the call still waits. Its thread's number names that thread as long as it does.
    pub fn is_waiting(&self, request: &Request) -> bool {
        self.request(IS_VALID, &mut request.id.clone()).is_ok()
    }

    /// Fills the buffer from the program's memory at this address.
    ///
    /// # Errors
    /// [`NotifyError::Gone`], or `EFAULT` as the kernel would answer the call.
    pub fn read(&self, request: &Request, address: u64, buffer: &mut [u8]) -> Result<(), NotifyError> {
        let length = buffer.len();
        let here = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: length };
        let there = libc::iovec { iov_base: address as *mut _, iov_len: length };
        let pid = request.thread as libc::pid_t;
        // SAFETY: the kernel writes at most `iov_len` bytes into the exclusively borrowed buffer, which has
        // as many; the other address is looked up in the other process.
        let read = unsafe { libc::process_vm_readv(pid, &raw const here, 1, &raw const there, 1, 0) };
        let errno = Errno::last();
        // Afterwards: until then the number may have come to name another process.
        if !self.is_waiting(request) {
            return Err(NotifyError::Gone);
        }
        transferred(read, length, errno)
    }

    /// Writes these bytes into the program's memory at this address.
    ///
    /// # Errors
    /// As [`Self::read`]; bytes before the first one that cannot be written are written.
    pub fn write(&self, request: &Request, address: u64, bytes: &[u8]) -> Result<(), NotifyError> {
        if !self.is_waiting(request) {
            return Err(NotifyError::Gone);
        }
        let here = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let there = libc::iovec { iov_base: address as *mut _, iov_len: bytes.len() };
        let pid = request.thread as libc::pid_t;
        // SAFETY: the kernel reads `iov_len` bytes of the slice. It writes into another process only: the
        // filter is installed by a child after fork, so that no thread of this process sends requests.
        let written = unsafe { libc::process_vm_writev(pid, &raw const here, 1, &raw const there, 1, 0) };
        transferred(written, bytes.len(), Errno::last())
    }

    fn request<T>(&self, number: libc::Ioctl, data: &mut T) -> Result<(), Errno> {
        // SAFETY: each number goes with a structure of the size that it contains (asserted above, and a
        // `u64`), which is borrowed exclusively and valid with any bytes.
        let answer: c_int = unsafe { libc::ioctl(self.descriptor.as_raw_fd(), number, &raw mut *data) };
        if answer < 0 { Err(Errno::last()) } else { Ok(()) }
    }
}

fn refusal(errno: Errno) -> NotifyError {
    match errno {
        Errno::ENOENT => NotifyError::Gone,
        _ => io::Error::from_raw_os_error(errno.number()).into(),
    }
}

/// The result of a transfer: part of it is a bad address.
fn transferred(count: isize, length: usize, errno: Errno) -> Result<(), NotifyError> {
    let errno = match usize::try_from(count) {
        Ok(count) if count == length => return Ok(()),
        Ok(_) => Errno::EFAULT,
        Err(_) => errno,
    };
    Err(io::Error::from_raw_os_error(errno.number()).into())
}
