//! `pages`: reports and diagrams as a browser shows them, and pictures as PNG.
//!
//! Reports of captures and of made-up measurements are opened in Chromium at three widths, in light and dark colours, with
//! scripts on and off: whatever reaches for the network, writes to the console, scrolls sideways or is a serious finding of
//! axe-core is an error. Each capture's diagram is read and drawn by Mermaid. Screenshots are left to be looked at.

mod reports;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::program;
use crate::suite::lint;

/// The program that looks; it runs under Node.
const CHECK: &str = include_str!("pages/check.js");

/// Options of the task.
pub struct Pages {
    /// Whether this machine is measured for a report, too.
    pub live: bool,
}

/// Makes reports, diagrams and PNG, looks at them, and prints a table; fails when there is a problem.
pub fn run(root: &Path, pages: &Pages) -> Result<()> {
    let start = Instant::now();
    let folder = root.join("target/pages");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let chromium = tools::install(&folder)?;
    let nodewise = pictures(root)?;
    let made = reports::make(root, &nodewise, &folder, pages.live)?;
    let answer = look(&folder, &chromium, &made)?;
    print!("{}", table(&answer, &made.reports));
    println!(
        "{}, {:.0} s; screenshots: {}",
        answer["browser"].as_str().unwrap_or("browser"),
        start.elapsed().as_secs_f64(),
        folder.join("shots").display()
    );
    let problems: Vec<&str> =
        answer["problems"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    ensure!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    Ok(())
}

/// Builds nodewise with PNG, with lints as errors, runs the tests of its pictures, and returns where it is.
fn pictures(root: &Path) -> Result<PathBuf> {
    let with_png = ["--package", "nodewise", "--features", "png"];
    for (target, words) in [
        (["--bin", "nodewise"], &["png"][..]),
        (["--test", "cli"], &["picture::", "outputs::a_file_that_is_there"]),
    ] {
        let mut tests = program::cargo(root);
        tests.arg("test").args(with_png).args(target).arg("--").args(words);
        program::show(lint::while_compiling(&mut tests))?;
    }
    // Tests build it with the features that they need, and a build without them would take minutes.
    Ok(root.join("target/debug/nodewise"))
}

fn look(folder: &Path, chromium: &Path, made: &reports::Made) -> Result<Value> {
    let pages: Vec<Value> =
        made.reports.iter().map(|report| json!({ "name": report.name, "axe": report.is_examined })).collect();
    let diagrams: Vec<Value> =
        made.diagrams.iter().map(|name| json!({ "name": name, "file": format!("{name}.mmd") })).collect();
    let job = json!({ "chromium": chromium, "pages": pages, "diagrams": diagrams });
    fs::write(folder.join("job.json"), job.to_string())?;
    fs::write(folder.join("check.js"), CHECK)?;
    let mut node = Command::new("node");
    node.current_dir(folder).args(["check.js", "job.json"]);
    serde_json::from_str(&program::read(&mut node)?).context("the answer of check.js is not JSON")
}

/// The table of what was looked at.
fn table(answer: &Value, reports: &[reports::PageFile]) -> String {
    let mut text =
        "| report | size, kB | looks | slowest to load, ms | axe: rules passed | minor findings |\n\
                    |---|---|---|---|---|---|\n"
            .to_owned();
    let number = |value: &Value| format!("{:.0}", value.as_f64().unwrap_or_default());
    for (page, report) in answer["pages"].as_array().into_iter().flatten().zip(reports) {
        let axe: Vec<&Value> = page["axe"].as_array().into_iter().flatten().collect();
        let passed: Vec<String> = axe.iter().map(|run| number(&run["passes"])).collect();
        let lesser: Vec<&str> = axe
            .iter()
            .flat_map(|run| run["lesser"].as_array().into_iter().flatten().filter_map(Value::as_str))
            .collect();
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {} |\n",
            report.name,
            report.bytes / 1000,
            number(&page["looks"]),
            number(&page["slowest_ms"]),
            if passed.is_empty() { "-".to_owned() } else { passed.join(", ") },
            if lesser.is_empty() { "-".to_owned() } else { lesser.join(", ") },
        ));
    }
    text.push_str("\n| diagram | letters | boxes | read and drawn, ms |\n|---|---|---|---|\n");
    for diagram in answer["diagrams"].as_array().into_iter().flatten() {
        let name = diagram["name"].as_str().unwrap_or_default();
        let [letters, boxes, took] = ["size", "nodes", "ms"].map(|key| number(&diagram[key]));
        text.push_str(&format!("| {name} | {letters} | {boxes} | {took} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_at_is_in_the_table() {
        let answer = json!({
            "pages": [{ "name": "eight", "looks": 12, "slowest_ms": 80.6, "axe": [{ "passes": 20, "lesser": ["region"] }] }],
            "diagrams": [{ "name": "a", "nodes": 8, "ms": 10.2, "size": 700 }],
        });
        let reports = [reports::PageFile { name: "eight".to_owned(), bytes: 250_400, is_examined: true }];
        let text = table(&answer, &reports);
        assert!(text.contains("| eight | 250 | 12 | 81 | 20 | region |\n"), "{text}");
        assert!(text.contains("| a | 700 | 8 | 10 |\n"), "{text}");
    }
}
