//! Processes: found when something was forked, read when they are due.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::Bytes;

use super::due::Pace;
use super::pages::Look;
use super::reading::Reading;
use super::rest::Rest;
use super::tasks::TaskTable;
use super::{Allowed, Identity, Moment, ProcessSample, ProcessScope, Remedy, SampleOptions, ThreadScope};
use crate::parse::pid_stat::{self, PidStat};
use crate::parse::{cgroup, proc_status, text_of};
use crate::paths::{self, PROCESSES};
use crate::process::Pid;
use crate::tree::{Kept, Tree};

/// Processes are looked for at most this often, and only after something was forked: a name in `/proc` costs 1.3 to
/// 1.5 us.
const LIST_EVERY: Duration = Duration::from_secs(5);
/// How often the CPUs, nodes and groups of a process are read again: of one that works, and of one that sleeps.
const STATUS_EVERY: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(120));

/// Threads are looked at while their process uses more than this part of a CPU, and for a while after that.
const BUSY_SHARE: f64 = 0.01;
const BUSY_FOR: Duration = Duration::from_secs(8);
/// `USER_HZ`, 100 on every current architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// The processes that are known.
#[derive(Debug)]
pub(super) struct ProcessTable {
    known: BTreeMap<Pid, Tracked>,
    /// Whether processes are in other groups than before.
    regrouped: bool,
    /// When processes were looked for, and the number of forks before that.
    listed: Option<(Moment, Option<u64>)>,
    /// Whether `/proc` hides processes.
    hides: bool,
    /// Descriptors that may be held open, and those that are.
    room: usize,
    open: usize,
}

/// A process, as it was read last.
#[derive(Debug)]
pub(super) struct Tracked {
    stat: Kept,
    pub(super) last: Arc<ProcessSample>,
    pace: Pace,
    /// When its status was read.
    status: Option<Moment>,
    /// When it was busy last.
    busy: Option<Moment>,
    tasks: TaskTable,
    /// The last look at its pages.
    pub(super) look: Option<Look>,
    rest: Resting,
}

/// The knowledge of whether a process rests.
#[derive(Debug)]
enum Resting {
    /// It did not rest so far.
    Unknown,
    Watched(Rest),
    /// The kernel does not say it, or there are too few descriptors.
    Unsaid,
}

/// The result of reading a process.
enum Poll {
    /// It is there; whether anything changed.
    There { changed: bool },
    /// It has ended, and its number may be another's.
    Gone,
    /// It exists, and its file cannot be used.
    Unreadable,
}

impl ProcessTable {
    /// A table that holds at most this number of files open.
    pub(super) const fn new(room: usize) -> Self {
        Self { known: BTreeMap::new(), regrouped: false, listed: None, hides: false, room, open: 0 }
    }

    pub(super) fn read(
        &mut self,
        reading: &mut Reading<'_>,
        options: &SampleOptions,
        forks: Option<u64>,
        page: Bytes,
    ) {
        self.regrouped = false;
        match &options.processes {
            ProcessScope::None => return,
            ProcessScope::All => {
                self.list(reading, forks);
                if self.hides {
                    reading.missing.add("processes", HIDDEN, Some(Remedy::Root));
                }
            }
            ProcessScope::Only(pids) => {
                for pid in pids {
                    self.known.entry(*pid).or_insert_with(|| Tracked::new(reading.tree, *pid)).pace.hurry();
                }
            }
        }
        for pid in options.threads.named() {
            if let Some(tracked) = self.known.get_mut(pid) {
                tracked.pace.hurry();
            }
        }
        self.poll(reading, &options.threads, page);
        if let ProcessScope::Only(pids) = &options.processes {
            // One whose file could not be read is there, and was named with the reason.
            let is_gone =
                |pid: &&Pid| !self.known.contains_key(pid) && !reading.tree.exists(&paths::process(pid));
            let hides = reading.tree.is_live() && !reading.tree.exists(&paths::process(FIRST));
            for pid in pids.iter().filter(is_gone) {
                let (reason, remedy) = absence(*pid, hides);
                reading.missing.add("processes", &reason, remedy);
            }
        }
    }

