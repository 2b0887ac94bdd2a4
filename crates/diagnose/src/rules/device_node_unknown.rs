//! The firmware does not say where a fast device is.

use nodewise_machine::{Device, DeviceClass};
use nodewise_source::paths::shown;

use crate::finding::{Evidence, Mend, RuleFinding, Scope, Severity, Subject, Value};
use crate::rule::{Fact, Rule, with_distance};
use crate::situation::Situation;

pub static RULE: Rule = Rule {
    id: "device-node-unknown",
    title: "the firmware does not say which node fast devices are on",
    severity: Severity::Info,
    on: with_distance,
    needs: &[Fact::Devices],
    sign: "numa_node is -1 for network cards, NVMe disks or GPUs on PCI, on a machine with several nodes",
    thresholds: &[],
    traps: "virtual machines, where that is normal",
    explains: &[],
    sources: &["PF_RING#181", "csit#874", "Documentation/ABI/testing/sysfs-bus-pci: numa_node"],
    check,
};

fn check(situation: &Situation<'_>) -> Vec<RuleFinding> {
    let is_fast = |device: &&Device| {
        let classes = [DeviceClass::Net, DeviceClass::Nvme, DeviceClass::Infiniband];
        classes.iter().any(|class| device.name_in(*class).is_some()) || device.is_compute()
    };
    let unknown: Vec<&Device> = situation
        .machine
        .devices
        .iter()
        .filter(|device| device.pci.is_some() && situation.machine.home_of(device).is_none())
        .filter(is_fast)
        .collect();
    let Some(first) = unknown.first().and_then(|device| device.pci) else { return Vec::new() };
    let count = unknown.len();
    let summary = match count {
        1 => format!("the node of {first} is not known, so nothing can be placed near it"),
        _ => format!("the nodes of {count} fast devices are not known ({first} is the first)"),
    };
    let mut finding = RuleFinding::new(RULE.id, RULE.severity, Subject::Machine, summary);
    finding.evidence =
        vec![Evidence::new("devices without a node", Value::Count(count as u64, ""), shown::DEVICE_NODE)];
    finding.mends =
        vec![Mend::words("the firmware's table _PXM says it; an update may bring it", Scope::Reboot)];
    finding.experiment = Some("nodewise io measures each node against the device".to_owned());
    vec![finding]
}
