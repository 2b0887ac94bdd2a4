//! The files of each package, where they belong below its root.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Packaging, binary, empty};
use crate::libnuma::build::Tools;
use crate::program;

/// The packages, by Debian's names.
pub const PACKAGES: [&str; 4] = ["nodewise", "nodewise-numactl", "nodewise-libnuma1", "nodewise-libnuma-dev"];
/// Pages of docs that people read where the program is installed.
const DOCS: [&str; 3] = ["docs/rules.md", "docs/balance.md", "docs/compat.md"];

/// The trees of all packages.
pub struct Trees {
    folder: PathBuf,
    /// The newest version of the C library that the programs need.
    pub libc: String,
}

impl Trees {
    /// Puts everything in its place.
    pub fn lay_out(packaging: &Packaging, command: &Path, tools: &Tools, libnuma: &Path) -> Result<Self> {
        let folder = packaging.work("trees");
        empty(&folder)?;
        let trees = Self { folder, libc: binary::libc(tools, command)? };
        trees.command(packaging, command, tools)?;
        trees.tools(packaging)?;
        trees.library(packaging, libnuma)?;
        Ok(trees)
    }

    /// The root of one package.
    pub fn root(&self, package: &str) -> PathBuf {
        self.folder.join(package)
    }

    fn command(&self, packaging: &Packaging, command: &Path, tools: &Tools) -> Result<()> {
        let to = self.root("nodewise");
        let from = &packaging.root;
        let file = to.join("usr/bin/nodewise");
        put(command, &file)?;
        strip(tools, &file)?;
        for page in files_of(&from.join("packaging/man"))? {
            put_packed(&page, &to.join("usr/share/man/man1"))?;
        }
        let completions = from.join("packaging/completions");
        put(&completions.join("nodewise.bash"), &to.join("usr/share/bash-completion/completions/nodewise"))?;
        put(&completions.join("_nodewise"), &to.join("usr/share/zsh/vendor-completions/_nodewise"))?;
        put(
            &completions.join("nodewise.fish"),
            &to.join("usr/share/fish/vendor_completions.d/nodewise.fish"),
        )?;
        put(&from.join("crates/counter/include/nodewise.h"), &to.join("usr/include/nodewise.h"))?;
        for unit in files_of(&from.join("packaging/systemd"))? {
            put(&unit, &to.join("lib/systemd/system").join(name(&unit)))?;
        }
        for folder in ["suites", "scenarios"] {
            for file in files_of(&from.join(folder))? {
                put(&file, &to.join("usr/share/nodewise").join(folder).join(name(&file)))?;
            }
        }
        for page in DOCS {
            put_packed(&from.join(page), &to.join("usr/share/doc/nodewise"))?;
        }
        Ok(())
    }

    fn tools(&self, packaging: &Packaging) -> Result<()> {
        let to = self.root("nodewise-numactl");
        fs::create_dir_all(to.join("usr/bin"))?;
        // A test of the command holds the pages against its names.
        for page in files_of(&packaging.root.join("packaging/man/tools"))? {
            symlink("nodewise", to.join("usr/bin").join(page.file_stem().unwrap_or_default()))?;
            put_packed(&page, &to.join("usr/share/man/man8"))?;
        }
        Ok(())
    }

    fn library(&self, packaging: &Packaging, built: &Path) -> Result<()> {
        let lib = Path::new("lib").join(packaging.platform.triplet());
        let (from, below) = (built.join(&lib), Path::new("usr").join(&lib));
        let run = self.root("nodewise-libnuma1").join(&below);
        put(&from.join("libnuma.so.1.0.0"), &run.join("libnuma.so.1.0.0"))?;
        symlink("libnuma.so.1.0.0", run.join("libnuma.so.1"))?;
        let development = self.root("nodewise-libnuma-dev");
        put(&from.join("libnuma.a"), &development.join(&below).join("libnuma.a"))?;
        symlink("libnuma.so.1", development.join(&below).join("libnuma.so"))?;
        put(&from.join("pkgconfig/numa.pc"), &development.join(&below).join("pkgconfig/numa.pc"))?;
        for header in files_of(&built.join("include"))? {
            put(&header, &development.join("usr/include").join(name(&header)))?;
        }
        Ok(())
    }
}

/// The plain files of a folder, in alphabetical order.
pub fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn name(file: &Path) -> &std::ffi::OsStr {
    file.file_name().unwrap_or_default()
}

/// Copies a file, with the permissions that files of packages have.
pub fn put(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    let is_program = to.parent().is_some_and(|folder| folder.ends_with("usr/bin"));
    let mode = if is_program { 0o755 } else { 0o644 };
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).with_context(|| to.display().to_string())
}

/// Copies a file into a folder, compressed without a name or a date.
pub fn put_packed(from: &Path, folder: &Path) -> Result<()> {
    let to = folder.join(name(from));
    put(from, &to)?;
    program::quiet(Command::new("gzip").args(["-9", "-n", "-f"]).arg(&to))
}

/// Takes symbols out of a program, those of libraries in it, too.
pub fn strip(tools: &Tools, file: &Path) -> Result<()> {
    let mut strip = tools.command("strip", Path::new("/"));
    program::quiet(strip.args(["--strip-all", "--remove-section=.comment"]).arg(file))
}

/// Visits a folder and all below it.
pub fn walk(folder: &Path, visit: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    visit(folder)?;
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        entries.push(entry?.path());
    }
    entries.sort();
    for path in entries {
        if fs::symlink_metadata(&path)?.is_dir() { walk(&path, visit)? } else { visit(&path)? }
    }
    Ok(())
}
