//! `nodewise balance`: processes and their memory on the same nodes.

pub(in crate::command) mod act;
mod entries;
mod evaluate;
pub(in crate::command) mod guard;
pub(in crate::command) mod kept;
mod steps;
pub(in crate::command) mod undo;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nodewise_diagnose::balance::{Action, Controller, Judged, Limits, Plan, RemoteTime, Stop, Verdict};
use nodewise_experiment::switching::Switch;
use nodewise_machine::Bytes;
use nodewise_machine::printable::printable;
use nodewise_source::balance_journal::Entry;
use nodewise_source::process::{Pid, status};
use nodewise_source::sample::{Identity, Moment};
use nodewise_source::tree::Tree;
use nodewise_syscall::PageScope;
use nodewise_view::text;
use nodewise_view::text::balance::PlanSetting;

use crate::cli::Global;
use crate::cli::balance::{Balance, BalanceVerb};
use crate::failure::{Failure, INTERNAL, Outcome};
use crate::{measuring, output};

use act::{Acted, Actor};
use kept::{Kept, Lock};
use undo::{Parts, take_back};
use watch::{Watcher, Window};

/// Windows in a row without evidence after which it gives up.
const MOST_SKIPPED: u32 = 5;
/// Exit code where an action made it worse.
const WORSE: u8 = 1;
/// Capabilities by their bits in `include/uapi/linux/capability.h`.
const RIGHTS: [(&str, u32); 2] = [("CAP_SYS_PTRACE", 19), ("CAP_SYS_NICE", 23)];

/// Runs the verb.
pub fn run(args: &Balance, global: &Global) -> Outcome {
    match &args.verb {
        Some(BalanceVerb::Undo(args)) => undo::run(args),
        None if args.apply => apply(args),
        None if args.evaluate => evaluate::run(args, global),
        None => dry_run(args, global),
    }
}

fn limits(args: &Balance) -> Limits {
    Limits {
        windows: args.windows,
        act_at: args.act_at / 100.0,
        least_size: args.min_size,
        least_cpu: args.min_cpu / 100.0,
        least_age: args.min_age,
        rate: args.rate,
        per_hour: args.per_hour,
        settle: args.settle,
        rest: args.rest,
        back_after: args.back_after,
        keep_available: args.keep_available / 100.0,
        pressure: args.pause_psi,
        affinity: !args.no_affinity,
        ..Limits::default()
    }
}

/// Refuses without the rights to move pages of others and to look into them.
pub(in crate::command) fn need_rights(tree: &Tree, verb: &str) -> Result<(), Failure> {
    let own = status(tree, Pid::new(std::process::id())).ok().flatten();
    let own = own.map(|parsed| parsed.value).unwrap_or_default();
    let is_missing = |(_, bit): &&(&str, u32)| own.has_capability(*bit) != Some(true);
    let missing: Vec<&str> = RIGHTS.iter().filter(is_missing).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::cannot(format_args!(
        "{verb} needs CAP_SYS_NICE, to move pages and threads of other users, and CAP_SYS_PTRACE, to see where the \
         pages are (missing here: {}); root has both, in the initial user namespace",
        missing.join(" and ")
    )))
}

fn dry_run(args: &Balance, global: &Global) -> Outcome {
    let interrupt = measuring::interrupt()?;
    let mut watcher = Watcher::begin(args.window, args.min_size, &interrupt)?;
    let mut controller = Controller::new(limits(args));
    let mut last = None;
    for _ in 0..args.windows {
        match watcher.window(args.window, &mut controller, &interrupt)? {
            Window::Seen(plan) => last = Some(plan),
            Window::Skipped(why) => output::say(&format!("a window was left out: {why}")),
            Window::Ended => break,
        }
    }
    let Some(plan) = last else {
        return Err(Failure::cannot("ended before the first window was over: nothing is known yet"));
    };
    let setting = PlanSetting {
        windows: args.windows,
        window: args.window,
        balancing: watcher.machine().settings.numa_balancing.is_some_and(|mode| mode > 0),
        missing_rights: need_rights(&Tree::live(), "balance --apply").err().map(|failure| failure.message),
    };
    let json = || kept::line("", None, entries::plan(&plan, args)).to_text();
    output::show(args.output.json, global.color, json, |style| {
        text::balance::plan(&plan, controller.limits(), &setting, style)
    })?;
    Ok(0)
}

/// A session that acts.
struct Session<'a> {
    args: &'a Balance,
    tree: Tree,
    kept: Kept,
    watcher: Watcher,
    controller: Controller,
    /// Actions of this session that were not taken back, with their processes.
    ids: Vec<(u64, Identity)>,
    worse: usize,
    /// Windows in a row that could not be seen.
    skipped: u32,
    /// Why nothing was done in the last window.
    stop: Option<&'static str>,
    until: Option<Instant>,
    /// Off: windows are watched and nothing is done.
    switch: Switch,
    /// CPU time of the windows, and the part that went to remote memory.
    remote: RemoteTime,
    /// Bytes that moved for actions, and for taking them back.
    moved: Bytes,
    moved_back: Bytes,
    _lock: Lock,
}

