use super::*;

#[test]
fn a_stamp_is_the_date_in_utc() {
    let check = |seconds, expected: &str| {
        assert_eq!(Stamp::since_1970(Duration::from_secs(seconds)).to_string(), expected)
    };
    check(0, "19700101-000000");
    check(951_827_696, "20000229-123456");
    check(1_795_268_400, "20261121-134000");
    check(4_107_542_399, "21000228-235959");
    check(4_107_542_400, "21000301-000000");
}

#[test]
fn only_backups_of_this_file_are_taken_for_one() {
    let check =
        |name: &str, expected: bool| assert_eq!(parts(name, "cmdline.txt").is_some(), expected, "{name}");
    check("cmdline.txt.20261121-134000.0123456789abcdef.nodewise", true);
    check("cmdline.txt.20261121-134000.0123456789abcdef-2.nodewise", true);
    check("cmdline.txt.20261121-134000.0123456789abcdef", false);
    check("cmdline.txt.bak.nodewise", false);
    check("cmdline.20261121-134000.0123456789abcdef.nodewise", false);
}

#[test]
fn the_hash_is_fnv_1a() {
    // From the reference of its authors.
    assert_eq!(hash(b""), "cbf29ce484222325");
    assert_eq!(hash(b"foobar"), "85944171f73967e8");
}
