//! `--apply`: the undoable part of an advice, through the engine and the journal of `balance`, and a drop-in of systemd.

use std::path::Path;

use nodewise_boot::{Root, diff, drop_in, store};
use nodewise_diagnose::Pid;
use nodewise_diagnose::advice::{Advice, InForce, MovablePages, Profile, Undoable};
use nodewise_diagnose::balance::{Action, Limits, Means, Named, Need};
use nodewise_diagnose::finding::Owner;
use nodewise_experiment::shell;
use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, CpuSet};
use nodewise_source::balance_journal::Entry;
use nodewise_source::process::claims;
use nodewise_source::sample::Allowed;
use nodewise_source::tree::Tree;
use nodewise_syscall::PageScope;
use nodewise_view::digest::advice::{AppliedAdvice, AppliedDropIn, AppliedEnd, Recipe};

use super::Watched;
use crate::cli::advise::Advise;
use crate::command::balance::act::{Acted, Actor, DONE};
use crate::command::balance::guard::Reason;
use crate::command::balance::kept::{Kept, Lock};
use crate::command::balance::need_rights;
use crate::command::balance::undo::{Parts, is_own, take_back};
use crate::failure::{CANNOT, Failure, Outcome};
use crate::{boot_files, measuring, output};

/// Exit code where not everything was done.
const NOT_ALL: u8 = 1;

/// Everything known about the process that is placed.
pub(super) struct Placed<'a> {
    pub(super) watched: &'a Watched,
    pub(super) name: &'a str,
    pub(super) profile: &'a Profile,
    pub(super) advice: &'a Advice,
    pub(super) owner: &'a Owner,
    pub(super) in_force: &'a InForce,
    pub(super) recipes: &'a [Recipe],
}

/// Applies it; with `--dry-run` it only says what it would do.
pub(super) fn apply(placed: &Placed<'_>, args: &Advise) -> Result<AppliedAdvice, Failure> {
    let tree = Tree::live();
    let mut applied = AppliedAdvice {
        is_dry: args.dry_run,
        means: Means::default(),
        cpus: placed.profile.cpus.value().cloned(),
        rate: args.rate,
        left: Vec::new(),
        missing_rights: None,
        end: None,
        drop_in: None,
        undo: Vec::new(),
    };
    if *placed.in_force == InForce::Yes {
        return Ok(applied);
    }
    let all_rights = need_rights(&tree, "advise --apply");
    // Pages that forks share stay where they are in a program without segments.
    let has_segments = !placed.profile.common.is_empty();
    let movable =
        if has_segments && all_rights.is_ok() { MovablePages::WithShared } else { MovablePages::Own };
    let Undoable { mut means, elsewhere, left } =
        placed.advice.undoable(placed.profile, placed.owner, movable);
    applied.left = left;
    let identity = placed.watched.process;
    if let Some(why) = means.cpus.as_ref().and_then(|(cpus, _)| not_free(&tree, identity.pid, cpus, placed)) {
        means.cpus = None;
        applied.left.push(format!("CPUs of its threads: {why}"));
    }
    let process = Named { identity, name: placed.name.to_owned() };
    let remote = placed.profile.remote.value().copied();
    let action = Action { process, need: Need::Advised(elsewhere), most: means.size(), means, remote };
    applied.means = action.means.clone();
    let rights = if is_own(&tree, identity.pid) { Ok(()) } else { all_rights };
    match rights {
        Err(missing) if args.dry_run => applied.missing_rights = Some(missing.message),
        Err(missing) if !action.means.is_empty() => return Err(missing),
        _ => {}
    }
    if !args.dry_run && !action.means.is_empty() {
        act(&action, placed, args, &tree, movable, &mut applied)?;
    }
    add_drop_in(placed, args, &mut applied)?;
    Ok(applied)
}

