//! Recorded outputs of the originals.
//!
//! They are in `data/golden`: a line of JSON per command.

use std::path::{Path, PathBuf};

use nodewise_compat::Release;
use serde::Deserialize;

/// A command of an original, and what it answered.
#[derive(Clone, Debug, Deserialize)]
pub struct Record {
    /// The release, in words: `numactl 2.0.16-1 (Debian bookworm)`.
    pub tool: String,
    /// The subject of the commands around it.
    pub section: String,
    /// The words of the command with a blank between them; quotes are lost.
    pub cmd: String,
    /// Its exit status, as a shell gives it.
    pub rc: i32,
    /// Standard output; the full usage text is `<NUMACTL-USAGE>` or `<NUMASTAT-USAGE>`.
    pub stdout: String,
    pub stderr: String,
}

impl Record {
    /// Whose answer it is; `None` for a release that is not imitated.
    pub fn release(&self) -> Option<Release> {
        [Release::V2_0_16, Release::V2_0_19].into_iter().find(|release| self.tool.contains(release.number()))
    }
}

/// The folder of the records.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/golden")
}

/// Reads one file of records by name: `numactl-4n`.
pub fn read(folder: &Path, name: &str) -> Vec<Record> {
    read_file(&folder.join(format!("{name}.jsonl")))
}

/// Reads one file of records.
pub fn read_file(path: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .enumerate()
        .map(|(at, line)| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{}:{}: {error}", path.display(), at + 1))
        })
        .collect()
}
