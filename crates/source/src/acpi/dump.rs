//! The text that acpidump(8) writes: tables as hexadecimal bytes.
//!
//! ```text
//! SLIT @ 0x0000000000000000
//!     0000: 53 4C 49 54 3C 00 00 00 01 B4 41 4D 44 20 20 20  SLIT<.....AMD
//! ```
//!
//! With both of its outputs in one file, acpidump's own remarks are between these lines.

use nodewise_machine::firmware::{FirmwareFinding, Rule};
use nodewise_machine::printable::quote;

use crate::parse::number::hex_digits;

/// Bytes in a line.
const PER_LINE: usize = 16;

/// Beginnings of lines in which acpidump speaks for itself: `Firmware Warning (ACPI): Incorrect checksum in
/// table [OEMB] - 0x6F, should be 0x62 (20200925/utcksum-58)`. They belong to no table, and what they are about
/// is found again when the table is decoded.
///
/// # Source
/// ACPICA, `source/include/acoutput.h` and `acpixf.h`: `ACPI_MSG_*`; before 2014 `ACPI BIOS Warning (bug)`.
const REMARKS: [&str; 6] = [
    "Firmware Warning (ACPI):",
    "Firmware Error (ACPI):",
    "ACPI BIOS Warning",
    "ACPI BIOS Error",
    "ACPI Warning:",
    "ACPI Error:",
];

/// A table in a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dumped {
    /// The name before the `@`.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Whether a file begins as a dump does.
pub fn is_dump(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(4096)];
    let text = String::from_utf8_lossy(start);
    text.lines().find(|line| says_something(line)).and_then(title).is_some()
}

/// Whether a line is more than a blank or a remark.
fn says_something(line: &str) -> bool {
    !line.trim().is_empty() && !REMARKS.iter().any(|remark| line.trim_start().starts_with(remark))
}

/// Reads the tables of a dump. A line that is none of a dump's is a finding and left out; a table
/// whose lines do not follow one another ends where they cease to.
pub fn parse(text: &str, findings: &mut Vec<FirmwareFinding>) -> Vec<Dumped> {
    let mut tables: Vec<Dumped> = Vec::new();
    // Of a table that is cut short nothing more is taken.
    let mut is_cut = false;
    for (number, line) in (1..).zip(text.lines()) {
        let mut find = |name: &str, text: String| {
            findings.push(FirmwareFinding::in_table(name, Rule::Dump, format!("line {number}: {text}")));
        };
        if !says_something(line) {
            continue;
        }
        if let Some(name) = title(line) {
            tables.push(Dumped { name: name.to_owned(), bytes: Vec::new() });
            is_cut = false;
            continue;
        }
        let Some(table) = tables.last_mut() else {
            find("dump", format!("{} is before the first table: expected \"NAME @ 0x...\"", quote(line)));
            continue;
        };
        let Some((offset, bytes)) = data(line) else {
            find(
                &table.name,
                format!("{} is not a line of a dump: expected \"0000: 53 52 ...\"", quote(line)),
            );
            continue;
        };
        if is_cut {
            continue;
        }
        if offset != table.bytes.len() as u64 {
            find(&table.name, format!("bytes at {offset:#x}: expected {:#x}", table.bytes.len()));
            is_cut = true;
            continue;
        }
        table.bytes.extend(bytes);
    }
    tables
}

/// The name in a line such as `SRAT @ 0x00000000BFEE0000`.
fn title(line: &str) -> Option<&str> {
    let (name, address) = line.split_once(" @ ")?;
    let digits = address.trim_end().strip_prefix("0x").unwrap_or(address.trim_end());
    let is_address = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_name = name.len() == 4 && name.bytes().all(|byte| byte.is_ascii_graphic());
    (is_address && is_name).then_some(name)
}

