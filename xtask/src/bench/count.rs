//! Exact counts: instructions in user space by callgrind, system calls by strace.
//!
//! A command that ends in another program is counted up to there: it is given a program that does not
//! exist, so that the counters' own programs see it end.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::plain;

/// The cost of one run.
pub struct Counts {
    pub instructions: u64,
    pub system_calls: u64,
}

/// The name that no program has.
const NOWHERE: &str = "/nonexistent";

/// Counts one run.
pub fn count(words: &[String]) -> Result<Counts> {
    let words: Vec<&str> = words.iter().map(|word| if word == "true" { NOWHERE } else { word }).collect();
    let instructions = instructions(plain(&mut Command::new("valgrind")), &words)?;
    Ok(Counts { instructions, system_calls: system_calls(&words)? })
}

/// Instructions of a command line in user space, by a valgrind whose environment the caller has set.
pub fn instructions(valgrind: &mut Command, words: &[impl AsRef<OsStr>]) -> Result<u64> {
    let tool = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let said = complaint(valgrind.args(tool).args(words))?;
    let line = said.lines().find_map(|line| line.split_once("Collected : "));
    let number = line.context("valgrind names no number of instructions")?.1;
    number.trim().parse().with_context(|| format!("{number} is not a number of instructions"))
}

fn system_calls(words: &[&str]) -> Result<u64> {
    let said = complaint(plain(Command::new("strace").args(words)))?;
    let calls = said.lines().filter(|line| line.contains(" = "));
    Ok(calls.count() as u64)
}

/// Returns what a command writes to standard error.
fn complaint(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output();
    let output =
        output.with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}
