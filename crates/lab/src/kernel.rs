//! Which kernel a guest boots.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nodewise_machine::KernelRelease;
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::{printable, quote};

use crate::arch::Arch;
use crate::cache::Cache;

/// The version that guests boot when none is named: that of Debian 13.
pub const DEFAULT_VERSION: &str = "6.12";

/// The versions that the tests boot on x86-64: that, one with what came with 6.16, and one that lacks much.
pub const TESTED_VERSIONS: [&str; 3] = [DEFAULT_VERSION, "6.18", "6.1"];

/// The kernel a user asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelChoice {
    /// The newest in the cache whose release starts with this version: `6.12`, `6.12.107`.
    Version(String),
    /// An image file; its modules are those under the nearest `lib/modules` above it.
    File(PathBuf),
}

impl Default for KernelChoice {
    fn default() -> Self {
        Self::Version(DEFAULT_VERSION.to_owned())
    }
}

impl FromStr for KernelChoice {
    type Err = Infallible;

    /// Reads a version, which starts with a digit and has no slash, or else the path of a file.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let version = text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains('/');
        Ok(if version { Self::Version(text.to_owned()) } else { Self::File(PathBuf::from(text)) })
    }
}

/// Whether a release is of this version: `6.1` is the version of `6.1.0-44-amd64`, not of `6.12.107`.
pub fn is_of_version(release: &str, version: &str) -> bool {
    release
        .strip_prefix(version)
        .is_some_and(|rest| !version.is_empty() && !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Orders releases by age: their numbers one after the other, so that 6.12.107 comes after 6.12.9.
pub fn compare_releases(a: &str, b: &str) -> Ordering {
    // Digits that do not fit a u64 are not a release of Linux; they only need some order.
    let numbers = |release: &str| -> Vec<u64> {
        release
            .split(|c: char| !c.is_ascii_digit())
            .filter(|digits| !digits.is_empty())
            .map(|digits| digits.parse().unwrap_or(u64::MAX))
            .collect()
    };
    numbers(a).cmp(&numbers(b)).then_with(|| a.cmp(b))
}

/// A kernel that can be booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub image: PathBuf,
    /// Its release; `None` for a file, which only shows it when booted.
    pub release: Option<KernelRelease>,
}

/// Why there is no kernel to boot.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The cache has none of that version.
    #[error("no kernel {} for {} in {}{}: name an image, such as --kernel=/boot/vmlinuz-VERSION, or fetch it in a clone of nodewise with `cargo xtask lab-setup{} --kernel {}`", printable(version), arch.debian(), printable(&folder.to_string_lossy()), list(there), option(*arch), printable(version))]
    NotFetched {
        version: String,
        /// The architecture it is for.
        arch: Arch,
        /// Where kernels are looked for.
        folder: PathBuf,
        /// The releases that are there.
        there: Vec<String>,
    },
    /// The file cannot be read.
    #[error("cannot read the kernel image {}", quote(&path.to_string_lossy()))]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Names the option that makes lab-setup fetch kernels of this architecture.
fn option(arch: Arch) -> String {
    if arch == Arch::default() { String::new() } else { format!(" --arch {}", arch.debian()) }
}

fn list(there: &[String]) -> String {
    if there.is_empty() { String::new() } else { format!(" (there: {})", printable(&there.join(", "))) }
}

impl Kernel {
    /// Finds the kernel a user asks for, for guests of an architecture.
    ///
    /// # Errors
    /// None of that version was fetched, or the file cannot be read.
    pub fn find(cache: &Cache, choice: &KernelChoice, arch: Arch) -> Result<Self, KernelError> {
        match choice {
            KernelChoice::File(path) => match fs::File::open(path).and_then(|_| path.canonicalize()) {
                Ok(image) => Ok(Self { image, release: None }),
                Err(source) => Err(KernelError::Unreadable { path: path.clone(), source }),
            },
            KernelChoice::Version(version) => {
                let folder = cache.kernels();
                let there = fetched(&folder, arch);
                let newest = there.iter().rfind(|release| is_of_version(release.text(), version));
                match newest {
                    Some(release) => {
                        Ok(Self { image: image(&folder, release), release: Some(release.clone()) })
                    }
                    None => Err(KernelError::NotFetched {
                        version: version.clone(),
                        arch,
                        folder,
                        there: there.iter().map(|release| release.text().to_owned()).collect(),
                    }),
                }
            }
        }
    }
}

/// The kernels of an architecture in a folder, oldest first. A folder that does not exist has none; a kernel that is
/// still being unpacked has a name that starts with a dot.
pub fn fetched(folder: &Path, arch: Arch) -> Vec<KernelRelease> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut releases: Vec<KernelRelease> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| KernelRelease::new(entry.file_name().to_str()?))
        .filter(|release| arch.has_kernel(release.text()) && image(folder, release).is_file())
        .collect();
    releases.order_by(|a, b| compare_releases(a.text(), b.text()));
    releases
}

