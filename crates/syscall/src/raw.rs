//! The system calls, one function each, nothing clever.
//!
//! Each function names its manual page. Pointers and lengths come from slices, so that every
//! function that takes no raw mapping is safe. None allocates and none takes a lock: all may be
//! called between `fork(2)` and `execve(2)`. Integers go in as wide as a register: `syscall(2)` takes
//! variable arguments, where the upper half of a narrow one is anybody's guess.

use std::ffi::{c_int, c_long, c_uint, c_ulong, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::ptr::{self, NonNull};

use nodewise_machine::policy::mpol;
use nodewise_machine::set::words::BITS_PER_WORD;

use crate::arguments::Advice;
use crate::error::Errno;
use crate::perf::{Attributes, Counted};

/// `get_mempolicy`: the node instead of the policy.
pub(crate) const MPOL_F_NODE: c_int = mpol::F_NODE;
/// `get_mempolicy`: of an address instead of the thread.
pub(crate) const MPOL_F_ADDR: c_int = mpol::F_ADDR;
/// `get_mempolicy`: the nodes that the cpuset allows.
pub(crate) const MPOL_F_MEMS_ALLOWED: c_int = mpol::F_MEMS_ALLOWED;
/// `mbind`: fail when pages are, or remain, elsewhere.
pub(crate) const MPOL_MF_STRICT: c_int = mpol::MF_STRICT;
/// `mbind`, `move_pages`: move pages that only this process maps.
pub(crate) const MPOL_MF_MOVE: c_int = mpol::MF_MOVE;
/// `mbind`, `move_pages`: move pages that others map too.
pub(crate) const MPOL_MF_MOVE_ALL: c_int = mpol::MF_MOVE_ALL;
/// `prctl`: with `PR_SET_THP_DISABLE`, leave huge pages where the program advises them. Linux 6.18.
pub(crate) const PR_THP_DISABLE_EXCEPT_ADVISED: c_ulong = 1 << 1;

/// An address that is never readable by a program: the last page of the address space.
const UNREADABLE: usize = !0xfff;

fn done(result: c_long) -> Result<c_long, Errno> {
    if result < 0 { Err(Errno::last()) } else { Ok(result) }
}

/// A mask as pointer and `maxnode`.
///
/// The kernel reads `maxnode - 1` bits (`get_nodes` in `mm/mempolicy.c`), so a mask of 64 bits is
/// passed as 65: with 64 its highest node would be lost without a word.
fn mask(words: &[c_ulong]) -> (*const c_ulong, c_ulong) {
    if words.is_empty() {
        return (ptr::null(), 0);
    }
    (words.as_ptr(), (words.len() * BITS_PER_WORD) as c_ulong + 1)
}

/// `set_mempolicy(2)`.
pub(crate) fn set_mempolicy(mode: c_int, nodes: &[c_ulong]) -> Result<(), Errno> {
    let (pointer, maxnode) = mask(nodes);
    let mode = c_long::from(mode);
    // SAFETY: the kernel reads `maxnode - 1` bits at `pointer`, which is what the slice holds; it
    // writes nothing.
    done(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, pointer, maxnode) }).map(drop)
}

/// `set_mempolicy(2)` with a mask that cannot be read: the call looks at the mode, then fails.
pub(crate) fn set_mempolicy_without_a_mask(mode: c_int) -> Result<(), Errno> {
    let (mode, maxnode) = (c_long::from(mode), BITS_PER_WORD as c_ulong + 1);
    // SAFETY: the kernel checks the address before it reads (`access_ok`), finds it outside the
    // program's half of the address space and gives EFAULT; it writes nothing.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, UNREADABLE, maxnode) };
    done(result).map(drop)
}

/// `get_mempolicy(2)`; returns what it wrote as mode, or as node.
pub(crate) fn get_mempolicy(nodes: &mut [c_ulong], address: usize, flags: c_int) -> Result<c_int, Errno> {
    let (pointer, maxnode) = mask(nodes);
    let mut mode: c_int = 0;
    let (mode_pointer, flags): (*mut c_int, c_long) = (&mut mode, flags.into());
    // SAFETY: the kernel writes one int at `mode_pointer`, which lives until the end of this
    // function, and `maxnode - 1` bits rounded up to words at `pointer`, which is what the
    // exclusively borrowed slice holds. The address is only looked up.
    let result =
        unsafe { libc::syscall(libc::SYS_get_mempolicy, mode_pointer, pointer, maxnode, address, flags) };
    done(result).map(|_| mode)
}

