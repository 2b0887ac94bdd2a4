//! Running a line, and all that can be seen of it.

use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::draw::Line;
use crate::original::Original;

/// Outcome of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit status, as a shell gives it.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// The files that are there then, with their sizes and the policies of their ranges; segments of System
    /// V; where the pages of the line's own process are.
    pub effects: String,
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// The original.
    Original,
    /// Ours with `NODEWISE_STRICT_COMPAT=1`.
    Strict,
    /// Ours.
    Plain,
}

/// Where lines run: a folder on tmpfs, in which numactl can make files.
pub struct Stage {
    folder: tempfile::TempDir,
    original: Original,
    /// Whether commands can have segments of System V of their own.
    segments: bool,
}

/// Time that a line has; the slowest take a few seconds in a guest.
const SECONDS: &str = "60";

/// The exit status of a line that did not end in time.
pub const TOO_LONG: i32 = 124;

/// A program that says under which policy, on which CPUs and with which signals and files it was started. The
/// kernel writes the policy of a process into the line of its stack.
const PROBE: &str = "#!/bin/sh
for word; do printf '<%s>' \"$word\"; done
echo
sed -n 's/^[^ ]* \\([^ ]*\\) stack.*/policy \\1/p' /proc/self/numa_maps
grep -E '^(Cpus_allowed_list|Mems_allowed_list|SigIgn|SigBlk|NoNewPrivs)' /proc/self/status
umask
for file in /proc/self/fd/*; do [ -e \"$file\" ] && echo \"file ${file##*/}\"; done
env | grep -v -e ^NODEWISE -e ^PWD -e ^PATH -e ^_ | sort
";

/// Runs the words behind it and then lists the segments of System V that they left, with the policies.
const LISTING: &str = "\"$@\"; status=$?; \
    { tail -n +2 /proc/sysvipc/shm; \"$DUMP\" --shm ../key --dump; \"$DUMP\" --shm K --dump; } > ../segments 2>&1; \
    exit $status";

impl Stage {
    /// Makes a stage for ours, a program, and the original.
    pub fn new(nodewise: &Path, original: &Original) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("nodewise-drop-in-").tempdir_in("/dev/shm")?;
        let at = |name: &str| folder.path().join(name);
        for name in ["ours", "original", "programs"] {
            fs::create_dir(at(name))?;
        }
        original.install(&at("original"))?;
        for tool in crate::original::TOOLS {
            symlink(nodewise, at("ours").join(tool))?;
        }
        let probe = at("programs").join("probe");
        fs::write(&probe, PROBE)?;
        fs::set_permissions(&probe, Permissions::from_mode(0o755))?;
        File::create(at("key"))?;
        let alone = Command::new("unshare").args(["--ipc", "true"]).stderr(Stdio::null()).status();
        let segments = alone.is_ok_and(|status| status.success());
        Ok(Self { folder, original: original.clone(), segments })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Why a line cannot be played here, if it cannot.
    pub fn refuses(&self, line: &Line) -> Option<&'static str> {
        let shares = line.tool == "numactl" && line.has_option('S', "shm");
        (shares && !self.segments).then_some("segments of System V need unshare --ipc, as root")
    }

    /// Plays a line.
    pub fn play(&self, line: &Line, answers: Answers) -> io::Result<Outcome> {
        let folder = self.at("run");
        prepare(&folder)?;
        let holder = line.words.iter().any(|word| word.contains("{PID}")).then(Holder::start).transpose()?;
        let pid = holder.as_ref().map_or_else(String::new, |holder| holder.0.id().to_string());
        let key = "../key";
        let words = line.words.iter().map(|word| word.replace("{PID}", &pid).replace("{KEY}", key));
        let tools = self.at(if answers == Answers::Original { "original" } else { "ours" });
        let shares = line.tool == "numactl" && line.has_option('S', "shm");
        let mut command;
        if shares {
            command = limited();
            command.args(["unshare", "--ipc", "sh", "-c", LISTING, "sh", line.tool]);
            command.env("DUMP", self.at("original").join("numactl"));
        } else {
            command = limited();
            command.arg(line.tool).env_clear();
        }
        command.args(words).current_dir(&folder).stdin(Stdio::null());
        let path = format!("{}:{}:/usr/bin:/bin", tools.display(), self.at("programs").display());
        command.env("PATH", path).env("LC_ALL", "C").envs(line.variables.iter().copied());
        if answers != Answers::Original {
            command.env("NODEWISE_NUMACTL_COMPAT", &self.original.release);
            command.env("NODEWISE_STRICT_COMPAT", if answers == Answers::Strict { "1" } else { "0" });
        }
        let output = command.output()?;
        let mut effects = files(&folder, &self.at("original").join("numactl"))?;
        if shares {
            effects += &fs::read_to_string(self.at("segments")).unwrap_or_default();
            let _ = fs::remove_file(self.at("segments"));
        }
        if let Some(holder) = &holder {
            let _ = writeln!(effects, "pages {}", holder.pages());
        }
        Ok(outcome(&output, effects, &pid))
    }
}

