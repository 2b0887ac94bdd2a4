//! `nodewise lab --check`: drawn scripts in a kernel and in the model.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::time::Instant;

use nodewise_conformance::machines::{self, Drawn};
use nodewise_conformance::outcome::REPEATS;
use nodewise_conformance::{Found, Outcome as Played, ScriptId, ScriptKind, Tally};
use nodewise_lab::kernel::TESTED_VERSIONS;
use nodewise_lab::script::PROGRAMS_FOLDER;
use nodewise_lab::{BootEvent, EngineTaken, Engines, Guest, Lab as Parts, Layout, Limits, Stage, modules};
use nodewise_machine::printable::{io_words, printable};
use nodewise_machine::{Bytes, KernelRelease, Machine, spec};
use nodewise_model::Release;
use nodewise_source::Detail;
use nodewise_view::digest::conformance::{
    CheckedMachine, CheckedScript, Inexact, KernelCheck, ScriptDifference, ScriptName, ScriptOutcome,
};
use nodewise_view::{json, text};

use super::fail;
use super::play::PLAY;
use crate::cli::Global;
use crate::cli::lab::Lab;
use crate::failure::{Failure, Outcome};
use crate::measuring::line::ProgressLine;
use crate::output::Destination;
use crate::{input, output};

/// The exit code when something differs, or could not be played.
const DIFFERS: u8 = 1;
/// Memory of a guest: all that a drawn machine has.
const MEMORY: Bytes = Bytes::from_gib(4);
/// The most scripts of a machine: their numbers are those of the machine, times this.
const NUMBERS: u64 = 1000;
/// Seconds that a guest has for each script beside `--timeout`, shrinking included.
const SECONDS_PER_SCRIPT: u64 = 30;
/// Bytes of an image that hold its header.
const HEADER: u64 = 64 << 10;
/// The name of the program in the guest's memory.
const NAME: &str = "nodewise";
/// The file with the result, in the directory that is named.
const RESULT: &str = "result.json";

/// A machine that is checked: what is shown of it, its layout, and the number of its first script.
struct Checked {
    shown: CheckedMachine,
    layout: Layout,
    first: u64,
}

/// Runs the verb: exit code 0 when kernel and model do the same.
pub fn run(args: &Lab, global: &Global) -> Outcome {
    let options = &args.check;
    let is_named = !input::is_live(&global.machine);
    let folder = options.output.as_deref();
    if let Some(folder) = folder {
        let made = std::fs::create_dir_all(folder);
        made.map_err(|error| Failure::cannot(format_args!("{}: {}", shown(folder), io_words(&error))))?;
    }
    let file = folder.map(|folder| Destination::from(folder.join(RESULT).into_os_string()));
    output::destination::check([&file])?;
    let mut parts = Parts::find(&args.kernel.clone().unwrap_or_default()).map_err(fail)?;
    parts.engines = Engines::new(args.engine.into());
    let machines = if is_named { vec![named(args, global)?] } else { drawn(args)? };
    let kernel = parts.kernel.release.clone().or_else(|| image_release(&parts.kernel.image));
    let followed = options.model.as_ref().or(kernel.as_ref());
    let mut check = KernelCheck {
        kernel: kernel.as_ref().map(|release| release.text().to_owned()),
        image: shown(&parts.kernel.image),
        model: Release::from_kernel(followed).to_string(),
        compared: nearest(followed),
        kinds: options.kind.iter().map(|kind| kind.word()).collect(),
        seed: (!is_named).then_some(options.seed),
        machines: Vec::new(),
    };
    let show = |text: String| if args.json { Ok(()) } else { output::print(&text) };
    show(text::tap::head(&check, machines.len() as u64 * options.scripts * options.kind.len() as u64))?;
    let mut point = 1;
    let mut said = None;
    for machine in machines {
        let machine = play(args, &parts, machine, &mut said)?;
        show(text::tap::machine(&machine, point))?;
        point += machine.scripts.len();
        check.machines.push(machine);
    }
    show(text::tap::end(&check))?;
    let (_, differ, failed) = check.counts();
    if args.json {
        output::print_json(&json::conformance(&check))?;
    }
    if let Some(file) = file {
        file.write(json::conformance(&check).as_bytes())?;
    }
    Ok(if differ + failed == 0 { 0 } else { DIFFERS })
}

