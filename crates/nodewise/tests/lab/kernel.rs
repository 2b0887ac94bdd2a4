//! The kernel's own words, read without any of nodewise's parsers, so that the two can differ.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

const NODES: &str = "/sys/devices/system/node";

pub fn line(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).map_err(|error| format!("{path}: {error}"))
}

/// Numbers of a list such as `0-3,8`.
pub fn list(text: &str) -> Vec<u32> {
    let number = |text: &str| text.parse::<u32>().expect("the kernel prints numbers");
    text.split(',')
        .filter(|item| !item.is_empty())
        .flat_map(|item| match item.split_once('-') {
            Some((first, last)) => number(first)..=number(last),
            None => number(item)..=number(item),
        })
        .collect()
}

pub fn online_nodes() -> Vec<u32> {
    list(&line(&format!("{NODES}/online")).expect("the guest has nodes"))
}

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

/// The orders that the kernel printed while it booted: `Fallback order for Node 0: 0 1 2 3`.
pub fn fallback_orders() -> BTreeMap<u32, Vec<u32>> {
    let log = Command::new("dmesg").output().expect("dmesg runs").stdout;
    let mut orders = BTreeMap::new();
    for line in String::from_utf8_lossy(&log).lines() {
        let Some((_, rest)) = line.split_once("Fallback order for Node ") else { continue };
        let (node, order) = rest.split_once(':').expect("a node and its order");
        let order = order.split_whitespace().map(|node| node.parse().expect("nodes are numbers")).collect();
        orders.insert(node.trim().parse().expect("a node is a number"), order);
    }
    orders
}
