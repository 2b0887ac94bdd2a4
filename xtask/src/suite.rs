//! `test`: everything that must hold before a change is done; `quick`: the part of it that takes two minutes.

mod account;
mod lint;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nodewise_lab::lab::TEST_VARIABLE;

use self::account::Account;
use crate::{fuzz, program, setup, tidy};

/// The seed of the property tests under CI: the same for every change, so that only what changed can
/// fail it. At a desk each run draws again, and what it finds becomes a test of its own.
const SEED: &str = "20240613";

/// The modules of tests that simulate hundreds of studies: more than an editor's hook can wait for.
const SIMULATED: &str = "simulated::";

/// A step: its name and how long it took.
type Step = (&'static str, Duration);

/// The part of the checks that a run of `test` makes.
pub enum Part {
    /// Everything, as CI runs it.
    All,
    /// Everything but tests that boot a kernel.
    WithoutLab,
    /// Lints and tests of these crates, named without `nodewise-`.
    Crates(Vec<String>),
}

/// Runs these checks, one after the other; stops at the first that fails.
pub fn run(root: &Path, part: &Part) -> Result<()> {
    let mut steps = Vec::new();
    let result = match part {
        Part::All => all(root, false, &mut steps),
        Part::WithoutLab => all(root, true, &mut steps),
        Part::Crates(crates) => some(root, crates, &mut steps),
    };
    summary(&steps, &result);
    result
}

/// Format, tidy, lints and the unit tests of all crates without simulated studies: what an editor's hook can
/// wait for.
pub fn quick(root: &Path) -> Result<()> {
    let mut steps = Vec::new();
    let result = (|| {
        looks(root, &mut steps)?;
        let clippy = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
        step(&mut steps, "lints", || cargo(root, true, &clippy))?;
        step(&mut steps, "unit tests", || {
            cargo(
                root,
                true,
                &["test", "--workspace", "--lib", "--bins", "--quiet", "--", "--skip", SIMULATED],
            )
        })
    })();
    summary(&steps, &result);
    result
}

fn summary(steps: &[Step], result: &Result<()>) {
    println!();
    for (name, took) in steps {
        println!("{:>8.1} s  {name}", took.as_secs_f64());
    }
    println!("{}", if result.is_ok() { "everything holds" } else { "stopped at the last of these" });
}

fn all(root: &Path, skip_lab: bool, steps: &mut Vec<Step>) -> Result<()> {
    if !skip_lab {
        let ready = step(steps, "lab-setup", || setup::run(&setup::default_kernels()));
        match ready {
            // Tests that need the lab say in one line each that they were skipped.
            Err(error) if !is_ci() => println!("without the lab: {error:#}"),
            ready => ready?,
        }
    }
    looks(root, steps)?;
    step(steps, "fuzz targets", || fuzz::check(root))?;
    step(steps, "lints, and all programs", || {
        let mut command =
            cargo_command(root, skip_lab, &["test", "--workspace", "--all-targets", "--no-run", "--quiet"]);
        program::show(lint::while_compiling(&mut command))
    })?;
    let mut command = cargo_command(root, skip_lab, &["test", "--workspace", "--no-fail-fast"]);
    tests(lint::while_compiling(&mut command), steps)
}

/// Everything that looks at the text and compiles nothing.
fn looks(root: &Path, steps: &mut Vec<Step>) -> Result<()> {
    step(steps, "format", || cargo(root, true, &["fmt", "--all", "--", "--check"]))?;
    let targets = ["fmt", "--manifest-path", "fuzz/Cargo.toml", "--", "--check"];
    step(steps, "format of the fuzz targets", || cargo(root, true, &targets))?;
    step(steps, "tidy", || tidy::run(root, false))
}

fn some(root: &Path, crates: &[String], steps: &mut Vec<Step>) -> Result<()> {
    let mut packages = Vec::new();
    for name in crates {
        packages.extend(["-p".to_owned(), package(root, name)?]);
    }
    let of = |before: &[&str], after: &[&str]| -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        [words(before), packages.clone(), words(after)].concat()
    };
    let cargo = |words: Vec<String>| cargo(root, true, &words.iter().map(String::as_str).collect::<Vec<_>>());
    step(steps, "lints", || cargo(of(&["clippy", "--quiet"], &["--all-targets", "--", "-D", "warnings"])))?;
    let words = of(&["test"], &["--no-fail-fast"]);
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    tests(&mut cargo_command(root, true, &words), steps)
}

/// The package of a crate by its folder: `view` is `nodewise-view`.
fn package(root: &Path, name: &str) -> Result<String> {
    let folders = std::fs::read_dir(root.join("crates"))?;
    let mut known: Vec<String> =
        folders.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    known.push("xtask".to_owned());
    known.sort();
    match name {
        "nodewise" | "xtask" => Ok(name.to_owned()),
        _ if known.iter().any(|known| known == name) => Ok(format!("nodewise-{name}")),
        _ => bail!("{name} is not a crate: expected one of {}", known.join(", ")),
    }
}

fn cargo(root: &Path, skip_lab: bool, arguments: &[&str]) -> Result<()> {
    program::show(&mut cargo_command(root, skip_lab, arguments))
}

fn cargo_command(root: &Path, skip_lab: bool, arguments: &[&str]) -> Command {
    let mut command = program::cargo(root);
    command.args(arguments);
    if skip_lab {
        command.env(TEST_VARIABLE, "skip");
    }
    if is_ci() {
        command.env("PROPTEST_RNG_SEED", SEED);
    }
    command
}

/// A step that runs `cargo test`, shows what it prints, and ends with an account of it.
fn tests(command: &mut Command, steps: &mut Vec<Step>) -> Result<()> {
    let mut account = Account::default();
    command.args(["--", "--show-output"]);
    let result = step(steps, "tests", || accounted(command, &mut account));
    print!("\n{account}");
    result
}

/// Runs a command whose output passes through an account on its way to the user.
fn accounted(command: &mut Command, account: &mut Account) -> Result<()> {
    let line = program::line(command);
    // One pipe for both streams: cargo names a program on one, its tests speak on the other, and their order
    // says what belongs together.
    let (reader, writer) = os_pipe::pipe().context("cannot make a pipe")?;
    let mut child = command
        .stdout(writer.try_clone().context("cannot make a pipe")?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("cannot start: {line}"))?;
    // The pipe ends with its last writer, and the command has two of them.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut reader = BufReader::new(reader);
    let mut bytes = Vec::new();
    while reader.read_until(b'\n', &mut bytes)? > 0 {
        let text = String::from_utf8_lossy(&bytes);
        if account.line(text.trim_end_matches('\n')) {
            print!("{text}");
        }
        bytes.clear();
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{line}: {status}");
    }
    Ok(())
}

/// Whether a machine and not a person waits for the result.
fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

fn step(steps: &mut Vec<Step>, name: &'static str, run: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("\n== {name}");
    let start = Instant::now();
    let result = run();
    let took = start.elapsed();
    steps.push((name, took));
    println!("== {name}: {} in {:.1} s", if result.is_ok() { "done" } else { "failed" }, took.as_secs_f64());
    result.with_context(|| name.to_owned())
}
