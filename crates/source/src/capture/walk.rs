//! Finding and reading what the rules let in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use super::filter::{Filter, nofile_info};
use super::identity::Scrubber;
use super::rules::{CaptureKind, RULES};
use super::{Capture, Entry, Identity};
use crate::boot;
use crate::parse::boot_log::BootLog;
use crate::sysfs::number_behind;
use crate::tree::{ReadError, Tree};

/// Most entries of a capture, and most bytes: those of an archive that is read.
const MOST_ENTRIES: usize = 1 << 20;
const MOST_BYTES: usize = 512 << 20;
/// Longest path that can be read again (`PATH_MAX`), the folder at the top of an archive included.
const MOST_PATH_BYTES: usize = 4000;

/// Reads a machine's files by the rules.
pub(super) fn collect(tree: &Tree, identity: Identity) -> Capture {
    let scrubber = match identity {
        Identity::With => None,
        Identity::Without => Some(Scrubber::default()),
    };
    let mut walk = Walk {
        tree,
        scrubber,
        entries: BTreeMap::new(),
        bytes: 0,
        unreadable: Vec::new(),
        climbed: BTreeSet::new(),
    };
    for rule in RULES {
        for path in walk.expand(rule.pattern) {
            walk.save(&path, rule.kind);
        }
    }
    match boot::log(tree) {
        Ok(Some(log)) if log != BootLog::default() => {
            walk.insert(boot::KEPT_LOG, Entry::File(log.text().into_bytes()));
        }
        Ok(_) => {}
        Err(error) => walk.unreadable.push(error),
    }
    if tree.is_live() {
        let info = nofile_info(identity, SystemTime::now());
        walk.insert("/proc/hwloc-nofile-info", Entry::File(info.into_bytes()));
    }
    Capture { entries: walk.entries, unreadable: walk.unreadable }
}

struct Walk<'t> {
    tree: &'t Tree,
    scrubber: Option<Scrubber>,
    entries: BTreeMap<String, Entry>,
    bytes: usize,
    unreadable: Vec<ReadError>,
    /// Device folders whose bridges were saved.
    climbed: BTreeSet<String>,
}

/// Whether a name fits one part of a pattern.
fn fits(part: &str, name: &str) -> bool {
    match part.find(['*', '#']) {
        None => part == name,
        Some(at) => {
            let Some(rest) = name.strip_prefix(&part[..at]) else { return false };
            let after = &part[at + 1..];
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            match part.as_bytes()[at] {
                b'#' => digits > 0 && fits(after, &rest[digits..]),
                _ => (0..=rest.len()).any(|end| rest.is_char_boundary(end) && fits(after, &rest[end..])),
            }
        }
    }
}

