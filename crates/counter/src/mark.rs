//! Marks: messages of a program in the guest to the plugin.
//!
//! A mark is the instruction [`INSTRUCTION`], a no-op of seven bytes, with [`MAGIC`] and the kind of mark in `rax` and three
//! arguments in `rdi`, `rsi` and `rdx`. Outside of a guest that is counted it does nothing.

/// `nopl disp32(%rax)`; the displacement says whose it is.
pub const INSTRUCTION: [u8; 7] = [0x0f, 0x1f, 0x80, b'e', b'd', b'o', b'n'];
/// The upper 48 bits of `rax`; the lower 16 are the kind of mark.
pub const MAGIC: u64 = u64::from_be_bytes(*b"nodewi\0\0");

/// Kinds of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum MarkKind {
    /// A function of the guest's kernel ([`Hook`]) is at an address.
    Hook = 1,
    /// Memory from an address up to another is a node's.
    Memory = 2,
    /// The offset of a [`Field`] in the kernel's structure.
    Field = 3,
    /// All of that is known: QEMU translates all code again, with the callbacks of counting.
    Ready = 4,
    /// The task that makes the mark is the first to be counted, from its n-th `execve` on.
    Start = 5,
    /// The process that makes the mark enters a phase, whose name is the bytes of the three arguments, filled up with
    /// zeros; without a name it is in none. `include/nodewise.h` has this mark.
    Phase = 6,
}

impl MarkKind {
    /// The kind by what is in `rax`.
    pub const fn from_word(word: u64) -> Option<Self> {
        const ALL: [MarkKind; 6] = [
            MarkKind::Hook,
            MarkKind::Memory,
            MarkKind::Field,
            MarkKind::Ready,
            MarkKind::Start,
            MarkKind::Phase,
        ];
        if word & !0xffff != MAGIC {
            return None;
        }
        let mut number = 0;
        while number < ALL.len() {
            if ALL[number] as u64 == word & 0xffff {
                return Some(ALL[number]);
            }
            number += 1;
        }
        None
    }

    /// The word for `rax`.
    pub const fn word(self) -> u64 {
        MAGIC | self as u64
    }
}

/// Functions of the guest's kernel that say which task runs, and whose memory it uses.
///
/// # Source
/// `arch/x86/entry/entry_64.S`, `kernel/sched/core.c`, `fs/exec.c`, `mm/memory.c`; all of them Linux 5.8 or older, and
/// there in 6.18.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Hook {
    /// `__switch_to_asm(prev, next)`: the CPU goes on with the second task.
    Switch = 0,
    /// `wake_up_new_task(task)`: the current task has made another.
    Start = 1,
    /// `do_task_dead()`: the current task has ended, and the kernel does nothing more for it.
    Exit = 2,
    /// `begin_new_exec(bprm)`: the current task becomes another program, and `execve` cannot fail any more.
    Exec = 3,
    /// `handle_mm_fault(vma, address, flags, regs)`: a page of a mapping is used for the first time, or written to.
    Fault = 4,
}

impl Hook {
    /// All of them, with the kernel's names.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Switch, "__switch_to_asm"),
        (Self::Start, "wake_up_new_task"),
        (Self::Exit, "do_task_dead"),
        (Self::Exec, "begin_new_exec"),
        (Self::Fault, "handle_mm_fault"),
    ];
}

/// Members of the kernel's structures: who a task is, and whose the memory of a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Field {
    /// The number of a thread.
    Pid = 0,
    /// The number of its process.
    Tgid = 1,
    /// Its name, at most 15 bytes and a NUL.
    Comm = 2,
    /// Its address space.
    Mm = 3,
    /// The first address of a mapping.
    Start = 4,
    /// The address behind its last.
    End = 5,
    /// Its address space.
    Space = 6,
    /// Its file.
    File = 7,
    /// The path of a file, the last part of a path, the name of that, the text of a name.
    Path = 8,
    Entry = 9,
    Name = 10,
    Text = 11,
    /// Where the heap of an address space begins and ends, and where its stack began.
    HeapStart = 12,
    HeapEnd = 13,
    Stack = 14,
    /// Flags of a mapping, and where in its file it begins, in pages.
    Flags = 15,
    Offset = 16,
    /// The folder of an entry.
    Parent = 17,
    /// The tree of mappings of an address space, and its root; ends of parts of a node, and the parts, of plain nodes and of
    /// those that keep gaps.
    Tree = 18,
    Root = 19,
    Pivots = 20,
    Parts = 21,
    PivotsWithGaps = 22,
    PartsWithGaps = 23,
    /// The mount of a path; the root of a mount, the mount in which it is and the entry at which; what paths name of a mount.
    PathMount = 24,
    MountRoot = 25,
    MountParent = 26,
    MountPoint = 27,
    MountNamed = 28,
}

