//! `nodewise acpi --write`: tables of any machine, for hardware that boots with them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use nodewise_lab::initramfs::Archive;
use nodewise_machine::KernelRelease;
use nodewise_machine::firmware::{Table, Tables};
use nodewise_machine::printable::{io_words, quote, visible};
use nodewise_model::Release;
use nodewise_model::firmware::compose::{Hardware, compose};
use nodewise_model::firmware::{Booted, Setting, boot};
use nodewise_source::Detail;
use nodewise_source::acpi::{encode, files};
use nodewise_source::capture::{Overwrite, write_file};

use crate::cli::Global;
use crate::cli::acpi::Acpi;
use crate::failure::Failure;
use crate::firmware::Ranges;
use crate::{input, output};

/// The folder of an initial file system from which a kernel takes tables.
///
/// # Source
/// `Documentation/admin-guide/acpi/initrd_table_override.rst`, Linux 4.7.
const IN_INITRD: &str = "kernel/firmware/acpi";

/// Tables that were written, and what a kernel makes of them on their hardware.
pub(super) struct WrittenTables {
    pub(super) tables: Tables,
    pub(super) booted: Booted,
}

/// Writes the tables of the machine.
///
/// # Errors
/// A machine or hardware with unknown sizes or CPUs, and files that cannot be written.
pub(super) fn write(
    args: &Acpi,
    folder: &Path,
    global: &Global,
    ram: Option<Ranges>,
) -> Result<WrittenTables, Failure> {
    args.initrd.iter().try_for_each(output::Destination::check)?;
    let machine = input::load(&global.machine, Detail::Full)?.machine;
    let (mut hardware, kernel) = match &args.target {
        Some(target) => of_target(args, target, ram.clone())?,
        None => (Hardware::virtual_pc(&machine), machine.kernel.clone()),
    };
    hardware.ram = ram.unwrap_or(hardware.ram);
    let composed = compose(&machine, &hardware).map_err(Failure::cannot)?;
    composed.notes.iter().for_each(|note| output::say(note));
    save(args, folder, &composed.tables, &hardware.ram)?;
    let release = Release::from_kernel(args.kernel.as_ref().or(kernel.as_ref()));
    let tables = Tables { tables: composed.tables, findings: Vec::new() };
    // CPUs are numbered by a table that the hardware has.
    let mut all = tables.clone();
    all.tables.push(hardware.madt());
    let booted = boot(&all, &Setting { ram: Some(hardware.ram), release });
    Ok(WrittenTables { tables, booted })
}

/// The hardware that `--target` names, and the release of its kernel.
fn of_target(
    args: &Acpi,
    target: &str,
    ram: Option<Ranges>,
) -> Result<(Hardware, Option<KernelRelease>), Failure> {
    let source = super::read_named("--target", target, ram)?;
    let lacks = |what: &str| Failure::cannot(format_args!("--target: {} does not say {what}", quote(target)));
    if source.ram.is_none() {
        return Err(lacks("where RAM is: --ram FILE takes a copy of its /proc/iomem, made by root"));
    }
    let release = Release::from_kernel(args.kernel.as_ref().or(source.kernel.as_ref()));
    let booted = boot(&source.tables, &Setting { ram: source.ram, release });
    if booted.cpus.is_empty() {
        return Err(lacks("which CPUs it has: expected its table APIC"));
    }
    let own = source.tables.tables.iter().map(|table| table.header().clone()).collect();
    Ok((Hardware::from_booted(&booted, own), source.kernel))
}

/// Writes each table, a map of RAM beside them, and the archive for a boot loader.
fn save(args: &Acpi, folder: &Path, tables: &[Table], ram: &[(u64, u64)]) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| {
        let folder = quote(&folder.display().to_string());
        Failure::cannot(format_args!("--write: cannot make {folder}: {}", io_words(&error)))
    })?;
    let (mut archive, mut names) = (Archive::new(), Vec::new());
    for table in tables {
        let (name, bytes) = (table.header().name(), encode(table));
        write_file(&folder.join(&name), &bytes, Overwrite::Refuse).map_err(Failure::cannot)?;
        archive.file(&format!("{IN_INITRD}/{name}.aml"), &bytes).map_err(Failure::cannot)?;
        names.push(name);
    }
    let mut map = String::new();
    for (start, end) in ram {
        // Writing to a String cannot fail.
        let _ = writeln!(map, "{start:08x}-{:08x} : System RAM", end - 1);
    }
    write_file(&folder.join(files::MEMORY_MAP), map.as_bytes(), Overwrite::Refuse)
        .map_err(Failure::cannot)?;
    let folder = folder.to_string_lossy();
    output::say(&format!("wrote {} and {} to {}", names.join(", "), files::MEMORY_MAP, visible(&folder)));
    if let Some(initrd) = &args.initrd {
        initrd.write(&archive.finish())?;
        output::say(&format!("wrote {initrd}: to go in front of an initial file system"));
    }
    Ok(())
}
