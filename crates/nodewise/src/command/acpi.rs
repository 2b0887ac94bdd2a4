//! `nodewise acpi`: the firmware's tables.

mod write;

use std::path::Path;

use nodewise_machine::KernelRelease;
use nodewise_machine::firmware::Tables;
use nodewise_machine::printable::visible;
use nodewise_model::Release;
use nodewise_model::firmware::{Booted, NoteKind, Setting, boot};
use nodewise_source::acpi::files::{self, TablesError};
use nodewise_source::tree::Tree;
use nodewise_source::{Detail, boot as source_boot};
use nodewise_view::digest::acpi::Acpi as Shown;
use nodewise_view::{csv, json, text};

use crate::cli::Global;
use crate::cli::acpi::Acpi;
use crate::failure::{Failure, Outcome};
use crate::firmware::Ranges;
use crate::output::Form;
use crate::{firmware, input, output};

/// Exit code of tables with something wrong.
const FINDINGS: u8 = 1;

/// Runs `acpi`.
pub fn run(args: &Acpi, global: &Global) -> Outcome {
    let ram = args.ram.as_deref().map(files::ram_of).transpose();
    let ram = ram.map_err(|why| Failure::usage(format_args!("--ram: {why}")))?;
    let (name, tables, booted) = match &args.write {
        Some(folder) => {
            let written = write::write(args, folder, global, ram)?;
            (visible(&folder.to_string_lossy()).into_owned(), written.tables, written.booted)
        }
        None => {
            let Source { name, tables, ram, kernel } = read(args, &global.machine, ram)?;
            let release = Release::from_kernel(args.kernel.as_ref().or(kernel.as_ref()));
            let booted = boot(&tables, &Setting { ram, release });
            (name, tables, booted)
        }
    };
    let shown = Shown { source: &name, tables: &tables, booted: &booted };
    let form = Form::new(args.json, args.csv);
    let (json, csv) = (|| json::acpi(&shown), || csv::acpi(&shown));
    output::show_table(form, global.color, json, csv, |style| text::acpi(&shown, style))?;
    Ok(if is_wrong(&tables, &booted) { FINDINGS } else { 0 })
}

/// Whether a table breaks a rule, or costs the kernel the table or the boot.
fn is_wrong(tables: &Tables, booted: &Booted) -> bool {
    let costs = |kind| matches!(kind, NoteKind::Rejected | NoteKind::DoesNotBoot);
    !tables.findings.is_empty() || booted.notes.iter().any(|note| costs(note.kind))
}

/// Tables, what they were read from, and what is known there of RAM and of the kernel.
struct Source {
    name: String,
    tables: Tables,
    ram: Option<Ranges>,
    kernel: Option<KernelRelease>,
}

/// Reads the tables; where RAM is stays as it was typed.
fn read(args: &Acpi, machine: &str, ram: Option<Ranges>) -> Result<Source, Failure> {
    let paths: Vec<&Path> = args.files.iter().map(|path| path.as_path()).collect();
    if !paths.is_empty() {
        if !input::is_live(machine) {
            return Err(Failure::usage("name files or --machine, not both"));
        }
        let names: Vec<String> =
            paths.iter().map(|path| visible(&path.to_string_lossy()).into_owned()).collect();
        let (tables, ram) = match &paths[..] {
            [path] => firmware::tables_in(path, ram).map_err(Failure::usage)?,
            paths => (files::from_paths(paths).map_err(Failure::usage)?, ram),
        };
        return Ok(Source { name: names.join(" "), tables, ram, kernel: None });
    }
    read_named("--machine", machine, ram)
}

/// The tables of this machine, those in a capture, or files behind `acpi:`, as an option names them.
fn read_named(option: &str, machine: &str, ram: Option<Ranges>) -> Result<Source, Failure> {
    let wrong = |why: &str| Failure::usage(format_args!("{option}: {why}"));
    if let Some(path) = firmware::acpi_path(machine) {
        let (tables, ram) = firmware::tables_in(path, ram).map_err(|why| wrong(&why))?;
        return Ok(Source { name: machine.to_owned(), tables, ram, kernel: None });
    }
    let input = input::named(machine, Detail::Overview).map_err(|why| wrong(&why))?;
    let tree = input.tree().ok_or_else(|| {
        wrong(&format!("{} has no ACPI tables: expected a capture, acpi:DIR or live", visible(machine)))
    })?;
    match files::from_tree(tree) {
        Ok(tables) => {
            let name = if input::is_live(machine) { files::FOLDER } else { machine };
            let (ram, kernel) = (ram.or_else(|| ram_of(tree)), input.machine.kernel.clone());
            Ok(Source { name: name.to_owned(), tables, ram, kernel })
        }
        Err(error @ TablesError::NoFirmware) if !input::is_live(machine) => {
            Err(Failure::cannot(format_args!("{}: {error}", visible(machine))))
        }
        Err(error) => Err(Failure::cannot(error)),
    }
}

/// Where RAM is. A map that cannot be read is one that is missing: what is made of the tables says then
/// that it is not known.
fn ram_of(tree: &Tree) -> Option<Ranges> {
    source_boot::ram(tree).ok().flatten()
}
