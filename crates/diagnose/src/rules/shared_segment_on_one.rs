//! A shared segment that several nodes use lies on the node of its creator.

use std::collections::BTreeMap;

use nodewise_machine::mapping::{FileId, MappingKind};
use nodewise_machine::printable::quote;
use nodewise_machine::{NodeId, NodeSet};
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::Situation;
use crate::situation::pages::NodePages;
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "shared-segment-on-one",
    title: "a shared segment that several nodes use lies on one of them",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Mappings],
    sign: "shared memory or a pool's pages of at least 1 GiB (5 % of the smallest node on small machines), 80 % on one \
           node, mapped by processes that run on two nodes or more",
    thresholds: &[
        &thresholds::SEGMENT,
        &thresholds::SIGNIFICANT_SHARE,
        &thresholds::RUNS,
        &thresholds::AT_WORK,
        &thresholds::SEGMENT_ON_ONE,
    ],
    traps: "a segment that is filled in part grows with its use",
    explains: &[],
    sources: &["polardb#692: 70 to 94 GB on six of eight nodes", "OpenTenBase#310"],
    check,
};

/// A segment: its name, its memory by node, and the nodes of the processes that map it.
#[derive(Default)]
struct Segment {
    name: Option<String>,
    memory: NodePages,
    users: NodeSet,
    processes: usize,
}

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    segments(situation).values().filter_map(|segment| find(situation, segment)).collect()
}

/// Segments, each once however many processes map it: the largest count of its pages is the best.
fn segments(situation: &Situation<'_>) -> BTreeMap<FileId, Segment> {
    let mut segments: BTreeMap<FileId, Segment> = BTreeMap::new();
    for process in &situation.processes {
        let mut own: BTreeMap<FileId, NodePages> = BTreeMap::new();
        for mapping in process.mappings.into_iter().flat_map(|read| &read.mappings) {
            let is_shared = match mapping.kind {
                MappingKind::Shared => true,
                MappingKind::HugePool => mapping.permissions.shared,
                _ => false,
            };
            let (true, Some(file)) = (is_shared, mapping.file) else { continue };
            let segment = segments.entry(file).or_default();
            segment.name = segment.name.take().or_else(|| mapping.name.clone());
            own.entry(file).or_default().add(&mapping.pages);
        }
        for (file, memory) in own {
            let Some(segment) = segments.get_mut(&file) else { continue };
            if process.is_at_work() {
                segment.users = segment.users.union(&process.runs_on());
            }
            segment.processes += 1;
            if memory.size() > segment.memory.size() {
                segment.memory = memory;
            }
        }
    }
    segments
}

fn find(situation: &Situation<'_>, segment: &Segment) -> Option<RuleFinding> {
    let size = segment.memory.size();
    let on = |node: &NodeId| segment.memory.on(&NodeSet::from_iter([*node]));
    let node = segment.memory.nodes().iter().max_by_key(on)?;
    let most = on(&node);
    let share = segment.memory.share(&NodeSet::from_iter([node]))?;
    let least = situation.large();
    if size < least || share.low < situation.limit(&thresholds::SEGMENT_ON_ONE) || segment.users.len() < 2 {
        return None;
    }
    let name = segment.name.as_deref().map_or_else(|| "a shared segment".to_owned(), quote);
    let summary =
        format!("{most} of {name} lie on node {node}; processes of {} use it", nodes(&segment.users));
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::node(node), summary);
    finding.confidence = Confidence::Likely;
    finding.concerns = Some(most);
    finding.evidence = vec![
        Evidence::new(format!("on node {node}"), Value::Share(share.share), shown::NUMA_MAPS)
            .at(situation.thresholds(), &thresholds::SEGMENT_ON_ONE),
        Evidence::new("size", Value::Size(size), shown::NUMA_MAPS)
            .against(Value::Size(least), situation.size_origin(&thresholds::SEGMENT)),
        Evidence::new("mapped by", Value::Count(segment.processes as u64, "processes"), shown::NUMA_MAPS),
    ];
    finding.evidence.extend(words::interval(format!("on node {node}"), &share));
    finding.cause = Some("the process that made it wrote it first, from one node".to_owned());
    finding.mends = vec![Mend::words(
        "interleave it before it is filled: nodewise run --interleave=all -- COMMAND, or NUMAPolicy=interleave and \
         NUMAMask=all in the service's unit",
        Scope::Restart,
    )];
    Some(finding)
}
