//! The filter: watched calls go to the listener, all others to the kernel.

use std::ffi::{c_int, c_ulong};
use std::mem::offset_of;
use std::os::fd::{FromRawFd as _, OwnedFd};

use super::{Condition, NotifyError, WatchedCall};
use crate::error::Errno;

/// `__AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE`.
const LITTLE_64: u32 = 0xc000_0000;

/// The ABI of this program, as `seccomp_data.arch` names it; `None` where nodewise does not know it.
///
/// # Source
/// `include/uapi/linux/audit.h`: the ELF machine, with bits for 64 bits and little-endian.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(62 | LITTLE_64)
} else if cfg!(target_arch = "aarch64") {
    Some(183 | LITTLE_64)
} else {
    None
};

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const JUMP_IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const JUMP_IF_ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// A jump to the statement that notifies, until its distance is known: further than any program here is long.
const TO_LISTENER: u8 = u8::MAX;

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Returns the filter for these calls.
pub(super) fn program(calls: &[WatchedCall]) -> Result<Vec<libc::sock_filter>, NotifyError> {
    ARCHITECTURE.map(|abi| statements(abi, calls)).ok_or(NotifyError::UnknownAbi)
}

fn statements(abi: u32, calls: &[WatchedCall]) -> Vec<libc::sock_filter> {
    let numbered = |call: &WatchedCall| Some((call.number()? as u32, call.condition()));
    let (always, by_argument): (Vec<_>, Vec<_>) =
        calls.iter().filter_map(numbered).partition(|(_, condition)| condition.is_none());
    let jump = |code, k| libc::sock_filter { jt: TO_LISTENER, ..statement(code, k) };
    let mut program = vec![statement(LOAD, offset_of!(libc::seccomp_data, arch) as u32)];
    // Numbers of another ABI mean other calls.
    program.push(libc::sock_filter { jt: 1, ..statement(JUMP_IF_EQUAL, abi) });
    program.push(statement(RETURN, libc::SECCOMP_RET_ALLOW));
    program.push(statement(LOAD, offset_of!(libc::seccomp_data, nr) as u32));
    program.extend(always.iter().map(|(number, _)| jump(JUMP_IF_EQUAL, *number)));
    for (number, condition) in by_argument {
        let Some(condition) = condition else { continue };
        let tests: Vec<_> = match condition {
            Condition::AnyBit(_, bits) => vec![jump(JUMP_IF_ANY_BIT, bits)],
            Condition::OneOf(_, values) => values.iter().map(|value| jump(JUMP_IF_EQUAL, *value)).collect(),
        };
        // Past the load, the tests and the statement that allows.
        program.push(libc::sock_filter { jf: tests.len() as u8 + 2, ..statement(JUMP_IF_EQUAL, number) });
        program.push(statement(LOAD, low_half(condition.argument())));
        program.extend(tests);
        program.push(statement(RETURN, libc::SECCOMP_RET_ALLOW));
    }
    program.push(statement(RETURN, libc::SECCOMP_RET_ALLOW));
    let last = program.len();
    program.push(statement(RETURN, libc::SECCOMP_RET_USER_NOTIF));
    for (at, statement) in program.iter_mut().enumerate().filter(|(_, found)| found.jt == TO_LISTENER) {
        statement.jt = (last - at - 1) as u8;
    }
    program
}

/// The place of an argument's lower 32 bits; the architectures are little-endian.
const fn low_half(argument: usize) -> u32 {
    (offset_of!(libc::seccomp_data, args) + argument * size_of::<u64>()) as u32
}

