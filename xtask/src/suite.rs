//! `test`: everything that must hold before a change is done; `quick`: the part of it that takes two minutes.

mod account;
mod lanes;
pub mod lint;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nodewise_lab::lab::TEST_VARIABLE;

use self::account::Account;
use self::lanes::Until;
use crate::libnuma::build::target_folder;
use crate::package::roots;
use crate::{fuzz, program, setup, tidy};

/// The seed of the property tests under CI: the same for every change, so that only what changed can
/// fail it. At a desk each run draws again, and what it finds becomes a test of its own.
const SEED: &str = "20240613";

/// The modules of tests that simulate hundreds of studies: more than an editor's hook can wait for.
const SIMULATED: &str = "simulated::";

/// The words for programs of tests by which an account learns why some were skipped.
const SHOWN: [&str; 2] = ["--", "--show-output"];

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
    let lanes = lanes::choose(root)?;
    let run = |words: &[String]| {
        let mut command = cargo_command(root, skip_lab, &["test", "--workspace", "--no-fail-fast"]);
        lint::while_compiling(&mut command).args(words).args(SHOWN);
        command
    };
    let mut account = Account::default();
    let result = step(steps, "tests", || {
        let (result, both) = lanes::run(&mut run(&lanes.guests), &mut run(&lanes.others), &show);
        account.join(both);
        result
    });
    // Examples in documentation come by themselves: cargo takes no other program beside them.
    let examples = step(steps, "documentation", || {
        lanes::accounted(&mut run(&["--doc".to_owned()]), &mut account, Until::Line, &show)
    });
    print!("\n{account}");
    let packages = if skip_lab { Ok(()) } else { step(steps, "packages in clean roots", || packages(root)) };
    result.and(examples).and(packages)
}

/// Installs, uses and removes packages of the command that was compiled for the tests.
fn packages(root: &Path) -> Result<()> {
    match roots::obstacle() {
        Some(obstacle) if is_ci() => bail!("{obstacle}"),
        Some(obstacle) => {
            println!("skipped: {obstacle}");
            Ok(())
        }
        None => roots::quick(root, &target_folder(root).join("debug/nodewise"), &roots::possible()),
    }
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
    command.args(SHOWN);
    let result = step(steps, "tests", || lanes::accounted(command, &mut account, Until::Line, &show));
    print!("\n{account}");
    result
}

fn show(text: &str) {
    print!("{text}");
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
