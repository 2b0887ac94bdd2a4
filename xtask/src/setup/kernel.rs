//! Kernels of Debian's, unpacked for guests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use nodewise_lab::arm64::TOOLS;
use nodewise_lab::kernel::{compare_releases, fetched, is_of_version};
use nodewise_lab::{Arch, Cache};

use super::apt::PrivateApt;
use super::modules;
use crate::program;

/// Where kernels are looked for, one suite after the other: the first that has a version is taken.
const SUITES: [&str; 3] = ["trixie", "trixie-backports", "bookworm"];
/// Bytes that unpacking needs at most: the package, its files, and all modules decompressed.
const SPACE: u64 = 1 << 30;

/// Fetches the newest kernel of a version and architecture unless one is there, with the modules that guests need. One that
/// lacks some is kept where it cannot be fetched again.
pub fn install(cache: &Cache, version: &str, arch: Arch) -> Result<()> {
    let there = fetched(&cache.kernels(), arch);
    let Some(release) = there.iter().rfind(|release| is_of_version(release.text(), version)) else {
        return fetch(cache, version, arch);
    };
    let tree = cache.kernels().join(release.text());
    let has_tools = arch == Arch::X86 || tree.join(TOOLS).is_file();
    if has_tools && modules::are_current(&tree, release.text()) {
        println!("kernel {version}: {release} is there");
        return Ok(());
    }
    println!("kernel {version}: {release} is there without all that guests need now");
    if let Err(error) = fetch(cache, version, arch) {
        println!("kernel {version}: {release} stays as it is: {error:#}");
    }
    Ok(())
}

fn fetch(cache: &Cache, version: &str, arch: Arch) -> Result<()> {
    let kernels = cache.kernels();
    fs::create_dir_all(&kernels).with_context(|| format!("cannot make {}", kernels.display()))?;
    check_space(&kernels)?;
    let (apt, release) = find(cache, version, arch)?;
    println!("kernel {version}: fetching {release}");
    // Beside its place and of another name until it is complete; gone when this fails.
    let work = tempfile::Builder::new().prefix(".unpacking-").tempdir_in(&kernels)?;
    let package = download(&apt, &format!("linux-image-{release}"), work.path())?;
    let tree = work.path().join("tree");
    program::quiet(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&tree))?;
    arrange(&tree, &release)?;
    if arch == Arch::Arm {
        add_tools(cache, work.path(), &tree)?;
    }
    let place = kernels.join(&release);
    if place.exists() {
        fs::rename(&place, work.path().join("before"))
            .with_context(|| format!("cannot replace {release}"))?;
    }
    fs::rename(&tree, &place).with_context(|| format!("cannot move {release} to its place"))?;
    println!("kernel {version}: {release} is there now");
    Ok(())
}

fn check_space(folder: &Path) -> Result<()> {
    let free = rustix::fs::statvfs(folder)
        .map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize))
        .with_context(|| format!("cannot read the free space of {}", folder.display()))?;
    if free < SPACE {
        bail!(
            "{} has {} MiB free: unpacking a kernel takes up to {} MiB",
            folder.display(),
            free >> 20,
            SPACE >> 20
        );
    }
    Ok(())
}

/// The newest release of a version and the suite that has it.
fn find(cache: &Cache, version: &str, arch: Arch) -> Result<(PrivateApt, String)> {
    let mut known = Vec::new();
    for suite in SUITES {
        let apt = PrivateApt::suite(cache, suite, arch)?;
        println!("kernel {version}: reading the package list of Debian {suite}");
        program::quiet(&mut apt.command("apt-get", &["-q", "update"]))?;
        let names = program::read(&mut apt.command("apt-cache", &["pkgnames", "linux-image-"]))?;
        if let Some(release) = newest(&names, version, arch) {
            return Ok((apt, release));
        }
        known.extend(releases(&names, arch).map(str::to_owned));
    }
    known.sort_by(|a, b| compare_releases(a, b));
    bail!("Debian has no kernel {version} in {}; it has {}", SUITES.join(", "), known.join(", "));
}

/// The releases of ordinary kernels among names of packages: `linux-image-6.12.107+deb13-amd64`,
/// but not its variants (`-cloud-`, `-rt-`, `-unsigned`, `-dbg`) nor metapackages.
fn releases(names: &str, arch: Arch) -> impl Iterator<Item = &str> {
    names.lines().filter_map(|name| name.trim().strip_prefix("linux-image-")).filter(move |release| {
        let Some((rest, _)) = release.rsplit_once('-').filter(|_| arch.has_kernel(release)) else {
            return false;
        };
        // 6.1.0-44 and 6.12.107+deb13, but not 6.12 (a metapackage) and not 6.12.107+deb13-cloud.
        let numbers = rest.split(['.', '-', '+']).collect::<Vec<_>>();
        let variant =
            |word: &&str| !word.starts_with(|c: char| c.is_ascii_digit()) && !word.starts_with("deb");
        numbers.len() > 2 && !numbers.iter().any(variant)
    })
}