fn apply(args: &Balance) -> Outcome {
    let interrupt = measuring::interrupt()?;
    let mut session = Session::begin(args, "balance --apply", limits(args), &interrupt)?;
    session.say(format_args!(
        "watching windows of {:?}; journal {}",
        args.window,
        printable(&session.kept.path())
    ))?;
    let end = args.run_for.and_then(|length| Instant::now().checked_add(length));
    session.until = end;
    let result = loop {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) || interrupt.load(Ordering::Relaxed) {
            break Ok(());
        }
        // CPU time of a short window is too coarse for a decision.
        if left.is_some_and(|left| left < args.window / 2) {
            measuring::wait(end.unwrap_or_else(Instant::now), &interrupt, || false);
            break Ok(());
        }
        let window = left.map_or(args.window, |left| left.min(args.window));
        match session.window(window, &interrupt) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(failure) => break Err(failure),
        }
    };
    if !args.keep {
        let released = session.release(|_| true);
        return result.and(released).map(|()| if session.worse > 0 { WORSE } else { 0 });
    }
    let kept = session.keep();
    result.and(kept).map(|()| if session.worse > 0 { WORSE } else { 0 })
}

impl<'a> Session<'a> {
    /// Begins to watch, and takes back what killed sessions have left.
    fn begin(args: &'a Balance, verb: &str, limits: Limits, interrupt: &AtomicBool) -> Result<Self, Failure> {
        let tree = Tree::live();
        need_rights(&tree, verb)?;
        let lock = Lock::take()?;
        let kept = Kept::open(args.output.journal.as_deref(), &tree, args.output.json)?;
        let watcher = Watcher::begin(args.window, args.min_size, interrupt)?;
        let mut session = Self {
            args,
            tree,
            kept,
            watcher,
            controller: Controller::new(limits),
            ids: Vec::new(),
            worse: 0,
            skipped: 0,
            stop: None,
            until: None,
            switch: Switch::On,
            remote: RemoteTime::default(),
            moved: Bytes::new(0),
            moved_back: Bytes::new(0),
            _lock: lock,
        };
        if let Some(bad) = session.kept.bad().first() {
            return Err(Failure::cannot(format_args!("the journal: {bad}; --journal names another file")));
        }
        session.release_left()?;
        Ok(session)
    }

    /// Text for people; with JSON the lines of the journal are the output.
    fn say(&self, words: std::fmt::Arguments<'_>) -> Result<(), Failure> {
        if !self.args.output.json {
            output::print(&format!("{words}\n"))?;
        }
        Ok(())
    }

    /// One window, and the actions of it; whether there is to be another one.
    fn window(&mut self, length: Duration, interrupt: &Arc<AtomicBool>) -> Result<bool, Failure> {
        let plan = match self.watcher.window(length, &mut self.controller, interrupt)? {
            Window::Seen(plan) => plan,
            Window::Ended => return Ok(false),
            Window::Skipped(why) => {
                self.skipped += 1;
                if self.skipped >= MOST_SKIPPED {
                    return Err(Failure::new(
                        INTERNAL,
                        format_args!("{MOST_SKIPPED} windows in a row: {why}"),
                    ));
                }
                self.say(format_args!("a window was left out: {why}"))?;
                return Ok(true);
            }
        };
        self.skipped = 0;
        self.remote.add(plan.remote);
        if self.switch == Switch::Off {
            return Ok(true);
        }
        let stop = plan.stop.as_ref().map(Stop::word);
        if let Some(why) = plan.stop.as_ref().filter(|_| stop != self.stop) {
            self.say(format_args!("nothing is moved: {why}"))?;
        }
        self.stop = stop;
        self.judge(&plan)?;
        self.kept.shrink_if_large(&self.tree)?;
        self.act_on(&plan, interrupt)?;
        Ok(true)
    }

    /// Carries the actions of a plan out, one after the other, while the plan is not older than its evidence and none ends
    /// otherwise than planned. A later one needs its process to run where the plan saw it, and each looks at its process
    /// again before it begins.
    fn act_on(&mut self, plan: &Plan, interrupt: &Arc<AtomicBool>) -> Result<(), Failure> {
        let (seen, evidence) = (Instant::now(), self.args.window.saturating_mul(self.args.windows));
        for (count, action) in plan.actions.iter().enumerate() {
            if seen.elapsed() >= evidence {
                break;
            }
            if (count == 0 || self.watcher.is_still_away(action)) && !self.act(action, interrupt)? {
                break;
            }
        }
        Ok(())
    }

