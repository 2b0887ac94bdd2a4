//! The firmware's facts about reaching memory, and the tiers that the kernel makes of it.

use nodewise_machine::{Access, AccessClass, Machine, NodeId, Tier, TierId};

use super::Reader;
use crate::parse::number;
use crate::paths;

const TIERS: &str = "/sys/devices/virtual/memory_tiering";

/// Fills access attributes and tiers.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
    let ids = machine.node_ids();
    for target in &ids {
        for class in [AccessClass::Any, AccessClass::Cpu] {
            let access = read_access(reader, target, class);
            // The kernel makes both classes from the same table.
            if access.is_none() && reader.is_quick() {
                break;
            }
            machine.accesses.extend(access);
        }
    }
    // One node is one tier.
    if ids.len() == 1 && reader.is_quick() {
        return;
    }
    for number in reader.numbered(TIERS, "memory_tier") {
        if let Some(nodes) = reader.node_list(&format!("{TIERS}/memory_tier{number}/nodelist")) {
            machine.tiers.push(Tier { id: TierId::new(number), nodes });
        }
    }
}

/// One class of one node; `None` when the kernel says nothing. The folder also exists for nodes that
/// are only initiators of others, and is empty then.
fn read_access(reader: &mut Reader<'_>, target: NodeId, class: AccessClass) -> Option<Access> {
    let root = format!("{}/access{}/initiators", paths::node(target), class.number());
    let initiators = reader.node_entries(&root);
    // The kernel registers values together with the initiators that they hold for.
    if initiators.is_empty() && reader.is_quick() {
        return None;
    }
    let mut value = |file: &str| {
        let value: Option<u32> = reader.value(&format!("{root}/{file}"), number::number);
        // 0 is how the kernel prints a value that the firmware did not give.
        value.filter(|value| *value > 0)
    };
    let access = Access {
        target,
        class,
        initiators,
        read_latency_ns: value("read_latency"),
        write_latency_ns: value("write_latency"),
        read_bandwidth_mb_per_s: value("read_bandwidth"),
        write_bandwidth_mb_per_s: value("write_bandwidth"),
    };
    let values = [
        access.read_latency_ns,
        access.write_latency_ns,
        access.read_bandwidth_mb_per_s,
        access.write_bandwidth_mb_per_s,
    ];
    let says_nothing = access.initiators.is_empty() && values.iter().all(Option::is_none);
    (!says_nothing).then_some(access)
}