fn newest(names: &str, version: &str, arch: Arch) -> Option<String> {
    releases(names, arch)
        .filter(|release| is_of_version(release, version))
        .max_by(|a, b| compare_releases(a, b))
        .map(str::to_owned)
}

/// Downloads a package; apt checks its hash.
fn download(apt: &PrivateApt, name: &str, folder: &Path) -> Result<PathBuf> {
    program::quiet(apt.command("apt-get", &["-q", "download", name]).current_dir(folder))?;
    let packages = fs::read_dir(folder)?.filter_map(Result::ok).map(|entry| entry.path());
    let is_it = |path: &Path| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.strip_prefix(name).is_some_and(|rest| rest.starts_with('_') && rest.ends_with(".deb"))
    };
    packages
        .filter(|path| is_it(path))
        .last()
        .with_context(|| format!("apt-get download {name} left no package"))
}

/// Puts a static busybox beside a kernel for arm64, whose guests see nothing of the host.
fn add_tools(cache: &Cache, work: &Path, tree: &Path) -> Result<()> {
    let apt = PrivateApt::suite(cache, SUITES[0], Arch::Arm)?;
    program::quiet(&mut apt.command("apt-get", &["-q", "update"]))?;
    let package = download(&apt, "busybox-static", work)?;
    let unpacked = work.join("tools");
    program::quiet(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&unpacked))?;
    let places = ["usr/bin/busybox", "bin/busybox"].map(|place| unpacked.join(place));
    let busybox = places.iter().find(|place| place.is_file()).context("busybox-static has no busybox")?;
    let place = tree.join(TOOLS);
    fs::create_dir_all(place.parent().unwrap_or(tree))?;
    fs::copy(busybox, &place).with_context(|| format!("cannot make {}", place.display()))?;
    Ok(())
}

/// Makes an unpacked package what guests need: `boot/vmlinuz-R`, and `lib/modules/R` with the modules that a guest can need
/// and no others.
fn arrange(tree: &Path, release: &str) -> Result<()> {
    let unused = tree.join("usr/share");
    if unused.is_dir() {
        fs::remove_dir_all(&unused)?;
    }
    let symbols = tree.join(format!("boot/System.map-{release}"));
    if symbols.exists() {
        fs::remove_file(&symbols)?;
    }
    let image = tree.join(format!("boot/vmlinuz-{release}"));
    if !image.is_file() {
        bail!("the package of {release} has no boot/vmlinuz-{release}");
    }
    // Since Debian 13 modules are packaged under /usr; the lab looks in lib above boot.
    if !tree.join("lib").exists() {
        symlink("usr/lib", tree.join("lib")).context("cannot link lib")?;
    }
    modules::prepare(tree, release)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str = "linux-image-6.12.107+deb13-amd64\nlinux-image-6.12.107+deb13-cloud-amd64\n\
        linux-image-6.12.107+deb13-amd64-unsigned\nlinux-image-6.12.9+deb13-amd64\n\
        linux-image-6.12.107+deb13-rt-amd64\nlinux-image-6.12.107+deb13-amd64-dbg\nlinux-image-amd64\n\
        linux-image-6.12-amd64\nlinux-image-6.1.0-44-amd64\nlinux-image-6.1.0-9-amd64\n\
        linux-image-6.1.0-44-rt-amd64\nlinux-image-6.12.107+deb13-arm64\n\
        linux-image-6.12.108+deb13-arm64-16k\nlinux-image-rt-amd64\n";

    #[test]
    fn the_newest_ordinary_kernel_of_a_version_is_taken() {
        for (version, arch, expected) in [
            ("6.12", Arch::X86, Some("6.12.107+deb13-amd64")),
            ("6.12.9", Arch::X86, Some("6.12.9+deb13-amd64")),
            ("6.1", Arch::X86, Some("6.1.0-44-amd64")),
            ("6.12", Arch::Arm, Some("6.12.107+deb13-arm64")),
            ("6.18", Arch::X86, None),
            ("6", Arch::X86, Some("6.12.107+deb13-amd64")),
        ] {
            assert_eq!(newest(NAMES, version, arch).as_deref(), expected, "{version}");
        }
    }

    #[test]
    fn a_package_without_a_kernel_is_refused() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("usr/share/doc")).unwrap();
        let error = arrange(tree.path(), "6.12.1-amd64").unwrap_err();
        assert_eq!(error.to_string(), "the package of 6.12.1-amd64 has no boot/vmlinuz-6.12.1-amd64");
        assert!(!tree.path().join("usr/share").exists());
    }

    #[test]
    fn of_a_kernel_for_arm64_the_image_is_kept_and_modules_are_asked_for() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("boot")).unwrap();
        for name in ["boot/vmlinuz-6.12.1-arm64", "boot/System.map-6.12.1-arm64"] {
            fs::write(tree.path().join(name), "").unwrap();
        }
        let error = arrange(tree.path(), "6.12.1-arm64").unwrap_err();
        assert_eq!(error.to_string(), "the package of 6.12.1-arm64 has no modules");
        assert!(tree.path().join("boot/vmlinuz-6.12.1-arm64").exists());
        assert!(!tree.path().join("boot/System.map-6.12.1-arm64").exists());
    }
}