/// Offset and bytes of a line such as `  0010: 41 47  AG`.
fn data(line: &str) -> Option<(u64, Vec<u8>)> {
    let (offset, rest) = line.trim_start().split_once(':')?;
    let offset = hex_digits(offset)?;
    // The bytes end at the second blank in a row, or at the sixteenth; the same in letters follows.
    let pairs = rest.strip_prefix(' ')?.split(' ').take(PER_LINE);
    let pairs = pairs.take_while(|pair| !pair.is_empty());
    let byte = |pair: &str| if pair.len() == 2 { u8::try_from(hex_digits(pair)?).ok() } else { None };
    let bytes: Vec<u8> = pairs.map(byte).collect::<Option<_>>()?;
    (!bytes.is_empty()).then_some((offset, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn check(text: &str, expected: &[(&str, &[u8])], findings: &[&str]) {
        let mut found = Vec::new();
        let tables = parse(text, &mut found);
        let tables: Vec<(&str, &[u8])> =
            tables.iter().map(|table| (table.name.as_str(), &table.bytes[..])).collect();
        assert_eq!(tables, expected, "{text}");
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), findings, "{text}");
    }

    #[test]
    fn tables_follow_one_another() {
        check(
            "SLIT @ 0x0000000000000000\n    0000: 53 4C  SL\n\nSRAT @ BFEE0000\n  0000: 41 20 20  A 20 20\n",
            &[("SLIT", b"SL"), ("SRAT", b"A  ")],
            &[],
        );
        let line = "    0000: 30 31 32 33 34 35 36 37 38 39 41 42 43 44 45 46  30 31\n";
        check(&format!("ABCD @ 0x0\n{line}"), &[("ABCD", b"0123456789ABCDEF")], &[]);
    }

    #[test]
    fn what_is_no_dump_is_told_by_line() {
        check(
            "hello\nSLIT @ 0x0\nworld\n    0010: 53  S\n    0000: 53  S\n  0000: +1\n",
            &[("SLIT", b"")],
            &[
                "dump: line 1: \"hello\" is before the first table: expected \"NAME @ 0x...\"",
                "SLIT: line 3: \"world\" is not a line of a dump: expected \"0000: 53 52 ...\"",
                "SLIT: line 4: bytes at 0x10: expected 0x0",
                "SLIT: line 6: \"  0000: +1\" is not a line of a dump: expected \"0000: 53 52 ...\"",
            ],
        );
    }

    #[test]
    fn acpidumps_own_remarks_are_no_faults_of_a_table() {
        let remark = "Firmware Warning (ACPI): Incorrect checksum in table [SRAT] - 0x6F, should be 0x62 (20200925/utcksum-58)\n";
        let old = "ACPI BIOS Warning (bug): 32/64X length mismatch in FADT/Gpe0Block: 64/32 (20121018/tbfadt-567)\n";
        let text =
            format!("{remark}\nSLIT @ 0x0\n{old}    0000: 53 4C  SL\n{remark}    0002: 49  I\n{remark}");
        check(&text, &[("SLIT", b"SLI")], &[]);
        assert!(is_dump(text.as_bytes()) && !is_dump(remark.as_bytes()));
    }

    /// As acpidump writes it.
    fn write(name: &str, bytes: &[u8]) -> String {
        let mut text = format!("{name} @ 0x0000000000000000\n");
        for (number, line) in bytes.chunks(PER_LINE).enumerate() {
            let pairs: Vec<String> = line.iter().map(|byte| format!("{byte:02X}")).collect();
            let letter = |byte: &u8| if (32..127).contains(byte) { char::from(*byte) } else { '.' };
            let letters: String = line.iter().map(letter).collect();
            text.push_str(&format!("    {:04X}: {:47}  {letters}\n", number * PER_LINE, pairs.join(" ")));
        }
        text + "\n"
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut findings = Vec::new();
            let tables = parse(&write("SRAT", &bytes), &mut findings);
            prop_assert_eq!(tables, [Dumped { name: "SRAT".to_owned(), bytes }]);
            prop_assert_eq!(findings, []);
        }

        #[test]
        fn any_text_is_survived(text in any::<String>(), near in "(SRAT @ 0x0\n)?( {0,4}[0-9A-F:]{1,8}( [0-9A-F]{2})*.{0,9}\n){0,5}") {
            parse(&text, &mut Vec::new());
            parse(&near, &mut Vec::new());
        }
    }
}