/// `mbind(2)`.
pub(crate) fn mbind(
    address: usize,
    length: usize,
    mode: c_int,
    nodes: &[c_ulong],
    flags: c_int,
) -> Result<(), Errno> {
    let (pointer, maxnode) = mask(nodes);
    let (mode, flags) = (c_long::from(mode), c_long::from(flags));
    // SAFETY: the kernel reads `maxnode - 1` bits at `pointer`, which is what the slice holds. The
    // range is described, not dereferenced: a policy and the node of a page change no content.
    let result = unsafe { libc::syscall(libc::SYS_mbind, address, length, mode, pointer, maxnode, flags) };
    done(result).map(drop)
}

/// `set_mempolicy_home_node(2)`. Linux 5.17.
pub(crate) fn set_mempolicy_home_node(address: usize, length: usize, node: u32) -> Result<(), Errno> {
    let (node, flags): (c_ulong, c_ulong) = (node.into(), 0);
    // SAFETY: no pointers; the range is described, not dereferenced.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy_home_node, address, length, node, flags) };
    done(result).map(drop)
}

/// `migrate_pages(2)`; both masks are equally long. Returns how many pages could not be moved.
pub(crate) fn migrate_pages(pid: libc::pid_t, from: &[c_ulong], to: &[c_ulong]) -> Result<u64, Errno> {
    let words = from.len().min(to.len());
    let pid = c_long::from(pid);
    let (from, maxnode) = mask(&from[..words]);
    let (to, _) = mask(&to[..words]);
    // SAFETY: the kernel reads `maxnode - 1` bits at each pointer, which both slices hold; moving
    // a page changes no content.
    done(unsafe { libc::syscall(libc::SYS_migrate_pages, pid, maxnode, from, to) }).map(|left| left as u64)
}

/// `move_pages(2)` without targets: asks where pages are. `places` is as long as `pages`.
pub(crate) fn locate_pages(pid: libc::pid_t, pages: &[usize], places: &mut [c_int]) -> Result<(), Errno> {
    let count = pages.len().min(places.len()) as c_ulong;
    let targets: *const c_int = ptr::null();
    let (pid, flags): (c_long, c_long) = (pid.into(), 0);
    let (pages, places) = (pages.as_ptr(), places.as_mut_ptr());
    // SAFETY: the kernel reads `count` addresses at `pages` and writes `count` ints at `places`,
    // which both slices hold; `usize` is as wide as the pointers it expects. The addresses are
    // only looked up.
    let result = unsafe { libc::syscall(libc::SYS_move_pages, pid, count, pages, targets, places, flags) };
    done(result).map(drop)
}

/// `move_pages(2)` with one target per page. Returns how many pages were not tried.
pub(crate) fn move_pages(
    pid: libc::pid_t,
    pages: &[usize],
    targets: &[c_int],
    places: &mut [c_int],
    flags: c_int,
) -> Result<c_long, Errno> {
    let count = pages.len().min(targets.len()).min(places.len()) as c_ulong;
    let (pid, flags) = (c_long::from(pid), c_long::from(flags));
    let (pages, targets, places) = (pages.as_ptr(), targets.as_ptr(), places.as_mut_ptr());
    // SAFETY: the kernel reads `count` addresses and `count` ints and writes `count` ints, which
    // the three slices hold; moving a page changes no content.
    done(unsafe { libc::syscall(libc::SYS_move_pages, pid, count, pages, targets, places, flags) })
}

/// `sched_setaffinity(2)`, the system call: the C library's function stops at 1,024 CPUs.
pub(crate) fn sched_setaffinity(tid: libc::pid_t, cpus: &[c_ulong]) -> Result<(), Errno> {
    let (tid, length, pointer) = (c_long::from(tid), size_of_val(cpus), cpus.as_ptr());
    // SAFETY: the kernel reads `length` bytes at `pointer`, the size of the slice.
    done(unsafe { libc::syscall(libc::SYS_sched_setaffinity, tid, length, pointer) }).map(drop)
}

