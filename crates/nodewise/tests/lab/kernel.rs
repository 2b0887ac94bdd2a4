//! The kernel's own words, read without any of nodewise's parsers, so that the two can differ.

use std::collections::BTreeMap;
use std::fs;

pub use nodewise_conformance::kernel::{free_blocks, line, list, numastat, online_nodes};

const NODES: &str = "/sys/devices/system/node";

pub fn cpus_of(node: u32) -> Vec<u32> {
    list(&line(&format!("{NODES}/node{node}/cpulist")).expect("a node has a cpulist"))
}

/// MemTotal in KiB.
pub fn memory_of(node: u32) -> u64 {
    let text = fs::read_to_string(format!("{NODES}/node{node}/meminfo")).expect("a node has a meminfo");
    let line = text.lines().find(|line| line.contains("MemTotal:")).expect("a meminfo has a MemTotal");
    line.split_whitespace().nth(3).and_then(|kib| kib.parse().ok()).expect("MemTotal is a number")
}

pub fn distances_of(node: u32) -> Vec<u32> {
    let text = line(&format!("{NODES}/node{node}/distance")).expect("a node has distances");
    text.split_whitespace().map(|number| number.parse().expect("a distance is a number")).collect()
}

/// The lines of the kernel's log that it still has.
pub fn log() -> Vec<String> {
    nodewise_conformance::kernel::log().expect("the log can be read")
}

/// The orders that the kernel printed while it booted: `Fallback order for Node 0: 0 1 2 3`.
pub fn fallback_orders() -> BTreeMap<u32, Vec<u32>> {
    let mut orders = BTreeMap::new();
    for line in log() {
        let Some((_, rest)) = line.split_once("Fallback order for Node ") else { continue };
        let (node, order) = rest.split_once(':').expect("a node and its order");
        let order = order.split_whitespace().map(|node| node.parse().expect("nodes are numbers")).collect();
        orders.insert(node.trim().parse().expect("a node is a number"), order);
    }
    orders
}

/// RAM in the firmware's memory map that the kernel printed while it booted, each as (first byte, byte behind
/// the last): `BIOS-e820: [mem 0x0000000000000000-0x000000000009fbff] usable`.
pub fn usable_ranges() -> Vec<(u64, u64)> {
    let range = |line: String| {
        let (range, kind) = line.split_once("BIOS-e820: [mem ")?.1.split_once(']')?;
        let (first, last) = range.split_once('-')?;
        (kind.trim() == "usable").then_some((address(first)?, address(last)? + 1))
    };
    log().into_iter().filter_map(range).collect()
}

fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

/// The ranges of RAM that the kernel printed while it booted, each as (node, first byte, last byte):
/// `node   0: [mem 0x0000000000001000-0x000000000009efff]`.
pub fn node_ranges() -> Vec<(u32, u64, u64)> {
    let lines = log().into_iter().skip_while(|line| !line.contains("Early memory node ranges"));
    let range = |line: String| {
        let (node, range) = line.split_once("node ")?.1.split_once(": [mem ")?;
        let (first, last) = range.trim_end().strip_suffix(']')?.split_once('-')?;
        Some((node.trim().parse().ok()?, address(first)?, address(last)?))
    };
    lines.skip(1).map_while(range).collect()
}
