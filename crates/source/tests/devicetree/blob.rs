//! Trees written by hand, so that each part of the form can be wrong.

use nodewise_source::devicetree::{Blob, Event, MAGIC, read};
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

const BEGIN: u32 = 1;
const END: u32 = 2;
const PROPERTY: u32 = 3;
const NOTHING: u32 = 4;
const LAST: u32 = 9;

/// A tree of this structure and these names of properties.
fn tree(structure: &[u32], strings: &[u8]) -> Vec<u8> {
    let structure: Vec<u8> = structure.iter().flat_map(|word| word.to_be_bytes()).collect();
    let at = 40 + structure.len();
    let header = [at + strings.len(), 40, at, 0, 17, 16, 0, strings.len(), structure.len()];
    let header = header.iter().flat_map(|field| (*field as u32).to_be_bytes());
    [&MAGIC[..], &header.collect::<Vec<u8>>(), &structure, strings].concat()
}

fn check(bytes: &[u8], expected: &str) {
    assert_eq!(read(bytes).unwrap_err().to_string(), format!("device tree at {expected}"));
}

#[test]
fn a_tree_is_walked_from_its_root_to_its_end() {
    let name = u32::from_be_bytes(*b"a@1\0");
    let structure = [BEGIN, 0, NOTHING, PROPERTY, 3, 2, 0x0102_0300, BEGIN, name, END, END, NOTHING, LAST];
    let bytes = tree(&structure, b"x\0yz\0");
    let mut events = Vec::new();
    Blob::new(&bytes)
        .unwrap()
        .walk(&mut |event| {
            events.push(event);
            Ok(())
        })
        .unwrap();
    let expected =
        [Event::Begin(b""), Event::Property(b"yz", &[1, 2, 3]), Event::Begin(b"a@1"), Event::End, Event::End];
    assert_eq!(events, expected);
}

#[test]
fn what_is_wrong_is_told_by_its_place() {
    check(b"", "0x0: the first bytes are not d0 0d fe ed");
    check(&MAGIC, "0x14: 4 bytes: expected a header of 40");
    let good = tree(&[BEGIN, 0, END, LAST], b"");
    assert!(read(&good).is_ok());
    check(&good[..50], "0x4: the size is 56, and 50 bytes are there");
    let with = |at: usize, value: u32| {
        let mut bytes = good.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        bytes
    };
    check(&with(20, 3), "0x14: version 3: expected 16 or 17");
    check(&with(8, 0xffff_fff0), "0x8: the structure of 16 bytes at 0xfffffff0 ends behind the tree");
    check(&with(32, 9), "0xc: the strings of 9 bytes at 0x38 ends behind the tree");
    check(&with(40, 5), "0x28: token 0x5: expected 1, 2, 3, 4 or 9");
    check(&with(48, LAST), "0x30: the tree ends within 1 nodes");
    check(&with(40, END), "0x28: a node ends that has not begun");
}

#[test]
fn properties_lie_within_the_tree() {
    let property = |length, name| tree(&[BEGIN, 0, PROPERTY, length, name, END, LAST], b"ab");
    check(&property(9, 0), "0x3c: the property's name at 0 of the strings has no end");
    check(&property(0, 7), "0x3c: the property's name is at 7 of 2 bytes of strings");
    let long = tree(&[BEGIN, 0, PROPERTY, u32::MAX, 0, END, LAST], b"a\0");
    check(&long, "0x3c: a value of 4294967295 bytes, and 8 are left");
    check(&tree(&[PROPERTY, 0, 0, LAST], b"a\0"), "0x28: a property outside of all nodes");
}

#[test]
fn nodes_are_not_nested_without_end() {
    let deep: Vec<u32> = std::iter::repeat_n([BEGIN, 0], 40).flatten().collect();
    check(&tree(&deep, b""), "0x128: a node at level 32: expected at most 32");
    let long: Vec<u32> = [BEGIN].into_iter().chain([u32::MAX; 64]).collect();
    check(&tree(&long, b""), "0x2c: a name without end: expected at most 128 bytes");
    check(
        &tree(&[BEGIN, 0, END, BEGIN, 0, END, LAST], b""),
        "0x34: something follows the root node: expected the end",
    );
}

proptest! {
    #[test]
    fn any_tokens_are_survived(structure in vec(0u32..12, 0..60), strings in "[a-z\\x00]{0,12}") {
        let bytes = tree(&structure, strings.as_bytes());
        let _ = read(&bytes);
    }

    #[test]
    fn any_bytes_are_survived(noise in vec(any::<u8>(), 0..200)) {
        prop_assert!(read(&noise).is_err() || noise.starts_with(&MAGIC));
        let _ = read(&[&MAGIC[..], &noise].concat());
    }

    #[test]
    fn a_tree_within_another_file_is_read_by_its_own_size(behind in vec(any::<u8>(), 0..20)) {
        let good = tree(&[BEGIN, 0, END, LAST], b"");
        prop_assert_eq!(read(&[good.clone(), behind].concat()), read(&good));
    }
}