/// `sched_getaffinity(2)`, the system call. Returns how many bytes the kernel wrote.
pub(crate) fn sched_getaffinity(tid: libc::pid_t, cpus: &mut [c_ulong]) -> Result<usize, Errno> {
    let (tid, length, pointer) = (c_long::from(tid), size_of_val(cpus), cpus.as_mut_ptr());
    // SAFETY: the kernel writes at most `length` bytes at `pointer`, the size of the slice.
    done(unsafe { libc::syscall(libc::SYS_sched_getaffinity, tid, length, pointer) })
        .map(|bytes| bytes as usize)
}

/// `getcpu(2)`; returns CPU and node.
pub(crate) fn getcpu() -> Result<(u32, u32), Errno> {
    let (mut cpu, mut node): (c_uint, c_uint) = (0, 0);
    let (cpu_pointer, node_pointer): (*mut c_uint, *mut c_uint) = (&mut cpu, &mut node);
    let unused: *mut c_void = ptr::null_mut();
    // SAFETY: the kernel writes one unsigned int at each of the two pointers, which live until the
    // end of this function; the third argument is unused since Linux 2.6.24.
    done(unsafe { libc::syscall(libc::SYS_getcpu, cpu_pointer, node_pointer, unused) })?;
    Ok((cpu, node))
}

/// `unshare(2)`.
pub(crate) fn unshare(flags: c_int) -> Result<(), Errno> {
    // SAFETY: no pointers; namespaces of the process change, none of its memory.
    done(unsafe { libc::unshare(flags) }.into()).map(drop)
}

/// `prctl(2)` with `PR_SET_THP_DISABLE`.
pub(crate) fn set_thp_disable(disable: c_ulong, flags: c_ulong) -> Result<(), Errno> {
    let unused: c_ulong = 0;
    // SAFETY: no pointers; the call sets two bits of the process.
    let result = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, disable, flags, unused, unused) };
    done(result.into()).map(drop)
}

/// `prctl(2)` with `PR_GET_THP_DISABLE`.
pub(crate) fn get_thp_disable() -> Result<c_int, Errno> {
    let unused: c_ulong = 0;
    // SAFETY: no pointers; the call reads two bits of the process.
    let result = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, unused, unused, unused, unused) };
    done(result.into()).map(|_| result)
}

/// `mmap(2)` of private anonymous memory that can be read and written, at an address that the
/// kernel chooses.
pub(crate) fn map_anonymous(length: usize, flags: c_int) -> Result<NonNull<u8>, Errno> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    // SAFETY: without MAP_FIXED the kernel takes an address range that is free, so no memory of
    // this program is touched; no file is involved.
    let address = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    NonNull::new(address.cast()).ok_or(Errno::ENOMEM)
}

/// `mmap(2)` of part of a file, shared, at an address that the kernel chooses.
pub(crate) fn map_shared(
    file: c_int,
    offset: i64,
    length: usize,
    protection: c_int,
) -> Result<NonNull<u8>, Errno> {
    // SAFETY: without MAP_FIXED the kernel takes an address range that is free, so no memory of this
    // program is touched; a descriptor that is not open is an error.
    let address = unsafe { libc::mmap(ptr::null_mut(), length, protection, libc::MAP_SHARED, file, offset) };
    if address == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    NonNull::new(address.cast()).ok_or(Errno::ENOMEM)
}

/// `shmget(2)`.
pub(crate) fn shmget(key: i32, length: usize, flags: c_int) -> Result<c_int, Errno> {
    // SAFETY: no pointers.
    let id = unsafe { libc::shmget(key, length, flags) };
    done(id.into()).map(|_| id)
}

/// `shmctl(2)` with `IPC_STAT`: the length of a segment in bytes.
pub(crate) fn shm_length(id: c_int) -> Result<usize, Errno> {
    let mut status = MaybeUninit::<libc::shmid_ds>::zeroed();
    // SAFETY: the kernel writes one shmid_ds at the pointer, which lives until the end of this
    // function.
    let result = unsafe { libc::shmctl(id, libc::IPC_STAT, status.as_mut_ptr()) };
    done(result.into())?;
    // SAFETY: shmid_ds is a structure of integers, for which zeroed memory is a valid value; the
    // kernel has overwritten it.
    Ok(unsafe { status.assume_init() }.shm_segsz)
}

