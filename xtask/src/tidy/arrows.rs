//! Which crate may use which: the table of ARCHITECTURE.md against `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{ARCHITECTURE, Breach};
use crate::program;

/// Crates, each with those it uses; the names without `nodewise-`.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Reads which crates of this workspace use which others, by cargo's word. Dependencies of tests do
/// not count: a test may use what it likes.
pub fn dependencies(root: &Path) -> Result<Uses> {
    parse_metadata(&program::metadata(root)?).context("cargo metadata is not what tidy expects")
}

fn parse_metadata(metadata: &Value) -> Option<Uses> {
    let packages = metadata["packages"].as_array()?;
    let short = |name: &str| name.strip_prefix("nodewise-").unwrap_or(name).to_owned();
    let mut uses = Uses::new();
    for package in packages {
        let of = package["dependencies"].as_array()?.iter().filter(|dependency| {
            // `kind` is null for what is linked, "build" or "dev"; only ours have a path.
            dependency["path"].is_string() && dependency["kind"] != "dev"
        });
        let names = of.filter_map(|dependency| dependency["name"].as_str()).map(short).collect();
        uses.insert(short(package["name"].as_str()?), names);
    }
    Some(uses)
}

/// Compares the table with what is used.
pub fn check(architecture: &str, uses: &Uses) -> Vec<Breach> {
    let table = parse_table(architecture);
    let mut findings = Vec::new();
    if table.is_empty() {
        findings.push(Breach::new(ARCHITECTURE, 1, "no table with the head \"| crate | may use |\""));
        return findings;
    }
    for (name, used) in uses {
        let manifest = match name.as_str() {
            "xtask" => "xtask/Cargo.toml".to_owned(),
            name => format!("crates/{name}/Cargo.toml"),
        };
        let Some((line, allowed)) = table.get(name.as_str()) else {
            let message = format!("{name} has no row in the table of {ARCHITECTURE}");
            findings.push(Breach::new(manifest, 1, message));
            continue;
        };
        for other in used.iter().filter(|other| !allowed.contains(other.as_str())) {
            let message = format!(
                "{name} uses {other}, which line {line} of {ARCHITECTURE} does not allow: a design decision"
            );
            findings.push(Breach::new(manifest.clone(), 1, message));
        }
    }
    for (name, (line, allowed)) in &table {
        for unknown in [*name].iter().chain(allowed).filter(|name| !uses.contains_key(**name)) {
            findings.push(Breach::new(ARCHITECTURE, *line, format!("there is no crate {unknown}")));
        }
        let Some(used) = uses.get(*name) else { continue };
        for idle in allowed.iter().filter(|other| uses.contains_key(**other) && !used.contains(**other)) {
            let message = format!("{name} may use {idle}, and does not: take it out of the table");
            findings.push(Breach::new(ARCHITECTURE, *line, message));
        }
    }
    findings
}

/// Rows of the table, each with its line.
fn parse_table(architecture: &str) -> BTreeMap<&str, (usize, BTreeSet<&str>)> {
    let lines = (1..).zip(architecture.lines());
    let rows = lines.skip_while(|(_, line)| cells(line) != ["crate", "may use"]).skip(2);
    rows.take_while(|(_, line)| line.starts_with('|'))
        .filter_map(|(number, line)| match cells(line)[..] {
            [name, uses] => {
                Some((name, (number, uses.split(',').map(str::trim).filter(|name| *name != "-").collect())))
            }
            _ => None,
        })
        .collect()
}

fn cells(row: &str) -> Vec<&str> {
    row.trim().trim_matches('|').split('|').map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "text\n\n| crate | may use |\n|---|---|\n| machine | - |\n| view | machine, model |\n\
        | model | machine |\n\ntext\n";

    fn check_uses(uses: &[(&str, &[&str])], expected: &[&str]) {
        let uses = uses
            .iter()
            .map(|(name, used)| (name.to_string(), used.iter().map(|name| name.to_string()).collect()))
            .collect();
        let found: Vec<String> = check(TABLE, &uses).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn arrows_of_the_table_are_allowed() {
        check_uses(&[("machine", &[]), ("model", &["machine"]), ("view", &["machine", "model"])], &[]);
    }

    #[test]
    fn an_arrow_that_no_crate_uses_is_found() {
        check_uses(
            &[("machine", &[]), ("model", &["machine"]), ("view", &["machine"])],
            &["ARCHITECTURE.md:6: view may use model, and does not: take it out of the table"],
        );
    }

    #[test]
    fn a_new_arrow_is_found() {
        check_uses(
            &[("machine", &["view"]), ("model", &["machine"]), ("view", &["machine", "model"])],
            &[
                "crates/machine/Cargo.toml:1: machine uses view, which line 5 of ARCHITECTURE.md does not allow: a \
                 design decision",
            ],
        );
    }

    #[test]
    fn crates_and_rows_belong_together() {
        check_uses(
            &[("machine", &[]), ("view", &["machine"]), ("xtask", &[])],
            &[
                "xtask/Cargo.toml:1: xtask has no row in the table of ARCHITECTURE.md",
                "ARCHITECTURE.md:7: there is no crate model",
                "ARCHITECTURE.md:6: there is no crate model",
            ],
        );
        let found = check("no table", &Uses::new());
        assert_eq!(found[0].to_string(), "ARCHITECTURE.md:1: no table with the head \"| crate | may use |\"");
    }

    #[test]
    fn dependencies_of_tests_do_not_count() {
        let text = r#"{"packages": [{"name": "nodewise-lab", "dependencies": [
            {"name": "nodewise-machine", "path": "/x", "kind": null},
            {"name": "nodewise-model", "path": "/x", "kind": "dev"},
            {"name": "nodewise-view", "path": "/x", "kind": "build"},
            {"name": "libc", "kind": null}]}]}"#;
        let uses = parse_metadata(&serde_json::from_str(text).unwrap()).unwrap();
        assert_eq!(uses["lab"], BTreeSet::from(["machine".to_owned(), "view".to_owned()]));
        assert!(parse_metadata(&serde_json::from_str("{}").unwrap()).is_none());
    }
}
