//! Blocks of a node's memory are offline.

use nodewise_machine::{Bytes, NodeSet};
use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, any};
use crate::situation::Situation;

/// Runs of blocks whose commands are written out.
const MOST_RUNS: usize = 32;

pub static RULE: Rule = Rule {
    id: "memory-offline",
    title: "blocks of a node's memory are offline",
    severity: Severity::Note,
    on: any,
    needs: &[Fact::Blocks],
    sign: "the state of a block of memory is offline",
    thresholds: &[],
    traps: "a virtual machine whose host takes memory away and brings it back (virtio-mem, balloons); memory that waits to be \
            taken out",
    explains: &["node-without-memory"],
    sources: &["Documentation/admin-guide/mm/memory-hotplug.rst: onlining"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let Some(offline) = situation.site.and_then(|site| site.offline.known()) else { return Vec::new() };
    let at: NodeSet = offline.keys().copied().collect();
    let all: Bytes = offline.values().map(|memory| memory.size).sum();
    if all.get() == 0 {
        return Vec::new();
    }
    let is_guest = situation.virtual_machine == Some(true);
    let severity = if is_guest { Severity::Info } else { RULE.severity };
    let summary = format!("{all} of {} exist and are not used", nodes(&at));
    let mut finding = RuleFinding::new(RULE.id, severity, Subject::Nodes(at), summary);
    finding.confidence = if is_guest { Confidence::Possible } else { Confidence::Certain };
    finding.concerns = Some(all);
    finding.evidence = offline
        .iter()
        .map(|(node, memory)| {
            Evidence::new(format!("offline on node {node}"), Value::Size(memory.size), shown::BLOCKS)
        })
        .collect();
    let blocks: Vec<u64> = offline.values().flat_map(|memory| memory.blocks.iter().copied()).collect();
    let runs = runs(blocks);
    let each = |option: &str| -> Vec<String> {
        let runs = runs.iter().take(MOST_RUNS);
        runs.map(|(first, last)| format!("chmem --{option} -b {first}-{last}")).collect()
    };
    finding.mends = vec![Mend {
        commands: each("enable"),
        undo: each("disable"),
        needs_root: true,
        ..Mend::words(
            "bring it online; lsmem --output RANGE,STATE,NODE,BLOCK lists the blocks (memory of CXL: daxctl online-memory)",
            Scope::Now,
        )
    }];
    vec![finding]
}

/// Blocks whose numbers follow each other, as first and last ones.
fn runs(mut blocks: Vec<u64>) -> Vec<(u64, u64)> {
    blocks.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for block in blocks {
        match runs.last_mut() {
            Some((_, last)) if block.checked_sub(1) == Some(*last) => *last = block,
            _ => runs.push((block, block)),
        }
    }
    runs
}
