//! `nodewise acpi`: the firmware's tables.

use std::path::Path;

use nodewise_machine::firmware::Tables;
use nodewise_machine::printable::visible;
use nodewise_model::firmware::{Booted, NoteKind, Setting, boot};
use nodewise_source::Detail;
use nodewise_source::acpi::files::{self, TablesError};
use nodewise_source::tree::Tree;
use nodewise_view::digest::acpi::Acpi as Shown;
use nodewise_view::{json, text};

use crate::cli::Global;
use crate::cli::acpi::Acpi;
use crate::failure::{Failure, Outcome};
use crate::{firmware, input, output};

/// Exit code of tables with something wrong.
const FINDINGS: u8 = 1;

/// Runs `acpi`.
pub fn run(args: &Acpi, global: &Global) -> Outcome {
    let (name, tables) = tables(args, &global.machine)?;
    let booted = boot(&tables, &Setting::default());
    let shown = Shown { source: &name, tables: &tables, booted: &booted };
    if args.json {
        output::print_json(&json::acpi(&shown))?;
    } else {
        output::print(&text::acpi(&shown, &output::style(global.color)))?;
    }
    Ok(if is_wrong(&tables, &booted) { FINDINGS } else { 0 })
}

/// Whether a table breaks a rule, or costs the kernel the table or the boot.
fn is_wrong(tables: &Tables, booted: &Booted) -> bool {
    let costs = |kind| matches!(kind, NoteKind::Rejected | NoteKind::DoesNotBoot);
    !tables.findings.is_empty() || booted.notes.iter().any(|note| costs(note.kind))
}

/// The tables, and what they were read from.
fn tables(args: &Acpi, machine: &str) -> Result<(String, Tables), Failure> {
    let paths: Vec<&Path> = args.files.iter().map(|path| path.as_path()).collect();
    if !paths.is_empty() {
        if !input::is_live(machine) {
            return Err(Failure::usage("name files or --machine, not both"));
        }
        let names: Vec<String> =
            paths.iter().map(|path| visible(&path.to_string_lossy()).into_owned()).collect();
        return Ok((names.join(" "), files::from_paths(&paths).map_err(Failure::usage)?));
    }
    if input::is_live(machine) {
        let tables = files::from_tree(&Tree::live()).map_err(Failure::cannot)?;
        return Ok((files::FOLDER.to_owned(), tables));
    }
    if let Some(path) = firmware::acpi_path(machine) {
        let tables = files::from_paths(&[path]).map_err(firmware::of_machine).map_err(Failure::usage)?;
        return Ok((machine.to_owned(), tables));
    }
    let input = input::load(machine, Detail::Overview)?;
    let tree = input.tree().ok_or_else(|| {
        Failure::usage(format_args!(
            "--machine: {} has no ACPI tables: expected a capture, acpi:DIR or live",
            visible(machine)
        ))
    })?;
    match files::from_tree(tree) {
        Ok(tables) => Ok((machine.to_owned(), tables)),
        Err(error @ TablesError::NoFirmware) => {
            Err(Failure::cannot(format_args!("{}: {error}", visible(machine))))
        }
        Err(error) => Err(Failure::cannot(error)),
    }
}
