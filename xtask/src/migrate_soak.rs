//! `migrate-soak`: memory that moves at a rate in a guest, while its program works on it.

use std::path::Path;

use anyhow::{Result, ensure};
use nodewise_lab::Arch;
use nodewise_lab::kernel::DEFAULT_VERSION;
use nodewise_machine::Bytes;

use crate::{program, setup};

/// Moves memory of this size at this many bytes a second: all of it, until Ctrl-C in the middle, and until its program
/// ends; fails when the speed is off, or a page is not where the report has it.
pub fn run(root: &Path, size: Bytes, rate: Bytes) -> Result<()> {
    ensure!(size >= Bytes::MIB && rate >= Bytes::MIB, "expected a size and a rate of 1M or more");
    setup::run(&[(DEFAULT_VERSION.to_owned(), Arch::X86)])?;
    let mut command = program::lab_tests(root, &[]);
    command.args([format!("--migrate={}", size.mib()), format!("--rate={}", rate.mib())]);
    command.args(["--times", "migration::"]);
    // Without the lab there is nothing to run: the caller asked for it, so that is a failure.
    command.env("CI", "true");
    program::show(&mut command)
}
