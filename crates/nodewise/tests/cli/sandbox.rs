//! Running nodewise with less than a user has: as `nobody`, in an empty container, behind a filter.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::filter::{self, POLICY_CALLS};
pub use crate::filter::{ENOSYS, EPERM};
use crate::nodewise::{missing, path, without_variables};

/// Whether a program that a test needs is there.
pub fn has(program: &str, package: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        missing(&format!("{program} is missing: cargo xtask lab-setup installs {package}"));
    }
    there
}

/// Only root can become somebody else.
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: this needs root, to become somebody else");
    }
    root && has("setpriv", "util-linux")
}

/// Copies a file that is to be executed. Another process writes it: a test that starts a program at
/// this moment would hand it our writing descriptor, and no one can execute what is being written.
pub fn install(from: &Path, to: &Path, mode: u32) {
    let status = Command::new("install").arg("-m").arg(format!("{mode:o}")).args([from, to]).status();
    assert!(status.unwrap().success(), "{} could not be copied", from.display());
}

/// A copy of the built command in a folder that everybody can read: where it was built, an ordinary
/// user may not be let in.
pub struct Public {
    folder: tempfile::TempDir,
}

impl Public {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        install(Path::new(path()), &folder.path().join("nodewise"), 0o755);
        Self { folder }
    }

    pub fn nodewise(&self) -> PathBuf {
        self.folder.path().join("nodewise")
    }

    /// nodewise as the user `nobody`.
    pub fn as_nobody(&self, arguments: &[&str]) -> Command {
        let mut command = without_variables("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(self.nodewise()).args(arguments).current_dir("/");
        command
    }
}

/// nodewise in namespaces of its own, with everything read-only.
pub fn contained(arguments: &[&str]) -> Command {
    let mut command = without_variables("bwrap");
    command.args(["--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]);
    command.arg(path()).args(arguments);
    command
}

/// Whether this user may make namespaces here.
pub fn can_contain() -> bool {
    if !has("bwrap", "bubblewrap") {
        return false;
    }
    let may = contained(&["--version"]).output().is_ok_and(|output| output.status.success());
    if !may {
        eprintln!("skipped: bwrap cannot make namespaces here");
    }
    may
}

/// The call that shows where pages are.
#[cfg(target_arch = "x86_64")]
const MOVE_PAGES: [u32; 1] = [279];
#[cfg(target_arch = "aarch64")]
const MOVE_PAGES: [u32; 1] = [239];

/// The call that reads policies.
#[cfg(target_arch = "x86_64")]
const GET_MEMPOLICY: [u32; 1] = [239];
#[cfg(target_arch = "aarch64")]
const GET_MEMPOLICY: [u32; 1] = [236];

/// nodewise behind a seccomp filter that answers calls about memory policies with an error.
pub fn filtered(errno: u32, arguments: &[&str]) -> Command {
    behind(&POLICY_CALLS, errno, arguments)
}

/// nodewise where policies can be set, and no one can ask where pages are.
pub fn without_move_pages(errno: u32, arguments: &[&str]) -> Command {
    behind(&MOVE_PAGES, errno, arguments)
}

/// nodewise where policies can be set, and not read.
pub fn without_get_mempolicy(errno: u32, arguments: &[&str]) -> Command {
    behind(&GET_MEMPOLICY, errno, arguments)
}

fn behind(calls: &[u32], errno: u32, arguments: &[&str]) -> Command {
    let folder = tempfile::tempdir().unwrap();
    let filter = folder.path().join("filter");
    fs::write(&filter, filter::program(calls, errno)).unwrap();
    let mut command = without_variables("sh");
    let script = "exec 9<\"$0\"; rm -r \"${0%/*}\"; exec bwrap --dev-bind / / --seccomp 9 \"$@\"";
    command.args(["-c", script]).arg(&filter).arg(path()).args(arguments);
    // The script takes the folder away itself, when it holds the file open.
    let _ = folder.keep();
    command
}
