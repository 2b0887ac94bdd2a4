//! `nodewise emulation enable`, `disable` and `undo`.

use std::path::Path;

use nodewise_boot::eeprom::{self, BankLow};
use nodewise_boot::loader::{self, Loader};
use nodewise_boot::policy::DefaultPolicy;
use nodewise_boot::store;
use nodewise_boot::{Change, Policy, Root, Subject, diff, plan};
use nodewise_machine::policy::PolicyError;
use nodewise_machine::{Machine, NodeId};
use nodewise_model::fake::{Fake, Form};
use nodewise_source::Detail;
use nodewise_view::digest::emulation::{Changed, ChangedFile};
use nodewise_view::{json, text};

use super::facts::Facts;
use super::ground::Ground;
use super::image::Image;
use super::{NOTHING_ASKED, asked_for, foresee, named, parsed};
use crate::cli::Global;
use crate::cli::emulation::{Disable, Enable, Target, Undo};
use crate::failure::{Failure, Outcome};
use crate::{boot_files, input, output};

/// The word instead of a policy where none is wanted.
const NO_POLICY: &str = "none";
/// The name under which an EEPROM's configuration is kept, beside the command line.
const EEPROM: &str = "rpi-eeprom-config";
/// Where that is on a system without a command line to be beside of.
const FIRMWARE: &str = "/boot/firmware/";
/// Its name in a difference.
const EEPROM_SHOWN: &str = "EEPROM (rpi-eeprom-config)";

/// Runs `emulation enable`.
pub(super) fn enable(args: &Enable, global: &Global) -> Outcome {
    boot_files::only_here(global)?;
    let root = Root::open(&args.target.root).map_err(Failure::usage)?;
    let is_own = is_own(&args.target);
    if args.banklow.is_some() && !is_own {
        return Err(Failure::usage(
            "--banklow: an image has no EEPROM; leave --root out to set this board's",
        ));
    }
    let own = if is_own { Some(Own::look()?) } else { None };
    let board_nodes = own.as_ref().and_then(|own| own.facts.board_nodes());
    let text = asked_for(&args.cut, board_nodes).map_err(Failure::usage)?;
    let text = text.ok_or_else(|| Failure::usage(NOTHING_ASKED))?;
    let fake = parsed(&text)?;
    let loader = loader::kept(&root).map_err(Failure::cannot)?;
    let wish = args.policy.as_deref().filter(|policy| *policy != NO_POLICY);
    let wish = wish.map(|policy| default_policy(policy, &fake)).transpose()?;
    let interleave = DefaultPolicy::interleave();
    let policy = match (&wish, &args.policy) {
        (Some(policy), _) => Policy::Set(policy),
        // Who says none wants none, also where one is already.
        (None, Some(_)) => Policy::Remove,
        (None, None) if loader.raspberry_pi => Policy::Set(&interleave),
        (None, None) => Policy::Leave,
    };
    let change = Change::emulate(&text, policy)
        .ok_or_else(|| Failure::usage(format_args!("numa=fake={text} is not a plain word")))?;
    let plan = plan::change(&root, &loader, &change).map_err(Failure::cannot)?;
    let mut remarks = remarks(own.as_ref(), &root, &fake)?;
    if matches!(policy, Policy::Set(_)) && !loader.raspberry_pi {
        remarks.push("numa_policy= is known to Raspberry Pi kernels only".to_owned());
    }
    let mut shown = Changed { remarks, ..boot_files::outline(&plan, args.target.dry_run) };
    let banks = args.banklow.and_then(BankLow::new);
    let banks = banks.map(|bits| Eeprom::with(bits, eeprom_path(&loader), &mut shown)).transpose()?;
    boot_files::apply(&root, &plan, &mut shown)?;
    if !args.target.dry_run {
        banks.map_or(Ok(()), |banks| banks.write(&root, &mut shown))?;
    }
    show(&shown, &args.target, global)
}

/// Lists what the next kernel, of this system or of an image, will not make of such words.
fn remarks(own: Option<&Own>, root: &Root, fake: &Fake) -> Result<Vec<String>, Failure> {
    match own {
        Some(own) => Ok(own.remarks(fake)),
        None => Ok(Image::from_root(root).map_err(Failure::cannot)?.remarks(fake)),
    }
}

/// Reads a default policy, which may name only nodes that such an emulation can have.
fn default_policy(text: &str, fake: &Fake) -> Result<DefaultPolicy, Failure> {
    let wrong = |why: String| Failure::usage(format_args!("--policy: {why}"));
    let policy: DefaultPolicy = text.parse().map_err(|error: PolicyError| wrong(error.to_string()))?;
    if let (Some(last), Form::Count(count)) = (policy.nodes().last(), fake.form) {
        if last.number() >= count {
            let there = named(&(0..count).map(NodeId::new).collect());
            return Err(wrong(format!("node {last} will not exist: numa=fake={count} makes {there}")));
        }
    }
    Ok(policy)
}

