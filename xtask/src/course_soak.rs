//! `course-soak`: far memory that follows its programs in a guest, beside the bands of the model.

use std::path::Path;

use anyhow::Result;
use nodewise_lab::Arch;

use crate::{program, setup};

/// Fetches the kernel where it is missing, and plays every case; fails when a case has fewer runs in its
/// bands, at its three times together, than an exact model has in all but two of a thousand.
pub fn run(root: &Path, kernel: &str, checks: &[String]) -> Result<()> {
    setup::run(&[(kernel.to_owned(), Arch::X86)])?;
    let mut command = program::lab_tests(root, &[]);
    command.args(["--courses", "--times", &format!("--kernel={kernel}"), "course::"]);
    if !checks.is_empty() {
        command.arg(format!("--checks={}", checks.join(",")));
    }
    program::show(&mut command)
}
