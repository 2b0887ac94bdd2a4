//! Which oddities are reported as such, those that are alike together.

use std::collections::BTreeMap;

use nodewise_machine::order::Order as _;
use nodewise_machine::plural::plural;
use nodewise_machine::{Machine, Oddity, OddityKind};

/// From this many on, oddities that are alike share a line: of two, the second's numbers still say something.
const FEWEST: usize = 3;

/// Oddities that differ in nothing but numbers: the same damage in the files of many CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OddityGroup<'a> {
    /// The first of them.
    pub first: &'a Oddity,
    /// How many others there are.
    pub others: usize,
}

impl OddityGroup<'_> {
    /// The first in full, and how many others are like it.
    pub fn words(&self) -> String {
        match (self.others, &self.first.path) {
            (0, _) => self.first.to_string(),
            (others, Some(_)) => format!("{}; alike in {}", self.first, plural(others, "other file")),
            (others, None) => format!("{}; and {} alike", self.first, plural(others, "other")),
        }
    }
}

/// The oddities that are reported as such: all but limits of the process without a file, which have a
/// section of their own. Contradictions and damage come first, then what is merely unusual.
pub fn reported_oddities<'a>(machine: &'a Machine) -> Vec<OddityGroup<'a>> {
    let told = machine.oddities.iter();
    let told = told.filter(|oddity| oddity.kind != OddityKind::Restricted || oddity.path.is_some());
    let mut alike: Vec<Vec<&Oddity>> = Vec::new();
    let mut known: BTreeMap<(OddityKind, String), usize> = BTreeMap::new();
    for oddity in told {
        let at = *known.entry((oddity.kind, without_numbers(&oddity.to_string()))).or_insert(alike.len());
        match alike.get_mut(at) {
            Some(group) => group.push(oddity),
            None => alike.push(vec![oddity]),
        }
    }
    let grouped = |group: Vec<&'a Oddity>| {
        let shown = if group.len() < FEWEST { group.len() } else { 1 };
        let others = group.len() - shown;
        group.into_iter().take(shown).map(move |first| OddityGroup { first, others })
    };
    let mut groups: Vec<OddityGroup<'_>> = alike.into_iter().flat_map(grouped).collect();
    groups.order_by_key(|group| !is_finding(group.first.kind));
    groups
}

/// Whether something is wrong with the machine or its files, and not only unusual.
const fn is_finding(kind: OddityKind) -> bool {
    !matches!(
        kind,
        OddityKind::CpuOffline
            | OddityKind::NodeEmpty
            | OddityKind::StrayBytes
            | OddityKind::Restricted
            | OddityKind::Nominal
            | OddityKind::NoNodes
            | OddityKind::FirmwareUnusual
            | OddityKind::FirmwareAssumed
            | OddityKind::MemoryModulesMixed
            | OddityKind::MemoryModulesUneven
            | OddityKind::MemoryChannelsUneven
    )
}

/// The sentence with a mark for each number, list of numbers or mask.
fn without_numbers(text: &str) -> String {
    let mut pattern = String::new();
    let mut digits = false;
    for c in text.chars() {
        if c.is_ascii_digit() || digits && matches!(c, ',' | '-') {
            if !digits {
                pattern.push('#');
            }
            digits = true;
        } else {
            digits = false;
            pattern.push(c);
        }
    }
    pattern
}

/// How many there are, and where to read them: `3 oddities: see nodewise show`. `None` without any.
pub fn pointer(machine: &Machine) -> Option<String> {
    match reported_oddities(machine).len() {
        0 => None,
        count => Some(format!("{}: see nodewise show", by_count(count))),
    }
}

fn by_count(count: usize) -> String {
    if count == 1 { "1 oddity".to_owned() } else { format!("{count} oddities") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::Origin;

    #[test]
    fn oddities_that_are_alike_are_one_and_findings_come_first() {
        let mut machine = Machine::new(Origin::Live);
        let file = |cpu: u32, text: &str| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/core_id");
            Oddity::in_file(OddityKind::Unparseable, path, text)
        };
        machine.oddities.push(Oddity::new(OddityKind::CpuOffline, "CPUs 0,9-12 are offline"));
        machine.oddities.extend((0..128).map(|cpu| file(cpu, "expected a number, found \"x\"")));
        machine.oddities.push(file(7, "cannot be read"));
        machine.oddities.push(Oddity::new(OddityKind::Disagreement, "CPUs 0-3 differ"));
        machine.oddities.push(Oddity::new(OddityKind::Disagreement, "CPUs 4-7,9 differ"));
        machine
            .oddities
            .extend((0..3).map(|node| {
                Oddity::new(OddityKind::DistanceMissing, format!("node {node} has no distance"))
            }));
        machine.oddities.push(Oddity::new(OddityKind::Restricted, "told elsewhere"));
        let words: Vec<String> = reported_oddities(&machine).iter().map(OddityGroup::words).collect();
        assert_eq!(
            words,
            [
                "/sys/devices/system/cpu/cpu0/topology/core_id: expected a number, found \"x\"; alike in 127 other files",
                "/sys/devices/system/cpu/cpu7/topology/core_id: cannot be read",
                "CPUs 0-3 differ",
                "CPUs 4-7,9 differ",
                "node 0 has no distance; and 2 others alike",
                "CPUs 0,9-12 are offline",
            ]
        );
        assert_eq!(pointer(&machine).as_deref(), Some("6 oddities: see nodewise show"));
        machine.oddities.truncate(1);
        assert_eq!(pointer(&machine).as_deref(), Some("1 oddity: see nodewise show"));
    }
}
