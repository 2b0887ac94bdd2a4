//! `nodewise run`: checks everything, says what it was asked to say, and becomes the program.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nodewise_experiment::command::setup;
use nodewise_experiment::emit::{self, Emitted, Paths, Target};
use nodewise_experiment::shell;
use nodewise_machine::placement::{Placement, Scope};
use nodewise_machine::printable::{io_words, printable, visible};
use nodewise_machine::{CpuSet, DeviceRef, Machine};
use nodewise_model::{BuiltAt, FallbackOrders};
use nodewise_source::Detail;
use nodewise_syscall::{Setup, StartError, Task, affinity};
use nodewise_view::text::explain;

use crate::cli::place::{Huge, TypedPlace};
use crate::cli::run::Run;
use crate::cli::{ColorWhen, Global};
use crate::failure::{Failure, NOT_EXECUTABLE, NOT_FOUND, NOT_STARTED, Outcome};
use crate::input::{self, Input};
use crate::placement::{Resolved, Resolver};
use crate::{huge, live, output};

/// Runs the verb. Returns only when the program was not started.
pub fn run(args: &Run, global: &Global) -> Outcome {
    let fail = |message: String| Failure::new(NOT_STARTED, message);
    // Options first: in `--membind ./program` the program was taken for the nodes.
    let (machine, resolved) = resolve(args, global).map_err(fail)?;
    if args.command.is_empty() && !args.explain && !args.dry_run && args.emit.is_none() {
        return Err(fail("no program to run: nodewise run [OPTIONS] -- PROGRAM [ARGUMENT]...".to_owned()));
    }
    for note in &resolved.notes {
        output::say(note);
    }
    if let Some(tool) = &args.emit {
        let emitted = emitted(tool, args, &machine, &resolved.placement).map_err(fail)?;
        emitted.notes.iter().for_each(|note| output::say(note));
        output::print(&format!("{}\n", emitted.text.trim_end()))?;
        return Ok(0);
    }
    let setup = setup(&resolved.placement);
    if args.explain {
        explain_to(args, global.color, &machine, &resolved.placement)?;
    }
    if args.dry_run {
        output::print(&dry_run(args, &setup, &resolved.placement, &machine))?;
        return Ok(0);
    }
    let Some((program, arguments)) = args.command.split_first() else { return Ok(0) };
    if !input::is_live(&global.machine) {
        return Err(fail(format!(
            "cannot start a program on another machine ({}): --dry-run and --explain can be used with it, or nodewise lab",
            printable(&global.machine)
        )));
    }
    setup.apply().map_err(|error| fail(live::explain(&error, &machine).to_string()))?;
    check_cpus(&setup).map_err(fail)?;
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some((variable, value)) = huge::variable(&resolved.placement, &machine) {
        command.env(variable, value);
    }
    // The setup is in force already; only the program remains to be started.
    Err(not_started(program, Setup::new().exec(command)))
}

/// The full paths of nodewise and of a program, found as a shell finds it.
pub fn full_paths(program: Option<&OsString>) -> Paths {
    let text = |path: PathBuf| path.into_os_string().into_string().ok();
    let found = program.and_then(|program| {
        if program.as_encoded_bytes().contains(&b'/') {
            return Some(PathBuf::from(program));
        }
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
    });
    let absolute = |path: PathBuf| std::path::absolute(path).ok().and_then(text);
    Paths { nodewise: std::env::current_exe().ok().and_then(text), program: found.and_then(absolute) }
}

/// The placement for another tool.
fn emitted(tool: &str, args: &Run, machine: &Machine, placement: &Placement) -> Result<Emitted, String> {
    let target: Target = tool.parse().map_err(|error| format!("--emit: {error}"))?;
    let program: Vec<String> = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    emit::emit(target, placement, &program, &Scope::from_machine(machine), &full_paths(args.command.first()))
        .map_err(|error| format!("--emit {tool}: {error}"))
}

/// The machine and what the options mean on it. The machine is read only when something needs it: a
/// plain `--localalloc` starts without a look at any file.
fn resolve(args: &Run, global: &Global) -> Result<(Machine, Resolved), String> {
    let TypedPlace { place, order } = &args.placement;
    let needs_machine = !order.is_empty()
        || place.physcpubind.is_some()
        || place.near.is_some()
        || place.huge.is_some()
        || args.explain
        || args.dry_run
        || args.emit.is_some()
        || !input::is_live(&global.machine);
    // The pools are not among what placing needs else.
    let detail = if place.huge == Some(Huge::Pool) { Detail::Overview } else { Detail::Nodes };
    let input = if needs_machine { input::open(&global.machine, detail)? } else { Input::none() };
    let find = |device: &DeviceRef| input.node_of(device);
    let resolved =
        Resolver { place, order: order.clone(), machine: &input.machine, find: &find }.resolve()?;
    Ok((input.machine, resolved))
}

