//! `libnuma`: builds libnuma.so.1 and libnuma.a, and compares the result with the list of symbols
//! that makes it libnuma.

pub mod bench;
mod build;
pub mod clients;
mod symbols;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use nodewise_lab::Arch;

use build::Tools;

/// That of this machine; `None` on one that the library is not built for.
fn own() -> Option<Arch> {
    Arch::from_compiler(std::env::consts::ARCH)
}

/// Builds the library for one machine into a folder with `lib`, `lib/pkgconfig` and `include`, and
/// compares its symbols.
pub fn run(root: &Path, arch: Option<Arch>, out: Option<PathBuf>) -> Result<()> {
    let Some(arch) = arch.or_else(own) else {
        bail!("libnuma is built for x86_64 and aarch64, and this is {}", std::env::consts::ARCH);
    };
    let out = out.unwrap_or_else(|| build::target_folder(root).join("libnuma").join(arch.compiler()));
    let tools = Tools::find(arch)?;
    build::build(root, arch, &tools, &out)?;
    let library = out.join("lib/libnuma.so.1");
    let differences = symbols::compare(root, arch, &tools, &library)?;
    for difference in &differences {
        println!("{difference}");
    }
    if !differences.is_empty() {
        bail!("{} differs from crates/libnuma/link/abi/{}.txt", library.display(), arch.compiler());
    }
    println!("libnuma for {}: all symbols are as they should be: {}", arch.compiler(), out.display());
    Ok(())
}
