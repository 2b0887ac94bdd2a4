//! Files that one CPU or node lacks and others have.
//!
//! The kernel gives all online CPUs, and all nodes, the same files. One that only some lack was lost: what it
//! said is not known, which is not the same as a kernel that does not say it.

use std::collections::BTreeMap;

use nodewise_machine::{Oddity, OddityKind};

use super::findings::Findings;

/// Numbered folders that are alike, up to their number.
const ALIKE: [&str; 2] = ["/sys/devices/system/cpu/cpu", "/sys/devices/system/node/node"];
/// Parts of paths that only some have: CPUs that cannot go offline have no switch, and firmware gives attributes to
/// the nodes that it knows them of. Some drivers give the frequencies of a group of CPUs to its first one alone. Missing
/// maps of caches have oddities of their own.
const OF_SOME: [&str; 5] = ["/online", "/access", "/memory_side_cache/", "/shared_cpu_", "/cpufreq/"];

/// Which files were found, and which were not, by their path without the number of the CPU or node.
#[derive(Default)]
pub(super) struct Neighbours {
    families: BTreeMap<String, Family>,
}

#[derive(Default)]
struct Family {
    found: bool,
    first_missing: Option<String>,
    missing: usize,
}

impl Neighbours {
    pub(super) fn found(&mut self, path: &str) {
        if let Some(family) = self.family(path) {
            family.found = true;
        }
    }

    pub(super) fn missing(&mut self, path: &str) {
        if let Some(family) = self.family(path) {
            if family.first_missing.as_deref() != Some(path) {
                family.missing += 1;
            }
            family.first_missing.get_or_insert_with(|| path.to_owned());
        }
    }

    fn family(&mut self, path: &str) -> Option<&mut Family> {
        let folder = ALIKE.into_iter().find(|folder| path.starts_with(folder))?;
        let rest = path[folder.len()..].trim_start_matches(|c: char| c.is_ascii_digit());
        let is_alike = rest.starts_with('/') && !OF_SOME.iter().any(|part| rest.contains(part));
        is_alike.then(|| self.families.entry(format!("{folder}N{rest}")).or_default())
    }

    /// Notes what was lost.
    pub(super) fn note(&mut self, findings: &mut Findings) {
        for family in std::mem::take(&mut self.families).into_values().filter(|family| family.found) {
            let Some(path) = family.first_missing else { continue };
            let text = match family.missing - 1 {
                0 => "it is missing, though others of its kind are there".to_owned(),
                1 => "it is missing, as is one other of its kind, though some are there".to_owned(),
                others => format!("it is missing, as are {others} others of its kind, though some are there"),
            };
            findings.add(Oddity::in_file(OddityKind::Disagreement, path, text));
        }
    }
}
