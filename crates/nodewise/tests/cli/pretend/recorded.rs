//! Output of programs about a capture in `pretend`, beside their output about the recorded files themselves.
//!
//! lscpu and hwloc can read the files of another machine from a folder; what numactl prints was recorded once, with the files of
//! nodes and CPUs mounted over those of another system (`data/numactl-H`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::{can_separate, captures, on};
use crate::nodewise::Ran;
use crate::sandbox::has;

/// A capture in a folder.
struct Unpacked {
    _folder: TempDir,
    /// Where its `sys` and `proc` are.
    root: PathBuf,
}

impl Unpacked {
    fn new(capture: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tar = Command::new("tar").arg("-xf").arg(capture).arg("-C").arg(folder.path()).status();
        assert!(tar.unwrap().success(), "{}", capture.display());
        let mut root = folder.path().to_owned();
        while !root.join("sys").exists() {
            root = fs::read_dir(&root).unwrap().next().unwrap().unwrap().path();
        }
        Self { _folder: folder, root }
    }

    /// Removes files and folders. Those of some captures cannot be written to by their owner.
    fn remove(&self, paths: &[&str]) {
        let all = paths.iter().map(|path| self.root.join(path)).filter(|path| path.exists());
        for path in all {
            let opened = Command::new("chmod").arg("-R").arg("u+rwX").arg(&path).status();
            assert!(opened.unwrap().success());
            let removed = Command::new("rm").arg("-rf").arg(&path).status();
            assert!(removed.unwrap().success());
        }
    }

    /// Runs a program that reads the folder.
    fn output(&self, command: &mut Command) -> String {
        Ran::from(command.env("LC_ALL", "C").output().unwrap()).ok()
    }
}

fn name(capture: &Path) -> String {
    capture.file_name().unwrap().to_str().unwrap().trim_end_matches(".tar.bz2").to_owned()
}

/// Lines of lscpu that come from CPUID, `uname(2)` and firmware of the system that it runs on.
const OF_THE_REAL_CPU: [&str; 4] = ["Architecture", "CPU op-mode(s)", "Hypervisor vendor", "Virtualization"];

