//! `cargo xtask topology`: what lscpu and hwloc say of the captures of the corpus, as facts that a test of
//! `nodewise-source` holds our reading of the same captures to.
//!
//! A fact is a line such as `package 0-11` or `node 1 memory 134209536`: what a peer prints, in one form for both
//! peers and without what says whose machine it was. The facts are recorded beside that test, so that it needs no
//! peer.

mod hwloc;
mod lscpu;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::program;

/// Where the facts are recorded.
const RECORDS: &str = "crates/source/tests/corpus/topology/records";

/// A program that reads the files of another machine.
struct Peer {
    /// Its name, and the ending of its records.
    name: &'static str,
    version: fn() -> Result<String>,
    /// Its facts about the machine in a folder; `None` where it refuses the folder.
    facts: fn(&Path) -> Result<Option<BTreeSet<String>>>,
}

const PEERS: [Peer; 2] = [
    Peer { name: "lscpu", version: lscpu::version, facts: lscpu::facts },
    Peer { name: "hwloc", version: hwloc::version, facts: hwloc::facts },
];

/// Runs the peers on every capture, compares what they say with the records or replaces these, then runs the test.
pub fn run(root: &Path, record: bool) -> Result<()> {
    let captures = corpus(root)?;
    let mut differences = 0;
    for peer in &PEERS {
        let version = (peer.version)()?;
        println!("{} {version}", peer.name);
        for capture in &captures {
            let name = capture.file_name().unwrap_or_default().to_string_lossy();
            let name = name.split(".tar").next().unwrap_or_default().to_owned();
            let folder = tempfile::tempdir()?;
            let top = unpacked(capture, folder.path())?;
            let facts = (peer.facts)(&top).with_context(|| format!("{} of {name}", peer.name))?;
            let path = root.join(RECORDS).join(format!("{name}.{}", peer.name));
            let recorded = fs::read_to_string(&path).unwrap_or_default();
            let text = facts.map(|facts| text(peer.name, &version, &facts)).unwrap_or_default();
            if record {
                write(&path, &text)?;
            } else if without_heads(&recorded) != without_heads(&text) {
                differences += 1;
                println!("  {name}: differs from its record ({})", path.display());
            }
        }
    }
    if differences > 0 {
        bail!("{differences} records differ: look at them with --record and git diff");
    }
    program::show(program::cargo(root).args([
        "test",
        "-q",
        "-p",
        "nodewise-source",
        "--test",
        "corpus",
        "topology",
    ]))
}

/// The captures of the corpus, sorted.
fn corpus(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = std::env::var_os("NODEWISE_CORPUS").map_or_else(|| root.join("data"), PathBuf::from);
    let folder = folder.join("captures");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut captures: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    captures.sort();
    Ok(captures)
}

/// Unpacks a capture; the folder in which its `sys` or `proc` is.
fn unpacked(capture: &Path, folder: &Path) -> Result<PathBuf> {
    program::quiet(Command::new("tar").arg("-xf").arg(capture).arg("-C").arg(folder))?;
    let mut at = folder.to_owned();
    while !at.join("sys").exists() && !at.join("proc").exists() {
        let mut entries = fs::read_dir(&at)?.flatten();
        match (entries.next(), entries.next()) {
            (Some(only), None) => at = only.path(),
            _ => bail!("{}: expected one folder with sys or proc in it", capture.display()),
        }
    }
    Ok(at)
}

fn text(peer: &str, version: &str, facts: &BTreeSet<String>) -> String {
    let mut text = format!("# {peer} {version}\n");
    facts.iter().for_each(|fact| text.push_str(&format!("{fact}\n")));
    text
}

/// A model without the blanks that some are padded with.
fn one_blank(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn without_heads(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

/// Writes a record; a peer that refuses the machine leaves none.
fn write(path: &Path, text: &str) -> Result<()> {
    if text.is_empty() {
        return if path.exists() { fs::remove_file(path).map_err(Into::into) } else { Ok(()) };
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
