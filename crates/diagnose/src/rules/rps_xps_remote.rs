//! Queues of a network device hand their packets to another node.

use nodewise_machine::printable::printable;
use nodewise_machine::{CpuSet, NodeSet};
use nodewise_source::paths::shown;
use nodewise_source::sample::{InterruptSample, QueueSample};

use super::words::nodes_of;
use crate::change::InterruptChange;
use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::Situation;
use crate::steering::steered_queues;

/// Queues whose commands are written out.
const MOST: usize = 64;

pub static RULE: Rule = Rule {
    id: "rps-xps-remote",
    title: "queues of a network device name CPUs of other nodes only",
    severity: Severity::Note,
    on: with_distance,
    needs: &[Fact::Rates, Fact::Interrupts, Fact::Queues],
    sign: "a device raises interrupts; rps_cpus of a queue names CPUs, and none of the device's node or of a node that takes at \
           least half of an even share of its interrupts; or xps_cpus of its queues name CPUs, and none of the device's node",
    thresholds: &[],
    traps: "a queue for each CPU of the machine, as drivers set up xps_cpus; packets that are handed to the node of their program \
            on purpose; with RFS (rps_flow_cnt) they follow their program anyway",
    explains: &[],
    sources: &["the kernel's Documentation/networking/scaling.rst", "netutils-linux#164", "systemd.link(5)"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let Some(delta) = &situation.delta else { return Vec::new() };
    delta.interrupts.iter().filter_map(|device| find(situation, device)).collect()
}

fn find(situation: &Situation<'_>, device: &InterruptChange) -> Option<RuleFinding> {
    let node = device.node?;
    let rate = situation.rate(device.count).filter(|rate| *rate > 0.0)?;
    let sample = situation.now.interrupts_of(&device.device)?;
    let near = &situation.now.node(node)?.cpus;
    let steered = steered_queues(sample, device, situation.now);
    let remote = steered.iter().filter(|steered| steered.is_remote == Some(true));
    let remote: Vec<&QueueSample> = remote.map(|steered| &steered.queue).collect();
    let first = remote.first()?;
    let named: CpuSet =
        remote.iter().filter_map(|queue| queue.cpus.as_ref()).flat_map(CpuSet::iter).collect();
    let summary = format!(
        "{} of {} queues of {}, on node {node}, name CPUs of {} only",
        remote.len(),
        sample.queues.len(),
        printable(&sample.device),
        nodes_of(&named, situation.now),
    );
    let mut finding =
        RuleFinding::new(RULE.id, RULE.severity, Subject::Device(sample.device.clone()), summary);
    let cpus = first.cpus.as_ref().map(CpuSet::to_string).unwrap_or_default();
    finding.evidence = vec![
        Evidence::new(printable(&first.name), Value::text(format!("CPUs {cpus}")), shown::QUEUES),
        Evidence::new("interrupts", Value::Rate(rate, "interrupts"), shown::INTERRUPTS),
        Evidence::new("node of the device", Value::text(node.to_string()), shown::DEVICE_NODE),
    ];
    finding.mends = mend(near, &remote, sample).into_iter().collect();
    finding.nodes = NodeSet::from_iter([node]);
    Some(finding)
}

/// CPUs of the device's own node, and the way back. Names that a shell would read otherwise get no commands.
fn mend(near: &CpuSet, remote: &[&QueueSample], sample: &InterruptSample) -> Option<Mend> {
    let is_plain = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && !text.contains("..")
    };
    let name = sample.device.strip_prefix("net:")?;
    if !is_plain(name) || !remote.iter().all(|queue| is_plain(&queue.name)) {
        return None;
    }
    let queues = || remote.iter().take(MOST);
    let command = |queue: &QueueSample, cpus: &CpuSet| {
        shown::queue_command(name, &queue.name, queue.steering_file(), cpus)
    };
    Some(Mend {
        commands: queues().map(|queue| command(queue, near)).collect(),
        undo: queues().filter_map(|queue| Some(command(queue, queue.cpus.as_ref()?))).collect(),
        needs_root: true,
        ..Mend::words(
            "let CPUs of its own node process its packets; to keep that, write the files in a udev rule, or for queues that \
             receive set ReceivePacketSteeringCPUMask= in the device's .link file (systemd 256)",
            Scope::Now,
        )
    })
}
