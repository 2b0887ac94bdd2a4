//! A virtual machine that would fit a node is spread over several, and does not know it.

use nodewise_machine::NodeSet;
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, Owner, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "vm-spans",
    title: "a virtual machine that would fit a node is spread over several",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Policies],
    sign: "a process of QEMU, Cloud Hypervisor or Firecracker whose memory and CPU time would fit a node, without cells, with at \
           least 10 % of its CPU time and at least 10 % of its memory on each of two nodes, and less than 10 % of it where it \
           does not run",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::AT_WORK,
        &thresholds::VM_SPANS,
        &thresholds::VM_FITS,
    ],
    traps: "a machine that is placed cell by cell; one that is larger than a node; a host whose nodes are all full of others",
    explains: &[],
    sources: &["Red Hat Virtualization Tuning Guide, chapter 9", "OpenNebula#3256"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let machines = situation.significant().filter(|process| process.is_virtual_machine());
    machines.filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    if !process.is_at_work() || !process.cells()?.is_empty() {
        return None;
    }
    let least = situation.limit(&thresholds::VM_SPANS);
    let runs = process.runs_with(least);
    let holds: NodeSet = process
        .memory
        .iter()
        .filter(|(_, size)| process.share(**size) >= least)
        .map(|(node, _)| *node)
        .collect();
    let fit = situation.limit(&thresholds::VM_FITS);
    let home = fitting(situation, process, fit)?;
    if runs.len() < 2 || holds.len() < 2 || is_stranded(situation, process) {
        return None;
    }
    let summary = format!(
        "{} has memory on {} and runs on {}; node {home} could hold it",
        words::process(process),
        nodes(&holds),
        nodes(&runs)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = process.confidence.min(Confidence::Likely);
    finding.concerns = Some(process.size());
    finding.evidence = vec![
        Evidence::new("its memory", Value::Size(process.size()), shown::NUMA_MAPS),
        Evidence::new("nodes with its memory", Value::text(holds.to_string()), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::VM_SPANS),
        Evidence::new("nodes where it runs", Value::text(runs.to_string()), shown::TASK_SCHED)
            .at(situation.thresholds(), &thresholds::VM_SPANS),
    ];
    let to = NodeSet::from_iter([home]);
    let cpus = situation.machine.cpus_of(home);
    finding.mends = process.owner().confine(&to, Some(&cpus), None);
    if matches!(process.owner(), Owner::Libvirt(_)) {
        finding.mends.push(Mend::words(
            format!("its CPUs, too: virsh vcpupin and virsh emulatorpin with {cpus}; permanently <vcpu cpuset='{cpus}'>"),
            Scope::Now,
        ));
    }
    finding.nodes = holds;
    Some(finding)
}

/// Whether a part worth naming lies where it does not run, which is another disease. Every process has some pages there.
fn is_stranded(situation: &Situation<'_>, process: &ProcessState<'_>) -> bool {
    let stranded = process.stranded(&situation.places.with_cpus());
    stranded.is_some_and(|(size, _)| process.share(size) >= situation.limit(&thresholds::VM_SPANS))
}

/// The node that could hold its memory and its CPU time, of several the one that holds most of it.
fn fitting(
    situation: &Situation<'_>,
    process: &ProcessState<'_>,
    fit: f64,
) -> Option<nodewise_machine::NodeId> {
    let (size, used) = (process.size(), process.cpu_share()?);
    let fits = situation.nodes.iter().filter(|(node, state)| {
        let cpus = situation.machine.cpus_of(**node).len();
        let own = process.memory.get(*node).copied().unwrap_or_default();
        size <= state.size.share(fit) && size <= own + state.room() && used <= cpus as f64 * fit
    });
    fits.max_by_key(|(node, _)| process.memory.get(*node)).map(|(node, _)| *node)
}
