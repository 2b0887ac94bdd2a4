//! `package`: what a machine is given to install: packages for Debian and for RPM, a tarball, a list of parts.
//!
//! Files are put where they belong below a [tree](tree) for each package. dpkg-deb, rpmbuild and tar make packages of
//! the trees: what they hold is decided in one place. Dates are those of the last commit, and paths of the builder
//! are not in the programs: the same commit gives the same bytes.

pub mod binary;
mod debian;
mod emulated;
pub mod lint;
pub mod parts;
pub mod roots;
mod rpm;
mod tarball;
pub mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::platform::Platform;
use crate::{libnuma, program};
use binary::Binaries;
use debian::Compression;
use libnuma::build::Tools;
use tree::Trees;

/// Debian's packages with the programs that make packages.
const TOOLS: [&str; 5] = ["dpkg-dev", "xz-utils", "rpm", "gzip", "binutils"];
/// Those for Debian's packages alone.
const TOOLS_FOR_DEBIAN: [&str; 3] = ["dpkg-dev", "gzip", "binutils"];

/// The choices for packages: what, and for whom.
#[derive(Clone)]
pub struct Packaging {
    /// The clone.
    pub root: PathBuf,
    pub platform: Platform,
    /// Cargo's profile.
    pub profile: String,
    /// Where the packages go.
    pub out: PathBuf,
    pub version: String,
    /// Seconds since 1970: the date of all files.
    pub date: u64,
}

impl Packaging {
    /// A packaging of the clone, into its target folder unless another is named.
    pub fn new(root: &Path, platform: Option<Platform>, profile: &str, out: Option<PathBuf>) -> Result<Self> {
        let platform = platform.map_or_else(libnuma::own, Ok)?;
        Ok(Self {
            root: root.to_owned(),
            platform,
            profile: profile.to_owned(),
            // Tools run in folders of their own.
            out: std::path::absolute(out.unwrap_or_else(|| root.join("target/package")))?,
            version: version(root)?,
            date: date(root)?,
        })
    }

    /// A folder of this run below the packages.
    fn work(&self, name: &str) -> PathBuf {
        self.out.join("work").join(self.platform.compiler()).join(name)
    }
}

/// Makes all packages of a machine, and names them with their sizes.
pub fn run(packaging: &Packaging) -> Result<Vec<PathBuf>> {
    need(&TOOLS)?;
    need_compiler(packaging.platform)?;
    let tools = Tools::find(packaging.platform)?;
    let Binaries { dynamic, fixed } = Binaries::build(packaging, &tools)?;
    let trees = Trees::lay_out(packaging, &dynamic, &tools, &library(packaging)?)?;
    let mut made = debian::make(packaging, &trees, Compression::Small)?;
    made.extend(rpm::make(packaging, &trees)?);
    made.push(tarball::make(packaging, &fixed, &tools, &trees)?);
    made.push(parts::make(packaging)?);
    made.push(sums(packaging, &made)?);
    for file in &made {
        let size = fs::metadata(file).with_context(|| file.display().to_string())?.len();
        println!("{:>9} KiB  {}", size.div_ceil(1024), file.display());
    }
    Ok(made)
}

/// Makes Debian's packages around a command that is compiled already, quickly, to be tried: they are not compressed.
pub fn around(packaging: &Packaging, command: &Path) -> Result<Vec<PathBuf>> {
    need(&TOOLS_FOR_DEBIAN)?;
    need_compiler(packaging.platform)?;
    empty(&packaging.out)?;
    let tools = Tools::find(packaging.platform)?;
    let trees = Trees::lay_out(packaging, command, &tools, &library(packaging)?)?;
    debian::make(packaging, &trees, Compression::None)
}

/// Builds libnuma into a folder of this run.
fn library(packaging: &Packaging) -> Result<PathBuf> {
    let folder = packaging.work("libnuma");
    empty(&folder)?;
    let destination = libnuma::Destination {
        out: Some(folder.clone()),
        prefix: Some("/usr".into()),
        multiarch: true,
        ..libnuma::Destination::default()
    };
    libnuma::run(&packaging.root, Some(packaging.platform), destination)?;
    Ok(folder)
}

/// Makes everything twice, and compares the bytes.
pub fn twice(packaging: &Packaging) -> Result<()> {
    let first = run(packaging)?;
    let again = Packaging { out: packaging.out.join("again"), ..packaging.clone() };
    // Another folder of cargo, and none of libnuma's: nothing that was compiled is used again.
    empty(&libnuma::build::cargo_folder(&packaging.root))?;
    let second = run(&again)?;
    for (one, other) in first.iter().zip(&second) {
        if fs::read(one)? != fs::read(other)? {
            bail!("{} and {} differ", one.display(), other.display());
        }
    }
    println!("{} files, twice the same bytes", first.len());
    Ok(())
}

/// `SHA256SUMS` of the files.
fn sums(packaging: &Packaging, files: &[PathBuf]) -> Result<PathBuf> {
    let names = files.iter().filter_map(|file| file.file_name());
    let text = program::read(Command::new("sha256sum").current_dir(&packaging.out).args(names))?;
    let file = packaging.out.join(format!("SHA256SUMS.{}", packaging.platform.debian()));
    fs::write(&file, text)?;
    Ok(file)
}

/// Installs the compiler for a platform where it is missing, or says how.
pub fn need_compiler(platform: Platform) -> Result<()> {
    need(&platform.packages().iter().map(String::as_str).collect::<Vec<_>>())
}

/// Installs those of the packages that are missing, or says how.
pub fn need(packages: &[&str]) -> Result<()> {
    let missing: Vec<&str> = packages.iter().copied().filter(|package| !is_installed(package)).collect();
    program::need_packages(&missing)
}

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    let status = program::read(query.args(["-W", "-f=${db:Status-Status}", package]));
    status.is_ok_and(|status| status == "installed")
}

/// The version of the workspace.
fn version(root: &Path) -> Result<String> {
    let metadata = program::metadata(root)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let ours = packages.iter().find(|package| package["name"] == "nodewise");
    let version = ours.and_then(|package| package["version"].as_str());
    version.map(str::to_owned).context("cargo metadata has no version of nodewise")
}

/// The date of all files: `SOURCE_DATE_EPOCH`, else that of the last commit.
fn date(root: &Path) -> Result<u64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        return text
            .parse()
            .with_context(|| format!("SOURCE_DATE_EPOCH={text}: expected seconds since 1970"));
    }
    let text = program::read(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]))?;
    text.trim().parse().context("git names no date of the last commit: set SOURCE_DATE_EPOCH")
}

/// Makes a folder, and empties it if it exists.
pub fn empty(folder: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}
