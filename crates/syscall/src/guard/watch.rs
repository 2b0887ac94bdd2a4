//! The effect of a guard. All of it happens between `fork(2)` and the end of the process, in a copy of one
//! that may have had threads: system calls alone, nothing is allocated, no lock is taken.

use std::ffi::{CStr, c_int, c_uint, c_ulong, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;

use libc::pid_t;

use crate::error::Errno;
use crate::raw;

/// The name that lists of processes show; at most 15 letters. Whoever kills by the name of the process that
/// wanted a guard does not mean the guard.
const NAME: &CStr = c"run-guard";

/// Arguments of `prctl(2)`, as wide as it reads them.
const YES: c_ulong = 1;
const NO: c_ulong = 0;

/// How long is waited at most where no descriptor reports a child's end, in ms.
const LOOK: c_int = 50;

/// Descriptors that are closed one by one where `close_range(2)` is missing (before Linux 5.9).
const MOST_DESCRIPTORS: c_int = 1 << 16;

/// Makes this process, which is about to become a program, two: the guard, which never returns from
/// here, and its child, which does and becomes the program.
///
/// # Errors
/// No more processes can be had.
pub(super) fn stand_before(line: RawFd) -> io::Result<()> {
    let before = block_signals();
    // SAFETY: takes numbers and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, YES, NO, NO, NO) };
    // SAFETY: asks for a number.
    let guard = unsafe { libc::getpid() };
    // SAFETY: this process has one thread, and its child makes system calls until it becomes a program.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            follow(guard);
            set_signals(&before);
            Ok(())
        }
        program => {
            send(line, program);
            close_all_but(line);
            watch(line, program)
        }
    }
}

/// The program has a session of its own, and ends with its guard. It is in no process group of the
/// terminal, where the kernel would stop it when it reads or changes that, with no one to let it go on: a
/// session without a terminal finds none (`ENXIO` for `/dev/tty`).
fn follow(guard: pid_t) {
    // The guard leads a process group and not its child, so this cannot fail.
    // SAFETY: takes nothing and touches no memory.
    unsafe { libc::setsid() };
    // SAFETY: takes numbers and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong, NO, NO, NO) };
    // One that has ended before this call sends nothing.
    // SAFETY: asks for a number.
    if unsafe { libc::getppid() } != guard {
        // SAFETY: ends the process without running anything of it.
        unsafe { libc::_exit(1) };
    }
}

/// Waits until the program has ended or the line is cut; then ends what is left, and itself.
fn watch(line: RawFd, program: pid_t) -> ! {
    // SAFETY: reads a string with its NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr(), NO, NO, NO) };
    // Children of a process that ignores it leave no status.
    // SAFETY: the default of a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let signals = signals_of_children();
    let patience = if signals < 0 { LOOK } else { -1 };
    let mut sources = [line, signals].map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // To set the default has dropped the signal of a child that had ended already: look before waiting.
    loop {
        let order = next_order(line);
        if order == Order::End || ended(program).is_some() || !reap(program) {
            break;
        }
        if order == Order::Terminate {
            // SAFETY: a signal touches no memory of this process, and the program was not waited for.
            unsafe { libc::kill(-program, libc::SIGTERM) };
        }
        // SAFETY: the pointer and the count are those of an array that lives until the call returns.
        unsafe { libc::poll(sources.as_mut_ptr(), sources.len() as libc::nfds_t, patience) };
        take_signal(signals);
    }
    if let Some(status) = ended(program) {
        // Before it is waited for: who learns of the end by its number being free finds this message.
        send(line, status);
        end_all(program);
    } else {
        send(line, end_all(program).unwrap_or(libc::SIGKILL));
    }
    // SAFETY: ends the process without running anything of it.
    unsafe { libc::_exit(0) }
}

/// The guard's input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    None,
    /// To ask the program's process group to end.
    Terminate,
    /// To end everything: the line is cut.
    End,
}