    /// The processes as they were read last.
    pub(super) fn samples(&self) -> Vec<Arc<ProcessSample>> {
        self.known.values().map(|tracked| Arc::clone(&tracked.last)).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Pid, &Tracked)> {
        self.known.iter().map(|(pid, tracked)| (*pid, tracked))
    }

    pub(super) fn get_mut(&mut self, pid: Pid) -> Option<&mut Tracked> {
        self.known.get_mut(&pid)
    }

    /// Whether the last reading found processes in other groups than before.
    pub(super) const fn regrouped(&self) -> bool {
        self.regrouped
    }

    /// Reads those that are due, and forgets those that have ended.
    fn poll(&mut self, reading: &mut Reading<'_>, threads: &ThreadScope, page: Bytes) {
        let (mut open, room) = (self.open, self.room);
        let mut regrouped = false;
        // There has to be room for two files of each, so that none is opened again and again.
        let is_short = self.known.len() > room / 2;
        self.known.retain(|pid, tracked| {
            if !tracked.pace.is_due(reading) {
                return true;
            }
            open = open.saturating_sub(tracked.open());
            if is_short {
                tracked.rest = Resting::Unsaid;
            }
            let group = tracked.last.group.clone();
            let stays = tracked.update(reading, *pid, page);
            if stays {
                let left = room.saturating_sub(open);
                tracked.look_at_threads(reading, threads, left);
                // The file of a process is worth more than the one that saves reading it.
                if tracked.open() > left {
                    tracked.rest = Resting::Unsaid;
                }
                if tracked.open() > left {
                    tracked.stat = keep(reading.tree, *pid);
                }
                open += tracked.open();
            }
            regrouped |= !stays || tracked.last.group != group;
            stays
        });
        self.open = open;
        self.regrouped |= regrouped;
    }

    /// Looks for processes where one may have been born since the last time.
    fn list(&mut self, reading: &mut Reading<'_>, forks: Option<u64>) {
        let fresh = self.listed.is_some_and(|(listed, before)| {
            let recent = reading.now.since(listed).is_some_and(|age| age < LIST_EVERY);
            recent || before.is_some() && before == forks
        });
        if fresh {
            return;
        }
        let names = match reading.tree.list(PROCESSES) {
            Ok(names) => names.unwrap_or_default(),
            Err(error) => return reading.missing.unreadable("processes", error.cause),
        };
        self.hides = reading.tree.is_live() && hides(&names);
        for pid in names.iter().filter_map(|name| number(name)) {
            self.known.entry(pid).or_insert_with(|| Tracked::new(reading.tree, pid));
        }
        self.listed = Some((reading.now, forks));
    }
}

fn keep(tree: &Tree, pid: Pid) -> Kept {
    tree.keep(&format!("{PROCESSES}/{pid}/stat"))
}

/// The number of the process that starts all others.
const FIRST: Pid = Pid::new(1);
/// The reason why a user sees none but their own.
const HIDDEN: &str = "/proc hides those of other users (its mount option hidepid)";

/// Whether a list of `/proc` lacks processes: the first one of a system, or of a container, is always there.
fn hides(names: &[String]) -> bool {
    let mut pids = names.iter().filter_map(|name| number(name)).peekable();
    pids.peek().is_some() && !pids.any(|pid| pid == FIRST)
}

/// Why a process that was asked for is missing, and what would show it.
fn absence(pid: Pid, hides: bool) -> (String, Option<Remedy>) {
    let none = format!("there is no process {pid}");
    if hides { (format!("{none}, or {HIDDEN}"), Some(Remedy::Root)) } else { (none, None) }
}

/// The process of a folder's name.
fn number(name: &str) -> Option<Pid> {
    let canonical = name.bytes().all(|byte| byte.is_ascii_digit()) && !name.starts_with('0');
    if canonical { name.parse().ok().map(Pid::new) } else { None }
}

