//! Where the parts of the library are put, and where `numa.pc` says that they are.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::platform::Platform;

/// The version in `numa.pc`: the interface of 2.0.19, and what upstream has added to it since (`libnuma_2.2`), which no
/// release of it has. Programs that need 2.0.19 or less find it new enough.
pub const VERSION: &str = "2.0.19.1";

/// Where the parts go.
pub struct Places {
    /// The folder that everything is written below.
    pub out: PathBuf,
    /// The path that replaces that folder where the library is used.
    prefix: PathBuf,
    /// The folder of libraries below both.
    libdir: PathBuf,
}

impl Places {
    /// The places below `out`; without a prefix the library is used where it is built.
    ///
    /// # Errors
    /// A folder of libraries that is not below the prefix.
    pub fn new(out: &Path, prefix: Option<PathBuf>, libdir: PathBuf) -> Result<Self> {
        let out = std::path::absolute(out)?;
        let inside = libdir.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !inside || libdir.as_os_str().is_empty() {
            bail!("--libdir {}: expected a folder below the prefix, such as lib64", libdir.display());
        }
        let prefix = prefix.unwrap_or_else(|| out.clone());
        if !prefix.is_absolute() {
            bail!("--prefix {}: expected an absolute path, such as /usr", prefix.display());
        }
        Ok(Self { out, prefix, libdir })
    }

    /// The folder of libraries.
    pub fn lib(&self) -> PathBuf {
        self.out.join(&self.libdir)
    }

    /// The folder of headers.
    pub fn include(&self) -> PathBuf {
        self.out.join("include")
    }

    /// `numa.pc`, from its template.
    pub fn description(&self, template: &str) -> String {
        template
            .replace("@PREFIX@", &self.prefix.display().to_string())
            .replace("@LIBDIR@", &self.libdir.display().to_string())
            .replace("@VERSION@", VERSION)
    }
}

/// The folder of libraries of a machine on Debian.
pub fn multiarch(platform: Platform) -> PathBuf {
    Path::new("lib").join(platform.triplet())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_says_where_the_library_will_be() {
        let places =
            Places::new(Path::new("/tmp/out"), Some("/usr".into()), multiarch(Platform::Amd64)).unwrap();
        let template = include_str!("../../../crates/libnuma/include/numa.pc.in");
        let text = places.description(template);
        assert!(text.starts_with("prefix=/usr\nlibdir=${prefix}/lib/x86_64-linux-gnu\n"), "{text}");
        assert!(text.contains("\nVersion: 2.0.19.1\n") && !text.contains('@'), "{text}");
        assert_eq!(places.lib(), Path::new("/tmp/out/lib/x86_64-linux-gnu"));
    }

    #[test]
    fn the_version_is_newer_than_2_0_19_because_symbols_are() {
        let map = include_str!("../../../crates/libnuma/link/libnuma.map");
        // 2.0.19 ends with libnuma_2.1; a release that has these names it.
        assert!(map.contains("libnuma_2.2 {") && VERSION.starts_with("2.0.19."), "{VERSION}");
        let manual = include_str!("../../../docs/libnuma.md");
        assert!(manual.contains(&format!("`numa.pc` says {VERSION}")), "docs/libnuma.md names {VERSION}");
    }

    #[test]
    fn folders_outside_of_the_prefix_are_refused() {
        let places = |prefix: &str, libdir: &str| {
            Places::new(Path::new("/tmp/out"), Some(prefix.into()), libdir.into()).map(|_| ())
        };
        assert!(places("/usr", "lib64").is_ok());
        for (prefix, libdir) in [("/usr", "../lib"), ("/usr", "/usr/lib"), ("/usr", ""), ("usr", "lib")] {
            assert!(places(prefix, libdir).is_err(), "{prefix} {libdir}");
        }
    }
}
