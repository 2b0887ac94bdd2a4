//! The EEPROM of a Raspberry Pi, played by a script: it keeps its configuration in a file.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::nodewise::{command, missing, output};
use crate::sandbox::{can_contain, install};

/// As the real program: without arguments it prints the configuration, with `--apply FILE` it takes one,
/// unless it is broken.
const SCRIPT: &str = "#!/bin/sh
case $1 in
--apply) echo applied >> \"$EEPROM.calls\"; [ ! -e \"$EEPROM.broken\" ] && cat \"$2\" > \"$EEPROM\" ;;
*) cat \"$EEPROM\" ;;
esac
";
/// The configuration that it prints at first.
const CONFIG: &str = "[all]\nBOOT_UART=1\nSDRAM_BANKLOW=1\n";
/// The command line of the board.
const LINE: &str = "root=a rootwait\n";

/// A folder with a board's command line, its EEPROM and the program; `None` where it cannot stand for `/boot`.
fn board() -> Option<tempfile::TempDir> {
    if !can_contain() {
        return None;
    }
    if !Path::new("/boot").is_dir() {
        missing("there is no /boot to put another in the place of");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::create_dir_all(path.join("boot/firmware")).unwrap();
    fs::write(path.join("boot/firmware/cmdline.txt"), LINE).unwrap();
    fs::write(path.join("script"), SCRIPT).unwrap();
    install(&path.join("script"), &path.join("rpi-eeprom-config"), 0o755);
    fs::write(path.join("eeprom"), CONFIG).unwrap();
    Some(folder)
}

/// Checks that the board is as it was, and that nothing else is in its folder.
#[track_caller]
fn check_untouched(board: &Path) {
    let read = |path: &str| fs::read_to_string(board.join(path)).unwrap();
    assert_eq!((read("eeprom"), read("boot/firmware/cmdline.txt")), (CONFIG.to_owned(), LINE.to_owned()));
    assert_eq!(fs::read_dir(board.join("boot/firmware")).unwrap().count(), 1);
}

/// Runs a verb of `emulation` where `/boot` is a folder of the test's, and the script is in PATH.
fn run(folder: &Path, words: &[&str]) -> crate::nodewise::Ran {
    let mut inner = command(["emulation"]);
    let mut outer = Command::new("bwrap");
    outer.args(["--dev-bind", "/", "/", "--bind"]).arg(folder.join("boot")).arg("/boot");
    outer.arg(inner.get_program()).arg("emulation").args(words).env_clear();
    let path = format!("{}:/usr/bin:/bin", folder.display());
    outer.env("PATH", path).env("EEPROM", folder.join("eeprom"));
    inner.stdin(std::process::Stdio::null());
    output(&mut outer)
}

#[test]
fn the_eeprom_is_set_and_undone_through_its_own_program() {
    let Some(board) = board() else { return };
    let dry = run(board.path(), &["enable", "--nodes=2", "--banklow=3", "--dry-run"]).ok();
    assert!(dry.contains("-SDRAM_BANKLOW=1\n+SDRAM_BANKLOW=3\n"), "{dry}");
    check_untouched(board.path());
    run(board.path(), &["enable", "--nodes=2", "--banklow=3"]).ok();
    let eeprom = fs::read_to_string(board.path().join("eeprom")).unwrap();
    assert_eq!(eeprom, CONFIG.replace("BANKLOW=1", "BANKLOW=3"));
    let again = run(board.path(), &["enable", "--nodes=2", "--banklow=3"]).ok();
    assert!(again.contains("right already EEPROM (rpi-eeprom-config)"), "{again}");
    run(board.path(), &["undo"]).ok();
    check_untouched(board.path());
}

#[test]
fn an_eeprom_that_could_not_be_written_is_not_written_by_undo() {
    let Some(board) = board() else { return };
    fs::write(board.path().join("eeprom.broken"), "").unwrap();
    let ran = run(board.path(), &["enable", "--nodes=2", "--banklow=3"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let expected = "; the boot files are done, nodewise emulation undo takes them back\n";
    assert!(ran.stderr.ends_with(expected), "{}", ran.stderr);
    let calls = board.path().join("eeprom.calls");
    assert_eq!(fs::read_to_string(&calls).unwrap(), "applied\n");
    let undone = run(board.path(), &["undo"]).ok();
    assert!(undone.contains("right already EEPROM (rpi-eeprom-config)"), "{undone}");
    assert_eq!(fs::read_to_string(&calls).unwrap(), "applied\n");
    check_untouched(board.path());
}

#[test]
fn without_the_program_nothing_is_changed() {
    if !can_contain() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("boot/firmware")).unwrap();
    let file = folder.path().join("boot/firmware/cmdline.txt");
    fs::write(&file, "root=a\n").unwrap();
    let ran = run(folder.path(), &["enable", "--nodes=2", "--banklow=3"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            Some(3),
            "nodewise: rpi-eeprom-config is not installed: only a Raspberry Pi 4 or 5 has an EEPROM that it can set\n"
        )
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "root=a\n");
}
