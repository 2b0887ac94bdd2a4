//! One action on a process: CPUs of its threads, then its pages, each step in the journal first.

mod bounded;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use nodewise_diagnose::Pid;
use nodewise_diagnose::attribution::to_ticks;
use nodewise_diagnose::balance::{Action, Done, Limits};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{Bytes, CpuSet, Machine, NodeId};
use nodewise_source::balance_journal::{Began, Entry, RunEntry, ThreadChange};
use nodewise_source::mapped::saved::{Moved, Run};
use nodewise_source::mapped::{Mapped, MemoryKind};
use nodewise_source::process::claims;
use nodewise_source::sample::{Allowed, Moment};
use nodewise_source::tree::Tree;
use nodewise_syscall::pages::{PageLocation, Tried, page_size};
use nodewise_syscall::{Call, CallError, Errno, PageScope, Task, affinity};

use self::bounded::Bounded;
use super::entries;
use super::guard::{Guard, Reason};
use super::kept::Kept;
use crate::failure::Failure;
use crate::migration::engine::{self, Ending, Memory, migrate};
use crate::migration::goal::Goal;
use crate::migration::live::{Process, System};
use crate::migration::{Region, regions};

/// Rounds over the threads: those that began during one are found in the next.
const ROUNDS: usize = 8;
/// Bytes of the journal that an action may have.
const MOST_JOURNAL: u64 = 16 << 20;

/// The ending of an action that was carried out as planned.
pub(in crate::command) const DONE: &str = "done";

/// Everything an action needs of this system.
pub(in crate::command) struct Actor<'a> {
    pub(in crate::command) tree: &'a Tree,
    pub(in crate::command) machine: &'a Machine,
    pub(in crate::command) limits: &'a Limits,
    pub(in crate::command) reason: Reason,
    /// The pages that move: those of a process alone, or those of segments that others map, too.
    pub(in crate::command) scope: PageScope,
    /// CPUs and nodes that processes have by default; of a process that a user named, those that it has.
    pub(in crate::command) everyone: &'a Allowed,
    pub(in crate::command) interrupt: Arc<AtomicBool>,
    /// When an action is to end, however far it is.
    pub(in crate::command) until: Option<Instant>,
}

/// A carried out action.
pub(in crate::command) struct Acted {
    pub(in crate::command) done: Done,
    pub(in crate::command) ending: String,
    pub(in crate::command) took: Duration,
}

