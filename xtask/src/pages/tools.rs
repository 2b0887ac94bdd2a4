//! The browser and the packages for it: Chromium and Node of the system, the rest from npm's registry.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use nodewise_lab::tools::find_program;
use serde_json::Value;

use crate::program;

/// Programs by Debian's packages.
const PROGRAMS: [(&str, &str); 3] = [("chromium", "chromium"), ("node", "nodejs"), ("npm", "npm")];
/// Packages of npm with their releases: no part of nodewise, and never given away with it.
const PACKAGES: [(&str, &str); 3] =
    [("puppeteer-core", "24.43.1"), ("axe-core", "4.14.1"), ("mermaid", "11.17.2")];

/// Installs what is missing, and returns where the browser is.
pub fn install(folder: &Path) -> Result<PathBuf> {
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(name, _)| find_program(name).is_none())
        .map(|(_, package)| *package)
        .collect();
    program::need_packages(&missing)?;
    let wanted: Vec<String> = PACKAGES
        .iter()
        .filter(|(name, release)| installed(folder, name).as_deref() != Some(*release))
        .map(|(name, release)| format!("{name}@{release}"))
        .collect();
    if !wanted.is_empty() {
        println!("packages of npm: installing {}", wanted.join(" "));
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--save-exact", "--prefix"]);
        program::quiet(npm.arg(folder).args(wanted))?;
    }
    find_program("chromium").context("chromium is not found")
}

/// The release of a package that npm has put there.
fn installed(folder: &Path, name: &str) -> Option<String> {
    let path = folder.join("node_modules").join(name).join("package.json");
    let package: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    package["version"].as_str().map(str::to_owned)
}
