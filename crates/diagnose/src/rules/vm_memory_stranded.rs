//! The memory of a virtual machine lies on nodes where its CPUs do not run.

use super::words::{self, nodes};
use crate::finding::{Evidence, Mend, Owner, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;
use nodewise_source::paths::shown;

pub static RULE: Rule = Rule {
    id: "vm-memory-stranded",
    title: "the memory of a virtual machine lies on nodes where its CPUs do not run",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Policies],
    sign: "a process of QEMU, Cloud Hypervisor or Firecracker with at least 10 % of its memory on nodes with less than \
           5 % of its CPU time",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::AT_WORK,
        &thresholds::VM_STRANDED,
    ],
    traps: "a machine whose memory is bound cell by cell, to different nodes: a cell whose CPUs are idle is not stranded; \
            devices that are passed through pin all memory: it cannot move before the next start",
    explains: &["memory-stranded", "cpus-without-mems", "bound-away"],
    sources: &["Red Hat Virtualization Tuning Guide, chapter 9", "kubevirt#16584"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    if !process.is_virtual_machine() {
        return None;
    }
    let (size, away) = process.stranded(&situation.places.with_cpus())?;
    let runs = process.runs_on();
    // An idle cell waits for its CPUs where it was put.
    let cells = process.cells()?;
    if runs.is_subset(&cells) && away.is_subset(&cells) {
        return None;
    }
    let home = process.busiest(&situation.memory_nodes())?;
    if process.share(size) < situation.limit(&thresholds::VM_STRANDED) || size < situation.floor() {
        return None;
    }
    let summary = format!(
        "{size} of the machine of {} are on {}, its CPUs run on {}",
        words::process(process),
        nodes(&away),
        nodes(&runs)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = process.confidence;
    finding.concerns = Some(size);
    finding.evidence = vec![
        Evidence::new(
            format!("memory on {}", nodes(&away)),
            Value::Share(process.share(size)),
            shown::NUMA_MAPS,
        )
        .at(situation.thresholds(), &thresholds::VM_STRANDED),
    ];
    let has_room = situation.nodes.get(&home).is_some_and(|state| state.room() >= size);
    if has_room {
        let to = nodewise_machine::NodeSet::from_iter([home]);
        finding.mends = situation.gather(process, &away, &to, size);
    }
    if matches!(process.owner(), Owner::Libvirt(_)) {
        finding.mends.push(Mend::words(
            "permanently: <vcpu cpuset> and <numatune> of one node, or cells of <numa> for each node (nodewise run --emit \
             libvirt writes them)",
            Scope::Restart,
        ));
    }
    finding.nodes = away;
    Some(finding)
}
