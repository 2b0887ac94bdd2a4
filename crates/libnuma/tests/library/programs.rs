//! Programs that print what every function answers: the same with both libraries.

use std::process::Command;

use crate::built::{Headers, PROGRAMS, compile, has, has_original, library, success, text};
use crate::with_ours;

/// Compiles a program in four ways, and compares what it prints with our library and with Debian's.
fn check(name: &str, arguments: &[&str], flags: &[&str]) {
    if library().is_none() || !has_original() || !has("g++") {
        return;
    }
    for headers in [Headers::Ours, Headers::Debians] {
        for compiler in ["gcc", "g++"] {
            let program = compile(name, headers, compiler, flags);
            let ours = with_ours(&program).args(arguments).output().expect("it was compiled");
            let original = Command::new(&program).args(arguments).output().expect("it was compiled");
            let what = format!("{name} {arguments:?} with {headers:?} headers and {compiler}");
            similar(&what, &text(&ours), &text(&original));
            assert_eq!(ours.status, original.status, "{what}");
        }
    }
}

/// Compares line by line: the first difference shows more than two long texts.
fn similar(what: &str, ours: &str, original: &str) {
    for (number, (ours, original)) in ours.lines().zip(original.lines()).enumerate() {
        assert_eq!(ours, original, "{what}: line {} (ours is on the left)", number + 1);
    }
    assert_eq!(ours.lines().count(), original.lines().count(), "{what}: the number of lines");
}

#[test]
fn every_function_answers_as_the_original() {
    for name in PROGRAMS {
        check(name, &[], &[]);
    }
}

#[test]
fn errors_end_a_program_only_when_it_asks_for_that() {
    check("errors", &["e"], &[]);
    if library().is_some() {
        // 2.0.16 does not look at numa_exit_on_warn, and 2.0.17 does.
        let program = compile("errors", Headers::Ours, "gcc", &[]);
        let output = with_ours(&program).arg("w").output().expect("it was compiled");
        assert_eq!(text(&output), "libnuma: Warning: a warning of text and 7\n");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_program_may_have_its_own_error_functions() {
    check("errors", &[], &["-DOWN"]);
}

#[test]
fn edges_that_the_originals_miss_are_right() {
    if library().is_some() {
        success(&mut with_ours(&compile("edges", Headers::Ours, "gcc", &[])));
    }
}

#[test]
fn the_static_library_is_the_same() {
    if library().is_some() {
        let program = compile("edges", Headers::Ours, "gcc", &["-static"]);
        success(&mut Command::new(program));
    }
}

/// The formats of 2.0.19; 2.0.16 has `%d` where it has `%ld`.
const FORMATS: &str = "\
10|node argument %ld is out of range\n|node argument 999 is out of range\n|\
10|node argument %ld out of range\n|node argument 999 out of range\n|\
10|missing node argument %s\n|missing node argument \n|\
10|unparseable node description `%s'\n|unparseable node description `foo'\n|\
28|Illegal characters in `%s' specification|Illegal characters in `a/b' specification|\
26|Cannot read node mask for %s device `%s'|Cannot read node mask for net device `nosuch'|\
11|Cannot stat file %s|Cannot stat file /nosuch|\
23|Cannot parse PCI device `%s'|Cannot parse PCI device `zz'|\
26|Cannot read node mask for %s device `%s'|Cannot read node mask for  device `ff:1f.7'|\
9|cpu argument %s is out of range\n|cpu argument 9999 is out of range\n|\
9|cpu argument %s out of range\n|cpu argument 9999 out of range\n|\
9|missing cpu argument %s\n|missing cpu argument \n|\
9|unparseable cpu description `%s'\n|unparseable cpu description `foo'\n|\
6|node %d not allowed|node 999 not allowed|";

#[test]
fn a_programs_own_numa_warn_gets_the_formats() {
    if library().is_none() {
        return;
    }
    let program = compile("formats", Headers::Ours, "gcc", &["-rdynamic"]);
    assert_eq!(success(&mut with_ours(&program)), FORMATS);
    if has_original() {
        let output = Command::new(&program).output().expect("it was compiled");
        let original = text(&output).replace("argument %d", "argument %ld");
        assert_eq!(original, FORMATS, "the original");
    }
}

#[test]
fn sources_rely_on_what_the_header_includes_and_may_guard_it_themselves() {
    if library().is_none() || !has("g++") {
        return;
    }
    for compiler in ["gcc", "g++"] {
        let flags: &[&str] = if compiler == "gcc" { &["-Werror=implicit-function-declaration"] } else { &[] };
        success(&mut with_ours(&compile("headers", Headers::Ours, compiler, flags)));
    }
}

/// `docs/compat.md`, "Blocked calls": 2.0.16 answers 0 for `EPERM`.
#[test]
fn policies_that_a_filter_refuses_are_not_available() {
    if library().is_none() {
        return;
    }
    let program = compile("blocked", Headers::Ours, "gcc", &[]);
    for (errno, expected) in [(libc::EPERM, "0 -1\n"), (libc::ENOSYS, "0 -1\n"), (libc::EINVAL, "0 0\n")] {
        assert_eq!(success(with_ours(&program).arg(errno.to_string())), expected, "{errno}");
    }
}

#[test]
fn a_program_that_unloads_the_library_loses_no_memory() {
    if library().is_none() {
        return;
    }
    let output = success(&mut with_ours(&compile("reload", Headers::Ours, "gcc", &["-Wl,--as-needed"])));
    let lost = output.strip_prefix("lost ").and_then(|lost| lost.trim().parse::<i64>().ok());
    // The loader keeps a few bytes of its own for names that it saw, but none for each cycle.
    assert!(lost.is_some_and(|lost| lost < 4096), "{output}");
}
