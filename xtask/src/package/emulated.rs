//! Programs of another platform, run by QEMU wherever they are started: binfmt_misc.
//!
//! # Source
//! `Documentation/admin-guide/binfmt-misc.rst`

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::platform::Platform;
use crate::program;

/// The kernel's folder.
const FOLDER: &str = "/proc/sys/fs/binfmt_misc";

/// A registration that ends with this value; one that was there before stays.
pub struct Emulation {
    entry: Option<PathBuf>,
    mounted: bool,
}

impl Emulation {
    /// Registers QEMU for programs of a platform.
    pub fn begin(platform: Platform) -> Result<Self> {
        let mut emulation = Self { entry: None, mounted: false };
        let folder = Path::new(FOLDER);
        if !folder.join("register").exists() {
            program::quiet(Command::new("mount").args(["-t", "binfmt_misc", "binfmt_misc", FOLDER]))?;
            emulation.mounted = true;
        }
        let name = format!("qemu-{}", platform.kernel());
        // The name that Debian's packages use.
        if folder.join(&name).exists() {
            return Ok(emulation);
        }
        // Debian 12's own qemu-user needs libraries, which a root of another platform does not have.
        let emulator = platform.static_emulator().or_else(|_| {
            super::need(&["qemu-user-static"])?;
            platform.static_emulator()
        })?;
        let emulator = emulator.to_str().context("the path of the emulator is not text")?;
        fs::write(folder.join("register"), registration(&name, platform, emulator))
            .with_context(|| format!("cannot register {emulator}"))?;
        emulation.entry = Some(folder.join(name));
        Ok(emulation)
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        if let Some(entry) = &self.entry {
            let _ = fs::write(entry, "-1");
        }
        if self.mounted {
            let _ = program::quiet(Command::new("umount").arg(FOLDER));
        }
    }
}

/// The line of an emulator for ELF files of 64 bits of a machine: 20 bytes of their header and those of them that
/// count. `F`: the kernel opens the emulator now, and it is found inside a chroot. `OC`: with the program's own
/// privileges.
fn registration(name: &str, platform: Platform, emulator: &str) -> String {
    // elf.h: EM_X86_64, EM_AARCH64, EM_RISCV, EM_PPC64.
    let machine: u8 = match platform {
        Platform::Amd64 => 62,
        Platform::Arm64 => 183,
        Platform::Riscv64 => 243,
        Platform::Ppc64el => 21,
    };
    // Class, order and version; then the kind, a program or one at any address, and the machine.
    let mut magic = [0_u8; 20];
    magic[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    (magic[16], magic[18]) = (2, machine);
    let mut mask = [0xff_u8; 20];
    mask[7..16].fill(0);
    mask[16] = 0xfe;
    let bytes = |bytes: [u8; 20]| bytes.map(|byte| format!("\\x{byte:02x}")).concat();
    format!(":{name}:M::{}:{}:{emulator}:OCF", bytes(magic), bytes(mask))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_an_emulator_is_shorter_than_the_kernel_takes() {
        let line = registration("qemu-aarch64", Platform::Arm64, "/usr/bin/qemu-aarch64");
        assert_eq!(
            line,
            ":qemu-aarch64:M::\\x7f\\x45\\x4c\\x46\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00:\
             \\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\xfe\\xff\\xff\\xff:\
             /usr/bin/qemu-aarch64:OCF"
        );
        // MAX_REGISTER_LENGTH in fs/binfmt_misc.c.
        assert!(line.len() < 1920);
    }
}
