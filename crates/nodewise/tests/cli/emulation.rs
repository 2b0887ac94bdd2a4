//! Emulated nodes: boot files changed and taken back, and the report on machines that have some.

mod crash;
mod eeprom;
mod machines;

use std::fs;
use std::path::Path;

pub use crate::nodewise::folder_of as image;
use crate::nodewise::{Ran, run};

/// A command line as Raspberry Pi OS writes it.
pub const CMDLINE: &str =
    "console=serial0,115200 console=tty1 root=PARTUUID=4a5b-02 rootfstype=ext4 fsck.repair=yes rootwait\n";
/// The same with four nodes.
pub const EMULATED: &str = "console=serial0,115200 console=tty1 root=PARTUUID=4a5b-02 rootfstype=ext4 fsck.repair=yes numa=fake=4 numa_policy=interleave rootwait\n";
/// The options of a kernel that emulates nodes, and their place.
const CONFIG: (&str, &str) =
    ("boot/config-6.12.25+rpt-rpi-2712", "CONFIG_NUMA=y\nCONFIG_NUMA_EMU=y\nCONFIG_NODES_SHIFT=4\n");
/// The place of the command line.
pub const PATH: &str = "boot/firmware/cmdline.txt";

/// Runs a verb of `emulation` in an image.
pub fn emulation(image: &Path, words: &[&str]) -> Ran {
    let root = ["--root", image.to_str().unwrap()];
    run(&[&["emulation"], words, &root].concat())
}

#[track_caller]
fn check_file(image: &Path, path: &str, expected: &str) {
    assert_eq!(fs::read_to_string(image.join(path)).unwrap(), expected, "{path}");
}

#[test]
fn a_dry_run_shows_the_difference_and_changes_nothing() {
    let image = image(&[(PATH, CMDLINE), CONFIG]);
    let text = emulation(image.path(), &["enable", "--count=4", "--dry-run"]).ok();
    let expected =
        format!("--- a/{PATH}\n+++ b/{PATH}\n@@ -1 +1 @@\n-{CMDLINE}+{EMULATED}\n  would change  /{PATH}\n");
    assert_eq!(text, expected);
    check_file(image.path(), PATH, CMDLINE);
    assert_eq!(fs::read_dir(image.path().join("boot/firmware")).unwrap().count(), 1);
}

#[test]
fn what_is_enabled_can_be_disabled_and_undone_to_the_byte() {
    let image = image(&[(PATH, CMDLINE), CONFIG]);
    let root = image.path();
    assert!(emulation(root, &["enable", "--count", "4"]).ok().ends_with("  next          reboot\n"));
    check_file(root, PATH, EMULATED);
    let again = emulation(root, &["enable", "--count", "4"]).ok();
    assert_eq!(again, format!("  right already /{PATH}\n"));
    emulation(root, &["disable"]).ok();
    let one = EMULATED.replace("numa=fake=4 numa_policy=interleave", "numa=fake=1");
    check_file(root, PATH, &one);
    for expected in [EMULATED, CMDLINE] {
        emulation(root, &["undo"]).ok();
        check_file(root, PATH, expected);
    }
    let text = emulation(root, &["undo"]).ok();
    assert_eq!(text, "  note          there is nothing to take back\n");
    assert_eq!(fs::read_dir(root.join("boot/firmware")).unwrap().count(), 1);
}

#[test]
fn a_policy_that_is_no_longer_wanted_is_taken_out() {
    let image = image(&[(PATH, EMULATED)]);
    emulation(image.path(), &["enable", "--count=4", "--policy=none"]).ok();
    check_file(image.path(), PATH, &EMULATED.replace(" numa_policy=interleave", ""));
    emulation(image.path(), &["enable", "--count=4", "--policy=interleave"]).ok();
    emulation(image.path(), &["enable", "--count=2"]).ok();
    check_file(image.path(), PATH, &EMULATED.replace("fake=4", "fake=2"));
}

#[test]
fn what_an_images_kernel_will_not_make_is_said() {
    let check = |files: &[(&str, &str)], words: &[&str], expected: &[&str]| {
        let image = image(&[&[(PATH, CMDLINE)], files].concat());
        let json = emulation(image.path(), &[&["enable", "--dry-run", "--json"], words].concat()).ok_json();
        assert_eq!(json["remarks"], serde_json::json!(expected), "{words:?}");
    };
    let without = ("boot/config-6.12.9", "CONFIG_NUMA=y\n# CONFIG_NUMA_EMU is not set\n");
    let old = ("boot/config-6.6.31+rpt-rpi-2712", "CONFIG_NUMA=y\nCONFIG_NUMA_EMULATION=y\n");
    check(&[CONFIG], &["--count=8"], &[]);
    check(
        &[CONFIG, without],
        &["--count=8"],
        &["the image's kernel 6.12.9 emulates no nodes: it is built without CONFIG_NUMA_EMU"],
    );
    check(
        &[CONFIG],
        &["--count=1000"],
        &[
            "the image's kernel 6.12.25+rpt-rpi-2712 can number 16 nodes, 1000 are asked for",
            "1000 nodes of 32 MiB each, the least, need 31.2 GiB: a machine with less starts without emulation, and how much this image's has is not known",
        ],
    );
    check(
        &[old],
        &["--node-size=512M"],
        &[
            "the image's kernel 6.6.31+rpt-rpi-2712: this kernel reads a number of nodes only: it starts without emulation",
        ],
    );
    check(
        &[("usr/lib/modules/6.12.9/modules.dep", "")],
        &["--count=2"],
        &["whether the image's kernel 6.12.9 emulates nodes is not known: there is no config-6.12.9"],
    );
    check(
        &[],
        &["--count=2"],
        &[
            "whether this image's kernel emulates nodes is not known: there is no config-RELEASE in its /boot, and no folder of modules",
        ],
    );
}

