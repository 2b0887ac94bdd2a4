//! Packages of the system: QEMU and the programs around it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use nodewise_lab::Cache;
use nodewise_lab::tools::{PROGRAMS, QEMU_ARM, find_program, qemu_version};
use rustix::process::geteuid;

use super::apt::{self, PrivateApt};
use crate::program;

/// Packages beside those that guests are built with.
const OTHERS: [(&str, &str); 32] = [
    ("acpica-tools", "tests compare ACPI tables with iasl"),
    ("binutils", "link libnuma"),
    ("ca-certificates", "fetch packages through https"),
    ("device-tree-compiler", "tests make device trees with dtc"),
    ("debian-archive-keyring", "check Debian's kernels, on Ubuntu too"),
    ("xz-utils", "unpack kernel modules"),
    ("bubblewrap", "tests put captures in the place of /sys"),
    ("fonts-dejavu-core", "tests draw texts of pictures"),
    ("g++", "compile libnuma's tests"),
    ("gcc", "link libnuma"),
    ("gcc-aarch64-linux-gnu", "link libnuma for arm64"),
    ("graphviz", "tests check diagrams with its own parser"),
    ("hwloc-nox", "tests check hwloc's XML with its own parsers"),
    ("libc6-dev-arm64-cross", "link libnuma for arm64"),
    ("libnuma-dev", "tests compare with it"),
    ("libvirt-clients", "tests check domains of libvirt with its own parser"),
    ("libxml2-utils", "tests check domains of libvirt against its grammar"),
    ("make", "tests check an example project"),
    ("numactl", "tests compare with it"),
    ("openmpi-bin", "tests check lines of mpirun with its own parser"),
    ("prometheus", "tests have it scrape metrics, and its linter read them"),
    (QEMU_ARM.package, QEMU_ARM.purpose),
    ("qemu-user", "run libnuma's tests for arm64"),
    ("slurm-client", "tests check options of srun with its own parser"),
    ("slurmctld", "tests survey the nodes of a cluster"),
    ("slurmd", "tests survey the nodes of a cluster"),
    ("strace", "tests count system calls"),
    ("tmux", "tests look at the screens of top"),
    ("valgrind", "tests look for races and count instructions"),
    ("systemd", "tests check drop-ins with its own parser"),
    ("udev", "guests follow its rules"),
    ("util-linux", "the lab stops its guests with setsid"),
];
/// The emulator's package for guests of this architecture, and those for all guests.
const QEMU: &str = "qemu-system-x86";
const EMULATORS: [&str; 2] = [QEMU, QEMU_ARM.package];
/// The release whose own QEMU (7.2) cannot boot Linux 6.12 with a thread per CPU; its backports
/// have a newer one.
const OLD_QEMU: &str = "bookworm";

/// Which distribution this is.
#[derive(Debug, PartialEq, Eq)]
pub struct Distribution {
    /// `ID` of os-release: `debian`, `ubuntu`.
    pub id: String,
    /// `VERSION_CODENAME` of os-release: `bookworm`.
    pub codename: String,
}

/// Reads os-release(5).
fn parse_os_release(text: &str) -> Distribution {
    let field = |name: &str| {
        text.lines()
            .filter_map(|line| line.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned())
            .unwrap_or_default()
    };
    Distribution { id: field("ID"), codename: field("VERSION_CODENAME") }
}

/// Which distribution runs here.
pub fn distribution() -> Distribution {
    parse_os_release(&fs::read_to_string("/etc/os-release").unwrap_or_default())
}

/// Installs missing packages. Returns command lines that someone with root must run, when this
/// process is not root.
pub fn install(cache: &Cache) -> Result<Vec<String>> {
    let wanted: BTreeSet<&str> =
        PROGRAMS.iter().map(|program| program.package).chain(OTHERS.iter().map(|other| other.0)).collect();
    if find_program("dpkg-query").is_none() || find_program("apt-get").is_none() {
        bail!("lab-setup knows apt only; install by hand what has these names on Debian: {}", list(&wanted));
    }
    let installed = installed(&wanted)?;
    let missing: BTreeSet<&str> = wanted.difference(&installed).copied().collect();
    if missing.is_empty() {
        println!("packages: all {} are installed{}", wanted.len(), qemu_note());
        return Ok(Vec::new());
    }
    let commands = commands(cache, &missing, &distribution())?;
    if !geteuid().is_root() {
        println!("packages: missing are {}", list(&missing));
        return Ok(commands.iter().map(program::line).collect());
    }
    println!("packages: installing {}", list(&missing));
    for mut command in commands {
        command.env("DEBIAN_FRONTEND", "noninteractive");
        let update = command.get_args().any(|argument| argument == "update");
        match program::quiet(&mut command) {
            // A foreign source that cannot be reached is not a reason to stop; if it had something that
            // is needed, the installation says so.
            Err(error) if update => println!("packages: {error:#}"),
            result => result?,
        }
    }
    println!("packages: all {} are installed now{}", wanted.len(), qemu_note());
    Ok(Vec::new())
}

