use proptest::prelude::{any, prop_assert, proptest};

use super::*;

/// A structure with this area behind its header, and these strings.
fn structure(kind: u8, handle: u16, area: &[u8], strings: &[&str]) -> Vec<u8> {
    let mut bytes = vec![kind, u8::try_from(area.len() + 4).unwrap()];
    bytes.extend(handle.to_le_bytes());
    bytes.extend(area);
    for string in strings {
        bytes.extend(string.bytes());
        bytes.push(0);
    }
    bytes.extend(if strings.is_empty() { &[0, 0][..] } else { &[0][..] });
    bytes
}

const STRINGS: [&str; 6] =
    ["P1-DIMMA1", "P0_Node0_Channel0_Dimm0", "Samsung", "0123", "TAG", "M393A2K40BB1-CRC"];

/// Type 17 of SMBIOS 3.3 with 92 bytes.
fn device(handle: u16, size: u16, extended: u32, speed: u16, fast: u32) -> Vec<u8> {
    let mut area = [0; 0x5c];
    let mut put = |at: usize, bytes: &[u8]| area[at..at + bytes.len()].copy_from_slice(bytes);
    put(4, &[0, 0x10, 0xfe, 0xff, 72, 0, 64, 0]);
    put(0x0c, &size.to_le_bytes());
    put(0x0e, &[9, 0, 1, 2, 0x1a, 0x80, 0]);
    put(0x15, &speed.to_le_bytes());
    put(0x17, &[3, 4, 5, 6, 0x12]);
    put(0x1c, &extended.to_le_bytes());
    put(0x20, &speed.to_le_bytes());
    put(0x28, &[3]);
    put(0x54, &fast.to_le_bytes());
    put(0x58, &fast.to_le_bytes());
    structure(17, handle, &area[4..], &STRINGS)
}

fn table(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), structure(127, 0xfeff, &[], &[])].concat()
}

fn read_table(parts: &[Vec<u8>]) -> (Slots, Vec<String>) {
    let (slots, problems) = decode(&table(parts), Ending::Marked);
    (slots, problems.iter().map(ToString::to_string).collect())
}

#[test]
fn a_module_is_read() {
    let (slots, problems) = read_table(&[device(1, 16384, 0, 2666, 0)]);
    assert_eq!(problems, [""; 0]);
    let slot = &slots.slots[0];
    assert_eq!(slot.locator.as_deref(), Some("P1-DIMMA1"));
    assert_eq!(slot.bank.as_deref(), Some("P0_Node0_Channel0_Dimm0"));
    let module = MemoryModule {
        size: Some(Bytes::from_gib(16)),
        memory_type: Some("DDR4".into()),
        form_factor: Some("DIMM".into()),
        technology: Some("DRAM".into()),
        max_speed_mt_per_s: Some(2666),
        configured_speed_mt_per_s: Some(2666),
        ranks: Some(2),
        data_width_bits: Some(64),
        total_width_bits: Some(72),
        manufacturer: Some("Samsung".into()),
        part_number: Some("M393A2K40BB1-CRC".into()),
    };
    assert_eq!(slot.module(), Some(&module));
}

#[test]
fn sizes_and_speeds_that_are_not_numbers_are_not() {
    let check = |size: u16, extended: u32, expected: Option<Option<Bytes>>| {
        let (slots, _) = read_table(&[device(1, size, extended, 0, 0)]);
        let module = slots.slots[0].module();
        assert_eq!(module.map(|module| module.size), expected, "{size:#x} {extended:#x}");
        assert!(module.is_none_or(|module| module.max_speed_mt_per_s.is_none()));
    };
    check(0, 0, None);
    check(0xffff, 0, Some(None));
    check(0x7fff, 0x8001_0000, Some(Some(Bytes::from_gib(64))));
    check(0x7fff, 0, Some(None));
    check(0x8200, 0, Some(Some(Bytes::from_kib(512))));
    let (slots, _) = read_table(&[device(1, 1, 0, 0xffff, 70_000)]);
    assert_eq!(slots.slots[0].module().unwrap().configured_speed_mt_per_s, Some(70_000));
}

