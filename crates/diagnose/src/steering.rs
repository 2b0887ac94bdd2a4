//! Queues of a network device: the CPUs that they name against the node of the device, and those that take its
//! interrupts.

use nodewise_machine::CpuSet;
use nodewise_source::sample::{InterruptSample, QueueSample, Sample};

use crate::change::InterruptChange;

/// A queue, and whether its packets cross nodes because of the CPUs that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteeredQueue {
    pub queue: QueueSample,
    /// `None` where the device has no node, its node no CPU, or the kernel does not say what the queue names.
    pub is_remote: Option<bool>,
}

/// The queues of a device. A queue that names CPUs is remote
///
/// - where packets arrive in it (RPS): when it names none of the device's node and none of the nodes that take its
///   interrupts. The CPUs should share the memory of the one that takes the queue's interrupts;
/// - where packets leave by it (XPS): when no such queue of the device names a CPU of the device's node. A queue for each
///   CPU of the machine, as many drivers set them up, names all nodes and is right.
///
/// # Source
/// The kernel's Documentation/networking/scaling.rst, "Suggested Configuration" of RPS and of XPS.
pub fn steered_queues(
    device: &InterruptSample,
    change: &InterruptChange,
    sample: &Sample,
) -> Vec<SteeredQueue> {
    let own = change.node.and_then(|node| sample.node(node)).map(|node| &node.cpus);
    let own = own.filter(|cpus| !cpus.is_empty());
    let serving = own.map(|own| own.union(&interrupted(change, sample)));
    let leaving = device.queues.iter().filter(|queue| !queue.receives());
    let leaving: CpuSet = leaving.filter_map(|queue| queue.cpus.as_ref()).flat_map(CpuSet::iter).collect();
    let are_all_far = own.map(|own| leaving.intersection(own).is_empty());
    let is_remote = |queue: &QueueSample| {
        let cpus = queue.cpus.as_ref()?;
        let are_far =
            if queue.receives() { cpus.intersection(serving.as_ref()?).is_empty() } else { are_all_far? };
        Some(!cpus.is_empty() && are_far)
    };
    let steered = |queue: &QueueSample| SteeredQueue { is_remote: is_remote(queue), queue: queue.clone() };
    device.queues.iter().map(steered).collect()
}

/// CPUs of the nodes that take at least half of an even share of a device's interrupts: a few stray ones, such as those
/// of a mailbox, say nothing about its packets.
fn interrupted(change: &InterruptChange, sample: &Sample) -> CpuSet {
    let with_cpus = sample.nodes.iter().filter(|node| !node.cpus.is_empty()).count() as u128;
    let takes = |count: u64| count > 0 && u128::from(count) * 2 * with_cpus >= u128::from(change.count);
    let nodes = change.by_node.iter().filter(|(_, count)| takes(**count));
    nodes.filter_map(|(node, _)| sample.node(*node)).flat_map(|node| node.cpus.iter()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::situation::fixture::Fixture;
    use nodewise_machine::NodeId;

    /// Queues by name and CPUs (`-`: not known), interrupts by node; the remote queues, and those that nothing is known of.
    #[track_caller]
    fn check(node: Option<u32>, queues: &str, by_node: &[(u32, u64)], expected: &str) {
        // CPUs 0-1, 2-3, 4-5 and 6-7.
        let fixture = Fixture::new("4x(2c 16G)");
        let queue = |text: &str| {
            let (name, cpus) = text.split_once('=').expect("a name and CPUs");
            let cpus = (cpus != "-").then(|| cpus.parse().expect("CPUs"));
            QueueSample { name: name.to_owned(), cpus, flows: None }
        };
        let queues = queues.split(' ').map(queue).collect();
        let device = InterruptSample { queues, ..InterruptSample::default() };
        let by_node = by_node.iter().map(|(node, count)| (NodeId::new(*node), *count));
        let change = InterruptChange {
            device: String::new(),
            node: node.map(NodeId::new),
            by_node: by_node.clone().collect(),
            count: by_node.fold(0, |sum, (_, count)| sum.saturating_add(count)),
        };
        let found = steered_queues(&device, &change, &fixture.now);
        let word = |queue: &SteeredQueue| match queue.is_remote {
            Some(true) => Some(queue.queue.name.clone()),
            Some(false) => None,
            None => Some(format!("{}?", queue.queue.name)),
        };
        assert_eq!(found.iter().filter_map(word).collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn a_queue_that_receives_is_remote_when_it_names_no_cpu_near_its_device_or_its_interrupts() {
        let own = [(0, 100)];
        check(Some(0), "rx-0= rx-1=0 rx-2=1,6 rx-3=6 rx-4=-", &own, "rx-3 rx-4?");
        check(Some(0), "rx-0=6", &[], "rx-0");
        // Node 3 takes interrupts, too: packets stay where they arrive.
        check(Some(0), "rx-0=6 rx-1=4", &[(0, 50), (3, 50)], "rx-1");
        check(Some(0), "rx-0=6 rx-1=4", &[(3, 100)], "rx-1");
        // From half of an even share on.
        check(Some(0), "rx-0=6", &[(0, 105), (3, 15)], "");
        check(Some(0), "rx-0=6", &[(0, 106), (3, 14)], "rx-0");
        check(Some(0), "rx-0=6", &[(0, u64::MAX), (3, u64::MAX)], "");
    }

    #[test]
    fn queues_that_transmit_are_remote_only_when_none_names_the_device_s_node() {
        let own = [(0, 100)];
        check(Some(0), "tx-0=0-1 tx-1=2-3 tx-2=4-5 tx-3=6-7", &own, "");
        check(Some(0), "tx-0=2 tx-1=3 tx-2= rx-0=0", &own, "tx-0 tx-1");
        check(Some(0), "tx-0=2 rx-0=6", &[(1, 100)], "tx-0 rx-0");
        check(Some(0), "tx-0= tx-1=", &own, "");
    }

    #[test]
    fn a_device_without_a_node_or_with_an_unknown_one_has_no_remote_queue() {
        check(None, "rx-0=6 tx-0=6", &[(0, 100)], "rx-0? tx-0?");
        check(Some(9), "rx-0=6 tx-0=6", &[(0, 100)], "rx-0? tx-0?");
    }
}
