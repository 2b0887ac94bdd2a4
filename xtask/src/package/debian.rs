//! Packages for Debian, from `packaging/debian`: a stanza of `control` for each, and the files of its maintainer.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::Packaging;
use super::tree::{PACKAGES, Trees, put, put_packed, walk};
use crate::{libnuma, program};

/// Who answers for the packages, as `changelog` names them.
fn maintainer(changelog: &str) -> Result<&str> {
    let line = changelog.lines().find_map(|line| line.strip_prefix(" -- "));
    let (who, _) =
        line.and_then(|line| line.split_once("  ")).context("packaging/debian/changelog has no signature")?;
    Ok(who)
}

/// How packages are compressed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As small as dpkg makes them.
    Small,
    /// Not at all: they are tried once, and thrown away.
    None,
}

impl Compression {
    const fn option(self) -> &'static str {
        match self {
            Self::Small => "-Zxz",
            Self::None => "-Znone",
        }
    }
}

/// Makes all of them.
pub fn make(packaging: &Packaging, trees: &Trees, compression: Compression) -> Result<Vec<PathBuf>> {
    let source = packaging.root.join("packaging/debian");
    let control = read(&source.join("control"))?;
    let changelog = read(&source.join("changelog"))?;
    let maintainer = maintainer(&changelog)?;
    let stanzas = stanzas(&control);
    PACKAGES
        .into_iter()
        .map(|package| {
            let stanza =
                stanzas.get(package).with_context(|| format!("packaging/debian/control has no {package}"))?;
            let stanza = stanza.replace("${version}", &packaging.version).replace("${libc}", &trees.libc);
            make_one(packaging, &trees.root(package), package, &stanza, maintainer, compression)
        })
        .collect()
}

/// The stanzas of a control file, by package.
fn stanzas(control: &str) -> BTreeMap<&str, &str> {
    let stanzas = control.split("\n\n").map(str::trim_end);
    stanzas
        .filter_map(|stanza| {
            let first = stanza.lines().next()?;
            Some((first.strip_prefix("Package: ")?, stanza))
        })
        .collect()
}

fn make_one(
    packaging: &Packaging,
    tree: &Path,
    package: &str,
    stanza: &str,
    maintainer: &str,
    compression: Compression,
) -> Result<PathBuf> {
    let source = packaging.root.join("packaging/debian");
    let docs = tree.join("usr/share/doc").join(package);
    put(&source.join("copyright"), &docs.join("copyright"))?;
    put_packed(&source.join("changelog"), &docs)?;
    let overrides = source.join(format!("{package}.lintian-overrides"));
    if overrides.exists() {
        put(&overrides, &tree.join("usr/share/lintian/overrides").join(package))?;
    }
    let folder = tree.join("DEBIAN");
    let sums = sums(tree)?;
    let size = installed_kib(tree)?;
    fs::create_dir_all(&folder)?;
    let (head, rest) = stanza.split_once('\n').unwrap_or((stanza, ""));
    let fields = format!(
        "{head}\nVersion: {}\nArchitecture: {}\nMaintainer: {maintainer}\nInstalled-Size: {size}\nPriority: optional\n{rest}\n",
        packaging.version,
        packaging.platform.debian(),
    );
    fs::write(folder.join("control"), fields)?;
    fs::write(folder.join("md5sums"), sums)?;
    for kind in ["postinst", "prerm", "postrm", "shlibs", "triggers"] {
        let from = source.join(format!("{package}.{kind}"));
        if from.exists() {
            let to = folder.join(kind);
            put(&from, &to)?;
            let mode = if kind.starts_with("p") { 0o755 } else { 0o644 };
            fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
        }
    }
    if package == "nodewise-libnuma1" {
        fs::write(folder.join("symbols"), symbols(packaging)?)?;
    }
    open_folders(tree)?;
    let file =
        packaging.out.join(format!("{package}_{}_{}.deb", packaging.version, packaging.platform.debian()));
    let mut command = Command::new("dpkg-deb");
    command.args(["--root-owner-group", compression.option(), "--build"]).arg(tree).arg(&file);
    program::quiet(command.env("SOURCE_DATE_EPOCH", packaging.date.to_string()))?;
    // RPM takes the same trees, without what is Debian's.
    fs::remove_dir_all(&folder)?;
    Ok(file)
}

/// The symbols of the library, each with the release of libnuma1 that a program which uses it needs.
fn symbols(packaging: &Packaging) -> Result<String> {
    let mut lines: Vec<String> = Vec::new();
    for (symbol, version) in libnuma::versioned(&packaging.root, packaging.platform)? {
        // As in the file of Debian's libnuma1 2.0.16, which ends with libnuma_1.6; 2.0.19 has the later ones.
        let since = match version.as_str() {
            "libnuma_1.7" | "libnuma_2.1" | "libnuma_2.2" => "2.0.19",
            "libnuma_1.6" | "libnuma_1.5" => "2.0.15",
            _ => "2.0.11",
        };
        lines.push(format!(" {symbol}@{version} {since}"));
    }
    lines.sort();
    lines.dedup();
    // dpkg-shlibdeps puts the newest release of the symbols that a program uses in the place of #MINVER#.
    Ok(format!("libnuma.so.1 libnuma1 #MINVER#\n{}\n", lines.join("\n")))
}

/// The sums of all files of a tree, as `md5sum` prints them.
fn sums(tree: &Path) -> Result<String> {
    let mut find = Command::new("sh");
    find.current_dir(tree)
        .args(["-c", "find usr lib -type f -print0 2>/dev/null | LC_ALL=C sort -z | xargs -0 md5sum"]);
    program::read(&mut find)
}

/// The size of a tree in KiB, as dpkg counts it: each file rounded up, each folder and link as one.
fn installed_kib(tree: &Path) -> Result<u64> {
    let mut size = 0;
    walk(tree, &mut |path| {
        let metadata = fs::symlink_metadata(path)?;
        size += if metadata.is_file() { metadata.len().div_ceil(1024) } else { 1 };
        Ok(())
    })?;
    Ok(size)
}

/// Gives folders the permissions that folders of packages have, whatever the builder's mask is.
fn open_folders(tree: &Path) -> Result<()> {
    walk(tree, &mut |path| {
        if fs::symlink_metadata(path)?.is_dir() {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    })
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_has_its_stanza_and_a_summary_of_one_line() {
        let control = include_str!("../../../packaging/debian/control");
        let stanzas = stanzas(control);
        assert_eq!(stanzas.len(), PACKAGES.len());
        for package in PACKAGES {
            let summary =
                stanzas[package].lines().find_map(|line| line.strip_prefix("Description: ")).unwrap();
            assert!(summary.len() <= 60, "{summary}");
        }
    }

    #[test]
    fn the_maintainer_is_the_one_who_signed() {
        let changelog = include_str!("../../../packaging/debian/changelog");
        assert!(maintainer(changelog).unwrap().starts_with("nodewise developers <"));
        assert!(maintainer("nodewise (1) unstable; urgency=low\n").is_err());
    }

    #[test]
    fn the_changelog_begins_with_the_version_of_the_workspace() {
        let changelog = include_str!("../../../packaging/debian/changelog");
        let expected = concat!("nodewise (", env!("CARGO_PKG_VERSION"), ")");
        assert!(changelog.starts_with(expected), "{changelog}");
    }
}
