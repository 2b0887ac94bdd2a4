//! Machines of firmware tables: `--machine acpi:DIR` and `--machine dtb:FILE`.

use std::fmt::Display;
use std::path::Path;

use nodewise_machine::firmware::Tables;
use nodewise_machine::{Machine, Oddity, OddityKind, Origin};
use nodewise_model::firmware::{Note, Setting, boot, boot_tree};
use nodewise_source::acpi::files;
use nodewise_source::devicetree;
use nodewise_source::tree::Tree;

/// The path behind `acpi:`; `None` for another kind of machine.
pub fn acpi_path(machine: &str) -> Option<&Path> {
    machine.strip_prefix("acpi:").map(Path::new)
}

/// A message about what `--machine` names.
pub fn of_machine(error: impl Display) -> String {
    format!("--machine: {error}")
}

/// The machine that a kernel makes of tables or of a device tree, when `--machine` names some.
///
/// # Errors
/// What holds no tables, or cannot be read.
pub fn open(machine: &str) -> Option<Result<Machine, String>> {
    if let Some(path) = acpi_path(machine) {
        return Some(of_acpi(path));
    }
    let path = Path::new(machine.strip_prefix("dtb:")?);
    let tree = devicetree::from_path(path).map_err(|error| error.to_string());
    Some(tree.map(|tree| boot_tree(&tree, &Setting::default()).machine(origin(path))))
}

/// Ranges of addresses: the first byte of each, and the first behind it.
pub type Ranges = Vec<(u64, u64)>;

/// The tables of a file or of a folder, and where RAM is: as it is known already, else as a file beside the
/// tables says.
///
/// # Errors
/// What holds no tables, or cannot be read.
pub fn tables_in(path: &Path, ram: Option<Ranges>) -> Result<(Tables, Option<Ranges>), String> {
    let tables = files::from_paths(&[path]).map_err(|error| error.to_string())?;
    let ram = match ram {
        Some(ram) => Some(ram),
        None => files::ram_beside(path)?,
    };
    Ok((tables, ram))
}

/// Adds to a running machine what only the firmware's tables show: tables that the kernel rejects, and the ranges of
/// nodes that the boot line hides. Where the tables are missing or closed to this user, nothing is added.
pub fn add_tables(machine: &mut Machine, tree: &Tree) {
    let Ok(tables) = files::from_tree(tree) else { return };
    let booted = boot(&tables, &Setting::default());
    if machine.nodes.len() < 2 && machine.memory_map.nodes.is_empty() {
        machine.memory_map.nodes = booted.memory_map().nodes;
    }
    let rejected = booted.notes.iter().map(Note::oddity);
    machine.oddities.extend(rejected.filter(|oddity| oddity.kind == OddityKind::FirmwareRejected));
}

fn origin(path: &Path) -> Origin {
    Origin::Firmware(path.to_string_lossy().into_owned())
}

/// Faults in the tables come before what the kernel makes of them.
fn of_acpi(path: &Path) -> Result<Machine, String> {
    let (tables, ram) = tables_in(path, None)?;
    let setting = Setting { ram, ..Setting::default() };
    let mut machine = boot(&tables, &setting).machine(origin(path));
    let findings =
        tables.findings.iter().map(|finding| Oddity::new(OddityKind::Unparseable, finding.to_string()));
    machine.oddities.splice(0..0, findings);
    Ok(machine)
}
