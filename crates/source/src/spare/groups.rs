//! The limits of memory of a process's control groups, with their use and what can be reclaimed inside.

use nodewise_machine::Bytes;
use nodewise_machine::printable::printable;

use super::{NO_LIMIT, groups};
use crate::file::{self, FileError};
use crate::parse::{ParseError, cgroup, counters, number};
use crate::process::Pid;
use crate::tree::Tree;

/// Most groups above one another; systemd and container engines make a dozen.
const MOST_LEVELS: usize = 128;

/// A version of the control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupVersion {
    /// The old hierarchy of the memory controller.
    One,
    /// The unified hierarchy.
    Two,
}

/// A control group with a limit of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitedGroup {
    pub version: GroupVersion,
    /// Its path in the hierarchy as it was read, without a slash at either end, not fit for a terminal; empty for the top of
    /// the hierarchy that this process sees, which in a container is the container.
    pub path: String,
    pub max: Option<Bytes>,
    pub high: Option<Bytes>,
    /// Memory that is charged to it and to the groups below it; `None` where that is not readable.
    pub used: Option<Bytes>,
    /// Pages in its lists of files.
    pub files: Bytes,
    /// The part of them that programs have mapped.
    pub mapped: Bytes,
    /// Memory of the kernel that can shrink.
    pub slab: Bytes,
    pub swap_max: Option<Bytes>,
    pub swap_used: Bytes,
    /// Whether the kernel kills all its processes with one of them.
    pub kills_all: bool,
}

