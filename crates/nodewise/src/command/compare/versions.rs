//! Which packages programs are of, in which versions, as dpkg says: a newer compressor is another
//! benchmark.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nodewise_experiment::suite::{Benchmark, Need};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::printable;

use super::needs::find;

/// The most packages of one program: a folder can be of many.
const MOST: usize = 8;

/// The programs of some benchmarks that are here, each with its package and the version of it
/// (`xz-utils 5.4.1-1`); `None` for one that no package has.
pub fn installed(benchmarks: &[Benchmark]) -> BTreeMap<String, Option<String>> {
    let path = env::var_os("PATH");
    let needs = benchmarks.iter().flat_map(|benchmark| &benchmark.needs);
    let here = needs.filter_map(|need| Some((need, find(&need.program, path.as_deref())?)));
    let names: BTreeMap<String, Vec<String>> =
        here.map(|(need, path)| (need.program.clone(), names_of(&path))).collect_map();
    let asked: Vec<&String> = names.values().flatten().collect();
    let owners = if asked.is_empty() { BTreeMap::new() } else { owners(&dpkg(&["-S", "--"], &asked)) };
    let packages: Vec<&String> = owners.values().flatten().collect();
    let versions = if packages.is_empty() { BTreeMap::new() } else { versions(&dpkg(&SHOW, &packages)) };
    let told = |(program, names): (String, Vec<String>)| {
        let owner = names.iter().find_map(|name| owners.get(name));
        (program, owner.and_then(|owner| words(owner, &versions)))
    };
    names.into_iter().map(told).collect_map()
}

/// Lists the versions a benchmark has here; `None` where it needs nothing with a known version.
pub fn installed_text(needs: &[Need], versions: &BTreeMap<String, Option<String>>) -> Option<String> {
    let known: BTreeSet<&str> =
        needs.iter().filter_map(|need| versions.get(&need.program)?.as_deref()).collect_set();
    (!known.is_empty()).then(|| known.into_iter().collect::<Vec<_>>().join(", "))
}

/// The words that let dpkg-query print packages with their versions.
const SHOW: [&str; 4] = ["-W", "-f", "${binary:Package} ${Version}\\n", "--"];

/// The names under which dpkg may know a file: what its links lead to, and that without `/usr`, where the
/// folders of the root have been links to those of `/usr` since before the package was made. Names that
/// dpkg would take for patterns are left out.
fn names_of(path: &Path) -> Vec<String> {
    let real: Option<PathBuf> = path.canonicalize().ok();
    let real = real.as_deref().and_then(Path::to_str);
    let short = real.and_then(|real| real.strip_prefix("/usr")).filter(|short| short.starts_with('/'));
    let is_plain = |name: &&str| !name.contains(['*', '?', '[', '\\', '\n']);
    [real, short].into_iter().flatten().filter(is_plain).map(str::to_owned).collect()
}

/// Returns the output of dpkg-query; nothing where there is none. It fails where it knows
/// one name of several.
fn dpkg(options: &[&str], names: &[&String]) -> String {
    let mut command = Command::new("dpkg-query");
    command.args(options).args(names).env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null());
    command
        .output()
        .map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The packages that files are of: `gcc-12: /usr/bin/gcc-12`, and several with commas between.
fn owners(text: &str) -> BTreeMap<String, Vec<String>> {
    let line = |line: &str| {
        let (packages, file) = line.split_once(": /")?;
        // `diversion by PACKAGE from: FILE` is not a package.
        let is_package = |name: &&str| !name.is_empty() && !name.contains(' ') && !name.starts_with('-');
        let packages: Vec<String> =
            packages.split(", ").filter(is_package).take(MOST).map(str::to_owned).collect();
        (!packages.is_empty()).then(|| (format!("/{file}"), packages))
    };
    text.lines().filter_map(line).collect_map()
}

/// Packages with their versions: `gcc-12 12.2.0-14`. The architecture behind a name is left out.
fn versions(text: &str) -> BTreeMap<String, String> {
    let line = |line: &str| {
        let (package, version) = line.split_once(' ')?;
        (!version.trim().is_empty()).then(|| (package.to_owned(), version.trim().to_owned()))
    };
    text.lines().filter_map(line).collect_map()
}

fn words(owner: &[String], versions: &BTreeMap<String, String>) -> Option<String> {
    let bare = |package: &str| package.split(':').next().unwrap_or_default().to_owned();
    let version = |package: &String| versions.get(package).or_else(|| versions.get(&bare(package)));
    let known: Vec<String> = owner
        .iter()
        .filter_map(|package| Some(format!("{} {}", bare(package), version(package)?)))
        .map(|text| printable(&text).into_owned())
        .collect();
    (!known.is_empty()).then(|| known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dpkg_says_of_files_and_packages_is_read() {
        let said = "diversion by dash from: /bin/sh\ndash: /bin/dash\n\
            postgresql-15, libpq5:amd64: /usr/lib/postgresql\ngarbage\n: /x\n";
        let owners = owners(said);
        assert_eq!(owners.keys().collect::<Vec<_>>(), ["/bin/dash", "/usr/lib/postgresql"]);
        let versions = versions("dash 0.5.12-2\npostgresql-15 15.6-0\nlibpq5:amd64 15.6-0\nnothing \n\n");
        assert_eq!(words(&owners["/bin/dash"], &versions).as_deref(), Some("dash 0.5.12-2"));
        let both = words(&owners["/usr/lib/postgresql"], &versions);
        assert_eq!(both.as_deref(), Some("postgresql-15 15.6-0, libpq5 15.6-0"));
        assert_eq!(words(&["other".to_owned()], &versions), None);
    }

    #[test]
    fn a_file_is_asked_for_with_and_without_usr_and_never_as_a_pattern() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("x*[a]");
        std::fs::write(&odd, "").unwrap();
        assert_eq!(names_of(&odd), [""; 0]);
        let names = names_of(Path::new("/usr/bin/env"));
        assert!(names.iter().all(|name| name.ends_with("env") || name.ends_with("coreutils")), "{names:?}");
        assert_eq!(names_of(Path::new("/nowhere/at/all")), [""; 0]);
    }
}
