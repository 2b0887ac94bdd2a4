//! Versions of programs whose advice depends on them.

use crate::process::Pid;
use crate::tree::Tree;

/// The most bytes of a `release` file.
const MOST: usize = 1 << 14;

/// The major version of the Java that a process runs: 8 of `1.8.0_392`. `None` where nothing says so.
///
/// # Source
/// `JAVA_VERSION` of the file `release` beside the folder of the executable, as every JDK since 7 has it.
pub fn java(tree: &Tree, pid: Pid, exe: &str) -> Option<u32> {
    let home = exe.strip_suffix("/bin/java")?;
    let home = home.strip_suffix("/jre").unwrap_or(home);
    if home.contains("..") || !home.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::new();
    // The process may see another root, as in a container.
    tree.read_start(&format!("/proc/{pid}/root{home}/release"), MOST, &mut bytes)
        .ok()
        .filter(|there| *there)?;
    let text = String::from_utf8_lossy(&bytes);
    let value = text.lines().find_map(|line| line.strip_prefix("JAVA_VERSION="))?;
    java_major(value.trim().trim_matches('"'))
}

fn java_major(version: &str) -> Option<u32> {
    let mut numbers = version.split(['.', '_', '-', '+']).map(str::parse::<u32>);
    match numbers.next()?.ok()? {
        1 => numbers.next()?.ok(),
        major => Some(major),
    }
}

/// The major version of MongoDB's server. `None` where nothing says so.
///
/// # Source
/// `MONGO_VERSION` or `MONGO_MAJOR` of its variables, as the official images set them; a part of the path such as
/// `mongodb-linux-x86_64-ubuntu2204-8.0.4`; the status of the package `mongodb-org-server` of Debian's `dpkg`.
pub fn mongod(tree: &Tree, pid: Pid, exe: Option<&str>, variable: Option<&str>) -> Option<u32> {
    let of_path = |exe: &str| {
        let folder = exe.split('/').find(|part| part.starts_with("mongodb-linux-"))?;
        leading(folder.rsplit('-').next()?)
    };
    variable.and_then(leading).or_else(|| exe.and_then(of_path)).or_else(|| packaged(tree, pid))
}

/// The number before the first point of `8.0.4`; `None` for a text without a point.
fn leading(version: &str) -> Option<u32> {
    version.split_once('.')?.0.parse().ok()
}

fn packaged(tree: &Tree, pid: Pid) -> Option<u32> {
    let (mut is_it, mut version) = (false, None);
    tree.read_lines(&format!("/proc/{pid}/root/var/lib/dpkg/status"), &mut |line| {
        if let Some(package) = line.strip_prefix("Package: ") {
            is_it = package.trim() == "mongodb-org-server";
        } else if is_it && version.is_none() {
            version = line.strip_prefix("Version: ").and_then(|version| leading(version.trim()));
        }
    })
    .ok()?;
    version
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;

    #[test]
    fn a_jdk_says_its_version() {
        let check = |exe: &str, text: &str, expected: Option<u32>| {
            let files = Memory::new().file("/proc/7/root/usr/lib/jvm/x/release", text);
            assert_eq!(java(&Tree::memory(files), Pid::new(7), exe), expected, "{exe} {text}");
        };
        let exe = "/usr/lib/jvm/x/bin/java";
        check(exe, "IMPLEMENTOR=\"Debian\"\nJAVA_VERSION=\"17.0.13\"\n", Some(17));
        check(exe, "JAVA_VERSION=\"1.8.0_392\"\n", Some(8));
        check("/usr/lib/jvm/x/jre/bin/java", "JAVA_VERSION=\"1.8.0_392\"\n", Some(8));
        check(exe, "JAVA_VERSION=\"21-ea\"\n", Some(21));
        check(exe, "JAVA_VERSION=\"\u{1b}[2J\"\n", None);
        check(exe, "", None);
        check("/usr/lib/jvm/../jvm/x/bin/java", "JAVA_VERSION=\"17\"\n", None);
        check("/usr/bin/java", "JAVA_VERSION=\"17\"\n", None);
    }

    #[test]
    fn a_server_of_mongodb_says_its_version_in_one_of_three_places() {
        let status = "Package: x\nVersion: 3.1\n\nPackage: mongodb-org-server\nStatus: ok\nVersion: 7.0.14\n\nPackage: z\nVersion: 1.0\n";
        let tree = Tree::memory(Memory::new().file("/proc/7/root/var/lib/dpkg/status", status));
        let of = |exe, variable| mongod(&tree, Pid::new(7), exe, variable);
        assert_eq!(of(Some("/usr/bin/mongod"), Some("8.0.4")), Some(8));
        assert_eq!(of(Some("/opt/mongodb-linux-x86_64-ubuntu2204-6.0.9/bin/mongod"), None), Some(6));
        assert_eq!(of(Some("/usr/bin/mongod"), None), Some(7));
        assert_eq!(mongod(&Tree::memory(Memory::new()), Pid::new(7), None, Some("latest")), None);
    }
}
