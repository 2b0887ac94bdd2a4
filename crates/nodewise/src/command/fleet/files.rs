//! Directories with surveys. Their files come from many machines, so nothing about them is trusted: each is read within
//! limits or refused by name, and the others still count.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nodewise_fleet::collection::{FailedHost, RefusedFile};
use nodewise_fleet::survey::SurveyKey;
use nodewise_fleet::{Arrival, Collection};
use nodewise_machine::Bytes;
use nodewise_machine::printable::{io_words, printable, quote};
use nodewise_source::machine_file;
use nodewise_source::turns::Turns;
use nodewise_view::json::survey;

use crate::failure::Failure;
use crate::input;

/// How files are read: each takes longer than to start a thread.
const TURNS: Turns = Turns { size: 1, most_threads: usize::MAX };

/// The largest list of hosts and the longest reason that are read.
const MOST_HOSTS: u64 = 16 << 20;
const MOST_REASON: u64 = 64 << 10;
/// Letters of a reason that are shown.
const LONGEST_REASON: usize = 300;
/// The list of hosts that are expected.
const HOSTS: &str = "hosts";
/// Endings of files: a survey, the reason why a host has none, and what is not complete.
const SURVEY: &str = ".json";
const FAILED: &str = ".failed";
const INCOMPLETE: [&str; 2] = [".tmp", ".part"];

/// A directory with surveys.
pub struct SurveyFolder {
    /// Where surveys are.
    results: PathBuf,
    /// Hosts that are expected, where a list says so.
    pub expected: Option<BTreeSet<String>>,
}

impl SurveyFolder {
    /// The directory of a plan, or one with surveys in it.
    ///
    /// # Errors
    /// A path that is not a directory, and a list of hosts that cannot be read.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if !path.is_dir() {
            let path = quote(&path.display().to_string());
            return Err(Failure::usage(format_args!("{path} is not a directory with surveys")));
        }
        let results = Some(path.join("results")).filter(|results| results.is_dir());
        let results = results.unwrap_or_else(|| path.to_owned());
        let expected =
            [path, &results].into_iter().map(|folder| folder.join(HOSTS)).find(|list| list.is_file());
        let expected = expected.map(|list| hosts(&list)).transpose()?;
        let expected =
            expected.map(|targets| targets.iter().map(|target| host_of(target).to_owned()).collect());
        Ok(Self { results, expected })
    }

    /// One survey for each host.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn collect(&self, run: Option<&str>) -> Result<Collection, Failure> {
        let names = self.names()?;
        let arrivals = TURNS.read(&names, |name| self.arrival(name));
        Ok(Collection::new(arrivals, self.expected.as_ref(), run))
    }

    /// Hosts that have a survey or failed, by the names of their files.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn answered(&self) -> Result<BTreeSet<String>, Failure> {
        let names = self.names()?;
        let answered = names.iter().filter(|name| !name.starts_with('.'));
        Ok(answered
            .filter_map(|name| {
                Some(host_in(name.strip_suffix(SURVEY).or(name.strip_suffix(FAILED))?).to_owned())
            })
            .collect())
    }

    /// The names of files, in order.
    fn names(&self) -> Result<Vec<String>, Failure> {
        let failed = |error: std::io::Error| {
            let path = quote(&self.results.display().to_string());
            Failure::cannot(format_args!("cannot read {path}: {}", io_words(&error)))
        };
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.results).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The contents of a file; `None` for one that has nothing to do with surveys.
    fn arrival(&self, name: &str) -> Option<Arrival> {
        let refused = |reason: String| {
            Some(Arrival::Refused(RefusedFile { file: printable(name).into_owned(), reason }))
        };
        if INCOMPLETE.iter().any(|ending| name.ends_with(ending)) {
            return refused("it is not complete: its writer was interrupted, or is still writing".to_owned());
        }
        let path = self.results.join(name);
        if let Some(host) = name.strip_suffix(FAILED) {
            let host = host_in(host).to_owned();
            if !SurveyKey::is_host(&host) {
                return refused("its name is not that of a host".to_owned());
            }
            return Some(Arrival::Failed(FailedHost { host, reason: reason(&path) }));
        }
        name.strip_suffix(SURVEY)?;
        match read(&path) {
            Ok(survey) => Some(Arrival::Survey(Box::new(survey))),
            Err(why) => refused(why),
        }
    }
}

