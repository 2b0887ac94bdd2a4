//! The kernel's own words, read without any of nodewise's parsers, so that the two can differ.

use std::collections::BTreeMap;
use std::fs;

use nodewise_machine::{NodeCounters, NodeId};

const NODES: &str = "/sys/devices/system/node";

/// The text of a file without its line end.
///
/// # Errors
/// It cannot be read; the message names it.
pub fn line(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).map_err(|error| format!("{path}: {error}"))
}

/// Numbers of a list such as `0-3,8`.
///
/// # Panics
/// The kernel prints something else.
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

/// The nodes that are online.
///
/// # Panics
/// The kernel has no nodes.
pub fn online_nodes() -> Vec<u32> {
    list(&line(&format!("{NODES}/online")).expect("the guest has nodes"))
}

/// Free blocks of a node of at least 2^`order` pages, by `/proc/buddyinfo`.
///
/// # Errors
/// It cannot be read.
pub fn free_blocks(node: NodeId, order: u32) -> Result<u64, String> {
    let head = format!("Node {node}, zone");
    let text = line("/proc/buddyinfo")?;
    // The zone's name comes first, then the blocks of order 0, 1, ...
    let blocks = |line: &str| {
        let counts = line.strip_prefix(&head)?.split_ascii_whitespace().skip(1 + order as usize);
        Some(
            (0..)
                .zip(counts.filter_map(|count| count.parse::<u64>().ok()))
                .map(|(more, count)| count << more)
                .sum::<u64>(),
        )
    };
    Ok(text.lines().filter_map(blocks).sum())
}

/// The counters of every node.
///
/// # Panics
/// A node lacks one of them.
pub fn numastat() -> BTreeMap<u32, NodeCounters> {
    let read = |node: u32| {
        let text = fs::read_to_string(format!("{NODES}/node{node}/numastat")).expect("a node has a numastat");
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("numastat has the field");
            line.trim().parse().expect("a counter is a number")
        };
        let counters = NodeCounters::from_names(field);
        (node, counters)
    };
    online_nodes().into_iter().map(read).collect()
}
