use super::*;
use crate::tree::Memory;

const END: &[u8] = b"\x7f\x04\xff\xfe\0\0";

/// Type 17 of 1 GiB in the slot of this name.
fn device(locator: &str) -> Vec<u8> {
    let mut bytes = vec![0x11, 0x15, 1, 0, 0, 0x10, 0xfe, 0xff, 72, 0, 64, 0, 0, 4, 9, 0, 1, 0, 0x18, 0, 0];
    bytes.extend(locator.bytes());
    bytes.extend([0, 0]);
    bytes
}

fn names(found: &Found) -> Vec<&str> {
    found.slots.slots.iter().filter_map(|slot| slot.locator.as_deref()).collect()
}

fn problems(found: &Found) -> Vec<String> {
    found.problems.iter().map(|(path, problem)| format!("{path} {problem}")).collect()
}

#[test]
fn the_table_is_read_and_compared_with_its_entry_point() {
    let table = [device("A1"), END.to_vec()].concat();
    let files = Memory::new().file(TABLE, &table).file(ENTRY_POINT, b"_SM?");
    let found = from_tree(&Tree::memory(files));
    assert_eq!(names(&found), ["A1"]);
    assert_eq!(
        problems(&found),
        [format!("{ENTRY_POINT} at 0x0: expected \"_SM_\", \"_SM3_\" or \"_DMI_\" at its beginning")]
    );
}

#[test]
fn a_table_that_is_cut_is_shorter_than_its_entry_point_says() {
    let mut entry = vec![0; 31];
    entry[..4].copy_from_slice(b"_SM_");
    (entry[5], entry[22]) = (31, 200);
    entry[4] = entry.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
    let table = [device("A1"), device("A2")].concat();
    let files = Memory::new().file(TABLE, &table[..30]).file(ENTRY_POINT, &entry);
    let found = from_tree(&Tree::memory(files));
    assert_eq!(names(&found), ["A1"]);
    assert_eq!(
        problems(&found),
        [
            format!("{TABLE} at 0x19: type 17 has length 21, and the table ends after 5"),
            format!("{ENTRY_POINT} at 0x0: the table has 30 bytes: expected 200, it may be cut"),
        ]
    );
}

#[test]
fn structures_in_files_of_their_own_are_read_in_their_order() {
    let entry = |name: &str| format!("{ENTRIES}/{name}/raw");
    let files = Memory::new()
        .file(&entry("17-10"), device("B1"))
        .file(&entry("17-9"), device("A2"))
        .file(&entry("17-x"), device("C1"))
        .file(&entry("17-0"), device("A1"));
    let found = from_tree(&Tree::memory(files));
    assert_eq!(names(&found), ["A1", "A2", "B1"]);
    assert_eq!(problems(&found), [""; 0]);
}

#[test]
fn a_closed_table_is_named_with_its_reason() {
    let files = Memory::new().unreadable(TABLE, ReadCause::System(13));
    let found = from_tree(&Tree::memory(files));
    assert_eq!(
        found.not_read.as_deref(),
        Some("cannot read /sys/firmware/dmi/tables/DMI: permission denied")
    );
    assert_eq!(from_tree(&Tree::memory(Memory::new())).not_read, None);
}

#[test]
fn a_text_of_dmidecode_in_a_capture_is_read() {
    let text = "Handle 0x0001, DMI type 17, 34 bytes\nMemory Device\n\tSize: 4 GB\n\tLocator: A1\n";
    let found = from_tree(&Tree::memory(Memory::new().file("/dmidecode.txt", text)));
    assert_eq!(names(&found), ["A1"]);
    let closed = "# dmidecode 3.4\nScanning /dev/mem for entry point.\n/dev/mem: Permission denied\n";
    let found = from_tree(&Tree::memory(Memory::new().file("/dmidecode", closed)));
    assert_eq!(found.not_read.as_deref(), Some("\"/dev/mem: Permission denied\""));
}

#[test]
fn a_dump_is_an_entry_point_and_the_table_behind_it() {
    let mut dump = vec![0; 32];
    dump[..5].copy_from_slice(b"_SM3_");
    (dump[6], dump[13]) = (24, 1);
    dump[5] = dump.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
    dump.extend(device("A1"));
    dump.extend(END);
    let (slots, problems) = from_dump(&dump).unwrap();
    assert_eq!((slots.slots.len(), problems), (1, vec![]));
    assert!(from_dump(b"_SM_").is_none());
}
