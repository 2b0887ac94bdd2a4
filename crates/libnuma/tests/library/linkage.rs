//! How programs and the library find each other: versions, variables, what is loaded with it.

use std::process::Command;

use crate::built::{Headers, build, compile, has, library, source, success};
use crate::with_ours;

#[test]
fn the_library_needs_libc_alone() {
    let Some(library) = library() else { return };
    let text = success(Command::new("readelf").arg("--dynamic").arg(library.join("lib/libnuma.so.1")));
    let needed: Vec<&str> = text.lines().filter(|line| line.contains("(NEEDED)")).collect();
    for line in &needed {
        // Variables of threads come from the loader, which is a part of libc.
        assert!(line.contains("[libc.so.6]") || line.contains("[ld-linux"), "{text}");
    }
    assert!(!needed.is_empty() && text.contains("(SONAME)") && text.contains("[libnuma.so.1]"), "{text}");
}

#[test]
fn symbols_are_found_by_name_by_version_and_without_one() {
    if library().is_some() {
        let text = success(&mut with_ours(&compile("versions", Headers::Ours, "gcc", &[])));
        assert_eq!(text, "good\n");
    }
}

#[test]
fn a_program_at_a_fixed_place_copies_the_variables() {
    if library().is_none() {
        return;
    }
    for flags in [&["-no-pie", "-fno-pie"][..], &["-pie", "-fpie"]] {
        let program = compile("variables", Headers::Ours, "gcc", flags);
        assert_eq!(success(&mut with_ours(&program)), "good\n");
        let copies = success(Command::new("readelf").args(["--relocs", "--wide"]).arg(&program));
        if flags[0] == "-no-pie" && cfg!(target_arch = "x86_64") {
            let count = copies.lines().filter(|line| line.contains("_COPY")).count();
            assert_eq!(count, 9, "the program copies all variables: {copies}");
        }
    }
}

/// arm64 by its cross compiler, and run by QEMU: there the calls about policies are not known.
#[test]
fn the_library_for_arm64_has_the_symbols_and_runs() {
    let compiler = "aarch64-linux-gnu-gcc";
    if cfg!(target_arch = "aarch64") || library().is_none() || !has("rustup") {
        return;
    }
    if !has(compiler) || !has("qemu-aarch64") {
        return;
    }
    // The one part that lab-setup cannot install: it belongs to the toolchain, which is the user's.
    let target = ["target", "add", "aarch64-unknown-linux-gnu"];
    let added = Command::new("rustup").args(target).output();
    if !added.is_ok_and(|output| output.status.success()) {
        println!("skipped: rustup {} does not work here", target.join(" "));
        return;
    }
    let library = build("aarch64").expect("the library is built and compared");
    for name in ["variables", "versions"] {
        let program = library.join(name);
        let mut command = Command::new(compiler);
        command.arg("-I").arg(library.join("include")).arg(source(name)).arg("-o").arg(&program);
        success(command.arg("-L").arg(library.join("lib")).args(["-lnuma", "-ldl"]));
        let mut command = Command::new("qemu-aarch64");
        command.args(["-L", "/usr/aarch64-linux-gnu", "-E"]);
        command.arg(format!("LD_LIBRARY_PATH={}", library.join("lib").display()));
        assert_eq!(success(command.arg(&program)), "good\n");
    }
}
