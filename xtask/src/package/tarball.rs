//! The static command with its pages and completions, for any distribution.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::tree::{Trees, put, strip, walk};
use super::{Packaging, empty};
use crate::libnuma::build::Tools;
use crate::program;

/// Files of the clone that go along.
const FILES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Makes it.
pub fn make(packaging: &Packaging, fixed: &Path, tools: &Tools, trees: &Trees) -> Result<PathBuf> {
    let name = format!("nodewise-{}-{}-linux", packaging.version, packaging.platform.kernel());
    let work = packaging.work("tarball");
    empty(&work)?;
    let folder = work.join(&name);
    let from = trees.root("nodewise");
    walk(&from.join("usr/share"), &mut |path| {
        let inside = path.strip_prefix(from.join("usr")).unwrap_or(path);
        let is_debians = inside.starts_with("share/doc") || inside.starts_with("share/lintian");
        if path.is_file() && !is_debians { put(path, &folder.join(inside)) } else { Ok(()) }
    })?;
    let command = folder.join("usr/bin/nodewise");
    put(fixed, &command)?;
    strip(tools, &command)?;
    fs::rename(folder.join("usr/bin"), folder.join("bin"))?;
    fs::remove_dir(folder.join("usr"))?;
    for file in FILES {
        put(&packaging.root.join(file), &folder.join(file))?;
    }
    let file = packaging.out.join(format!("{name}.tar.xz"));
    let mut tar = Command::new("tar");
    tar.current_dir(&work).args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    tar.arg(format!("--mtime=@{}", packaging.date)).arg("--mode=u=rwX,go=rX");
    tar.args(["-I", "xz -9"]).arg("-cf").arg(&file).arg(&name);
    program::quiet(&mut tar)?;
    Ok(file)
}
