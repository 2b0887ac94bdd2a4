use proptest::prelude::{any, prop_assert, proptest};

use super::*;

fn problems(table: &[u8], ending: Ending) -> Vec<String> {
    walk(table, ending).problems.iter().map(ToString::to_string).collect()
}

/// Type 17 with two strings, type 16 without any, the end.
const TABLE: &[u8] = b"\x11\x06\x01\x00\x01\x02 DIMM_A1 \0BANK\0\0\x10\x04\x02\x00\0\0\x7f\x04\xff\xfe\0\0";

#[test]
fn structures_have_their_strings() {
    let found = walk(TABLE, Ending::Marked);
    assert_eq!(found.problems, []);
    let kinds: Vec<(u8, u16)> = found.all.iter().map(|one| (one.kind, one.handle)).collect();
    assert_eq!(kinds, [(17, 1), (16, 2), (127, 0xfeff)]);
    let first = found.all[0];
    assert_eq!(first.string(4), Ok(Some("DIMM_A1".to_owned())));
    assert_eq!(first.string(5), Ok(Some("BANK".to_owned())));
    assert_eq!(first.string(6), Ok(None), "behind the area");
    assert_eq!((first.word(4), first.double(4)), (Some(0x0201), None));
    let texts: Vec<&[u8]> = first.string_places().iter().map(|(from, to)| &TABLE[*from..*to]).collect();
    assert_eq!(texts, [&b" DIMM_A1 "[..], b"BANK"]);
}

#[test]
fn bytes_behind_the_end_marker_are_none_of_the_table() {
    let table = [TABLE, b"\x01\x01"].concat();
    assert_eq!(walk(&table, Ending::Marked).all.len(), 3);
    assert_eq!(problems(&table, Ending::Marked), [""; 0]);
}

#[test]
fn what_cannot_be_followed_is_named_and_the_rest_kept() {
    let check = |table: &[u8], count: usize, expected: &str| {
        let found = walk(table, Ending::Marked);
        assert_eq!(found.all.len(), count, "{expected}");
        assert_eq!(problems(table, Ending::Marked), [expected]);
    };
    check(&TABLE[..28], 2, "at 0x1c: the table has no end: expected a structure of type 127");
    check(&TABLE[..27], 2, "at 0x16: the strings of type 16 have no end: expected two NULs");
    check(&TABLE[..25], 1, "at 0x16: 3 bytes are left: expected a header of 4");
    check(b"\x11\x03\x01\x00\0\0", 0, "at 0x0: type 17 has length 3: expected 4 or more");
    check(b"\x11\x22\x01\x00\0\0", 0, "at 0x0: type 17 has length 34, and the table ends after 6");
    assert_eq!(problems(&TABLE[..22], Ending::Open), [""; 0]);
}

#[test]
fn a_string_that_is_not_there_is_named() {
    let table = b"\x11\x06\x01\x00\x03\x00A\0B\0\0";
    let error = walk(table, Ending::Open).all[0].string(4).unwrap_err();
    assert_eq!(error, "type 17 names string 3 at byte 0x4: it has 2 strings");
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in any::<Vec<u8>>(), cut in 0..TABLE.len(), at in 0..TABLE.len(), byte in any::<u8>()) {
        let mut near = TABLE.to_vec();
        near[at] = byte;
        for table in [&bytes[..], &TABLE[..cut], &near] {
            let found = walk(table, Ending::Marked);
            for one in &found.all {
                let _ = (one.string(4), one.string(5), one.quad(4));
                for (from, to) in one.string_places() {
                    prop_assert!(from < to && to <= table.len());
                }
            }
        }
    }
}
