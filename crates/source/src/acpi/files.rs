//! Where tables are found: the firmware's folder of a machine, and files that a user names.

use std::path::Path;

use nodewise_machine::firmware::{FirmwareFinding, Rule, Table, Tables};
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::{io_words, visible};
use rustix::io::Errno;

use super::{decode, dump};
use crate::parse::memory_map;
use crate::tree::{ReadCause, Tree, read_bounded};

/// Where the kernel shows the tables of the firmware.
///
/// # Source
/// Linux 2.6.26. Readable by root only.
pub const FOLDER: &str = "/sys/firmware/acpi/tables";
/// Tables by the names of their files that say something of nodes.
const WANTED: [&str; 6] = ["APIC", "CEDT", "HMAT", "MSCT", "SLIT", "SRAT"];
/// Tables whose bytes begin in another way than all others.
const WITHOUT_HEADER: [&str; 2] = ["FACS", "RSDP"];
/// A copy of `/proc/iomem` in a folder of tables.
pub const MEMORY_MAP: &str = "iomem";
/// The largest file: the dump of a large server's tables has some MiB.
const MOST_BYTES: u64 = 32 << 20;
/// The largest folder: the firmware has some dozens of tables.
const MOST_FILES: usize = 1024;

/// Why there are no tables.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    /// Neither a file nor a folder.
    #[error("{0} does not exist: expected ACPI tables (files, or a folder of them)")]
    Missing(String),
    #[error("cannot read {path}: {cause}{}", hint(*is_permission))]
    Unreadable { path: String, cause: String, is_permission: bool },
    /// Nothing in it is a table.
    #[error("{path} holds no ACPI table{}", first(findings))]
    NoTable { path: String, findings: Vec<FirmwareFinding> },
    /// The machine has no such folder.
    #[error("{FOLDER} is missing: this machine has no ACPI, or its capture does not hold the tables")]
    NoFirmware,
}

const fn hint(is_permission: bool) -> &'static str {
    if is_permission { " (ACPI tables are open to root only)" } else { "" }
}

fn first(findings: &[FirmwareFinding]) -> String {
    findings.first().map_or(String::new(), |finding| format!(": {finding}"))
}

/// Reads files and folders that a user names: tables as bytes and as acpidump's text.
///
/// # Errors
/// What is missing, cannot be read, or holds no table at all.
pub fn from_paths(paths: &[&Path]) -> Result<Tables, TablesError> {
    let mut tables = Tables::default();
    for path in paths {
        let before = tables.tables.len();
        let name = name(path);
        if path.is_dir() {
            from_folder(path, &mut tables)?;
        } else {
            from_file(&name, &read(path)?, &mut tables);
        }
        if tables.tables.len() == before {
            return Err(TablesError::NoTable { path: name, findings: tables.findings });
        }
    }
    find_duplicates(&mut tables);
    Ok(tables)
}

/// Where RAM is by a folder of tables: a copy of `/proc/iomem` beside them. `None` for what is not a folder,
/// or has none.
///
/// # Errors
/// A file that cannot be read, or names no RAM.
pub fn ram_beside(folder: &Path) -> Result<Option<Vec<(u64, u64)>>, String> {
    let path = folder.join(MEMORY_MAP);
    if path.is_file() { ram_of(&path).map(Some) } else { Ok(None) }
}

/// Where RAM is by a copy of `/proc/iomem`, or of the kernel log's lines on the firmware's map.
///
/// # Errors
/// A file that cannot be read, or names no RAM.
pub fn ram_of(path: &Path) -> Result<Vec<(u64, u64)>, String> {
    let bytes = read_bounded(path, MOST_BYTES).map_err(|why| format!("cannot read {}: {why}", name(path)))?;
    memory_map::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| format!("{}: {error}", name(path)))
}

