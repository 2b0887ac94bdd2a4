//! ACPI tables: written and read back, broken in every way, those of real machines, and as iasl
//! reads them.
#![expect(clippy::unwrap_used, reason = "what a test does not expect is its failure")]
#![expect(clippy::print_stderr, reason = "a test that cannot run says why")]

mod corpus;
mod hostile;
mod iasl;
mod random;

use nodewise_machine::firmware::{FirmwareFinding, Table};
use nodewise_source::acpi::{decode, encode};
use proptest::prelude::{any, prop_assert_eq, proptest};

/// A table and what is wrong with it.
fn read(bytes: &[u8]) -> (Option<Table>, Vec<String>) {
    let mut findings: Vec<FirmwareFinding> = Vec::new();
    let table = decode(bytes, &mut findings);
    (table, findings.iter().map(ToString::to_string).collect())
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_byte_by_byte(table in random::table()) {
        let bytes = encode(&table);
        let (read, findings) = read(&bytes);
        prop_assert_eq!(findings, [""; 0]);
        let read = read.unwrap();
        prop_assert_eq!(encode(&read), bytes);
        prop_assert_eq!(random::without_places(read), table);
    }

    #[test]
    fn any_bytes_behind_a_header_are_survived_and_written_back(
        table in random::table(),
        noise in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut bytes = encode(&table);
        bytes.truncate(36);
        bytes.extend(noise);
        let bytes = hostile::mend(bytes);
        let (read, _) = read(&bytes);
        // Of less than the fields before the first structure there is no table to keep.
        if bytes.len() >= 60 {
            prop_assert_eq!(encode(&read.unwrap()), bytes);
        }
    }

    #[test]
    fn a_changed_byte_is_survived(table in random::table(), at in any::<proptest::sample::Index>(), to in any::<u8>()) {
        let mut bytes = encode(&table);
        let at = at.index(bytes.len());
        let is_changed = bytes[at] != to;
        bytes[at] = to;
        let (_, findings) = read(&bytes);
        prop_assert_eq!(!findings.is_empty(), is_changed);
    }

    #[test]
    fn a_cut_table_is_survived_and_told(table in random::table(), at in any::<proptest::sample::Index>()) {
        let bytes = encode(&table);
        let cut = &bytes[..at.index(bytes.len())];
        let (_, findings) = read(cut);
        prop_assert_eq!(findings.is_empty(), false);
    }
}