/// Reads a survey.
///
/// # Errors
/// Why it was not read, fit to be shown.
pub fn read(path: &Path) -> Result<nodewise_fleet::HostSurvey, String> {
    let found = fs::metadata(path).map_err(|error| io_words(&error))?;
    if !found.is_file() {
        return Err("it is not a file".to_owned());
    }
    if found.len() > survey::MOST_BYTES {
        return Err(format!(
            "it has {}, and a survey has {} at most",
            Bytes::new(found.len()),
            Bytes::new(survey::MOST_BYTES)
        ));
    }
    let text = input::read_text(path, survey::MOST_BYTES)?;
    survey::read(&text, |machine| machine_file::from_json(machine).map_err(|error| error.to_string()))
}

/// The first line of a reason.
fn reason(path: &Path) -> String {
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    let text = is_file.then(|| input::read_text(path, MOST_REASON));
    let text = text.unwrap_or_else(|| Err("its reason is not a file".to_owned())).unwrap_or_else(|why| why);
    let line: String = text.lines().next().unwrap_or_default().chars().take(LONGEST_REASON).collect();
    if line.is_empty() { "no reason was given".to_owned() } else { printable(&line).into_owned() }
}

/// The host of a file's name without its ending, which may have the number of an attempt behind it.
fn host_in(stem: &str) -> &str {
    match stem.rsplit_once('.') {
        Some((host, attempt))
            if !attempt.is_empty() && attempt.bytes().all(|letter| letter.is_ascii_digit()) =>
        {
            host
        }
        _ => stem,
    }
}

/// The host of a target of ssh: `root@web7`.
fn host_of(target: &str) -> &str {
    target.rsplit_once('@').map_or(target, |(_, host)| host)
}

/// Reads a list of hosts: one on each line, as ssh takes them; what is behind # is left out.
///
/// # Errors
/// A file that cannot be read, and a line that is not a host.
pub fn hosts(path: &Path) -> Result<Vec<String>, Failure> {
    let shown = printable(&path.to_string_lossy()).into_owned();
    let text = input::read_text(path, MOST_HOSTS)
        .map_err(|why| Failure::usage(format_args!("cannot read {shown}: {why}")))?;
    let mut hosts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let target = line.split('#').next().unwrap_or_default().trim();
        if target.is_empty() {
            continue;
        }
        let user = target.rsplit_once('@').map_or("a", |(user, _)| user);
        if !SurveyKey::is_host(host_of(target)) || !SurveyKey::is_host(user) {
            return Err(Failure::usage(format_args!(
                "{shown}: line {number}: {} is not a host: expected a name as in web7 or root@web7.example.org",
                quote(target)
            )));
        }
        hosts.push(target.to_owned());
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_hold_the_host() {
        for (stem, host) in [
            ("n1", "n1"),
            ("n1.0", "n1"),
            ("web7.example.org.12", "web7.example.org"),
            ("a.b", "a.b"),
            ("x.", "x."),
        ] {
            assert_eq!(host_in(stem), host, "{stem}");
        }
        assert_eq!(host_of("root@web7"), "web7");
    }

    #[test]
    fn a_line_that_is_not_a_host_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        fs::write(&path, "# all\nweb1\nroot@web2 # the second\n\n").unwrap();
        assert_eq!(hosts(&path).unwrap(), ["web1", "root@web2"]);
        fs::write(&path, "web1\n-oProxyCommand=x\n").unwrap();
        let error = hosts(&path).unwrap_err().message;
        assert!(error.contains("line 2") && error.contains("is not a host"), "{error}");
    }
}