/// `shmat(2)` at an address that the kernel chooses.
pub(crate) fn shmat(id: c_int, flags: c_int) -> Result<NonNull<u8>, Errno> {
    debug_assert_eq!(flags & libc::SHM_REMAP, 0, "no memory of this program is replaced");
    // SAFETY: without an address the kernel takes a range that is free.
    let address = unsafe { libc::shmat(id, ptr::null(), flags) };
    // The call answers (void *) -1 for an error.
    if address as isize == -1 {
        return Err(Errno::last());
    }
    NonNull::new(address.cast()).ok_or(Errno::ENOMEM)
}

/// `shmdt(2)`.
///
/// # Safety
/// The segment was attached at this address by the caller, and nothing refers to it any more.
pub(crate) unsafe fn shmdt(address: NonNull<u8>) -> Result<(), Errno> {
    // SAFETY: the caller attached it, and nothing refers to it.
    let result = unsafe { libc::shmdt(address.as_ptr().cast()) };
    done(result.into()).map(drop)
}

/// `munmap(2)`.
///
/// # Safety
/// The range belongs to the caller alone and nothing refers to it any more.
pub(crate) unsafe fn unmap(address: NonNull<u8>, length: usize) -> Result<(), Errno> {
    // SAFETY: the caller owns the range, and nothing refers to it.
    let result = unsafe { libc::munmap(address.as_ptr().cast(), length) };
    done(result.into()).map(drop)
}

/// `madvise(2)` with one of the advices that change no content.
pub(crate) fn madvise(address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
    // SAFETY: every `Advice` keeps what the memory holds (the type leaves out MADV_DONTNEED and its
    // like); the range is described, not dereferenced.
    let result = unsafe { libc::madvise(address as *mut c_void, length, advice.number()) };
    done(result.into()).map(drop)
}

/// `mincore(2)`: the lowest bit of a byte says whether its page is in memory. A byte per page.
pub(crate) fn mincore(address: usize, length: usize, resident: &mut [u8]) -> Result<(), Errno> {
    let length = length.min(resident.len().saturating_mul(page_size()));
    // SAFETY: the kernel writes a byte per page of the range at the pointer, which the slice holds: the length was
    // cut to it. The range is described, not dereferenced.
    let result = unsafe { libc::mincore(address as *mut c_void, length, resident.as_mut_ptr()) };
    done(result.into()).map(drop)
}

/// `wait4(2)`; returns the process that ended, 0 for none, its status and what it used.
pub(crate) fn wait4(pid: libc::pid_t, options: c_int) -> Result<(libc::pid_t, c_int, libc::rusage), Errno> {
    let mut status: c_int = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one int and one rusage at the two pointers, which live until the
    // end of this function.
    let ended = unsafe { libc::wait4(pid, &raw mut status, options, usage.as_mut_ptr()) };
    done(ended.into())?;
    // SAFETY: rusage is a structure of integers, for which zeroed memory is a valid value; the
    // kernel has overwritten it, or left it when no child has ended.
    Ok((ended, status, unsafe { usage.assume_init() }))
}

/// `getrusage(2)` of the calling thread (`RUSAGE_THREAD`, Linux 2.6.26).
pub(crate) fn thread_usage() -> Result<libc::rusage, Errno> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one rusage at the pointer, which lives until the end of this function.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    done(result.into())?;
    // SAFETY: rusage is a structure of integers, for which zeroed memory is a valid value.
    Ok(unsafe { usage.assume_init() })
}

/// `sysconf(3)` with `_SC_PAGESIZE`: the size of a small page in bytes.
pub(crate) fn page_size() -> usize {
    // SAFETY: no pointers; the C library reads what the kernel passed at start.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(4096)
}