/// Installs the filter on the calling thread permanently, and returns its listener. Makes system calls only.
pub(super) fn install(program: &[libc::sock_filter]) -> Result<OwnedFd, Errno> {
    let (one, zero) = (1 as c_ulong, 0 as c_ulong);
    // SAFETY: no pointers; the call only takes privileges away from this thread.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero) } != 0 {
        return Err(Errno::last());
    }
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let (operation, flags) =
        (libc::SECCOMP_SET_MODE_FILTER as c_ulong, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as c_ulong);
    // SAFETY: the kernel copies `len` statements from the slice, which lives until the end of this
    // function, and writes none.
    let answer = unsafe { libc::syscall(libc::SYS_seccomp, operation, flags, &raw const filter) };
    if answer < 0 {
        return Err(Errno::last());
    }
    // SAFETY: with this flag the answer is a new descriptor, which no one else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as c_int) })
}

#[cfg(test)]
mod tests {
    use std::ffi::c_long;

    use super::*;

    /// AUDIT_ARCH_X86_64.
    const ABI: u32 = 62 | LITTLE_64;

    /// Runs the filter on a call as the kernel does.
    fn verdict(program: &[libc::sock_filter], architecture: u32, number: u32, arguments: [u32; 6]) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let statement = program[at];
            at += 1;
            let jump = |jumps| usize::from(if jumps { statement.jt } else { statement.jf });
            match (u32::from(statement.code), statement.k) {
                (LOAD, 0) => loaded = number,
                (LOAD, 4) => loaded = architecture,
                (LOAD, place) => loaded = arguments[(place as usize - 16) / 8],
                (JUMP_IF_EQUAL, k) => at += jump(loaded == k),
                (JUMP_IF_ANY_BIT, k) => at += jump(loaded & k != 0),
                (RETURN, verdict) => return verdict,
                (code, k) => panic!("statement {code:#x} with {k}"),
            }
        }
    }

    #[test]
    fn watched_calls_of_this_abi_and_no_others_go_to_the_listener() {
        // All bits of flags, and an advice that gives memory back.
        let arguments = [u32::MAX, u32::MAX, libc::MADV_DONTNEED as u32, u32::MAX, u32::MAX, u32::MAX];
        for count in 0..=WatchedCall::ALL.len() {
            let (watched, others) = WatchedCall::ALL.split_at(count);
            let program = statements(ABI, watched);
            let check = |architecture, number: c_long, expected| {
                assert_eq!(
                    verdict(&program, architecture, number as u32, arguments),
                    expected,
                    "{number} of {watched:?}"
                );
            };
            for number in watched.iter().filter_map(|call| call.number()) {
                check(ABI, number, libc::SECCOMP_RET_USER_NOTIF);
                // AUDIT_ARCH_I386, and the bit of x32.
                check(3 | 0x4000_0000, number, libc::SECCOMP_RET_ALLOW);
                check(ABI, number | 0x4000_0000, libc::SECCOMP_RET_ALLOW);
            }
            for number in others.iter().filter_map(|call| call.number()) {
                check(ABI, number, libc::SECCOMP_RET_ALLOW);
            }
            check(ABI, libc::SYS_execve, libc::SECCOMP_RET_ALLOW);
        }
    }

    #[test]
    fn mappings_that_replace_nothing_and_other_advice_stay_with_the_kernel() {
        let program = statements(ABI, &WatchedCall::ALL);
        let check = |number: c_long, at: usize, argument: c_int, is_watched: bool| {
            let mut arguments = [0; 6];
            arguments[at] = argument as u32;
            let expected = if is_watched { libc::SECCOMP_RET_USER_NOTIF } else { libc::SECCOMP_RET_ALLOW };
            assert_eq!(
                verdict(&program, ABI, number as u32, arguments),
                expected,
                "{number} with {argument:#x}"
            );
        };
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        check(libc::SYS_mmap, 3, private, false);
        check(libc::SYS_mmap, 3, private | libc::MAP_FIXED, true);
        check(libc::SYS_mmap, 3, private | libc::MAP_FIXED_NOREPLACE, false);
        check(libc::SYS_madvise, 2, libc::MADV_DONTNEED, true);
        check(libc::SYS_madvise, 2, libc::MADV_DONTNEED_LOCKED, true);
        check(libc::SYS_madvise, 2, libc::MADV_HUGEPAGE, false);
        check(libc::SYS_mremap, 3, 0, true);
    }
}
