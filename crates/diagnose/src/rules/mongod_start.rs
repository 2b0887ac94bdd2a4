//! mongod runs without interleaving, and its node is short.

use nodewise_machine::NodeSet;
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, Owner, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "mongod-start",
    title: "mongod was started without interleaving, and a node that holds its memory is short",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::NodeMemory, Fact::Watermarks, Fact::Policies],
    sign: "mongod with at least 300 MiB or 5 % of the smallest node, no policy, no cpuset of some nodes, and a node with at least \
           10 % of its memory below the high watermarks and with less than 10 % available",
    thresholds: &[
        &thresholds::SIGNIFICANT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::MONGOD_PART,
        &thresholds::MONGOD_SHORT,
    ],
    traps: "mongod that is bound to one node which holds it is placed well, whatever its own warning says",
    explains: &["first-touch-on-one"],
    sources: &[
        "MongoDB production notes: NUMA hardware",
        "SERVER-25984: the warning of a server that is bound well",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let servers = situation.significant().filter(|process| &*process.process.name == "mongod");
    servers.filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let all = situation.memory_nodes();
    let is_free = process.allowed_nodes().is_none_or(|allowed| all.is_subset(allowed));
    if !is_free || !process.has_no_policy() {
        return None;
    }
    let (part, room) =
        (situation.limit(&thresholds::MONGOD_PART), situation.limit(&thresholds::MONGOD_SHORT));
    let is_short = |node| {
        let state = situation.nodes.get(&node)?;
        let holds = process.memory.get(&node)?;
        Some(
            process.share(*holds) >= part
                && state.free < state.high?
                && state.room() < state.size.share(room),
        )
    };
    let short: NodeSet = all.iter().filter(|node| is_short(*node) == Some(true)).collect();
    let first = short.first()?;
    let state = situation.nodes.get(&first)?;
    let on_short = short.iter().filter_map(|node| process.memory.get(&node)).copied().sum();
    let summary =
        format!("{on_short} of {} are on {}, which has no room left", words::process(process), nodes(&short));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = process.confidence.min(Confidence::Likely);
    finding.concerns = Some(on_short);
    finding.evidence = vec![
        Evidence::new(
            format!("its memory on {}", nodes(&short)),
            Value::Share(process.share(on_short)),
            shown::NUMA_MAPS,
        )
        .at(situation.thresholds(), &thresholds::MONGOD_PART),
        Evidence::new(
            format!("available on node {first}"),
            Value::Share(state.share(state.room())),
            shown::NODE_MEMINFO,
        )
        .at(situation.thresholds(), &thresholds::MONGOD_SHORT),
        Evidence::new("policy", Value::text("none"), shown::NUMA_MAPS),
    ];
    finding.mends = vec![interleave(process)];
    finding.nodes = short;
    Some(finding)
}

/// Interleaving from the start, in the words of whoever starts the server.
pub(super) fn interleave(process: &ProcessState<'_>) -> Mend {
    match process.owner() {
        Owner::Service(unit) => {
            let unit = nodewise_machine::printable::printable(&unit).into_owned();
            Mend::words(
                format!("in a drop-in of {unit} (systemctl edit): NUMAPolicy=interleave and NUMAMask=all"),
                Scope::Restart,
            )
        }
        _ => {
            let commands = vec!["nodewise run --interleave=all -- COMMAND".to_owned()];
            Mend { commands, ..Mend::words("start it interleaved over all nodes", Scope::Restart) }
        }
    }
}
