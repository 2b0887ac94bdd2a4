//! `nodewise lab` as far as it goes without a guest; `tests/lab` boots some.

use std::fs::OpenOptions;

use crate::nodewise::{golden, missing, run};

#[test]
fn a_dry_run_tells_the_guest_and_what_differs() {
    let mut texts = String::new();
    for (machine, options) in [
        ("2x(2x(1c 512M)); dist=11,20", &[][..]),
        ("(4c 512M) 2x(256M)", &[]),
        ("2x(32c2t 256G); dist=21", &["--cpus", "4", "--memory", "2G"]),
    ] {
        let ran = run(&[&["lab", "--dry-run", "--engine=tcg", "--machine", machine], options].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        // QEMU's options are for the lab's own tests to hold.
        let (nodes, qemu) =
            ran.stdout.split_once("engine: tcg\nqemu ").expect("the emulator's arguments come last");
        assert_eq!(qemu.matches("-numa node,").count(), nodes.lines().count(), "{qemu}");
        texts +=
            &format!("$ nodewise lab --machine '{machine}' {}\n{}{nodes}", options.join(" "), ran.stderr);
    }
    golden("lab-dry", texts);
}

/// A plan names the engine that would be tried first, whatever this machine has.
#[test]
fn a_dry_run_names_the_engine_and_why() {
    let plan = |engine: &str| run(&["lab", "--dry-run", "--machine", "(1c 512M)", engine]);
    let opened = OpenOptions::new().read(true).write(true).open("/dev/kvm");
    let auto = plan("--engine=auto").ok();
    let line = auto.lines().find(|line| line.starts_with("engine: ")).expect("a line of the engine");
    let kvm = plan("--engine=kvm");
    if std::env::consts::ARCH == "x86_64" && opened.is_ok() {
        assert_eq!(line, "engine: kvm: /dev/kvm can be opened");
        assert!(kvm.ok().contains("\nengine: kvm\n"));
    } else {
        assert!(line.starts_with("engine: tcg: "), "{line}");
        assert_eq!(kvm.code, Some(125));
        assert!(kvm.stderr.contains("KVM cannot run this guest: "), "{}", kvm.stderr);
    }
}

#[test]
fn counting_takes_no_other_engine_than_tcg() {
    let ran = run(&["lab", "--count", "--engine", "kvm", "--machine", "(1c 512M)", "true"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(125), ""));
    assert!(ran.stderr.contains("--engine=kvm and --count cannot be used together: "), "{}", ran.stderr);
}

#[test]
fn what_a_guest_needs_is_looked_for_before_it_starts() {
    let check = |option: &[&str], expected: &str| {
        let ran = run(&[&["lab", "--machine", "(1c 512M)"], option, &["true"]].concat());
        if ran.stderr.contains("the lab lacks") {
            return missing(&ran.stderr);
        }
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(125), ""), "{option:?}");
        assert!(ran.stderr.contains(expected), "{option:?}: {}", ran.stderr);
    };
    check(&["--kernel", "9.9"], "9.9");
    check(&["--kernel", "/nonexistent/vmlinuz"], "/nonexistent/vmlinuz");
}
