//! A program drives a device from another node.

use nodewise_machine::NodeSet;
use nodewise_machine::printable::printable;
use nodewise_source::paths::shown;

use super::words::{self, nodes};
use crate::finding::{Confidence, Evidence, Mend, RuleFinding, Scope, Severity, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::{ProcessState, Situation};
use crate::thresholds;

/// Devices that a finding names.
const NAMED: usize = 4;

pub static RULE: Rule = Rule {
    id: "device-user-remote",
    title: "a program drives a device from another node",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Processes, Fact::OpenFiles],
    sign: "a program at work has files of RDMA adapters, NVMe disks, VFIO groups or accelerators open, all of one node, and \
           spends less than 20 % of its CPU time there",
    thresholds: &[&thresholds::AT_WORK, &thresholds::DEVICE_CPU],
    traps: "devices of several nodes (silent); a device that is open and not used; a link that is the limit, where the node does \
            not matter",
    explains: &[],
    sources: &[
        "torchcomms#2808: 21 to 124 GB/s when DMA crosses nodes",
        "RecStore#238 and rocm_bandwidth_test#129: no difference on other machines",
    ],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let at_work = situation.processes.iter().filter(|process| process.is_at_work());
    at_work.filter_map(|process| find(situation, process)).collect()
}

fn find(situation: &Situation<'_>, process: &ProcessState<'_>) -> Option<RuleFinding> {
    let open = process.program?.devices.as_deref()?;
    let on: NodeSet = open.iter().filter_map(|device| device.node).collect();
    let node = on.first().filter(|_| on.len() == 1)?;
    let share = process.most_on(node)?;
    let limit = situation.limit(&thresholds::DEVICE_CPU);
    if share >= limit || !situation.places.with_cpus().contains(node) {
        return None;
    }
    let named: Vec<&str> =
        open.iter().filter(|device| device.node.is_some()).map(|device| &*device.name).collect();
    let more = if named.len() > NAMED { " and others" } else { "" };
    let names = named.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let names = format!("{}{more}", printable(&names));
    let summary = format!(
        "{} drives {names} of node {node} from {}",
        words::process(process),
        nodes(&process.runs_on())
    );
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, process.subject(), summary);
    finding.confidence = Confidence::Likely;
    finding.evidence = vec![
        Evidence::new(format!("CPU time on node {node}"), Value::Share(share), shown::TASK_SCHED)
            .at(situation.thresholds(), &thresholds::DEVICE_CPU),
        Evidence::new("open devices", Value::text(names), shown::OPEN_FILES),
    ];
    finding.mends = vec![Mend {
        commands: vec![format!("nodewise run --cpunodebind={node} --preferred={node} -- COMMAND")],
        ..Mend::words(
            "start it on the device's node, with memory from there while it has some",
            Scope::Restart,
        )
    }];
    finding.experiment =
        Some("nodewise tune -- COMMAND, or nodewise io, shows whether that node matters".to_owned());
    finding.nodes = on;
    Some(finding)
}
