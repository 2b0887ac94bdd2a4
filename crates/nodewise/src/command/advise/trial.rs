//! A program that is started to be watched, and ended.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nodewise_diagnose::Pid;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_source::Detail;
use nodewise_source::process::family;
use nodewise_source::tree::Tree;
use rustix::process::{Pid as SystemPid, Signal, kill_process_group};

use super::Watched;
use crate::command::doctor::watch;
use crate::command::run::not_executed;
use crate::failure::Failure;
use crate::{input, measuring};

/// The part of the trial in which a program may start up before it is watched.
const START: u32 = 3;
/// The most time for that.
const MOST_START: Duration = Duration::from_secs(10);
/// The time that a program has to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// Starts the program, watches its largest process, and ends all of them.
pub(super) fn run(command: &[OsString], time: Duration) -> Result<Watched, Failure> {
    let machine = input::load("live", Detail::Full)?.machine;
    let mut started = Started::new(command)?;
    let start = (time / START).min(MOST_START);
    started.wait(start)?;
    let named: BTreeSet<Pid> = family(&Tree::live(), started.pid).into_iter().collect_set();
    let (before, now) = watch::watch(time.saturating_sub(start), Some(&named))?;
    let has_ended = started.has_ended();
    super::choose(machine, before, now, &named).filter(|_| !has_ended).ok_or_else(|| started.too_short())
}

/// A program in a process group of its own, which is ended when this is dropped.
struct Started {
    child: Child,
    pid: Pid,
    began: Instant,
}

impl Started {
    fn new(command: &[OsString]) -> Result<Self, Failure> {
        let (program, arguments) =
            command.split_first().ok_or_else(|| Failure::usage("no program to start"))?;
        let mut starting = Command::new(program);
        starting.args(arguments).process_group(0);
        starting.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = starting.spawn().map_err(|error| not_executed(program, &error))?;
        let pid = Pid::new(child.id());
        Ok(Self { child, pid, began: Instant::now() })
    }

    /// Lets it start up.
    fn wait(&mut self, time: Duration) -> Result<(), Failure> {
        let interrupt = measuring::interrupt()?;
        measuring::wait(Instant::now() + time, &interrupt, || !matches!(self.child.try_wait(), Ok(None)));
        if interrupt.load(Ordering::Relaxed) {
            return Err(Failure::cannot("interrupted before the program was watched"));
        }
        if self.has_ended() { Err(self.too_short()) } else { Ok(()) }
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn too_short(&self) -> Failure {
        let words = format!("{:.1} s", self.began.elapsed().as_secs_f64());
        Failure::cannot(format_args!(
            "the program ended within {words}, too early to be watched: nodewise tune measures short programs"
        ))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let Some(group) = i32::try_from(self.child.id()).ok().and_then(SystemPid::from_raw) else { return };
        // A group that has ended cannot be signalled.
        let _ = kill_process_group(group, Signal::TERM);
        let end = Instant::now() + GRACE;
        while !self.has_ended() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}
