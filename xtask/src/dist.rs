//! `dist`: the command as one file that needs no other.
//!
//! Linked statically it starts without the dynamic loader, and it runs on every distribution. Cargo
//! needs the target said for that: without it the flag would reach procedural macros, which are
//! libraries and cannot be static. At a fixed address nothing is relocated at each start. The linker's
//! file is copied: one that was written in order lies in larger pieces in the page cache, and a third
//! fewer page faults bring it in.
//!
//! The compiler's own linker, LLD, makes every form of the command smaller (`small`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::program;

/// Flags of a static command, at a fixed address: nothing is relocated at each start.
pub const FIXED: &str = "-C target-feature=+crt-static -C relocation-model=static";

/// The linker's script, from the repository's folder, where cargo starts the compiler: a name with a folder in it
/// would give another command in each folder.
const SCRIPT: &str = "xtask/src/dist.ld";

/// Arguments of the compiler with which LLD links a smaller command: one copy of functions with the same code, and no
/// tables for unwinding the stack. Nothing unwinds: a panic prints its message and ends the process, and a backtrace
/// of a command without symbols would name nothing.
///
/// A compiler without LLD, such as those of distributions, gets none.
pub fn small() -> Result<String> {
    let sysroot = program::read(Command::new(compiler()).args(["--print", "sysroot"]))?;
    let linker = format!("{}/lib/rustlib/{}/bin/gcc-ld", sysroot.trim_end(), host()?);
    // Blanks separate the arguments.
    if linker.contains(' ') || !Path::new(&linker).join("ld.lld").exists() {
        return Ok(String::new());
    }
    Ok(format!("-Clink-arg=-B{linker} -Clink-arg=-fuse-ld=lld -Clink-arg=-Wl,--icf=all -Clink-arg={SCRIPT}"))
}

/// Builds the static command and returns where it is.
pub fn build(root: &Path) -> Result<PathBuf> {
    let host = host()?;
    let mut command = program::cargo(root);
    command.args([
        "rustc",
        "--profile=dist",
        "--package=nodewise",
        "--bin=nodewise",
        "--target",
        &host,
        "--",
    ]);
    command.args(small()?.split_whitespace()).env("RUSTFLAGS", FIXED);
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

fn compiler() -> OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// The target triple of this machine's compiler.
fn host() -> Result<String> {
    let text = program::read(Command::new(compiler()).arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV names no host")
}
