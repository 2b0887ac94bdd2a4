//! Where hwloc and nodewise differ about a capture, and why. Every rule must be needed.

use Side::{Differ, Ours, Theirs};

/// Who alone knows a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Theirs,
    Ours,
    /// Both, and not the same.
    Differ,
}

/// A difference that is known.
pub(super) struct Rule {
    /// The capture; `*` for all.
    capture: &'static str,
    /// How the name of the object begins.
    object: &'static str,
    /// How the fact begins; a difference between objects is one in the fact `exists`, too.
    fact: &'static str,
    side: Side,
    pub why: &'static str,
}

impl Rule {
    pub fn explains(&self, capture: &str, object: &str, fact: &str, side: Side) -> bool {
        (self.capture == "*" || self.capture == capture)
            && object.starts_with(self.object)
            && fact.starts_with(self.fact)
            && self.side == side
    }
}

const fn rule(
    capture: &'static str,
    object: &'static str,
    fact: &'static str,
    side: Side,
    why: &'static str,
) -> Rule {
    Rule { capture, object, fact, side, why }
}

const DEVICES: &str = "32em64t-2n8c+dax+nvme+mic+dimms";
const INITIATORS: &str = "fakememinitiators-1np2c+1npp+gi";
const BUGGY: &str = "8em64t-2s2ca2c-buggynuma";
const KUNPENG: &str = "128arm-2pa2n8cluster4co";
const NVIDIA: &str = "nvidiagpunumanodes";

const NUMBERS_OF_CACHES: &str = "numbers of caches: a machine does not hold them";
const OWN_PAGES: &str =
    "pages where the capture does not give their size: hwloc takes that of the machine it runs on";
const DISTANCE_GROUPS: &str = "groups of nodes that hwloc makes from distances";
const ARCHITECTURE: &str =
    "the architecture where hwloc's archive does not name it: nodewise takes it from the CPUs";
const DISKS: &str = "kinds of disks, which a machine does not hold";
const DROPPED_NODES: &str =
    "nodes that share their CPUs: hwloc drops all but one, nodewise shows what the kernel says";
const GPU_MEMORY: &str = "the place of a GPU's memory, which hwloc takes from files of NVIDIA's driver";
const OWN_MODELS: &str = "models of CPUs: nodewise decodes part numbers of arm and types of machine of s390";
const LONE_FREQUENCY: &str =
    "a frequency that one CPU of two names: nodewise does not take them for different kinds";

pub(super) const RULES: &[Rule] = &[
    rule(
        "*",
        "Bridge",
        "",
        Theirs,
        "bridges between PCI buses: a machine does not hold the numbers of buses",
    ),
    rule("*", "L1", "os_index", Theirs, NUMBERS_OF_CACHES),
    rule("*", "L2", "os_index", Theirs, NUMBERS_OF_CACHES),
    rule("*", "L3", "os_index", Theirs, NUMBERS_OF_CACHES),
    rule("*", "NUMANode", "pages of 4096", Theirs, OWN_PAGES),
    rule("*", "Machine", "Architecture", Ours, ARCHITECTURE),
    rule("256ia64-64n2s2c", "Group", "", Theirs, DISTANCE_GROUPS),
    rule(INITIATORS, "Group", "kind", Differ, DISTANCE_GROUPS),
    rule("20s390-2g6s4c", "Package", "os_index", Ours, "numbers of packages where the kernel gives -1"),
    rule("20s390-2g6s4c", "Package", "CPUModel", Ours, OWN_MODELS),
    rule(
        "20s390-2g6s4c",
        "NUMANode",
        "pages of 1048576",
        Theirs,
        "pools of huge pages where a kernel has no nodes",
    ),
    rule("2arm-2c", "kind of CPUs", "", Theirs, LONE_FREQUENCY),
    rule("2arm-2c", "kind of CPUs", "", Ours, LONE_FREQUENCY),
    rule("2arm-2c", "Package", "CPUModel", Ours, OWN_MODELS),
    rule("2arm-2c", "Machine", "CPUModel", Theirs, OWN_MODELS),
    rule(KUNPENG, "Package", "CPUModel", Ours, OWN_MODELS),
    rule(
        KUNPENG,
        "L3",
        "cache_associativity",
        Differ,
        "ways of a cache whose size is not that of its ways and sets",
    ),
    rule(
        "16em64t-4s2c2t-offlines",
        "NUMANode",
        "complete_cpuset",
        Differ,
        "the complete set of a node of the whole machine, which hwloc widens when it reads the file",
    ),
    rule(DEVICES, "OSDev", "subtype", Theirs, DISKS),
    rule(DEVICES, "OSDev dma", "", Theirs, "channels of DMA engines, which are not devices to place by"),
    rule(DEVICES, "OSDev scif0", "", Ours, "the RDMA device of a coprocessor, which hwloc leaves out"),
    rule(
        DEVICES,
        "OSDev dax",
        "",
        Ours,
        "memory that the driver kmem has made ordinary, which hwloc leaves out",
    ),
    rule(DEVICES, "Misc", "", Theirs, "memory modules, which show lists"),
    rule(
        INITIATORS,
        "OSDev dax",
        "",
        Ours,
        "memory that the driver kmem has made ordinary, which hwloc leaves out",
    ),
    rule(INITIATORS, "NUMANode", "subtype", Theirs, "the kind of memory behind a DAX device"),
    rule(BUGGY, "NUMANode", "", Ours, DROPPED_NODES),
    rule(BUGGY, "distances", "", Ours, DROPPED_NODES),
    rule(BUGGY, "", "nodeset", Differ, DROPPED_NODES),
    rule(BUGGY, "", "complete_nodeset", Differ, DROPPED_NODES),
    rule(BUGGY, "Machine", "allowed_nodeset", Differ, DROPPED_NODES),
    rule(NVIDIA, "", "nodeset", Differ, GPU_MEMORY),
    rule(NVIDIA, "", "complete_nodeset", Differ, GPU_MEMORY),
    rule(NVIDIA, "NUMANode", "cpuset", Differ, GPU_MEMORY),
    rule(NVIDIA, "NUMANode", "complete_cpuset", Differ, GPU_MEMORY),
    rule(NVIDIA, "NUMANode", "subtype", Theirs, GPU_MEMORY),
    rule(
        NVIDIA,
        "Machine",
        "allowed_",
        Differ,
        "CPUs and nodes of the process: hwloc asks its cpuset, nodewise its status, which was bound to fewer",
    ),
];
