//! Platforms that programs are built for. They are more than those whose guests the lab boots.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use nodewise_lab::tools::find_program;

/// A platform: the architecture of Linux with the GNU C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    Amd64,
    Arm64,
    Riscv64,
    Ppc64el,
}

impl Platform {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Amd64, Self::Arm64, Self::Riscv64, Self::Ppc64el];

    /// The platform of this program; `None` on one that nothing is built for.
    pub const fn own() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::Amd64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Arm64)
        } else if cfg!(target_arch = "riscv64") {
            Some(Self::Riscv64)
        } else if cfg!(all(target_arch = "powerpc64", target_endian = "little")) {
            Some(Self::Ppc64el)
        } else {
            None
        }
    }

    /// Debian's name.
    pub const fn debian(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
            Self::Riscv64 => "riscv64",
            Self::Ppc64el => "ppc64el",
        }
    }

    /// The first word of GCC's triplets.
    pub const fn compiler(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
            Self::Riscv64 => "riscv64",
            Self::Ppc64el => "powerpc64le",
        }
    }

    /// The platform that compilers call so.
    pub fn from_compiler(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|platform| platform.compiler() == name)
    }

    /// The name in `uname -m`, and in RPM's packages.
    pub const fn kernel(self) -> &'static str {
        match self {
            Self::Ppc64el => "ppc64le",
            other => other.compiler(),
        }
    }

    /// The target triple of Rust.
    pub const fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-gnu",
            Self::Arm64 => "aarch64-unknown-linux-gnu",
            Self::Riscv64 => "riscv64gc-unknown-linux-gnu",
            Self::Ppc64el => "powerpc64le-unknown-linux-gnu",
        }
    }

    /// GCC's triplet, with which Debian names its folders of libraries.
    pub fn triplet(self) -> String {
        format!("{}-linux-gnu", self.compiler())
    }

    /// The variable that names cargo's linker for it, or with another end the program that runs what was built.
    pub fn cargo_variable(self, end: &str) -> String {
        format!("CARGO_TARGET_{}_{end}", self.target().to_uppercase().replace('-', "_"))
    }

    /// Debian's packages of the compiler for it, and of the C library.
    pub fn packages(self) -> Vec<String> {
        if Some(self) == Self::own() {
            return vec!["gcc".to_owned(), "libc6-dev".to_owned(), "binutils".to_owned()];
        }
        let compiler = self.compiler().replace('_', "-");
        vec![format!("gcc-{compiler}-linux-gnu"), format!("libc6-dev-{}-cross", self.debian())]
    }

    /// QEMU's emulator of its programs that needs no library itself: it can run in a root of that platform.
    ///
    /// # Errors
    /// None is installed.
    pub fn static_emulator(self) -> Result<std::path::PathBuf> {
        let names = [format!("qemu-{}-static", self.kernel()), format!("qemu-{}", self.kernel())];
        let found = names.iter().filter_map(|name| find_program(name)).find(|file| is_static(file));
        found.with_context(|| format!("no static {}: install Debian's qemu-user-static", names[1]))
    }
}

/// Whether a program is started without a loader: its ELF file names no interpreter.
fn is_static(program: &Path) -> bool {
    std::fs::read(program).is_ok_and(|bytes| interpreted(&bytes).is_ok_and(|interpreted| !interpreted))
}

/// Whether an ELF file of 64 bits, least significant byte first, names an interpreter (elf(5): `PT_INTERP`).
fn interpreted(bytes: &[u8]) -> Result<bool> {
    const PT_INTERP: u64 = 3;
    let number = |at: usize, size: usize| -> Result<u64> {
        let field = bytes.get(at..at.saturating_add(size)).context("the file ends early")?;
        Ok(field.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    ensure!(bytes.starts_with(b"\x7fELF\x02\x01"), "not an ELF file of 64 bits");
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for index in 0..count {
        let at = usize::try_from(table.saturating_add(index * size))?;
        if number(at, 4)? == PT_INTERP {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_debian_of_compilers_and_of_the_kernel() {
        for (platform, debian, compiler, kernel) in [
            (Platform::Amd64, "amd64", "x86_64", "x86_64"),
            (Platform::Arm64, "arm64", "aarch64", "aarch64"),
            (Platform::Riscv64, "riscv64", "riscv64", "riscv64"),
            (Platform::Ppc64el, "ppc64el", "powerpc64le", "ppc64le"),
        ] {
            assert_eq!(
                (platform.debian(), platform.compiler(), platform.kernel()),
                (debian, compiler, kernel)
            );
            assert_eq!(Platform::from_compiler(compiler), Some(platform));
            assert!(platform.target().ends_with("-unknown-linux-gnu"));
        }
        assert_eq!(Platform::from_compiler("ppc64el"), None);
        assert_eq!(
            Platform::Riscv64.cargo_variable("LINKER"),
            "CARGO_TARGET_RISCV64GC_UNKNOWN_LINUX_GNU_LINKER"
        );
    }

    #[test]
    fn a_file_with_an_interpreter_is_not_static() {
        // The header of an ELF file with one entry in its table, behind the header.
        let file = |kind: u8| {
            let mut bytes = vec![0; 64 + 56];
            bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
            (bytes[32], bytes[54], bytes[56], bytes[64]) = (64, 56, 1, kind);
            bytes
        };
        assert!(interpreted(&file(3)).unwrap());
        assert!(!interpreted(&file(1)).unwrap());
        assert!(interpreted(&file(1)[..64]).is_err());
        assert!(interpreted(b"#!/bin/sh\n").is_err());
    }
}
