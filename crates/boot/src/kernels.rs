//! The kernels that a system or an image has, with what they were built with: what shows whether a change of
//! their command line can have an effect.

use std::collections::BTreeMap;

use crate::error::BootError;
use crate::root::Root;

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its release, as files are named after it: `6.12.25+rpt-rpi-2712`. Not fit for a terminal.
    pub release: String,
    /// The options that it was built with, as its file has them; `None` where there is none.
    pub config: Option<String>,
}

/// How the names of configurations begin.
const CONFIG: &str = "config-";
/// Folders of modules, one below for each kernel: the second is a link to the first by now.
const MODULES: [&str; 2] = ["/usr/lib/modules", "/lib/modules"];
/// More kernels than a system keeps.
const MOST: usize = 64;

/// The kernels, by release. A configuration that cannot be read counts as not there.
///
/// # Source
/// `/boot/config-RELEASE` of Debian, Raspberry Pi OS and their kin, `/lib/modules/RELEASE/config` of Fedora
/// and Arch Linux.
///
/// # Errors
/// A folder that cannot be read.
pub fn installed(root: &Root) -> Result<Vec<Kernel>, BootError> {
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for folder in MODULES {
        for release in root.list(folder)? {
            paths.insert(release.clone(), format!("{folder}/{release}/config"));
        }
    }
    for name in root.list("/boot")? {
        if let Some(release) = name.strip_prefix(CONFIG) {
            paths.insert(release.to_owned(), format!("/boot/{name}"));
        }
    }
    let read = |path: String| {
        let bytes = root.read(&path).ok().flatten()?;
        String::from_utf8(bytes).ok()
    };
    let kernel = |(release, path): (String, String)| Kernel { release, config: read(path) };
    Ok(paths.into_iter().take(MOST).map(kernel).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn kernels_are_found_by_their_modules_and_their_configurations() {
        let folder = tempfile::tempdir().expect("a folder of our own");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("boot/config-6.12.1", "CONFIG_NUMA=y\n");
        write("boot/initrd.img-6.12.1", "");
        write("usr/lib/modules/6.12.1/modules.dep", "");
        write("usr/lib/modules/6.14.2/config", "# CONFIG_NUMA is not set\n");
        write("lib/modules/6.6.3/modules.dep", "");
        let root = Root::open(folder.path()).expect("it is there");
        let kernel = |release: &str, config: Option<&str>| Kernel {
            release: release.to_owned(),
            config: config.map(str::to_owned),
        };
        let expected = [
            kernel("6.12.1", Some("CONFIG_NUMA=y\n")),
            kernel("6.14.2", Some("# CONFIG_NUMA is not set\n")),
            kernel("6.6.3", None),
        ];
        assert_eq!(installed(&root).expect("readable"), expected);
        let empty = tempfile::tempdir().expect("a folder of our own");
        let root = Root::open(empty.path()).expect("it is there");
        assert_eq!(installed(&root).expect("readable"), []);
    }
}