/// Why its threads keep their CPUs: some were given others than the process, or that is not known.
fn not_free(tree: &Tree, pid: Pid, wanted: &CpuSet, placed: &Placed<'_>) -> Option<&'static str> {
    let Some(threads) = claims::claims(tree, pid).cpus else { return Some("they are not readable") };
    let held = placed.profile.cpus.value();
    let is_free = |cpus: &CpuSet| Some(cpus) == held || cpus.is_subset(wanted);
    (!threads.iter().all(is_free)).then_some("some have CPUs of their own, which are left alone")
}

/// The exit code.
pub(super) fn code(applied: &AppliedAdvice) -> u8 {
    match &applied.end {
        _ if applied.is_dry => 0,
        Some(end) if end.is_whole => 0,
        Some(end) if end.moved == Bytes::new(0) && end.threads == 0 => CANNOT,
        Some(_) => NOT_ALL,
        None if applied.left.is_empty() || applied.drop_in.is_some() => 0,
        None => CANNOT,
    }
}

/// Acts as `balance` would, but on the process that the user named; what could only be done in part keeps its pages,
/// and its threads get their CPUs back.
fn act(
    action: &Action,
    placed: &Placed<'_>,
    args: &Advise,
    tree: &Tree,
    movable: MovablePages,
    applied: &mut AppliedAdvice,
) -> Result<(), Failure> {
    let _lock = Lock::take()?;
    let mut kept = Kept::open(args.journal.as_deref(), tree, false)?;
    if let Some(bad) = kept.bad().first() {
        return Err(Failure::cannot(format_args!("the journal: {bad}; --journal names another file")));
    }
    let limits = Limits { rate: args.rate, ..Limits::default() };
    let everyone = Allowed { cpus: placed.profile.cpus.value().cloned(), nodes: None };
    let machine = &placed.watched.machine;
    let actor = Actor {
        tree,
        machine,
        limits: &limits,
        reason: Reason::Named,
        scope: match movable {
            MovablePages::Own => PageScope::Own,
            MovablePages::WithShared => PageScope::All,
        },
        everyone: &everyone,
        interrupt: measuring::interrupt()?,
        until: None,
    };
    let id = kept.next_id();
    let Acted { done, ending, took } = actor.act(&mut kept, id, action)?;
    let open = kept.open_actions().into_iter().find(|open| open.id == id);
    let mut threads = open.as_ref().map_or(0, |open| open.threads.len());
    if let Some(open) = open.as_ref().filter(|_| threads > 0) {
        if ending == DONE {
            // A later balance --apply would take them back otherwise.
            kept.write(Some(id), Entry::KeptCpus {})?;
        } else {
            take_back(tree, machine, &mut kept, open, Parts::Threads, None)?;
            threads = 0;
        }
    }
    let is_whole = ending == DONE && done.failed == Bytes::new(0);
    if kept
        .open_actions()
        .iter()
        .any(|open| open.id == id && (!open.runs.is_empty() || !open.threads.is_empty()))
    {
        let journal = args
            .journal
            .as_ref()
            .map_or_else(String::new, |path| format!(" --journal {}", shell::word(&path.to_string_lossy())));
        applied.undo.push(format!("nodewise balance undo {id}{journal}"));
    }
    applied.end =
        Some(AppliedEnd { id, ending, moved: done.moved, failed: done.failed, threads, took, is_whole });
    Ok(())
}

/// The drop-in of the unit that the user named: planned, and written unless it is a dry run.
fn add_drop_in(placed: &Placed<'_>, args: &Advise, applied: &mut AppliedAdvice) -> Result<(), Failure> {
    let Owner::Service(unit) = placed.owner else { return Ok(()) };
    let Some(recipe) = placed.recipes.iter().find(|of| of.tool == "systemd" && !of.text.is_empty()) else {
        return Ok(());
    };
    let Some(named) = &args.unit else {
        applied.left.push(format!("the next start of {}: --unit writes a drop-in for it", printable(unit)));
        return Ok(());
    };
    let root = root()?;
    let lines: Vec<&str> = recipe.text.lines().filter(|line| !line.starts_with('#')).collect();
    let change = || drop_in::change(&root, unit, &lines.join("\n")).map_err(Failure::cannot);
    let plan = change()?;
    let mut shown = AppliedDropIn { next: plan.next.clone(), ..AppliedDropIn::default() };
    if let Some(edit) = plan.changes().next() {
        shown.path.clone_from(&edit.path);
        shown.diff = diff::unified(&edit.path, &edit.before, &edit.after);
        if !args.dry_run {
            drop_in::make_folder(&root, unit).map_err(Failure::cannot)?;
            store::apply(&root, &change()?, &boot_files::now()).map_err(Failure::cannot)?;
            shown.is_written = true;
            applied.undo.push(format!("nodewise advise --revert --unit {}", shell::word(named)));
        }
        applied.drop_in = Some(shown);
    }
    Ok(())
}

fn root() -> Result<Root, Failure> {
    Root::open(Path::new("/")).map_err(Failure::cannot)
}

/// Takes the last drop-in of a unit back.
pub(super) fn revert(unit: &str) -> Outcome {
    let root = root()?;
    let unit = if unit.ends_with(".service") { unit.to_owned() } else { format!("{unit}.service") };
    let plan = drop_in::undo(&root, &unit).map_err(Failure::cannot)?;
    if plan.edits.is_empty() {
        let path = drop_in::path(&unit).map_err(Failure::cannot)?;
        return Err(Failure::cannot(format_args!("nothing to take back: {path} has no backup of nodewise")));
    }
    let written = store::take_back(&root, &plan).map_err(Failure::cannot)?;
    for file in &written {
        output::print(&format!("{}: as before\n", file.path))?;
    }
    for next in &plan.next {
        output::print(&format!("now: {next}\n"))?;
    }
    Ok(0)
}