impl Tracked {
    fn new(tree: &Tree, pid: Pid) -> Self {
        let nobody = Identity { pid, started_ticks: 0 };
        Self {
            stat: keep(tree, pid),
            last: Arc::new(ProcessSample::new(nobody)),
            pace: Pace::default(),
            status: None,
            busy: None,
            tasks: TaskTable::default(),
            look: None,
            rest: Resting::Unknown,
        }
    }

    /// The sample of it that comes next, apart from those that were handed out.
    pub(super) fn last_mut(&mut self) -> &mut ProcessSample {
        Arc::make_mut(&mut self.last)
    }

    /// Descriptors that it holds open.
    fn open(&self) -> usize {
        let rest = matches!(&self.rest, Resting::Watched(rest) if rest.is_open());
        usize::from(self.stat.is_open()) + usize::from(rest) + self.tasks.open()
    }

    /// Whether the process is known not to have run since it was read. Only one that has been idle for some time is
    /// asked that way, and only if it has one thread.
    fn rests(&mut self, reading: &mut Reading<'_>) -> bool {
        let may_rest = self.pace.is_idle()
            && self.status.is_some()
            && self.last.threads == 1
            && matches!(self.last.state, 'S' | 'I' | 'T');
        match &mut self.rest {
            _ if !may_rest => false,
            Resting::Watched(rest) => rest.goes_on(reading),
            Resting::Unknown => {
                let rest = Rest::begin(reading, self.last.identity.pid);
                self.rest = rest.map_or(Resting::Unsaid, Resting::Watched);
                false
            }
            Resting::Unsaid => false,
        }
    }

    /// Reads the process; says whether it is there.
    fn update(&mut self, reading: &mut Reading<'_>, pid: Pid, page: Bytes) -> bool {
        let mut poll = self.poll(reading, page);
        if matches!(poll, Poll::Gone) {
            // Its number may be a younger one's.
            *self = Self::new(reading.tree, pid);
            poll = self.poll(reading, page);
        }
        let Poll::There { changed } = poll else { return false };
        self.pace.next(reading, changed, u64::from(pid.number()));
        let (busy, idle) = STATUS_EVERY;
        let pause = if changed { busy } else { idle };
        let age = self.status.map(|read| reading.now.since(read));
        if age.is_none_or(|age| age.is_none_or(|age| age >= pause)) {
            self.read_status(reading);
        }
        true
    }

    fn poll(&mut self, reading: &mut Reading<'_>, page: Bytes) -> Poll {
        if self.rests(reading) {
            self.last_mut().polled = reading.now;
            return Poll::There { changed: false };
        }
        match reading.tree.read_kept(&mut self.stat, reading.buffer) {
            Ok(true) => (),
            Ok(false) => return Poll::Gone,
            Err(error) => {
                reading.missing.unreadable("processes", error.cause);
                return Poll::Unreadable;
            }
        }
        let (text, _) = text_of(reading.buffer);
        let stat = match pid_stat::parse(&text) {
            Ok(stat) => stat,
            // A process that ends while it is read leaves nothing.
            Err(_) if text.is_empty() => return Poll::Gone,
            Err(error) => {
                reading.missing.add(
                    "processes",
                    &format!("{PROCESSES}/PID/stat: {}", error.sentence()),
                    None,
                );
                return Poll::Unreadable;
            }
        };
        let identity = Identity { pid: self.last.identity.pid, started_ticks: stat.started_ticks };
        let first = self.status.is_none();
        if first {
            self.last = Arc::new(ProcessSample::new(identity));
        } else if identity != self.last.identity {
            return Poll::Gone;
        }
        let changed = first || differs(&self.last, &stat, page);
        let since = if first { at_ticks(stat.started_ticks) } else { self.last.polled.since_boot };
        let before = if first { 0 } else { self.last.cpu_ticks };
        let window = reading.now.since_boot.saturating_sub(since).as_secs_f64() * TICKS_PER_SECOND;
        if stat.cpu_ticks().saturating_sub(before) as f64 > window * BUSY_SHARE {
            self.busy = Some(reading.now);
        }
        apply(self.last_mut(), &stat, page, reading.now);
        Poll::There { changed }
    }