/// `perf_event_open(2)`, closed by `execve(2)`.
pub(crate) fn perf_event_open(attributes: &Attributes, counted: Counted) -> Result<OwnedFd, Errno> {
    const CLOSE_ON_EXEC: c_ulong = 1 << 3;
    let attributes: *const Attributes = attributes;
    // 0 is the calling thread; -1 is all threads, any CPU, and no group.
    let (thread, cpu): (c_long, c_long) = match counted {
        Counted::ThisThread => (0, -1),
        Counted::AllOn(cpu) => (-1, c_long::from(cpu)),
    };
    let no_group: c_long = -1;
    // SAFETY: the kernel reads as many bytes at the pointer as the structure says that it has, which is
    // its size; when it knows a larger form it takes the rest as zero. It writes nothing but the size
    // it expects, into the same structure and only after E2BIG, which a size that it knows never gives.
    let descriptor =
        unsafe { libc::syscall(libc::SYS_perf_event_open, attributes, thread, cpu, no_group, CLOSE_ON_EXEC) };
    let descriptor = done(descriptor)? as c_int;
    // SAFETY: the kernel has just opened this descriptor for us, and no one else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Argument of `PAGEMAP_SCAN`: `struct pm_scan_arg` of `include/uapi/linux/fs.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScanArgument {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_length: u64,
    most_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}

/// A run of pages: `struct page_region` of `include/uapi/linux/fs.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) categories: u64,
}

const _: () = assert!(size_of::<ScanArgument>() == 96, "PM_SCAN_ARG_SIZE_VER0");
const _: () = assert!(size_of::<Region>() == 24, "struct page_region");

/// `PAGEMAP_SCAN`, the number of the `ioctl(2)`.
const PAGEMAP_SCAN: libc::Ioctl = libc::_IOWR::<ScanArgument>(b'f' as u32, 16);