#[test]
fn the_state_of_an_image_says_nothing_of_this_machine() {
    let image = image(&[(PATH, EMULATED), CONFIG]);
    let text = emulation(image.path(), &["status"]).ok();
    let expected = format!(
        "Emulation  of the image {}\n  kernel        supported: 6.12.25+rpt-rpi-2712 is built with CONFIG_NUMA_EMU\n  \
         at next start numa=fake=4 numa_policy=interleave (/{PATH})\n",
        image.path().display()
    );
    assert_eq!(text, expected);
    let json = emulation(image.path(), &["status", "--json"]).ok_json();
    assert_eq!(json["image"], image.path().to_str().unwrap());
    for of_this_machine in ["kernel", "node_count", "is_emulated", "policy", "ignored", "board"] {
        assert!(json[of_this_machine].is_null(), "{of_this_machine}: {json}");
    }
}

#[test]
fn every_boot_file_of_a_pc_is_changed() {
    let image = image(&[
        ("etc/default/grub", "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=\"ro\"\n"),
        ("usr/sbin/update-grub", ""),
        ("boot/loader/entries/a.conf", "linux /a\noptions root=b\n"),
    ]);
    let json = emulation(image.path(), &["enable", "--per-node=2", "--json"]).ok_json();
    assert_eq!(json["next"], serde_json::json!(["update-grub", "reboot"]));
    assert_eq!(json["files"].as_array().unwrap().len(), 2);
    check_file(image.path(), "etc/default/grub", "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX=\"ro numa=fake=2U\"\n");
    check_file(image.path(), "boot/loader/entries/a.conf", "linux /a\noptions root=b numa=fake=2U\n");
    let undone = emulation(image.path(), &["undo"]).ok();
    assert!(undone.ends_with("  next          update-grub, then reboot\n"), "{undone}");
    check_file(image.path(), "boot/loader/entries/a.conf", "linux /a\noptions root=b\n");
}

#[test]
fn what_is_not_understood_is_left_alone() {
    let image = image(&[("etc/default/grub", "if true; then A=1; fi\n")]);
    let ran = emulation(image.path(), &["enable", "--count=2"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            Some(3),
            "nodewise: /etc/default/grub is left alone: its line 1 is not a plain assignment NAME=value or \
             NAME=\"value\"; by hand: put numa=fake=2 into the kernel's command line\n"
        )
    );
    check_file(image.path(), "etc/default/grub", "if true; then A=1; fi\n");
}

#[test]
fn wrong_words_are_refused_with_what_would_be_right() {
    let image = image(&[(PATH, CMDLINE)]);
    let check = |words: &[&str], message: &str| {
        let ran = emulation(image.path(), words);
        assert_eq!((ran.code, ran.stderr.lines().next()), (Some(2), Some(message)), "{words:?}");
        check_file(image.path(), PATH, CMDLINE);
    };
    check(
        &["enable"],
        "nodewise: how is memory to be cut? --count N, --node-size SIZE or --per-node N says so; only a Raspberry Pi 4 or 5 has a usual number",
    );
    check(
        &["enable", "--count=2", "--node-size=1G"],
        "nodewise: --count and --node-size cannot be used together",
    );
    check(
        &["enable", "--node-size=1000B"],
        "nodewise: --node-size: 1000 B is not a whole number of MiB, in which the kernel counts",
    );
    check(
        &["enable", "--count=2", "--policy=a b"],
        "nodewise: --policy: \"a b\" is not a memory policy: expected default, local, prefer:0, bind:0-3, interleave or interleave:0-3, with static or relative as in interleave=static:0-3",
    );
    check(
        &["enable", "--count=2", "--policy=prefer:9"],
        "nodewise: --policy: node 9 will not exist: numa=fake=2 makes nodes 0-1",
    );
    check(
        &["enable", "--count=2", "--policy=bind"],
        "nodewise: --policy: \"bind\" is not a memory policy: expected nodes, as in bind:0-3",
    );
    check(
        &["enable", "--count=2", "--policy=local=static"],
        "nodewise: --policy: \"local=static\" is not a memory policy: expected local without static or relative",
    );
    check(
        &["enable", "--count=2", "--banklow=1"],
        "nodewise: --banklow: an image has no EEPROM; leave --root out to set this board's",
    );
    check(
        &["enable", "--count=2", "--machine=(1c 1G)"],
        "nodewise: --machine: boot files are changed on this system, or in an image that --root names",
    );
    let ran = run(&["emulation", "undo", "--root=/nonexistent"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(2), "nodewise: cannot open \"/nonexistent\": no such file or directory\n")
    );
    let ran = run(&["emulation", "verify", "--against=/nonexistent.json"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.starts_with("nodewise: --against: /nonexistent.json does not exist"),
        "{}",
        ran.stderr
    );
}