/// The lines about the machine, without the blanks that align them.
fn about_the_machine(text: &str) -> Vec<String> {
    let is_real = |line: &&str| OF_THE_REAL_CPU.iter().any(|real| line.trim_start().starts_with(real));
    let lines = text.lines().filter(|line| !is_real(line));
    lines.map(|line| line.split_ascii_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn lscpu_prints_what_it_prints_about_the_recorded_files() {
    const ALL: &str =
        "-p=CPU,CORE,SOCKET,NODE,BOOK,DRAWER,CACHE,POLARIZATION,ADDRESS,CONFIGURED,ONLINE,MAXMHZ,MINMHZ";
    if !can_separate() || !has("lscpu", "util-linux") {
        return;
    }
    let mut compared = 0;
    for capture in captures() {
        let unpacked = Unpacked::new(&capture);
        // lscpu refuses files without it.
        if !unpacked.root.join("sys/devices/system/cpu/possible").exists() {
            continue;
        }
        let print = format!("lscpu $FROM; lscpu $FROM -a {ALL}; lscpu $FROM -B -C");
        let mut command = Command::new("sh");
        command.args(["-c", &print]).env("FROM", format!("--sysroot={}", unpacked.root.display()));
        let recorded = unpacked.output(&mut command);
        let seen = on(capture.to_str().unwrap(), &["env", "LC_ALL=C", "sh", "-c", &print]).ok();
        assert_eq!(about_the_machine(&seen), about_the_machine(&recorded), "{}", name(&capture));
        compared += 1;
    }
    assert!(compared >= 10, "{compared}");
}

#[test]
fn numactl_prints_the_recorded_hardware() {
    if !can_separate() || !has("numactl", "numactl") {
        return;
    }
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/numactl-H");
    let mut compared = 0;
    for capture in captures() {
        let Ok(recorded) = fs::read_to_string(records.join(format!("{}.txt", name(&capture)))) else {
            continue;
        };
        let seen = on(capture.to_str().unwrap(), &["numactl", "-H"]);
        assert!(!seen.stderr.contains("cpumap"), "{}: {}", name(&capture), seen.stderr);
        // The system of the recording had masks too short for these files, and libnuma left the CPUs out.
        let has_cpus = !recorded.contains("node 0 cpus:\n") || recorded.contains("cpus: ");
        let seen: Vec<String> = seen.ok().lines().map(|line| without_cpus(line, !has_cpus)).collect();
        let recorded: Vec<&str> = recorded.lines().collect();
        assert_eq!(seen.len(), recorded.len(), "{}", name(&capture));
        for (seen, recorded) in seen.iter().zip(recorded) {
            assert!(seen == recorded || has_less(seen, recorded), "{}: {seen} {recorded}", name(&capture));
        }
        compared += 1;
    }
    assert!(compared >= 10, "{compared}");
}

/// Whether both give the free memory of a node, less the few pages that numactl itself has.
fn has_less(seen: &str, recorded: &str) -> bool {
    let free = |line: &str| -> Option<(String, u64)> {
        let (node, size) = line.split_once(" free: ")?;
        Some((node.to_owned(), size.strip_suffix(" MB")?.parse().ok()?))
    };
    let both = free(seen).zip(free(recorded));
    both.is_some_and(|((node, now), (same, before))| {
        node == same && (before.saturating_sub(8)..before).contains(&now)
    })
}

fn without_cpus(line: &str, left_out: bool) -> String {
    match line.split_once(" cpus: ") {
        Some((node, _)) if left_out => format!("{node} cpus:"),
        _ => line.to_owned(),
    }
}

#[test]
fn libnuma_reads_masks_that_are_longer_than_the_machine() {
    if !can_separate() || !has("numactl", "numactl") {
        return;
    }
    let all = captures();
    let old = all.iter().find(|capture| name(capture) == "8ia64-2s2c2t").unwrap();
    let seen = on(old.to_str().unwrap(), &["numactl", "-H"]).ok();
    assert!(seen.contains("node 0 cpus: 0 1 2 3 4 5 6 7\n"), "{seen}");
}

/// Files that hwloc reads and `pretend` leaves to the real system or hides: cpusets of the recording process, devices, drivers,
/// firmware, and the recorded `uname(2)`.
const LEFT_OUT: [&str; 9] = [
    "proc/mounts",
    "proc/self",
    "proc/driver",
    "proc/hwloc-nofile-info",
    "sys/fs",
    "sys/firmware",
    "sys/class",
    "sys/bus/dax",
    "dev",
];

#[test]
fn lstopo_prints_what_it_prints_about_the_recorded_files() {
    const PRINT: [&str; 5] = ["lstopo-no-graphics", "--no-io", "-p", "--of", "console"];
    if !can_separate() || !has("lstopo-no-graphics", "hwloc") {
        return;
    }
    for capture in captures() {
        let unpacked = Unpacked::new(&capture);
        unpacked.remove(&LEFT_OUT);
        let mut command = Command::new(PRINT[0]);
        command.args(&PRINT[1..]).env("HWLOC_FSROOT", &unpacked.root);
        command.env("HWLOC_THISSYSTEM", "0").env("HWLOC_COMPONENTS", "linux,stop");
        let recorded = unpacked.output(&mut command);
        let seen = on(capture.to_str().unwrap(), &PRINT).ok();
        assert_eq!(seen, recorded, "{}", name(&capture));
    }
}

#[test]
fn devices_are_near_no_node() {
    if !can_separate() || !has("lstopo-no-graphics", "hwloc") {
        return;
    }
    let text = on("4x(3c 1G)", &["sh", "-c", "cat /sys/bus/pci/devices/*/numa_node | sort -u"]).stdout;
    assert!(text.is_empty() || text == "-1\n", "{text}");
    let text = on("4x(3c 1G)", &["sh", "-c", "cat /sys/bus/pci/devices/*/local_cpulist | sort -u"]).stdout;
    assert!(text.is_empty() || text == "0-11\n", "{text}");
}
