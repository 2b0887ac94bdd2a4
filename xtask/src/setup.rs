//! `lab-setup`: everything the lab and the tests need, on Debian and Ubuntu.
//!
//! Packages of the system need root; without it the command lines to run are printed. Kernels and
//! virtme-ng go into the cache folder and need no privilege.

mod apt;
mod kernel;
mod modules;
mod system;
mod virtme;

use std::fs::{self, File};

use anyhow::{Context, Result, bail};
use nodewise_lab::Cache;
use rustix::fs::{FlockOperation, flock};

/// Fetches and installs whatever is missing, with one line for each thing. Quick when all is there.
pub fn run(versions: &[String]) -> Result<()> {
    let cache = Cache::locate()?;
    fs::create_dir_all(cache.root())
        .with_context(|| format!("cannot make the cache folder {}", cache.root().display()))?;
    // Two at once would fetch everything twice into the same place.
    let lock = File::create(cache.root().join("lock")).context("cannot make the lock of the cache folder")?;
    flock(&lock, FlockOperation::LockExclusive).context("cannot lock the cache folder")?;
    let commands = system::install(&cache)?;
    let mut failed = 0;
    if commands.is_empty() {
        virtme::install(&cache)?;
        for version in versions {
            if let Err(error) = kernel::install(&cache, version) {
                println!("kernel {version}: {error:#}");
                failed += 1;
            }
        }
    } else {
        println!("root is needed to install them; run:");
        for command in &commands {
            println!("  sudo {command}");
        }
        bail!("run the lines above, then this command again");
    }
    if failed > 0 {
        bail!("{failed} of {} kernels could not be fetched", versions.len());
    }
    Ok(())
}
