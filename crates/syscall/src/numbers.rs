//! Calls with their arguments as plain numbers, for those who want to know what a kernel answers to any.
//!
//! The rest of this crate says what makes sense, and no more. Here an address may lie within a page, a mask be
//! shorter than declared, and a flag be one that no kernel knows.

use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::ptr;

use crate::error::Errno;

/// Words that are more than a kernel reads of a node mask, or writes to one: a page of them, and one.
const WORDS: usize = 513;

/// Where a pointer to a node mask points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pointer {
    Null,
    /// An address that no program can read.
    Unreadable,
    /// A page and more in which the bits of these numbers are set; those that it has no room for are left out.
    Bits(Vec<u32>),
}

/// The memory that a pointer points to, for as long as a call takes.
enum Target {
    Null,
    Unreadable,
    Words(Vec<c_ulong>),
}

impl Target {
    fn of(pointer: &Pointer) -> Self {
        let Pointer::Bits(bits) = pointer else {
            return if *pointer == Pointer::Null { Self::Null } else { Self::Unreadable };
        };
        let (mut words, width) = (vec![0; WORDS], c_ulong::BITS);
        for bit in bits {
            if let Some(word) = words.get_mut((bit / width) as usize) {
                *word |= 1 << (bit % width);
            }
        }
        Self::Words(words)
    }

    fn pointer(&self) -> *const c_ulong {
        match self {
            Self::Null => ptr::null(),
            // The last page of the address space.
            Self::Unreadable => ptr::without_provenance(!0xfff),
            Self::Words(words) => words.as_ptr(),
        }
    }
}

fn answer(result: c_long) -> Result<(), Errno> {
    if result < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// `mlockall(2)`.
///
/// # Errors
/// Those of the kernel.
pub fn mlockall(flags: c_int) -> Result<(), Errno> {
    // SAFETY: it takes no pointer, and changes no page that this process can see.
    answer(c_long::from(unsafe { libc::mlockall(flags) }))
}

/// `set_mempolicy(2)`.
///
/// # Errors
/// What the kernel answers.
pub fn set_mempolicy(mode: u32, mask: &Pointer, maxnode: u64) -> Result<(), Errno> {
    let mask = Target::of(mask);
    // SAFETY: the kernel reads at the pointer, as far as it can be read, and writes nothing.
    answer(unsafe { libc::syscall(libc::SYS_set_mempolicy, u64::from(mode), mask.pointer(), maxnode) })
}

/// `mbind(2)`.
///
/// # Errors
/// What the kernel answers.
pub fn mbind(
    (address, length): (u64, u64),
    mode: u32,
    mask: &Pointer,
    maxnode: u64,
    flags: u32,
) -> Result<(), Errno> {
    let (mask, mode, flags) = (Target::of(mask), u64::from(mode), u64::from(flags));
    // SAFETY: the kernel reads at the pointer, as far as it can be read. The range is described, not
    // dereferenced: a policy and the node of a page change no content.
    let result =
        unsafe { libc::syscall(libc::SYS_mbind, address, length, mode, mask.pointer(), maxnode, flags) };
    answer(result)
}

/// `get_mempolicy(2)`, with a place for the mode and, if there is to be one, for a mask.
///
/// # Errors
/// What the kernel answers.
pub fn get_mempolicy(has_mask: bool, maxnode: u64, address: u64, flags: u64) -> Result<(), Errno> {
    let mut mode: c_int = 0;
    let mut words = [0 as c_ulong; WORDS];
    let mask = if has_mask { words.as_mut_ptr() } else { ptr::null_mut() };
    let mode: *mut c_int = &mut mode;
    // SAFETY: the kernel writes one int at `mode`, and at `mask` no more than a page, which is what it
    // refuses to go beyond (`copy_nodes_to_user`); both live until the end of this function. The address is
    // only looked up.
    answer(unsafe { libc::syscall(libc::SYS_get_mempolicy, mode, mask, maxnode, address, flags) })
}

/// `set_mempolicy_home_node(2)`. Linux 5.17.
///
/// # Errors
/// What the kernel answers.
pub fn set_mempolicy_home_node((address, length): (u64, u64), node: u64, flags: u64) -> Result<(), Errno> {
    // SAFETY: no pointers; the range is described, not dereferenced.
    answer(unsafe { libc::syscall(libc::SYS_set_mempolicy_home_node, address, length, node, flags) })
}

/// `migrate_pages(2)`, whose masks have the same number beside them.
///
/// # Errors
/// What the kernel answers.
pub fn migrate_pages(process: i32, maxnode: u64, old: &Pointer, new: &Pointer) -> Result<(), Errno> {
    let (old, new, process) = (Target::of(old), Target::of(new), i64::from(process));
    // SAFETY: the kernel reads at the pointers, as far as they can be read; moving a page changes no content.
    let result =
        unsafe { libc::syscall(libc::SYS_migrate_pages, process, maxnode, old.pointer(), new.pointer()) };
    answer(result)
}

/// `move_pages(2)` of as many pages as there are nodes for; without nodes it asks where these are.
///
/// # Errors
/// What the kernel answers, once for all pages.
pub fn move_pages(process: i32, pages: &[u64], nodes: Option<&[i32]>, flags: u32) -> Result<(), Errno> {
    let count = nodes.map_or(pages.len(), |nodes| nodes.len().min(pages.len()));
    let pages: Vec<*const c_void> =
        pages.iter().map(|page| ptr::without_provenance(*page as usize)).collect();
    let nodes = nodes.map_or(ptr::null(), <[i32]>::as_ptr);
    let mut status = vec![0 as c_int; count];
    let (process, flags) = (i64::from(process), u64::from(flags));
    // SAFETY: the kernel reads `count` pointers and, where there are any, `count` nodes, and writes `count`
    // statuses: each list is at least that long. Moving a page changes no content.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            process,
            count as c_ulong,
            pages.as_ptr(),
            nodes,
            status.as_mut_ptr(),
            flags,
        )
    };
    answer(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_reach_the_kernel_as_they_are() {
        let check = |answer: Result<(), Errno>, expected: Result<(), &str>| {
            let answer = answer.map_err(|errno| errno.name().unwrap_or("?"));
            // A container may forbid the call, or lack it.
            if !matches!(answer, Err("EPERM" | "ENOSYS")) {
                assert_eq!(answer, expected);
            }
        };
        // 99 is not a mode, and a page of bits is the most that is read.
        check(set_mempolicy(99, &Pointer::Null, 0), Err("EINVAL"));
        check(set_mempolicy(2, &Pointer::Bits(vec![0]), 8 * 4096 + 2), Err("EINVAL"));
        check(set_mempolicy(2, &Pointer::Unreadable, 65), Err("EFAULT"));
        check(mbind((1, 4096), 0, &Pointer::Null, 0, 0), Err("EINVAL"));
        check(get_mempolicy(true, 0, 0, 0), Err("EINVAL"));
        check(get_mempolicy(false, 0, 0, 0), Ok(()));
        check(set_mempolicy_home_node((0, 4096), u64::MAX, 0), Err("EINVAL"));
        check(migrate_pages(0, 65, &Pointer::Unreadable, &Pointer::Null), Err("EFAULT"));
        check(move_pages(0, &[], None, 64), Err("EINVAL"));
    }

    #[test]
    fn bits_without_room_are_left_out() {
        let Target::Words(words) = Target::of(&Pointer::Bits(vec![1, 64, u32::MAX])) else {
            panic!("bits have words");
        };
        assert_eq!((words[0], words[1], words.len()), (2, 1, WORDS));
    }
}
