//! Taking actions back: threads get their old CPUs, and pages go to where they were.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_diagnose::Pid;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::plural::plural;
use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, CpuSet, Machine, NodeId};
use nodewise_source::Detail;
use nodewise_source::balance_journal::{ADVISED, Entry, OpenAction, ThreadChange};
use nodewise_source::mapped::saved::Moved;
use nodewise_source::process::{claims, family, status};
use nodewise_source::sample::{Identity, Life};
use nodewise_source::tree::Tree;
use nodewise_syscall::pages::page_size;
use nodewise_syscall::{Errno, PageScope, Task, affinity};

use super::guard::policy_now;
use super::kept::{Kept, Lock};
use super::need_rights;
use crate::cli::balance::Undo;
use crate::failure::{Failure, Outcome};
use crate::migration::engine::{self, Ending, migrate};
use crate::migration::goal::Goal;
use crate::migration::live::{Process, System};
use crate::migration::regions_back;
use crate::{input, measuring, output};

/// Exit code where something was not taken back.
const NOT_ALL: u8 = 1;
/// Memory pressure in percent above which pages wait on their way back.
const PRESSURE: f64 = nodewise_diagnose::balance::PRESSURE;

/// The parts of an action that are taken back.
#[derive(Clone, Copy, Debug)]
pub(in crate::command) enum Parts {
    All,
    Threads,
}

/// The result of taking an action back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::command) struct Back {
    pub(super) has_ended: bool,
    pub(super) threads: usize,
    /// Threads whose CPUs another program has changed since.
    pub(super) changed: usize,
    pub(super) refused: Option<String>,
    /// Why pages stay where they are.
    pub(super) pages_refused: Option<String>,
    pub(super) moved: Bytes,
    pub(super) failed: Bytes,
}

impl Back {
    pub(super) fn is_whole(&self) -> bool {
        self.refused.is_none()
            && self.pages_refused.is_none()
            && self.failed == Bytes::new(0)
            && self.changed == 0
    }

    pub(super) fn words(&self, action: &OpenAction) -> String {
        let process = &action.began.process;
        let named = format!("action {}: {} ({})", action.id, printable(&process.name), process.pid);
        if self.has_ended {
            return format!("{named} has ended: nothing to take back\n");
        }
        let mut words = format!(
            "{named}: {} back on their CPUs, {} moved back",
            plural(self.threads, "thread"),
            self.moved
        );
        if self.changed > 0 {
            let threads = plural(self.changed, "thread");
            words.push_str(&format!("; {threads} left alone, another program changed the CPUs since"));
        }
        if self.failed > Bytes::new(0) {
            words.push_str(&format!("; {} could not be moved", self.failed));
        }
        if let Some(why) = self.refused.iter().chain(&self.pages_refused).next() {
            words.push_str(&format!("; {why}"));
        }
        words.push('\n');
        words
    }
}

/// Runs `balance undo`.
pub(super) fn run(args: &Undo) -> Outcome {
    let tree = Tree::live();
    // Rights are judged before the lock, which others than root could not even take; and again behind it.
    let (path, open, bad) = Kept::peek(args.output.journal.as_deref())?;
    for bad in bad {
        output::say(&format!("the journal: {bad}; this line is left out"));
    }
    rights(&tree, &wanted(args, open, &path.display().to_string())?)?;
    let _lock = Lock::take()?;
    let machine = input::load("live", Detail::Full)?.machine;
    let mut kept = Kept::open(args.output.journal.as_deref(), &tree, args.output.json)?;
    let open = wanted(args, kept.open_actions(), &kept.path())?;
    rights(&tree, &open)?;
    let mut is_whole = true;
    for action in &open {
        let back = take_back(&tree, &machine, &mut kept, action, Parts::All, args.rate)?;
        is_whole &= back.is_whole();
        if !args.output.json {
            output::print(&back.words(action))?;
        }
    }
    Ok(if is_whole { 0 } else { NOT_ALL })
}

