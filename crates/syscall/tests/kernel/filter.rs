//! A seccomp filter on the calling thread, as container runtimes install one on their processes.

use std::ffi::c_long;
use std::io;

use nodewise_syscall::Errno;

/// The calls that docker's default profile gates on a capability or leaves out.
pub const NUMA_CALLS: [c_long; 6] = [
    libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy_home_node,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Makes the kernel answer these calls with an error, on this thread and all that it starts, permanently.
pub fn block(calls: &[c_long], answer: Errno) -> io::Result<()> {
    // The number of the call is the first field of `struct seccomp_data`.
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    let refuse = libc::SECCOMP_RET_ERRNO | answer.number() as u32;
    for call in calls {
        let mut jump = statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, *call as u32);
        jump.jf = 1;
        program.push(jump);
        program.push(statement(libc::BPF_RET | libc::BPF_K, refuse));
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let (one, zero) = (1 as libc::c_ulong, 0 as libc::c_ulong);
    // SAFETY: no pointers; the call keeps this thread from gaining privileges, which is what lets
    // an ordinary user install a filter.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, zero, zero, zero) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mode = libc::SECCOMP_MODE_FILTER as libc::c_ulong;
    // SAFETY: the kernel copies the program that `filter` points to, `len` statements in a vector
    // that lives until the end of this function.
    if unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter, zero, zero) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
