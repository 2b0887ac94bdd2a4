//! `package`: what a machine is given to install: packages for Debian and for RPM, a tarball, a list of parts.
//!
//! Files are put where they belong below a [tree](tree) for each package. dpkg-deb, rpmbuild and tar make packages of
//! the trees: what they hold is decided in one place. Dates are those of the last commit, and paths of the builder
//! are not in the programs: the same commit gives the same bytes.

mod binary;
mod debian;
pub mod parts;
pub mod roots;
mod rpm;
mod tarball;
pub mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use nodewise_lab::Arch;

use crate::{libnuma, program};
use binary::Binaries;
use tree::Trees;

/// Debian's packages with the programs that make packages.
const TOOLS: [&str; 5] = ["dpkg-dev", "xz-utils", "rpm", "gzip", "binutils"];

/// The choices for packages: what, and for whom.
#[derive(Clone)]
pub struct Packaging {
    /// The clone.
    pub root: PathBuf,
    pub arch: Arch,
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
    pub fn new(root: &Path, arch: Option<Arch>, profile: &str, out: Option<PathBuf>) -> Result<Self> {
        let arch = arch.or_else(libnuma::own).context("packages are made for x86_64 and aarch64")?;
        Ok(Self {
            root: root.to_owned(),
            arch,
            profile: profile.to_owned(),
            out: out.unwrap_or_else(|| root.join("target/package")),
            version: version(root)?,
            date: date(root)?,
        })
    }

    /// A folder of this run below the packages.
    fn work(&self, name: &str) -> PathBuf {
        self.out.join("work").join(self.arch.compiler()).join(name)
    }
}

/// Makes all packages of a machine, and names them with their sizes.
pub fn run(packaging: &Packaging) -> Result<Vec<PathBuf>> {
    need(&TOOLS)?;
    let binaries = Binaries::build(packaging)?;
    let libnuma = packaging.work("libnuma");
    empty(&libnuma)?;
    let destination = libnuma::Destination {
        out: Some(libnuma.clone()),
        prefix: Some("/usr".into()),
        multiarch: true,
        ..libnuma::Destination::default()
    };
    libnuma::run(&packaging.root, Some(packaging.arch), destination)?;
    let trees = Trees::lay_out(packaging, &binaries, &libnuma)?;
    let mut made = debian::make(packaging, &trees)?;
    made.extend(rpm::make(packaging, &trees)?);
    made.push(tarball::make(packaging, &binaries, &trees)?);
    made.push(parts::make(packaging)?);
    made.push(sums(packaging, &made)?);
    for file in &made {
        let size = fs::metadata(file).with_context(|| file.display().to_string())?.len();
        println!("{:>9} KiB  {}", size.div_ceil(1024), file.display());
    }
    Ok(made)
}

/// Makes everything twice, and compares the bytes.
pub fn twice(packaging: &Packaging) -> Result<()> {
    let first = run(packaging)?;
    let again = Packaging { out: packaging.out.join("again"), ..packaging.clone() };
    // Another folder of cargo: nothing that was compiled is used again.
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
    let file = packaging.out.join(format!("SHA256SUMS.{}", packaging.arch.debian()));
    fs::write(&file, text)?;
    Ok(file)
}

/// Installs those of the packages that are missing, or says how.
fn need(packages: &[&str]) -> Result<()> {
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
