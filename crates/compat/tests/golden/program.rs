//! Programs under test, as a guest gets them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program without what is for debuggers where that can be taken away: a guest reads it slowly.
/// The name is that of a file of its own: guests of several tests may be booted at once.
pub fn stripped(program: &Path, name: &str) -> PathBuf {
    let small = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.program"));
    let stripped = Command::new("strip").arg("-o").arg(&small).arg(program).status();
    if stripped.is_ok_and(|status| status.success()) { small } else { program.to_owned() }
}
