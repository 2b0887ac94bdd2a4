//! The units of systemd that come with nodewise.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::nodewise::{missing, run};

/// The folder of the units.
const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd");

/// All units in a folder of the test's own, with this program in place of the installed one: systemd asks whether it can
/// be executed.
fn units(folder: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(SHIPPED).unwrap().map(|entry| entry.unwrap().path());
    let mut units: Vec<PathBuf> = names
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let unit = folder.join(path.file_name().unwrap());
            fs::write(&unit, text.replace("/usr/bin/nodewise", env!("CARGO_BIN_EXE_nodewise"))).unwrap();
            unit
        })
        .collect();
    units.sort();
    assert!(units.len() >= 3, "{units:?}");
    units
}

/// The text of a unit as it comes.
fn shipped(name: &str) -> String {
    fs::read_to_string(Path::new(SHIPPED).join(name)).unwrap()
}

#[test]
fn systemd_accepts_every_unit() {
    let folder = tempfile::tempdir().unwrap();
    let units = units(folder.path());
    let verify = |units: &[PathBuf]| {
        let mut analyze = Command::new("systemd-analyze");
        analyze.args(["verify", "--man=no"]).args(units).output()
    };
    let verified = match verify(&units) {
        Ok(verified) => verified,
        Err(error) => return missing(&format!("systemd-analyze: {error}")),
    };
    // A wrong line changes no exit code: it is named with its file.
    let own = folder.path().display().to_string();
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(verified.status.success() && !said.contains("nodewise-") && !said.contains(&own), "{said}");
    let wrong = folder.path().join("nodewise-wrong.service");
    fs::write(&wrong, "[Service]\nExecStart=/bin/true\nProtectSystems=strict\n").unwrap();
    let said = String::from_utf8_lossy(&verify(&[wrong]).unwrap().stderr).into_owned();
    assert!(said.contains("ProtectSystems"), "a check that finds nothing is none: {said}");
}

#[test]
fn systemd_finds_every_service_hardened() {
    let folder = tempfile::tempdir().unwrap();
    let services =
        units(folder.path()).into_iter().filter(|unit| unit.extension() == Some("service".as_ref()));
    for service in services {
        let mut analyze = Command::new("systemd-analyze");
        analyze.args(["security", "--offline=true", "--threshold=20", "--no-pager"]).arg(&service);
        let rated = match analyze.output() {
            Ok(rated) => rated,
            Err(error) => return missing(&format!("systemd-analyze: {error}")),
        };
        let said = String::from_utf8_lossy(&rated.stderr);
        if said.contains("unrecognized option") {
            return missing("this systemd-analyze rates no unit without a manager");
        }
        assert!(rated.status.success(), "{}{said}", String::from_utf8_lossy(&rated.stdout));
    }
}

#[test]
fn the_service_of_balance_has_two_rights() {
    let text = shipped("nodewise-balance.service");
    assert!(text.contains("ExecStart=/usr/bin/nodewise balance --apply\n"), "{text}");
    assert!(text.contains("\nCapabilityBoundingSet=CAP_SYS_NICE CAP_SYS_PTRACE\n"), "{text}");
    assert!(text.contains("\nNoNewPrivileges=yes\n") && text.contains("\nProtectSystem=strict\n"), "{text}");
    let help = run(&["balance", "--help"]).ok();
    assert!(help.contains("--apply"), "{help}");
}

#[test]
fn the_service_of_metrics_writes_the_file_that_it_may_write() {
    let text = shipped("nodewise-metrics.service");
    let value = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(&format!("{key}=")))
            .unwrap_or_else(|| panic!("{key}: {text}"))
    };
    let folder = value("ReadWritePaths");
    assert_eq!(value("ConditionPathIsDirectory"), folder);
    let command = value("ExecStart").strip_prefix("/usr/bin/nodewise ").unwrap();
    let file = command.strip_prefix(&format!("export metrics -o {folder}/")).unwrap();
    assert!(file.ends_with(".prom"), "the collector reads no other: {file}");
    let here = tempfile::tempdir().unwrap();
    let written = here.path().join(file);
    run(&["export", "metrics", "-o", written.to_str().unwrap()]).ok();
    assert!(fs::read_to_string(written).unwrap().starts_with("# HELP nodewise_"));
    let entries = fs::read_dir(here.path()).unwrap().count();
    assert_eq!(entries, 1, "nothing else is left in the folder");
}
