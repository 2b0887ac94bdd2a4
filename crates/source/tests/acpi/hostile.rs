//! Tables with something wrong: each is reported with table, offset and what would be right.

use nodewise_machine::firmware::hmat::{DataType, HmatFixed};
use nodewise_machine::firmware::srat::{Memory, SratFixed};
use nodewise_machine::firmware::{
    HmatEntry, Slit, Srat, SratEntry, Subtables, Table, TableHeader, hmat, slit, srat,
};
use nodewise_source::acpi::{decode, encode};

use crate::read;

fn memory(proximity_domain: u32, base_address: u64, length: u64) -> SratEntry {
    SratEntry::Memory(Memory {
        proximity_domain,
        reserved1: 0,
        base_address,
        length,
        reserved2: 0,
        flags: srat::ENABLED,
        reserved3: 0,
    })
}

fn two_nodes() -> Vec<u8> {
    let fixed = SratFixed { table_revision: 1, reserved: 0 };
    let entries = [memory(0, 0, 1 << 30), memory(1, 1 << 30, 1 << 30)];
    encode(&Table::Srat(Srat::new(TableHeader::new(srat::SIGNATURE, 3), fixed, entries)))
}

/// Sets length and checksum right, so that the change alone is wrong.
pub fn mend(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u32;
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[9] = 0;
    bytes[9] = bytes.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
    bytes
}

