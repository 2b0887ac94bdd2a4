//! `libnuma`: builds libnuma.so.1 and libnuma.a, and compares the result with the list of symbols
//! that makes it libnuma.

pub mod bench;
mod build;
pub mod clients;
mod symbols;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::ValueEnum;

use build::Tools;

/// A machine to build for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Arch {
    /// 64-bit x86
    #[value(name = "x86_64")]
    X86,
    /// 64-bit Arm
    #[value(name = "aarch64")]
    Arm,
}

impl Arch {
    /// That of this machine; `None` on one that the library is not built for.
    pub fn own() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::X86),
            "aarch64" => Some(Self::Arm),
            _ => None,
        }
    }

    /// The word of compilers for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }
}

/// Builds the library for one machine into a folder with `lib`, `lib/pkgconfig` and `include`, and
/// compares its symbols.
pub fn run(root: &Path, arch: Option<Arch>, out: Option<PathBuf>) -> Result<()> {
    let Some(arch) = arch.or_else(Arch::own) else {
        bail!("libnuma is built for x86_64 and aarch64, and this is {}", std::env::consts::ARCH);
    };
    let out = out.unwrap_or_else(|| build::target_folder(root).join("libnuma").join(arch.name()));
    let tools = Tools::find(arch)?;
    build::build(root, arch, &tools, &out)?;
    let library = out.join("lib/libnuma.so.1");
    let differences = symbols::compare(root, arch, &tools, &library)?;
    for difference in &differences {
        println!("{difference}");
    }
    if !differences.is_empty() {
        bail!("{} differs from crates/libnuma/link/abi/{}.txt", library.display(), arch.name());
    }
    println!("libnuma for {}: all symbols are as they should be: {}", arch.name(), out.display());
    Ok(())
}
