//! `nodewise capture`.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use nodewise_source::capture::{Capture, CaptureError, Identity, Overwrite, check_file, write_file};
use nodewise_source::{Detail, machine_file};

use crate::cli::Global;
use crate::cli::capture::Capture as Args;
use crate::failure::{Failure, Outcome};
use crate::input::{self, Input};
use crate::output;

/// Runs the verb.
pub fn run(args: &Args, global: &Global) -> Outcome {
    if args.output == Path::new("-") {
        return to_stdout(args, global);
    }
    let overwrite = if args.force { Overwrite::Replace } else { Overwrite::Refuse };
    let is_machine_file = args.output.extension().is_some_and(|ending| ending == "json");
    let check = if is_machine_file { check_file } else { Capture::check };
    check(&args.output, overwrite).map_err(fail)?;
    let input = input::load(&global.machine, Detail::Full)?;
    if is_machine_file {
        let text = machine_file(&input, args.with_identity);
        write_file(&args.output, text.as_bytes(), overwrite).map_err(fail)?;
        output::say(&format!("wrote {} as a machine file", shown(&args.output)));
        return Ok(0);
    }
    let capture = capture(&input, args)?;
    let written = capture.write(&args.output, overwrite).map_err(fail)?;
    output::say(&format!("wrote {} files to {}", written.files, shown(&args.output)));
    report_unreadable(&capture);
    Ok(0)
}

/// Writes an uncompressed archive to standard output, for a pipe such as `ssh host nodewise capture -o -`.
fn to_stdout(args: &Args, global: &Global) -> Outcome {
    if io::stdout().is_terminal() {
        return Err(Failure::usage(
            "--output -: an archive is not for a terminal: redirect it to a file or a pipe",
        ));
    }
    let capture = capture(&input::load(&global.machine, Detail::Full)?, args)?;
    output::print_bytes(&capture.to_tar())?;
    output::say(&format!("wrote {} files to standard output", capture.len()));
    report_unreadable(&capture);
    Ok(0)
}

fn capture(input: &Input, args: &Args) -> Result<Capture, Failure> {
    let identity = if args.with_identity { Identity::With } else { Identity::Without };
    input.tree().map(|tree| Capture::from_tree(tree, identity)).ok_or_else(|| {
        Failure::usage(
            "only a machine that was read from files can be written as files: name the output .json instead",
        )
    })
}

fn report_unreadable(capture: &Capture) {
    let unreadable = capture.unreadable();
    for error in unreadable.iter().take(TOLD) {
        output::say(&format!("left out: {error}"));
    }
    if unreadable.len() > TOLD {
        output::say(&format!(
            "left out {} more files that cannot be read; root can read them",
            unreadable.len() - TOLD
        ));
    }
}

/// Files that could not be read are reported one by one up to this many.
const TOLD: usize = 5;

/// The machine as a machine file. Without identity it is made from the capture, which holds nothing
/// that identifies, and not from the files themselves.
pub(super) fn machine_file(input: &Input, with_identity: bool) -> String {
    match input.tree() {
        Some(tree) if !with_identity => {
            let capture = Capture::from_tree(tree, Identity::Without);
            let mut machine =
                nodewise_source::sysfs::load(&capture.tree(), input.machine.origin.clone(), Detail::Full);
            // What the capture does not say because it is not a file: the page size of this kernel.
            machine.page_size = machine.page_size.or(input.machine.page_size);
            machine_file::to_json(&machine)
        }
        _ => machine_file::to_json(&input.machine),
    }
}

pub(super) fn shown(path: &Path) -> String {
    nodewise_machine::printable::printable(&path.to_string_lossy()).into_owned()
}

fn fail(error: CaptureError) -> Failure {
    match error {
        CaptureError::Exists(_) => Failure::usage(format!("{error}: --force overwrites it")),
        CaptureError::UnknownForm(_) => Failure::usage(format!("{error}, or .json for a machine file")),
        other => Failure::cannot(other),
    }
}