/// Runs `emulation disable`.
pub(super) fn disable(args: &Disable, global: &Global) -> Outcome {
    boot_files::only_here(global)?;
    let root = Root::open(&args.target.root).map_err(Failure::usage)?;
    let loader = loader::kept(&root).map_err(Failure::cannot)?;
    let is_pi = loader.raspberry_pi;
    // A Raspberry Pi's boot loader asks for an emulation of its own, before these words.
    let change = if is_pi { Change::one_node() } else { Change::none() };
    let plan = plan::change(&root, &loader, &change).map_err(Failure::cannot)?;
    let mut shown = boot_files::outline(&plan, args.target.dry_run);
    if is_pi {
        let why = "numa=fake=1 stays: the boot loader of newer boards requests nodes of its own, and the last request takes precedence";
        shown.remarks.push(why.to_owned());
    }
    boot_files::apply(&root, &plan, &mut shown)?;
    show(&shown, &args.target, global)
}

/// Runs `emulation undo`.
pub(super) fn undo(args: &Undo, global: &Global) -> Outcome {
    boot_files::only_here(global)?;
    let root = Root::open(&args.target.root).map_err(Failure::usage)?;
    let plan = plan::undo(&root, Subject::Emulation).map_err(Failure::cannot)?;
    let mut shown = boot_files::outline(&plan, args.target.dry_run);
    let banks = if is_own(&args.target) { Eeprom::back(&root, &mut shown)? } else { None };
    if plan.edits.is_empty() && banks.is_none() {
        shown.remarks.push("there is nothing to take back".to_owned());
    }
    boot_files::undo(&root, &plan, &mut shown)?;
    if !args.target.dry_run {
        banks.map_or(Ok(()), |banks| banks.take_back(&root))?;
    }
    show(&shown, &args.target, global)
}

/// An EEPROM's configuration, before and after.
struct Eeprom {
    before: String,
    after: String,
    /// The path of the file that it is kept beside.
    path: String,
    /// Where it was kept when it was changed; empty before that.
    backup: String,
}

impl Eeprom {
    /// Makes the change of `enable --banklow`.
    fn with(bits: BankLow, path: String, shown: &mut Changed) -> Result<Self, Failure> {
        let before = eeprom::read(None).map_err(Failure::cannot)?;
        let after = eeprom::with_banklow(&before, bits).map_err(Failure::cannot)?;
        add_eeprom(&before, &after, shown);
        Ok(Self { before, after, path, backup: String::new() })
    }

    /// Makes the change of `undo`; `None` where nothing was kept.
    fn back(root: &Root, shown: &mut Changed) -> Result<Option<Self>, Failure> {
        // Not every system has an EEPROM, and one without has nothing to take back.
        let Ok(before) = eeprom::read(None) else { return Ok(None) };
        let path = eeprom_path(&loader::kept(root).map_err(Failure::cannot)?);
        let kept = store::kept_text(root, &path, &before).map_err(Failure::cannot)?;
        let Some((after, backup)) = kept else { return Ok(None) };
        add_eeprom(&before, &after, shown);
        Ok(Some(Self { before, after, path, backup }))
    }

    fn write(&self, root: &Root, shown: &mut Changed) -> Result<(), Failure> {
        if self.before == self.after {
            return Ok(());
        }
        let kept = store::keep_text(root, &self.path, &self.before, &self.after, &boot_files::now())
            .map_err(half_done)?;
        eeprom::write(None, &self.after).map_err(half_done)?;
        boot_files::keep_note(EEPROM_SHOWN, kept, shown);
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
fn eeprom_path(loader: &Loader) -> String {
    format!("{}{EEPROM}", loader.firmware_folder().unwrap_or(FIRMWARE))
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
        Ok(Self { facts: Facts::from_input(&input, true), machine: input.machine })
    }

    /// Lists remarks that the reader should know before the next start.
    fn remarks(&self, fake: &Fake) -> Vec<String> {
        let ground = Ground::from_machine(&self.machine, self.facts.log.as_ref());
        foresee(fake, &self.machine, &self.facts, &ground).1.into_iter().collect()
    }
}

fn show(shown: &Changed, target: &Target, global: &Global) -> Outcome {
    let json = || json::emulation::changed(json::emulation::CHANGE_SCHEMA, shown);
    output::show(target.json, global.color, json, |style| text::emulation::changed(shown, style))?;
    Ok(0)
}
