//! `test`: everything that must hold before a change is done.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nodewise_lab::lab::TEST_VARIABLE;

use crate::{program, setup, tidy};

/// What the property tests draw from under CI: the same for every change, so that only what changed can
/// fail it. At a desk each run draws anew, and what it finds becomes a test of its own.
const SEED: &str = "20240613";

/// A step: its name and how long it took.
type Step = (&'static str, Duration);

/// Sets up the lab and runs all checks, one after the other; stops at the first that fails.
pub fn run(root: &Path, skip_lab: bool) -> Result<()> {
    let mut steps = Vec::new();
    let result = all(root, skip_lab, &mut steps);
    println!();
    for (name, took) in &steps {
        println!("{:>8.1} s  {name}", took.as_secs_f64());
    }
    println!("{}", if result.is_ok() { "everything holds" } else { "stopped at the last of these" });
    result
}

fn all(root: &Path, skip_lab: bool, steps: &mut Vec<Step>) -> Result<()> {
    if !skip_lab {
        let ready = step(steps, "lab-setup", || setup::run(&setup::default_kernels()));
        match ready {
            // Tests that need the lab say in one line each that they were skipped.
            Err(error) if !is_ci() => println!("going on without the lab: {error:#}"),
            ready => ready?,
        }
    }
    let cargo = |arguments: &[&str]| {
        let mut command = program::cargo(root);
        command.args(arguments);
        if skip_lab {
            command.env(TEST_VARIABLE, "skip");
        }
        if is_ci() {
            command.env("PROPTEST_RNG_SEED", SEED);
        }
        program::show(&mut command)
    };
    step(steps, "format", || cargo(&["fmt", "--all", "--", "--check"]))?;
    step(steps, "lints", || cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    step(steps, "tidy", || tidy::run(root))?;
    step(steps, "tests", || cargo(&["test", "--workspace", "--no-fail-fast"]))
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
