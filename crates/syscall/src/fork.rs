//! A copy of this process, for what becomes of memory that a program and its child have in common.

use std::ffi::c_int;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixStream;

use nodewise_machine::Bytes;

use crate::arguments::Advice;
use crate::call::{Call, Task};
use crate::error::{CallError, Errno};
use crate::raw;
/// The copy's input: address and length.
type Order = [usize; 2];

/// A child that was forked and has become no other program: it has this process's memory, policies and
/// CPUs as they were then, writes to pages when asked to, and ends when dropped.
///
/// Nothing that it writes is seen here, but in memory that is shared. Where its pages are, and moving
/// them or itself, is asked from here: [`Twin::task`].
#[derive(Debug)]
pub struct Twin {
    pid: libc::pid_t,
    line: UnixStream,
}

impl Twin {
    /// Forks. Memory that is not for children ([`Advice::NotForChildren`], as a
    /// [`NodeBuffer`](crate::NodeBuffer) has it) is missing in the copy.
    ///
    /// # Source
    /// `fork(2)`.
    ///
    /// # Errors
    /// No more processes or descriptors can be had.
    pub fn fork() -> io::Result<Self> {
        let (line, childs) = UnixStream::pair()?;
        let (descriptor, other) = (childs.as_raw_fd(), line.as_raw_fd());
        // SAFETY: other threads may hold locks that no one releases in the child; until it ends the child
        // makes nothing but system calls on its own stack, which need none.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => obey(descriptor, other),
            pid => Ok(Self { pid, line }),
        }
    }

    /// The number of its process.
    pub const fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// The child, as calls name it.
    pub fn task(&self) -> Task {
        Task::new(self.pid()).expect("the id of a process is positive")
    }

    /// Makes the child allocate pages as writing to them would: those that it has in common with this
    /// process are copied.
    ///
    /// # Units
    /// `address` and `length` in bytes, the address a multiple of the page size.
    ///
    /// # Errors
    /// Those of [`Advice::Populate`]: `ENOMEM` where the child has no memory, `ECHILD` when it is gone.
    pub fn write(&mut self, address: usize, length: usize) -> Result<(), CallError> {
        let call = Call::Madvise { address, length: Bytes::new(length as u64), advice: Advice::Populate };
        let answer = self.ask([address, length]).map_err(|_| Errno::ECHILD);
        match answer {
            Ok(0) => Ok(()),
            Ok(errno) => Err(CallError::new(call, Errno::new(errno))),
            Err(errno) => Err(CallError::new(call, errno)),
        }
    }

    fn ask(&mut self, order: Order) -> io::Result<c_int> {
        let bytes: Vec<u8> = order.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.line.write_all(&bytes)?;
        let mut answer = [0; size_of::<c_int>()];
        self.line.read_exact(&mut answer)?;
        Ok(c_int::from_ne_bytes(answer))
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        // SAFETY: the child was not waited for, so its id is still its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        while raw::wait4(self.pid, 0).is_err_and(|errno| errno == Errno::EINTR) {}
    }
}

/// The effect of the child, until the line is cut: it allocates nothing and takes no lock.
fn obey(line: RawFd, other: RawFd) -> ! {
    // SAFETY: the descriptor is a copy of the parent's, which nothing in this process will use again.
    unsafe { libc::close(other) };
    let mut order: Order = [0; 2];
    loop {
        let length = size_of::<Order>();
        // SAFETY: the kernel writes at most `length` bytes into the array, which has as many and may
        // hold any. An order is written at once and much shorter than what a socket takes at once.
        let read = unsafe { libc::read(line, order.as_mut_ptr().cast(), length) };
        if usize::try_from(read) != Ok(length) {
            // SAFETY: ends the process without running anything of it.
            unsafe { libc::_exit(0) };
        }
        let [address, length] = order;
        let answer = raw::madvise(address, length, Advice::Populate).map_or_else(Errno::number, |()| 0);
        let bytes = answer.to_ne_bytes();
        // SAFETY: the kernel reads the bytes of the array; what cannot be said ends at the next read.
        unsafe { libc::write(line, bytes.as_ptr().cast(), bytes.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::advise;
    use crate::arguments::PageKind;
    use crate::buffer::NodeBuffer;
    use crate::pages::{self, PageLocation};

    const PAGE: usize = 4096;

    fn location(task: Task, address: usize) -> PageLocation {
        let mut found = PageLocation::NotPresent;
        pages::locate(task, [address], |_, location| found = location).unwrap();
        found
    }

    #[test]
    fn a_copy_writes_to_its_own_pages_only() {
        let size = Bytes::new(4 * pages::page_size() as u64);
        let mut memory = NodeBuffer::reserve(size, PageKind::Small, None).unwrap();
        let address = memory.address();
        advise(address, 4 * pages::page_size(), Advice::ForChildren).unwrap();
        memory.as_mut_slice()[0] = 7;
        let mut twin = Twin::fork().unwrap();
        let second = address + pages::page_size();
        assert_eq!(location(twin.task(), second), PageLocation::NotPresent);
        twin.write(second, pages::page_size()).unwrap();
        assert!(matches!(location(twin.task(), second), PageLocation::Node(_)));
        assert_eq!(location(Task::CURRENT, second), PageLocation::NotPresent);
        assert_eq!(memory.as_slice()[0], 7);
    }

    #[test]
    fn memory_that_is_not_for_children_is_missing_in_the_copy() {
        let memory = NodeBuffer::new(Bytes::new(PAGE as u64), PageKind::Small, None).unwrap();
        let mut twin = Twin::fork().unwrap();
        let error = twin.write(memory.address(), pages::page_size()).unwrap_err();
        assert_eq!(error.errno, Errno::ENOMEM);
    }

    #[test]
    fn a_copy_that_is_gone_is_said_to_be() {
        let mut twin = Twin::fork().unwrap();
        // SAFETY: the id is that of a child of ours that was not waited for.
        unsafe { libc::kill(twin.pid, libc::SIGKILL) };
        while twin.ask([0, 0]).is_ok() {}
        assert_eq!(twin.write(0, PAGE).unwrap_err().errno, Errno::ECHILD);
    }
}
