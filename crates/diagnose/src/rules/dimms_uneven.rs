//! Memory modules are uneven: channels or nodes with less memory, or modules that slow the others down.

use nodewise_machine::{Oddity, OddityKind};
use nodewise_source::paths::shown;

use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, any};
use crate::situation::Situation;

pub static RULE: Rule = Rule {
    id: "dimms-uneven",
    title: "memory modules are uneven over channels or sockets",
    severity: Severity::Warning,
    on: any,
    needs: &[Fact::Slots],
    sign: "sides of the machine with different memory, or channels of a side with different memory, by the tables of \
           the firmware; modules of different sizes or speeds are a note",
    thresholds: &[],
    traps: "persistent memory beside DRAM; slots whose channel the firmware does not name; a socket without a \
            processor; one module for each socket of a small machine",
    explains: &[],
    sources: &[
        "Dell EMC, balanced memory with second generation EPYC",
        "SMBIOS 3.7, types 16, 17, 19 and 20",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.machine.memory_slots.oddities().iter().filter_map(finding).collect()
}

fn finding(oddity: &Oddity) -> Option<RuleFinding> {
    let severity = match oddity.kind {
        OddityKind::MemoryModulesUneven | OddityKind::MemoryChannelsUneven => RULE.severity,
        OddityKind::MemoryModulesMixed => Severity::Note,
        _ => return None,
    };
    let mut finding = RuleFinding::new(RULE.id, severity, Subject::Machine, oddity.text.clone());
    finding.confidence = Confidence::Likely;
    finding.evidence =
        vec![Evidence::new("memory slots", Value::text("nodewise show lists them"), shown::SLOTS)];
    finding.mends = vec![Mend::words(
        "the same modules in the same slots of every channel and socket, as the manual of the board orders them",
        Scope::Hardware,
    )];
    finding.experiment = Some("nodewise bandwidth measures each node".to_owned());
    Some(finding)
}
