//! `tidy`: the rules of ARCHITECTURE.md that no lint can check.

mod arrows;
mod circles;
mod commits;
mod documented;
mod language;
mod licences;
mod map;
mod names;
mod paths;
mod readability;
mod rules;
mod rust;
mod text;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::program;

/// A place where the tree breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breach {
    /// The file, from the root of the repository.
    path: String,
    /// The line, counted from 1.
    line: usize,
    /// The fault and what would be right.
    message: String,
}

impl Breach {
    fn new(path: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line, message: message.into() }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Where the rules are written.
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// Checks the tree and prints each place that breaks a rule, and the counts of the language check.
///
/// `listed` prints every place that the language check counts, also where the limit allows it.
pub fn run(root: &Path, listed: bool) -> Result<()> {
    let (findings, counts) = check(root, listed)?;
    for finding in &findings {
        println!("{finding}");
    }
    println!("{counts}");
    match findings.len() {
        0 => Ok(()),
        1 => bail!("tidy found one thing"),
        count => bail!("tidy found {count} things"),
    }
}

/// Prints the readability of each page: README.md and docs.
pub fn readability(root: &Path) -> Result<()> {
    println!("{}", readability::HEADER);
    for path in tracked(root)?.iter().filter(|path| path.ends_with(".md")) {
        if let Ok(text) = fs::read_to_string(root.join(path)) {
            println!("{}", readability::row(path, &text));
        }
    }
    Ok(())
}

fn check(root: &Path, listed: bool) -> Result<(BTreeSet<Breach>, language::Counts)> {
    let architecture = fs::read_to_string(root.join(ARCHITECTURE)).context("cannot read ARCHITECTURE.md")?;
    let files = tracked(root)?;
    let mut findings = BTreeSet::new();
    let mut sources = Vec::new();
    let mut hits = language::subjects(&subjects(root));
    let log = log(root, &["-p", "-U0", "-M", "--no-color", "--no-ext-diff", commits::FORMAT]);
    findings.extend(commits::check(&log.unwrap_or_default()));
    findings.extend(arrows::check(&architecture, &arrows::dependencies(root)?));
    findings.extend(licences::check(&licences::packages(root)?));
    let roots = map::roots(&files, |path| fs::read_to_string(root.join(path)).ok());
    findings.extend(map::check(&roots, &files));
    for path in &files {
        // Deleted but not yet committed, or not text.
        let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
        findings.extend(text::check(path, &text));
        hits.extend(language::check(path, &text));
        if path.ends_with(".rs") {
            findings.extend(rules::check(path, &text));
            findings.extend(names::check(path, &text));
            findings.extend(documented::check(path, &text));
            sources.push((path.clone(), text));
        }
    }
    findings.extend(circles::check(&sources));
    findings.extend(rules::idle_permits(&sources));
    let counts = language::Counts::new(&hits);
    findings.extend(counts.findings(hits, listed));
    Ok((findings, counts))
}

/// The log of this branch since it left main, with these options. `None` without git or without a main to
/// compare with: an archive of the sources has no history to check.
fn log(root: &Path, options: &[&str]) -> Option<String> {
    let since = |main: &str| {
        let mut command = Command::new("git");
        command.current_dir(root).arg("log").args(options).arg(format!("{main}..HEAD"));
        program::read(&mut command).ok()
    };
    since("origin/main").or_else(|| since("main"))
}

/// The commits of this branch: `(short hash, subject)`.
fn subjects(root: &Path) -> Vec<(String, String)> {
    log(root, &["--format=%h%x09%s"])
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(hash, subject)| (hash.to_owned(), subject.to_owned()))
        .collect()
}

/// The files that are, or would be, in the repository.
fn tracked(root: &Path) -> Result<Vec<String>> {
    let mut command = Command::new("git");
    command.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = program::read(&mut command)?;
    Ok(list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}
