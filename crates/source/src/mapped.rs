//! The mappings of a process for whoever moves its pages: where each begins and ends, its kind, the nodes of its
//! pages.
//!
//! Two files are joined by the address of a mapping: `numa_maps` has nodes and no ends, `smaps` ends and no nodes. A
//! mapping that comes or goes between the two readings is left out.

pub mod saved;

use std::collections::BTreeMap;
use std::fmt;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, NodeId};

use crate::parse::numa_maps::{Mapping, MappingKind, parse_line};
use crate::parse::{Problems, pid_stat, smaps};
use crate::paths;
use crate::process::{Pid, claims};
use crate::tree::{ReadError, Tree};

/// The use of memory in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryKind {
    /// Of `brk(2)`.
    Heap,
    /// Of the main thread.
    Stack,
    /// Without a file; the stacks of other threads among it.
    Anon,
    /// Shared without a name on disk: System V segments, memfd, `/dev/shm`, shared anonymous memory.
    Shmem,
    /// A mapped file, and what was written to private mappings of it.
    File,
    /// From a pool of huge pages.
    Hugetlb,
}

impl MemoryKind {
    /// Every kind, in the order in which tables show them.
    pub const ALL: [Self; 6] = [Self::Heap, Self::Stack, Self::Anon, Self::Shmem, Self::File, Self::Hugetlb];

    /// The word for it on a command line and in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::Anon => "anon",
            Self::Shmem => "shmem",
            Self::File => "file",
            Self::Hugetlb => "hugetlb",
        }
    }

    /// The kind that a word names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The kind of a line of `numa_maps`.
    pub fn of_mapping(mapping: &Mapping) -> Self {
        const SHARED: [&str; 4] = ["/dev/zero (deleted)", "/memfd:", "/SYSV", "/dev/shm/"];
        let is_shared = |file: &String| SHARED.iter().any(|name| file.starts_with(name));
        match (&mapping.kind, &mapping.file) {
            _ if mapping.huge => Self::Hugetlb,
            (MappingKind::Heap, _) => Self::Heap,
            (MappingKind::Stack, _) => Self::Stack,
            (_, None) => Self::Anon,
            (_, Some(file)) if is_shared(file) => Self::Shmem,
            (_, Some(_)) => Self::File,
        }
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A mapping that has pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    pub start: u64,
    pub end: u64,
    pub kind: MemoryKind,
    /// The size of the pages that are counted.
    pub page_size: Bytes,
    /// Pages on each node.
    pub pages: BTreeMap<NodeId, u64>,
    /// Whether some of it is in transparent huge pages; true where the kernel does not say.
    pub may_be_huge: bool,
}

/// Reads the mappings of a process that have pages, by address; `None` when there is no such process.
///
/// # Source
/// `/proc/PID/numa_maps` and `/proc/PID/smaps`. Reading each walks the page tables: some 20 ms per GiB of small pages.
///
/// # Errors
/// A file that cannot be read.
pub fn mappings(tree: &Tree, pid: Pid) -> Result<Option<Vec<Mapped>>, ReadError> {
    Ok(mappings_and_policies(tree, pid)?.map(|read| read.mappings))
}

/// Mappings of a process that have pages, and the policies over all of its mappings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingsAndPolicies {
    pub mappings: Vec<Mapped>,
    /// As [`claims::mapping_policies`] reads them.
    pub policies: Option<Vec<String>>,
}

/// Reads [`mappings`], and from the same walk of the page tables the policies over them.
///
/// # Errors
/// A file that cannot be read.
pub fn mappings_and_policies(tree: &Tree, pid: Pid) -> Result<Option<MappingsAndPolicies>, ReadError> {
    let (mut lines, mut problems) = (Vec::new(), Problems::default());
    let mut policies = claims::MappingPolicies::default();
    let there = tree.read_lines(&paths::numa_maps(pid), &mut |line| {
        policies.push(line);
        // Most mappings have no pages, and say nothing then.
        if line.contains(" N") {
            lines.extend(parse_line(line, 0, &mut problems));
        }
    })?;
    if !there {
        return Ok(None);
    }
    let mut extents = String::new();
    let there = tree.read_lines(&paths::smaps(pid), &mut |line| {
        let is_range = line.starts_with(|c: char| matches!(c, '0'..='9' | 'a'..='f'));
        if is_range || line.starts_with("AnonHugePages:") {
            // What follows the two addresses is not needed.
            let kept = if is_range { line.split(' ').next().unwrap_or_default() } else { line };
            extents.push_str(kept);
            extents.push('\n');
        }
    })?;
    if !there {
        return Ok(None);
    }
    let extents: BTreeMap<u64, smaps::Mapping> =
        smaps::parse(&extents).value.into_iter().map(|extent| (extent.start, extent)).collect_map();
    let mappings = lines.iter().filter_map(|line| joined(line, extents.get(&line.start)?)).collect();
    Ok(Some(MappingsAndPolicies { mappings, policies: policies.finish() }))
}

