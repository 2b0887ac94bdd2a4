//! `drop-in`: numactl and its friends beside the originals, on many more drawn command lines than the tests have.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;

use crate::program;

/// The lines to play, where, and beside what.
pub struct DropIn {
    pub lines: u64,
    /// The facts that they are drawn from.
    pub seed: u64,
    /// The number of the first.
    pub first: u64,
    /// In a guest with four nodes instead of here.
    pub guest: bool,
    /// Whether the differences that rules cover are printed too.
    pub differences: bool,
    /// The root that the packages of another release were unpacked into.
    pub original: Option<PathBuf>,
}

/// Plays the lines; fails when an answer differs and no rule says why.
pub fn run(root: &Path, drop_in: &DropIn) -> Result<()> {
    let start = Instant::now();
    let mut command = program::cargo(root);
    command.args(["test", "--package", "nodewise", "--test", "drop_in", "--"]);
    command.arg(format!("--lines={}", drop_in.lines));
    command.arg(format!("--seed={}", drop_in.seed));
    command.arg(format!("--first={}", drop_in.first));
    if drop_in.guest {
        command.arg("--guest=yes");
    }
    if drop_in.differences {
        command.arg("--differences=yes");
    }
    if let Some(original) = &drop_in.original {
        command.arg(format!("--original={}", std::path::absolute(original)?.display()));
    }
    // Without the originals there is nothing to run: the caller asked for it, so that is a failure.
    command.env("CI", "true");
    let result = program::show(&mut command);
    println!("{} lines of seed {}: {:.0} s", drop_in.lines, drop_in.seed, start.elapsed().as_secs_f64());
    result
}
