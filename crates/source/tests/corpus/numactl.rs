//! Reads what `numactl --hardware` printed.

use libtest_mimic::Failed;
use nodewise_machine::{CpuId, CpuSet, NodeId};

/// One node as numactl shows it.
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Its size, MiB; `None` for `<not available>`.
    pub size_mib: Option<u64>,
    /// Its free memory, MiB.
    pub free_mib: Option<u64>,
}

/// Output of numactl.
#[derive(Default)]
pub struct Hardware {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The distances, row by row; empty when numactl has none.
    pub distances: Vec<(NodeId, NodeId, u32)>,
}

/// Reads the output.
pub fn parse(text: &str) -> Result<Hardware, Failed> {
    let mut hardware = Hardware::default();
    let mut columns: Vec<NodeId> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["node", id, "cpus:", ref cpus @ ..] => {
                let cpus =
                    cpus.iter().map(|cpu| cpu.parse().map(CpuId::new)).collect::<Result<CpuSet, _>>()?;
                hardware.nodes.push(Node {
                    id: NodeId::new(id.parse()?),
                    cpus,
                    size_mib: None,
                    free_mib: None,
                });
            }
            ["node", _, what @ ("size:" | "free:"), size, ..] => {
                let node = hardware.nodes.last_mut().ok_or("a size before any node")?;
                let size = size.parse().ok();
                if what == "size:" { node.size_mib = size } else { node.free_mib = size }
            }
            ["node", "distances:"] => (),
            ["node", ref ids @ ..] => {
                columns = ids.iter().map(|id| id.parse().map(NodeId::new)).collect::<Result<_, _>>()?;
            }
            [from, ref row @ ..] if from.ends_with(':') && from.starts_with(|c: char| c.is_ascii_digit()) => {
                let from = NodeId::new(from.trim_end_matches(':').parse()?);
                for (to, distance) in columns.iter().zip(row) {
                    hardware.distances.push((from, *to, distance.parse()?));
                }
            }
            _ => (),
        }
    }
    Ok(hardware)
}