/// The kernel takes the CPUs that the cpuset allows and drops the others without a word.
fn check_cpus(setup: &Setup) -> Result<(), String> {
    let Some(asked) = setup.cpus() else { return Ok(()) };
    let got = affinity::cpus(Task::CURRENT).map_err(|error| error.to_string())?;
    let lost: CpuSet = asked.difference(&got);
    if lost.is_empty() {
        return Ok(());
    }
    let one = lost.len() == 1;
    Err(format!(
        "CPU{} {lost} {} outside this cpuset: of CPUs {asked} it allows {got}",
        if one { "" } else { "s" },
        if one { "is" } else { "are" }
    ))
}

fn not_started(program: &OsStr, error: StartError) -> Failure {
    match error {
        StartError::Setup(error) => Failure::new(NOT_STARTED, error),
        StartError::Start(error) => not_executed(program, &error),
    }
}

/// Explains why the system does not start a program, with the exit code that shells use.
pub(super) fn not_executed(program: &OsStr, error: &io::Error) -> Failure {
    let path = Path::new(program);
    let name = program.to_string_lossy();
    let name = visible(&name);
    let in_path = !program.as_encoded_bytes().contains(&b'/');
    match error.kind() {
        io::ErrorKind::NotFound if in_path => {
            Failure::new(NOT_FOUND, format_args!("{name} is not found: no folder of PATH has it"))
        }
        // What execvp(3) says when it was let into all but one of the folders.
        io::ErrorKind::PermissionDenied if in_path && !is_in_path(path) => Failure::new(
            NOT_FOUND,
            format_args!("{name} is not found: no folder of PATH that this user may look into has it"),
        ),
        // The file is there, so what is missing is what its first line names, or its dynamic loader.
        io::ErrorKind::NotFound if path.exists() => Failure::new(
            NOT_FOUND,
            format_args!("{name} cannot be executed: the interpreter that it names does not exist"),
        ),
        io::ErrorKind::NotFound => Failure::new(NOT_FOUND, format_args!("{name} is not found")),
        io::ErrorKind::PermissionDenied if path.is_dir() => {
            Failure::new(NOT_EXECUTABLE, format_args!("{name} cannot be executed: it is a directory"))
        }
        io::ErrorKind::PermissionDenied if !in_path && !is_executable(path) => Failure::new(
            NOT_EXECUTABLE,
            format_args!("{name} cannot be executed: no user has the permission (chmod +x)"),
        ),
        _ => Failure::new(NOT_EXECUTABLE, format_args!("{name} cannot be executed: {}", io_words(error))),
    }
}

/// Whether a folder of PATH has a file of this name, as far as can be seen.
fn is_in_path(name: &Path) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(name).exists())
}

/// Whether anybody may execute a file; also when that cannot be known.
fn is_executable(path: &Path) -> bool {
    path.metadata().map_or(true, |metadata| metadata.permissions().mode() & 0o111 != 0)
}

fn dry_run(args: &Run, setup: &Setup, placement: &Placement, machine: &Machine) -> String {
    let mut lines = setup.describe();
    if let Some((variable, value)) = huge::variable(placement, machine) {
        lines.push(format!("setenv({variable}, {})", printable(&value.to_string_lossy())));
    }
    if !args.command.is_empty() {
        lines.push(format!(
            "execvp({})",
            shell::shown(args.command.iter().map(|word| word.to_string_lossy()))
        ));
    }
    if lines.is_empty() {
        lines.push("nothing: no option changes anything".to_owned());
    }
    lines.join("\n") + "\n"
}

/// With a program to start, the explanation goes to standard error; alone it is the output.
fn explain_to(args: &Run, color: ColorWhen, machine: &Machine, placement: &Placement) -> Result<(), Failure> {
    let orders = FallbackOrders::from_machine(machine, BuiltAt::Boot);
    let text = |style| explain::placement(machine, placement, &orders, &style);
    if args.command.is_empty() {
        output::print(&text(output::style(color)))?;
    } else {
        output::narrate(&text(output::narration_style(color)));
    }
    Ok(())
}