impl Field {
    /// All of them, with the kernel's structures and names.
    ///
    /// # Source
    /// `linux/sched.h`, `linux/mm_types.h`, `linux/fs.h`, `linux/path.h`, `linux/dcache.h`, `linux/maple_tree.h`, `linux/mount.h`,
    /// `fs/mount.h`; Linux 6.1 to 6.18.
    pub const ALL: [(Self, (&'static str, &'static str)); 29] = [
        (Self::Pid, ("task_struct", "pid")),
        (Self::Tgid, ("task_struct", "tgid")),
        (Self::Comm, ("task_struct", "comm")),
        (Self::Mm, ("task_struct", "mm")),
        (Self::Start, ("vm_area_struct", "vm_start")),
        (Self::End, ("vm_area_struct", "vm_end")),
        (Self::Space, ("vm_area_struct", "vm_mm")),
        (Self::File, ("vm_area_struct", "vm_file")),
        (Self::Path, ("file", "f_path")),
        (Self::Entry, ("path", "dentry")),
        (Self::Name, ("dentry", "d_name")),
        (Self::Text, ("qstr", "name")),
        (Self::HeapStart, ("mm_struct", "start_brk")),
        (Self::HeapEnd, ("mm_struct", "brk")),
        (Self::Stack, ("mm_struct", "start_stack")),
        (Self::Flags, ("vm_area_struct", "vm_flags")),
        (Self::Offset, ("vm_area_struct", "vm_pgoff")),
        (Self::Parent, ("dentry", "d_parent")),
        (Self::Tree, ("mm_struct", "mm_mt")),
        (Self::Root, ("maple_tree", "ma_root")),
        (Self::Pivots, ("maple_range_64", "pivot")),
        (Self::Parts, ("maple_range_64", "slot")),
        (Self::PivotsWithGaps, ("maple_arange_64", "pivot")),
        (Self::PartsWithGaps, ("maple_arange_64", "slot")),
        (Self::PathMount, ("path", "mnt")),
        (Self::MountRoot, ("vfsmount", "mnt_root")),
        (Self::MountParent, ("mount", "mnt_parent")),
        (Self::MountPoint, ("mount", "mnt_mountpoint")),
        (Self::MountNamed, ("mount", "mnt")),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header cannot include this file.
    #[test]
    fn the_header_has_the_same_mark() {
        let header = include_str!("../include/nodewise.h");
        let bytes = INSTRUCTION.map(|byte| format!("0x{byte:02x}")).join(", ");
        assert!(header.contains(&format!("\".byte {bytes}\"")), "{bytes}");
        let word = format!("UINT64_C(0x{:x})", MarkKind::Phase.word());
        assert!(header.contains(&word), "{word}");
    }

    #[test]
    fn a_kind_is_read_from_its_own_word_only() {
        for number in 1..7 {
            let kind = MarkKind::from_word(MAGIC | number).unwrap();
            assert_eq!((kind as u64, kind.word()), (number, MAGIC | number));
        }
        for word in [0, 1, MAGIC, MAGIC | 7, MAGIC | 0xffff, u64::MAX] {
            assert_eq!(MarkKind::from_word(word), None, "{word:x}");
        }
    }

    #[test]
    fn functions_and_members_are_numbered_in_their_order() {
        assert!(Hook::ALL.iter().zip(0..).all(|((hook, _), number)| *hook as u16 == number));
        assert!(Field::ALL.iter().zip(0..).all(|((field, _), number)| *field as u16 == number));
    }
}
