//! A Java machine was started with UseNUMA, and what it may use switches that off.

use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, Owner, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "jvm-numa-void",
    title: "a Java machine was started with UseNUMA, and its cpuset or filter switches that off",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Pages, Fact::Programs],
    sign: "-XX:+UseNUMA among the options of a process with at least 300 MiB or 5 % of the smallest node that may use CPUs of two \
           nodes or more, and whose Mems_allowed are not the nodes of its CPUs; or one in a container whose system calls are \
           filtered and that lacks CAP_SYS_NICE",
    thresholds: &[&thresholds::SIGNIFICANT, &thresholds::SIGNIFICANT_SHARE],
    traps: "nodes without CPUs, whose memory every process may have; a filter that lets mbind pass",
    explains: &[],
    sources: &[
        "jdk#22395: 20 to 25 % slower when UseNUMA is switched off silently",
        "jdk#3778: -Xlog:gc+init says it",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let program = process.program?;
    let (reach, allowed) = (process.reach.as_ref()?, process.allowed_nodes()?);
    let is_java = program.exe.as_deref().is_some_and(|exe| exe.ends_with("/bin/java"));
    let asks = super::jvm_numa_unused::options(process).contains(&"-XX:+UseNUMA");
    if !is_java || !asks || reach.len() < 2 {
        return None;
    }
    let memory = allowed.intersection(&situation.places.with_cpus());
    let is_apart = memory != *reach;
    let is_contained = matches!(process.owner(), Owner::Container(..) | Owner::Kubelet);
    let is_refused = is_contained && program.is_filtered == Some(true) && program.has_nice == Some(false);
    let (cause, read_from, confidence) = match (is_apart, is_refused) {
        (true, _) => (
            format!("its CPUs are those of {}, its memory may come from {}", nodes(reach), nodes(allowed)),
            shown::STATUS,
            Confidence::Likely,
        ),
        (_, true) => (
            "the container's filter refuses mbind to programs without CAP_SYS_NICE".to_owned(),
            shown::STATUS,
            Confidence::Possible,
        ),
        _ => return None,
    };
    let summary = format!("{} was started with UseNUMA, which is probably off", words::process(process));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = confidence;
    finding.concerns = Some(process.size());
    finding.evidence = vec![
        Evidence::new("nodes of its CPUs", Value::text(reach.to_string()), read_from),
        Evidence::new("nodes of its memory", Value::text(allowed.to_string()), read_from),
    ];
    finding.cause = Some(cause);
    finding.mends = match is_apart {
        true => process.owner().confine(reach, None, None),
        false => vec![Mend::words(
            "give the container CAP_SYS_NICE (docker run --cap-add SYS_NICE; securityContext of a pod), or the CPUs and memory of \
             one node",
            Scope::Restart,
        )],
    };
    finding.nodes = reach.clone();
    Some(finding)
}
