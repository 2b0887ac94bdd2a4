//! `package-roots`: the packages in clean systems: installed, used by an ordinary user, upgraded, removed, purged, and
//! exchanged for the originals.
//!
//! A system is made by mmdebstrap in a folder, and `root.sh` runs in it by chroot. Each of its steps prints a line, and the first that
//! fails ends it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Packaging, empty};
use crate::program;

/// The steps inside.
const SCRIPT: &str = include_str!("root.sh");

/// Tries the packages in a clean root of each release.
pub fn run(packaging: &Packaging, releases: &[String]) -> Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "a root with other users needs root: run it with sudo");
    super::need(&["mmdebstrap", "util-linux"])?;
    for release in releases {
        one(packaging, release).with_context(|| format!("in a clean root of {release}"))?;
    }
    Ok(())
}

fn one(packaging: &Packaging, release: &str) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("nodewise-root-").tempdir()?;
    let root = folder.path().join(release);
    println!("\n== a clean root of {release}");
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--variant=apt", release]).arg(&root);
    program::show(&mut command)?;
    let debs = root.join("debs");
    empty(&debs)?;
    for file in super::tree::files_of(&packaging.out)? {
        let ours = format!("_{}_{}.deb", packaging.version, packaging.arch.debian());
        if file.to_string_lossy().ends_with(&ours) {
            copy_into(&file, &debs)?;
        }
    }
    older(packaging, &debs)?;
    fs::write(root.join("root.sh"), SCRIPT)?;
    // Names are resolved, and packages fetched, as they are outside.
    let _ = fs::copy("/etc/resolv.conf", root.join("etc/resolv.conf"));
    let _ = fs::copy("/etc/hosts", root.join("etc/hosts"));
    // Programs must not be started while they are installed.
    let policy = root.join("usr/sbin/policy-rc.d");
    fs::write(&policy, "#!/bin/sh\nexit 101\n")?;
    program::quiet(Command::new("chmod").arg("755").arg(&policy))?;
    // A mount namespace of its own: nothing is left mounted, whatever happens.
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "--pid", "--fork", "sh", "-ec", MOUNT, "sh"]).arg(&root);
    program::show(&mut inside)
}

/// Gives the root what a running system has, and enters it.
const MOUNT: &str =
    "mount -t proc proc \"$1/proc\"; mount --rbind /sys \"$1/sys\"; mount --rbind /dev \"$1/dev\"
exec chroot \"$1\" /bin/bash /root.sh";

/// A package of the same files with an older number: the one that is upgraded.
fn older(packaging: &Packaging, debs: &Path) -> Result<()> {
    let name = format!("nodewise_{}_{}.deb", packaging.version, packaging.arch.debian());
    let work = tempfile::tempdir()?;
    let tree = work.path().join("tree");
    program::quiet(Command::new("dpkg-deb").arg("--raw-extract").arg(debs.join(&name)).arg(&tree))?;
    let control = tree.join("DEBIAN/control");
    let text = fs::read_to_string(&control)?;
    fs::write(&control, text.replace(&format!("Version: {}", packaging.version), "Version: 0.0.1"))?;
    // A file that the new one has no longer.
    fs::write(tree.join("usr/share/nodewise/only-in-0.0.1"), "")?;
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "-Znone", "--build"]).arg(&tree).arg(debs.join("older.deb"));
    program::quiet(&mut build)
}

fn copy_into(file: &Path, folder: &Path) -> Result<()> {
    let to = folder.join(file.file_name().unwrap_or_default());
    fs::copy(file, &to).with_context(|| to.display().to_string())?;
    Ok(())
}