fn list(packages: &BTreeSet<&str>) -> String {
    packages.iter().copied().collect::<Vec<_>>().join(" ")
}

/// Those of the packages that are installed.
fn installed<'a>(packages: &BTreeSet<&'a str>) -> Result<BTreeSet<&'a str>> {
    let output = Command::new("dpkg-query")
        .args(["-W", "-f", "${db:Status-Status} ${Package}\\n"])
        .args(packages)
        .output()
        .context("cannot start dpkg-query")?;
    // It fails when one of them is unknown, and still reports the others.
    let text = String::from_utf8_lossy(&output.stdout);
    let names: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("installed ")).collect();
    Ok(packages.iter().copied().filter(|package| names.contains(package)).collect())
}

/// The commands that install packages: by the system's own sources, but QEMU by private ones where
/// the system's is too old.
fn commands(cache: &Cache, missing: &BTreeSet<&str>, distribution: &Distribution) -> Result<Vec<Command>> {
    let mut missing = missing.clone();
    let is_old = distribution.id == "debian" && distribution.codename == OLD_QEMU;
    let backports: Vec<&str> =
        EMULATORS.into_iter().filter(|emulator| is_old && missing.remove(emulator)).collect();
    let mut commands = Vec::new();
    if !missing.is_empty() {
        commands.push(apt_get(&["update"]));
        let mut install = apt_get(&program::INSTALL);
        install.args(missing);
        commands.push(install);
    }
    if !backports.is_empty() {
        let apt = PrivateApt::backports(cache, &distribution.codename)?;
        commands.push(apt.command("apt-get", &["-q", "update"]));
        let mut install = apt.command("apt-get", &program::INSTALL);
        install.args(["-t", &apt::backports_suite(&distribution.codename)]).args(backports);
        commands.push(install);
    }
    Ok(commands)
}

fn apt_get(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(arguments);
    command
}

/// Returns a note on the QEMU that is there.
fn qemu_note() -> String {
    let version = PROGRAMS
        .iter()
        .find(|program| program.package == QEMU)
        .and_then(|program| find_program(program.name))
        .and_then(|path: std::path::PathBuf| qemu_version(Path::new(&path)));
    match version {
        Some((major, minor)) if major < 8 => {
            format!(" (QEMU {major}.{minor} is old: guests run their CPUs on one thread only)")
        }
        Some((major, minor)) => format!(" (QEMU {major}.{minor})"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_read_from_os_release() {
        for (text, id, codename) in [
            (
                "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_CODENAME=bookworm\nID=debian\n",
                "debian",
                "bookworm",
            ),
            ("VERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\n", "ubuntu", "noble"),
            ("ID=\"fedora\"\n", "fedora", ""),
            ("", "", ""),
        ] {
            let expected = Distribution { id: id.to_owned(), codename: codename.to_owned() };
            assert_eq!(parse_os_release(text), expected);
        }
    }

    fn lines(missing: &[&str], codename: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let distribution = Distribution { id: "debian".to_owned(), codename: codename.to_owned() };
        let commands = commands(&cache, &missing.iter().copied().collect(), &distribution).unwrap();
        let path = folder.path().to_str().unwrap();
        commands.iter().map(|command| program::line(command).replace(path, "CACHE")).collect()
    }

    #[test]
    fn packages_come_from_the_systems_sources() {
        assert_eq!(
            lines(&["strace", QEMU], "trixie"),
            ["apt-get update", "apt-get install -q -y --no-install-recommends qemu-system-x86 strace"]
        );
    }

    #[test]
    fn an_old_debian_gets_qemu_from_its_backports_and_keeps_its_sources() {
        let lines = lines(&EMULATORS, "bookworm");
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].ends_with(" -q update"), "{}", lines[0]);
        let end =
            " install -q -y --no-install-recommends -t bookworm-backports qemu-system-x86 qemu-system-arm";
        assert!(lines[1].ends_with(end), "{}", lines[1]);
        for line in lines {
            assert!(
                line.contains("-o Dir::Etc::sourcelist=CACHE/apt/bookworm-backports/sources.list"),
                "{line}"
            );
            assert!(line.contains("-o Dir::State::Lists=CACHE/apt/bookworm-backports/lists"), "{line}");
        }
    }
}
