//! This program, as a guest gets it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// This program, without what is for debuggers where that can be taken away: a guest reads it slowly.
/// The name is that of a file of its own: guests of several tests may be booted at once.
pub fn stripped(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its own path");
    let small = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.program"));
    let stripped = Command::new("strip").arg("-o").arg(&small).arg(&own).status();
    if stripped.is_ok_and(|status| status.success()) { small } else { own }
}