    /// Reads its threads, where they are asked for.
    fn look_at_threads(&mut self, reading: &mut Reading<'_>, scope: &ThreadScope, room: usize) {
        let pid = self.last.identity.pid;
        let busy = || {
            let age = self.busy.and_then(|busy| reading.now.since(busy));
            age.is_some_and(|age| age <= BUSY_FOR)
        };
        let wanted = match scope {
            ThreadScope::None => false,
            ThreadScope::Busy(named) => named.contains(&pid) || !self.last.kernel_thread && busy(),
            ThreadScope::Only(named) => named.contains(&pid),
        };
        if wanted {
            let tasks = self.tasks.read(reading, pid, room);
            self.last_mut().tasks = Some(tasks);
        } else if self.last.tasks.is_some() {
            self.tasks = TaskTable::default();
            self.last_mut().tasks = None;
        }
    }

    /// Reads what hardly changes: whose process it is, what it may use, and its group.
    fn read_status(&mut self, reading: &mut Reading<'_>) {
        self.status = Some(reading.now);
        let last = Arc::make_mut(&mut self.last);
        let path = |name: &str| format!("{PROCESSES}/{}/{name}", last.identity.pid);
        if let Ok(true) = reading.tree.read_into(&path("status"), reading.buffer) {
            let status = proc_status::parse(&text_of(reading.buffer).0).value;
            last.user = status.user;
            last.allowed = Some(Allowed { cpus: status.cpus_allowed, nodes: status.mems_allowed });
        }
        if let Ok(true) = reading.tree.read_into(&path("cgroup"), reading.buffer) {
            let groups = cgroup::parse(&text_of(reading.buffer).0).value;
            let path = cgroup::of_memory(&groups).map(|group| group.path.as_str());
            if last.group.as_deref() != path {
                last.group = path.map(Arc::from);
            }
        }
    }
}

/// The time since boot that a number of ticks is.
fn at_ticks(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND)
}

fn resident(stat: &PidStat<'_>, page: Bytes) -> Option<Bytes> {
    (!stat.kernel_thread).then(|| page.times(stat.resident_pages))
}

/// Whether a process did anything since it was read.
fn differs(last: &ProcessSample, stat: &PidStat<'_>, page: Bytes) -> bool {
    last.cpu_ticks != stat.cpu_ticks()
        || last.resident != resident(stat, page)
        || last.state != stat.state
        || last.threads != stat.threads
        || *last.name != *stat.name
        || last.major_faults != stat.major_faults
}

fn apply(last: &mut ProcessSample, stat: &PidStat<'_>, page: Bytes, now: Moment) {
    last.polled = now;
    if *last.name != *stat.name {
        last.name = stat.name.into();
    }
    last.parent = stat.parent;
    last.state = stat.state;
    last.kernel_thread = stat.kernel_thread;
    last.threads = stat.threads;
    last.cpu_ticks = stat.cpu_ticks();
    last.processor = stat.processor;
    last.resident = resident(stat, page);
    last.major_faults = stat.major_faults;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_processes_are_known_by_the_first_one() {
        let check = |names: &[&str], expected: bool| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(hides(&names), expected, "{names:?}");
        };
        check(&["1", "30", "self"], false);
        check(&["30", "31"], true);
        // A tree without processes, such as a capture.
        check(&["stat"], false);
        assert_eq!(absence(Pid::new(9), false), ("there is no process 9".to_owned(), None));
        let (reason, remedy) = absence(Pid::new(9), true);
        assert!(reason.starts_with("there is no process 9, or /proc hides those of other users"), "{reason}");
        assert_eq!(remedy, Some(Remedy::Root));
    }
}
