//! A filter of system calls as container runtimes install one, for `bwrap --seccomp`.

/// System calls about memory policies and pages, by architecture (`asm/unistd.h`).
#[cfg(target_arch = "x86_64")]
pub const POLICY_CALLS: [u32; 6] = [237, 238, 239, 256, 279, 450];
#[cfg(target_arch = "aarch64")]
pub const POLICY_CALLS: [u32; 6] = [235, 237, 236, 238, 239, 450];

/// Docker's default profile answers EPERM, gVisor and podman's profile ENOSYS.
pub const EPERM: u32 = 1;
pub const ENOSYS: u32 = 38;

/// The filter in classic BPF (`linux/filter.h`, `linux/seccomp.h`): load the number of the call,
/// answer those of the list, allow the rest.
pub fn program(calls: &[u32], errno: u32) -> Vec<u8> {
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    let count = calls.len() as u8;
    let jumps = (0..).zip(calls).map(|(at, call)| (JUMP_IF_EQUAL, count - at, 0, *call));
    let all = [(LOAD, 0, 0, 0)]
        .into_iter()
        .chain(jumps)
        .chain([(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, ERRNO | errno)]);
    all.flat_map(|(code, when_true, when_false, value): (u16, u8, u8, u32)| {
        [&code.to_ne_bytes()[..], &[when_true, when_false], &value.to_ne_bytes()].concat()
    })
    .collect()
}
