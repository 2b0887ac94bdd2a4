//! Fast devices hang on one node, or those that work together on different ones.

use std::collections::BTreeMap;

use nodewise_machine::device::DeviceClass;
use nodewise_machine::plural::plural;
use nodewise_machine::{Device, NodeId, NodeSet};
use nodewise_source::paths::shown;

use super::words::nodes;
use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::Situation;
use crate::thresholds;

pub static RULE: Rule = Rule {
    id: "devices-lopsided",
    title: "all fast devices hang on one node, or those that work together on different ones",
    severity: Severity::Info,
    on: with_distance,
    needs: &[Fact::Devices],
    sign: "at least four network adapters, RDMA adapters, NVMe disks and accelerators on PCI Express whose node is known, all of \
           them on one of several nodes with CPUs; or accelerators and RDMA adapters that share no node",
    thresholds: &[&thresholds::LOPSIDED_DEVICES],
    traps: "boards whose slots belong to one socket; a second socket that only computes; adapters on the board, which are slow",
    explains: &[],
    sources: &["ceph#25792", "ucx#11121", "nccl#1435"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let with_cpus = situation.machine.nodes_with_cpus();
    let mut fast: BTreeMap<NodeId, usize> = BTreeMap::new();
    let (mut computing, mut connecting) = (NodeSet::new(), NodeSet::new());
    for device in &situation.machine.devices {
        let Some(node) = device.node.filter(|_| is_fast(device)) else { continue };
        *fast.entry(node).or_default() += 1;
        if device.is_compute() {
            computing.insert(node);
        }
        if device.name_in(DeviceClass::Infiniband).is_some() {
            connecting.insert(node);
        }
    }
    let count: usize = fast.values().sum();
    let is_enough = count as f64 >= situation.limit(&thresholds::LOPSIDED_DEVICES);
    let on: NodeSet = fast.keys().copied().collect();
    let on_one = fast.len() == 1 && with_cpus.len() > 1 && is_enough;
    let is_apart = !computing.is_empty() && !connecting.is_empty() && computing.is_disjoint(&connecting);
    let summary = match (on_one, is_apart) {
        (true, _) => format!("all {count} fast devices hang on {}", nodes(&on)),
        (_, true) => {
            format!("accelerators hang on {}, RDMA adapters on {}", nodes(&computing), nodes(&connecting))
        }
        _ => return Vec::new(),
    };
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    let by_node = fast.iter().map(|(node, count)| {
        let fact = format!("on node {node}");
        Evidence::new(fact, Value::text(plural(*count, "device")), shown::DEVICE_NODE)
    });
    finding.evidence = by_node.collect();
    finding.mends = vec![Mend::words(
        "other slots, as the manual of the board assigns them to sockets; until then start what drives a device beside it \
         (nodewise run --near net:eth0 -- COMMAND)",
        Scope::Hardware,
    )];
    finding.experiment = Some("nodewise io measures each device from each node".to_owned());
    finding.nodes = on;
    vec![finding]
}

/// Whether a device moves gigabytes in a second: it has a link of PCI Express, and is of a kind that uses it.
fn is_fast(device: &Device) -> bool {
    let classes = [DeviceClass::Infiniband, DeviceClass::Net, DeviceClass::Nvme];
    let is_known = device.is_compute() || classes.iter().any(|class| device.name_in(*class).is_some());
    // A lane of 8 GT/s carries a gigabyte in a second; a lane or two of less are adapters on the board.
    let throughput = device.link.and_then(|link| {
        let speed = link.max_speed.or(link.speed)?;
        Some(u64::from(speed) * u64::from(link.max_width.or(link.width)?))
    });
    is_known && throughput.is_some_and(|throughput| throughput >= 4 * 8_000)
}
