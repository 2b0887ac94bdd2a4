//! Compiling and linking.
//!
//! The Rust code becomes an archive with all it needs of `core`. For the shared library it is linked
//! whole, with the C and assembler files of `crates/libnuma/link`, and what nothing reaches is
//! dropped: a panic handler that something reaches does not link. For the static library the same
//! is joined into one object file in which only libnuma's own symbols are left to be seen.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use nodewise_lab::tools::find_program;

use super::places::Places;
use super::symbols;
use crate::platform::Platform;
use crate::program;

/// The compiler and the programs of binutils for a machine.
pub struct Tools {
    prefix: String,
}

impl Tools {
    /// Finds them: by their own names for this machine, by those of Debian's cross compilers for
    /// another.
    pub fn find(platform: Platform) -> Result<Self> {
        let is_own = Some(platform) == Platform::own();
        let tools = Self { prefix: if is_own { String::new() } else { format!("{}-", platform.triplet()) } };
        for name in ["gcc", "ar", "objcopy", "readelf", "strip"] {
            let name = tools.name(name);
            if find_program(&name).is_none() {
                bail!("{name} is missing: install Debian's {}", platform.packages().join(" and "));
            }
        }
        Ok(tools)
    }

    /// The name of one of them.
    pub fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// One of them, to be run in a folder.
    pub fn command(&self, name: &str, folder: &Path) -> Command {
        let mut command = Command::new(self.name(name));
        command.current_dir(folder).env("LC_ALL", "C");
        command
    }
}

/// Where cargo builds.
pub fn target_folder(root: &Path) -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root.join(folder),
        None => root.join("target"),
    }
}

/// Builds everything into its places.
pub fn build(root: &Path, platform: Platform, tools: &Tools, places: &Places) -> Result<()> {
    let source = root.join("crates/libnuma");
    let (lib, include) = (places.lib(), places.include());
    fs::create_dir_all(lib.join("pkgconfig"))?;
    fs::create_dir_all(&include)?;
    let work = tempfile::tempdir()?;
    let work = work.path();
    let archive = archive(root, platform)?;
    fs::copy(&archive, work.join("rust.a")).with_context(|| archive.display().to_string())?;
    let link = source.join("link");
    compile(tools, work, &link.join("weak.c"), "weak.o")?;
    compile(tools, work, &link.join("version1.S"), "version1.o")?;
    shared(tools, work, &link.join("libnuma.map"))?;
    fs::copy(work.join("libnuma.so"), lib.join("libnuma.so.1.0.0"))?;
    for name in ["libnuma.so.1", "libnuma.so"] {
        let _ = fs::remove_file(lib.join(name));
        symlink("libnuma.so.1.0.0", lib.join(name))?;
    }
    static_library(tools, work, &symbols::unversioned(root, platform)?)?;
    fs::copy(work.join("libnuma.a"), lib.join("libnuma.a"))?;
    for name in ["numa.h", "numaif.h", "numacompat1.h"] {
        fs::copy(source.join("include").join(name), include.join(name))?;
    }
    let description = fs::read_to_string(source.join("include/numa.pc.in"))?;
    fs::write(lib.join("pkgconfig/numa.pc"), places.description(&description))?;
    Ok(())
}

/// The target folder of the Rust code, one of its own: cargo may be running.
pub fn cargo_folder(root: &Path) -> PathBuf {
    target_folder(root).join("libnuma/cargo")
}

/// Compiles the Rust code to an archive.
fn archive(root: &Path, platform: Platform) -> Result<PathBuf> {
    let folder = cargo_folder(root);
    let target = platform.target();
    // `core` for that machine.
    program::add_target(target)?;
    let mut command = program::cargo(root);
    command.args(["rustc", "--quiet", "--package", "nodewise-libnuma", "--lib", "--release"]);
    command.args(["--crate-type", "staticlib", "--features", "link", "--target", target, "--target-dir"]);
    command.arg(&folder);
    // Link-time optimisation is what removes the paths to panics in `core`.
    for setting in ["lto=\"fat\"", "codegen-units=1", "opt-level=2"] {
        command.args(["--config", &format!("profile.release.{setting}")]);
    }
    // Flags of the caller are for the caller's programs.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    program::show(&mut command)?;
    Ok(folder.join(target).join("release/libnodewise_libnuma.a"))
}

fn compile(tools: &Tools, work: &Path, source: &Path, object: &str) -> Result<()> {
    let mut command = tools.command("gcc", work);
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-ffunction-sections"]);
    program::quiet(command.arg("-c").arg(source).args(["-o", object]))
}

/// The shared library. Segments are not padded to pages of their own: each would be mapped alone,
/// which takes longer than all the rest of loading them.
fn shared(tools: &Tools, work: &Path, map: &Path) -> Result<()> {
    let mut script = OsString::from("-Wl,--version-script=");
    script.push(map);
    let mut command = tools.command("gcc", work);
    command.args(["-shared", "-nostartfiles", "-o", "libnuma.so", "-Wl,-soname,libnuma.so.1"]);
    command.arg(script).args(["-Wl,--whole-archive", "rust.a", "-Wl,--no-whole-archive"]);
    command.args(["weak.o", "version1.o", "-Wl,--gc-sections", "-Wl,-z,defs", "-Wl,-z,relro"]);
    command.args(["-Wl,-z,noseparate-code", "-Wl,--hash-style=gnu", "-Wl,-O1", "-Wl,--build-id"]);
    program::quiet(&mut command)?;
    program::quiet(tools.command("strip", work).args(["--strip-unneeded", "libnuma.so"]))
}

/// The static library: one object file.
fn static_library(tools: &Tools, work: &Path, symbols: &[String]) -> Result<()> {
    let mut command = tools.command("gcc", work);
    command.args(["-r", "-nostdlib", "-o", "joined.o", "weak.o", "-Wl,--gc-sections"]);
    // The constructor has no name that anybody asks for, so the whole archive is taken.
    command.args(["-Wl,--whole-archive", "rust.a", "-Wl,--no-whole-archive"]);
    command.args(symbols.iter().map(|symbol| format!("-Wl,-u,{symbol}")));
    program::quiet(&mut command)?;
    fs::write(work.join("symbols"), symbols.join("\n"))?;
    let mut command = tools.command("objcopy", work);
    // What `core` was compiled from is of no use to C's tools, and some cannot read it.
    command.args(["--remove-section=.llvmbc", "--remove-section=.llvmcmd", "--remove-section=.comment"]);
    program::quiet(command.args([
        "--keep-global-symbols=symbols",
        "--strip-unneeded",
        "joined.o",
        "libnuma.o",
    ]))?;
    let _ = fs::remove_file(work.join("libnuma.a"));
    program::quiet(tools.command("ar", work).args(["crsD", "libnuma.a", "libnuma.o"]))
}
