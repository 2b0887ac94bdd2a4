//! Damages to sets of ACPI tables: dumps in text, and tables as bytes.

use std::path::Path;

use anyhow::Result;
use nodewise_machine::firmware::{Slit, Table, Tables};
use nodewise_source::acpi::{encode, files};
use nodewise_stats::random::Random;

use super::captures::guarded;
use super::kinds::Damage;
use super::{Class, Verdict, specimen};

/// Kinds of damage that texts and bytes can have.
const DAMAGES: [Damage; 9] = [
    Damage::BitFlipped,
    Damage::ByteReplaced,
    Damage::DigitChanged,
    Damage::CutOff,
    Damage::CutOut,
    Damage::LineLost,
    Damage::LineDoubled,
    Damage::Zeroed,
    Damage::LongLine,
];

/// A set of tables in a file.
pub struct Set {
    name: String,
    bytes: Vec<u8>,
    is_text: bool,
    tables: Tables,
}

/// The dumps of the corpus and one made by hand, as text, and each of their tables as bytes.
pub fn all() -> Result<Vec<Set>> {
    let folder = tempfile::tempdir()?;
    let mut texts = vec![("two nodes".to_owned(), dump("SLIT", &encode(&slit())).into_bytes())];
    for path in specimen::paths(&specimen::corpus().join("acpi"))? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        texts.push((name, std::fs::read(&path)?));
    }
    let mut sets = Vec::new();
    for (name, bytes) in texts {
        let tables = read(folder.path(), &bytes)?;
        for (at, table) in tables.tables.iter().enumerate() {
            let bytes = encode(table);
            let tables = read(folder.path(), &bytes)?;
            sets.push(Set { name: format!("{name}, table {at}"), bytes, is_text: false, tables });
        }
        sets.push(Set { name, bytes, is_text: true, tables });
    }
    Ok(sets)
}

fn slit() -> Table {
    Table::Slit(Slit::new(&[vec![10, 21, 28], vec![21, 10, 17], vec![28, 17, 10]]))
}

/// A table as acpidump writes it.
fn dump(name: &str, bytes: &[u8]) -> String {
    let mut text = format!("{name} @ 0x0000000000000000\n");
    for (number, line) in bytes.chunks(16).enumerate() {
        let pairs: Vec<String> = line.iter().map(|byte| format!("{byte:02X}")).collect();
        let letter = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '.' };
        let letters: String = line.iter().map(letter).collect();
        text.push_str(&format!("    {:04X}: {:47}  {letters}\n", number * 16, pairs.join(" ")));
    }
    text + "\n"
}

fn read(folder: &Path, bytes: &[u8]) -> Result<Tables> {
    let path = folder.join(format!("tables-{:?}", std::thread::current().id()));
    std::fs::write(&path, bytes)?;
    Ok(files::from_paths(&[&path])?)
}

/// Damages a set in one place, and judges.
pub fn play(set: &Set, folder: &Path, random: &mut Random) -> Verdict {
    let damage = DAMAGES[random.index(DAMAGES.len())];
    let bytes = damage.of_bytes(&set.bytes, random);
    let class = match guarded(|| judge(set, &bytes, folder)) {
        Ok(class) => class,
        Err(why) => return Verdict { class: Class::Crashed, damage: None, detail: why },
    };
    let detail = if class.is_failure() { format!("{}: {}", set.name, damage.name()) } else { String::new() };
    Verdict { class, damage: None, detail }
}

fn judge(set: &Set, bytes: &[u8], folder: &Path) -> Class {
    let Ok(tables) = read(folder, bytes) else { return Class::Refused };
    let is_noticed = tables.findings.iter().any(|finding| !set.tables.findings.contains(finding));
    let is_lost = tables.tables.iter().all(|table| set.tables.tables.contains(table));
    match tables.tables == set.tables.tables {
        true if is_noticed => Class::Named,
        true => Class::Unchanged,
        false if is_noticed => Class::Named,
        false if is_lost => Class::Unknown,
        false if is_whole(bytes, set.is_text) => Class::Plausible,
        false => Class::Silent,
    }
}

/// Whether every table is as long as it says and adds up to 0, which is all that a table has against damage.
fn is_whole(bytes: &[u8], is_text: bool) -> bool {
    let holds = |table: &[u8]| {
        let length = table
            .get(4..8)
            .map(|length| length.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)));
        length == Some(table.len()) && table.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) == 0
    };
    if !is_text {
        return holds(bytes);
    }
    let text = String::from_utf8_lossy(bytes);
    let mut tables: Vec<Vec<u8>> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if line.contains(" @ ") {
            tables.push(Vec::new());
            continue;
        }
        let pairs = line.split_once(": ").map_or("", |(_, pairs)| pairs);
        let pairs: Option<Vec<u8>> = pairs
            .split(' ')
            .take_while(|pair| !pair.is_empty())
            .take(16)
            .map(|pair| u8::from_str_radix(pair, 16).ok())
            .collect();
        match (tables.last_mut(), pairs) {
            (Some(table), Some(pairs)) => table.extend(pairs),
            _ => return false,
        }
    }
    tables.iter().all(|table| holds(table))
}