/// The machine that `--machine` names.
fn named(args: &Lab, global: &Global) -> Result<Checked, Failure> {
    let input = input::load_for(&args.supplied, &global.machine, Detail::Full);
    let input = input.map_err(|failure| fail(failure.message))?;
    let machine = CheckedMachine {
        spec: global.machine.clone(),
        append: None,
        qemu: None,
        engine: None,
        scripts: Vec::new(),
        seconds: 0,
    };
    checked(args, machine, &input.machine, args.check.seed)
}

/// The machines of the numbers from the seed on.
fn drawn(args: &Lab) -> Result<Vec<Checked>, Failure> {
    let numbers = args.check.seed..args.check.seed + args.check.machines;
    let draw = |number| {
        let Drawn { spec, append, qemu } = machines::machine(number);
        let machine = spec::machine(&spec).map_err(|error| Failure::new(crate::failure::INTERNAL, error))?;
        checked(
            args,
            CheckedMachine { spec, append, qemu, engine: None, scripts: Vec::new(), seconds: 0 },
            &machine,
            number,
        )
    };
    numbers.map(draw).collect()
}

fn checked(args: &Lab, shown: CheckedMachine, machine: &Machine, number: u64) -> Result<Checked, Failure> {
    let mut limits = Limits::default();
    limits.cpus = args.cpus.unwrap_or(limits.cpus);
    limits.memory = args.memory.unwrap_or(limits.memory.max(MEMORY));
    let layout = Layout::new(machine, &limits).map_err(fail)?;
    layout.notes.iter().for_each(|note| output::say(note));
    Ok(Checked { shown, layout, first: number * NUMBERS })
}

/// Plays the scripts of a machine in a guest, and says which engine it has where that was not said before.
fn play(
    args: &Lab,
    parts: &Parts,
    machine: Checked,
    said: &mut Option<EngineTaken>,
) -> Result<CheckedMachine, Failure> {
    let Checked { shown: mut machine, layout, first } = machine;
    let guest = guest(args, parts, &machine, layout)?;
    let last = first + args.check.scripts - 1;
    let program = Path::new(PROGRAMS_FOLDER).join(NAME).into_os_string();
    let mut command = vec![program, "lab".into(), format!("{PLAY}={first}-{last}").into()];
    let kinds: Vec<&str> = args.check.kind.iter().map(|kind| kind.word()).collect();
    command.push(format!("--kind={}", kinds.join(",")).into());
    command.extend(args.check.model.as_ref().map(|release| format!("--model={release}").into()));
    let line = ProgressLine::new();
    let (mut lines, mut complaint) = (Lines::default(), Vec::new());
    let start = Instant::now();
    let mut before = None;
    let mut watch = |event: BootEvent<'_>| {
        let stage = match event {
            BootEvent::Stage(stage) => stage,
            BootEvent::Engine(taken) => {
                machine.engine = Some(taken.engine.word());
                if !taken.reason.is_empty() && said.as_ref() != Some(taken) {
                    line.say(&format!("engine: {taken}"));
                    *said = Some(taken.clone());
                }
                return;
            }
        };
        if before.replace(stage) == Some(stage) {
            line.pulse();
        } else if stage == Stage::Command {
            line.enter(format_args!("playing scripts {first} to {last}"));
        } else {
            line.enter(stage);
        }
    };
    let ended = guest.stream_watched(&command, &mut lines, &mut complaint, &mut watch);
    line.clear();
    machine.seconds = start.elapsed().as_secs();
    let missing = match &ended {
        Ok(0) => "the guest did not play it".to_owned(),
        Ok(status) => {
            let complaint = String::from_utf8_lossy(&complaint);
            format!("the guest ended with status {status}: {}", complaint.trim())
        }
        Err(error) => error.to_string(),
    };
    if let (true, Err(error)) = (lines.played.is_empty(), ended) {
        return Err(fail(error));
    }
    let mut played = lines.played;
    let ids =
        args.check.kind.iter().flat_map(|kind| (first..=last).map(|number| ScriptId { kind: *kind, number }));
    for id in ids {
        let at = played.iter().position(|(other, _)| *other == id);
        let outcome = at.map_or_else(|| Played::Failed(missing.clone()), |at| played.swap_remove(at).1);
        machine.scripts.push(script(outcome, id, args.check.output.as_deref())?);
    }
    Ok(machine)
}

