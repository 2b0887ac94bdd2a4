//! The packages as the distributions' own checkers see them: an error of one is an error.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::need;
use crate::program;

/// Checks packages with lintian and rpmlint. Exceptions, with their reasons: `packaging/debian/*.lintian-overrides`,
/// `packaging/rpm/nodewise.rpmlintrc`.
pub fn run(root: &Path, made: &[PathBuf]) -> Result<()> {
    need(&["lintian", "rpmlint"])?;
    let mut lintian = Command::new("lintian");
    lintian.args(["--fail-on", "error", "--tag-display-limit", "0"]);
    if rustix::process::geteuid().is_root() {
        lintian.arg("--allow-root");
    }
    program::show(lintian.args(with_end(made, "deb")))?;
    let mut rpmlint = Command::new("rpmlint");
    rpmlint.arg("--rpmlintrc").arg(root.join("packaging/rpm/nodewise.rpmlintrc"));
    program::show(rpmlint.args(with_end(made, "rpm")))
}

fn with_end<'a>(files: &'a [PathBuf], end: &str) -> impl Iterator<Item = &'a PathBuf> {
    files.iter().filter(move |file| file.extension() == Some(OsStr::new(end)))
}