#[test]
fn an_older_and_a_cut_structure_say_less() {
    // SMBIOS 2.1: nothing behind the type's detail.
    let whole = device(1, 1024, 0, 800, 0);
    let (slots, problems) = read_table(&[structure(17, 1, &whole[4..0x15], &STRINGS)]);
    assert_eq!(problems, [""; 0]);
    let module = slots.slots[0].module().unwrap();
    assert_eq!((module.size, module.max_speed_mt_per_s), (Some(Bytes::from_gib(1)), None));
    assert_eq!(module.memory_type.as_deref(), Some("DDR4"));
    let (slots, problems) = read_table(&[structure(17, 1, &whole[4..8], &[])]);
    assert_eq!(slots.slots[0].state, SlotState::Unknown);
    assert_eq!(problems, ["at 0x0: type 17 has length 8: expected 21 or more"]);
    let (slots, problems) =
        read_table(&[structure(17, 1, &whole[4..0x1c], &STRINGS[..1]), device(2, 1, 0, 1, 0)]);
    assert_eq!(slots.slots.len(), 2);
    assert_eq!(slots.slots[0].locator.as_deref(), Some("P1-DIMMA1"));
    assert_eq!(problems, ["at 0x0: type 17 names string 2 at byte 0x11: it has 1 strings"]);
}

#[test]
fn memory_of_the_firmware_is_not_a_slot() {
    let array =
        |handle: u16, usage: u8| structure(16, handle, &[3, usage, 6, 0, 0, 0, 0, 0xfe, 0xff, 1, 0], &[]);
    let flash = device(1, 16, 0, 0, 0);
    assert_eq!(read_table(&[array(0x1000, 5), flash.clone()]).0.slots, []);
    assert_eq!(read_table(&[array(0x1000, 3), flash.clone()]).0.slots.len(), 1);
    assert_eq!(read_table(&[flash]).0.slots.len(), 1, "an array that is not there");
}

#[test]
fn sockets_are_ordered_by_their_names_with_what_they_hold() {
    let socket = |handle: u16, kind: u8, status: u8, name: &str| {
        let mut area = [0; STATUS - 4];
        area[..2].copy_from_slice(&[1, kind]);
        structure(PROCESSOR, handle, &[&area[..], &[status]].concat(), &[name])
    };
    let sockets = [socket(4, 3, 0x41, "CPU2"), socket(5, 0, 0, "CPU1"), socket(6, 4, 0x41, "FPU")];
    let (slots, problems) = read_table(&[&sockets[..], &[device(1, 1024, 0, 0, 0)]].concat());
    assert_eq!(problems, [""; 0]);
    assert_eq!((slots.board.sockets, slots.board.processors), (Some(2), vec![Some(false), Some(true)]));
}

#[test]
fn sockets_maker_and_addresses_are_kept() {
    let range = |kind: u8, start: u32, last: u32, handle: u16, rest: &[u8]| {
        let area = [&start.to_le_bytes()[..], &last.to_le_bytes(), &handle.to_le_bytes(), rest].concat();
        structure(kind, 0x13, &area, &[])
    };
    let extended: Vec<u8> =
        [&[0; 5][..], &(1_u64 << 42).to_le_bytes(), &((1_u64 << 43) - 1).to_le_bytes()].concat();
    let (slots, problems) = read_table(&[
        structure(1, 9, &[1, 2], &["Dell Inc.", "R820"]),
        structure(4, 5, &[1, 3], &["CPU1"]),
        structure(4, 6, &[1, 3], &["CPU2"]),
        structure(4, 7, &[1, 4], &["Math"]),
        device(1, 1024, 0, 0, 0),
        device(2, 1024, 0, 0, 0),
        range(19, 0, (4 << 20) - 1, 0x1000, &[1]),
        range(20, u32::MAX, u32::MAX, 2, &extended),
        range(20, 9, 3, 2, &[0; 5]),
    ]);
    assert_eq!(slots.board.vendor.as_deref(), Some("Dell Inc."));
    assert_eq!(slots.board.sockets, Some(2));
    assert_eq!(slots.board.processors, [None; 2], "these structures end before the status");
    assert_eq!(slots.board.arrays, [Some(0x1000); 2]);
    assert_eq!(slots.ranges, [vec![(0, 4 << 30)], vec![(1 << 42, 1 << 43)]]);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].ends_with("type 20 ends at 0x1000, before its start at 0x2400"), "{problems:?}");
}

proptest! {
    #[test]
    fn any_table_is_survived(bytes in any::<Vec<u8>>(), damage in proptest::collection::vec((0_usize..240, any::<u8>()), 0..6)) {
        let mut near = table(&[device(1, 1024, 0, 1, 0), device(2, 0x7fff, 9, 0xffff, 1)]);
        for (at, byte) in damage {
            near[at] = byte;
        }
        for table in [&bytes, &near] {
            let (slots, _) = decode(table, Ending::Marked);
            prop_assert!(slots.slots.len() == slots.ranges.len() && slots.slots.len() == slots.board.arrays.len());
            let sizes = slots.slots.iter().filter_map(|slot| slot.module()?.size);
            prop_assert!(sizes.into_iter().all(|size| size.get() > 0));
        }
    }
}
