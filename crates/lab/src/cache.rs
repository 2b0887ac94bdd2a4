//! The folder where the lab keeps what it fetched: kernels.
//!
//! ```text
//! ~/.cache/nodewise/lab/          or $XDG_CACHE_HOME/nodewise/lab/
//!     kernels/6.12.107+deb13-amd64/boot/vmlinuz-6.12.107+deb13-amd64
//!                                 /lib/modules/6.12.107+deb13-amd64/
//! ```
//!
//! `cargo xtask lab-setup` fills it. A kernel's folder appears there complete or not at all.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nodewise_machine::printable::quote;

/// Folders that a guest covers with file systems of its own, so that what the host has there cannot
/// be seen inside.
const COVERED: [&str; 2] = ["/dev", "/run"];

/// Whether a guest sees the host's files under this path.
pub fn is_seen_by_guests(path: &Path) -> bool {
    !COVERED.iter().any(|covered| path.starts_with(covered))
}

/// Why the lab has no cache folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// Neither variable names a folder.
    #[error("no cache folder: neither XDG_CACHE_HOME nor HOME holds an absolute path")]
    NoHome,
    /// Guests could not use it.
    #[error("the cache folder {} does not work for the lab: {reason} (XDG_CACHE_HOME can name another)", quote(&path.to_string_lossy()))]
    Unsuitable { path: PathBuf, reason: &'static str },
}

/// The lab's cache folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Finds this user's cache folder; it need not exist.
    ///
    /// # Source
    /// `XDG_CACHE_HOME`, else `.cache` in `HOME`: XDG Base Directory Specification 0.8.
    ///
    /// # Errors
    /// No folder is named, or one that guests cannot use.
    pub fn locate() -> Result<Self, CacheError> {
        Self::from_variables(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))
    }

    fn from_variables(cache: Option<OsString>, home: Option<OsString>) -> Result<Self, CacheError> {
        let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute(cache)
            .or_else(|| absolute(home).map(|home| home.join(".cache")))
            .ok_or(CacheError::NoHome)?;
        let root = base.join("nodewise/lab");
        if !is_seen_by_guests(&root) {
            return Err(CacheError::Unsuitable {
                path: root,
                reason: "guests have a file system of their own there",
            });
        }
        Ok(Self { root })
    }

    /// A cache in a folder of one's own.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that holds a folder per kernel release.
    pub fn kernels(&self) -> PathBuf {
        self.root.join("kernels")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cache: Option<&str>, home: Option<&str>, expected: Result<&str, &str>) {
        let found = Cache::from_variables(cache.map(OsString::from), home.map(OsString::from));
        let found = found.map(|cache| cache.root.display().to_string()).map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn the_cache_is_where_xdg_says() {
        check(Some("/data/cache"), Some("/data/me"), Ok("/data/cache/nodewise/lab"));
        check(None, Some("/data/me"), Ok("/data/me/.cache/nodewise/lab"));
        check(Some(""), Some("/data/me"), Ok("/data/me/.cache/nodewise/lab"));
        check(
            Some("relative"),
            None,
            Err("no cache folder: neither XDG_CACHE_HOME nor HOME holds an absolute path"),
        );
    }

    #[test]
    fn a_cache_that_guests_cannot_use_is_refused() {
        check(
            Some("/run/cache/me"),
            None,
            Err(
                "the cache folder \"/run/cache/me/nodewise/lab\" does not work for the lab: guests have a file \
                 system of their own there (XDG_CACHE_HOME can name another)",
            ),
        );
        check(Some("/var/my cache"), None, Ok("/var/my cache/nodewise/lab"));
    }

    #[test]
    fn covered_folders_are_compared_by_name_and_not_by_prefix() {
        assert!(is_seen_by_guests(Path::new("/running/x")));
        assert!(!is_seen_by_guests(Path::new("/run/user/1000")));
    }
}