/// `ioctl(2)` with `PAGEMAP_SCAN` on an open `pagemap`: runs of pages that have any of some categories, with
/// those of their categories that are to be returned. Returns how many runs it wrote, and the address up to
/// which it looked. Linux 6.7.
pub(crate) fn pagemap_scan(
    pagemap: BorrowedFd<'_>,
    (start, end): (u64, u64),
    (any_of, returned): (u64, u64),
    regions: &mut [Region],
) -> Result<(usize, u64), Errno> {
    let mut argument = ScanArgument {
        size: size_of::<ScanArgument>() as u64,
        start,
        end,
        regions: regions.as_mut_ptr() as u64,
        regions_length: regions.len() as u64,
        any_of,
        returned,
        ..ScanArgument::default()
    };
    let pointer: *mut ScanArgument = &mut argument;
    // SAFETY: the kernel reads and writes the 96 bytes that the number of the call names, at a pointer that
    // lives until the end of this function, and writes at most `regions_length` regions into the exclusively
    // borrowed slice. No flag is set, so that it changes nothing of the pages. A descriptor of another file
    // does not know the number (ENOTTY).
    let written = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, pointer) };
    done(written.into()).map(|written| (written as usize, argument.walk_end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_raw_sys::general as numbers;
    use linux_raw_sys::mempolicy as kernel;
    use nodewise_machine::{ModeFlags, PolicyMode};

    #[test]
    fn mode_numbers_and_flags_are_those_of_the_kernel_header() {
        for (mode, expected) in [
            (PolicyMode::Default, kernel::MPOL_DEFAULT),
            (PolicyMode::Preferred, kernel::MPOL_PREFERRED),
            (PolicyMode::Bind, kernel::MPOL_BIND),
            (PolicyMode::Interleave, kernel::MPOL_INTERLEAVE),
            (PolicyMode::Local, kernel::MPOL_LOCAL),
            (PolicyMode::PreferredMany, kernel::MPOL_PREFERRED_MANY),
            (PolicyMode::WeightedInterleave, kernel::MPOL_WEIGHTED_INTERLEAVE),
        ] {
            assert_eq!(u32::from(mode.number()), expected as u32, "{mode}");
        }
        assert_eq!(PolicyMode::ALL.len(), kernel::MPOL_MAX as usize);
        for (flag, expected) in [
            (ModeFlags::STATIC_NODES, kernel::MPOL_F_STATIC_NODES),
            (ModeFlags::RELATIVE_NODES, kernel::MPOL_F_RELATIVE_NODES),
            (ModeFlags::NUMA_BALANCING, kernel::MPOL_F_NUMA_BALANCING),
        ] {
            assert_eq!(u32::from(flag.bits()), expected, "{flag}");
        }
    }

    #[test]
    fn call_flags_are_those_of_the_kernel_header() {
        for (ours, expected) in [
            (MPOL_F_NODE, kernel::MPOL_F_NODE),
            (MPOL_F_ADDR, kernel::MPOL_F_ADDR),
            (MPOL_F_MEMS_ALLOWED, kernel::MPOL_F_MEMS_ALLOWED),
            (MPOL_MF_STRICT, kernel::MPOL_MF_STRICT),
            (MPOL_MF_MOVE, kernel::MPOL_MF_MOVE),
            (MPOL_MF_MOVE_ALL, kernel::MPOL_MF_MOVE_ALL),
            (libc::MADV_HUGEPAGE, numbers::MADV_HUGEPAGE),
            (libc::MADV_NOHUGEPAGE, numbers::MADV_NOHUGEPAGE),
            (libc::MADV_DONTFORK, numbers::MADV_DONTFORK),
            (libc::MADV_POPULATE_WRITE, numbers::MADV_POPULATE_WRITE),
            (libc::MADV_POPULATE_READ, numbers::MADV_POPULATE_READ),
            (libc::MAP_HUGETLB, numbers::MAP_HUGETLB),
            (libc::MAP_HUGE_SHIFT, numbers::MAP_HUGE_SHIFT),
            (libc::PR_SET_THP_DISABLE, linux_raw_sys::prctl::PR_SET_THP_DISABLE),
            (libc::PR_GET_THP_DISABLE, linux_raw_sys::prctl::PR_GET_THP_DISABLE),
        ] {
            assert_eq!(i64::from(ours), i64::from(expected));
        }
    }

    #[test]
    fn call_numbers_are_those_of_the_kernel_header() {
        for (ours, expected) in [
            (libc::SYS_get_mempolicy, numbers::__NR_get_mempolicy),
            (libc::SYS_set_mempolicy, numbers::__NR_set_mempolicy),
            (libc::SYS_mbind, numbers::__NR_mbind),
            (libc::SYS_set_mempolicy_home_node, numbers::__NR_set_mempolicy_home_node),
            (libc::SYS_migrate_pages, numbers::__NR_migrate_pages),
            (libc::SYS_move_pages, numbers::__NR_move_pages),
            (libc::SYS_sched_setaffinity, numbers::__NR_sched_setaffinity),
            (libc::SYS_sched_getaffinity, numbers::__NR_sched_getaffinity),
            (libc::SYS_getcpu, numbers::__NR_getcpu),
            (libc::SYS_perf_event_open, numbers::__NR_perf_event_open),
        ] {
            assert_eq!(ours, c_long::from(expected));
        }
    }

    #[test]
    fn the_argument_of_a_scan_is_that_of_the_kernel_header() {
        use std::mem::offset_of;
        assert_eq!(size_of::<ScanArgument>(), size_of::<numbers::pm_scan_arg>());
        assert_eq!(offset_of!(ScanArgument, walk_end), offset_of!(numbers::pm_scan_arg, walk_end));
        assert_eq!(offset_of!(ScanArgument, regions), offset_of!(numbers::pm_scan_arg, vec));
        assert_eq!(offset_of!(ScanArgument, any_of), offset_of!(numbers::pm_scan_arg, category_anyof_mask));
        assert_eq!(offset_of!(ScanArgument, returned), offset_of!(numbers::pm_scan_arg, return_mask));
        assert_eq!(size_of::<Region>(), size_of::<numbers::page_region>());
        // _IOWR('f', 16, struct pm_scan_arg), where read and write are the two highest bits.
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        assert_eq!(PAGEMAP_SCAN as u32, 3 << 30 | 96 << 16 | u32::from(b'f') << 8 | 16);
    }

    #[test]
    fn maxnode_is_one_more_than_the_bits_of_the_mask() {
        // numactl's git head of 2025-10 passes the bits themselves and loses the highest node of
        // every mask that is exactly as long as needed.
        assert_eq!(mask(&[0b1010]).1, BITS_PER_WORD as c_ulong + 1);
        assert_eq!(mask(&[0, 1]).1, 2 * BITS_PER_WORD as c_ulong + 1);
        assert_eq!(mask(&[]), (ptr::null(), 0));
    }
}
