//! `lab-setup`: everything the lab and the tests need, on Debian and Ubuntu.
//!
//! Packages of the system need root; without it the command lines to run are printed. Kernels go into the cache
//! folder and need no privilege.

pub mod apt;
mod kernel;
mod modules;
pub mod system;
mod target;

use std::fs::{self, File};

use anyhow::{Context, Result, bail};
use nodewise_lab::kernel::{DEFAULT_VERSION, TESTED_VERSIONS};
use nodewise_lab::{Arch, Cache};
use rustix::fs::{FlockOperation, flock};

/// A kernel: the start of its release, and the architecture of its guests.
pub type Wanted = (String, Arch);

/// The kernels that the tests boot.
pub fn default_kernels() -> Vec<Wanted> {
    let x86 = TESTED_VERSIONS.into_iter().map(|version| (version.to_owned(), Arch::X86));
    x86.chain([(DEFAULT_VERSION.to_owned(), Arch::Arm)]).collect()
}

/// The kernels that were asked for: all that the tests boot when nothing was said.
pub fn wanted(versions: &[String], arch: Option<Arch>) -> Vec<Wanted> {
    match (versions, arch) {
        ([], None) => default_kernels(),
        ([], Some(arch)) => vec![(DEFAULT_VERSION.to_owned(), arch)],
        (versions, arch) => {
            versions.iter().map(|version| (version.clone(), arch.unwrap_or_default())).collect()
        }
    }
}

/// Fetches and installs whatever is missing, with one line for each thing. Quick when all is there.
pub fn run(kernels: &[Wanted]) -> Result<()> {
    let cache = Cache::locate()?;
    fs::create_dir_all(cache.root())
        .with_context(|| format!("cannot make the cache folder {}", cache.root().display()))?;
    // Two at once would fetch everything twice into the same place.
    let lock = File::create(cache.root().join("lock")).context("cannot make the lock of the cache folder")?;
    flock(&lock, FlockOperation::LockExclusive).context("cannot lock the cache folder")?;
    let commands = system::install(&cache)?;
    let mut failed = 0;
    if commands.is_empty() {
        if kernels.iter().any(|(_, arch)| *arch == Arch::Arm) {
            target::install();
        }
        for (version, arch) in kernels {
            if let Err(error) = kernel::install(&cache, version, *arch) {
                println!("kernel {version} for {}: {error:#}", arch.debian());
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
        bail!("{failed} of {} kernels could not be fetched", kernels.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_word_the_kernels_of_the_tests_are_fetched() {
        let check = |versions: &[&str], arch: Option<Arch>, expected: &[(&str, Arch)]| {
            let versions: Vec<String> = versions.iter().map(|text| (*text).to_owned()).collect();
            let found = wanted(&versions, arch);
            let found: Vec<(&str, Arch)> = found.iter().map(|(text, arch)| (text.as_str(), *arch)).collect();
            assert_eq!(found, expected);
        };
        let all = [("6.12", Arch::X86), ("6.18", Arch::X86), ("6.1", Arch::X86), ("6.12", Arch::Arm)];
        check(&[], None, &all);
        check(&[], Some(Arch::Arm), &[("6.12", Arch::Arm)]);
        check(&["6.1", "6.18"], None, &[("6.1", Arch::X86), ("6.18", Arch::X86)]);
        check(&["6.18"], Some(Arch::Arm), &[("6.18", Arch::Arm)]);
    }
}
