//! `wheel`: Python's nodewise as a wheel with the command inside, and its tests, here and in a guest with four nodes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use nodewise_stats::median;

use crate::package::tree::files_of;
use crate::{dist, package, program};

/// The builders of a wheel: maturin, and zig's linker, which needs no old C library to link against.
const BUILDERS: [&str; 2] = ["maturin>=1.8,<2", "ziglang"];
/// The oldest C library that a wheel is for: glibc 2.17.
const PLATFORM: &str = "manylinux2014";
/// The machine of the guest.
const FOUR_NODES: &str = "4x(1c 768M); dist=20";
/// Imports that are timed.
const IMPORTS: usize = 21;

/// Builds the wheel into a folder, around a static command.
pub fn build(root: &Path, command: Option<PathBuf>, out: &Path) -> Result<PathBuf> {
    let folder = root.join("target/wheel");
    let tools = environment(&folder.join("tools"), "python3", &BUILDERS)?;
    let command = match command {
        Some(command) => command,
        None => dist::build(root)?,
    };
    let scripts = root.join("python/nodewise.data/scripts");
    fs::create_dir_all(&scripts)?;
    let inside = scripts.join("nodewise");
    fs::copy(&command, &inside).with_context(|| command.display().to_string())?;
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o755))?;
    let made = folder.join("made");
    package::empty(&made)?;
    let mut maturin = Command::new(tools.join("bin/maturin"));
    maturin.args(["build", "--release", "--zig", "--compatibility", PLATFORM, "--out"]).arg(&made);
    maturin.arg("--manifest-path").arg(root.join("python/Cargo.toml"));
    // maturin asks the environment for Python and for zig.
    maturin.env("VIRTUAL_ENV", &tools).env("PATH", path_with(&tools.join("bin")));
    maturin.env("CARGO_TARGET_DIR", folder.join("cargo"));
    program::show(&mut maturin)?;
    let wheel = files_of(&made)?.pop().context("maturin made no wheel")?;
    fs::create_dir_all(out)?;
    let to = out.join(wheel.file_name().unwrap_or_default());
    fs::copy(&wheel, &to).with_context(|| to.display().to_string())?;
    println!("{} KiB  {}", fs::metadata(&to)?.len().div_ceil(1024), to.display());
    Ok(to)
}

/// Installs the wheel for each Python in an environment of its own, and runs its tests: here, and in a guest.
pub fn check(root: &Path, wheel: &Path, pythons: &[String], guest: bool) -> Result<()> {
    let wheel = wheel.to_str().context("the path of the wheel is not text")?;
    let tests = root.join("python/tests/test_nodewise.py");
    for python in pythons {
        let name = Path::new(python).file_name().unwrap_or_default();
        let place = root.join("target/wheel/installed").join(name);
        let _ = fs::remove_dir_all(&place);
        let place = environment(&place, python, &[wheel, "numpy"])?;
        let interpreter = place.join("bin/python");
        println!("\n== {python}: {}", program::read(Command::new(&interpreter).arg("--version"))?.trim());
        program::show(Command::new(&interpreter).arg(&tests))?;
        println!("import: {:.1} ms beside the start of Python", import_ms(&interpreter)?);
        if guest {
            let mut lab = Command::new(place.join("bin/nodewise"));
            lab.args(["lab", "--engine=tcg", "--machine", FOUR_NODES, "--"]).arg(&interpreter).arg(&tests);
            program::show(&mut lab)?;
        }
    }
    Ok(())
}

/// An environment of Python with these packages.
fn environment(folder: &Path, python: &str, packages: &[&str]) -> Result<PathBuf> {
    let pip = folder.join("bin/pip");
    if !pip.exists() {
        let made = program::quiet(Command::new(python).args(["-m", "venv"]).arg(folder));
        if let Err(error) = made {
            bail!("{error:#}\nDebian's package python3-venv makes environments");
        }
    }
    program::quiet(
        Command::new(&pip).args(["install", "--quiet", "--disable-pip-version-check"]).args(packages),
    )?;
    Ok(folder.to_owned())
}

/// The programs' folders with one more in front.
fn path_with(folder: &Path) -> std::ffi::OsString {
    let mut path = folder.as_os_str().to_owned();
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    path
}

/// How much longer Python takes with the import than without, in milliseconds: the median of pairs.
fn import_ms(python: &Path) -> Result<f64> {
    let time = |words: &str| -> Result<f64> {
        let begun = Instant::now();
        program::quiet(Command::new(python).args(["-c", words]))?;
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    };
    let mut differences = Vec::new();
    for _ in 0..IMPORTS {
        differences.push(time("import nodewise")? - time("pass")?);
    }
    median(&differences).context("no import was timed")
}
