//! Where output goes: pipes whose reader leaves, full disks, closed streams, colour.

use crate::nodewise::{command, output, run, shell};

#[test]
fn a_reader_that_leaves_is_no_error() {
    // `exec true` leaves before anything is written; 64 nodes are more than a pipe holds.
    for what in
        ["show --machine '64x(64c 8G)' --json", "show --machine '64x(4c 8G)'", "--help", "run --dry-run"]
    {
        let ran = shell(&format!("{{ $nodewise {what}; echo $? >&2; }} | true"));
        assert_eq!(ran.stderr, "0\n", "{what}");
    }
    assert_eq!(
        shell("$nodewise show --machine '2x(1c 1G)' | head -1").ok(),
        "2 packages x 1 core = 2 CPUs, 2 GiB in 2 nodes\n"
    );
}

#[test]
fn a_full_disk_is_told() {
    for what in [
        "",
        "show",
        "show --json",
        "run --dry-run -m all",
        "run --explain",
        "--help",
        "--version",
        "tune --help",
    ] {
        let ran = shell(&format!("$nodewise --machine '2x(1c 1G)' {what} > /dev/full"));
        let expected = "nodewise: cannot write the output: no space left on device\n";
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), expected), "{what}");
    }
}

#[test]
fn a_closed_stream_is_told_or_endured() {
    for what in ["", "show --json", "run --dry-run", "--help"] {
        let ran = shell(&format!("$nodewise {what} >&-"));
        let expected = "nodewise: cannot write the output: standard output is closed\n";
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), expected), "{what}");
    }
    assert_eq!(shell("$nodewise run nosuch 2>&-").code, Some(127));
    assert_eq!(shell("$nodewise shw 2>/dev/full").code, Some(2));
    shell("$nodewise show <&-").ok();
}

#[test]
fn a_pipe_gets_colour_only_when_asked_for() {
    let coloured = |options: &[&str], variables: &[(&str, &str)]| {
        let mut command = command(["show", "--machine", "2x(1c 1G)"]);
        output(command.args(options).envs(variables.iter().copied())).ok().contains('\u{1b}')
    };
    assert!(!coloured(&[], &[]));
    assert!(coloured(&["--color", "always"], &[]));
    assert!(coloured(&["--color=always"], &[("NO_COLOR", "1")]), "what is typed is the stronger");
    assert!(coloured(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[], &[("CLICOLOR_FORCE", "0")]));
    assert!(!coloured(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!coloured(&["--color=never"], &[("CLICOLOR_FORCE", "1")]));
}

#[test]
fn columns_without_a_meaning_are_passed_over() {
    let usual = run(&["show", "--machine", "64x(1c 1G)"]).ok();
    for columns in ["", "0", "-1", "wide", "99999999999999999999999"] {
        let text = output(command(["show", "--machine", "64x(1c 1G)"]).env("COLUMNS", columns)).ok();
        assert_eq!(text, usual, "COLUMNS={columns}");
    }
}
