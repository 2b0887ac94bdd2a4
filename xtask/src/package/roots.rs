//! `package-roots`: the packages in clean systems: installed, used by an ordinary user, upgraded, removed, purged, and
//! exchanged for the originals.
//!
//! A system is made by mmdebstrap in a folder, and `root.sh` runs in it by chroot. Each of its steps prints a line, and the first that
//! fails ends it. Systems of several releases are tried side by side. Programs of another platform are emulated
//! (`emulated.rs`), with the steps that are not about the release.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::emulated::Emulation;
use super::{Packaging, around, empty};
use crate::libnuma::build::target_folder;
use crate::platform::Platform;
use crate::program;
use crate::setup::system::distribution;

/// The steps inside.
const SCRIPT: &str = include_str!("root.sh");
/// Debian's releases that the packages are for, from the oldest.
const RELEASES: [&str; 2] = ["bookworm", "trixie"];

/// Tries the packages in a clean root of each release, all at the same time.
pub fn run(packaging: &Packaging, releases: &[String]) -> Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "{NOT_ROOT}");
    super::need(&["mmdebstrap", "util-linux"])?;
    let is_own = Some(packaging.platform) == Platform::own();
    let emulation = if is_own { None } else { Some(Emulation::begin(packaging.platform)?) };
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let emulated = emulation.is_some();
        let threads: Vec<_> =
            releases.iter().map(|release| scope.spawn(move || one(packaging, release, emulated))).collect();
        let results =
            threads.into_iter().map(|thread| thread.join().expect("a thread of a root does not panic"));
        results.collect()
    });
    let failed: Vec<String> = releases
        .iter()
        .zip(results)
        .filter_map(|(release, result)| Some(format!("{release}: {:#}", result.err()?)))
        .collect();
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    Ok(())
}

/// The reason why packages cannot be tried here.
pub fn obstacle() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some(NOT_ROOT);
    }
    possible()
        .is_empty()
        .then_some("programs that are compiled here may need a newer C library than Debian's releases have")
}

/// The releases that a command which is compiled here is for.
pub fn possible() -> Vec<String> {
    releases_after(&distribution().codename)
}

const NOT_ROOT: &str = "a root with other users needs root: run it with sudo";

/// Tries packages around the command that the tests have compiled: quick, and different from those that are handed out
/// in the optimisation of the command alone.
pub fn quick(root: &Path, command: &Path, releases: &[String]) -> Result<()> {
    let (command, out) = (std::path::absolute(command)?, target_folder(root).join("package-roots"));
    let packaging = Packaging::new(root, None, "dev", Some(out.clone()))?;
    around(&packaging, &command)?;
    let result = run(&packaging, releases);
    // Hundreds of MiB that are made again in seconds.
    fs::remove_dir_all(&out).with_context(|| out.display().to_string())?;
    result
}

/// The releases whose C library is not older than that of this one.
fn releases_after(codename: &str) -> Vec<String> {
    RELEASES.into_iter().skip_while(|release| *release != codename).map(str::to_owned).collect()
}

fn one(packaging: &Packaging, release: &str, emulated: bool) -> Result<()> {
    let started = Instant::now();
    let folder = tempfile::Builder::new().prefix("nodewise-root-").tempdir()?;
    let root = folder.path().join(release);
    let platform = packaging.platform.debian();
    let mut command = Command::new("mmdebstrap");
    command.args(["--quiet", "--variant=apt", "--skip=check/qemu", "--architectures", platform, release]);
    shown(command.arg(&root), release)?;
    println!("{release}: a clean root for {platform} ({} s)", started.elapsed().as_secs());
    let debs = root.join("debs");
    empty(&debs)?;
    for file in super::tree::files_of(&packaging.out)? {
        let ours = format!("_{}_{platform}.deb", packaging.version);
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
    inside.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", MOUNT, "sh"]).arg(&root);
    shown(inside.arg(if emulated { "emulated" } else { "native" }), release)?;
    println!("{release}: done ({} s)", started.elapsed().as_secs());
    Ok(())
}

/// Gives the root what a running system has, and enters it.
const MOUNT: &str =
    "mount -t proc proc \"$1/proc\"; mount --rbind /sys \"$1/sys\"; mount --rbind /dev \"$1/dev\"
exec chroot \"$1\" /bin/bash /root.sh \"$2\"";

/// Runs a program and shows what it prints, each line with the release in front.
fn shown(command: &mut Command, release: &str) -> Result<()> {
    let line = program::line(command);
    let (reader, writer) = os_pipe::pipe().context("cannot make a pipe")?;
    command.stdin(std::process::Stdio::null());
    command.stdout(writer.try_clone().context("cannot make a pipe")?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("cannot start: {line}"))?;
    // The pipe ends with its last writer, and the command has two of them.
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    for text in BufReader::new(reader).split(b'\n') {
        println!("{release}: {}", String::from_utf8_lossy(&text?));
    }
    let status = child.wait()?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}

/// A package of the same files with an older number: the one that is upgraded.
fn older(packaging: &Packaging, debs: &Path) -> Result<()> {
    let name = format!("nodewise_{}_{}.deb", packaging.version, packaging.platform.debian());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_tried_in_its_own_release_and_later_ones() {
        assert_eq!(releases_after("bookworm"), RELEASES);
        assert_eq!(releases_after("trixie"), ["trixie"]);
        assert_eq!(releases_after("noble"), [""; 0]);
    }

    #[test]
    fn the_output_of_a_root_ends_with_its_last_program() {
        assert!(shown(Command::new("sh").args(["-c", "echo one; echo two >&2"]), "trixie").is_ok());
        let error = shown(Command::new("sh").args(["-c", "exit 3"]), "trixie").unwrap_err();
        assert_eq!(error.to_string(), "sh -c 'exit 3': exit status: 3");
    }
}