/// The actions that are to be taken back, the last one first.
fn wanted(args: &Undo, mut open: Vec<OpenAction>, journal: &str) -> Result<Vec<OpenAction>, Failure> {
    open.reverse();
    match args.id {
        Some(id) => {
            open.retain(|action| action.id == id);
            if open.is_empty() {
                return Err(Failure::cannot(format_args!(
                    "the journal {journal} has no action {id} that is not taken back"
                )));
            }
        }
        None if !args.all => open.truncate(1),
        None => {}
    }
    if open.is_empty() {
        return Err(Failure::cannot(format_args!(
            "nothing to take back: the journal {journal} has no open action"
        )));
    }
    Ok(open)
}

/// Refuses without rights where a process is another user's.
fn rights(tree: &Tree, actions: &[OpenAction]) -> Result<(), Failure> {
    if actions.iter().all(|action| is_own(tree, Pid::new(action.began.process.pid))) {
        return Ok(());
    }
    need_rights(tree, "balance undo")
}

/// Whether a process is this user's own; one that has ended needs no right.
pub(in crate::command) fn is_own(tree: &Tree, pid: Pid) -> bool {
    match status(tree, pid) {
        Ok(Some(status)) => status.value.user == Some(rustix::process::geteuid().as_raw()),
        Ok(None) => true,
        Err(_) => false,
    }
}

/// Takes an action back, as far as the process is still there.
pub(in crate::command) fn take_back(
    tree: &Tree,
    machine: &Machine,
    kept: &mut Kept,
    action: &OpenAction,
    parts: Parts,
    rate: Option<Bytes>,
) -> Result<Back, Failure> {
    let process = &action.began.process;
    let pid = Pid::new(process.pid);
    let identity = Identity { pid, started_ticks: process.started_ticks };
    let mut back = Back::default();
    let life = if kept.is_of_this_boot(action) { identity.life(tree) } else { Life::Ended };
    if life == Life::Unknown {
        back.refused = Some("the process cannot be read: it stays in the journal".to_owned());
        return Ok(back);
    }
    if life == Life::Ended {
        back.has_ended = true;
        let undone = Entry::Undone { threads: true, pages: true, moved_bytes: 0, failed_bytes: 0 };
        kept.write(Some(action.id), undone)?;
        return Ok(back);
    }
    restore_threads(tree, action, pid, &mut back);
    let pages = matches!(parts, Parts::All);
    if pages && !action.runs.is_empty() {
        match may_go_back(tree, action, pid) {
            Ok(()) => restore_pages(tree, machine, action, identity, rate, &mut back)?,
            Err(why) => back.pages_refused = Some(why),
        }
    }
    let undone = Entry::Undone {
        // Threads that another program changed are its business from now on.
        threads: back.refused.is_none(),
        pages: (pages
            && back.refused.is_none()
            && back.pages_refused.is_none()
            && back.failed == Bytes::new(0))
            || action.runs.is_empty(),
        moved_bytes: back.moved.get(),
        failed_bytes: back.failed.get(),
    };
    kept.write(Some(action.id), undone)?;
    Ok(back)
}

/// Threads that still have the CPUs of the action get their old ones, and so do threads and children that inherited
/// them.
fn restore_threads(tree: &Tree, action: &OpenAction, pid: Pid, back: &mut Back) {
    let Some(first) = action.threads.first() else { return };
    let (Ok(after), Ok(default)) = (first.after.parse::<CpuSet>(), first.before.parse::<CpuSet>()) else {
        back.refused = Some("the CPUs in the journal cannot be read".to_owned());
        return;
    };
    let mut known = BTreeSet::new();
    for process in family(tree, pid) {
        let threads = claims::threads(tree, process).unwrap_or_default();
        for thread in threads.into_iter().filter(|thread| known.insert(*thread)) {
            let is_it = |change: &&ThreadChange| {
                (change.tid, change.started_ticks) == (thread.tid, thread.started_ticks)
            };
            let recorded = action.threads.iter().find(is_it);
            let is_heir = recorded.is_none() && thread.started_ticks >= action.began.at_ticks;
            let before = match recorded.map(|change| change.before.parse::<CpuSet>()) {
                Some(Ok(before)) => before,
                None if is_heir => default.clone(),
                _ => continue,
            };
            let Some(Some(now)) = claims::cpus(tree, process, thread.tid) else { continue };
            if now == before {
                continue;
            }
            if now != after {
                back.changed += usize::from(recorded.is_some());
                continue;
            }
            let Some(task) = Task::new(thread.tid) else { continue };
            match affinity::set_cpus(task, &before) {
                Ok(()) => back.threads += 1,
                Err(error) if matches!(error.errno, Errno::ESRCH | Errno::EINVAL) => {}
                Err(error) => back.refused = Some(error.to_string()),
            }
        }
    }
}