/// Reads the tables that a machine shows, as far as they are about nodes.
///
/// # Errors
/// A machine without them, and tables that are closed to this user.
pub fn from_tree(tree: &Tree) -> Result<Tables, TablesError> {
    let mut tables = Tables::default();
    let mut is_there = false;
    for wanted in WANTED {
        let path = format!("{FOLDER}/{wanted}");
        match tree.read(&path) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                is_there = true;
                from_file(wanted, &bytes, &mut tables);
            }
            Err(error) => {
                return Err(TablesError::Unreadable {
                    path: error.path,
                    is_permission: ReadCause::is_permission(error.cause),
                    cause: error.cause.to_string(),
                });
            }
        }
    }
    if is_there { Ok(tables) } else { Err(TablesError::NoFirmware) }
}

fn name(path: &Path) -> String {
    visible(&path.to_string_lossy()).into_owned()
}

fn read(path: &Path) -> Result<Vec<u8>, TablesError> {
    read_bounded(path, MOST_BYTES).map_err(|cause| match cause {
        ReadCause::System(errno) if errno == Errno::NOENT.raw_os_error() => TablesError::Missing(name(path)),
        cause => TablesError::Unreadable {
            path: name(path),
            cause: cause.to_string(),
            is_permission: cause.is_permission(),
        },
    })
}

/// Reads every regular file of a folder, in the order of their names. Those that are not tables are
/// findings.
fn from_folder(folder: &Path, tables: &mut Tables) -> Result<(), TablesError> {
    let unreadable = |error: std::io::Error| TablesError::Unreadable {
        path: name(folder),
        cause: io_words(&error),
        is_permission: error.kind() == std::io::ErrorKind::PermissionDenied,
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // Not opened: a FIFO would wait for a writer.
        if std::fs::metadata(entry.path()).is_ok_and(|about| about.is_file()) {
            paths.push(entry.path());
        }
    }
    paths.order();
    if paths.len() > MOST_FILES {
        let text = format!("{} files are too many: the first {MOST_FILES} are read", paths.len());
        tables.findings.push(FirmwareFinding::in_table(name(folder), Rule::File, text));
        paths.truncate(MOST_FILES);
    }
    for path in &paths {
        let file = path.file_name().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
        if file == MEMORY_MAP {
            continue;
        }
        if file.len() >= 4 && WITHOUT_HEADER.iter().any(|other| file[..].eq_ignore_ascii_case(other)) {
            continue;
        }
        from_file(&file, &read(path)?, tables);
    }
    Ok(())
}

/// Adds the tables of one file.
fn from_file(file: &str, bytes: &[u8], tables: &mut Tables) {
    if bytes.is_empty() {
        tables.findings.push(FirmwareFinding::in_table(file, Rule::File, "the file is empty"));
        return;
    }
    if !dump::is_dump(bytes) {
        add(file, bytes, tables);
        return;
    }
    for table in dump::parse(&String::from_utf8_lossy(bytes), &mut tables.findings) {
        if !WITHOUT_HEADER.contains(&table.name.as_str()) {
            add(&table.name, &table.bytes, tables);
        }
    }
}

/// Adds one table. What has no header is reported by the name of its file.
fn add(name: &str, bytes: &[u8], tables: &mut Tables) {
    let before = tables.findings.len();
    let table = decode(bytes, &mut tables.findings);
    if table.is_none() {
        for finding in &mut tables.findings[before..] {
            name.clone_into(&mut finding.table);
        }
    }
    tables.tables.extend(table);
}

