//! `nodewise lab`.

mod check;
mod code;
pub mod count;
pub mod marks;
mod play;

use std::ffi::OsString;
use std::fmt::Display;
use std::io;

use nodewise_experiment::shell;
use nodewise_lab::layout::LayoutError;
use nodewise_lab::{
    Arch, BootEvent, EngineChoice, Engines, Guest, GuestError, Lab as Parts, Layout, Limits, Stage, qemu,
};
use nodewise_machine::{Bytes, Machine};
use nodewise_source::Detail;

use crate::cli::Global;
use crate::cli::lab::{Lab, LabEngine};
use crate::failure::{Failure, NOT_STARTED, Outcome};
use crate::measuring::line::{BehindLine, ProgressLine};
use crate::{input, output};

/// Runs the verb: the exit code is the command's own.
pub fn run(args: &Lab, global: &Global) -> Outcome {
    if let Some(scripts) = &args.check.play {
        return play::run(scripts, &args.check.kind, args.check.model.as_ref());
    }
    if let Some(pages) = args.check.pages {
        return play::pages(pages);
    }
    if args.check.check {
        return check::run(args, global);
    }
    if args.count && args.engine == LabEngine::Kvm {
        return Err(fail(
            "--engine=kvm and --count cannot be used together: cache lines are counted by QEMU's own engine, tcg",
        ));
    }
    let input = input::load_for(&args.supplied, &global.machine, Detail::Full);
    let machine = input.map_err(|failure| fail(failure.message))?.machine;
    let layout = planned(&machine, args.cpus, args.memory).map_err(fail)?;
    if args.dry_run {
        let engine = Engines::new(args.engine.into()).first(Arch::X86, None);
        let engine = engine.map_err(|reason| fail(GuestError::Kvm { reason }))?;
        output::print(&describe(&layout, &engine.to_string()))?;
        return Ok(0);
    }
    let choice = args.kernel.clone().unwrap_or_default();
    let mut parts = Parts::find(&choice).map_err(fail)?;
    parts.engines = Engines::new(if args.count { EngineChoice::Tcg } else { args.engine.into() });
    let mut guest = parts.guest(layout);
    guest.append.clone_from(&args.append);
    guest.scratch.clone_from(&args.scratch);
    guest.disk = args.disk;
    guest.timeout = args.timeout;
    if args.count {
        return count::run(args, global, &machine, guest);
    }
    let status = stream(&guest, &args.command).map_err(fail)?;
    Ok(u8::try_from(status).unwrap_or(u8::MAX))
}

/// Plans a guest of a machine, with limits where they are given, and says where it differs.
pub fn planned(machine: &Machine, cpus: Option<u32>, memory: Option<Bytes>) -> Result<Layout, LayoutError> {
    let mut limits = Limits::default();
    limits.cpus = cpus.unwrap_or(limits.cpus);
    limits.memory = memory.unwrap_or(limits.memory);
    let layout = Layout::new(machine, &limits)?;
    layout.notes.iter().for_each(|note| output::say(note));
    Ok(layout)
}

/// A guest that could not be started, or was not set up.
fn fail(message: impl Display) -> Failure {
    Failure::new(NOT_STARTED, message)
}

/// Runs the command, with a line that shows how far the start of the guest is.
fn stream(guest: &Guest, command: &[OsString]) -> Result<i32, GuestError> {
    let line = ProgressLine::new();
    let (mut stdout, mut stderr) =
        (BehindLine::new(&line, io::stdout()), BehindLine::new(&line, io::stderr()));
    guest.stream_watched(command, &mut stdout, &mut stderr, &mut watch(&line))
}

/// Shows in a line how far a guest is, and says which engine was chosen for it.
pub fn watch(line: &ProgressLine) -> impl FnMut(BootEvent<'_>) {
    let mut before = None;
    move |event| {
        let stage = match event {
            BootEvent::Stage(stage) => stage,
            // An engine that was asked for needs no word.
            BootEvent::Engine(taken) if taken.reason.is_empty() => return,
            BootEvent::Engine(taken) => return line.say(&format!("engine: {taken}")),
        };
        if stage == Stage::Command {
            line.clear();
        } else if before.replace(stage) == Some(stage) {
            line.pulse();
        } else {
            line.enter(stage);
        }
    }
}

/// The guest in words, then QEMU's options for it.
fn describe(layout: &Layout, engine: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for node in &layout.nodes {
        let cpus = if node.cpus.is_empty() { "no CPUs".to_owned() } else { format!("CPUs {}", node.cpus) };
        let memory = node.memory.map_or("no memory".to_owned(), |size| size.to_string());
        let twin = if node.id == node.stands_for {
            String::new()
        } else {
            format!(", node {} of the machine", node.stands_for)
        };
        lines.push(format!("node {}: {cpus}, {memory}{twin}", node.id));
    }
    lines.push(format!("engine: {engine}"));
    lines.push(format!("qemu {}", shell::shown(qemu::arguments(layout, Arch::X86))));
    lines.join("\n") + "\n"
}