impl Actor<'_> {
    /// Carries an action out. What the kernel or the process refuses ends it; only a journal that cannot be written is
    /// an error.
    pub(in crate::command) fn act(
        &self,
        kept: &mut Kept,
        id: u64,
        action: &Action,
    ) -> Result<Acted, Failure> {
        let mut acted = Acted { done: Done::default(), ending: DONE.to_owned(), took: Duration::ZERO };
        let pid = action.process.identity.pid;
        let mut guard = self.guard(action);
        let mappings = match kept.has_room().and_then(|()| guard.confirm()) {
            Ok(mappings) => mappings,
            Err(why) => {
                acted.ending = why;
                return Ok(acted);
            }
        };
        let began = Began {
            process: entries::process(&action.process),
            at_ticks: to_ticks(Moment::now().since_boot),
            image: claims::image(self.tree, pid),
            action: entries::action(action),
        };
        kept.write(Some(id), Entry::Began(began))?;
        if let Some((cpus, _)) = &action.means.cpus {
            acted.done.narrowed = true;
            if let Err(why) = self.narrow(kept, id, pid, cpus, |before| guard.is_free(before))? {
                acted.ending = why;
            }
        }
        if acted.ending == DONE && !action.means.targets().is_empty() {
            self.move_pages(kept, id, action, &mappings, &mut guard, &mut acted)?;
        }
        kept.write(Some(id), entries::ended(&acted))?;
        Ok(acted)
    }

    fn guard<'g>(&'g self, action: &'g Action) -> Guard<'g> {
        let cpus = action.means.cpus.as_ref().map(|(cpus, _)| cpus);
        let online = self.machine.online_cpus();
        let identity = action.process.identity;
        let targets = action.means.targets();
        Guard::new(self.tree, self.limits, self.reason, self.everyone, online, identity, targets).giving(cpus)
    }

    /// Narrows the CPUs of all threads; returns why it could not.
    pub(super) fn narrow(
        &self,
        kept: &mut Kept,
        id: u64,
        pid: Pid,
        cpus: &CpuSet,
        is_free: impl Fn(&CpuSet) -> bool,
    ) -> Result<Result<(), String>, Failure> {
        let mut seen = BTreeSet::new();
        let others = || Ok(Err("changed meanwhile: another program set the CPUs of its threads".to_owned()));
        for _ in 0..ROUNDS {
            let Some(threads) = claims::threads(self.tree, pid) else {
                return Ok(Err("the process has ended".to_owned()));
            };
            let new: Vec<_> = threads.into_iter().filter(|thread| seen.insert(*thread)).collect();
            let change = |thread: &claims::Thread| {
                let before = claims::cpus(self.tree, pid, thread.tid)??;
                // A thread that keeps to some of them has its reasons.
                if before.is_subset(cpus) {
                    return None;
                }
                Some(ThreadChange {
                    tid: thread.tid,
                    started_ticks: thread.started_ticks,
                    before: before.to_string(),
                    after: cpus.to_string(),
                })
            };
            let changes: Vec<ThreadChange> = new.iter().filter_map(change).collect();
            if new.is_empty() {
                return Ok(Ok(()));
            }
            if changes.is_empty() {
                continue;
            }
            kept.write(Some(id), Entry::Affinity { threads: changes.clone() })?;
            // Time has passed on the disk: a number can be that of another thread by now, or another hand was faster.
            for change in changes {
                let Some(task) = Task::new(change.tid) else { continue };
                let is_it = |thread: &claims::Thread| {
                    (thread.tid, thread.started_ticks) == (change.tid, change.started_ticks)
                };
                if !claims::thread(self.tree, pid, change.tid).as_ref().is_some_and(is_it) {
                    continue;
                }
                match claims::cpus(self.tree, pid, change.tid) {
                    None => continue,
                    Some(Some(now)) if now.to_string() == change.before && is_free(&now) => {}
                    Some(_) => return others(),
                }
                match affinity::set_cpus(task, cpus) {
                    Ok(()) => {}
                    // Some threads of the kernel's in a process may not be narrowed.
                    Err(error) if matches!(error.errno, Errno::ESRCH | Errno::EINVAL) => {}
                    Err(error) => return Ok(Err(error.to_string())),
                }
            }
        }
        Ok(Ok(()))
    }

    fn move_pages(
        &self,
        kept: &mut Kept,
        id: u64,
        action: &Action,
        mappings: &[Mapped],
        guard: &mut Guard<'_>,
        acted: &mut Acted,
    ) -> Result<(), Failure> {
        let identity = action.process.identity;
        let goal = goal(action);
        let kinds: Vec<MemoryKind> =
            MemoryKind::ALL.into_iter().filter(|kind| *kind != MemoryKind::File).collect();
        let regions = regions(mappings, &kinds, None, &goal);
        let Some(task) = Task::new(identity.pid.number()) else { return Ok(()) };
        let page = Bytes::new(page_size() as u64);
        let kept_size = kept.size();
        let mut memory = Written {
            inner: Process {
                tree: self.tree,
                pid: identity.pid,
                task,
                started_at_ticks: identity.started_ticks,
                scope: self.scope,
            },
            task,
            regions: &regions,
            kept,
            id,
            located: Vec::new(),
            written: None,
            failure: None,
            is_full: false,
            most: kept_size + MOST_JOURNAL,
        };
        let noted = Moved::new(identity.pid, identity.started_ticks, String::new());
        let mut around = Bounded {
            inner: System::new(self.tree, Arc::clone(&self.interrupt), action.most, page, noted),
            guard,
            until: self.until,
            failed: self.limits.failed,
            page,
            left: action.most,
            rooms: BTreeMap::new(),
            ended: None,
        };
        let limits = engine::Limits {
            rate: Some(self.limits.rate),
            pressure: Some(self.limits.pressure),
            page,
            huge: self.machine.settings.transparent_hugepage_size.unwrap_or(page),
        };
        let report = migrate(&regions, limits, &mut memory, &mut around);
        around.inner.finish();
        if let Some(failure) = memory.failure {
            return Err(failure);
        }
        acted.took = report.took;
        acted.done = Done { moved: report.moved, failed: report.failed_of_its_own(), ..acted.done };
        acted.ending = match &report.ending {
            _ if around.ended.is_some() => around.ended.unwrap_or_default(),
            _ if memory.is_full => "its pages are in too many pieces for the journal".to_owned(),
            ending => words(ending, around.left < page, action),
        };
        Ok(())
    }
}