fn joined(line: &Mapping, extent: &smaps::Mapping) -> Option<Mapped> {
    let page_size = line.page_size.filter(|size| size.get().is_power_of_two())?;
    let mut pages = BTreeMap::new();
    for (node, count) in &line.pages {
        let sum: &mut u64 = pages.entry(*node).or_default();
        *sum = sum.saturating_add(*count);
    }
    Some(Mapped {
        start: extent.start,
        end: extent.end,
        kind: MemoryKind::of_mapping(line),
        page_size,
        pages,
        // The field counts anonymous pages only.
        may_be_huge: match MemoryKind::of_mapping(line) {
            MemoryKind::Hugetlb => false,
            MemoryKind::Shmem | MemoryKind::File => true,
            _ => extent.anon_huge.is_none_or(|size| size > Bytes::new(0)),
        },
    })
}

/// The moment in which a process was started, in ticks since the start of the system: with its number it names a
/// process for as long as the system runs. `None` when there is no such process.
///
/// # Source
/// `/proc/PID/stat`, field 22 of proc(5).
///
/// # Errors
/// A file that cannot be read.
pub fn started_at_ticks(tree: &Tree, pid: Pid) -> Result<Option<u64>, ReadError> {
    let text = tree.read_text(&format!("{}/stat", paths::process(pid)))?;
    Ok(text.and_then(|text| Some(pid_stat::parse(&text).ok()?.started_ticks)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;

    const NUMA_MAPS: &str = "\
00400000 default file=/bin/x mapped=2 N0=2 kernelpagesize_kB=4
7f0000000000 bind:0 anon=1024 dirty=1024 N0=1000 N1=24 kernelpagesize_kB=4
7f0000400000 default heap anon=1 N1=1 kernelpagesize_kB=4
7f0000800000 default file=/SYSV00000000\\040(deleted) huge dirty=2 N0=2 kernelpagesize_kB=2048
7f0000f00000 default file=/memfd:x\\040(deleted) dirty=2 N0=2 kernelpagesize_kB=4
7f0001000000 default
7fff00000000 default stack anon=3 N0=3 kernelpagesize_kB=4
";
    const SMAPS: &str = "\
00400000-00402000 r-xp 00000000 08:01 7 /bin/x
AnonHugePages:         0 kB
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
7f0000400000-7f0000500000 rw-p 00000000 00:00 0 [heap]
7f0000800000-7f0000c00000 rw-s 00000000 00:0f 3 /SYSV00000000 (deleted)
AnonHugePages:         0 kB
7f0000f00000-7f0000f02000 rw-s 00000000 00:01 9 /memfd:x (deleted)
";

    #[test]
    fn mappings_have_ends_kinds_and_nodes() {
        let tree = Tree::memory(
            Memory::new()
                .file("/proc/7/numa_maps", NUMA_MAPS)
                .file("/proc/7/smaps", SMAPS)
                .file("/proc/7/stat", format!("7 (a) b) S {} 4711 0 0\n", "1 ".repeat(18))),
        );
        let found = mappings(&tree, Pid::new(7)).unwrap().unwrap();
        let short: Vec<(u64, MemoryKind, bool)> =
            found.iter().map(|mapped| (mapped.end - mapped.start, mapped.kind, mapped.may_be_huge)).collect();
        assert_eq!(
            short,
            [
                (0x2000, MemoryKind::File, true),
                (0x40_0000, MemoryKind::Anon, true),
                (0x10_0000, MemoryKind::Heap, true),
                (0x40_0000, MemoryKind::Hugetlb, false),
                (0x2000, MemoryKind::Shmem, true),
            ],
            "the stack came between the two files"
        );
        assert_eq!(found[1].pages, [(NodeId::new(0), 1000), (NodeId::new(1), 24)].into());
        assert_eq!(started_at_ticks(&tree, Pid::new(7)).unwrap(), Some(4711));
        assert_eq!(mappings(&tree, Pid::new(8)).unwrap(), None);
        let read = mappings_and_policies(&tree, Pid::new(7)).unwrap().unwrap();
        assert_eq!((read.policies, read.mappings), (Some(vec!["bind:0".to_owned()]), found));
        assert_eq!(started_at_ticks(&tree, Pid::new(8)).unwrap(), None);
    }

    #[test]
    fn this_process_has_mappings_and_a_start() {
        let (tree, me) = (Tree::live(), Pid::new(std::process::id()));
        assert!(started_at_ticks(&tree, me).unwrap().is_some_and(|ticks| ticks > 0));
        // A kernel without NUMA has no numa_maps.
        let found = mappings(&tree, me).unwrap();
        assert!(found.is_none_or(|found| found.iter().any(|mapped| mapped.kind == MemoryKind::Stack)));
    }

    #[test]
    fn kinds_have_words() {
        for kind in MemoryKind::ALL {
            assert_eq!(MemoryKind::from_word(kind.word()), Some(kind));
        }
        assert_eq!(MemoryKind::from_word("code"), None);
    }
}
