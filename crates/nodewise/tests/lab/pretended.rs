//! `nodewise pretend` beside a guest of the same machine: the same program plays the same scripts in both.

use std::process::Command;

use libtest_mimic::Failed;
use nodewise_lab::{KernelChoice, Lab};

/// Scripts of each kind, with memory that is replaced, moved and given back between their calls. `cargo xtask pretend-lab` plays
/// more, on more machines.
const SCRIPTS: &str = "--scripts=3";
const MACHINE: &str = "--machine=2x(2c 512M); dist=21";

/// Each call has the same answer, and each page is on the same node.
pub fn is_like_a_guest() -> Result<(), Failed> {
    if let Err(line) = Lab::for_test(&KernelChoice::default()) {
        eprintln!("{line}");
        return Ok(());
    }
    let mut play = Command::new(env!("CARGO"));
    // The tests' own compiler may be one that looks for lints.
    play.env_remove("RUSTC_WORKSPACE_WRAPPER");
    play.args(["run", "--quiet", "--package", "xtask", "--", "pretend-lab", "--changes", SCRIPTS, MACHINE]);
    play.arg(format!("--nodewise={}", env!("CARGO_BIN_EXE_nodewise")));
    let output = play.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && said.contains(" scripts the same, 0 different") {
        return Ok(());
    }
    Err(format!("{}\n{said}{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}