impl Walk<'_> {
    /// The paths that fit a pattern. Links are not followed on the way.
    fn expand(&mut self, pattern: &str) -> Vec<String> {
        let mut paths = vec![String::new()];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            let mut next = Vec::new();
            for folder in paths {
                if self.is_link(&folder) {
                    continue;
                }
                if part.contains(['*', '#']) {
                    let names = self.list(&folder);
                    let names = names.into_iter().filter(|name| fits(part, name));
                    next.extend(names.map(|name| format!("{folder}/{name}")));
                } else {
                    next.push(format!("{folder}/{part}"));
                }
            }
            paths = next;
        }
        paths
    }

    /// Whether a folder is a link. `/proc/self` is one to the process that looks, and is meant.
    fn is_link(&self, folder: &str) -> bool {
        !matches!(folder, "" | "/proc/self") && self.tree.link(folder).ok().flatten().is_some()
    }

    fn list(&mut self, folder: &str) -> Vec<String> {
        match self.tree.list(folder) {
            Ok(names) => names.unwrap_or_default(),
            Err(error) => {
                self.unreadable.push(error);
                Vec::new()
            }
        }
    }

    fn save(&mut self, path: &str, kind: CaptureKind) {
        match kind {
            CaptureKind::File => self.file(path, None),
            CaptureKind::Reduced(filter) => self.file(path, self.scrubber.is_some().then_some(filter)),
            CaptureKind::Private if self.scrubber.is_some() => (),
            CaptureKind::Private => self.file(path, None),
            CaptureKind::Folder => self.folder(path),
            CaptureKind::Link => {
                self.link(path);
            }
            CaptureKind::Device(attributes) => self.device(path, attributes),
        }
    }

    /// Saves a file. A folder is not a file, nor is a link: patterns with `*` meet both. Only
    /// `/proc/mounts` is one, to a file of the process that looks, and is meant.
    fn file(&mut self, path: &str, filter: Option<Filter>) {
        if path != "/proc/mounts" && self.tree.link(path).ok().flatten().is_some() {
            return;
        }
        match self.tree.read(path) {
            Ok(None) => (),
            Ok(Some(contents)) => {
                let contents = match filter {
                    Some(filter) => filter.apply(&contents),
                    None => contents,
                };
                self.insert(path, Entry::File(contents));
            }
            Err(ReadError { cause: crate::tree::ReadCause::NotAFile("a directory"), .. }) => (),
            Err(error) => self.unreadable.push(error),
        }
    }

    fn folder(&mut self, path: &str) {
        if !self.is_link(path) && self.tree.list(path).ok().flatten().is_some() {
            self.insert(path, Entry::Folder);
        }
    }

    /// Saves a link; gives the place it leads to.
    fn link(&mut self, path: &str) -> Option<String> {
        let link = self.tree.link(path).ok().flatten()?;
        let target = self.tree.target(path).ok().flatten()?;
        self.insert(path, Entry::Link(link));
        Some(target)
    }

    fn device(&mut self, path: &str, attributes: &[&str]) {
        let target = self.tree.target(path).ok().flatten();
        if target.as_deref().is_some_and(|target| self.is_private_device(target)) {
            return;
        }
        // Where an entry is a folder in place of a link, its attributes are in it.
        let folder = self.link(path).unwrap_or_else(|| path.to_owned());
        if self.tree.list(&folder).ok().flatten().is_none() {
            return;
        }
        self.insert(&folder, Entry::Folder);
        for attribute in attributes {
            self.file(&format!("{folder}/{attribute}"), None);
        }
        self.bridges(&folder);
        self.stack(&folder);
    }

    /// Devices of software have names that people chose (`br-office`); those with plain numbers
    /// (`dm-0`, `md127`) and the heads of NVMe disks are needed to find the disk below.
    fn is_private_device(&self, target: &str) -> bool {
        let name = target.rsplit('/').next().unwrap_or_default();
        let numbered = ["dm-", "md"].iter().any(|driver| number_behind(name, driver).is_some());
        let plain = numbered || target.contains("/nvme-subsystem/");
        target.starts_with("/sys/devices/virtual/") && !plain && self.scrubber.is_some()
    }

    /// Saves the node of everything above a device.
    fn bridges(&mut self, folder: &str) {
        let mut at = folder.to_owned();
        while at.starts_with("/sys/devices/") && self.climbed.insert(at.clone()) {
            self.file(&format!("{at}/numa_node"), None);
            let Some((above, _)) = at.rsplit_once('/') else { break };
            at = above.to_owned();
        }
    }

    /// Saves links to what a device is stacked upon.
    fn stack(&mut self, folder: &str) {
        if !folder.starts_with("/sys/devices/virtual/") {
            return;
        }
        for name in self.list(&format!("{folder}/slaves")) {
            self.link(&format!("{folder}/slaves/{name}"));
        }
        for name in self.list(folder).into_iter().filter(|name| name.starts_with("lower_")) {
            self.link(&format!("{folder}/{name}"));
        }
        if let Some((above, _)) = folder.rsplit_once('/').filter(|_| folder.contains("/nvme-subsystem/")) {
            let above = above.to_owned();
            for name in self.list(&above).into_iter().filter(|name| number_behind(name, "nvme").is_some()) {
                self.link(&format!("{above}/{name}"));
            }
        }
    }

    /// Keeps an entry, with the identity taken out of its path and content. What would not fit an
    /// archive that can be read again is left out.
    fn insert(&mut self, path: &str, entry: Entry) {
        let (path, entry) = match &mut self.scrubber {
            None => (path.to_owned(), entry),
            Some(scrubber) => (
                scrubber.text(path).into_owned(),
                match entry {
                    Entry::File(contents) => Entry::File(scrubber.bytes(contents)),
                    Entry::Link(target) => Entry::Link(scrubber.text(&target).into_owned()),
                    Entry::Folder => Entry::Folder,
                },
            ),
        };
        let size = if let Entry::File(contents) = &entry { contents.len() } else { 0 };
        let full = self.entries.len() >= MOST_ENTRIES || self.bytes + size > MOST_BYTES;
        if full || path.len() > MOST_PATH_BYTES || self.is_below_a_link(&path) {
            return;
        }
        // A link that leads through another link can bring a name here twice, as a folder and not.
        let stays = self.is_above(&path) || entry == Entry::Folder && self.entries.contains_key(&path);
        if !stays {
            self.bytes += size;
            self.entries.insert(path, entry);
        }
    }

    /// Whether something was saved below a path, so that it must stay a folder.
    fn is_above(&self, path: &str) -> bool {
        let below = format!("{path}/");
        self.entries.range(below.clone()..).next().is_some_and(|(next, _)| next.starts_with(&below))
    }

    /// Whether a link is on the way to a path: in an archive that would be no path at all.
    fn is_below_a_link(&self, path: &str) -> bool {
        path.match_indices('/')
            .any(|(at, _)| matches!(self.entries.get(&path[..at]), Some(Entry::Link(_) | Entry::File(_))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names() {
        for (part, name, expected) in [
            ("cpu#", "cpu12", true),
            ("cpu#", "cpufreq", false),
            ("cpu#", "cpu1x", false),
            ("hugepages-#kB", "hugepages-2048kB", true),
            ("#-#", "17-0", true),
            ("has_*", "has_memory", true),
            ("*", "anything", true),
            ("*_serial", "board_serial", true),
            ("*_serial", "board_name", false),
            ("online", "online", true),
            ("online", "offline", false),
            ("*", "ü", true),
        ] {
            assert_eq!(fits(part, name), expected, "{part} {name}");
        }
    }
}