fn check(bytes: Vec<u8>, change: impl FnOnce(&mut Vec<u8>), structures: usize, findings: &[&str]) {
    let mut bytes = bytes;
    change(&mut bytes);
    let (table, found) = read(&bytes);
    assert_eq!(found, findings);
    let count = match table.expect("it has a header") {
        Table::Srat(table) => table.entries.len(),
        Table::Hmat(table) => table.entries.len(),
        Table::Slit(table) => table.distances.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(count, structures, "{findings:?}");
}

#[test]
fn a_table_is_as_long_as_it_says() {
    check(
        two_nodes(),
        |bytes| bytes.truncate(100),
        1,
        &[
            "SRAT at 0x4: the length is 128, and 100 bytes are there",
            "SRAT at 0x58: a structure of type 1 has length 40: expected 2 to 12, the end of the table",
        ],
    );
    check(
        two_nodes(),
        |bytes| bytes.extend([0; 7]),
        2,
        &["SRAT at 0x80: 7 bytes follow the table, which has 128"],
    );
    check(
        two_nodes(),
        |bytes| bytes[4..8].fill(0),
        2,
        &["SRAT at 0x4: the length is 0: expected at least 36 for a header"],
    );
    check(
        two_nodes(),
        |bytes| bytes[4..8].fill(255),
        2,
        &["SRAT at 0x4: the length is 4294967295, and 128 bytes are there"],
    );
}

#[test]
fn the_sum_of_all_bytes_is_zero() {
    let right = two_nodes()[9];
    let expected =
        format!("SRAT at 0x9: the checksum is {:#04x}: expected {right:#04x}", right.wrapping_add(1));
    check(two_nodes(), |bytes| bytes[9] = bytes[9].wrapping_add(1), 2, &[&expected]);
}

#[test]
fn structures_have_the_length_of_their_fields() {
    let with_length = |length: u8| {
        let mut bytes = two_nodes();
        bytes[0x31] = length;
        mend(bytes)
    };
    for length in [0, 1] {
        let text = format!(
            "SRAT at 0x30: a structure of type 1 has length {length}: expected 2 to 80, the end of the table"
        );
        check(with_length(length), |_| (), 0, &[&text]);
    }
    check(
        with_length(81),
        |_| (),
        0,
        &["SRAT at 0x30: a structure of type 1 has length 81: expected 2 to 80, the end of the table"],
    );
    check(
        with_length(80),
        |_| (),
        1,
        &["SRAT at 0x30: Memory Affinity structure of 80 bytes: its fields take 40"],
    );
    check(
        with_length(39),
        |_| (),
        1,
        &[
            "SRAT at 0x30: Memory Affinity structure of 39 bytes: its fields need 40",
            "SRAT at 0x57: a structure of type 0 has length 1: expected 2 to 41, the end of the table",
        ],
    );
}

#[test]
fn types_that_are_not_known_are_kept_as_bytes() {
    let mut bytes = two_nodes();
    bytes[0x30] = 77;
    check(
        mend(bytes.clone()),
        |_| (),
        2,
        &["SRAT at 0x30: structures of type 77 are not known: shown as bytes"],
    );
    let bytes = mend(bytes);
    assert_eq!(encode(&read(&bytes).0.unwrap()), bytes);
}

#[test]
fn what_cannot_be_a_structure_is_kept_as_the_rest() {
    let bytes = mend([two_nodes(), vec![9]].concat());
    check(
        bytes.clone(),
        |_| (),
        2,
        &["SRAT at 0x80: 1 bytes are left: expected a structure of at least 2, or none"],
    );
    assert_eq!(encode(&read(&bytes).0.unwrap()), bytes);
}

#[test]
fn memory_ends_within_the_addresses() {
    let fixed = SratFixed { table_revision: 1, reserved: 0 };
    let header = TableHeader::new(srat::SIGNATURE, 3);
    let table = Srat::new(header, fixed, [memory(0, u64::MAX, 2)]);
    check(
        encode(&Table::Srat(table)),
        |_| (),
        1,
        &["SRAT at 0x30: memory at 0xffffffffffffffff of 0x2 bytes ends beyond the last address of 64 bits"],
    );
}

#[test]
fn localities_have_their_square_of_distances() {
    let slit = |localities: u64| {
        let header = TableHeader::new(slit::SIGNATURE, 1);
        encode(&Table::Slit(Slit { header, localities, distances: vec![10, 20, 20, 10], rest: Vec::new() }))
    };
    check(slit(2), |_| (), 4, &[]);
    check(
        slit(3),
        |_| (),
        4,
        &["SLIT at 0x24: 3 localities have 9 distances, and 4 bytes are left for them"],
    );
    check(
        slit(1 << 32),
        |_| (),
        4,
        &["SLIT at 0x24: 4294967296 localities have more distances than any table holds"],
    );
    check(slit(1), |_| (), 1, &["SLIT at 0x2d: 3 bytes follow the 1 distances"]);
    check(
        mend(slit(2)[..40].to_vec()),
        |_| (),
        0,
        &["SLIT at 0x24: the table has 40 bytes: expected at least 44"],
    );
}

#[test]
fn counts_of_an_hmat_are_those_of_its_lists() {
    let locality = hmat::Locality::new(DataType::ReadLatency, 100, (vec![0, 1], vec![0]), vec![5, 6]);
    let table = |locality| {
        let header = TableHeader::new(hmat::SIGNATURE, 2);
        let fixed = HmatFixed { reserved: 0 };
        encode(&Table::Hmat(Subtables::new(header, fixed, [HmatEntry::Locality(locality)])))
    };
    check(table(locality.clone()), |_| (), 1, &[]);
    let mut wrong = locality.clone();
    (wrong.head.initiators, wrong.head.targets) = (u32::MAX, u32::MAX);
    let text = "HMAT at 0x28: System Locality Latency and Bandwidth Information structure of 48 bytes: its \
                fields need 18446744073709551615";
    check(table(wrong), |_| (), 1, &[text]);
    let mut wrong = locality;
    wrong.head.data_type = 6;
    wrong.head.base_unit = 0;
    check(
        table(wrong),
        |_| (),
        1,
        &[
            "HMAT at 0x28: data type 6 is not defined: expected 0 to 5",
            "HMAT at 0x28: the entry base unit is 0: no entry says anything",
        ],
    );
}

#[test]
fn a_table_of_very_many_wrong_things_is_told_in_bounds() {
    let header = TableHeader::new(srat::SIGNATURE, 3);
    let fixed = SratFixed { table_revision: 1, reserved: 0 };
    let entries = (0..100_000).map(|_| SratEntry::Unknown(200, Vec::new()));
    let mut findings = Vec::new();
    let table = decode(&encode(&Table::Srat(Srat::new(header, fixed, entries))), &mut findings);
    assert_eq!(findings.len(), 51);
    assert_eq!(findings[50].to_string(), "SRAT: 99950 more things are wrong with it");
    assert!(matches!(table, Some(Table::Srat(table)) if table.entries.len() == 100_000));
}

#[test]
fn what_has_no_header_is_no_table() {
    for (bytes, finding) in [
        (&b""[..], "table: 0 bytes are not an ACPI table: expected a header of 36"),
        (&[0x1b; 40], "table: bytes 1b 1b 1b 1b are not a signature: expected four capital letters"),
    ] {
        assert_eq!(read(bytes), (None, vec![finding.to_owned()]));
    }
}