/// The kernel has use for one table of a kind.
fn find_duplicates(tables: &mut Tables) {
    let mut seen = Vec::new();
    for table in &tables.tables {
        let signature = table.header().signature;
        if matches!(table, Table::Other(_)) {
            continue;
        }
        if seen.contains(&signature) {
            let text = "a second table of this kind: the first is the one that counts";
            tables.findings.push(FirmwareFinding::in_table(table.header().name(), Rule::Duplicate, text));
        }
        seen.push(signature);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acpi::encode;
    use crate::tree::memory::Memory;
    use nodewise_machine::firmware::Slit;

    fn slit() -> Vec<u8> {
        encode(&Table::Slit(Slit::new(&[vec![10, 20], vec![20, 10]])))
    }

    #[test]
    fn a_folder_is_read_whatever_its_files_are_called() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("slit.dat"), slit()).unwrap();
        std::fs::write(folder.path().join("README"), "hello").unwrap();
        std::fs::write(folder.path().join("FACS"), "FACS").unwrap();
        std::fs::create_dir(folder.path().join("dynamic")).unwrap();
        let tables = from_paths(&[folder.path()]).unwrap();
        assert_eq!(tables.slit().unwrap().localities, 2);
        let findings: Vec<String> = tables.findings.iter().map(ToString::to_string).collect();
        assert_eq!(findings, ["README: 5 bytes are not an ACPI table: expected a header of 36"]);
    }

    #[test]
    fn the_first_of_two_tables_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("1"), folder.path().join("2"));
        std::fs::write(&one, slit()).unwrap();
        std::fs::write(&two, encode(&Table::Slit(Slit::new(&[vec![10]])))).unwrap();
        let tables = from_paths(&[&one, &two]).unwrap();
        assert_eq!(tables.slit().unwrap().localities, 2);
        assert_eq!(tables.findings[0].rule, Rule::Duplicate);
    }

    #[test]
    fn texts_that_begin_with_capital_letters_are_no_tables() {
        let folder = tempfile::tempdir().unwrap();
        let release = format!("PRETTY_NAME=\"Debian\"\n{}", "ID=debian\n".repeat(20));
        std::fs::write(folder.path().join("os-release"), release).unwrap();
        std::fs::write(folder.path().join("slit"), slit()).unwrap();
        let tables = from_paths(&[folder.path()]).unwrap();
        assert_eq!(tables.tables.len(), 1);
        let findings: Vec<String> = tables.findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            findings,
            [
                "os-release: \"PRET\" begins no ACPI table: its length would be 1314871636, and 221 bytes are there"
            ]
        );
    }

    #[test]
    fn a_folder_may_say_where_ram_is() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(ram_beside(folder.path()), Ok(None));
        let path = folder.path().join(MEMORY_MAP);
        std::fs::write(&path, "00001000-0009fbff : System RAM\n").unwrap();
        std::fs::write(folder.path().join("slit"), slit()).unwrap();
        assert_eq!(ram_beside(folder.path()), Ok(Some(vec![(0x1000, 0x9_fc00)])));
        assert_eq!(from_paths(&[folder.path()]).unwrap().findings, []);
        std::fs::write(&path, "").unwrap();
        let error = ram_of(&path).unwrap_err();
        assert!(error.contains("line 1: expected lines as \"00100000-bffdffff : System RAM\""), "{error}");
    }

    #[test]
    fn what_holds_no_table_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let refuse = |path: &Path, expected: &str| {
            assert_eq!(from_paths(&[path]).unwrap_err().to_string(), expected);
        };
        refuse(folder.path(), &format!("{path} holds no ACPI table"));
        let file = folder.path().join("x");
        refuse(&file, &format!("{path}/x does not exist: expected ACPI tables (files, or a folder of them)"));
        std::fs::write(&file, "SRAT").unwrap();
        refuse(
            &file,
            &format!(
                "{path}/x holds no ACPI table: {path}/x: 4 bytes are not an ACPI table: expected a header of 36"
            ),
        );
    }

    #[test]
    fn a_machine_shows_its_tables_or_says_why_not() {
        let tree = |files: Memory| Tree::memory(files);
        let path = format!("{FOLDER}/SLIT");
        let tables = from_tree(&tree(Memory::new().file(&path, slit()))).unwrap();
        assert_eq!(tables.tables.len(), 1);
        assert!(matches!(from_tree(&tree(Memory::new())), Err(TablesError::NoFirmware)));
        let closed = tree(Memory::new().unreadable(&path, ReadCause::System(13)));
        let error = from_tree(&closed).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("cannot read {path}: permission denied (ACPI tables are open to root only)")
        );
    }
}
