//! `nodewise emulation enable`, `disable` and `undo`.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use nodewise_boot::eeprom::{self, BankLow};
use nodewise_boot::store::{self, Written};
use nodewise_boot::{BootError, Change, Plan, Root, Stamp, diff, loader, plan};
use nodewise_machine::Machine;
use nodewise_model::fake::Fake;
use nodewise_source::Detail;
use nodewise_view::digest::emulation::{Changed, ChangedFile};
use nodewise_view::{json, text};

use super::facts::Facts;
use super::ground::Ground;
use super::{NOTHING_ASKED, asked_for, foresee};
use crate::cli::Global;
use crate::cli::emulation::{Disable, Enable, Target, Undo};
use crate::failure::{Failure, Outcome};
use crate::{input, output};

/// The name under which an EEPROM's configuration is kept, beside the command line.
const EEPROM: &str = "rpi-eeprom-config";
/// Where that is on a system without a command line to be beside of.
const FIRMWARE: &str = "/boot/firmware/";
/// What it is called in a difference.
const EEPROM_SHOWN: &str = "EEPROM (rpi-eeprom-config)";

/// Runs `emulation enable`.
pub(super) fn enable(args: &Enable, global: &Global) -> Outcome {
    only_here(global)?;
    let root = Root::open(&args.target.root).map_err(Failure::usage)?;
    let is_own = is_own(&args.target);
    if args.banklow.is_some() && !is_own {
        return Err(Failure::usage(
            "--banklow: an image has no EEPROM; leave --root out to set this board's",
        ));
    }
    let own = if is_own { Some(Own::look()?) } else { None };
    let board_nodes = own.as_ref().and_then(|own| own.facts.board_nodes());
    let fake = asked_for(&args.cut, board_nodes).map_err(Failure::usage)?;
    let fake = fake.ok_or_else(|| Failure::usage(NOTHING_ASKED))?;
    let loader = loader::kept(&root).map_err(Failure::cannot)?;
    let is_pi = loader.raspberry_pi;
    let policy = match args.policy.as_deref() {
        Some("none") => None,
        Some(policy) => Some(policy),
        None => is_pi.then_some("interleave"),
    };
    let change = Change::emulate(&fake, policy).ok_or_else(|| {
        Failure::usage(
            "--policy: expected a policy as in a mount option of tmpfs: interleave, or interleave:0-3",
        )
    })?;
    // Who says none wants none, also where one stands already.
    let change = if args.policy.as_deref() == Some("none") { change.without_policy() } else { change };
    let plan = plan::change(&root, &loader, &change).map_err(Failure::cannot)?;
    let mut shown =
        Changed { remarks: remarks(own.as_ref(), &fake, policy, is_pi), ..outline(&plan, &args.target) };
    let banks = args.banklow.and_then(BankLow::new).map(|bits| Eeprom::with(bits, &mut shown)).transpose()?;
    if !args.target.dry_run {
        write(&root, &plan, &mut shown)?;
        banks.map_or(Ok(()), |banks| banks.write(&root, &mut shown))?;
    }
    show(&shown, &args.target, global)
}

/// Runs `emulation disable`.
pub(super) fn disable(args: &Disable, global: &Global) -> Outcome {
    only_here(global)?;
    let root = Root::open(&args.target.root).map_err(Failure::usage)?;
    let loader = loader::kept(&root).map_err(Failure::cannot)?;
    let is_pi = loader.raspberry_pi;
    // A Raspberry Pi's boot loader asks for an emulation of its own, before these words.
    let change = if is_pi { Change::one_node() } else { Change::none() };
    let plan = plan::change(&root, &loader, &change).map_err(Failure::cannot)?;
    let mut shown = outline(&plan, &args.target);
    if is_pi {
        let why = "numa=fake=1 stays: the boot loader of newer boards asks for nodes of its own, and the last word counts";
        shown.remarks.push(why.to_owned());
    }
    if !args.target.dry_run {
        write(&root, &plan, &mut shown)?;
    }
    show(&shown, &args.target, global)
}

/// Runs `emulation undo`.
pub(super) fn undo(args: &Undo, global: &Global) -> Outcome {
    only_here(global)?;
    let root = Root::open(&args.target.root).map_err(Failure::usage)?;
    let plan = plan::undo(&root).map_err(Failure::cannot)?;
    let mut shown = outline(&plan, &args.target);
    let banks = if is_own(&args.target) { Eeprom::back(&root, &mut shown)? } else { None };
    if plan.edits.is_empty() && banks.is_none() {
        shown.remarks.push("there is nothing to take back".to_owned());
    }
    if !args.target.dry_run {
        store::take_back(&root, &plan).map_err(Failure::cannot)?;
        banks.map_or(Ok(()), |banks| banks.take_back(&root))?;
    }
    show(&shown, &args.target, global)
}

/// An EEPROM's configuration, before and after.
struct Eeprom {
    before: String,
    after: String,
    /// Where it was kept when it was changed; empty before that.
    backup: String,
}

impl Eeprom {
    /// What `enable --banklow` makes of it.
    fn with(bits: BankLow, shown: &mut Changed) -> Result<Self, Failure> {
        let before = eeprom::read(None).map_err(Failure::cannot)?;
        let after = eeprom::with_banklow(&before, bits).map_err(Failure::cannot)?;
        add_eeprom(&before, &after, shown);
        Ok(Self { before, after, backup: String::new() })
    }

