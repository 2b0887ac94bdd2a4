//! Facts of a program at work that samples do not hold: how it was started, what limits it, what it has open.
//!
//! They are never written into captures or recordings: a command line and its variables can hold secrets. Of the
//! variables only those that place programs are kept, by name.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::Bytes;
use nodewise_machine::order::CollectOrdered as _;

use super::devices::{self, OpenDevice};
use super::{elf, version, words};
use crate::file;
use crate::mappings::{SMALLEST_PAGE, walk_price};
use crate::parse::proc_status::{ProcessStatus, Seccomp};
use crate::parse::smaps;
use crate::process::{self, Pid, search};
use crate::spare;
use crate::tree::Tree;

/// The most bytes of a command line, and of variables.
const MOST: usize = 1 << 17;
/// The dearest walk over the pages of one program: 1 GiB in small pages.
const MOST_WALK: Duration = Duration::from_millis(20);
/// `CAP_SYS_NICE` of `include/uapi/linux/capability.h`.
const SYS_NICE: u32 = 23;
/// Variables that place threads or memory, or that say which version a program has.
const VARIABLES: [&str; 8] = [
    "GOMAXPROCS",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "MONGO_MAJOR",
    "MONGO_VERSION",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
];
/// Variables with options of a Java machine. Only options that begin with `-X` are kept.
const JAVA: [&str; 3] = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];
/// Servers that fork to save a snapshot, as the kernel cuts their names.
pub const SNAPSHOTS: [&str; 3] = ["redis-server", "valkey-server", "keydb-server"];

/// A program at work. `None`: the kernel does not say, or not to this user. No text is fit for a terminal.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RunningProgram {
    /// The path of the file that it runs.
    pub exe: Option<String>,
    /// Its command line, and options of a Java machine from its variables.
    pub words: Option<Vec<String>>,
    /// Variables that place programs, as far as it has them.
    pub variables: Option<BTreeMap<String, String>>,
    /// Whether a filter watches its system calls.
    pub is_filtered: Option<bool>,
    /// Whether the program has `CAP_SYS_NICE`.
    pub has_nice: Option<bool>,
    /// Whether the program may have transparent huge pages.
    pub has_huge_pages: Option<bool>,
    /// Its memory in transparent huge pages, of a large program that of its control group; of servers that fork for snapshots
    /// only, since counting it walks all pages.
    pub anon_huge: Option<Bytes>,
    pub locked: Option<Bytes>,
    pub pinned: Option<Bytes>,
    /// The CPU time that its control groups allow, in thousandths of a CPU; `None` inside: all there is.
    pub quota: Option<Option<u64>>,
    pub devices: Option<Vec<OpenDevice>>,
    /// Whether Go built the program.
    pub is_go: Option<bool>,
    /// The major version of a Java machine or of MongoDB's server.
    pub version: Option<u32>,
}

/// Reads them. What is missing stays `None`: processes end while they are looked at.
///
/// # Source
/// `/proc/PID/{comm,exe,cmdline,environ,status,smaps_rollup,cgroup,fd}`, and `cpu.max` of its control groups.
pub fn read(tree: &Tree, pid: Pid) -> RunningProgram {
    let mut line = Vec::new();
    let has_line = search::command_line(tree, pid, MOST, &mut line).unwrap_or(false) && !line.is_empty();
    let mut program = RunningProgram {
        exe: tree.link(&format!("/proc/{pid}/exe")).ok().flatten(),
        words: has_line.then(|| words(&line)),
        quota: spare::cpu_quota(tree, pid),
        devices: devices::open(tree, pid),
        ..RunningProgram::default()
    };
    let status = process::status(tree, pid).ok().flatten().map(|parsed| parsed.value).unwrap_or_default();
    program.take_status(&status);
    let all = variables(tree, pid);
    let java = all.iter().flatten().filter(|(name, _)| JAVA.contains(&name.as_str()));
    let options = java.flat_map(|(_, value)| value.split_whitespace()).filter(|word| word.starts_with("-X"));
    let options: Vec<String> = options.map(str::to_owned).collect();
    program.words.iter_mut().for_each(|words| words.extend(options.iter().cloned()));
    program.variables =
        all.map(|all| all.into_iter().filter(|(name, _)| !JAVA.contains(&name.as_str())).collect_map());
    let name = search::name(tree, pid).ok().flatten().unwrap_or_default();
    let name = String::from_utf8_lossy(&name);
    if SNAPSHOTS.contains(&&*name) {
        program.anon_huge = anon_huge(tree, pid, status.resident.unwrap_or_default());
    }
    program.is_go = is_go(tree, pid);
    let variable = |name: &str| program.variables.as_ref()?.get(name).map(String::as_str);
    program.version = match (&*name, program.exe.as_deref()) {
        ("mongod", exe) => {
            version::mongod(tree, pid, exe, variable("MONGO_VERSION").or_else(|| variable("MONGO_MAJOR")))
        }
        (_, Some(exe)) => version::java(tree, pid, exe),
        _ => None,
    };
    program
}

