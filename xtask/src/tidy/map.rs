//! The module list of ARCHITECTURE.md against the files.
//!
//! Under `## Modules` every crate has a section `### name`, and in it every file of its `src` is
//! named in backquotes by its path there (`layout.rs`), or its folder is (`layout/`). The crate's
//! root needs no line, and neither do tests in files of their own (`tests.rs`, `tests/`): they stand
//! beside what they test.

use std::collections::BTreeMap;

use super::{ARCHITECTURE, Finding};

/// Compares the list with the files.
pub fn check(architecture: &str, files: &[String]) -> Vec<Finding> {
    let sections = sections(architecture);
    let mut findings = Vec::new();
    let mut modules: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in files {
        if let Some((name, module)) = module_of(path) {
            modules.entry(name).or_default().push(module);
            let named =
                sections.get(name).is_some_and(|names| names.iter().any(|(entry, _)| covers(entry, module)));
            if !named && !matches!(module, "lib.rs" | "main.rs") && !is_test(module) {
                let message =
                    format!("not in the module list of {ARCHITECTURE}: `{module}` under \"### {name}\"");
                findings.push(Finding::new(path.as_str(), 1, message));
            }
        }
    }
    for (name, entries) in &sections {
        let there = modules.get(name).map(Vec::as_slice).unwrap_or_default();
        for (entry, line) in entries {
            if !there.iter().any(|module| covers(entry, module)) {
                let message = format!("{name} has no `{entry}`");
                findings.push(Finding::new(ARCHITECTURE, *line, message));
            }
        }
    }
    findings
}

/// The crate of a source file, and its path below `src`.
fn module_of(path: &str) -> Option<(&str, &str)> {
    let (name, rest) = match path.strip_prefix("crates/") {
        Some(rest) => rest.split_once('/')?,
        None => ("xtask", path.strip_prefix("xtask/")?),
    };
    let module = rest.strip_prefix("src/")?;
    module.ends_with(".rs").then_some((name, module))
}

/// Whether a module holds tests and nothing else.
fn is_test(module: &str) -> bool {
    module.split('/').any(|part| matches!(part, "tests" | "tests.rs"))
}

/// Whether an entry of the list stands for a file.
fn covers(entry: &str, module: &str) -> bool {
    entry == module || entry.ends_with('/') && module.starts_with(entry)
}

/// The names in backquotes that are files or folders, with their lines, by crate.
fn sections(architecture: &str) -> BTreeMap<&str, Vec<(&str, usize)>> {
    let mut sections: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    let mut inside = false;
    let mut section = None;
    for (number, line) in (1..).zip(architecture.lines()) {
        if let Some(title) = line.strip_prefix("## ") {
            inside = title.trim() == "Modules";
            section = None;
        } else if let Some(title) = line.strip_prefix("### ").filter(|_| inside) {
            section = Some(title.trim());
        }
        if let Some(name) = section {
            // Between pairs of backquotes stand the odd pieces.
            let names = line.split('`').skip(1).step_by(2);
            let files = names.filter(|name| name.ends_with(".rs") || name.ends_with('/'));
            sections.entry(name).or_default().extend(files.map(|name| (name, number)));
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "## Crates\n### lab\n`no.rs`\n## Modules\n### lab\n- `layout.rs`, `layout/`: nodes\n\
        - `qemu.rs`: arguments, with `Layout`\n### xtask\n- `tidy/`\n## Recipes\n### lab\n`other.rs`\n";

    fn check_files(files: &[&str], expected: &[&str]) {
        let files: Vec<String> = files.iter().map(|file| file.to_string()).collect();
        let found: Vec<String> = check(LIST, &files).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_module_has_a_line() {
        let all = ["crates/lab/src/lib.rs", "crates/lab/src/layout.rs", "crates/lab/src/qemu.rs"];
        let mut files = all.to_vec();
        files.extend(["crates/lab/src/layout/cpus.rs", "xtask/src/tidy/a.rs", "crates/lab/tests/boot.rs"]);
        check_files(&files, &[]);
        files.extend(["crates/lab/src/qemu/tests.rs", "crates/lab/src/qemu/tests/series.rs"]);
        check_files(&files, &[]);
        files.push("crates/lab/src/contests.rs");
        files.push("crates/lab/src/new.rs");
        files.push("crates/view/src/svg.rs");
        check_files(
            &files,
            &[
                "crates/lab/src/contests.rs:1: not in the module list of ARCHITECTURE.md: `contests.rs` under \
                 \"### lab\"",
                "crates/lab/src/new.rs:1: not in the module list of ARCHITECTURE.md: `new.rs` under \"### lab\"",
                "crates/view/src/svg.rs:1: not in the module list of ARCHITECTURE.md: `svg.rs` under \"### view\"",
            ],
        );
    }

    #[test]
    fn every_line_has_a_module() {
        check_files(
            &["crates/lab/src/layout.rs", "xtask/src/tidy/a.rs"],
            &["ARCHITECTURE.md:6: lab has no `layout/`", "ARCHITECTURE.md:7: lab has no `qemu.rs`"],
        );
    }
}
