//! The kubelet pins CPUs of pods, and not their memory.

use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Evidence, Mend, Owner, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "kubelet-cpu-only",
    title: "the kubelet pins CPUs of a pod, not its memory, and that went elsewhere",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Pages, Fact::Kubelet],
    sign: "cpuManagerPolicy is static and memoryManagerPolicy is not; a process of a pod that may use CPUs of some nodes only, \
           memory of more, and has at least 10 % of it where it does not run",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::AT_WORK,
        &thresholds::POD_STRANDED,
    ],
    traps: "pods that are not Guaranteed, or ask for parts of CPUs: nothing is pinned for them; CPUs and memory of a pod can \
            differ even with both managers (kubernetes#138523)",
    explains: &["memory-stranded", "cpus-without-mems"],
    sources: &["kubernetes#81009", "kubernetes/enhancements#1203: memory manager"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let Some(config) = situation.site.and_then(|site| site.kubelet.known()) else { return Vec::new() };
    let is_static =
        |policy: &Option<String>| policy.as_deref().is_some_and(|word| word.eq_ignore_ascii_case("static"));
    if !is_static(&config.cpu_manager) || is_static(&config.memory_manager) {
        return Vec::new();
    }
    let memory = config.memory_manager.as_deref().unwrap_or("not set");
    let pods = situation.significant().filter(|process| process.owner() == Owner::Kubelet);
    pods.filter_map(|process| find(situation, process, memory)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>, memory: &str) -> Option<RuleFinding> {
    let (reach, allowed) = (process.reach.as_ref()?, process.allowed_nodes()?);
    let (size, away) = process.stranded(&situation.places.with_cpus())?;
    let is_apart = reach.is_subset(allowed) && reach != allowed;
    let limit = situation.limit(&thresholds::POD_STRANDED);
    if !is_apart || process.share(size) < limit || size < situation.floor() {
        return None;
    }
    let summary = format!(
        "{} is pinned to CPUs of {}, and has {size} on {}",
        words::process(process),
        nodes(reach),
        nodes(&away)
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = process.confidence;
    finding.concerns = Some(size);
    let memory = nodewise_machine::printable::quote(memory).to_string();
    finding.evidence = vec![
        Evidence::new(
            format!("memory on {}", nodes(&away)),
            Value::Share(process.share(size)),
            shown::NUMA_MAPS,
        )
        .at(situation.thresholds(), &thresholds::POD_STRANDED),
        Evidence::new("cpuManagerPolicy", Value::text("static"), shown::KUBELET),
        Evidence::new("memoryManagerPolicy", Value::text(memory), shown::KUBELET),
    ];
    finding.mends = vec![Mend::words(
        "in the kubelet's configuration: memoryManagerPolicy: Static with reservedMemory, and topologyManagerPolicy: \
         single-numa-node or restricted. Drain the node, remove memory_manager_state and cpu_manager_state, restart the kubelet; \
         back by the old file in the same way",
        Scope::Restart,
    )];
    finding.nodes = away;
    Some(finding)
}
