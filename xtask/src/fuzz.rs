//! `fuzz`: every fuzz target for a while, one after the other.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::program;
use crate::suite::lint;

/// Runs the targets with these names, or all of them, each for this many seconds.
pub fn run(root: &Path, names: &[String], seconds: u32) -> Result<()> {
    install()?;
    let targets = targets(root)?;
    if let Some(name) = names.iter().find(|name| !targets.contains(name)) {
        bail!("{name} is not a fuzz target: expected one of {}", targets.join(", "));
    }
    for target in targets.iter().filter(|target| names.is_empty() || names.contains(target)) {
        println!("\n== {target}, {seconds} s");
        let folder = |kind: &str| format!("fuzz/{kind}/{target}");
        std::fs::create_dir_all(root.join(folder("corpus")))?;
        let mut command = cargo(root);
        command.args(["fuzz", "run", target, &folder("corpus"), &folder("seeds"), "--"]);
        command.args([&format!("-max_total_time={seconds}"), "-timeout=10", "-rss_limit_mb=2048"]);
        command.args(["-print_final_stats=1", "-verbosity=0"]);
        program::show(&mut command).with_context(|| format!("fuzz target {target}"))?;
    }
    Ok(())
}

/// Compiles the targets with their lints, so that none is left behind by a parser that changed. They are a workspace
/// of their own, which no other check sees; the fuzzer's runtime, which takes a C++ compiler, is left out.
pub fn check(root: &Path) -> Result<()> {
    let mut command = program::cargo(root);
    command.args(["check", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target/fuzz"]);
    lint::while_compiling(&mut command);
    program::show(command.env("CUSTOM_LIBFUZZER_PATH", root.join("target/fuzz/not-linked.a")))
}

/// The names of the targets: the files in their folder.
fn targets(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "rs") {
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Fetches cargo-fuzz, unless it is there.
fn install() -> Result<()> {
    let there = Command::new("cargo-fuzz").arg("--version").output();
    if there.is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    program::show(cargo(Path::new(".")).args(["install", "cargo-fuzz", "--locked"]))
}

/// Cargo, with the flags of the sanitizer allowed on a stable compiler.
fn cargo(folder: &Path) -> Command {
    let mut command = program::cargo(folder);
    command.env("RUSTC_BOOTSTRAP", "1");
    command
}
