//! What benchmarks need: looking for programs, and installing Debian's packages.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use nodewise_measure::suite::{Benchmark, Need, Origin, Suite};
use nodewise_syscall::Errno;

use crate::failure::Failure;
use crate::output;

/// Whether a program is there: a path from the root, or a name that one of the search path's folders has.
pub fn is_there(program: &str, path: Option<&OsStr>) -> bool {
    if program.starts_with('/') {
        return Path::new(program).exists();
    }
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    path.is_some_and(|path| env::split_paths(path).any(|folder| is_program(&folder.join(program))))
}

/// What a benchmark lacks here.
pub fn lacking(benchmark: &Benchmark) -> Vec<&Need> {
    let path = env::var_os("PATH");
    benchmark.needs.iter().filter(|need| !is_there(&need.program, path.as_deref())).collect()
}

/// What a benchmark lacks here and where it comes from, as a sentence; `None` where nothing is missing.
pub fn missing(benchmark: &Benchmark) -> Option<String> {
    let lacking = lacking(benchmark);
    if lacking.is_empty() {
        return None;
    }
    let programs: Vec<&str> = lacking.iter().map(|need| need.program.as_str()).collect();
    let addresses = lacking.iter().filter_map(|need| match &need.origin {
        Origin::Address(address) => Some(address.clone()),
        Origin::Package(_) => None,
    });
    let packages = packages_of(lacking.iter().copied());
    let apt = (!packages.is_empty()).then(|| apt_line(&packages));
    let from: Vec<String> = apt.into_iter().chain(addresses).collect();
    Some(format!("{} not installed: {}", programs.join(", "), from.join("; ")))
}

fn packages_of<'a>(needs: impl Iterator<Item = &'a Need>) -> BTreeSet<&'a str> {
    let package = |need: &'a Need| match &need.origin {
        Origin::Package(package) => Some(package.as_str()),
        Origin::Address(_) => None,
    };
    needs.filter_map(package).collect()
}

/// The line that installs packages.
fn apt_line(packages: &BTreeSet<&str>) -> String {
    let packages: Vec<&str> = packages.iter().copied().collect();
    format!("apt-get install {}", packages.join(" "))
}

/// The line that installs everything of Debian that a suite lacks; `None` where that is nothing.
pub fn apt_line_of(suite: &Suite) -> Option<String> {
    let lacking: Vec<&Need> = suite.benchmarks.iter().flat_map(lacking).collect();
    let packages = packages_of(lacking.into_iter());
    (!packages.is_empty()).then(|| apt_line(&packages))
}

/// Without it apt-get takes a name that no package has, and that has a dot in it, for a pattern, and installs
/// whatever matches.
const NO_PATTERNS: &str = "APT::Cmd::Pattern-Only=true";

/// Installs everything of Debian that a suite lacks, and says so. Nothing that is installed is removed for it,
/// and a name is that of a package, never a pattern.
///
/// # Errors
/// Without being root, without apt-get, when it fails, and when a program is missing all the same.
pub fn install(suite: &Suite) -> Result<(), Failure> {
    let Some(line) = apt_line_of(suite) else { return Ok(()) };
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::cannot(format_args!("--install needs root: it would run {line}")));
    }
    let lacking: Vec<&Need> = suite.benchmarks.iter().flat_map(lacking).collect();
    output::tell(&format!("running {line}"));
    let mut command = Command::new("apt-get");
    command
        .args(["install", "--yes", "--no-remove", "-o", NO_PATTERNS, "--"])
        .args(packages_of(lacking.iter().copied()));
    // What it prints is no result of ours.
    command.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).stdout(std::io::stderr());
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(_) => {
            return Err(Failure::cannot(format_args!(
                "--install: {line} has failed (apt-get update may be needed before)"
            )));
        }
        Err(error) => {
            return Err(Failure::cannot(format_args!(
                "--install: cannot run apt-get: {}",
                Errno::in_words(&error)
            )));
        }
    }
    still_missing(&lacking).map_or(Ok(()), |why| Err(Failure::cannot(why)))
}

/// What is not there although its package was installed, as a sentence.
fn still_missing(lacked: &[&Need]) -> Option<String> {
    let path = env::var_os("PATH");
    let one = |need: &&Need| match &need.origin {
        Origin::Package(package) if !is_there(&need.program, path.as_deref()) => {
            Some(format!("{} of {package}", need.program))
        }
        _ => None,
    };
    let missing: Vec<String> = lacked.iter().filter_map(one).collect();
    (!missing.is_empty()).then(|| {
        let missing = missing.join(", ");
        format!("--install: apt-get was content, but the search path has no {missing}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_measure::suite::parse::parse;

    #[test]
    fn a_program_is_there_when_it_can_be_executed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("data"), "x").unwrap();
        let path = env::join_paths([Path::new("/bin"), folder.path()]).unwrap();
        assert!(is_there("sh", Some(&path)) && is_there("/bin/sh", None));
        assert!(!is_there("data", Some(&path)), "a file that cannot be executed is no program");
        assert!(!is_there("sh", None) && !is_there("/bin/no-such-program", None));
    }

    #[test]
    fn what_is_missing_is_told_with_the_line_that_installs_it() {
        let suite = parse(
            "title = 't'\n[[benchmark]]\nname = 'a'\ncommand = 'a'\n\
             needs = { sh = 'dash', nodewise-a = 'a2', nodewise-b = 'b2', nodewise-c = 'https://example.org' }\n",
        )
        .unwrap();
        assert_eq!(
            missing(&suite.benchmarks[0]).as_deref(),
            Some(
                "nodewise-a, nodewise-b, nodewise-c not installed: apt-get install a2 b2; https://example.org"
            )
        );
        assert_eq!(apt_line_of(&suite).as_deref(), Some("apt-get install a2 b2"));
    }
}
