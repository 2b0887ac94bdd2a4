//! `numactl --hardware`.

use std::io::Write;

use nodewise_machine::{Bytes, CpuSet, NodeId, NodeSet};
use nodewise_source::facts;
use nodewise_source::tree::Tree;
use serde_json::json;

use crate::members;
use crate::release::{Release, Settings};

/// How the CPUs of a node are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CpuStyle {
    Numbers,
    /// As ranges, with their count: `0-15, 128-143 (32)`.
    Ranges,
}

/// A node as `--hardware` shows it. `None`: the kernel does not say.
struct Shown {
    id: NodeId,
    cpus: Option<CpuSet>,
    total: Option<Bytes>,
    free: Option<Bytes>,
    distances: Option<Vec<u32>>,
}

/// The nodes of a machine, with what could not be read of them.
pub(super) struct Hardware {
    ids: NodeSet,
    nodes: Vec<Shown>,
    pub(super) problems: Vec<String>,
    /// Whether the CPUs of a node are left out, and in 2.0.19 the line feed too, because the
    /// originals cannot read them.
    pub(super) is_too_wide: bool,
}

impl Hardware {
    /// Reads three files per node and one for all.
    pub(super) fn read(tree: &Tree, settings: Settings) -> Self {
        let mut problems = Vec::new();
        let ids = kept(facts::nodes(tree), &mut problems);
        let nodes = ids.iter().map(|id| {
            let memory = kept(facts::memory_of(tree, id), &mut problems).unwrap_or_default();
            Shown {
                id,
                cpus: kept(facts::cpus_of(tree, id), &mut problems),
                total: memory.total,
                free: memory.free,
                distances: kept(facts::distances_from(tree, id), &mut problems),
            }
        });
        let nodes: Vec<Shown> = nodes.collect();
        let mut all = nodes.iter().filter_map(|node| node.cpus.as_ref());
        let is_too_wide = settings.strict && all.any(|cpus| members::is_too_wide(tree, cpus));
        Self { ids, nodes, problems, is_too_wide }
    }

    /// Writes the text.
    pub(super) fn write(&self, release: Release, style: CpuStyle, out: &mut dyn Write) {
        let _ = writeln!(out, "available: {} nodes ({})", self.ids.len(), self.ids);
        for node in &self.nodes {
            let cpus = if self.is_too_wide { String::new() } else { cpus(node.cpus.as_ref(), style) };
            let end = if self.is_too_wide && release == Release::V2_0_19 { "" } else { "\n" };
            let _ = write!(out, "node {} cpus:{cpus}{end}", node.id);
            let _ = writeln!(out, "node {} size: {}", node.id, size(node.total));
            let _ = writeln!(out, "node {} free: {}", node.id, size(node.free));
        }
        self.write_distances(release, out);
    }

    /// A matrix. 2.0.19 made every column one wider, so that three digits do not touch.
    fn write_distances(&self, release: Release, out: &mut dyn Write) {
        if !self.nodes.iter().any(|node| node.distances.is_some()) {
            let _ = writeln!(out, "No distance information available.");
            return;
        }
        let width = match release {
            Release::V2_0_16 => 3,
            Release::V2_0_19 => 4,
        };
        let _ = writeln!(out, "node distances:");
        let ids: String = self.ids.iter().map(|id| format!("{} ", padded(&id.to_string(), width))).collect();
        let _ = writeln!(out, "{:<head$}{ids}", "node", head = width + 2);
        for node in &self.nodes {
            let distance = |at: usize| node.distances.as_ref().and_then(|row| row.get(at));
            let row: String = (0..self.nodes.len())
                .map(|at| distance(at).map_or_else(|| "-".to_owned(), ToString::to_string))
                .map(|text| format!("{} ", padded(&text, width)))
                .collect();
            let _ = writeln!(out, "{}: {row}", padded(&node.id.to_string(), width));
        }
    }

    /// Writes the same as JSON.
    pub(super) fn write_json(&self, out: &mut dyn Write) {
        let nodes: Vec<_> = self
            .nodes
            .iter()
            .map(|node| {
                json!({
                    "id": node.id.number(),
                    "cpus": node.cpus.as_ref().map(|cpus| cpus.iter().map(|cpu| cpu.number()).collect::<Vec<_>>()),
                    "size_bytes": node.total.map(Bytes::get),
                    "free_bytes": node.free.map(Bytes::get),
                    "distances": node.distances,
                })
            })
            .collect();
        let document = json!({ "schema": "nodewise.numactl-hardware/1", "nodes": nodes });
        let _ = writeln!(out, "{document:#}");
    }
}