    /// What `undo` makes of it; `None` where nothing was kept.
    fn back(root: &Root, shown: &mut Changed) -> Result<Option<Self>, Failure> {
        // Not every system has an EEPROM, and one without has nothing to take back.
        let Ok(before) = eeprom::read(None) else { return Ok(None) };
        let kept = store::kept_text(root, &eeprom_path(root)?, &before).map_err(Failure::cannot)?;
        let Some((after, backup)) = kept else { return Ok(None) };
        add_eeprom(&before, &after, shown);
        Ok(Some(Self { before, after, backup }))
    }

    fn write(&self, root: &Root, shown: &mut Changed) -> Result<(), Failure> {
        if self.before == self.after {
            return Ok(());
        }
        let path = eeprom_path(root)?;
        let kept = store::keep_text(root, &path, &self.before, &self.after, &now()).map_err(half_done)?;
        eeprom::write(None, &self.after).map_err(half_done)?;
        keep_note(EEPROM_SHOWN, kept, shown);
        Ok(())
    }

    /// Writes what was kept, unless it is there: an `enable` that could not write leaves its backup too.
    fn take_back(&self, root: &Root) -> Result<(), Failure> {
        if self.before != self.after {
            eeprom::write(None, &self.after).map_err(Failure::cannot)?;
        }
        store::forget(root, &self.backup).map_err(Failure::cannot)
    }
}

/// Where an EEPROM's configuration is kept: beside the command line, wherever this system has it.
fn eeprom_path(root: &Root) -> Result<String, Failure> {
    let loader = loader::kept(root).map_err(Failure::cannot)?;
    let line = loader.files.first().filter(|_| loader.raspberry_pi);
    let folder = line.and_then(|(path, _)| path.strip_suffix("cmdline.txt")).unwrap_or(FIRMWARE);
    Ok(format!("{folder}{EEPROM}"))
}

/// The EEPROM is the last to be written.
fn half_done(error: impl std::fmt::Display) -> Failure {
    Failure::cannot(format_args!("{error}; the boot files are done, nodewise emulation undo takes them back"))
}

fn add_eeprom(before: &str, after: &str, shown: &mut Changed) {
    if before == after {
        shown.right.push(EEPROM_SHOWN.to_owned());
    } else {
        let diff = diff::unified("rpi-eeprom-config", before, after);
        shown.files.push(ChangedFile { path: EEPROM_SHOWN.to_owned(), diff, backup: None });
    }
}

/// Boot files are those of this system or of a folder, never of `--machine`.
fn only_here(global: &Global) -> Result<(), Failure> {
    if input::is_live(&global.machine) {
        return Ok(());
    }
    Err(Failure::usage("--machine: boot files are changed on this system, or in an image that --root names"))
}

fn is_own(target: &Target) -> bool {
    target.root == Path::new("/")
}

/// This system, as far as it bears on the change.
struct Own {
    facts: Facts,
    machine: Machine,
}

impl Own {
    fn look() -> Result<Self, Failure> {
        let input = input::load("live", Detail::Full)?;
        Ok(Self { facts: Facts::of(&input, true), machine: input.machine })
    }
}

/// What the reader should know before the next start.
fn remarks(own: Option<&Own>, fake: &str, policy: Option<&str>, is_pi: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some((own, fake)) = own.zip(fake.parse::<Fake>().ok()) {
        let ground = Ground::of(&own.machine, own.facts.log.as_ref());
        remarks.extend(foresee(&fake, &own.machine, &own.facts, &ground).1);
    }
    if policy.is_some() && !is_pi {
        remarks.push("numa_policy= is known to Raspberry Pi kernels only".to_owned());
    }
    remarks
}

/// The change as it is planned.
fn outline(plan: &Plan, target: &Target) -> Changed {
    let file = |edit: &plan::Edit| ChangedFile {
        path: edit.path.clone(),
        diff: diff::unified(&edit.path, &edit.before, &edit.after),
        backup: None,
    };
    let right = plan.edits.iter().filter(|edit| edit.before == edit.after);
    Changed {
        is_dry: target.dry_run,
        files: plan.changes().map(file).collect(),
        right: right.map(|edit| edit.path.clone()).collect(),
        remarks: Vec::new(),
        next: plan.next.clone(),
    }
}

fn write(root: &Root, plan: &Plan, shown: &mut Changed) -> Result<(), Failure> {
    let written = store::apply(root, plan, &now()).map_err(|error: BootError| Failure::cannot(error))?;
    for Written { path, backup } in written {
        keep_note(&path, backup, shown);
    }
    Ok(())
}

/// Notes where the old file is.
fn keep_note(path: &str, backup: String, shown: &mut Changed) {
    if let Some(file) = shown.files.iter_mut().find(|file| file.path == path) {
        file.backup = Some(backup);
    }
}

fn now() -> Stamp {
    Stamp::since_1970(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn show(shown: &Changed, target: &Target, global: &Global) -> Outcome {
    if target.json {
        output::print_json(&json::emulation::changed(shown))?;
    } else {
        output::print(&text::emulation::changed(shown, &output::style(global.color)))?;
    }
    Ok(0)
}