fn image(folder: &Path, release: &KernelRelease) -> PathBuf {
    folder.join(release.text()).join("boot").join(format!("vmlinuz-{}", release.text()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn a_version_is_told_from_a_file() {
        let check = |text: &str, expected: KernelChoice| assert_eq!(text.parse(), Ok(expected));
        check("6.12", KernelChoice::Version("6.12".to_owned()));
        check("6.12.107+deb13-amd64", KernelChoice::Version("6.12.107+deb13-amd64".to_owned()));
        check("./6.12", KernelChoice::File("./6.12".into()));
        check("bzImage", KernelChoice::File("bzImage".into()));
    }

    #[test]
    fn versions_end_at_a_number() {
        for (release, version, expected) in [
            ("6.1.0-44-amd64", "6.1", true),
            ("6.12.107+deb13-amd64", "6.1", false),
            ("6.12.107+deb13-amd64", "6.12", true),
            ("6.12.107+deb13-amd64", "6.12.10", false),
            ("6.12.107+deb13-amd64", "6.12.107+deb13-amd64", true),
            ("6.12.107+deb13-amd64", "", false),
        ] {
            assert_eq!(is_of_version(release, version), expected, "{release} {version}");
        }
    }

    #[test]
    fn releases_are_ordered_by_number() {
        let mut releases =
            ["6.18.5+deb13-amd64", "6.12.107+deb13-amd64", "6.1.0-44-amd64", "6.12.9+deb13-amd64"];
        releases.sort_by(|a, b| compare_releases(a, b));
        assert_eq!(
            releases,
            ["6.1.0-44-amd64", "6.12.9+deb13-amd64", "6.12.107+deb13-amd64", "6.18.5+deb13-amd64"]
        );
    }

    fn cache_with(releases: &[&str]) -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        for release in releases {
            let boot = folder.path().join("kernels").join(release).join("boot");
            fs::create_dir_all(&boot).unwrap();
            fs::write(boot.join(format!("vmlinuz-{}", release.trim_start_matches('.'))), "").unwrap();
        }
        let cache = Cache::at(folder.path());
        (folder, cache)
    }

    #[test]
    fn the_newest_of_a_version_is_found() {
        let (folder, cache) = cache_with(&[
            "6.12.9+deb13-amd64",
            "6.12.107+deb13-amd64",
            "6.12.200+deb13-arm64",
            "6.18.5+deb13-amd64",
            ".6.12.300+deb13-amd64",
        ]);
        let kernel = Kernel::find(&cache, &KernelChoice::default(), Arch::X86).unwrap();
        assert_eq!(kernel.release.unwrap().text(), "6.12.107+deb13-amd64");
        let image = "kernels/6.12.107+deb13-amd64/boot/vmlinuz-6.12.107+deb13-amd64";
        assert_eq!(kernel.image, folder.path().join(image));
        let kernel = Kernel::find(&cache, &KernelChoice::default(), Arch::Arm).unwrap();
        assert_eq!(kernel.release.unwrap().text(), "6.12.200+deb13-arm64");
    }

    #[test]
    fn a_kernel_that_is_not_there_comes_with_the_command_that_fetches_it() {
        let (folder, cache) = cache_with(&["6.12.9+deb13-amd64"]);
        let kernels = folder.path().join("kernels").display().to_string();
        let check = |arch: Arch, expected: String| {
            let error = Kernel::find(&cache, &KernelChoice::Version("6.18".to_owned()), arch).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check(
            Arch::X86,
            format!(
                "no kernel 6.18 for amd64 in {kernels} (there: 6.12.9+deb13-amd64): name an image, such as \
                 --kernel=/boot/vmlinuz-VERSION, or fetch it in a clone of nodewise with `cargo xtask lab-setup --kernel 6.18`"
            ),
        );
        check(
            Arch::Arm,
            format!(
                "no kernel 6.18 for arm64 in {kernels}: name an image, such as --kernel=/boot/vmlinuz-VERSION, or \
                 fetch it in a clone of nodewise with `cargo xtask lab-setup --arch arm64 --kernel 6.18`"
            ),
        );
        let error = Kernel::find(&cache, &KernelChoice::File("no\u{1b}image".into()), Arch::X86).unwrap_err();
        assert_eq!(error.to_string(), "cannot read the kernel image \"no\\x1bimage\"");
    }

    proptest! {
        #[test]
        fn releases_of_any_kind_have_one_order(a in any::<String>(), b in any::<String>()) {
            prop_assert_eq!(compare_releases(&a, &b), compare_releases(&b, &a).reverse());
            prop_assert_eq!(compare_releases(&a, &b) == Ordering::Equal, a == b);
        }
    }
}
