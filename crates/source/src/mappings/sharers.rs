//! Which other processes map the same files and the same shared memory.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::Pid;
use nodewise_machine::mapping::FileId;

use crate::parse::Problems;
use crate::parse::maps;
use crate::process::search;
use crate::tree::{ReadError, Tree};

/// The processes that map some files.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Sharers {
    /// By file, each process once.
    pub by_file: BTreeMap<FileId, BTreeSet<Pid>>,
    /// How many processes could not be read.
    pub unreadable: usize,
}

/// Looks for these files in the mappings of all processes but one. What ends meanwhile is left out.
///
/// # Source
/// `/proc/PID/maps`: the same device and inode.
///
/// # Errors
/// A list of processes that cannot be read.
pub fn sharers(tree: &Tree, files: &BTreeSet<FileId>, but: Pid) -> Result<Sharers, ReadError> {
    let mut sharers = Sharers::default();
    for pid in search::all(tree)?.into_iter().filter(|pid| *pid != but) {
        let mut problems = Problems::default();
        let read = tree.read_lines(&format!("/proc/{pid}/maps"), &mut |line| {
            let file = maps::parse_line(line, 0, &mut problems).and_then(|mapping| mapping.file);
            if let Some(file) = file.filter(|file| files.contains(file)) {
                sharers.by_file.entry(file).or_default().insert(pid);
            }
        });
        if read.is_err_and(|error| error.cause.is_permission()) {
            sharers.unreadable += 1;
        }
    }
    Ok(sharers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Memory, ReadCause};

    #[test]
    fn the_same_object_is_found_under_any_name() {
        let tree = Tree::memory(
            Memory::new()
                .file("/proc/7/maps", "1000-2000 rw-s 0 00:19 5 /dev/shm/a\n")
                .file(
                    "/proc/8/maps",
                    "5000-6000 rw-s 0 00:19 5 /mnt/b (deleted)\n7000-8000 rw-s 0 00:19 5 /mnt/b\n",
                )
                .file("/proc/9/maps", "1000-2000 rw-s 0 00:1a 5 /dev/shm/a\nnonsense\n")
                .unreadable("/proc/10/maps", ReadCause::System(13)),
        );
        let file = FileId { device: (0, 0x19), inode: 5 };
        let found = sharers(&tree, &BTreeSet::from([file]), Pid::new(7)).unwrap();
        assert_eq!(found.by_file, BTreeMap::from([(file, BTreeSet::from([Pid::new(8)]))]));
        assert_eq!(found.unreadable, 1);
    }
}