impl RunningProgram {
    fn take_status(&mut self, status: &ProcessStatus) {
        self.is_filtered = status.seccomp.map(|mode| mode == Seccomp::Filter);
        self.has_nice = status.has_capability(SYS_NICE);
        self.has_huge_pages = status.transparent_huge_pages;
        (self.locked, self.pinned) = (status.locked, status.pinned);
    }
}

/// The variables of these names; `None` where they are not readable.
fn variables(tree: &Tree, pid: Pid) -> Option<BTreeMap<String, String>> {
    let mut bytes = Vec::new();
    tree.read_start(&format!("/proc/{pid}/environ"), MOST, &mut bytes).ok().filter(|there| *there)?;
    let mut found = BTreeMap::new();
    for variable in bytes.split(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(variable);
        let Some((name, value)) = text.split_once('=') else { continue };
        if VARIABLES.contains(&name) || JAVA.contains(&name) {
            // The first one counts, as for getenv(3).
            found.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
    }
    Some(found)
}

fn anon_huge(tree: &Tree, pid: Pid, resident: Bytes) -> Option<Bytes> {
    if walk_price(resident, SMALLEST_PAGE) > MOST_WALK {
        return spare::anon_huge_of_group(tree, pid);
    }
    let sums = file::parsed(tree, &format!("/proc/{pid}/smaps_rollup"), smaps::parse).ok()??;
    sums.value.first()?.anon_huge
}

fn is_go(tree: &Tree, pid: Pid) -> Option<bool> {
    let mut bytes = Vec::new();
    let there = tree.read_start(&format!("/proc/{pid}/exe"), elf::BEGINNING, &mut bytes).ok()?;
    there.then(|| elf::is_go(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Memory, ReadCause};

    fn files() -> Memory {
        Memory::new()
            .file("/proc/7/comm", "redis-server\n")
            .file("/proc/7/cmdline", b"/usr/bin/redis-server\0--requirepass\0hunter2\0")
            .file(
                "/proc/7/environ",
                b"PASSWORD=hunter2\0OMP_PROC_BIND=close\0OMP_PROC_BIND=false\0JAVA_TOOL_OPTIONS=-XX:+UseNUMA -Dkey=hunter2\0x\0=\0\xff=\xff\0",
            )
            .file("/proc/7/status", "Seccomp:\t2\nCapEff:\t0000000000800000\nTHP_enabled:\t0\nVmPin:\t 8 kB\n")
            .file(
                "/proc/7/smaps_rollup",
                "5581-7fff ---p 00000000 00:00 0    [rollup]\nRss: 9000 kB\nAnonHugePages:      4096 kB\n",
            )
            .file("/proc/7/exe", elf::with_note(b"Go\0\0", 4))
            .file("/proc/7/cgroup", "0::/a/b\n")
            .file("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
            .file("/sys/fs/cgroup/a/cpu.max", "150000 100000\n")
            .file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
    }

    #[test]
    fn a_program_is_read_as_far_as_it_is_open() {
        let found = read(&Tree::memory(files()), Pid::new(7));
        assert_eq!(found.words.unwrap().last().unwrap(), "-XX:+UseNUMA");
        let variables = found.variables.unwrap();
        let expected = BTreeMap::from([("OMP_PROC_BIND".to_owned(), "close".to_owned())]);
        assert_eq!(variables, expected, "nothing else is kept");
        assert_eq!((found.is_filtered, found.has_nice), (Some(true), Some(true)));
        assert_eq!((found.has_huge_pages, found.anon_huge), (Some(false), Some(Bytes::from_mib(4))));
        assert_eq!((found.quota, found.is_go), (Some(Some(1_500)), Some(true)));
        assert_eq!((found.pinned, found.devices), (Some(Bytes::from_kib(8)), None));
    }

    #[test]
    fn huge_pages_of_a_large_program_are_those_of_its_group() {
        let large = files()
            .file("/proc/7/status", "VmRSS:\t 99000000 kB\n")
            .file("/sys/fs/cgroup/a/b/memory.stat", "anon 99\nanon_thp 6291456\n");
        assert_eq!(read(&Tree::memory(large), Pid::new(7)).anon_huge, Some(Bytes::from_mib(6)));
        let no_group = files().file("/proc/7/status", "VmRSS:\t 99000000 kB\n");
        assert_eq!(read(&Tree::memory(no_group), Pid::new(7)).anon_huge, None);
    }

    #[test]
    fn nothing_is_known_of_a_process_that_is_closed_or_has_ended() {
        assert_eq!(read(&Tree::memory(Memory::new()), Pid::new(7)), RunningProgram::default());
        let closed = files().unreadable("/proc/7/environ", ReadCause::System(13));
        assert_eq!(read(&Tree::memory(closed), Pid::new(7)).variables, None);
    }

    #[test]
    fn this_process_is_read() {
        let found = read(&Tree::live(), Pid::new(std::process::id()));
        assert!(found.words.is_some() && found.variables.is_some() && found.is_go == Some(false));
        assert!(found.is_filtered.is_some() && found.has_nice.is_some());
    }
}
