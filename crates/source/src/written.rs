//! The files of a machine that has none: of a spec, or of a machine file.
//!
//! For programs that read the kernel's files and are to see a hypothetical machine.

use nodewise_machine::{CpuSet, Machine, MeminfoValue, NodeId};

use crate::tree::{Memory, Tree};

/// Writes the files of the nodes and of the CPUs as the kernel would, into memory. What the machine
/// does not say has no file.
pub fn tree_of(machine: &Machine) -> Tree {
    let cpus: CpuSet = machine.cpus.keys().copied().collect();
    let mut files = Memory::new()
        .directory("/sys/devices/system/node")
        .file("/sys/devices/system/cpu/present", format!("{cpus}\n"))
        .file("/sys/devices/system/cpu/possible", format!("{}\n", machine.possible_cpus));
    for (id, node) in &machine.nodes {
        let folder = format!("/sys/devices/system/node/node{id}");
        files = files.file(&format!("{folder}/cpulist"), format!("{}\n", node.cpus));
        let meminfo: String = node.meminfo.iter().map(|field| line(*id, &field.name, field.value)).collect();
        if !meminfo.is_empty() {
            files = files.file(&format!("{folder}/meminfo"), meminfo);
        }
        if let Some(distances) = distances(machine, *id) {
            files = files.file(&format!("{folder}/distance"), distances);
        }
    }
    Tree::memory(files)
}

fn line(id: NodeId, name: &str, value: MeminfoValue) -> String {
    match value {
        MeminfoValue::Size(size) => format!("Node {id} {name}: {} kB\n", size.get() >> 10),
        MeminfoValue::Count(count) => format!("Node {id} {name}: {count}\n"),
    }
}

/// The row of a node; `None` unless all of it is known.
fn distances(machine: &Machine, from: NodeId) -> Option<String> {
    let row: Option<Vec<String>> = machine
        .nodes
        .keys()
        .map(|to| machine.distances.get(from, *to).map(|distance| distance.to_string()))
        .collect();
    Some(format!("{}\n", row?.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts;
    use nodewise_machine::{NodeSet, spec};

    #[test]
    fn the_files_of_a_spec_say_what_the_spec_says() {
        let machine = spec::machine("2x(2c 512M) (1G); dist=10,21,17/21,10,28/17,28,10").unwrap();
        let tree = tree_of(&machine);
        assert_eq!(facts::nodes(&tree).unwrap(), NodeSet::from([0, 1, 2]));
        for (id, node) in &machine.nodes {
            assert_eq!(facts::cpus_of(&tree, *id).unwrap().unwrap(), node.cpus);
            assert_eq!(facts::memory_of(&tree, *id).unwrap().unwrap().total, node.memory_total());
        }
        assert_eq!(facts::distances_from(&tree, NodeId::new(2)).unwrap(), Some(vec![17, 28, 10]));
    }
}
