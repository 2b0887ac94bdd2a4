//! `balance-soak`: twelve programs that start and end in a guest of four nodes, under each manager in turn.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;
use nodewise_lab::Arch;
use nodewise_lab::kernel::DEFAULT_VERSION;

use crate::{program, setup};

/// A manager, or the evaluation of balance by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Manager {
    Nodewise,
    Numad,
    Kernel,
    None,
    Evaluate,
}

impl Manager {
    /// The part of its check's name.
    const fn check(self) -> &'static str {
        match self {
            Self::Nodewise => "by_nodewise",
            Self::Numad => "by_numad",
            Self::Kernel => "by_the_kernel",
            Self::None => "by_none",
            Self::Evaluate => "an_evaluation",
        }
    }
}

/// Runs the programs for a number of minutes under each manager, one after the other in one guest; fails when one was outside
/// of its cpuset or against its policy, and when undo leaves something behind.
///
/// `tried` is the nodewise that is tried; without it that of the tests, which is not optimised.
pub fn run(root: &Path, minutes: f64, with: &[Manager], tried: Option<&Path>, install: bool) -> Result<()> {
    ensure!((0.5..=600.0).contains(&minutes), "expected 0.5 to 600 minutes");
    if with.contains(&Manager::Numad) && !Path::new("/usr/bin/numad").exists() {
        if !install {
            bail!("numad is missing: apt-get install numad, or --install");
        }
        program::install_packages(&["numad"])?;
    }
    setup::run(&[(DEFAULT_VERSION.to_owned(), Arch::X86)])?;
    let mut command = program::lab_tests(root, &[]);
    let checks: Vec<&str> = with.iter().map(|manager| manager.check()).collect();
    command.args([format!("--managed={:.0}", minutes * 60.0), format!("--checks={}", checks.join(","))]);
    if let Some(tried) = tried {
        let tried = tried.canonicalize().with_context(|| tried.display().to_string())?;
        command.arg(format!("--nodewise={}", tried.display()));
    }
    // The figures are what the checks write.
    command.args(["--times", "managed::"]).env("CI", "true");
    program::show(&mut command)
}
