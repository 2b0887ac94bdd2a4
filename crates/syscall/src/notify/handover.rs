//! The listener's way from the program to this process: a descriptor in a message of a socket, `unix(7)`.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use crate::error::Errno;

/// A control message with one descriptor, as the kernel lays out `struct cmsghdr` with its data where
/// pointers have 64 bits.
#[repr(C)]
struct Control {
    length: usize,
    level: c_int,
    kind: c_int,
    descriptor: c_int,
    padding: c_int,
}

// `CMSG_SPACE(sizeof(int))`, include/linux/socket.h: a header of 16 bytes, data in steps of 8.
const _: () = assert!(size_of::<Control>() == 24);

impl Control {
    /// `CMSG_LEN(sizeof(int))`: without the padding.
    const LENGTH: usize = size_of::<Self>() - size_of::<c_int>();

    const fn new(descriptor: c_int) -> Self {
        Self { length: Self::LENGTH, level: libc::SOL_SOCKET, kind: libc::SCM_RIGHTS, descriptor, padding: 0 }
    }
}

fn message(data: &mut libc::iovec, control: Option<&mut Control>) -> libc::msghdr {
    // SAFETY: a header of zeros is valid: no address, no data, no control message.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = data;
    message.msg_iovlen = 1;
    if let Some(control) = control {
        message.msg_control = (&raw mut *control).cast();
        message.msg_controllen = size_of::<Control>() as _;
    }
    message
}

fn data(errno: &mut c_int) -> libc::iovec {
    libc::iovec { iov_base: (&raw mut *errno).cast(), iov_len: size_of::<c_int>() }
}

/// Sends the listener, or why there is none. Makes system calls only.
pub(super) fn send(line: RawFd, listener: Result<OwnedFd, Errno>) -> io::Result<()> {
    let mut errno = listener.as_ref().err().map_or(0, |errno| errno.number());
    let mut control = listener.as_ref().ok().map(|descriptor| Control::new(descriptor.as_raw_fd()));
    let mut data = data(&mut errno);
    let message = message(&mut data, control.as_mut());
    // SAFETY: the header points to one piece of data and at most one control message, which all live until
    // the end of this function; the kernel only reads them.
    let sent = unsafe { libc::sendmsg(line, &raw const message, libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether to wait for what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Yes,
    No,
}

/// Receives what was sent; `None` where nothing was.
pub(super) fn receive(line: RawFd, wait: Wait) -> io::Result<Option<Result<OwnedFd, Errno>>> {
    let (mut errno, mut control) = (0, Control::new(-1));
    let mut data = data(&mut errno);
    let mut message = message(&mut data, Some(&mut control));
    let flags = libc::MSG_CMSG_CLOEXEC | if wait == Wait::No { libc::MSG_DONTWAIT } else { 0 };
    // SAFETY: the header points to one piece of data and room for one control message, with their sizes,
    // which all live until the end of this function and are used by no one else meanwhile.
    let read = unsafe { libc::recvmsg(line, &raw mut message, flags) };
    let with_descriptor = message.msg_controllen >= Control::LENGTH as _;
    match read {
        ..0 => {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) }
        }
        0 => Ok(None),
        _ if errno != 0 => Ok(Some(Err(Errno::new(errno)))),
        _ if with_descriptor && control.descriptor >= 0 => {
            // SAFETY: the kernel has put a new descriptor here for this process, which no one else owns.
            Ok(Some(Ok(unsafe { OwnedFd::from_raw_fd(control.descriptor) })))
        }
        // The message came without its descriptor: this process has too many open.
        _ => Err(io::Error::from_raw_os_error(libc::EMFILE)),
    }
}
