//! What is done to nodewise rather than by it: `cargo xtask --help`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "xtask talks to the person who started it")]

mod fuzz;
mod program;
mod setup;
mod suite;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "What is done to nodewise rather than by it", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install and fetch what the lab needs: QEMU, virtme-ng, kernels
    LabSetup {
        /// A kernel to fetch, by the start of its release (6.12, 6.18, 6.1); may be repeated
        #[arg(long = "kernel", value_name = "VERSION", default_values = [nodewise_lab::kernel::DEFAULT_VERSION])]
        kernels: Vec<String>,
    },
    /// Run the fuzz targets, one after the other
    Fuzz {
        /// Targets to run [default: all]
        targets: Vec<String>,
        /// How long each runs
        #[arg(long, default_value_t = 600)]
        seconds: u32,
    },
    /// Compare the tree with the rules of ARCHITECTURE.md
    Tidy,
    /// Set up the lab, then run format, lints, tidy and every test
    Test {
        /// Leave out the lab: no set-up, and tests that need it are skipped
        #[arg(long)]
        skip_lab: bool,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::LabSetup { kernels } => setup::run(&kernels),
        Task::Fuzz { targets, seconds } => root().and_then(|root| fuzz::run(&root, &targets, seconds)),
        Task::Tidy => root().and_then(|root| tidy::run(&root)),
        Task::Test { skip_lab } => root().and_then(|root| suite::run(&root, skip_lab)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> anyhow::Result<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().context("xtask's folder has no parent")?;
    Ok(root.to_owned())
}