/// The control groups of a process that have a limit of memory, its own first and then those above it; `None` where its
/// groups cannot be seen.
///
/// # Source
/// `memory.max`, `memory.high`, `memory.current`, `memory.stat` (Linux 4.5), `memory.swap.max`, `memory.swap.current` and
/// `memory.oom.group` (4.19); with version 1 `memory.limit_in_bytes`, `memory.usage_in_bytes`, and for both with swap those of
/// `memory.memsw`.
///
/// # Errors
/// A limit or a size that cannot be read or is not a number.
pub fn limited_groups(
    tree: &Tree,
    process: impl std::fmt::Display,
) -> Result<Option<Vec<LimitedGroup>>, FileError> {
    let Some(own) = groups(tree, process) else { return Ok(None) };
    let mut found = Vec::new();
    for (mount, path) in own {
        if path.split('/').count() > MOST_LEVELS {
            return Ok(None);
        }
        let mut path = path.as_str();
        loop {
            let folder = format!("{mount}/{path}");
            let folder = folder.trim_end_matches('/');
            let group = match version_two(tree, folder)? {
                Some(group) => Some(group),
                None => version_one(tree, folder)?,
            };
            found.extend(group.map(|group| LimitedGroup { path: path.to_owned(), ..group }));
            if path.is_empty() {
                break;
            }
            path = path.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }
    Ok(Some(found))
}

impl LimitedGroup {
    /// Whether a process is in this group or in one below it; `None` where its group cannot be seen.
    ///
    /// # Source
    /// `/proc/PID/cgroup`.
    pub fn holds(&self, tree: &Tree, pid: Pid) -> Option<bool> {
        let memberships = file::parsed(tree, &format!("/proc/{pid}/cgroup"), cgroup::parse).ok()??.value;
        let is_it = |member: &&cgroup::Membership| match self.version {
            GroupVersion::Two => member.is_unified(),
            GroupVersion::One => member.controllers.iter().any(|name| name == "memory"),
        };
        let path = &memberships.iter().find(is_it)?.path;
        if path.split('/').any(|part| part == "..") {
            return Some(false);
        }
        let below = path.trim_matches('/').strip_prefix(self.path.as_str());
        Some(below.is_some_and(|rest| self.path.is_empty() || rest.is_empty() || rest.starts_with('/')))
    }

    /// Its name, fit for a terminal: `/web.slice`.
    pub fn name(&self) -> String {
        format!("/{}", printable(&self.path))
    }
}

/// A size in a file of a group.
fn size(tree: &Tree, folder: &str, name: &str) -> Result<Option<Bytes>, FileError> {
    let found = file::value(tree, &format!("{folder}/{name}"), number::number::<u64>)?;
    Ok(found.map(Bytes::new))
}

/// A limit in a file of a group, which says `max` where there is none.
fn limit(tree: &Tree, folder: &str, name: &str) -> Result<Option<Bytes>, FileError> {
    let parse = |text: &str| -> Result<Option<u64>, ParseError> {
        if text.trim() == "max" {
            return Ok(None);
        }
        let found = number::number(text);
        found.map(Some).map_err(|_| ParseError::new(1, "a number of bytes or \"max\"", text.trim()))
    };
    Ok(file::value(tree, &format!("{folder}/{name}"), parse)?.flatten().map(Bytes::new))
}

/// The sums of some lines of a group's statistics.
fn stat<const N: usize>(tree: &Tree, folder: &str, lines: [&[&str]; N]) -> Result<[Bytes; N], FileError> {
    let found = file::parsed(tree, &format!("{folder}/memory.stat"), counters::parse)?;
    let of = |name: &&str| found.as_ref().and_then(|found| found.value.get(name)).unwrap_or(0);
    Ok(lines.map(|names| Bytes::new(names.iter().map(of).fold(0, u64::saturating_add))))
}

fn version_two(tree: &Tree, folder: &str) -> Result<Option<LimitedGroup>, FileError> {
    let [max, high, swap_max] = ["memory.max", "memory.high", "memory.swap.max"];
    let (max, high) = (limit(tree, folder, max)?, limit(tree, folder, high)?);
    let swap_max = limit(tree, folder, swap_max)?;
    if max.is_none() && high.is_none() && swap_max.is_none() {
        return Ok(None);
    }
    let lines: [&[&str]; 3] = [&["active_file", "inactive_file"], &["file_mapped"], &["slab_reclaimable"]];
    let [files, mapped, slab] = stat(tree, folder, lines)?;
    Ok(Some(LimitedGroup {
        version: GroupVersion::Two,
        path: String::new(),
        max,
        high,
        used: size(tree, folder, "memory.current")?,
        files,
        mapped,
        slab,
        swap_max,
        swap_used: size(tree, folder, "memory.swap.current")?.unwrap_or_default(),
        kills_all: size(tree, folder, "memory.oom.group")?.is_some_and(|set| set.get() != 0),
    }))
}

/// A group of version 1. Its limit of memory and swap together is given as one of swap alone.
fn version_one(tree: &Tree, folder: &str) -> Result<Option<LimitedGroup>, FileError> {
    let of = |name: &str| size(tree, folder, name);
    // Without a limit version 1 writes the largest number of whole pages.
    let limit = |name| of(name).map(|size| size.filter(|size| size.get() < NO_LIMIT));
    let Some(max) = limit("memory.limit_in_bytes")? else { return Ok(None) };
    let used = of("memory.usage_in_bytes")?;
    let less = |sum: Bytes, part: Bytes| Bytes::new(sum.get().saturating_sub(part.get()));
    let swap_used = of("memory.memsw.usage_in_bytes")?.zip(used).map(|(both, used)| less(both, used));
    let lines: [&[&str]; 2] = [&["total_active_file", "total_inactive_file"], &["total_mapped_file"]];
    let [files, mapped] = stat(tree, folder, lines)?;
    Ok(Some(LimitedGroup {
        version: GroupVersion::One,
        path: String::new(),
        max: Some(max),
        high: None,
        used,
        files,
        mapped,
        slab: Bytes::default(),
        swap_max: limit("memory.memsw.limit_in_bytes")?.map(|both| less(both, max)),
        swap_used: swap_used.unwrap_or_default(),
        kills_all: false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;
    use proptest::prelude::{any, prop, prop_assert, proptest};

    const TWO: &str = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";

    fn with(mounts: &str, memberships: &[(u32, &str)], files: &[(&str, &str)]) -> Tree {
        let mut memory = Memory::new().file("/proc/mounts", mounts);
        for (pid, text) in memberships {
            memory = memory.file(&format!("/proc/{pid}/cgroup"), *text);
        }
        for (path, text) in files {
            memory = memory.file(&format!("/sys/fs/cgroup/{path}"), *text);
        }
        Tree::memory(memory)
    }

    #[test]
    fn groups_with_limits_are_read_from_the_own_one_upwards() {
        let files = [
            ("web.slice/api/memory.max", "max\n"),
            ("web.slice/api/memory.high", "4096\n"),
            ("web.slice/api/memory.current", "2048\n"),
            ("web.slice/api/memory.swap.max", "0\n"),
            ("web.slice/memory.max", "8192\n"),
            ("web.slice/memory.current", "3072\n"),
            (
                "web.slice/memory.stat",
                "anon 9\nactive_file 100\ninactive_file 200\nfile_mapped 50\nslab_reclaimable 7\n",
            ),
            ("web.slice/memory.oom.group", "1\n"),
            ("memory.stat", "anon 9\n"),
        ];
        let tree = with(TWO, &[(7, "0::/web.slice/api/\n")], &files);
        let found = limited_groups(&tree, Pid::new(7)).unwrap().unwrap();
        let bytes = |size| Some(Bytes::new(size));
        let [api, slice] = &found[..] else { panic!("{found:?}") };
        assert_eq!((api.path.as_str(), api.max, api.high), ("web.slice/api", None, bytes(4096)));
        assert_eq!((api.used, api.swap_max, api.kills_all), (bytes(2048), bytes(0), false));
        assert_eq!((slice.name().as_str(), slice.max, slice.high), ("/web.slice", bytes(8192), None));
        assert_eq!((slice.files, slice.mapped, slice.slab), (Bytes::new(300), Bytes::new(50), Bytes::new(7)));
        assert!(slice.kills_all && slice.swap_max.is_none());
        let deep = format!("0::{}\n", "/a".repeat(200));
        assert_eq!(limited_groups(&with(TWO, &[(7, &deep)], &files), 7), Ok(None));
        // A container sees its own group as the top one, whatever its path says.
        let tree = with(TWO, &[(7, "0::/docker/1f\n")], &[("memory.max", "8192\n")]);
        let found = limited_groups(&tree, Pid::new(7)).unwrap().unwrap();
        assert_eq!(found.iter().map(LimitedGroup::name).collect::<Vec<_>>(), ["/"]);
        assert_eq!(found[0].used, None);
    }

    #[test]
    fn the_old_hierarchy_limits_memory_and_swap_together() {
        let mounts = "cgroup /sys/fs/cgroup cgroup rw,memory 0 0\n";
        let files = [
            ("a/memory.limit_in_bytes", "1000\n"),
            ("a/memory.usage_in_bytes", "300\n"),
            ("a/memory.memsw.limit_in_bytes", "1500\n"),
            ("a/memory.memsw.usage_in_bytes", "400\n"),
            ("a/memory.stat", "total_inactive_file 20\ntotal_mapped_file 5\ninactive_file 1\n"),
            ("memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        let tree = with(mounts, &[(7, "4:memory:/a\n0::/\n")], &files);
        let found = limited_groups(&tree, Pid::new(7)).unwrap().unwrap();
        let [group] = &found[..] else { panic!("{found:?}") };
        assert_eq!((group.swap_max, group.swap_used), (Some(Bytes::new(500)), Bytes::new(100)));
        assert_eq!((group.files, group.mapped), (Bytes::new(20), Bytes::new(5)));
    }

    #[test]
    fn groups_that_cannot_be_seen_are_unknown_and_not_free() {
        let none = |tree: &Tree| assert_eq!(limited_groups(tree, 7), Ok(None));
        none(&Tree::memory(Memory::new()));
        none(&with(TWO, &[], &[]));
        none(&with(TWO, &[(7, "0::/../other\n")], &[]));
        assert_eq!(limited_groups(&with(TWO, &[(7, "0::/a\n")], &[]), 7), Ok(Some(Vec::new())));
    }

    #[test]
    fn a_limit_that_is_not_a_number_is_an_error_with_its_file() {
        let wrong = |file: &str, text: &str| {
            let tree = with(TWO, &[(7, "0::/a\n")], &[(file, text)]);
            limited_groups(&tree, 7).unwrap_err().to_string()
        };
        let message = wrong("a/memory.max", "many\u{1b}[2J\n");
        assert!(message.starts_with("/sys/fs/cgroup/a/memory.max:1: "), "{message}");
        assert!(message.contains("a number of bytes or \"max\"") && !message.contains('\u{1b}'), "{message}");
        assert!(wrong("a/memory.high", "-1\n").contains("memory.high"));
    }

    #[test]
    fn members_are_in_the_group_or_below_it() {
        let members = [
            (7, "0::/a\n"),
            (8, "0::/a/b\n"),
            (9, "0::/ab\n"),
            (10, "0::/../a\n"),
            (11, "4:memory:/a\n"),
            (12, "0::/\n"),
        ];
        let tree = with(TWO, &members, &[("a/memory.max", "9\n"), ("memory.max", "9\n")]);
        let found = limited_groups(&tree, 7).unwrap().unwrap();
        let holds = |group: &LimitedGroup, pid| group.holds(&tree, Pid::new(pid));
        let all = |group: &LimitedGroup| [7, 8, 9, 10, 11, 12, 13].map(|pid| holds(group, pid));
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(all(&found[0]), [yes, yes, no, no, None, no, None]);
        assert_eq!(all(&found[1]), [yes, yes, yes, no, None, yes, None]);
    }

    proptest! {
        #[test]
        fn nothing_in_a_file_is_a_panic(
            path in "[a./:]{0,12}",
            texts in prop::collection::vec(prop_oneof_texts(), 7),
        ) {
            let names = ["memory.max", "memory.high", "memory.current", "memory.stat", "memory.swap.max",
                "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"];
            let paths: Vec<String> = names.iter().map(|name| format!("a/{name}")).collect();
            let files: Vec<(&str, &str)> =
                paths.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
            let memberships = format!("0::/a{path}\n");
            let tree = with(TWO, &[(7, &memberships)], &files);
            if let Ok(Some(found)) = limited_groups(&tree, 7) {
                prop_assert!(found.len() < 40);
            }
        }
    }

    fn prop_oneof_texts() -> impl proptest::strategy::Strategy<Value = String> {
        use proptest::prelude::{Just, Strategy, prop_oneof};
        prop_oneof![
            any::<u64>().prop_map(|number| format!("{number}\n")),
            Just("max\n".to_owned()),
            "active_file [0-9]{1,22}\n",
            any::<String>(),
        ]
    }
}
