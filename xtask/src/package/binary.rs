//! The command: linked with the system's C library for packages, without one for the tarball.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Packaging;
use crate::dist::FIXED;
use crate::libnuma::build::Tools;
use crate::program;

/// Both forms of the command, and the programs of binutils for them.
pub struct Binaries {
    pub dynamic: PathBuf,
    pub fixed: PathBuf,
    pub tools: Tools,
}

impl Binaries {
    /// Compiles both.
    pub fn build(packaging: &Packaging) -> Result<Self> {
        let tools = Tools::find(packaging.arch)?;
        let (dynamic, fixed) = (build(packaging, &tools, "")?, build(packaging, &tools, FIXED)?);
        Ok(Self { dynamic, fixed, tools })
    }

    /// The newest version of the C library whose symbols the dynamic command needs, such as `2.34`.
    pub fn libc(&self) -> Result<String> {
        let symbols =
            program::read(self.tools.command("objdump", Path::new("/")).arg("-T").arg(&self.dynamic))?;
        let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let numbers: Option<Vec<u32>> = rest[..end].split('.').map(|part| part.parse().ok()).collect();
            numbers.filter(|numbers| numbers.len() > 1)
        });
        let newest = versions.max().context("the command needs no symbol of the C library")?;
        Ok(newest.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
    }
}

fn build(packaging: &Packaging, tools: &Tools, flags: &str) -> Result<PathBuf> {
    let triple = format!("{}-unknown-linux-gnu", packaging.arch.compiler());
    program::add_target(&triple)?;
    let kind = if flags.is_empty() { "dynamic" } else { "static" };
    let target = packaging.out.join("cargo").join(kind);
    let mut command = program::cargo(&packaging.root);
    command
        .args(["build", "--locked", "--package=nodewise", "--target", &triple, "--target-dir"])
        .arg(&target);
    command.args(["--profile", &packaging.profile]);
    command.env("RUSTFLAGS", format!("{flags} {}", unnamed_paths(&packaging.root)).trim());
    command.env_remove("CARGO_ENCODED_RUSTFLAGS").env("CARGO_INCREMENTAL", "0");
    let variable = triple.to_uppercase().replace('-', "_");
    command.env(format!("CARGO_TARGET_{variable}_LINKER"), tools.name("gcc"));
    program::show(&mut command)?;
    let folder = if packaging.profile == "dev" { "debug" } else { &packaging.profile };
    Ok(target.join(triple).join(folder).join("nodewise"))
}

/// Flags that keep the builder's folders out of the program.
fn unnamed_paths(root: &Path) -> String {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let mut flags = format!("--remap-path-prefix={}=/nodewise", root.display());
    if let Some(home) = home {
        flags += &format!(" --remap-path-prefix={}=/cargo", home.display());
    }
    flags
}
