//! virtme-ng in a virtual environment of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use nodewise_lab::Cache;
use nodewise_lab::cache::VIRTME_VERSION;

use crate::program;

/// Installs virtme-ng unless it is there.
pub fn install(cache: &Cache) -> Result<()> {
    let folder = cache.virtme();
    // The link to Python dangles when the system's was replaced by a newer one.
    if cache.virtme_mark().is_file() && folder.join("bin/python3").is_file() {
        println!("virtme-ng: {VIRTME_VERSION} is there");
        return Ok(());
    }
    let python = python()?;
    println!("virtme-ng: installing {VIRTME_VERSION} with {}", python.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    program::quiet(Command::new(&python).args(["-m", "venv"]).arg(&folder))?;
    program::quiet(
        Command::new(folder.join("bin/python3"))
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"])
            .arg(format!("virtme-ng=={VIRTME_VERSION}")),
    )?;
    fs::write(cache.virtme_mark(), "").context("cannot mark virtme-ng as complete")?;
    println!("virtme-ng: {VIRTME_VERSION} is there now");
    Ok(())
}

/// A Python that can make virtual environments: the system's rather than one that a version manager
/// put into PATH and may take away.
fn python() -> Result<PathBuf> {
    let candidates = [Path::new("/usr/bin/python3"), Path::new("python3")];
    let able =
        |python: &&Path| program::quiet(Command::new(python).args(["-c", "import ensurepip, venv"])).is_ok();
    match candidates.into_iter().find(able) {
        Some(python) => Ok(python.to_owned()),
        None => bail!("no python3 can make virtual environments: package python3-venv is missing"),
    }
}
