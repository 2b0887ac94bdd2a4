//! The programs a guest is built with, and where they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nodewise_machine::printable::quote;

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

/// The shell of the guest's first file system, where nothing else is.
const BUSYBOX: Program =
    Program { name: "busybox", package: "busybox-static", purpose: "mounts the guest's file systems" };

/// Every program of the system that guests of x86-64 need.
pub const PROGRAMS: [Program; 4] = [
    QEMU,
    Program { name: "modprobe", package: "kmod", purpose: "loads modules in the guest" },
    BUSYBOX,
    SETSID,
];

/// Where administrators' programs are; not in the `PATH` of every user.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Why guests cannot be built here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolsError {
    #[error("the lab lacks {}: install what is missing with {}", names.join(", "), installing(names))]
    Missing { names: Vec<String> },
    /// Nothing is beside it where it starts.
    #[error("{} needs libraries, which a guest does not have when it starts: `apt install {}` as root", quote(&path.to_string_lossy()), BUSYBOX.package)]
    Busybox { path: PathBuf },
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
    /// A static one.
    pub busybox: PathBuf,
    /// `PATH` for what runs on the host.
    pub path: String,
}

impl Tools {
    /// Looks for the programs where the system keeps them.
    ///
    /// # Errors
    /// Some are missing (all of them are named), one does not fit, or this architecture is not supported.
    pub fn find() -> Result<Self, ToolsError> {
        if std::env::consts::ARCH != "x86_64" {
            return Err(ToolsError::Architecture { architecture: std::env::consts::ARCH });
        }
        let names = missing(&PROGRAMS);
        let (qemu, busybox) = match (find_program(QEMU.name), find_program(BUSYBOX.name)) {
            (Some(qemu), Some(busybox)) if names.is_empty() => (qemu, busybox),
            _ => return Err(ToolsError::Missing { names }),
        };
        if fs::read(&busybox).is_ok_and(|program| needs_libraries(&program)) {
            return Err(ToolsError::Busybox { path: busybox });
        }
        Ok(Self { qemu, busybox, path: search_path() })
    }
}

/// Whether a program is started by a loader of libraries.
///
/// # Source
/// elf(5): of a file of 64 bits, the program headers at `e_phoff`, one of the type `PT_INTERP`.
fn needs_libraries(program: &[u8]) -> bool {
    const PT_INTERP: [u8; 4] = 3u32.to_ne_bytes();
    let number = |at: usize, length: usize| {
        let bytes = program.get(at..at.checked_add(length)?)?;
        Some(bytes.iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    let (Some(start), Some(size), Some(count)) = (number(0x20, 8), number(0x36, 2), number(0x38, 2)) else {
        return false;
    };
    let mut headers = (0..count).filter_map(|header| start.checked_add(header * size));
    program.starts_with(b"\x7fELF")
        && headers.any(|at| program.get(at..).is_some_and(|header| header.starts_with(&PT_INTERP)))
}

/// The command that installs missing programs, for people who have the binary and no clone.
fn installing(names: &[String]) -> String {
    let packages = PROGRAMS.iter().filter(|program| names.iter().any(|name| name == program.name));
    let packages: Vec<&str> = packages.map(|program| program.package).collect();
    format!("`apt install {}` as root", packages.join(" "))
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
    fn what_is_missing_is_named_with_the_command_that_installs_it() {
        let names = ["qemu-system-x86_64", "busybox"].map(str::to_owned).to_vec();
        assert_eq!(
            ToolsError::Missing { names }.to_string(),
            "the lab lacks qemu-system-x86_64, busybox: install what is missing with `apt install qemu-system-x86 \
             busybox-static` as root"
        );
    }

    #[test]
    fn a_program_that_needs_libraries_is_told_from_a_static_one() {
        assert!(needs_libraries(&fs::read("/bin/sh").unwrap()));
        // A header of 64 bytes, no program header of that type, and one behind the end.
        let mut program = b"\x7fELF".to_vec();
        program.resize(64, 0);
        assert!(!needs_libraries(&program));
        program[0x20..0x28].fill(0xff);
        program[0x36..0x3a].fill(0xff);
        assert!(!needs_libraries(&program));
        assert!(!needs_libraries(b"#!/bin/sh\n"));
    }

    proptest! {
        #[test]
        fn any_program_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            needs_libraries(&[b"\x7fELF".as_slice(), &bytes].concat());
        }

        #[test]
        fn any_text_is_read_as_a_version_or_not_without_a_panic(text in any::<String>()) {
            parse_version(&format!("QEMU emulator version {text}"));
        }
    }
}