/// Whether pages may go back: not where another program has placed the process since.
fn may_go_back(tree: &Tree, action: &OpenAction, pid: Pid) -> Result<(), String> {
    let image = claims::image(tree, pid);
    if action.began.image.is_some() && image != action.began.image {
        return Err("it runs another program now: its pages stay".to_owned());
    }
    // One that a user named may have had its policy all along.
    let is_named = action.began.action.need == ADVISED;
    if is_named {
        return in_cpuset(tree, action, pid);
    }
    if let Some(why) = policy_now(tree, pid)? {
        return Err(format!("it {why}: its pages stay"));
    }
    if claims::claims(tree, pid).policies.is_none_or(|policies| !policies.is_empty()) {
        return Err("a thread has a memory policy, or an unknown one: its pages stay".to_owned());
    }
    in_cpuset(tree, action, pid)
}

/// Whether the process may use the nodes that its pages came from.
fn in_cpuset(tree: &Tree, action: &OpenAction, pid: Pid) -> Result<(), String> {
    let status = status(tree, pid).ok().flatten();
    let allowed = status.and_then(|parsed| parsed.value.mems_allowed);
    if !allowed.is_some_and(|allowed| action.runs.iter().all(|run| allowed.contains(run.node))) {
        return Err("it is in a narrower cpuset: its pages stay".to_owned());
    }
    Ok(())
}

/// The pages that go back: of an action that a user asked for also those that other processes map, with the rights to.
fn scope_of(tree: &Tree, action: &OpenAction) -> PageScope {
    let is_named = action.began.action.need == ADVISED;
    if is_named && need_rights(tree, "balance undo").is_ok() { PageScope::All } else { PageScope::Own }
}

fn restore_pages(
    tree: &Tree,
    machine: &Machine,
    action: &OpenAction,
    identity: Identity,
    rate: Option<Bytes>,
    back: &mut Back,
) -> Result<(), Failure> {
    let mut runs = action.runs.clone();
    runs.order_by_key(|run| run.start);
    // A page that is not where the action sent it was moved by another hand since.
    let sent = action.began.action.pages.iter();
    let sent: BTreeMap<u32, u32> = sent.map(|pages| (pages.from, pages.to)).collect_map();
    let mut regions = regions_back(&runs);
    for (region, run) in regions.iter_mut().zip(&runs) {
        let spread = action.began.action.spread.iter();
        let to = sent.get(&run.node.number()).into_iter().chain(spread);
        let to = to.map(|to| (NodeId::new(*to), run.node)).filter(|(to, from)| to != from);
        region.goal = Goal::Nodes(to.collect());
    }
    let page = Bytes::new(page_size() as u64);
    let Some(task) = Task::new(identity.pid.number()) else { return Ok(()) };
    let mut process = Process {
        tree,
        pid: identity.pid,
        task,
        started_at_ticks: identity.started_ticks,
        scope: scope_of(tree, action),
    };
    let expected = runs.iter().map(|run| Bytes::new(run.length)).sum();
    let noted = Moved::new(identity.pid, identity.started_ticks, String::new());
    let mut system = System::new(tree, measuring::interrupt()?, expected, page, noted);
    let huge = machine.settings.transparent_hugepage_size.unwrap_or(page);
    let limits = engine::Limits { rate, pressure: Some(PRESSURE), page, huge };
    let report = migrate(&regions, limits, &mut process, &mut system);
    system.finish();
    back.moved = report.moved;
    back.failed = report.failed_of_its_own();
    match report.ending {
        Ending::Done => {}
        Ending::Interrupted => back.refused = Some("interrupted: the same command resumes".to_owned()),
        Ending::ProcessEnded => back.has_ended = true,
        Ending::Refused(error) => back.refused = Some(error.to_string()),
    }
    Ok(())
}
