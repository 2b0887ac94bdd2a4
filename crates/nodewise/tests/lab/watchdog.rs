//! A limit of time for each check, so that one that hangs costs the guest that check and not all others.
//!
//! A check mostly hangs because a program that it started does. At the limit the state of every such program is
//! recorded and they are ended: the check comes back, and fails with that record.

use std::fmt::Write as _;
use std::fs;
use std::process;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use nodewise_source::process::{Pid, family};
use nodewise_source::tree::Tree;
use rustix::process::{Signal, kill_process};

/// The time that a check has once its programs were ended.
const REST: Duration = Duration::from_secs(60);

/// Ends the programs of a check that takes too long.
pub struct Watchdog {
    done: Sender<()>,
    watch: thread::JoinHandle<String>,
}

impl Watchdog {
    /// Begins to wait. A check that does not come back although its programs were ended is given to `last`, and ends the
    /// guest.
    pub fn start(limit: Duration, last: impl FnOnce(&str) + Send + 'static) -> Self {
        let (done, ended) = mpsc::channel();
        let watch = thread::spawn(move || {
            if ended.recv_timeout(limit) != Err(RecvTimeoutError::Timeout) {
                return String::new();
            }
            let mut record = format!("not at its end after {} s; processes then:", limit.as_secs());
            for pid in family(&Tree::live(), Pid::new(process::id())) {
                record.push_str(&state(pid));
                let system = i32::try_from(pid.number()).ok().and_then(rustix::process::Pid::from_raw);
                if let Some(system) = system.filter(|_| pid.number() != process::id()) {
                    let _ = kill_process(system, Signal::KILL);
                }
            }
            let _ = fs::write("/dev/kmsg", format!("{record}\n"));
            if ended.recv_timeout(REST) == Err(RecvTimeoutError::Timeout) {
                last(&record);
                process::exit(1);
            }
            record
        });
        Self { done, watch }
    }

    /// Ends the wait; the record of a check that took too long, otherwise empty.
    pub fn end(self) -> String {
        // Where the thread has ended by itself, nothing receives this.
        let _ = self.done.send(());
        self.watch.join().unwrap_or_else(|_| "the watchdog panicked".to_owned())
    }
}

/// Threads of a process, and where the kernel has each of them.
fn state(pid: Pid) -> String {
    let mut text = String::new();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for task in tasks.map(|task| task.path()) {
        let read = |name: &str| fs::read_to_string(task.join(name)).unwrap_or_default();
        let line = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join(" < ");
        let stat = read("stat");
        let state =
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().next()).unwrap_or("?");
        let _ = write!(
            text,
            "\n  {} {} {state} in {}, call {}, stack {}",
            task.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            line(&read("comm")),
            line(&read("wchan")),
            line(&read("syscall")),
            line(&read("stack")),
        );
    }
    text
}