/// A value that could be read; why another could not is kept as a sentence.
fn kept<T: Default, E: ToString>(read: Result<T, E>, problems: &mut Vec<String>) -> T {
    read.unwrap_or_else(|error| {
        problems.push(error.to_string());
        T::default()
    })
}

/// A number that is never without a blank in front, like `% 4d` of C.
fn padded(number: &str, width: usize) -> String {
    format!("{:>width$}", format!(" {number}"))
}

fn cpus(cpus: Option<&CpuSet>, style: CpuStyle) -> String {
    let Some(cpus) = cpus else { return String::new() };
    match style {
        CpuStyle::Numbers => cpus.iter().map(|cpu| format!(" {cpu}")).collect(),
        CpuStyle::Ranges => {
            let ranges: Vec<String> = cpus
                .ranges()
                .map(
                    |(first, last)| {
                        if first == last { first.to_string() } else { format!("{first}-{last}") }
                    },
                )
                .collect();
            let space = if ranges.is_empty() { "" } else { " " };
            format!(" {}{space}({})", ranges.join(", "), cpus.len())
        }
    }
}

fn size(size: Option<Bytes>) -> String {
    size.map_or_else(|| "<not available>".to_owned(), |size| format!("{} MB", size.get() >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_source::tree::Memory;

    fn tree() -> Tree {
        let root = "/sys/devices/system/node";
        let files = Memory::new()
            .file(&format!("{root}/node0/cpumap"), "10d\n")
            .file(&format!("{root}/node0/meminfo"), "Node 0 MemTotal: 2097152 kB\nNode 0 MemFree: 1023 kB\n")
            .file(&format!("{root}/node0/distance"), "10 12345\n")
            .file(&format!("{root}/node5/cpumap"), "0\n");
        Tree::memory(files)
    }

    fn check(release: Release, style: CpuStyle, expected: &str) {
        let mut out = Vec::new();
        Hardware::read(&tree(), Settings::default()).write(release, style, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn what_the_kernel_does_not_say_is_not_zero() {
        check(
            Release::V2_0_19,
            CpuStyle::Numbers,
            "available: 2 nodes (0,5)\nnode 0 cpus: 0 2 3 8\nnode 0 size: 2048 MB\nnode 0 free: 0 MB\n\
             node 5 cpus:\nnode 5 size: <not available>\nnode 5 free: <not available>\nnode distances:\n\
             node     0    5 \n   0:   10  12345 \n   5:    -    - \n",
        );
    }

    #[test]
    fn the_older_release_is_narrower() {
        check(
            Release::V2_0_16,
            CpuStyle::Ranges,
            "available: 2 nodes (0,5)\nnode 0 cpus: 0, 2-3, 8 (4)\nnode 0 size: 2048 MB\nnode 0 free: 0 MB\n\
             node 5 cpus: (0)\nnode 5 size: <not available>\nnode 5 free: <not available>\nnode distances:\n\
             node   0   5 \n  0:  10  12345 \n  5:   -   - \n",
        );
    }

    #[test]
    fn a_broken_file_is_named_and_the_rest_shown() {
        let files = Memory::new()
            .file("/sys/devices/system/node/node0/cpumap", "x\n")
            .file("/sys/devices/system/node/node0/distance", "10\n");
        let hardware = Hardware::read(&Tree::memory(files), Settings::default());
        assert_eq!(hardware.problems.len(), 1);
        assert!(hardware.problems[0].contains("node0/cpumap:1"), "{:?}", hardware.problems);
        assert_eq!(hardware.nodes[0].distances, Some(vec![10]));
    }

    #[test]
    fn the_json_twin_says_the_same() {
        let mut out = Vec::new();
        Hardware::read(&tree(), Settings::default()).write_json(&mut out);
        let document: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(document["schema"], "nodewise.numactl-hardware/1");
        assert_eq!(document["nodes"][0]["cpus"], json!([0, 2, 3, 8]));
        assert_eq!(document["nodes"][0]["size_bytes"], json!(1u64 << 31));
        assert_eq!(document["nodes"][0]["distances"], json!([10, 12345]));
        assert_eq!(document["nodes"][1]["size_bytes"], json!(null));
    }
}
