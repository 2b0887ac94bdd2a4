//! A private state for apt: sources and lists of its own in the cache folder, so that the system's
//! configuration stays as it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use nodewise_lab::{Arch, Cache};

use super::system;

/// Debian's mirror for everyone.
const MIRROR: &str = "http://deb.debian.org/debian";
/// Where the keys of Debian's archive are installed, on Ubuntu too.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The purpose of getting packages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// They are installed, beside those of the system.
    Install,
    /// Those of an architecture are downloaded, and none count as installed.
    Download(Arch),
}

/// An apt with its own sources.
pub struct PrivateApt {
    root: PathBuf,
    purpose: Purpose,
}

/// The suite of a release's backports.
pub fn backports_suite(codename: &str) -> String {
    format!("{codename}-backports")
}

impl PrivateApt {
    /// For downloads from one suite of Debian, of packages for an architecture.
    pub fn suite(cache: &Cache, suite: &str, arch: Arch) -> Result<Self> {
        // A cache that has states of x86-64 keeps them.
        let name = if arch == Arch::X86 { suite.to_owned() } else { format!("{suite}-{}", arch.debian()) };
        Self::new(cache, &name, &source(suite), Purpose::Download(arch))
    }

    /// For sources of the packages of a release.
    pub fn sources(cache: &Cache, codename: &str) -> Result<Self> {
        let name = format!("{codename}-sources");
        Self::new(
            cache,
            &name,
            &source(codename).replacen("deb ", "deb-src ", 1),
            Purpose::Download(Arch::X86),
        )
    }

    /// For installations from the backports of the Debian that runs here; knows its other suites
    /// too, because backports depend on them.
    pub fn backports(cache: &Cache, codename: &str) -> Result<Self> {
        let security = format!(
            "deb [signed-by={KEYS}] {} {codename}-security main\n",
            mirror().replace("/debian", "/debian-security")
        );
        let suites = [codename.to_owned(), format!("{codename}-updates"), backports_suite(codename)];
        let sources: String = suites.iter().map(|suite| source(suite)).chain([security]).collect();
        Self::new(cache, &backports_suite(codename), &sources, Purpose::Install)
    }

    fn new(cache: &Cache, name: &str, sources: &str, purpose: Purpose) -> Result<Self> {
        let root = cache.root().join("apt").join(name);
        let make = || {
            fs::create_dir_all(root.join("lists/partial"))?;
            fs::create_dir_all(root.join("cache/archives/partial"))?;
            fs::write(root.join("status"), "")?;
            fs::write(root.join("sources.list"), sources)
        };
        make().with_context(|| format!("cannot make {}", root.display()))?;
        Ok(Self { root, purpose })
    }

    /// A command of apt's that knows nothing but this state.
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        let mut set = |option: &str, value: String| {
            command.args(["-o", &format!("{option}={value}")]);
        };
        let path = |name: &str| self.root.join(name).display().to_string();
        set("Dir::Etc::sourcelist", path("sources.list"));
        set("Dir::Etc::sourceparts", "-".to_owned());
        set("Dir::State::Lists", path("lists"));
        if let Purpose::Download(arch) = self.purpose {
            set("APT::Architecture", arch.debian().to_owned());
            set("APT::Architectures", arch.debian().to_owned());
            set("Dir::State::status", path("status"));
            set("Dir::Cache", path("cache"));
            // Pins of the system are about the system.
            set("Dir::Etc::preferences", "-".to_owned());
            set("Dir::Etc::preferencesparts", "-".to_owned());
        } else {
            // The caches of package lists belong to the system's lists.
            set("Dir::Cache::pkgcache", String::new());
            set("Dir::Cache::srcpkgcache", String::new());
        }
        // A cache folder in a home is closed to the user that apt would become.
        set("APT::Sandbox::User", "root".to_owned());
        // Nothing but the lists of packages.
        set("Acquire::Languages", "none".to_owned());
        set("Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false".to_owned());
        set("Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled", "false".to_owned());
        set("Acquire::Retries", "3".to_owned());
        command.args(arguments);
        command
    }
}

fn source(suite: &str) -> String {
    format!("deb [signed-by={KEYS}] {} {suite} main\n", mirror())
}

/// The mirror that the system's own sources use when it is a Debian, because others may be out of
/// reach; else Debian's.
fn mirror() -> String {
    let own = (system::distribution().id == "debian").then(system_sources).unwrap_or_default();
    first_mirror(&own).unwrap_or(MIRROR).to_owned()
}

/// The text of all sources of the system.
fn system_sources() -> String {
    let parts = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = parts.map(|part| part.path()).collect();
    paths.sort();
    paths.insert(0, Path::new("/etc/apt/sources.list").to_owned());
    paths.iter().filter_map(|path| fs::read_to_string(path).ok()).collect::<Vec<_>>().join("\n")
}

/// The first address of a Debian archive in sources of either format.
fn first_mirror(sources: &str) -> Option<&str> {
    sources
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(str::split_whitespace)
        .map(|word| word.trim_end_matches('/'))
        .find(|word| word.starts_with("http") && word.ends_with("/debian"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_mirror_is_used_again() {
        for (sources, expected) in [
            ("deb http://mirror.example/debian/ bookworm main\n", Some("http://mirror.example/debian")),
            (
                "Types: deb\n# http://old.example/debian\nURIs: https://deb.example/debian\nSuites: bookworm\n",
                Some("https://deb.example/debian"),
            ),
            ("deb http://security.example/debian-security bookworm-security main\n", None),
            ("deb cdrom:[Debian]/ bookworm main\n", None),
            ("", None),
        ] {
            assert_eq!(first_mirror(sources), expected, "{sources}");
        }
    }

    #[test]
    fn a_state_for_downloads_knows_nothing_of_the_system() {
        let folder = tempfile::tempdir().unwrap();
        let line = |name: &str, arch: Arch| {
            let apt = PrivateApt::suite(&Cache::at(folder.path()), "trixie", arch).unwrap();
            let line = crate::program::line(&apt.command("apt-get", &["update"]));
            let status = folder.path().join("apt").join(name).join("status");
            assert!(line.contains(&format!("-o Dir::State::status={}", status.display())), "{line}");
            line
        };
        line("trixie", Arch::X86);
        let arm = line("trixie-arm64", Arch::Arm);
        assert!(arm.contains("-o APT::Architecture=arm64 -o APT::Architectures=arm64"), "{arm}");
        let root = folder.path().join("apt/trixie-arm64");
        let sources = fs::read_to_string(root.join("sources.list")).unwrap();
        assert!(sources.ends_with("/debian trixie main\n"), "{sources}");
    }
}
