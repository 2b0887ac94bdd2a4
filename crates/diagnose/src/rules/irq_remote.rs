//! Busy interrupts of a device are handled on another node.

use nodewise_machine::NodeSet;
use nodewise_source::paths::shown;

use crate::change::InterruptChange;
use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::Situation;
use crate::thresholds;

/// Lines whose commands are written out.
const MOST: usize = 64;

pub static RULE: Rule = Rule {
    id: "irq-remote",
    title: "busy interrupts of a device are handled on another node",
    severity: Severity::Warning,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Interrupts],
    sign: "at least 1,000 interrupts a second, and at least 20 % of them on CPUs of other nodes than the device's",
    thresholds: &[&thresholds::IRQ_SHARE, &thresholds::IRQ_RATE],
    traps: "one queue for each CPU of the machine is right, and its lines ignore writes; a node whose CPUs are busy may \
            be left on purpose",
    explains: &[],
    sources: &["irqbalance#175", "irqbalance#169", "chef-bcpc#2115"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let Some(delta) = &situation.delta else { return Vec::new() };
    delta.interrupts.iter().filter_map(|device| find(situation, device)).collect()
}

fn find(situation: &Situation<'_>, device: &InterruptChange) -> Option<RuleFinding> {
    let node = device.node?;
    let share = device.wrong_share()?;
    let rate = situation.rate(device.count)?;
    let sample = situation.now.interrupts_of(&device.device)?;
    let online = situation.now.cpus.len();
    // A line for each CPU: the kernel spreads them over the machine, and each serves its own CPU's queue.
    let by_cpu = sample.lines.len() >= online;
    if share < situation.limit(&thresholds::IRQ_SHARE)
        || rate < situation.limit(&thresholds::IRQ_RATE)
        || by_cpu
    {
        return None;
    }
    let others: NodeSet = device
        .by_node
        .iter()
        .filter(|(other, count)| **other != node && **count > 0)
        .map(|(other, _)| *other)
        .collect();
    // Queues of NVMe disks are spread by the kernel, which refuses to move their interrupts.
    let is_spread = device.device.starts_with("block:nvme");
    let cpus = situation.machine.cpus_of_nodes(&NodeSet::from_iter([node]));
    if cpus.is_empty() {
        return None;
    }
    let severity = if is_spread { Severity::Note } else { RULE.severity };
    let summary = format!(
        "{:.0} % of {rate:.0} interrupts/s of {} are handled on {}",
        share * 100.0,
        nodewise_machine::printable::printable(&device.device),
        super::words::nodes(&others)
    );
    let mut finding = RuleFinding::new(RULE.id, severity, Subject::Device(device.device.clone()), summary);
    finding.evidence = vec![
        Evidence::new("on other nodes", Value::Share(share), shown::INTERRUPTS)
            .at(situation.thresholds(), &thresholds::IRQ_SHARE),
        Evidence::new("interrupts", Value::Rate(rate, "interrupts"), shown::INTERRUPTS)
            .at(situation.thresholds(), &thresholds::IRQ_RATE),
        Evidence::new("node of the device", Value::text(node.to_string()), shown::DEVICE_NODE),
    ];
    let commands = sample.lines.iter().take(MOST).map(|line| shown::affinity_command(*line, &cpus)).collect();
    if !is_spread {
        finding.mends = vec![Mend {
            commands,
            needs_root: true,
            undo: Vec::new(),
            ..Mend::words(
                "let CPUs of its own node serve it; irqbalance takes that back unless its policy script or --banirq names \
             the lines. Note the old lists first: cat the same files",
                Scope::Now,
            )
        }];
    }
    finding.nodes = NodeSet::from_iter([node]);
    Some(finding)
}