/// The next order on the line: any number asks the program to end.
fn next_order(line: RawFd) -> Order {
    let mut number = [0_u8; size_of::<c_int>()];
    let (pointer, length) = (number.as_mut_ptr().cast(), number.len());
    // SAFETY: the kernel writes at most `length` bytes into the array, which has as many.
    match unsafe { libc::recv(line, pointer, length, libc::MSG_DONTWAIT) } {
        0 => Order::End,
        1.. => Order::Terminate,
        _ => Order::None,
    }
}

/// Ends all that is left of the program, until nothing is or what is left may not be ended. Gives the
/// status of the program where that is among it.
fn end_all(program: pid_t) -> Option<c_int> {
    let mut status = None;
    // SAFETY: a signal touches no memory of this process, and the program was not waited for.
    unsafe { libc::kill(program, libc::SIGKILL) };
    // Whatever has stayed in its process group, at once.
    // SAFETY: a signal touches no memory of this process, and the program was not waited for.
    unsafe { libc::kill(-program, libc::SIGKILL) };
    loop {
        loop {
            match raw::wait4(-1, libc::WNOHANG) {
                Ok((0, ..)) => break,
                Ok((pid, how, _)) if pid == program => status = Some(how),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return status,
            }
        }
        if kill_children() == 0 && status.is_some() {
            return status;
        }
        // One that was killed becomes a dead child; its own children become ours.
        if let Ok((pid, how, _)) = raw::wait4(-1, 0) {
            status = status.or((pid == program).then_some(how));
        }
    }
}

/// Takes the dead among the children but the program, for an orphan that no one waits for stays in the
/// list of processes. False where there is no child at all.
fn reap(program: pid_t) -> bool {
    loop {
        let mut information = MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: the kernel writes one siginfo, for which there is room.
        if unsafe { libc::waitid(libc::P_ALL, 0, information.as_mut_ptr(), options) } != 0 {
            return Errno::last() != Errno::ECHILD;
        }
        // SAFETY: zeros are a siginfo, and the kernel wrote one over them.
        let information = unsafe { information.assume_init() };
        // SAFETY: it is that of a child, or zeros where none is dead.
        let dead = unsafe { information.si_pid() };
        if dead == 0 || dead == program {
            return true;
        }
        let _ = raw::wait4(dead, libc::WNOHANG);
    }
}

/// The status of a child that has ended, which stays to be waited for.
fn ended(child: pid_t) -> Option<c_int> {
    let information = look(child)?;
    // SAFETY: it is that of a child, or zeros where it has not ended.
    let pid = unsafe { information.si_pid() };
    // SAFETY: as above.
    let how = unsafe { information.si_status() };
    match information.si_code {
        _ if pid == 0 => None,
        // As wait4(2) packs it.
        libc::CLD_EXITED => Some((how & 0xff) << 8),
        libc::CLD_DUMPED => Some(how | 0x80),
        _ => Some(how),
    }
}

/// Returns the state of a child; `None` for a process that is not one of ours.
fn look(child: pid_t) -> Option<libc::siginfo_t> {
    let id = libc::id_t::try_from(child).ok()?;
    let mut information = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the kernel writes one siginfo, for which there is room.
    let asked = unsafe { libc::waitid(libc::P_PID, id, information.as_mut_ptr(), options) };
    // SAFETY: zeros are a siginfo, and the kernel wrote one over them.
    (asked == 0).then(|| unsafe { information.assume_init() })
}

