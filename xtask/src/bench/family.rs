//! The personalities beside the originals.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Pair, Suite, fixture};
use crate::program;

/// Mappings of the process that numastat looks at: a database with many files and threads.
const MAPPINGS: u32 = 60_000;

/// Processes that a pattern is looked for in.
const PROCESSES: usize = 1_000;

/// The tools under their own names, on this machine and on processes made for it.
pub fn suite(nodewise: &Path) -> Result<Suite> {
    let folder = nodewise.parent().context("the command lies in no folder")?.join("links");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    program::quiet(Command::new(nodewise).arg("links").arg(&folder).arg("--force"))?;
    let pair = |what, tool: &str, words: &str| {
        Pair::new(what, &folder.join(tool), words, &Path::new("/usr/bin").join(tool), words)
    };
    let large = fixture::mappings(MAPPINGS)?;
    let mut holders = fixture::sleepers(PROCESSES)?;
    let of_large = format!("-p {}", large.pid());
    let file_of_large = format!("/proc/{}/numa_maps", large.pid());
    holders.push(large);
    // Beside those that do little, a program that does nothing; beside the one that reads most, reading alone.
    let nothing = ["/bin/true"];
    let pairs = vec![
        pair("numactl: the machine", "numactl", "--hardware").beside(&nothing),
        pair("numactl: own policy", "numactl", "--show").beside(&nothing),
        pair("numactl: run", "numactl", "-l true"),
        pair("numastat: counters", "numastat", "").beside(&nothing),
        pair("numastat: memory", "numastat", "-m").beside(&nothing),
        pair("numastat: 60,000 mappings", "numastat", &of_large).beside(&["/bin/cat", &file_of_large]),
        pair("numastat: a pattern in 1,000 processes", "numastat", "-p nosuchprocess"),
    ];
    Ok(Suite { pairs, holders })
}
