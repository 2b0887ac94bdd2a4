//! A server confined itself to the CPUs of one node, and they are all busy.

use nodewise_source::paths::shown;
use nodewise_source::sample::ProcessSample;

use crate::attribution::reach;
use crate::finding::{Evidence, Mend, Owner, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::Situation;
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "server-on-half",
    title: "HAProxy confined itself to the CPUs of one node, and they are busy",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Processes],
    sign: "the threads of haproxy may use the CPUs of one node only, no cpuset asks for that, and they use at least 80 % of \
           these CPUs",
    thresholds: &[&thresholds::HALF_BUSY],
    traps: "one process for each node; a cpuset or a unit that confines it on purpose (its Mems_allowed is one node, too)",
    explains: &[],
    sources: &[
        "HAProxy configuration manual: numa-cpu-mapping, on by default since 2.4",
        "haproxy#1382: 32 of 64 cores idle",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let servers: Vec<&ProcessSample> = situation
        .now
        .processes
        .iter()
        .map(|process| &**process)
        .filter(|process| &*process.name == "haproxy")
        .collect();
    let confined: Vec<_> = servers.iter().filter_map(|server| confined(situation, server)).collect();
    // One for each node is what the manual advises.
    if confined.len() > 1 {
        return Vec::new();
    }
    confined
}

fn confined(situation: &Situation<'_>, server: &ProcessSample) -> Option<RuleFinding> {
    let nodes = reach(server, &situation.places)?;
    let node = nodes.first().filter(|_| nodes.len() == 1)?;
    let by_cpuset = server.allowed.as_ref()?.nodes.as_ref()?.is_subset(&nodes);
    let all = situation.places.with_cpus();
    let cpus = situation.machine.cpus_of(node).len();
    let change = situation.delta.as_ref()?.process(server.identity)?;
    let used = change.window.share(Some(change.cpu.as_ref()?.used))? / cpus.max(1) as f64;
    if all.len() < 2 || by_cpuset || cpus == 0 || used < situation.limit(&thresholds::HALF_BUSY) {
        return None;
    }
    let subject = Subject::Process {
        identity: server.identity,
        name: server.name.as_ref().to_owned(),
        owner: Owner::from_process(server),
    };
    let summary =
        format!("it may use node {node} only, whose CPUs it keeps busy; {} nodes have CPUs", all.len());
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, subject, summary);
    finding.evidence = vec![
        Evidence::new(format!("its use of the CPUs of node {node}"), Value::Share(used), shown::STAT)
            .at(situation.thresholds(), &thresholds::HALF_BUSY),
        Evidence::new("nodes of its CPUs", Value::text(node.to_string()), shown::STATUS),
    ];
    finding.cause =
        Some("since 2.4 HAProxy binds itself to the first node unless it is configured otherwise".to_owned());
    finding.mends = vec![Mend::words(
        "in haproxy.cfg, section global: no numa-cpu-mapping, or cpu-map and nbthread (3.2 and newer: cpu-policy); or one \
         process for each node, each beside its network adapter",
        Scope::Restart,
    )];
    finding.nodes = nodes;
    Some(finding)
}
