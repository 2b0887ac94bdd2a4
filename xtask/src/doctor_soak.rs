//! `doctor-soak`: rules of doctor in guests that are made sick for each of them; in `doctor_soak/` healthy guests
//! (`doctor_soak/busy.rs`).

pub mod busy;

use std::path::Path;

use anyhow::Result;
use nodewise_lab::Arch;
use nodewise_lab::kernel::TESTED_VERSIONS;

use crate::{program, setup};

/// Makes the guests sick, and fails when a rule does not fire, or still fires when its mend was done.
pub fn run(root: &Path, rules: &[String]) -> Result<()> {
    // Some rules are about what older or newer kernels do.
    let kernels = TESTED_VERSIONS.map(|version| (version.to_owned(), Arch::X86));
    setup::run(&kernels)?;
    let mut command = program::lab_tests(root, &[]);
    command.args(["--sick", "--times"]);
    if !rules.is_empty() {
        command.arg(format!("--checks={}", rules.join(",")));
    }
    // Without the lab there is nothing to run: the caller asked for it, so that is a failure.
    command.arg("sick").env("CI", "true");
    program::show(&mut command)
}