fn guest(args: &Lab, parts: &Parts, shown: &CheckedMachine, layout: Layout) -> Result<Guest, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| fail(format_args!("the path of nodewise is not known: {}", io_words(&error))))?;
    let mut guest = parts.guest(layout);
    // Pages of a program that are read while a script is played would take turns of its policies.
    guest.programs = vec![(NAME.to_owned(), own)];
    guest.append.extend(shown.append.clone());
    guest.qemu_arguments = shown.qemu.iter().flat_map(|words| words.split(' ')).map(Into::into).collect();
    guest.timeout = args.timeout
        + std::time::Duration::from_secs(
            args.check.scripts * args.check.kind.len() as u64 * SECONDS_PER_SCRIPT,
        );
    Ok(guest)
}

/// The outcome in the form that is shown; its program is written to the folder, if there is one.
fn script(outcome: Played, id: ScriptId, folder: Option<&Path>) -> Result<CheckedScript, Failure> {
    let name = ScriptName { kind: id.kind.word(), number: id.number };
    let (outcome, tally) = match outcome {
        Played::Same(tally) => (ScriptOutcome::Same, tally),
        Played::Failed(why) => (ScriptOutcome::Failed(why), Tally::default()),
        Played::Differs(found) => {
            let tally = found.tally;
            (ScriptOutcome::Differs(Box::new(difference(*found, id, folder)?)), tally)
        }
    };
    let Tally { left_out, intervals, widths, widest } = tally;
    Ok(CheckedScript { name, outcome, inexact: Inexact { left_out, intervals, widths, widest } })
}

fn difference(found: Found, id: ScriptId, folder: Option<&Path>) -> Result<ScriptDifference, Failure> {
    let Found { difference, calls, length, drawn, repeated, program, .. } = found;
    let file = folder.filter(|_| !program.is_empty()).map(|folder| folder.join(file_name(id)));
    if let Some(file) = &file {
        Destination::from(file.clone().into_os_string()).write(program.as_bytes())?;
    }
    Ok(ScriptDifference {
        aspect: difference.aspect.word(),
        what: difference.what,
        kernel: difference.kernel,
        model: difference.model,
        calls,
        length,
        drawn,
        repeated,
        plays: REPEATS,
        program,
        file: file.map(|file| shown(&file)),
    })
}

/// The file of a script's program.
fn file_name(id: ScriptId) -> String {
    match id.kind {
        ScriptKind::Calls => format!("script-{}.c", id.number),
        _ => format!("script-{id}.c"),
    }
}

/// The release in the header of an image.
fn image_release(image: &Path) -> Option<KernelRelease> {
    let mut header = Vec::new();
    File::open(image).ok()?.take(HEADER).read_to_end(&mut header).ok()?;
    modules::release(&header)
}

/// The nearest release whose kernel the tests compare with the model.
fn nearest(release: Option<&KernelRelease>) -> String {
    let Some(release) = release else { return Release::REFERENCE.to_string() };
    let place = |release: &KernelRelease| {
        let (major, minor) = release.version();
        i64::from(major) * 100 + i64::from(minor)
    };
    let tested = TESTED_VERSIONS.iter().filter_map(|version| KernelRelease::new(version));
    let nearest = tested.min_by_key(|tested| (place(tested) - place(release)).abs());
    nearest.map_or_else(String::new, |release| release.text().to_owned())
}

/// The outcomes that a guest writes, line by line.
#[derive(Default)]
struct Lines {
    rest: Vec<u8>,
    played: Vec<(ScriptId, Played)>,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend(bytes);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]);
            self.played.extend(Played::parse(&line));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A path as it is shown.
fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_release_is_one_of_the_tested() {
        for (release, expected) in [("5.15", "6.1"), ("6.6.1", "6.1"), ("6.7-rc1", "6.12"), ("7.2", "6.18")] {
            assert_eq!(nearest(KernelRelease::new(release).as_ref()), expected, "{release}");
        }
        assert_eq!(nearest(None), "6.12");
    }

    #[test]
    fn outcomes_are_read_as_they_come() {
        let mut lines = Lines::default();
        for part in ["sa", "me\tthp-3\t2 0 0 0\nnoise\nfail", "ed\tthp-4\ta\\nb\n", "same\tthp-5\t0 0 0 0"] {
            lines.write_all(part.as_bytes()).unwrap();
        }
        let id = |number| ScriptId { kind: ScriptKind::Thp, number };
        assert_eq!(
            lines.played,
            [
                (id(3), Played::Same(Tally { left_out: 2, ..Tally::default() })),
                (id(4), Played::Failed("a\nb".to_owned()))
            ]
        );
    }
}
