//! Room that tables keep for what is missing: CPUs and memory that are not enabled, domains that nothing
//! has. A kernel passes over all of it; the reader of the table sees a note.

use std::collections::BTreeSet;

use nodewise_machine::firmware::srat::{ENABLED, Memory};
use nodewise_machine::firmware::{Msct, MsctEntry, Srat, SratEntry, Tables};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::plural::{by_count, plural};

use super::note::{Note, NoteKind};

/// Ranges and domains that are named one by one; of more than these some are counted.
const MOST: usize = 8;

/// Notes on all that is kept free.
pub(super) fn notes(tables: &Tables, notes: &mut Vec<Note>) {
    let mut say = |table, text| notes.push(Note::new(NoteKind::Unusual, table, text));
    if let Some(table) = tables.srat() {
        cpus(table).into_iter().for_each(|text| say("SRAT", text));
        memory(table).into_iter().for_each(|text| say("SRAT", text));
    }
    for (msct, srat) in tables.msct().into_iter().zip(tables.srat()) {
        domains(msct, srat).into_iter().for_each(|text| say("MSCT", text));
    }
}

/// CPUs that are not enabled.
fn cpus(table: &Srat) -> Option<String> {
    let number = |body: &SratEntry| match body {
        SratEntry::ProcessorApic(cpu) => Some(("APIC id", cpu.apic_id.into())),
        SratEntry::ProcessorX2Apic(cpu) => Some(("APIC id", cpu.x2apic_id)),
        SratEntry::Gicc(cpu) => Some(("UID", cpu.processor_uid)),
        SratEntry::Rintc(cpu) => Some(("UID", cpu.processor_uid)),
        _ => None,
    };
    let disabled = table.bodies().filter_map(|body| {
        let (domain, _) = body.domain_and_flags().filter(|(_, flags)| flags & ENABLED == 0)?;
        Some((domain, number(body)?))
    });
    let disabled: Vec<(u32, (&str, u32))> = disabled.collect();
    let domains: BTreeSet<u32> = disabled.iter().map(|(domain, _)| *domain).collect_set();
    let names: BTreeSet<(&str, u32)> = disabled.iter().map(|(_, name)| *name).collect_set();
    let alike = match names.first() {
        Some((kind, number)) if names.len() == 1 && disabled.len() > 1 => {
            format!(", all with {kind} {number}")
        }
        _ => String::new(),
    };
    let (cpus, are) = (plural(disabled.len(), "CPU"), by_count(&disabled.len(), "is", "are"));
    (!disabled.is_empty()).then(|| format!("{cpus} {are} not enabled{alike}: room of {}", listed(&domains)))
}

/// Memory that is not enabled: room without a byte, and ranges of addresses.
fn memory(table: &Srat) -> Vec<String> {
    let disabled = table.bodies().filter_map(|body| match body {
        SratEntry::Memory(memory) if memory.flags & ENABLED == 0 => Some(memory),
        _ => None,
    });
    let (empty, ranges): (Vec<&Memory>, Vec<&Memory>) = disabled.partition(|memory| memory.length == 0);
    let mut texts = Vec::new();
    let domains: BTreeSet<u32> = empty.iter().map(|memory| memory.proximity_domain).collect_set();
    if !domains.is_empty() {
        let (ranges, are) = (plural(empty.len(), "range"), by_count(&empty.len(), "is", "are"));
        texts.push(format!("{ranges} without a byte {are} not enabled: room of {}", listed(&domains)));
    }
    for memory in ranges.iter().take(MOST) {
        let (start, last) = (memory.base_address, memory.base_address.saturating_add(memory.length - 1));
        let domain = memory.proximity_domain;
        texts.push(format!(
            "{start:#x}-{last:#x} of domain {domain} is not enabled: no memory, as far as Linux goes"
        ));
    }
    if let Some(more) = ranges.len().checked_sub(MOST).filter(|more| *more > 0) {
        let are = by_count(&more, "is", "are");
        texts.push(format!("{} more {are} not enabled", plural(more, "range")));
    }
    texts
}

/// Domains that the MSCT announces and the SRAT does not use, and structures of it that say nothing.
fn domains(msct: &Msct, srat: &Srat) -> Vec<String> {
    let mut texts = Vec::new();
    let used = srat.bodies().filter_map(|body| match body {
        SratEntry::Memory(memory) if memory.length > 0 => Some((memory.proximity_domain, memory.flags)),
        SratEntry::Memory(_) => None,
        body => body.domain_and_flags(),
    });
    let used: BTreeSet<u32> =
        used.filter(|(_, flags)| flags & ENABLED != 0).map(|(domain, _)| domain).collect_set();
    let most = u64::from(msct.fixed.max_proximity_domains) + 1;
    if used.len() as u64 != most {
        let (are, have) = (by_count(&most, "is", "are"), by_count(&used.len(), "has", "have"));
        let domains = plural(most, "domain");
        texts.push(format!("{domains} {are} announced, and {} {have} something enabled", used.len()));
    }
    let says_nothing = |body: &&MsctEntry| matches!(body, MsctEntry::DomainMaximum(domains) if domains.processors == 0 && domains.memory == 0);
    let empty = msct.bodies().filter(says_nothing).count();
    if empty > 0 {
        let says = by_count(&empty, "says", "say");
        texts.push(format!("{} {says} that a domain can hold nothing", plural(empty, "structure")));
    }
    texts
}

/// `domain 3`, `domains 0, 1 and 9`; of very many the first and the last.
fn listed(domains: &BTreeSet<u32>) -> String {
    let words: Vec<String> = domains.iter().map(ToString::to_string).collect();
    match &words[..] {
        [one] => format!("domain {one}"),
        [first, .., last] if words.len() > MOST => format!("{} domains from {first} to {last}", words.len()),
        [others @ .., last] => format!("domains {} and {last}", others.join(", ")),
        [] => "no domain".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_read_as_a_sentence() {
        let check = |domains: &[u32], expected: &str| {
            assert_eq!(listed(&domains.iter().copied().collect()), expected);
        };
        check(&[3], "domain 3");
        check(&[1, 0, 9], "domains 0, 1 and 9");
        check(&[0, 1, 2, 3, 4, 5, 6, 7, 90], "9 domains from 0 to 90");
    }
}
