use super::{decimal, list, mask, meminfo};
use crate::words::{Word, ones};
use proptest::prelude::{any, prop_assert_eq, proptest};
use std::collections::BTreeSet;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

fn check_list(text: &str, expected: Option<&[usize]>) {
    let mut found = Vec::new();
    let result = list(text.as_bytes(), 1024, |number| found.push(number));
    assert_eq!(result.map(|()| found.as_slice()), expected, "{text:?}");
}

#[test]
fn lists_are_numbers_and_ranges() {
    check_list("0\n", Some(&[0]));
    check_list("0-3,8\n", Some(&[0, 1, 2, 3, 8]));
    check_list("\n", Some(&[]));
    check_list("0-9:2/4", Some(&[0, 1, 4, 5, 8, 9]));
    check_list("3-1", None);
    check_list("1023-99999999999", Some(&[1023]));
    check_list("0,", None);
    check_list("0-", None);
    check_list("a", None);
    check_list("99999999999999999999", None);
}

fn check_mask(text: &str, expected: Option<(usize, &[usize])>) {
    let mut words: [Word; 4] = [Word::MAX; 4];
    let bits = mask(text.as_bytes(), &mut words);
    let found: Vec<usize> = ones(&words, 256).collect();
    assert_eq!(bits.map(|bits| (bits, found.as_slice())), expected, "{text:?}");
}

#[test]
fn masks_are_groups_of_32_bits() {
    check_mask("3\n", Some((4, &[0, 1])));
    check_mask("1,00000001\n", Some((36, &[0, 32])));
    check_mask("00000000,00000000\n", Some((64, &[])));
    check_mask("80000000,0,0,0,0,0,0,0", Some((256, &[255])));
    check_mask("1,0,0,0,0,0,0,0,0", None);
    check_mask("\n", Some((0, &[])));
    check_mask("zz\n", None);
    check_mask("123456789,0", None);
}

#[test]
fn sizes_come_from_a_nodes_meminfo() {
    let text = b"Node 0 MemTotal:        5334448 kB\nNode 0 MemFree:          409600 kB\n";
    assert_eq!(meminfo(text, b"MemTotal:"), Some(5_334_448 * 1024));
    assert_eq!(meminfo(text, b"MemFree:"), Some(409_600 * 1024));
    assert_eq!(meminfo(text, b"MemUsed:"), None);
    assert_eq!(meminfo(b"Node 0 MemTotal: x kB", b"MemTotal:"), None);
    assert_eq!(meminfo(b"Node 0 MemTotal: 18446744073709551615 kB", b"MemTotal:"), None);
    assert_eq!(meminfo(b"Node 0 MemTotal: 5", b"MemTotal:"), None);
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        list(&bytes, 8192, |number| assert!(number < 8192));
        mask(&bytes, &mut [0; 4]);
        meminfo(&bytes, b"MemTotal:");
        decimal(&bytes);
    }

    #[test]
    fn lists_and_masks_come_back(numbers in proptest::collection::btree_set(0usize..256, 0..30)) {
        let text = numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let mut found = BTreeSet::new();
        prop_assert_eq!(list(text.as_bytes(), 256, |number| { found.insert(number); }), Some(()));
        prop_assert_eq!(&found, &numbers);
        let mut groups = [0u32; 8];
        for number in &numbers {
            groups[number / 32] |= 1 << (number % 32);
        }
        let text: Vec<String> = groups.iter().rev().map(|group| format!("{group:08x}")).collect();
        let mut words = [0; 4];
        prop_assert_eq!(mask(text.join(",").as_bytes(), &mut words), Some(256));
        prop_assert_eq!(ones(&words, 256).collect::<BTreeSet<_>>(), numbers);
    }
}
