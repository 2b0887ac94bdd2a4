//! `dist`: the command as one file that needs no other.
//!
//! Linked statically it starts in less time than the dynamic loader alone takes for a program with
//! three libraries, and it runs on every distribution. Cargo needs the target said for that: without
//! it the flag would reach procedural macros, which are libraries and cannot be static.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::program;

/// Builds the static command and returns where it is.
pub fn build(root: &Path) -> Result<PathBuf> {
    let host = host()?;
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(["build", "--release", "--package=nodewise", "--target", &host]);
    command.env("RUSTFLAGS", "-C target-feature=+crt-static");
    program::show(&mut command)?;
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let file = folder.join(host).join("release/nodewise");
    file.canonicalize().with_context(|| format!("cargo left no {}", file.display()))
}

/// The target triple of this machine's compiler.
fn host() -> Result<String> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let text = program::read(Command::new(compiler).arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}
