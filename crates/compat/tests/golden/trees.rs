//! The files of the recording machines, as far as numactl reads them.

use nodewise_source::tree::{Memory, Tree};

const NODE: &str = "/sys/devices/system/node";

/// A node: number, CPUs as a list, size and free memory in MiB, distances.
type Node = (u32, &'static str, u64, u64, &'static str);

fn tree(nodes: &[Node]) -> Tree {
    let mut files = Memory::new()
        .file("/sys/devices/system/cpu/present", "0-1\n")
        .file("/sys/kernel/mm/mempolicy/weighted_interleave/node0", "1\n")
        .file("/proc/self/status", "Cpus_allowed:\t3\nMems_allowed:\t1\n");
    for (id, cpus, size, free, distances) in nodes {
        let folder = format!("{NODE}/node{id}");
        let mib = |name: &str, mib: u64| format!("Node {id} {name}: {} kB\n", mib << 10);
        files = files
            .file(&format!("{folder}/cpulist"), format!("{cpus}\n"))
            .file(&format!("{folder}/meminfo"), mib("MemTotal", *size) + &mib("MemFree", *free));
        if !distances.is_empty() {
            files = files.file(&format!("{folder}/distance"), format!("{distances}\n"));
        }
    }
    Tree::memory(files)
}

/// The machine itself, with one node.
pub fn host() -> Tree {
    tree(&[(0, "0-1", 24105, 19822, "10")])
}

/// The files of a section of `fakesys-hardware-and-numastat`.
pub fn simulated(section: &str) -> Tree {
    let name = section.split(" = ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or("empty");
    match name {
        "sparse" => tree(&[
            (0, "0-1", 65536, 61440, "10 21 21"),
            (2, "2-3", 65536, 51200, "21 10 21"),
            (5, "4-5", 32768, 1024, "21 21 10"),
        ]),
        "one-high" => tree(&[(8, "0-1", 65536, 61440, "10")]),
        "epyc2s-nps4" => tree(&[
            (0, "0-15,128-143", 131_072, 102_400, "10 12 12 12 32 32 32 32"),
            (1, "16-31,144-159", 131_072, 102_400, "12 10 12 12 32 32 32 32"),
            (2, "32-47,160-175", 131_072, 102_400, "12 12 10 12 32 32 32 32"),
            (3, "48-63,176-191", 131_072, 102_400, "12 12 12 10 32 32 32 32"),
            (4, "64-79,192-207", 131_072, 102_400, "32 32 32 32 10 12 12 12"),
            (5, "80-95,208-223", 131_072, 102_400, "32 32 32 32 12 10 12 12"),
            (6, "96-111,224-239", 131_072, 102_400, "32 32 32 32 12 12 10 12"),
            (7, "112-127,240-255", 131_072, 102_400, "32 32 32 32 12 12 12 10"),
        ]),
        "cxl" => tree(&[
            (0, "0-7", 262_144, 204_800, "10 21 14"),
            (1, "8-15", 262_144, 204_800, "21 10 24"),
            (2, "", 524_288, 523_264, "14 24 10"),
        ]),
        "n32" => thirty_two(),
        "nodist" => tree(&[(0, "0", 1024, 1024, ""), (1, "1", 1024, 1024, "")]),
        "bigdist" => tree(&[(0, "0", 1024, 1024, "10 12345"), (1, "1", 1024, 1024, "12345 10")]),
        "cpu2048" => tree(&[(0, "0-1023", 1024, 1024, "10 21"), (1, "1024-2047", 1024, 1024, "21 10")]),
        "empty" => tree(&[]),
        other => panic!("{other} is not known"),
    }
}

/// One CPU per node, each node as far from the others as can be.
fn thirty_two() -> Tree {
    let leak = |text: String| -> &'static str { text.leak() };
    let nodes: Vec<Node> = (0..32)
        .map(|id| {
            let distances: Vec<&str> = (0..32).map(|other| if id == other { "10" } else { "255" }).collect();
            (id, leak(id.to_string()), 4096, 3072, leak(distances.join(" ")))
        })
        .collect();
    tree(&nodes)
}
