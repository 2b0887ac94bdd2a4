//! `nodewise export`: each format put before a program that reads it.

mod diagrams;
mod guests;
mod hwloc;
pub mod kubernetes;
mod metrics;
mod prometheus;
mod schedulers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::nodewise::{Ran, command, corpus, output, run};

/// A machine with something in every kind of place.
const FULL: &str = "2x(4c2t 64G l1d=32K l3=25M/4c) (128G); dist=10,21,24/21,10,28/24,28,10; dev=net:eth0@0; dev=gpu:0@1; arch=x86_64; kernel=6.12.5; access=0>2:250ns,300ns/30G";

/// The output of `nodewise export` for a machine.
#[track_caller]
fn exported(format: &str, machine: &str) -> String {
    run(&["export", format, "--machine", machine]).ok()
}

/// Unpacks a capture; the folder in which its `sys` or `proc` is.
pub(crate) fn unpacked(capture: &Path, folder: &Path) -> PathBuf {
    let status = Command::new("tar").arg("-xf").arg(capture).arg("-C").arg(folder).status();
    assert!(status.is_ok_and(|status| status.success()), "tar cannot unpack {}", capture.display());
    let mut at = folder.to_owned();
    while !at.join("sys").exists() && !at.join("proc").exists() {
        at = fs::read_dir(&at).unwrap().next().expect("a capture holds sys or proc").unwrap().path();
    }
    at
}

/// Machines of several kinds, and every capture.
fn machines() -> Vec<String> {
    let specs = [FULL, "(4c 1G)", "(4c 1G) 7x(1G)", "2x(2x(24c 126G l3=32M/6c)); dist=11,20", "64x(4c 32G)"];
    let captures =
        corpus("captures").into_iter().map(|path| path.to_str().expect("paths are text").to_owned());
    specs.into_iter().map(str::to_owned).chain(captures).collect()
}

/// Writes a text into a file of a new folder.
fn file(text: &str, name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    (folder, path)
}

/// Gives a text to a program on its standard input.
fn fed(program: &mut Command, text: &str) -> Ran {
    let (_folder, path) = file(text, "input");
    output(program.stdin(Stdio::from(fs::File::open(path).unwrap())))
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.xml");
    fs::write(&path, "old").unwrap();
    let to = |path: &Path| output(command(["export", "hwloc", "--machine", FULL, "-o"]).arg(path));
    assert_eq!(to(&path).ok(), "", "what is in the file is not printed");
    assert_eq!(fs::read_to_string(&path).unwrap(), exported("hwloc", FULL));
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["machine.xml"]);
    let ran = to(&folder.path().join("none/machine.xml"));
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
}
