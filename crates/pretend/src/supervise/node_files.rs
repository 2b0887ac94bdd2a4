//! Files of a node that change while programs run: what they were at the start, with the pages that programs have had since.

use std::fmt::Write as _;

use nodewise_machine::{NodeCounters, NodeId};
use nodewise_source::paths::{NODES, of_node};

use super::call::Stop;
use super::world::World;

/// A file of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeFile {
    /// `numastat`.
    Counters,
    /// `meminfo`.
    Memory,
}

/// The node and the file that a path names.
pub fn node_file(path: &str) -> Option<(NodeId, NodeFile)> {
    let (node, file) = path.strip_prefix(NODES)?.strip_prefix("/node")?.split_once('/')?;
    let file = match file {
        "numastat" => NodeFile::Counters,
        "meminfo" => NodeFile::Memory,
        _ => return None,
    };
    Some((NodeId::new(node.parse().ok()?), file))
}

impl World {
    /// The file as a thread would read it now.
    pub fn node_text(&mut self, caller: u32, node: NodeId, file: NodeFile) -> Result<String, Stop> {
        let name = match file {
            NodeFile::Counters => "numastat",
            NodeFile::Memory => "meminfo",
        };
        // The kernel has the error for a missing file.
        let text = self.here.read_text(&of_node(node, name)).ok().flatten().ok_or(Stop::Kernel)?;
        self.settle_all(caller);
        Ok(match file {
            NodeFile::Counters => {
                let counters = self.memory.counters().get(&node).copied().unwrap_or_default();
                with_counters(&text, &counters)
            }
            NodeFile::Memory => {
                let at_start = self.free_at_start.get(&node).copied().unwrap_or_default();
                let used = at_start.saturating_sub(self.memory.free_of(node));
                with_used(&text, used.saturating_mul(self.memory.page_bytes() >> 10))
            }
        })
    }
}

/// Lines `numa_hit 12` with these pages as well.
fn with_counters(text: &str, counters: &NodeCounters) -> String {
    let mut changed = String::new();
    for line in text.lines() {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        let more = match name {
            "numa_hit" => counters.hit,
            "numa_miss" => counters.miss,
            "numa_foreign" => counters.foreign,
            "interleave_hit" => counters.interleave_hit,
            "local_node" => counters.local,
            "other_node" => counters.other,
            _ => 0,
        };
        let _ = match value.trim().parse::<u64>() {
            Ok(value) => writeln!(changed, "{name} {}", value.saturating_add(more)),
            Err(_) => writeln!(changed, "{line}"),
        };
    }
    changed
}

/// Lines `Node 0 MemFree:  1024 kB` with this many KiB less free and more used.
fn with_used(text: &str, kib: u64) -> String {
    let mut changed = String::new();
    for line in text.lines() {
        let value = line.split_once(':').and_then(|(name, rest)| {
            let value: u64 = rest.trim().strip_suffix(" kB")?.trim_end().parse().ok()?;
            match name.split_ascii_whitespace().last()? {
                "MemFree" => Some((name, value.saturating_sub(kib))),
                "MemUsed" => Some((name, value.saturating_add(kib))),
                _ => None,
            }
        });
        let _ = match value {
            Some((name, value)) => writeln!(changed, "{name}: {value:>14} kB"),
            None => writeln!(changed, "{line}"),
        };
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_nodes_are_found_by_their_paths() {
        let counters = node_file("/sys/devices/system/node/node12/numastat");
        assert_eq!(counters, Some((NodeId::new(12), NodeFile::Counters)));
        let memory = node_file("/sys/devices/system/node/node0/meminfo");
        assert_eq!(memory, Some((NodeId::new(0), NodeFile::Memory)));
        for other in [
            "/sys/devices/system/node/node0/cpumap",
            "/sys/devices/system/node/nodeX/meminfo",
            "/proc/meminfo",
        ] {
            assert_eq!(node_file(other), None, "{other}");
        }
    }

    #[test]
    fn pages_of_programs_are_added() {
        let counters = NodeCounters { hit: 5, interleave_hit: 2, ..NodeCounters::default() };
        let text = "numa_hit 10\nnuma_miss 1\ninterleave_hit 0\nnew_one x\n";
        let changed = "numa_hit 15\nnuma_miss 1\ninterleave_hit 2\nnew_one x\n";
        assert_eq!(with_counters(text, &counters), changed);
        let text =
            "Node 0 MemTotal:  2048 kB\nNode 0 MemFree:  1024 kB\nNode 0 MemUsed: 1024 kB\nNode 0 Huge: 3\n";
        let changed = "Node 0 MemTotal:  2048 kB\nNode 0 MemFree:           1000 kB\nNode 0 MemUsed:           1048 kB\nNode 0 Huge: 3\n";
        assert_eq!(with_used(text, 24), changed);
        assert_eq!(with_used("Node 0 MemFree: 8 kB\n", 24), "Node 0 MemFree:              0 kB\n");
    }
}