/// The beginning of a command that is ended with the status `TOO_LONG` when it takes too long.
fn limited() -> Command {
    let mut command = Command::new("/usr/bin/timeout");
    command.args(["--foreground", SECONDS]);
    command
}

fn outcome(output: &Output, effects: String, pid: &str) -> Outcome {
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if pid.is_empty() { text } else { text.replace(pid, "{PID}") }
    };
    let signal = || 128 + output.status.signal().unwrap_or(0);
    Outcome {
        status: output.status.code().unwrap_or_else(signal),
        out: text(&output.stdout),
        err: text(&output.stderr),
        effects,
    }
}

/// Makes the folder with what is there when a line begins.
fn prepare(folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir(folder)?;
    File::create(folder.join("E"))?.set_len(64 << 10)?;
    File::create(folder.join("Z"))?;
    File::create(folder.join("U"))?.set_len(5000)?;
    fs::write(folder.join("X"), "not to be executed\n")?;
    fs::create_dir(folder.join("D"))?;
    symlink("nowhere", folder.join("L"))
}

/// Lists what is there when a line has ended.
fn files(folder: &Path, dump: &Path) -> io::Result<String> {
    let mut names: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
    names.sort_by_key(fs::DirEntry::file_name);
    let mut text = String::new();
    for entry in names {
        let status = entry.metadata()?;
        let name = entry.file_name();
        let _ = write!(text, "{} {:o} {}", name.to_string_lossy(), status.mode(), status.len());
        if status.is_file() {
            let _ = write!(text, " blocks {} bytes {}", status.blocks(), written(&entry.path())?);
            if status.len() > 0 && status.len() % 4096 == 0 && status.len() <= 64 << 20 {
                let output = Command::new(dump)
                    .arg(format!("--length={}", status.len()))
                    .arg("--file")
                    .arg(entry.path())
                    .arg("--dump")
                    .output()?;
                let _ = write!(text, " policy {}", String::from_utf8_lossy(&output.stdout).trim());
            }
        }
        text.push('\n');
    }
    Ok(text)
}

/// How many bytes of the first megabyte of a file are not zero.
fn written(path: &Path) -> io::Result<usize> {
    let mut bytes = Vec::new();
    File::open(path)?.take(1 << 20).read_to_end(&mut bytes)?;
    Ok(bytes.iter().filter(|byte| **byte != 0).count())
}

/// Memory of a process that is held.
const HELD: usize = 4 << 20;

/// A process that holds memory until it is dropped.
struct Holder(Child);

impl Holder {
    /// Starts one, whose number is no other number of a line.
    fn start() -> io::Result<Self> {
        const SMALLEST: u32 = 4096;
        loop {
            let holder = Self::start_any()?;
            if holder.0.id() > SMALLEST {
                return Ok(holder);
            }
            // A system that has started lately, such as a guest, would take thousands of attempts.
            let _ = fs::write("/proc/sys/kernel/ns_last_pid", SMALLEST.to_string());
        }
    }

    fn start_any() -> io::Result<Self> {
        // On one CPU: pages come from the node of the CPU that touches them.
        let status = fs::read_to_string("/proc/self/status")?;
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or("0");
        let first = cpus.trim().split(['-', ',']).next().unwrap_or_default();
        let mut child = Command::new("taskset")
            .args(["-c", first])
            .arg(std::env::current_exe()?)
            .arg("--hold=")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut ready = [0];
        let read = child.stdout.as_mut().map(|out| out.read_exact(&mut ready));
        let held = Self(child);
        read.transpose()?;
        Ok(held)
    }

    /// On how many nodes its pages are, and how many on each.
    fn pages(&self) -> String {
        let maps = fs::read_to_string(format!("/proc/{}/numa_maps", self.0.id())).unwrap_or_default();
        let anonymous = |line: &str| {
            let count = line.split(' ').find_map(|word| word.strip_prefix("anon="))?;
            count.parse::<usize>().ok().filter(|pages| pages * 4096 >= HELD)
        };
        let held = maps.lines().find(|line| anonymous(line).is_some()).unwrap_or("none");
        let words = held.split(' ').filter(|word| word.starts_with('N') && word.contains('='));
        words.collect::<Vec<_>>().join(" ")
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Holds memory until standard input ends.
pub fn hold() {
    let memory = vec![1_u8; HELD];
    print!("+");
    let _ = io::Write::flush(&mut io::stdout());
    let _ = io::stdin().read(&mut [0]);
    std::hint::black_box(&memory);
}
