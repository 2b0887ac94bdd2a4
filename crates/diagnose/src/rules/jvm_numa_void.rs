//! A Java machine was started with UseNUMA, and its CPUs are not those of the nodes of its memory.
//!
//! Such a machine counts nodes by libnuma: those of its CPUs, and those of its policy or, without one, of its cpuset. With
//! memory of one node it switches UseNUMA off. Where both differ otherwise, version 25 and newer switch it off as well;
//! older ones have parts of the heap on nodes where no thread runs.

use nodewise_machine::{NodeSet, PolicyMode};
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, Owner, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

/// The first version that switches UseNUMA off where nodes differ.
const COMPARES: u32 = 25;

pub static RULE: Rule = Rule {
    id: "jvm-numa-void",
    title: "a Java machine was started with UseNUMA, and its CPUs and its memory are not of the same nodes",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Pages, Fact::Policies, Fact::Programs],
    sign: "-XX:+UseNUMA among the options of a process with at least 300 MiB or 5 % of the smallest node, whose memory may come \
           from one node while its CPUs are those of several, or from other nodes than those of its CPUs (with CPUs of one node: \
           before version 25 only); or one in a container whose system calls are filtered and that lacks CAP_SYS_NICE",
    thresholds: &[&thresholds::SIGNIFICANT, &thresholds::SIGNIFICANT_SHARE],
    traps: "nodes without CPUs, whose memory every process may have; a filter that lets mbind pass",
    explains: &[],
    sources: &[
        "jdk#22395, Java 25: UseNUMA is switched off where nodes differ, 7 to 25 % faster than before",
        "jdk#3778: -Xlog:gc+init says whether it is on",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

/// The effect of UseNUMA here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It is off.
    Off,
    /// It is on, with a heap on other nodes than those of the threads.
    Apart,
    /// One of them, by a version that is not known.
    Either,
    /// A filter may refuse its calls.
    Refused,
}

/// The nodes that the machine takes for those of its memory; `None` where its policy or its cpuset is not known.
fn memory_nodes(process: &ProcessState<'_>) -> Option<NodeSet> {
    let allowed = process.allowed_nodes()?;
    let policy = process.thread_policy()?;
    Some(match policy.mode {
        PolicyMode::Bind | PolicyMode::Interleave => allowed.intersection(&policy.nodes),
        _ => allowed.clone(),
    })
}

fn effect(process: &ProcessState<'_>, reach: &NodeSet, memory: &NodeSet) -> Option<Effect> {
    let program = process.program?;
    let is_contained = matches!(process.owner(), Owner::Container(..) | Owner::Kubelet);
    let is_refused = is_contained && program.is_filtered == Some(true) && program.has_nice == Some(false);
    match (memory == reach, program.version) {
        (true, _) => (is_refused && reach.len() > 1).then_some(Effect::Refused),
        (false, _) if memory.len() < 2 => (reach.len() > 1).then_some(Effect::Off),
        (false, Some(version)) if version < COMPARES => Some(Effect::Apart),
        // On CPUs of one node it loses nothing by that.
        (false, _) if reach.len() < 2 => None,
        (false, Some(_)) => Some(Effect::Off),
        (false, None) => Some(Effect::Either),
    }
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let program = process.program?;
    let is_java = program.exe.as_deref().is_some_and(|exe| exe.ends_with("/bin/java"));
    if !is_java || !super::jvm_numa_unused::options(process).contains(&"-XX:+UseNUMA") {
        return None;
    }
    let reach = process.reach.as_ref()?;
    let memory = memory_nodes(process)?.intersection(&situation.places.with_cpus());
    let effect = effect(process, reach, &memory)?;
    let name = words::process(process);
    let summary = match effect {
        Effect::Off => format!("{name} was started with UseNUMA, which is off"),
        Effect::Either | Effect::Refused => format!("{name} was started with UseNUMA, which is probably off"),
        Effect::Apart => {
            format!(
                "{name} was started with UseNUMA: its heap is for {}, it runs on {}",
                nodes(&memory),
                nodes(reach)
            )
        }
    };
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = if effect == Effect::Refused { Confidence::Possible } else { Confidence::Likely };
    finding.concerns = Some(process.size());
    finding.evidence = vec![
        Evidence::new("nodes of its CPUs", Value::text(reach.to_string()), shown::STATUS),
        Evidence::new("nodes of its memory", Value::text(memory.to_string()), shown::STATUS),
    ];
    finding.evidence.extend(program.version.map(|version| {
        Evidence::new("version of Java", Value::Count(version.into(), ""), shown::PROCESS_COMMAND)
    }));
    finding.cause = Some(match effect {
        Effect::Refused => "the container's filter refuses mbind to programs without CAP_SYS_NICE".to_owned(),
        _ => format!("its CPUs are those of {}, its memory may come from {}", nodes(reach), nodes(&memory)),
    });
    finding.mends = mends(process, reach, effect);
    finding.nodes = reach.clone();
    Some(finding)
}

fn mends(process: &ProcessState<'_>, reach: &NodeSet, effect: Effect) -> Vec<Mend> {
    if effect == Effect::Refused {
        return vec![Mend::words(
            "give the container CAP_SYS_NICE (docker run --cap-add SYS_NICE; securityContext of a pod), or the CPUs and memory of \
             one node",
            Scope::Restart,
        )];
    }
    let lacks = process.allowed_nodes().is_some_and(|allowed| !reach.is_subset(allowed));
    match process.owner() {
        // No policy goes beyond a cpuset.
        Owner::Itself if lacks => vec![Mend::words(
            format!(
                "give its cpuset memory of the nodes of its CPUs (cpuset.mems={reach} of its control group), or CPUs of the nodes \
                 of its memory alone"
            ),
            Scope::Restart,
        )],
        owner => owner.confine(reach, None, None),
    }
}
