//! The command: linked with the system's C library for packages, without one for the tarball.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Packaging, tree};
use crate::dist::{self, FIXED};
use crate::libnuma::build::Tools;
use crate::program;

/// Both forms of the command.
pub struct Binaries {
    pub dynamic: PathBuf,
    pub fixed: PathBuf,
}

impl Binaries {
    /// Compiles both.
    pub fn build(packaging: &Packaging, tools: &Tools) -> Result<Self> {
        let small = dist::small()?;
        let dynamic = build(packaging, tools, "dynamic", &small)?;
        let fixed = build(packaging, tools, "static", &format!("{FIXED} {small}"))?;
        Ok(Self { dynamic, fixed })
    }
}

/// The newest version of the C library whose symbols a program needs, such as `2.34`.
pub fn libc(tools: &Tools, command: &Path) -> Result<String> {
    let symbols = program::read(tools.command("objdump", Path::new("/")).arg("-T").arg(command))?;
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let numbers: Option<Vec<u32>> = rest[..end].split('.').map(|part| part.parse().ok()).collect();
        numbers.filter(|numbers| numbers.len() > 1)
    });
    let newest = versions.max().context("the command needs no symbol of the C library")?;
    Ok(newest.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
}

/// Compiles one form. The flags are for the last crate: it is linked, and with link-time optimisation compiled, as they
/// say, and the crates below it are compiled once for both forms.
pub fn build(packaging: &Packaging, tools: &Tools, form: &str, flags: &str) -> Result<PathBuf> {
    let mut command = cargo(packaging, tools, "rustc")?;
    command.args(["--package=nodewise", "--bin=nodewise"]);
    if !flags.is_empty() {
        command.arg("--").args(flags.split_whitespace());
    }
    program::show(&mut command)?;
    let folder = if packaging.profile == "dev" { "debug" } else { &packaging.profile };
    let built = cargo_folder(packaging).join(packaging.platform.target()).join(folder).join("nodewise");
    // The other form will have the same name.
    let file = packaging.work(form).join("usr/bin/nodewise");
    tree::put(&built, &file)?;
    Ok(file)
}

/// A verb of cargo that compiles for the platform, in a folder beside the packages.
pub fn cargo(packaging: &Packaging, tools: &Tools, verb: &str) -> Result<Command> {
    let triple = packaging.platform.target();
    program::add_target(triple)?;
    let mut command = program::cargo(&packaging.root);
    command.args([verb, "--locked", "--profile", &packaging.profile, "--target", triple, "--target-dir"]);
    command.arg(cargo_folder(packaging));
    command.env("RUSTFLAGS", unnamed_paths(&packaging.root)).env_remove("CARGO_ENCODED_RUSTFLAGS");
    // Not the compiler of a test run, which is that of the lints.
    command.env("CARGO_INCREMENTAL", "0").env_remove("RUSTC_WORKSPACE_WRAPPER");
    command.env(packaging.platform.cargo_variable("LINKER"), tools.name("gcc"));
    Ok(command)
}

fn cargo_folder(packaging: &Packaging) -> PathBuf {
    packaging.out.join("cargo")
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
