//! Needs of benchmarks: looking for programs, and installing Debian's packages.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nodewise_experiment::suite::{Benchmark, Need, Origin, Suite};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::io_words;

use crate::failure::Failure;
use crate::output;

/// Where a program is: a path from the root, or a name that one of the search path's folders has.
pub fn find(program: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    if program.starts_with('/') {
        return Some(PathBuf::from(program)).filter(|path| path.exists());
    }
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    env::split_paths(path?).map(|folder| folder.join(program)).find(is_program)
}

/// The programs that some benchmarks need and that are not here.
pub struct Lacking<'a> {
    pub needs: Vec<&'a Need>,
}

impl<'a> Lacking<'a> {
    /// Looks for the programs of these benchmarks.
    pub fn from_benchmarks(benchmarks: &'a [Benchmark]) -> Self {
        let path = env::var_os("PATH");
        let needs = benchmarks.iter().flat_map(|benchmark| &benchmark.needs);
        Self { needs: needs.filter(|need| find(&need.program, path.as_deref()).is_none()).collect() }
    }

    /// Says what is lacking and where it comes from, as a sentence; `None` where nothing is.
    pub fn sentence(&self) -> Option<String> {
        let programs: Vec<&str> = self.needs.iter().map(|need| need.program.as_str()).collect();
        let addresses = self.needs.iter().filter_map(|need| match &need.origin {
            Origin::Address(address) => Some(address.clone()),
            Origin::Package(_) => None,
        });
        let from: Vec<String> = self.apt_line().into_iter().chain(addresses).collect();
        (!programs.is_empty()).then(|| format!("{} not installed: {}", programs.join(", "), from.join("; ")))
    }

    /// The packages of Debian that are lacking.
    fn packages(&self) -> BTreeSet<&'a str> {
        let package = |need: &&'a Need| match &need.origin {
            Origin::Package(package) => Some(package.as_str()),
            Origin::Address(_) => None,
        };
        self.needs.iter().filter_map(package).collect_set()
    }

    /// The line that installs them; `None` where there are none.
    pub fn apt_line(&self) -> Option<String> {
        let packages: Vec<&str> = self.packages().into_iter().collect();
        (!packages.is_empty()).then(|| format!("apt-get install {}", packages.join(" ")))
    }
}

/// Without it apt-get takes a name that no package has, and that has a dot in it, for a pattern, and installs
/// whatever matches.
const NO_PATTERNS: &str = "APT::Cmd::Pattern-Only=true";

/// Installs everything of Debian that a suite lacks, and says so. Nothing that is installed is removed for it,
/// and a name is that of a package, never a pattern.
///
/// # Errors
/// Without being root, without apt-get, when it fails, and when a program is missing anyway.
pub fn install(suite: &Suite) -> Result<(), Failure> {
    let lacking = Lacking::from_benchmarks(&suite.benchmarks);
    let Some(line) = lacking.apt_line() else { return Ok(()) };
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::cannot(format_args!("--install needs root: it would run {line}")));
    }
    output::say(&format!("running {line}"));
    let mut command = Command::new("apt-get");
    command.args(["install", "--yes", "--no-remove", "-o", NO_PATTERNS, "--"]).args(lacking.packages());
    // What it prints is not a result of ours.
    command.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()).stdout(std::io::stderr());
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(_) => {
            return Err(Failure::cannot(format_args!(
                "--install: {line} has failed (apt-get update may be needed before)"
            )));
        }
        Err(error) => {
            return Err(Failure::cannot(format_args!("--install: cannot run apt-get: {}", io_words(&error))));
        }
    }
    still_missing(&lacking.needs).map_or(Ok(()), |why| Err(Failure::cannot(why)))
}

/// The missing parts although its package was installed, as a sentence.
fn still_missing(lacked: &[&Need]) -> Option<String> {
    let path = env::var_os("PATH");
    let one = |need: &&Need| match &need.origin {
        Origin::Package(package) if find(&need.program, path.as_deref()).is_none() => {
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
    use nodewise_experiment::suite::parse::parse;
    use std::path::Path;

    #[test]
    fn a_program_is_there_when_it_can_be_executed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("data"), "x").unwrap();
        let path = env::join_paths([Path::new("/bin"), folder.path()]).unwrap();
        assert_eq!(find("sh", Some(&path)), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find("/bin/sh", None), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find("data", Some(&path)), None, "a file that cannot be executed is no program");
        assert_eq!((find("sh", None), find("/bin/no-such-program", None)), (None, None));
    }

    #[test]
    fn what_is_missing_is_told_with_the_line_that_installs_it() {
        let suite = parse(
            "title = 't'\n[[benchmark]]\nname = 'a'\ncommand = 'a'\n\
             needs = { sh = 'dash', nodewise-a = 'a2', nodewise-b = 'b2', nodewise-c = 'https://example.org' }\n",
        )
        .unwrap();
        let lacking = Lacking::from_benchmarks(&suite.benchmarks);
        assert_eq!(
            lacking.sentence().as_deref(),
            Some(
                "nodewise-a, nodewise-b, nodewise-c not installed: apt-get install a2 b2; https://example.org"
            )
        );
        assert_eq!(lacking.apt_line().as_deref(), Some("apt-get install a2 b2"));
        assert_eq!(Lacking::from_benchmarks(&[]).sentence(), None);
    }
}
