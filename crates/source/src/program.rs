//! The program of a process: what it is, how it was started, and what it uses.

pub mod devices;
mod elf;
pub mod running;
mod version;

use std::collections::BTreeSet;

use nodewise_machine::{Bytes, CpuSet, NodeId};

use crate::parse::{maps, set};
use crate::process::{self, Pid, claims, search};
use crate::tree::Tree;
use crate::{file, spare};

/// The most bytes of a command line that are read.
const MOST_LINE: usize = 1 << 16;

/// The program of a process. `None`: the kernel does not say, or only to the user of the process. No text is fit for a
/// terminal.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProgramFiles {
    /// The name that it gave itself.
    pub name: Option<String>,
    /// The path of the file that it runs.
    pub exe: Option<String>,
    /// Its command line.
    pub words: Option<Vec<String>>,
    /// File names of the libraries that it has loaded.
    pub libraries: Option<Vec<String>>,
    /// The most that it had resident.
    pub peak: Option<Bytes>,
    /// Memory that it locked.
    pub locked: Option<Bytes>,
    /// Whether a thread of it has a real-time policy.
    pub real_time: Option<bool>,
    /// The least limit of its control groups; `None` inside: there is none.
    pub limit: Option<Option<Bytes>>,
    /// Nodes of the accelerators and network adapters whose files it has open; `None` inside: the node is not known.
    pub devices: Option<Vec<Option<NodeId>>>,
}

/// Reads them. What is missing stays `None`: processes end while they are looked at.
///
/// # Source
/// `/proc/PID/{comm,exe,cmdline,maps,status,cgroup,fd}` and `/proc/PID/task/TID/stat`.
pub fn read(tree: &Tree, pid: Pid) -> ProgramFiles {
    let mut line = Vec::new();
    let has_line = search::command_line(tree, pid, MOST_LINE, &mut line).unwrap_or(false) && !line.is_empty();
    let status = process::status(tree, pid).ok().flatten().map(|parsed| parsed.value).unwrap_or_default();
    ProgramFiles {
        name: search::name(tree, pid).ok().flatten().map(|name| String::from_utf8_lossy(&name).into_owned()),
        exe: tree.link(&format!("/proc/{pid}/exe")).ok().flatten(),
        words: has_line.then(|| words(&line)),
        libraries: libraries(tree, pid),
        peak: status.peak,
        locked: status.locked,
        real_time: claims::threads(tree, pid).and_then(|threads| claims::is_realtime(tree, pid, &threads)),
        limit: spare::limit(tree, pid),
        devices: devices::open(tree, pid).map(|open| open.into_iter().map(|device| device.node).collect()),
    }
}

/// CPUs that the scheduler leaves alone.
///
/// # Source
/// `/sys/devices/system/cpu/isolated`, Linux 4.2.
pub fn isolated_cpus(tree: &Tree) -> Option<CpuSet> {
    file::value(tree, "/sys/devices/system/cpu/isolated", |text| set::list(text.trim())).ok().flatten()
}

fn words(line: &[u8]) -> Vec<String> {
    let line = line.strip_suffix(b"\0").unwrap_or(line);
    line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// File names of mapped libraries.
fn libraries(tree: &Tree, pid: Pid) -> Option<Vec<String>> {
    let mut found = BTreeSet::new();
    let mut problems = crate::parse::Problems::default();
    let there = tree.read_lines(&format!("/proc/{pid}/maps"), &mut |line| {
        // Most lines name no library, and long lists have many thousand lines.
        if !line.contains(".so") {
            return;
        }
        let mapping = maps::parse_line(line, 0, &mut problems);
        let path = mapping.as_ref().and_then(maps::Mapping::path).map(|(path, _)| path);
        let name = path.and_then(|path| path.rsplit('/').next()).filter(|name| name.contains(".so"));
        found.extend(name.map(str::to_owned));
    });
    there.ok()?.then(|| found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Memory, ReadCause};

    const STAT: &str =
        "7 (x) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0 9 4096 1 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1";

    fn files() -> Memory {
        Memory::new()
            .file("/proc/7/comm", "mongod\n")
            .file("/proc/7/cmdline", b"/usr/bin/mongod\0--config\0\0a\xff\0")
            .file("/proc/7/status", "VmHWM:\t 2048 kB\nVmLck:\t 0 kB\n")
            .file("/proc/7/task/7/stat", format!("{STAT} 0 0\n"))
            .file("/proc/7/task/8/stat", format!("{STAT} 50 1\n"))
            .file("/proc/7/cgroup", "0::/a/b\n")
            .file("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
            .file("/sys/fs/cgroup/a/memory.max", "1073741824\n")
            .file("/sys/fs/cgroup/a/b/memory.max", "max\n")
            .file(
                "/proc/7/maps",
                "7f00-7f01 r-xp 00000000 08:01 5  /usr/lib/libjvm.so\n7f02-7f03 rw-p 00000000 00:00 0 \n7f04-7f05 r--p 00000000 08:01 6  /usr/lib/libc.so.6 (deleted)\n",
            )
    }

    #[test]
    fn a_program_is_read_as_far_as_it_is_open() {
        let found = read(&Tree::memory(files()), Pid::new(7));
        assert_eq!(found.name.as_deref(), Some("mongod"));
        assert_eq!(found.words.unwrap(), ["/usr/bin/mongod", "--config", "", "a\u{fffd}"]);
        assert_eq!(found.libraries.unwrap(), ["libc.so.6", "libjvm.so"]);
        assert_eq!((found.peak, found.locked), (Some(Bytes::from_mib(2)), Some(Bytes::new(0))));
        assert_eq!(found.real_time, Some(true));
        assert_eq!(found.limit, Some(Some(Bytes::from_gib(1))));
        assert_eq!((found.exe, found.devices), (None, None), "this user may not see them");
    }

    #[test]
    fn nothing_is_known_of_a_process_that_is_closed_or_has_ended() {
        assert_eq!(read(&Tree::memory(Memory::new()), Pid::new(7)), ProgramFiles::default());
        let closed = Memory::new().unreadable("/proc/7/maps", ReadCause::System(13));
        assert_eq!(read(&Tree::memory(closed), Pid::new(7)).libraries, None);
    }

    #[test]
    fn this_process_is_read() {
        let tree = Tree::live();
        let found = read(&tree, Pid::new(std::process::id()));
        assert!(found.exe.is_some() && found.words.is_some_and(|words| !words.is_empty()), "{:?}", found.exe);
        assert!(found.peak > Some(Bytes::new(0)));
        let _ = isolated_cpus(&tree);
    }
}
