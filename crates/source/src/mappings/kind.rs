//! The kind of a mapping: from its name, and from the file system that its file is on.

use std::collections::BTreeMap;

use nodewise_machine::Pid;
use nodewise_machine::mapping::MappingKind;

use crate::file;
use crate::parse::maps::Mapping;
use crate::parse::mountinfo;
use crate::tree::Tree;

/// The types of the file systems that a process sees: they distinguish kinds of files.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    types: BTreeMap<(u32, u32), String>,
}

impl Kinds {
    /// Reads them; without them shared memory is known by its names only.
    pub(super) fn read(tree: &Tree, pid: Pid) -> Self {
        let mounts = file::parsed(tree, &format!("/proc/{pid}/mountinfo"), mountinfo::parse);
        Self { types: mounts.ok().flatten().map(|mounts| mounts.value).unwrap_or_default() }
    }

    /// The kind of a mapping.
    pub(super) fn kind(&self, mapping: &Mapping) -> MappingKind {
        let Some(file) = mapping.file else {
            return match mapping.word() {
                None => MappingKind::Anonymous,
                Some("heap") => MappingKind::Heap,
                Some(word) if word == "stack" || word.starts_with("stack:") => MappingKind::Stack,
                Some(word) if word.starts_with("anon:") => MappingKind::Anonymous,
                Some(_) => MappingKind::Special,
            };
        };
        let name = mapping.name.as_deref().unwrap_or_default();
        if name == "/dev/zero" && !mapping.permissions.shared {
            return MappingKind::Anonymous;
        }
        match self.types.get(&file.device).map(String::as_str) {
            Some("tmpfs" | "ramfs") => MappingKind::Shared,
            Some("hugetlbfs") => MappingKind::HugePool,
            Some("devtmpfs" | "sysfs" | "proc") => MappingKind::Special,
            Some(_) => MappingKind::File,
            // The kernel's own mounts are in no process's list, nor are those that were unmounted.
            None => without_mount(name),
        }
    }
}

/// The kind of a file on a file system that no mount shows.
fn without_mount(name: &str) -> MappingKind {
    const SHARED: [&str; 4] = ["/dev/zero (deleted)", "/memfd:", "/SYSV", "[anon_shmem:"];
    match name {
        "/anon_hugepage" | "/anon_hugepage (deleted)" => MappingKind::HugePool,
        name if SHARED.iter().any(|known| name.starts_with(known)) => MappingKind::Shared,
        // `anon_inode:[perf_event]`, `socket:[812]`.
        name if !name.starts_with('/') => MappingKind::Special,
        _ => MappingKind::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::maps;
    use crate::tree::Memory;

    #[test]
    fn kinds_follow_names_and_file_systems() {
        let mounts = "26 1 254:0 / / rw - ext4 /dev/vda rw\n27 26 0:6 / /dev rw - devtmpfs udev rw\n\
                      28 26 0:25 / /dev/shm rw - tmpfs tmpfs rw\n29 26 0:30 / /huge rw - hugetlbfs none rw\n";
        let tree = Tree::memory(Memory::new().file("/proc/7/mountinfo", mounts));
        let kinds = Kinds::read(&tree, Pid::new(7));
        let check = |rest: &str, expected: MappingKind| {
            let parsed = maps::parse(&format!("1000-2000 {rest}"));
            assert_eq!(kinds.kind(&parsed.value[0]), expected, "{rest}");
        };
        check("rw-p 0 00:00 0", MappingKind::Anonymous);
        check("rw-p 0 00:00 0 [anon:arena]", MappingKind::Anonymous);
        check("rw-p 0 00:00 0 [heap]", MappingKind::Heap);
        check("rw-p 0 00:00 0 [stack:12]", MappingKind::Stack);
        check("r-xp 0 00:00 0 [vdso]", MappingKind::Special);
        check("rw-s 0 00:01 9 /dev/zero (deleted)", MappingKind::Shared);
        check("rw-s 0 00:01 9 /SYSV00000000 (deleted)", MappingKind::Shared);
        check("rw-s 0 00:01 0 /SYSV00000000 (deleted)", MappingKind::Shared);
        check("rw-s 0 00:01 9 /memfd:x (deleted)", MappingKind::Shared);
        check("rw-s 0 00:01 9 [anon_shmem:x]", MappingKind::Shared);
        check("rw-p 0 00:06 9 /dev/zero", MappingKind::Anonymous);
        check("rw-s 0 00:06 9 /dev/nvidia0", MappingKind::Special);
        check("rw-s 0 00:0e 9 anon_inode:[perf_event]", MappingKind::Special);
        check("rw-s 0 00:19 9 /dev/shm/x", MappingKind::Shared);
        check("rw-s 0 00:1e 9 /huge/x", MappingKind::HugePool);
        check("rw-p 0 00:0f 9 /anon_hugepage (deleted)", MappingKind::HugePool);
        check("r-xp 0 fe:00 9 /usr/bin/x", MappingKind::File);
        // A file with the name of shared memory, on a disk.
        check("r-xp 0 fe:00 9 /SYSV00000000 (deleted)", MappingKind::File);
        check("r-xp 0 fd:07 9 /gone/x (deleted)", MappingKind::File);
    }
}
