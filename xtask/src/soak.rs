//! `lab-soak`: the model of the allocator beside a real kernel, on many more drawn machines and scripts
//! than the tests have.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use nodewise_lab::Arch;

use crate::{program, setup};

/// The machines to play, and where.
pub struct Soak {
    /// The kernel, by the start of its release.
    pub kernel: String,
    pub arch: Arch,
    /// The number of the first machine.
    pub first: u64,
    /// How many machines are drawn and booted.
    pub machines: u64,
    /// How many scripts are played on each.
    pub scripts: u64,
    /// Kinds of scripts, as `lab --check --kind` takes them; of `None` those of calls, beside the other checks of the model.
    pub kinds: Option<String>,
}

/// Fetches the kernel where it is missing, and plays the scripts; fails when any of them differs.
pub fn run(root: &Path, soak: &Soak) -> Result<()> {
    setup::run(&[(soak.kernel.clone(), soak.arch)])?;
    let start = Instant::now();
    // Guests read the programs page by page from the host: small ones.
    let small = ["--config", "profile.dev.debug=false", "--config", "profile.dev.strip='symbols'"];
    let mut command = program::lab_tests(root, &small);
    command.args([
        format!("--soak={}", soak.machines),
        format!("--first={}", soak.first),
        format!("--scripts={}", soak.scripts),
        format!("--kernel={}", soak.kernel),
        format!("--arch={}", soak.arch.debian()),
        // Machines that were drawn, and not those of the tests.
        "drawn-".to_owned(),
    ]);
    if let Some(kinds) = &soak.kinds {
        command.args([format!("--kind={kinds}"), "--checks=drawn_scripts_end".to_owned()]);
    }
    let result = program::show(&mut command);
    let kinds = soak.kinds.as_deref().map_or(1, |kinds| kinds.split(',').count() as u64);
    println!(
        "{} scripts on {} machines, Linux {} for {}: {:.0} s",
        soak.machines * soak.scripts * kinds,
        soak.machines,
        soak.kernel,
        soak.arch.debian(),
        start.elapsed().as_secs_f64()
    );
    result
}
