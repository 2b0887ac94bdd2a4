//! `libnuma`: builds libnuma.so.1 and libnuma.a, and compares the result with the list of symbols
//! that makes it libnuma.

pub mod bench;
pub mod build;
pub mod clients;
mod places;
mod symbols;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::platform::Platform;
use build::Tools;
use places::Places;
pub use symbols::versioned;

/// The platform of this machine.
///
/// # Errors
/// The library is not built for it.
pub fn own() -> Result<Platform> {
    let built_for = Platform::ALL.map(Platform::compiler).join(", ");
    let own = Platform::own();
    own.with_context(|| format!("libnuma is built for {built_for}, and this is {}", std::env::consts::ARCH))
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
pub fn run(root: &Path, platform: Option<Platform>, destination: Destination) -> Result<()> {
    let platform = platform.map_or_else(own, Ok)?;
    let usual = || build::target_folder(root).join("libnuma").join(platform.compiler());
    let out = destination.out.unwrap_or_else(usual);
    let libdir = match destination.libdir {
        Some(libdir) => libdir,
        None if destination.multiarch => places::multiarch(platform),
        None => PathBuf::from("lib"),
    };
    let places = Places::new(&out, destination.prefix, libdir)?;
    let tools = Tools::find(platform)?;
    build::build(root, platform, &tools, &places)?;
    let library = places.lib().join("libnuma.so.1");
    let differences = symbols::compare(root, platform, &tools, &library)?;
    for difference in &differences {
        println!("{difference}");
    }
    if !differences.is_empty() {
        bail!("{} differs from crates/libnuma/link/abi/{}", library.display(), symbols::list_of(platform));
    }
    println!("libnuma for {}: all symbols are as they should be: {}", platform.compiler(), out.display());
    Ok(())
}
