//! `site`: docs/ as pages with a table of contents and a search, by mdBook, a tool of maintainers only. Building needs no network
//! once mdBook is there; what it writes loads nothing from elsewhere.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use nodewise_lab::tools::find_program;

use crate::program;

/// The last release that compiles with the oldest compiler of the command.
const RELEASE: &str = "0.4.48";

/// Builds the site and returns its first page.
pub fn run(root: &Path) -> Result<PathBuf> {
    let book = mdbook(root)?;
    program::show(Command::new(book).arg("build").arg(root))?;
    let folder = root.join("target/site");
    let foreign = foreign_addresses(&folder)?;
    ensure!(foreign.is_empty(), "pages load from elsewhere: {}", foreign.join(", "));
    Ok(folder.join("index.html"))
}

/// The system's mdBook, or one of cargo's registry below `target`.
fn mdbook(root: &Path) -> Result<PathBuf> {
    if let Some(found) = find_program("mdbook") {
        return Ok(found);
    }
    let folder = root.join("target/tools");
    let book = folder.join("bin/mdbook");
    if !book.exists() {
        let mut cargo = Command::new("cargo");
        cargo.args([
            "install",
            "--locked",
            "--no-default-features",
            "--features=search",
            "--version",
            RELEASE,
        ]);
        program::show(cargo.arg("--root").arg(folder).arg("mdbook"))?;
    }
    Ok(book)
}

/// Addresses outside of the site from which its pages load scripts, styles or pictures (links that a reader follows do not count).
fn foreign_addresses(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "html") {
            let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            found.extend(loads(&text).map(|address| format!("{}: {address}", path.display())));
        }
    }
    Ok(found)
}

/// Addresses behind `src=`, and behind `href=` of a `<link`.
fn loads(html: &str) -> impl Iterator<Item = &str> {
    let tags = html.split('<').skip(1).map(|tag| tag.split('>').next().unwrap_or(tag));
    tags.filter_map(|tag| {
        let name = if tag.starts_with("link ") { " href=\"" } else { " src=\"" };
        let value = tag.split_once(name)?.1.split('"').next()?;
        (value.contains("://") || value.starts_with("//")).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_a_page_loads_are_found_and_links_are_not() {
        let page = r#"<a href="https://a.example/">x</a><script src="https://b.example/x.js"></script>
            <link rel="stylesheet" href="//c.example/x.css"><img src="svg/own.svg">"#;
        assert_eq!(loads(page).collect::<Vec<_>>(), ["https://b.example/x.js", "//c.example/x.css"]);
    }
}
