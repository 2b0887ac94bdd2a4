//! The nodes that a process may use cannot hold what it will need.

use nodewise_machine::{Bytes, NodeSet, PolicyMode};
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, several_nodes};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "bind-too-small",
    title: "the nodes that a process may use will be full within the hour",
    severity: Severity::Warning,
    on: several_nodes,
    needs: &[Fact::Rates, Fact::NodeMemory, Fact::Processes, Fact::Policies],
    sign: "a policy bind, or a cpuset, that leaves out nodes; the process grew by at least 1 % in the window, and at \
           that pace the memory available on its nodes is gone within an hour",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::BIND_SOON,
        &thresholds::BIND_GROWTH,
        &thresholds::BIND_YOUNGEST,
    ],
    traps: "a start that ends before (a process younger than a minute is not judged); a limit below that size",
    explains: &[],
    sources: &["Red Hat Virtualization Tuning Guide 9.2: strict can kill, prefer"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    situation.significant().filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let (bound, by) = bound(process)?;
    let all = situation.memory_nodes();
    if all.is_subset(&bound) {
        return None;
    }
    if situation.age(process.process)?.as_secs_f64() < situation.limit(&thresholds::BIND_YOUNGEST) {
        return None;
    }
    // Its own memory: mapped files make it larger without taking room.
    let (now, growth) = (process.size(), process.growth()?);
    let grown = growth.size;
    if (grown.get() as f64) < situation.limit(&thresholds::BIND_GROWTH) * now.get() as f64 || grown.get() == 0
    {
        return None;
    }
    let pace = grown.get() as f64 / situation.window()?.as_secs_f64();
    let room: Bytes =
        bound.iter().filter_map(|node| situation.nodes.get(&node)).map(|state| state.room()).sum();
    let left = room.get() as f64 / pace;
    let soon = situation.limit(&thresholds::BIND_SOON);
    if left >= soon {
        return None;
    }
    let elsewhere = all.difference(&bound);
    let minutes = (left / 60.0).ceil();
    let when = match minutes {
        0.0 => "are full".to_owned(),
        minutes => format!("will be full in about {minutes} min"),
    };
    let summary = format!("{} grows, and {} {when}", words::process(process), nodes(&bound));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(now);
    finding.evidence = vec![
        Evidence::new("growth", Value::Rate(pace / (1024.0 * 1024.0), "MiB"), growth.read_from),
        Evidence::new(format!("available on {}", nodes(&bound)), Value::Size(room), shown::NODE_MEMINFO)
            .at_part(
                Value::Size(Bytes::new((pace * soon) as u64)),
                situation.thresholds(),
                &thresholds::BIND_SOON,
            ),
    ];
    finding.cause = Some(format!("it may use {} only: {by}", nodes(&bound)));
    finding.mends = vec![Mend {
        commands: vec![format!("nodewise run --preferred-many={bound} -- COMMAND")],
        ..Mend::words("start it with a policy that goes on elsewhere when its nodes are full", Scope::Restart)
    }];
    if process.policy().is_none() {
        let more = bound.union(&elsewhere);
        finding.mends = process.owner().confine(&more, None, None);
    }
    finding.nodes = bound;
    Some(finding)
}

/// The nodes that its memory is bound to, and by what.
fn bound(process: &ProcessState<'_>) -> Option<(NodeSet, String)> {
    if let Some((policy, _)) = process.policy().filter(|(policy, _)| policy.mode == PolicyMode::Bind) {
        return Some((policy.nodes.clone(), format!("the policy {policy}")));
    }
    let allowed = process.allowed_nodes()?;
    Some((allowed.clone(), format!("the cpuset's nodes {allowed}")))
}
