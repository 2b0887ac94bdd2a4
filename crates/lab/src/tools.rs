//! The programs a guest is built with, and where they are.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{Cache, VIRTME_VERSION};

/// A program that the lab needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    pub name: &'static str,
    /// The package of Debian and Ubuntu that has it.
    pub package: &'static str,
    /// The guest's use of it.
    pub purpose: &'static str,
}

/// The emulator.
const QEMU: Program =
    Program { name: "qemu-system-x86_64", package: "qemu-system-x86", purpose: "emulates the machine" };

/// The emulator for guests of arm64. Beside it they need [`SETSID`] alone.
pub const QEMU_ARM: Program = Program {
    name: "qemu-system-aarch64",
    package: "qemu-system-arm",
    purpose: "emulates machines of arm64",
};

/// The program that starts the emulator, of whichever guests.
pub const SETSID: Program =
    Program { name: "setsid", package: "util-linux", purpose: "makes the guest one group of processes" };

/// Every program of the system that guests of x86-64 need.
pub const PROGRAMS: [Program; 6] = [
    QEMU,
    Program { name: "modprobe", package: "kmod", purpose: "finds the kernel's modules" },
    // Without it a guest lacks /dev/virtio-ports, through which output and exit code come back.
    Program { name: "udevadm", package: "udev", purpose: "names the guest's devices" },
    Program { name: "busybox", package: "busybox-static", purpose: "mounts the guest's first file system" },
    Program { name: "file", package: "file", purpose: "shows which kernel an image holds" },
    SETSID,
];

/// The program that builds the guest's first file system and QEMU's command line.
const VIRTME: &str = "virtme-ng";

/// Where administrators' programs are; not in the `PATH` of every user.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Why guests cannot be built here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolsError {
    #[error("the lab lacks {}: install what is missing with {}", names.join(", "), installing(names))]
    Missing { names: Vec<String> },
    /// Guests run the host's programs, so host and guest are of one architecture.
    #[error("the lab builds x86-64 machines only: this one is {architecture}")]
    Architecture {
        /// The host's, as `uname -m` names it.
        architecture: &'static str,
    },
}

/// The programs, found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    pub qemu: PathBuf,
    /// `virtme-run` of virtme-ng.
    pub virtme: PathBuf,
    /// `PATH` for what runs on the host.
    pub path: String,
}

impl Tools {
    /// Looks for the programs: virtme-ng in the cache first, the others where the system keeps them.
    ///
    /// # Errors
    /// Some are missing (all of them are named), or this architecture is not supported.
    pub fn find(cache: &Cache) -> Result<Self, ToolsError> {
        if std::env::consts::ARCH != "x86_64" {
            return Err(ToolsError::Architecture { architecture: std::env::consts::ARCH });
        }
        let path = search_path();
        let mut names = missing(&PROGRAMS);
        let fetched = cache.virtme().join("bin/virtme-run");
        let fetched = Some(fetched).filter(|path| path.is_file() && cache.virtme_mark().is_file());
        let virtme = fetched.or_else(|| find_program("virtme-run"));
        if virtme.is_none() {
            names.push(VIRTME.to_owned());
        }
        match (find_program(QEMU.name), virtme) {
            (Some(qemu), Some(virtme)) if names.is_empty() => Ok(Self { qemu, virtme, path }),
            _ => Err(ToolsError::Missing { names }),
        }
    }
}

/// The commands that install missing programs, for people who have the binary and no clone.
fn installing(names: &[String]) -> String {
    let packages = PROGRAMS.iter().filter(|program| names.iter().any(|name| name == program.name));
    let packages: Vec<&str> = packages.map(|program| program.package).collect();
    let apt = (!packages.is_empty()).then(|| format!("`apt install {}` as root", packages.join(" ")));
    let pip =
        names.iter().any(|name| name == VIRTME).then(|| format!("`pip install {VIRTME}=={VIRTME_VERSION}`"));
    apt.into_iter().chain(pip).collect::<Vec<_>>().join(" and ")
}

/// The names of the missing programs.
pub(crate) fn missing(programs: &[Program]) -> Vec<String> {
    let absent = programs.iter().filter(|program| find_program(program.name).is_none());
    absent.map(|program| program.name.to_owned()).collect()
}

/// `PATH` and the folders of administrators' programs.
pub(crate) fn search_path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    own.split(':').filter(|folder| !folder.is_empty()).chain(SYSTEM_FOLDERS).collect::<Vec<_>>().join(":")
}

/// Where a program is: in `PATH` or in the folders of administrators' programs.
pub fn find_program(name: &str) -> Option<PathBuf> {
    search_path().split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

/// The version of a QEMU; `None` when it does not say.
pub fn qemu_version(qemu: &Path) -> Option<(u32, u32)> {
    let output = Command::new(qemu).arg("--version").output().ok()?;
    parse_version(&String::from_utf8_lossy(&output.stdout))
}

/// Reads the first line of `qemu-system-x86_64 --version`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let rest = text.strip_prefix("QEMU emulator version ")?;
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn versions_are_read_from_what_qemu_prints() {
        for (text, expected) in [
            ("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2+deb13u1~bpo12+1)\nCopyright", Some((10, 0))),
            ("QEMU emulator version 7.2.19 (Debian 1:7.2+dfsg-7+deb12u14)", Some((7, 2))),
            ("QEMU emulator version 11.1", Some((11, 1))),
            ("QEMU emulator version ", None),
            ("QEMU emulator version 7", None),
            ("QEMU emulator version 99999999999.1", None),
            ("", None),
        ] {
            assert_eq!(parse_version(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_missing_is_named_with_the_commands_that_install_it() {
        let check = |names: &[&str], expected: &str| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(
                ToolsError::Missing { names }.to_string(),
                format!("{expected} `pip install {VIRTME}=={VIRTME_VERSION}`")
            );
        };
        check(
            &["qemu-system-x86_64", "udevadm", "virtme-ng"],
            "the lab lacks qemu-system-x86_64, udevadm, virtme-ng: install what is missing with `apt install \
             qemu-system-x86 udev` as root and",
        );
        check(&["virtme-ng"], "the lab lacks virtme-ng: install what is missing with");
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_a_version_or_not_without_a_panic(text in any::<String>()) {
            parse_version(&format!("QEMU emulator version {text}"));
        }
    }
}
