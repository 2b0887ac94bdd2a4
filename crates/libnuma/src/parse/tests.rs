use super::{Allowed, Scope, Subject, list};
use crate::error;
use crate::words::{self, Word};
use proptest::prelude::{any, prop_assert, proptest};
use std::string::String;
use std::vec::Vec;

/// Nodes 0, 2, 5 and 7 are allowed, of 64.
const ALLOWED: [Word; 1] = [0b1010_0101];

/// Those of a subject; node or CPU 3 exists and is not allowed.
fn scope(subject: Subject) -> Scope<'static> {
    let invert = |mask: &mut [Word]| mask[0] = 0b1010_1101 & !mask[0];
    Scope { subject, allowed: Allowed { words: &ALLOWED, bits: 64 }, invert }
}

/// A list of nodes, and what it means: members, or the warning.
fn check(text: &str, expected: Result<&[usize], &str>) {
    check_subject(Subject::Nodes, text, expected);
}

fn check_subject(subject: Subject, text: &str, expected: Result<&[usize], &str>) {
    let mut mask = [0; 1];
    error::reported();
    let result = list(scope(subject), text.as_bytes(), &mut mask);
    let warnings: String = error::reported().concat();
    let found: Vec<usize> = words::ones(&mask, 64).collect();
    let found = result.map(|()| found.as_slice()).ok_or(warnings.trim_end());
    assert_eq!(found, expected, "{text:?}");
}

#[test]
fn lists_name_members_and_ranges() {
    check("", Ok(&[]));
    check("0", Ok(&[0]));
    check("0,5", Ok(&[0, 5]));
    check("5,5", Ok(&[5]));
    check("all", Ok(&[0, 2, 5, 7]));
    check("0,all", Ok(&[0, 2, 5, 7]));
    check("0x5", Ok(&[5]));
    check("05", Ok(&[5]));
    check("0b101", Ok(&[5]));
    check(" 5", Ok(&[5]));
}

#[test]
fn a_range_takes_what_is_allowed_between_its_ends() {
    check("0-7", Ok(&[0, 2, 5, 7]));
    check("2-5", Ok(&[2, 5]));
    check("5-2", Ok(&[5]));
    check("0-3", Err("node argument 3 out of range"));
}

#[test]
fn relative_members_count_among_the_allowed() {
    check("+0", Ok(&[0]));
    check("+1-2", Ok(&[2, 5]));
    check("++3", Ok(&[7]));
    check("+4", Err("node argument 64 is out of range"));
    check("+0-4", Err("node argument 64 out of range"));
    check("+-1", Err("node argument -1 is out of range"));
    check("+++3", Err("unparseable node description `++3'"));
}

#[test]
fn inverse_lists_are_all_other_members_that_exist() {
    check("!0", Ok(&[2, 3, 5, 7]));
    check("!all", Ok(&[3]));
    check("!+0-1", Ok(&[3, 5, 7]));
    check("+!0", Err("unparseable node description `!0'"));
}

#[test]
fn wrong_lists_are_warned_of() {
    check("1", Err("node argument 1 is out of range"));
    check("-1", Err("node argument -1 is out of range"));
    check("99999999999999999999", Err("node argument -1 is out of range"));
    check("4294967296", Err("node argument 4294967296 is out of range"));
    check("0-", Err("missing node argument"));
    check("0,", Err("unparseable node description `'"));
    check("!", Err("unparseable node description `'"));
    check("all,0", Err("unparseable node description `all,0'"));
    check("foo", Err("unparseable node description `foo'"));
    check("0;2", Err(""));
    check("0-2-5", Err(""));
    check("0 ", Err(""));
}

#[test]
fn cpus_are_named_in_their_own_words() {
    check_subject(Subject::Cpus, "1-2,5", Err("cpu argument 1-2,5 is out of range"));
    check_subject(Subject::Cpus, "0-99", Err("cpu argument 99 out of range"));
    check_subject(Subject::Cpus, "netdev:lo", Err("unparseable cpu description `netdev:lo'"));
}

#[test]
fn devices_are_named_by_their_kind() {
    check("netdev:a/b", Err("Illegal characters in `a/b' specification"));
    check("block:..", Err("Illegal characters in `..' specification"));
    check("netdev:no-such.5", Err("Illegal characters in `no-such.5' specification"));
    check("netdev:no-such-device", Err("Cannot read node mask for net device `no-such-device'"));
    check("netdev:", Err("Cannot read node mask for net device `'"));
    check("file:/no/such/file", Err("Cannot stat file /no/such/file"));
    check("file: /", Err("Cannot stat file  /"));
    check("pci:ffff:ff:1f.8", Err("Cannot read node mask for  device `ffff:ff:1f.8'"));
    check("net:lo", Err("unparseable node description `net:lo'"));
    check("pci:zz", Err("Cannot parse PCI device `zz'"));
    check("pci:0", Err("Cannot parse PCI device `0'"));
    check("pci:ffff:ff:1f.7", Err("Cannot read node mask for  device `ffff:ff:1f.7'"));
    check("usb:1", Err("unparseable node description `usb:1'"));
}

proptest! {
    #[test]
    fn any_list_means_allowed_members_or_nothing(text in "[-+!0-9,a-lx ]{0,12}") {
        let mut mask = [0; 1];
        if list(scope(Subject::Nodes), text.as_bytes(), &mut mask).is_some() {
            let known = if text.starts_with('!') { 0b1010_1101 } else { ALLOWED[0] };
            prop_assert!(mask[0] & !known == 0, "{text}: {mask:?}");
        }
    }

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        list(scope(Subject::Cpus), &bytes, &mut [0; 1]);
    }
}
