//! Imports that go round in a circle: a change of one file of such a circle may concern all others.
//!
//! A file imports another when it names a path in its module. That a module declares and re-exports its own
//! children is not an import, and tests may import what they like. Two files may import each other: the parts
//! of one subject often do.

use std::collections::{BTreeMap, BTreeSet};

use super::Breach;
use super::paths::named_paths;
use super::rust::Source;

/// The most files that may import each other.
const MOST: usize = 2;

/// The files of a crate by their modules: `["race", "crossing"]`, empty for the root.
type Modules<'a> = BTreeMap<Vec<&'a str>, &'a str>;

/// Checks the crates of these files.
pub fn check(files: &[(String, String)]) -> Vec<Breach> {
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (path, text) in files {
        if let Some((folder, _)) = path.split_once("/src/") {
            crates.entry(folder).or_default().push((path, text));
        }
    }
    crates.values().flat_map(|files| circles(files)).map(|circle| finding(&circle)).collect()
}

fn finding(circle: &[&str]) -> Breach {
    let message = format!(
        "{} files import each other in a circle (at most {MOST} may): {}",
        circle.len(),
        circle.join(", ")
    );
    Breach::new(circle[0], 1, message)
}

/// The circles among the files of one crate.
fn circles<'a>(files: &[(&'a str, &'a str)]) -> Vec<Vec<&'a str>> {
    let modules: Modules<'_> = files.iter().filter_map(|(path, _)| Some((module_of(path)?, *path))).collect();
    let imports: BTreeMap<&str, BTreeSet<&str>> =
        files.iter().map(|(path, text)| (*path, imports(path, text, &modules))).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|path| (*path, reachable(path, &imports))).collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for (path, others) in &reached {
        let circle: Vec<&str> =
            others.iter().copied().filter(|other| reached[other].contains(path)).collect();
        if circle.len() > MOST && seen.insert(circle.clone()) {
            circles.push(circle);
        }
    }
    circles
}

/// All files that a file imports, directly or through others.
fn reachable<'a>(from: &str, imports: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<&str> = imports[from].iter().copied().collect();
    while let Some(next) = left.pop() {
        if reached.insert(next) {
            left.extend(&imports[next]);
        }
    }
    reached
}

/// The module of a file; `None` for a file of tests, and for what is not a module of a crate.
fn module_of(path: &str) -> Option<Vec<&str>> {
    let module = path.split_once("/src/")?.1.strip_suffix(".rs")?;
    let parts: Vec<&str> = module.split('/').collect();
    match parts[..] {
        ["lib" | "main"] => Some(Vec::new()),
        _ if parts.contains(&"tests") => None,
        _ => Some(parts),
    }
}

/// The other files of its crate that a file imports, its own descendants and the root left out.
fn imports<'a>(path: &'a str, text: &str, modules: &Modules<'a>) -> BTreeSet<&'a str> {
    let Some(own) = module_of(path) else { return BTreeSet::new() };
    let source = Source::new(path, text);
    let mut imports = BTreeSet::new();
    for named in named_paths(&source.code) {
        let Some(target) = target(&named.path, &own) else { continue };
        if source.is_test(named.line) {
            continue;
        }
        let longest = (1..=target.len()).rev().find_map(|length| modules.get_key_value(&target[..length]));
        if let Some((module, file)) = longest {
            if !module.starts_with(&own) {
                imports.insert(*file);
            }
        }
    }
    imports
}

/// The path from the crate's root that a path in a module means; `None` for what is not in the crate.
fn target<'p>(path: &'p str, own: &[&'p str]) -> Option<Vec<&'p str>> {
    let parts: Vec<&str> = path.split("::").collect();
    match parts[0] {
        "crate" => Some(parts[1..].to_vec()),
        "super" => {
            let up = parts.iter().take_while(|part| **part == "super").count();
            let base = &own[..own.len().checked_sub(up)?];
            Some(base.iter().chain(&parts[up..]).copied().collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_files(files: &[(&str, &str)], expected: &[&str]) {
        let files: Vec<(String, String)> =
            files.iter().map(|(path, text)| (format!("crates/a/src/{path}"), text.to_string())).collect();
        let found: Vec<String> = check(&files).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn three_files_in_a_circle_are_named_and_two_are_not() {
        let two = [("lib.rs", "mod b;\nmod c;"), ("b.rs", "use crate::c::C;"), ("c.rs", "use super::b::B;")];
        check_files(&two, &[]);
        check_files(
            &[
                ("b.rs", "use crate::c::{C, D};"),
                ("c.rs", "mod d;\npub use d::D;"),
                ("c/d.rs", "use super::C;\nfn f() { crate::e::f() }"),
                ("e.rs", "use crate::c::d::D;\nuse std::fmt;"),
                ("f.rs", "use crate::b::B;"),
            ],
            &[],
        );
        check_files(
            &[
                ("b.rs", "use crate::c::C;"),
                ("c.rs", "use crate::d::D;"),
                ("d.rs", "fn f() { crate::b::g() }"),
            ],
            &[
                "crates/a/src/b.rs:1: 3 files import each other in a circle (at most 2 may): crates/a/src/b.rs, \
               crates/a/src/c.rs, crates/a/src/d.rs",
            ],
        );
    }

    #[test]
    fn tests_may_import_what_they_like() {
        let tests = "use crate::d::D;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n";
        check_files(&[("b.rs", "use crate::c::C;"), ("c.rs", "use crate::d::D;"), ("d.rs", tests)], &[]);
        let b = "use crate::c::C;";
        check_files(&[("b.rs", b), ("c.rs", "use crate::d::D;"), ("d/tests.rs", "use crate::b::B;")], &[]);
    }
}
