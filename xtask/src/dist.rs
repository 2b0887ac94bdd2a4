//! `dist`: the command as one file that needs no other.
//!
//! Linked statically it starts without the dynamic loader, and it runs on every distribution. Cargo
//! needs the target said for that: without it the flag would reach procedural macros, which are
//! libraries and cannot be static. At a fixed address nothing is relocated at each start. The linker's
//! file is copied: one that was written in order lies in larger pieces in the page cache, and a third
//! fewer page faults bring it in.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::program;

/// Flags of a static command, at a fixed address: nothing is relocated at each start.
pub const FIXED: &str = "-C target-feature=+crt-static -C relocation-model=static";

/// Builds the static command and returns where it is.
pub fn build(root: &Path) -> Result<PathBuf> {
    let host = host()?;
    let mut command = program::cargo(root);
    command.args(["build", "--profile=dist", "--package=nodewise", "--target", &host]);
    command.env("RUSTFLAGS", FIXED);
    program::show(&mut command)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let built = target.join(host).join("dist/nodewise");
    let folder = target.join("dist");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let file = folder.join("nodewise");
    // Not over the old file: it may be running.
    let new = folder.join("nodewise.new");
    std::fs::copy(&built, &new).with_context(|| built.display().to_string())?;
    std::fs::rename(&new, &file).with_context(|| file.display().to_string())?;
    file.canonicalize().with_context(|| file.display().to_string())
}

/// The target triple of this machine's compiler.
fn host() -> Result<String> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let text = program::read(Command::new(compiler).arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}