    /// Carries an action out; whether that went as planned.
    fn act(&mut self, action: &Action, interrupt: &Arc<AtomicBool>) -> Result<bool, Failure> {
        let id = self.kept.next_id();
        self.say(format_args!("action {id}: {}", text::balance::action(action)))?;
        self.ids.push((id, action.process.identity));
        self.controller.begin(action, Moment::now().since_boot);
        let actor = Actor {
            tree: &self.tree,
            machine: self.watcher.machine(),
            limits: self.controller.limits(),
            reason: guard::Reason::Found,
            scope: PageScope::Own,
            everyone: self.watcher.everyone(),
            interrupt: Arc::clone(interrupt),
            until: self.until,
        };
        let Acted { mut done, ending, took } = actor.act(&mut self.kept, id, action)?;
        let tried = (done.moved + done.failed).get();
        let failed = tried > 0 && done.failed.get() as f64 / tried as f64 > self.controller.limits().failed;
        if done.narrowed && (ending != act::DONE || failed) {
            self.release(|open| open == id)?;
            done.narrowed = false;
        }
        self.moved += done.moved;
        self.controller.end(action.process.identity, Moment::now().since_boot, done);
        self.say(format_args!("action {id}: {ending}; {} moved in {:.1} s", done.moved, took.as_secs_f64()))?;
        Ok(ending == act::DONE && !failed)
    }

    fn judge(&mut self, plan: &Plan) -> Result<(), Failure> {
        for (process, why) in &plan.handed_back {
            let entry = Entry::HandedBack { pid: process.identity.pid.number(), why: why.word().to_owned() };
            self.kept.write(None, entry)?;
            self.say(format_args!(
                "{} ({}) {why}: left alone",
                printable(&process.name),
                process.identity.pid
            ))?;
            self.release_process(process.identity)?;
            self.ids.retain(|(_, identity)| *identity != process.identity);
        }
        for process in &plan.release {
            self.say(format_args!(
                "{} ({}) uses all of its CPUs: it gets the others back",
                printable(&process.name),
                process.identity.pid
            ))?;
            self.release_process(process.identity)?;
            self.controller.released(process.identity, Moment::now().since_boot);
        }
        for judged in &plan.judged {
            self.judge_one(judged)?;
        }
        Ok(())
    }

    fn judge_one(&mut self, judged: &Judged) -> Result<(), Failure> {
        let Judged { process, verdict, before, after } = judged;
        let last = self.ids.iter().rev().find(|(_, identity)| *identity == process.identity).copied();
        let Some((id, identity)) = last else { return Ok(()) };
        let entry =
            Entry::Judged { verdict: verdict.word().to_owned(), before_share: *before, after_share: *after };
        self.kept.write(Some(id), entry)?;
        let after = after.map_or_else(|| "?".to_owned(), |after| format!("{:.0}", after * 100.0));
        self.say(format_args!(
            "action {id}: {verdict}; remote memory {:.0} % before, {after} % after; speed not measured",
            before * 100.0
        ))?;
        if *verdict != Verdict::Worse {
            return Ok(());
        }
        self.worse += 1;
        let open = self.kept.open_actions();
        if let Some(action) = open.iter().find(|action| action.id == id) {
            let rate = Some(self.controller.limits().rate);
            let machine = self.watcher.machine();
            let back = take_back(&self.tree, machine, &mut self.kept, action, Parts::All, rate)?;
            self.moved_back += back.moved;
            self.controller.undone(identity, Moment::now().since_boot, back.moved);
            self.say(format_args!("action {id}: taken back, {} moved", back.moved))?;
        }
        self.ids.retain(|(known, _)| *known != id);
        Ok(())
    }

    /// Takes back what sessions that were killed have left: threads of theirs would keep their CPUs.
    fn release_left(&mut self) -> Result<(), Failure> {
        let open = self.kept.open_actions();
        let left = open.iter().rev().filter(|action| !action.threads.is_empty() && !action.keeps_cpus);
        for action in left {
            let machine = self.watcher.machine();
            let back = take_back(&self.tree, machine, &mut self.kept, action, Parts::Threads, None)?;
            self.say(format_args!(
                "action {} of an earlier session: {} threads have their CPUs back",
                action.id, back.threads
            ))?;
        }
        Ok(())
    }

    fn release_process(&mut self, identity: Identity) -> Result<(), Failure> {
        let ids: Vec<u64> =
            self.ids.iter().filter(|(_, known)| *known == identity).map(|(id, _)| *id).collect();
        self.release(|id| ids.contains(&id))
    }

    /// Notes that the CPUs of threads are to stay.
    fn keep(&mut self) -> Result<(), Failure> {
        for action in self.kept.open_actions().iter().filter(|action| !action.threads.is_empty()) {
            self.kept.write(Some(action.id), Entry::KeptCpus {})?;
        }
        Ok(())
    }

    /// Gives threads of some actions of this session their old CPUs back. A journal that cannot be written any more
    /// keeps no thread from it.
    fn release(&mut self, wanted: impl Fn(u64) -> bool) -> Result<(), Failure> {
        let open = self.kept.open_actions();
        let mut result = Ok(());
        for action in open.iter().rev().filter(|action| !action.threads.is_empty()) {
            if !wanted(action.id) || !self.ids.iter().any(|(id, _)| *id == action.id) {
                continue;
            }
            let machine = self.watcher.machine();
            let back = take_back(&self.tree, machine, &mut self.kept, action, Parts::Threads, None);
            let said = back.and_then(|back| {
                let threads = back.threads;
                self.say(format_args!("action {}: {threads} threads have their CPUs back", action.id))
            });
            result = result.and(said);
        }
        result
    }
}
