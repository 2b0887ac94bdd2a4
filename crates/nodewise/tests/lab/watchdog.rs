//! A limit of time for each check, so that one that hangs costs the guest that check and not all others.
//!
//! The checks run in a process of their own. A check mostly hangs because a program that it started does: at the limit
//! the state of every such program is recorded and they are ended, so that the check comes back, and fails with that
//! record. A thread beside the checks would not do: the kernel moves the memory of a cpuset once for each thread there,
//! which is one of the things that scripts compare.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use nodewise_source::process::{Pid, family};
use nodewise_source::tree::Tree;
use rustix::process::{Signal, kill_process};

use crate::guest::MARK;

/// Precedes a line with the name of a check that begins.
pub const BEGINS: &str = "begins ";
/// The line behind the last check.
pub const END: &str = "end of checks";
/// The time that a check has once its programs were ended.
const REST: Duration = Duration::from_secs(60);

/// The check under way.
struct UnderWay {
    name: String,
    since: Instant,
    /// The record of its programs, where it took too long.
    late: Option<String>,
}

/// Runs a command that writes lines of checks, and passes on their results. Each check has this time.
///
/// # Errors
/// The command cannot be started, or its results cannot be passed on.
pub fn supervise(command: &mut Command, limit: Duration, out: &mut dyn Write) -> io::Result<()> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let lines = lines_of(&mut child);
    let mut check = UnderWay { name: String::new(), since: Instant::now(), late: None };
    loop {
        let time = if check.late.is_some() { REST } else { limit };
        match lines.recv_timeout(time) {
            Ok(line) if line == END => break,
            Ok(line) => match line.strip_prefix(BEGINS) {
                Some(name) => {
                    check = UnderWay { name: name.to_owned(), since: Instant::now(), late: None };
                }
                None if line.starts_with(MARK) => writeln!(out, "{}", check.result(&line))?,
                None => writeln!(out, "{line}")?,
            },
            Err(RecvTimeoutError::Timeout) if check.late.is_none() => {
                check.late = Some(end_programs(&child, limit));
            }
            Err(RecvTimeoutError::Timeout) => {
                child.kill()?;
                writeln!(out, "{}", check.result(""))?;
                break;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    child.wait().map(drop)
}

/// The lines that a child writes, as they come.
fn lines_of(child: &mut Child) -> Receiver<String> {
    let stdout = child.stdout.take().expect("it was asked for");
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Behind the last check nothing listens.
            let _ = sender.send(line);
        }
    });
    lines
}

impl UnderWay {
    /// A line of the checks; in place of a result that came too late, a failure with the record.
    fn result(&self, line: &str) -> String {
        let Some(late) = &self.late else { return line.to_owned() };
        format!("{MARK}{} {:.1} {late}\\n{line}", self.name, self.since.elapsed().as_secs_f64())
    }
}

/// Ends the programs of a check; the record of what they did, in one line.
fn end_programs(checks: &Child, limit: Duration) -> String {
    let mut record = vec![format!("not at its end after {} s; processes then:", limit.as_secs())];
    let checks = Pid::new(checks.id());
    for pid in family(&Tree::live(), checks) {
        record.extend(threads(pid));
        let system = i32::try_from(pid.number()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(system) = system.filter(|_| pid != checks) {
            // It may have ended by itself.
            let _ = kill_process(system, Signal::KILL);
        }
    }
    for line in &record {
        // The kernel takes a line at a time, of a kilobyte at most. The console has it if the guest does not come back.
        let _ = fs::write("/dev/kmsg", format!("{line:.900}\n"));
    }
    record.join("\\n  ")
}

/// Each thread of a process, and where the kernel has it.
fn threads(pid: Pid) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let describe = |task: fs::DirEntry| {
        let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let line = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join(" < ");
        let stat = read("stat");
        let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().next());
        let mut text = format!("{} {}", task.file_name().to_string_lossy(), line(&read("comm")));
        let _ = write!(text, " {} in {}", state.unwrap_or("?"), line(&read("wchan")));
        let _ = write!(text, ", call {}, stack {}", line(&read("syscall")), line(&read("stack")));
        text
    };
    tasks.map(describe).collect()
}

/// `--hangs`: two checks; the first has a program that does not end.
pub fn hang() {
    println!("{BEGINS}hangs");
    let ended = Command::new("sleep").arg("600").status().expect("a program that sleeps");
    println!("{MARK}hangs 1.0 its program: {ended}\n{BEGINS}next\n{MARK}next 1.0 \n{END}");
}

/// The program of a check that hangs is ended, its record is the check's result, and the next check goes on.
pub fn ends_what_hangs() -> Result<(), Failed> {
    let mut out = Vec::new();
    let mut command = Command::new(std::env::current_exe()?);
    supervise(command.arg("--hangs"), Duration::from_secs(1), &mut out)?;
    let said = String::from_utf8_lossy(&out).into_owned();
    let expected = [
        "check hangs ",
        " not at its end after 1 s; processes then:\\n",
        " sleep S in ",
        "\\ncheck hangs 1.0 its program: signal: 9 (SIGKILL)\n",
        "check next 1.0 \n",
    ];
    let missing = expected.iter().find(|words| !said.contains(**words));
    missing.map_or(Ok(()), |words| Err(format!("no {words:?} in {said:?}").into()))
}