/// Sends SIGKILL to every child and shows how many it reached; none where there is no list of processes.
///
/// The list only says which numbers are worth asking for: whether one is a child is from the kernel,
/// which cannot give the number of a child to anybody else before it was waited for. So a list of another
/// PID namespace does no harm.
fn kill_children() -> u32 {
    // SAFETY: reads a string with its NUL.
    let list = unsafe { libc::open(c"/proc".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC) };
    if list < 0 {
        return 0;
    }
    let mut killed = 0;
    let mut buffer = [0_u8; 4096];
    loop {
        let (pointer, length) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: the kernel writes at most `length` bytes into the array, which has as many.
        let read = unsafe { libc::syscall(libc::SYS_getdents64, list, pointer, length) };
        let Some(entries) =
            usize::try_from(read).ok().filter(|read| *read > 0).and_then(|read| buffer.get(..read))
        else {
            break;
        };
        for_each_number(entries, |pid| {
            // SAFETY: a signal touches no memory of this process, and the number is that of a child.
            if look(pid).is_some() && unsafe { libc::kill(pid, libc::SIGKILL) } == 0 {
                killed += 1;
            }
        });
    }
    // SAFETY: the descriptor is ours, and nothing uses it any more.
    unsafe { libc::close(list) };
    killed
}

/// The names that are numbers, in what `getdents64(2)` writes.
///
/// # Source
/// `struct linux_dirent64`: two numbers of 8 bytes, the length of the entry in 2, its type in 1, then the
/// name with a NUL.
pub(super) fn for_each_number(mut entries: &[u8], mut found: impl FnMut(pid_t)) {
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    while let Some(&[low, high]) = entries.get(LENGTH..LENGTH + 2) {
        let length = usize::from(u16::from_ne_bytes([low, high]));
        let Some(name) = entries.get(NAME..length) else { return };
        let mut number: pid_t = 0;
        let mut digits = 0;
        for byte in name.iter().take_while(|byte| byte.is_ascii_digit()) {
            number = number.saturating_mul(10).saturating_add(pid_t::from(byte - b'0'));
            digits += 1;
        }
        if digits > 0 && name.get(digits) == Some(&0) {
            found(number);
        }
        entries = &entries[length..];
    }
}

/// Sends a number over the line. That no one listens any more is not an error.
pub(super) fn send(line: RawFd, number: c_int) {
    let bytes = number.to_ne_bytes();
    // SAFETY: the kernel reads the bytes of the array; a socket takes so few at once.
    unsafe { libc::send(line, bytes.as_ptr().cast::<c_void>(), bytes.len(), libc::MSG_NOSIGNAL) };
}

/// Holds nothing open but the line: neither files of the program nor lines of other guards.
fn close_all_but(line: RawFd) {
    let Ok(number) = c_uint::try_from(line) else { return };
    let below = number.checked_sub(1).is_none_or(|last| close_range(0, last));
    if below && close_range(number + 1, c_uint::MAX) {
        return;
    }
    for descriptor in (0..MOST_DESCRIPTORS).filter(|descriptor| *descriptor != line) {
        // SAFETY: nothing in this process uses any of them again; most are none.
        unsafe { libc::close(descriptor) };
    }
}

/// `close_range(2)`; whether it is there.
fn close_range(first: c_uint, last: c_uint) -> bool {
    // SAFETY: nothing in this process uses these descriptors again.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) == 0 }
}

/// Blocks every signal; gives those that were blocked before.
fn block_signals() -> libc::sigset_t {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: writes the one set for which there is room.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: reads the set that was filled, and writes the other, for which there is room.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    // SAFETY: zeros are an empty set, and the kernel wrote one over them.
    unsafe { before.assume_init() }
}

fn set_signals(set: &libc::sigset_t) {
    // SAFETY: reads one set; a null third argument asks for nothing.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, set, ptr::null_mut()) };
}

/// A descriptor that is readable when a child has ended.
fn signals_of_children() -> RawFd {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: writes the one set for which there is room.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: changes the set that was just made.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD) };
    // SAFETY: reads one set and makes a descriptor.
    unsafe { libc::signalfd(-1, set.as_ptr(), libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) }
}

/// Takes the signal, so that the next poll waits for another.
fn take_signal(signals: RawFd) {
    let mut taken = MaybeUninit::<libc::signalfd_siginfo>::uninit();
    let length = size_of::<libc::signalfd_siginfo>();
    // SAFETY: the kernel writes at most `length` bytes, for which there is room; no one reads them.
    unsafe { libc::read(signals, taken.as_mut_ptr().cast(), length) };
}
