//! The module list of each crate against its files.
//!
//! The documentation of a crate's root (`lib.rs` or `main.rs`) has a heading `# Modules`; below it every file
//! of the crate's `src` is named in backquotes by its path there (`layout.rs`), or its folder is (`layout/`).
//! The root needs no line, and neither do tests in files of their own (`tests.rs`, `tests/`).

use std::collections::BTreeMap;

use super::Breach;

/// The root of a crate: its path in the repository, and its text.
pub struct Root {
    /// Its path in the repository.
    pub path: String,
    pub text: String,
}

/// Reads the roots of all crates among these files.
pub fn roots(files: &[String], read: impl Fn(&str) -> Option<String>) -> Vec<Root> {
    let roots = files.iter().filter(|path| matches!(module_of(path), Some((_, "lib.rs" | "main.rs"))));
    roots.filter_map(|path| Some(Root { path: path.clone(), text: read(path)? })).collect()
}

/// Compares the lists with the files.
pub fn check(roots: &[Root], files: &[String]) -> Vec<Breach> {
    let mut findings = Vec::new();
    let mut modules: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for path in files {
        if let Some((name, module)) = module_of(path) {
            modules.entry(name).or_default().push((module, path));
        }
    }
    for root in roots {
        let Some((name, _)) = module_of(&root.path) else { continue };
        let entries = entries(&root.text);
        let there = modules.get(name).map(Vec::as_slice).unwrap_or_default();
        for (module, path) in there {
            let named = entries.iter().any(|(entry, _)| covers(entry, module));
            if !named && !matches!(*module, "lib.rs" | "main.rs") && !is_test(module) {
                let message = format!("`{module}` is not in the list `# Modules` of {}", root.path);
                findings.push(Breach::new(*path, 1, message));
            }
        }
        for (entry, line) in entries {
            if !there.iter().any(|(module, _)| covers(entry, module)) {
                findings.push(Breach::new(root.path.as_str(), line, format!("{name} has no `{entry}`")));
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

/// The names in backquotes that are files or folders, with their lines.
fn entries(root: &str) -> Vec<(&str, usize)> {
    let mut inside = false;
    let mut entries = Vec::new();
    for (number, line) in (1..).zip(root.lines()) {
        let Some(text) = line.strip_prefix("//!") else { break };
        if let Some(title) = text.trim_start().strip_prefix("# ") {
            inside = title.trim() == "Modules";
        } else if inside {
            // The odd pieces are between pairs of backquotes.
            let names = text.split('`').skip(1).step_by(2);
            let files = names.filter(|name| name.ends_with(".rs") || name.ends_with('/'));
            entries.extend(files.map(|name| (name, number)));
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAB: &str = "//! Guests.\n//!\n//! `no.rs`\n//!\n//! # Modules\n//!\n//! - `layout.rs`, `layout/`: nodes\n\
        //! - `qemu.rs`: arguments, with `Layout`\n//!\n//! # Errors\n//! `other.rs`\nmod a; // `b.rs`\n";

    fn check_files(files: &[&str], expected: &[&str]) {
        let files: Vec<String> = files.iter().map(|file| file.to_string()).collect();
        let roots = roots(&files, |path| {
            Some(if path.contains("lab") { LAB } else { "//! # Modules\n//! - `tidy/`\n" }.to_owned())
        });
        let found: Vec<String> = check(&roots, &files).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_module_has_a_line() {
        let all = ["crates/lab/src/lib.rs", "crates/lab/src/layout.rs", "crates/lab/src/qemu.rs"];
        let mut files = all.to_vec();
        files.extend(["crates/lab/src/layout/cpus.rs", "xtask/src/main.rs", "xtask/src/tidy/a.rs"]);
        files.push("crates/lab/tests/boot.rs");
        check_files(&files, &[]);
        files.extend(["crates/lab/src/qemu/tests.rs", "crates/lab/src/qemu/tests/series.rs"]);
        check_files(&files, &[]);
        files.extend(["crates/lab/src/new.rs", "xtask/src/new.rs"]);
        check_files(
            &files,
            &[
                "crates/lab/src/new.rs:1: `new.rs` is not in the list `# Modules` of crates/lab/src/lib.rs",
                "xtask/src/new.rs:1: `new.rs` is not in the list `# Modules` of xtask/src/main.rs",
            ],
        );
    }

    #[test]
    fn every_line_has_a_module() {
        check_files(
            &["crates/lab/src/lib.rs", "crates/lab/src/layout.rs"],
            &[
                "crates/lab/src/lib.rs:7: lab has no `layout/`",
                "crates/lab/src/lib.rs:8: lab has no `qemu.rs`",
            ],
        );
    }
}
