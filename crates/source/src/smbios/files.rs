//! Where tables are found: the firmware's files of a machine, and dmidecode's text in a capture.

use nodewise_machine::printable::printable;

use super::entry::EntryPoint;
use super::slots::{Records, read};
use super::structure::Ending;
use super::{Slots, SmbiosProblem};
use crate::parse::{Problems, dmidecode, text_of};
use crate::tree::{ReadCause, ReadError, Tree};

/// The table, and its entry point.
pub const TABLE: &str = "/sys/firmware/dmi/tables/DMI";
pub const ENTRY_POINT: &str = "/sys/firmware/dmi/tables/smbios_entry_point";
/// A folder for each structure.
const ENTRIES: &str = "/sys/firmware/dmi/entries";
/// Texts of dmidecode beside the `sys` of a capture: by hand, and those of sosreport.
const TEXTS: [&str; 3] = ["/dmidecode.txt", "/dmidecode", "/sos_commands/hardware/dmidecode"];
/// Most structures that are read one by one.
const MOST_ENTRIES: usize = 4096;
/// Bytes before the table in the output of `dmidecode --dump-bin`.
const DUMPED_ENTRY: usize = 32;

/// The facts in the tables of a machine.
#[derive(Debug, Default)]
pub struct Found {
    pub slots: Slots,
    /// Faults with the file they are in.
    pub problems: Vec<(String, SmbiosProblem)>,
    /// Faults in a text with its path.
    pub text_problems: Option<(&'static str, Problems)>,
    /// Why nothing could be read although there is something.
    pub not_read: Option<String>,
}

/// Reads the tables of a machine.
pub fn from_tree(tree: &Tree) -> Found {
    let mut found = Found::default();
    let whole = match tree.read(TABLE) {
        Ok(whole) => whole,
        Err(error) => {
            found.not_read = Some(not_read(tree, &error));
            return found;
        }
    };
    if let Some(table) = whole {
        let mut records = Records::default();
        found.add(TABLE, read(&table, Ending::Marked, &mut records));
        found.slots = records.finish();
        match tree.read(ENTRY_POINT) {
            Ok(Some(entry)) => found.add(ENTRY_POINT, compare(&entry, &table)),
            Ok(None) => {}
            Err(error) => {
                let text = format!("cannot be read: {}", error.cause);
                found.add(ENTRY_POINT, vec![SmbiosProblem { offset: 0, text }]);
            }
        }
        return found;
    }
    if read_entries(tree, &mut found) || tree.is_live() {
        return found;
    }
    for path in TEXTS {
        if let Ok(Some(bytes)) = tree.read(path) {
            let (text, _) = text_of(&bytes);
            let parsed = dmidecode::parse(&text);
            found.slots = parsed.value;
            found.not_read = dmidecode::reason(&text).filter(|_| found.slots.slots.is_empty());
            found.text_problems = Some((path, parsed.problems));
            break;
        }
    }
    found
}

/// Reads the output of `dmidecode --dump-bin`: an entry point, and the table behind it. `None` for other bytes.
pub fn from_dump(bytes: &[u8]) -> Option<(Slots, Vec<SmbiosProblem>)> {
    let table = bytes.get(DUMPED_ENTRY..).filter(|_| bytes.starts_with(b"_SM"))?;
    let mut records = Records::default();
    let mut problems = read(table, Ending::Marked, &mut records);
    problems.extend(compare(&bytes[..DUMPED_ENTRY], table));
    Some((records.finish(), problems))
}

/// Why a table could not be read, and what would help.
fn not_read(tree: &Tree, error: &ReadError) -> String {
    let cause = format!("cannot read {}: {}", error.path, error.cause);
    if tree.is_live() && ReadCause::is_permission(error.cause) {
        return format!("{cause} (open to root only: sudo nodewise show)");
    }
    cause
}

/// Whether an entry point and the table behind it agree.
fn compare(entry: &[u8], table: &[u8]) -> Vec<SmbiosProblem> {
    let length = table.len() as u64;
    let text = match EntryPoint::from_bytes(entry) {
        Err(text) => text,
        Ok(entry) if entry.structures.is_some() && u64::from(entry.table_bytes) > length => {
            format!("the table has {length} bytes: expected {}, it may be cut", entry.table_bytes)
        }
        Ok(entry) if entry.structures.is_none() && u64::from(entry.table_bytes) < length => {
            format!("the table has {length} bytes: expected {} at most", entry.table_bytes)
        }
        Ok(_) => return Vec::new(),
    };
    vec![SmbiosProblem { offset: 0, text }]
}

/// Reads structures that have a file each, as hwloc-gather-topology saves them; whether there are any.
fn read_entries(tree: &Tree, found: &mut Found) -> bool {
    let Ok(Some(names)) = tree.list(ENTRIES) else { return false };
    // By type, then by the firmware's order.
    let number = |name: &str| {
        let (kind, instance) = name.split_once('-')?;
        Some((kind.parse::<u8>().ok()?, instance.parse::<u16>().ok()?))
    };
    let mut numbers: Vec<(u8, u16)> = names.iter().filter_map(|name| number(name)).collect();
    numbers.sort_unstable();
    let mut records = Records::default();
    let mut is_there = false;
    for (kind, instance) in numbers.into_iter().take(MOST_ENTRIES) {
        let path = format!("{ENTRIES}/{kind}-{instance}/raw");
        match tree.read(&path) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                is_there = true;
                found.add(&path, read(&bytes, Ending::Open, &mut records));
            }
            Err(error) => {
                found.not_read = Some(not_read(tree, &error));
            }
        }
    }
    found.slots = records.finish();
    if !found.slots.slots.is_empty() {
        found.not_read = None;
    }
    is_there || found.not_read.is_some()
}

impl Found {
    fn add(&mut self, path: &str, problems: Vec<SmbiosProblem>) {
        let path = printable(path);
        self.problems.extend(problems.into_iter().map(|problem| (path.clone().into_owned(), problem)));
    }
}

#[cfg(test)]
mod tests;
