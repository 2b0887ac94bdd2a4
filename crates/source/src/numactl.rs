//! A saved text of `numactl --hardware` as the files that it was made from.

use nodewise_machine::{Bytes, CpuSet};

use crate::parse::numactl_hardware::{Hardware, is_numactl_hardware, parse};
use crate::parse::{ParseError, text_of};
use crate::tree::{Memory, Tree};

const NODES: &str = "/sys/devices/system/node";
const CPUS: &str = "/sys/devices/system/cpu";

/// The files of the nodes; `None` for other files.
///
/// # Errors
/// The first line that is not as numactl prints it.
pub fn tree(bytes: &[u8]) -> Option<Result<Tree, ParseError>> {
    let (text, _) = text_of(bytes);
    is_numactl_hardware(&text).then(|| Ok(Tree::memory(files(&parse(&text)?))))
}

fn files(hardware: &Hardware) -> Memory {
    let online: Vec<String> = hardware.nodes.keys().map(ToString::to_string).collect();
    let cpus = hardware.nodes.values().fold(CpuSet::new(), |all, node| all.union(&node.cpus));
    let with_cpus: Vec<String> = hardware
        .nodes
        .iter()
        .filter(|(_, node)| !node.cpus.is_empty())
        .map(|(id, _)| id.to_string())
        .collect();
    let mut files = Memory::new()
        .file(&format!("{NODES}/online"), format!("{}\n", online.join(",")))
        .file(&format!("{NODES}/has_cpu"), format!("{}\n", with_cpus.join(",")))
        .file(&format!("{CPUS}/online"), format!("{cpus}\n"))
        .file(&format!("{CPUS}/present"), format!("{cpus}\n"));
    for (at, (id, node)) in hardware.nodes.iter().enumerate() {
        let folder = format!("{NODES}/node{id}");
        files = files.file(&format!("{folder}/cpulist"), format!("{}\n", node.cpus));
        let line = |name: &str, size: Option<Bytes>| {
            size.map_or_else(String::new, |size| format!("Node {id} {name}: {} kB\n", size.get() / 1024))
        };
        let meminfo = line("MemTotal", node.size) + &line("MemFree", node.free);
        if !meminfo.is_empty() {
            files = files.file(&format!("{folder}/meminfo"), meminfo);
        }
        if let Some(row) = hardware.distances.get(at) {
            let row: Vec<String> = row.iter().map(ToString::to_string).collect();
            files = files.file(&format!("{folder}/distance"), row.join(" ") + "\n");
        }
    }
    files
}
