//! `libnuma`: builds libnuma.so.1 and libnuma.a, and compares the result with the list of symbols
//! that makes it libnuma.

pub mod bench;
pub mod build;
pub mod clients;
mod places;
mod symbols;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use nodewise_lab::Arch;

use build::Tools;
use places::Places;
pub use symbols::versioned;

/// That of this machine; `None` on one that the library is not built for.
pub fn own() -> Option<Arch> {
    Arch::from_compiler(std::env::consts::ARCH)
}

/// Where the library is put, as the options say.
#[derive(Default)]
pub struct Destination {
    /// The folder that it is written to.
    pub out: Option<PathBuf>,
    /// The path that replaces that folder where it is used.
    pub prefix: Option<PathBuf>,
    pub libdir: Option<PathBuf>,
    /// Debian's folder of libraries for the machine.
    pub multiarch: bool,
}

impl Destination {
    /// All of it in one folder, to be used there.
    fn in_folder(out: PathBuf) -> Self {
        Self { out: Some(out), ..Self::default() }
    }
}

/// Builds the library for one machine into a folder with `lib`, `lib/pkgconfig` and `include`, and
/// compares its symbols.
pub fn run(root: &Path, arch: Option<Arch>, destination: Destination) -> Result<()> {
    let Some(arch) = arch.or_else(own) else {
        bail!("libnuma is built for x86_64 and aarch64, and this is {}", std::env::consts::ARCH);
    };
    let usual = || build::target_folder(root).join("libnuma").join(arch.compiler());
    let out = destination.out.unwrap_or_else(usual);
    let libdir = match destination.libdir {
        Some(libdir) => libdir,
        None if destination.multiarch => places::multiarch(arch),
        None => PathBuf::from("lib"),
    };
    let places = Places::new(&out, destination.prefix, libdir)?;
    let tools = Tools::find(arch)?;
    build::build(root, arch, &tools, &places)?;
    let library = places.lib().join("libnuma.so.1");
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
