//! The EEPROM of a Raspberry Pi, played by a script: it keeps its configuration in a file.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::nodewise::{command, missing, output};
use crate::sandbox::{can_contain, install};

/// As the real program: without arguments it prints the configuration, with `--apply FILE` it takes one.
const SCRIPT: &str =
    "#!/bin/sh\ncase $1 in --apply) cat \"$2\" > \"$EEPROM\" ;; *) cat \"$EEPROM\" ;; esac\n";

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
    if !can_contain() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let boot = folder.path().join("boot/firmware");
    fs::create_dir_all(&boot).unwrap();
    fs::write(boot.join("cmdline.txt"), "root=a rootwait\n").unwrap();
    let (eeprom, script) = (folder.path().join("eeprom"), folder.path().join("script"));
    fs::write(&script, SCRIPT).unwrap();
    install(&script, &folder.path().join("rpi-eeprom-config"), 0o755);
    let old = "[all]\nBOOT_UART=1\nSDRAM_BANKLOW=1\n";
    fs::write(&eeprom, old).unwrap();
    if !Path::new("/boot").is_dir() {
        return missing("there is no /boot to put another in the place of");
    }
    let dry = run(folder.path(), &["enable", "--nodes=2", "--banklow=3", "--dry-run"]).ok();
    assert!(dry.contains("-SDRAM_BANKLOW=1\n+SDRAM_BANKLOW=3\n"), "{dry}");
    assert_eq!(fs::read_to_string(&eeprom).unwrap(), old);
    run(folder.path(), &["enable", "--nodes=2", "--banklow=3"]).ok();
    assert_eq!(fs::read_to_string(&eeprom).unwrap(), old.replace("BANKLOW=1", "BANKLOW=3"));
    let again = run(folder.path(), &["enable", "--nodes=2", "--banklow=3"]).ok();
    assert!(again.contains("right already EEPROM (rpi-eeprom-config)"), "{again}");
    run(folder.path(), &["undo"]).ok();
    assert_eq!(fs::read_to_string(&eeprom).unwrap(), old);
    assert_eq!(fs::read_to_string(boot.join("cmdline.txt")).unwrap(), "root=a rootwait\n");
    assert_eq!(fs::read_dir(&boot).unwrap().count(), 1);
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
