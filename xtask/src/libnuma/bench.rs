//! `libnuma-bench`: what loading and calling cost, with our library and with Debian's, in one run.
//!
//! Both take turns, several rounds, and of each figure the best round counts: every round is a process
//! of its own, so that no figure hangs on where the loader puts a library. What loading any library
//! costs is measured in the same process with an empty one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Destination, build, own};
use crate::bench::count;
use crate::program;

/// How often both take a turn.
const ROUNDS: usize = 15;

/// Figures by name, with a number that keeps the order in which they came.
type Figures = BTreeMap<(usize, String), f64>;

/// Builds the library and the programs, runs them in turns, and prints a table.
pub fn run(root: &Path) -> Result<()> {
    let platform = own()?;
    let out = build::target_folder(root).join("libnuma").join(platform.compiler());
    super::run(root, Some(platform), Destination::in_folder(out.clone()))?;
    let lib = std::path::absolute(out.join("lib"))?;
    let original = original()?;
    let programs = tempfile::tempdir()?;
    for name in ["calls", "load", "linked"] {
        compile(root, &out, programs.path(), name, name, &[])?;
    }
    compile(root, &out, programs.path(), "linked", "alone", &["-DNONE"])?;
    program::quiet(
        Command::new("gcc")
            .args(["-shared", "-nostdlib", "-x", "c", "/dev/null", "-o"])
            .arg(programs.path().join("empty.so")),
    )?;
    let (mut ours, mut theirs) = (Figures::new(), Figures::new());
    for _ in 0..ROUNDS {
        round(&mut ours, programs.path(), &lib)?;
        round(&mut theirs, programs.path(), &original)?;
    }
    println!("best of {ROUNDS} rounds, in turns; ours {}, theirs {}\n", lib.display(), original.display());
    println!("| | ours | Debian's | ratio |\n|---|---:|---:|---:|");
    for ((order, name), value) in &ours {
        let other = theirs.get(&(*order, name.clone())).context("both run the same programs")?;
        println!("| {name} | {value:.1} | {other:.1} | {:.2} |", value / other);
    }
    Ok(())
}

/// The folder of Debian's library.
fn original() -> Result<PathBuf> {
    let text = program::read(Command::new("gcc").arg("-print-file-name=libnuma.so.1"))?;
    let path = Path::new(text.trim());
    if !path.is_absolute() {
        bail!("Debian's libnuma1 is missing: apt-get install libnuma1");
    }
    let path = fs::canonicalize(path)?;
    Ok(path.parent().context("a library is in a folder")?.to_owned())
}

fn compile(root: &Path, out: &Path, folder: &Path, source: &str, name: &str, flags: &[&str]) -> Result<()> {
    let mut command = Command::new("gcc");
    command.args(["-O2", "-std=gnu11", "-Wall"]).args(flags).arg("-I").arg(out.join("include"));
    command.arg(root.join(format!("crates/libnuma/benches/{source}.c"))).arg("-o").arg(folder.join(name));
    if flags.is_empty() {
        command.arg("-L").arg(out.join("lib")).args(["-lnuma", "-ldl"]);
    }
    program::quiet(&mut command)
}

/// One round with one library.
fn round(best: &mut Figures, programs: &Path, lib: &Path) -> Result<()> {
    let run = |name: &str| {
        let mut command = Command::new(programs.join(name));
        command.env("LD_LIBRARY_PATH", lib);
        command
    };
    let load = program::read(run("load").arg(lib.join("libnuma.so.1")).arg(programs.join("empty.so")))?;
    let added = instructions(programs, "linked", lib)? - instructions(programs, "alone", lib)?;
    let calls = program::read(&mut run("calls"))?;
    let lines = load.lines().map(|line| (line.to_owned(), ", us"));
    let lines = lines.chain([(format!("{added} instructions that linking adds"), "")]);
    let lines = lines.chain(calls.lines().map(|line| (line.to_owned(), ", ns")));
    for (order, (line, unit)) in lines.enumerate() {
        let (value, name) = line.split_once(' ').context("programs print a number and a name")?;
        let value: f64 = value.parse().with_context(|| line.to_owned())?;
        let figure = best.entry((order, format!("{name}{unit}"))).or_insert(f64::INFINITY);
        *figure = figure.min(value);
    }
    Ok(())
}

/// Instructions of a program in user space.
fn instructions(programs: &Path, name: &str, lib: &Path) -> Result<i64> {
    let count =
        count::instructions(Command::new("valgrind").env("LD_LIBRARY_PATH", lib), &[programs.join(name)])?;
    Ok(i64::try_from(count)?)
}
