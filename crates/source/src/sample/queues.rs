//! Queues of network devices: the CPUs that they hand packets to, or take them from.
//!
//! # Source
//! `queues/rx-N/rps_cpus` and `rps_flow_cnt` of `/sys/class/net/NAME`, Linux 2.6.35, and `queues/tx-N/xps_cpus`, Linux
//! 2.6.38, which a device with one such queue has and refuses to show.

use std::collections::BTreeMap;
use std::time::Duration;

use nodewise_machine::CpuSet;
use nodewise_machine::order::Order as _;

use super::{InterruptSample, Moment, QueueSample};
use crate::file;
use crate::parse::{ParseError, number, set};
use crate::tree::Tree;

/// Queues are read this often: administrators and drivers set them, traffic does not.
const READ_EVERY: Duration = Duration::from_secs(10);
/// Queues of one device, and of all, that are read: some 10 us each. Drivers make one for each CPU, or fewer.
const MOST: usize = 2048;
const MOST_OF_ALL: usize = 2 * MOST;

/// The queues that are known, by device.
#[derive(Debug, Default)]
pub(super) struct QueueTable {
    known: BTreeMap<String, Vec<QueueSample>>,
    read: Option<Moment>,
}

impl QueueTable {
    /// Adds the queues of the network devices among these.
    pub(super) fn add(&mut self, tree: &Tree, now: Moment, devices: &mut [InterruptSample]) {
        let age = self.read.map(|read| now.since(read));
        if age.is_none_or(|age| age.is_none_or(|age| age >= READ_EVERY)) {
            let mut room = MOST_OF_ALL;
            self.known.clear();
            for device in devices.iter() {
                let Some(name) = device.device.strip_prefix("net:") else { continue };
                let queues = queues(tree, &format!("/sys/class/net/{name}"), room.min(MOST));
                room -= queues.len();
                self.known.insert(device.device.clone(), queues);
            }
            self.read = Some(now);
        }
        for device in devices {
            device.queues = self.known.get(&device.device).cloned().unwrap_or_default();
        }
    }
}

/// Reads the queues of a network device.
fn queues(tree: &Tree, folder: &str, most: usize) -> Vec<QueueSample> {
    let folder = format!("{folder}/queues");
    let mut names = tree.list(&folder).ok().flatten().unwrap_or_default();
    names.retain(|name| name.starts_with("rx-") || name.starts_with("tx-"));
    names.order_by_key(|name| (name.starts_with("tx-"), place(name)));
    names.truncate(most);
    names.into_iter().map(|name| queue(tree, &folder, name)).collect()
}

/// The number of a queue.
fn place(name: &str) -> Option<u32> {
    name.get(3..)?.parse().ok()
}

fn queue(tree: &Tree, folder: &str, name: String) -> QueueSample {
    let mut queue = QueueSample { name, ..QueueSample::default() };
    let path = |file: &str| format!("{folder}/{}/{file}", queue.name);
    let steering = path(queue.steering_file());
    let flows = queue.receives().then(|| path("rps_flow_cnt"));
    queue.cpus = file::value(tree, &steering, mask).ok().flatten();
    queue.flows = flows.and_then(|path| file::value(tree, &path, number::number::<u64>).ok().flatten());
    queue
}

/// CPUs of a mask. The kernel shows zeros where a queue names none, and never nothing.
fn mask(text: &str) -> Result<CpuSet, ParseError> {
    match text.trim().is_empty() {
        true => Err(ParseError::new(1, "a mask of CPUs", text)),
        false => set::mask(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Memory, ReadCause};

    const ETH0: &str = "/sys/class/net/eth0";

    fn at(seconds: u64) -> Moment {
        Moment { since_boot: Duration::from_secs(seconds), ..Moment::default() }
    }

    #[test]
    fn queues_are_read_in_order_and_unknown_is_not_empty() {
        let at = |name: &str| format!("{ETH0}/queues/{name}");
        let files = Memory::new()
            .file(&at("rx-10/rps_cpus"), "00000000,00000000\n")
            .file(&at("rx-2/rps_cpus"), "00000001,000000f0\n")
            .file(&at("rx-2/rps_flow_cnt"), "4096\n")
            .file(&at("tx-0/xps_cpus"), "x\n")
            .unreadable(&at("tx-1/xps_cpus"), ReadCause::System(2))
            .file(&at("tx-1/tx_timeout"), "0\n")
            .file(&at("other/x"), "0\n");
        let queue =
            |name: &str, cpus: Option<CpuSet>, flows| QueueSample { name: name.to_owned(), cpus, flows };
        let expected = [
            queue("rx-2", Some(CpuSet::from([4, 5, 6, 7, 32])), Some(4096)),
            queue("rx-10", Some(CpuSet::new()), None),
            queue("tx-0", None, None),
            queue("tx-1", None, None),
        ];
        assert_eq!(queues(&Tree::memory(files.clone()), ETH0, MOST), expected);
        assert_eq!(queues(&Tree::memory(files), ETH0, 3), expected[..3]);
        assert_eq!(queues(&Tree::memory(Memory::new()), ETH0, MOST), []);
    }

    #[test]
    fn no_text_of_a_queue_is_too_strange() {
        let huge = "f,".repeat(100_000);
        for text in ["", "\n", ",", "f,f", "-1", "18446744073709551616", "\u{1b}[2J\0", &huge, "ffffffff,"] {
            let files = Memory::new()
                .file(&format!("{ETH0}/queues/rx-0/rps_cpus"), text)
                .file(&format!("{ETH0}/queues/rx-0/rps_flow_cnt"), text)
                .file(&format!("{ETH0}/queues/tx-\u{202e}\u{fc}/xps_cpus"), text);
            let read = queues(&Tree::memory(files), ETH0, MOST);
            assert_eq!(read.len(), 2, "{text:?}");
            assert!(read.iter().all(|queue| queue.cpus.is_none() && queue.flows.is_none()), "{read:?}");
        }
    }

    #[test]
    fn queues_are_read_again_after_ten_seconds_and_belong_to_network_devices() {
        let tree = |mask: &str| {
            Tree::memory(Memory::new().file(&format!("{ETH0}/queues/rx-0/rps_cpus"), format!("{mask}\n")))
        };
        let mut table = QueueTable::default();
        let mut read = |tree: &Tree, seconds: u64| {
            let device =
                |name: &str| InterruptSample { device: name.to_owned(), ..InterruptSample::default() };
            let mut devices = [device("block:vda"), device("net:eth0")];
            table.add(tree, at(seconds), &mut devices);
            assert_eq!(devices[0].queues, []);
            devices[1].queues[0].cpus.clone().unwrap().to_string()
        };
        assert_eq!(read(&tree("1"), 100), "0");
        assert_eq!(read(&tree("2"), 109), "0");
        assert_eq!(read(&tree("2"), 110), "1");
        // A clock that went back says nothing about their age.
        assert_eq!(read(&tree("4"), 50), "2");
    }
}