/// The words for the ending of an action whose bytes have all moved, or not.
fn words(ending: &Ending, has_moved_all: bool, action: &Action) -> String {
    match ending {
        Ending::Done => DONE.to_owned(),
        // Pages that came since the plan was made are not part of it.
        Ending::Interrupted if has_moved_all && action.is_whole() => DONE.to_owned(),
        Ending::Interrupted if has_moved_all => {
            "the bytes that the hour or the day leaves have moved".to_owned()
        }
        Ending::Interrupted => "interrupted".to_owned(),
        Ending::ProcessEnded => "the process has ended".to_owned(),
        Ending::Refused(error) => error.to_string(),
    }
}

/// Where the pages of an action go.
fn goal(action: &Action) -> Goal {
    match &action.means.spread {
        Some(spread) => Goal::Interleave { from: spread.from.clone(), over: spread.over.iter().collect() },
        None => Goal::Nodes(action.means.pages.iter().map(|pages| (pages.from, pages.to)).collect_map()),
    }
}

/// The memory of a process, with the pages of each batch in the journal before they move.
struct Written<'a> {
    inner: Process<'a>,
    task: Task,
    regions: &'a [Region],
    kept: &'a mut Kept,
    id: u64,
    /// The pages that were asked for last, and their nodes.
    located: Vec<(u64, NodeId)>,
    /// The addresses of the batch that was written down last; further tries are within it.
    written: Option<(u64, u64)>,
    /// Why the journal cannot be written: then nothing moves any more.
    failure: Option<Failure>,
    /// Whether the action has all of the journal that it may have.
    is_full: bool,
    /// The size of the journal up to which the action goes on.
    most: u64,
}

impl Written<'_> {
    /// The pages that may move now: those that leave their node, joined.
    fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (address, node) in &self.located {
            let at = self.regions.partition_point(|region| region.end <= *address);
            let Some(region) = self.regions.get(at).filter(|region| region.start <= *address) else {
                continue;
            };
            if !region.goal.leaves(*node) {
                continue;
            }
            let length = region.page_size.get();
            match runs.last_mut() {
                Some(last) if last.end() == *address && last.node == *node && last.kind == region.kind => {
                    last.length += length;
                }
                _ => runs.push(Run {
                    start: *address,
                    length,
                    page_size: region.page_size,
                    kind: region.kind,
                    node: *node,
                }),
            }
        }
        runs
    }
}

impl Memory for Written<'_> {
    fn locate(&mut self, pages: &[u64]) -> Result<Vec<PageLocation>, CallError> {
        let places = self.inner.locate(pages)?;
        let on_node = |(address, place): (&u64, &PageLocation)| match place {
            PageLocation::Node(node) => Some((*address, *node)),
            _ => None,
        };
        self.located = pages.iter().zip(&places).filter_map(on_node).collect();
        Ok(places)
    }

    fn present(&mut self, range: (u64, u64)) -> Option<Vec<(u64, u64)>> {
        self.inner.present(range)
    }

    fn move_pages(&mut self, moves: &[(u64, NodeId)]) -> Tried {
        let first = moves.first().map_or(0, |(address, _)| *address);
        if !self.written.is_some_and(|(from, to)| from <= first && first <= to) {
            let runs = self.runs();
            self.written = self.located.first().zip(self.located.last()).map(|(from, to)| (from.0, to.0));
            let entry = Entry::Batch { runs: runs.iter().map(RunEntry::new).collect() };
            if self.kept.size() >= self.most {
                self.is_full = true;
            } else if let Err(failure) = self.kept.write(Some(self.id), entry) {
                self.failure = Some(failure);
            }
        }
        if self.failure.is_some() || self.is_full {
            let call = Call::MovePages { task: self.task, pages: moves.len(), targets: None };
            return Tried { said: vec![None; moves.len()], failed: Some(CallError::new(call, Errno::EIO)) };
        }
        self.inner.move_pages(moves)
    }

    fn is_alive(&mut self) -> bool {
        self.inner.is_alive()
    }
}

#[cfg(test)]
mod tests;
