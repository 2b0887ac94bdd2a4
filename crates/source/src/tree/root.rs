//! Finding the machine in a capture.
//!
//! hwloc's captures hold one folder at the top, whose name need not be that of the archive; ours
//! too; others have `sys` and `proc` at the top.

use super::{OpenError, Tree};

/// How deep below the top a machine may lie.
const MOST_DEPTH: usize = 2;
/// How many folders are looked into; a home directory must not be searched for machines.
const MOST_FOLDERS: usize = 512;

/// The folder that holds `sys` or `proc`: empty for the top itself.
///
/// `/proc` holds a folder `sys` of its own, so that the inside is looked for first.
pub(super) fn find(tree: &Tree) -> Result<String, OpenError> {
    if let Some(name) = inside(tree) {
        return Err(OpenError::Inside(name));
    }
    let mut level = vec![String::new()];
    let mut seen = 0;
    for _ in 0..=MOST_DEPTH {
        let found: Vec<&String> = level.iter().filter(|folder| holds_machine(tree, folder)).collect();
        match found[..] {
            [] => (),
            [one] => return Ok(one.clone()),
            _ => {
                let names =
                    found.into_iter().map(|name| nodewise_machine::printable::printable(name).into_owned());
                return Err(OpenError::Several(names.collect()));
            }
        }
        level = below(tree, &level, &mut seen);
    }
    // A folder that may not be looked into says nothing about what it holds.
    if let Err(error) = tree.list("/") {
        return Err(OpenError::Io(error.cause.to_string()));
    }
    Err(OpenError::NoMachine)
}

fn names(tree: &Tree, path: &str) -> Option<Vec<String>> {
    tree.list(path).ok().flatten()
}

/// `sys` and `proc` are common names: they must also hold what a kernel puts there.
fn holds_machine(tree: &Tree, folder: &str) -> bool {
    let has = |name: &str, known: &[&str]| {
        let inside = names(tree, &format!("{folder}/{name}")).unwrap_or_default();
        inside.iter().any(|entry| known.contains(&entry.as_str()))
    };
    has("sys", &["devices", "class", "bus", "kernel", "firmware"])
        || has("proc", &["cpuinfo", "meminfo", "zoneinfo", "self", "cmdline", "version"])
}

/// The folders inside these. A link to a folder is left out: it leads to one that is seen anyway.
fn below(tree: &Tree, folders: &[String], seen: &mut usize) -> Vec<String> {
    let mut next = Vec::new();
    for folder in folders {
        for name in names(tree, if folder.is_empty() { "/" } else { folder }).unwrap_or_default() {
            *seen += 1;
            let path = format!("{folder}/{name}");
            if *seen <= MOST_FOLDERS
                && tree.link(&path).ok().flatten().is_none()
                && names(tree, &path).is_some()
            {
                next.push(path);
            }
        }
    }
    next
}

/// Whether the top is `sys` or `proc` itself.
fn inside(tree: &Tree) -> Option<&'static str> {
    if tree.exists("/devices/system") && !tree.exists("/sys/devices") {
        return Some("sys");
    }
    let known = ["/self", "/cpuinfo", "/meminfo", "/zoneinfo"];
    (known.iter().any(|path| tree.exists(path)) && !tree.exists("/proc")).then_some("proc")
}
