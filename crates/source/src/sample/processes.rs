//! Processes: found when something was forked, read when they are due.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::Bytes;

use super::reading::Reading;
use super::{Allowed, Identity, Moment, ProcessSample, ProcessScope};
use crate::parse::pid_stat::{self, PidStat};
use crate::parse::{cgroup, proc_status, text_of};
use crate::paths::PROCESSES;
use crate::process::Pid;
use crate::tree::{Kept, Tree};

/// Processes are looked for at most this often, and only after something was forked: a name in `/proc` costs 1.3 to
/// 1.5 us.
const LIST_EVERY: Duration = Duration::from_secs(5);
/// An idle process is read at least this often.
const IDLE_MOST: Duration = Duration::from_secs(8);
/// The same in samples: a power of two, doubled from 1.
const IDLE_MOST_TICKS: u64 = 8;
/// How often the CPUs, nodes and groups of a process are read again: of one that works, and of one that sleeps.
const STATUS_EVERY: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(120));

/// The processes that are known.
#[derive(Debug)]
pub(super) struct ProcessTable {
    known: BTreeMap<Pid, Tracked>,
    /// When processes were looked for, and the number of forks before that.
    listed: Option<(Moment, Option<u64>)>,
    /// Descriptors that may be held open, and those that are.
    room: usize,
    open: usize,
}

/// A process, as it was read last.
#[derive(Debug)]
struct Tracked {
    stat: Kept,
    last: Arc<ProcessSample>,
    /// The number of the sample that reads it next.
    due: u64,
    /// Samples between two readings.
    pause: u64,
    /// When its status was read.
    status: Option<Moment>,
}

/// The result of reading a process.
enum Poll {
    /// It is there; whether anything changed.
    There { changed: bool },
    /// It has ended, and its number may be another's.
    Gone,
    /// It is there, and its file is no use.
    Unreadable,
}

impl ProcessTable {
    /// A table that holds at most this number of files open.
    pub(super) const fn new(room: usize) -> Self {
        Self { known: BTreeMap::new(), listed: None, room, open: 0 }
    }

    pub(super) fn read(
        &mut self,
        reading: &mut Reading<'_>,
        scope: &ProcessScope,
        forks: Option<u64>,
        page: Bytes,
    ) -> Vec<Arc<ProcessSample>> {
        match scope {
            ProcessScope::None => return Vec::new(),
            ProcessScope::All => self.list(reading, forks),
            ProcessScope::Only(pids) => {
                for pid in pids {
                    self.known.entry(*pid).or_insert_with(|| Tracked::new(reading.tree, *pid)).due = 0;
                }
            }
        }
        let (mut open, room) = (self.open, self.room);
        self.known.retain(|pid, tracked| {
            if !tracked.is_due(reading) {
                return true;
            }
            let held = usize::from(tracked.stat.is_open());
            let stays = tracked.update(reading, *pid, page);
            open -= held;
            if stays && tracked.stat.is_open() {
                if open < room {
                    open += 1;
                } else {
                    tracked.stat = keep(reading.tree, *pid);
                }
            }
            stays
        });
        self.open = open;
        if let ProcessScope::Only(pids) = scope {
            for pid in pids.iter().filter(|pid| !self.known.contains_key(pid)) {
                reading.missing.add("processes", &format!("there is no process {pid}"), None);
            }
        }
        self.known.values().map(|tracked| Arc::clone(&tracked.last)).collect()
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
        for pid in names.iter().filter_map(|name| number(name)) {
            self.known.entry(pid).or_insert_with(|| Tracked::new(reading.tree, pid));
        }
        self.listed = Some((reading.now, forks));
    }
}

fn keep(tree: &Tree, pid: Pid) -> Kept {
    tree.keep(&format!("{PROCESSES}/{pid}/stat"))
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
            due: 0,
            pause: 0,
            status: None,
        }
    }

    fn is_due(&self, reading: &Reading<'_>) -> bool {
        self.due <= reading.tick || reading.now.since(self.last.polled).is_none_or(|age| age >= IDLE_MOST)
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
        self.pause = if changed { 1 } else { (self.pause * 2).clamp(1, IDLE_MOST_TICKS) };
        self.due = next_due(reading.tick, self.pause, pid);
        let (busy, idle) = STATUS_EVERY;
        let pause = if changed { busy } else { idle };
        let age = self.status.map(|read| reading.now.since(read));
        if age.is_none_or(|age| age.is_none_or(|age| age >= pause)) {
            self.read_status(reading);
        }
        true
    }

    fn poll(&mut self, reading: &mut Reading<'_>, page: Bytes) -> Poll {
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
        apply(Arc::make_mut(&mut self.last), &stat, page, reading.now);
        Poll::There { changed }
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

/// The sample that reads an idle process next: at most `pause` samples later, at a place that its number gives, so
/// that processes that were found together are not read together for ever.
fn next_due(tick: u64, pause: u64, pid: Pid) -> u64 {
    let next = tick + 1;
    let phase = (next + u64::from(pid.number())) % pause;
    next + (pause - phase) % pause
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
