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

/// Compares line by line: the first difference tells more than two long texts.
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
