//! `nodewise lab` as far as it goes without a guest; `tests/lab` boots some.

use crate::nodewise::{golden, missing, run};

#[test]
fn a_dry_run_tells_the_guest_and_what_differs() {
    let mut texts = String::new();
    for (machine, options) in [
        ("2x(2x(1c 512M)); dist=11,20", &[][..]),
        ("(4c 512M) 2x(256M)", &[]),
        ("2x(32c2t 256G); dist=21", &["--cpus", "4", "--memory", "2G"]),
    ] {
        let ran = run(&[&["lab", "--dry-run", "--machine", machine], options].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        // QEMU's options are for the lab's own tests to hold.
        let (nodes, qemu) = ran.stdout.split_once("qemu ").expect("the emulator's arguments come last");
        assert_eq!(qemu.matches("-numa node,").count(), nodes.lines().count(), "{qemu}");
        texts +=
            &format!("$ nodewise lab --machine '{machine}' {}\n{}{nodes}", options.join(" "), ran.stderr);
    }
    golden("lab-dry", texts);
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
