//! Single facts of a machine, each read when it is asked for.
//!
//! [`crate::sysfs`] reads a whole machine; a program that runs for a millisecond wants three files
//! of it. Every function here reads one file, or two where the first is missing.

use nodewise_machine::{Bytes, CpuId, CpuSet, MeminfoField, MeminfoValue, NodeId, NodeSet, PciAddress};

use crate::file::{self, FileError};
use crate::limits::{MOST_NODES, bound_cpus};
use crate::parse::{distance, meminfo, number, proc_status, set};
use crate::paths::{self, NODES};
use crate::sysfs::number_behind;
use crate::tree::{ReadError, Tree};

const CPUS: &str = "/sys/devices/system/cpu";
const STATUS: &str = "/proc/self/status";
const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";

/// The memory of a node. `None`: the file does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Memory {
    /// `MemTotal`.
    pub total: Option<Bytes>,
    /// `MemFree`.
    pub free: Option<Bytes>,
}

/// The CPUs and nodes that this process may use. `None`: the file does not say.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Allowed {
    pub cpus: Option<CpuSet>,
    pub nodes: Option<NodeSet>,
}

/// The nodes that are there; empty on a machine without NUMA files.
///
/// # Source
/// `/sys/devices/system/node/online` of the running system, else the folders beside it: in a
/// capture the two can disagree.
///
/// # Errors
/// A file or folder that cannot be read or does not parse.
pub fn nodes(tree: &Tree) -> Result<NodeSet, FileError> {
    if tree.is_live() {
        if let Some(online) = file::value(tree, &format!("{NODES}/online"), set::list::<NodeId>)? {
            return Ok(online);
        }
    }
    let names = tree.list(NODES)?.unwrap_or_default();
    let numbers = names.iter().filter_map(|name| number_behind(name, "node"));
    let known = numbers.filter(|number| *number < <NodeId as nodewise_machine::id::Id>::LIMIT);
    Ok(known.take(MOST_NODES).map(NodeId::new).collect())
}

/// The CPUs of a node, also those that this process may not use; `None` without such a node.
///
/// # Source
/// `/sys/devices/system/node/nodeN/cpumap`, else `cpulist`.
///
/// # Errors
/// A file that cannot be read or does not parse.
pub fn cpus_of(tree: &Tree, node: NodeId) -> Result<Option<CpuSet>, FileError> {
    let mask = file::value(tree, &paths::of_node(node, "cpumap"), set::mask::<CpuId>)?;
    let found = match mask {
        Some(cpus) => Some(cpus),
        None => file::value(tree, &paths::of_node(node, "cpulist"), set::list::<CpuId>)?,
    };
    Ok(found.map(|mut cpus| {
        bound_cpus(&mut cpus);
        cpus
    }))
}

/// Size and free memory of a node; `None` without such a node.
///
/// # Source
/// `/sys/devices/system/node/nodeN/meminfo`.
///
/// # Errors
/// A file that cannot be read. A line that does not parse leaves its value out.
pub fn memory_of(tree: &Tree, node: NodeId) -> Result<Option<Memory>, ReadError> {
    let path = paths::of_node(node, "meminfo");
    let fields = file::parsed(tree, &path, |text| meminfo::parse(text, node))?;
    let size = |fields: &[MeminfoField], name: &str| {
        fields.iter().find(|field| field.name == name).and_then(|field| match field.value {
            MeminfoValue::Size(size) => Some(size),
            MeminfoValue::Count(_) => None,
        })
    };
    Ok(fields.map(|fields| Memory {
        total: size(&fields.value, "MemTotal"),
        free: size(&fields.value, "MemFree"),
    }))
}

/// The distances from a node, one for each of [`nodes`] in ascending order; `None` without such a
/// file.
///
/// # Source
/// `/sys/devices/system/node/nodeN/distance`.
///
/// # Errors
/// A file that cannot be read or does not parse.
pub fn distances_from(tree: &Tree, node: NodeId) -> Result<Option<Vec<u32>>, FileError> {
    file::value(tree, &paths::of_node(node, "distance"), distance::parse)
}

/// The CPUs that can ever be there.
///
/// # Source
/// `/sys/devices/system/cpu/possible`.
///
/// # Errors
/// A file that cannot be read or does not parse.
pub fn possible_cpus(tree: &Tree) -> Result<Option<CpuSet>, FileError> {
    file::value(tree, &format!("{CPUS}/possible"), set::list::<CpuId>)
}

/// The CPUs that are there.
///
/// # Source
/// `/sys/devices/system/cpu/present`.
///
/// # Errors
/// A file that cannot be read or does not parse.
pub fn present_cpus(tree: &Tree) -> Result<Option<CpuSet>, FileError> {
    file::value(tree, &format!("{CPUS}/present"), set::list::<CpuId>)
}

/// Reads which CPUs and nodes this process may use.
///
/// # Source
/// `Cpus_allowed` and `Mems_allowed` of `/proc/self/status`.
///
/// # Errors
/// A file that cannot be read.
pub fn allowed(tree: &Tree) -> Result<Allowed, ReadError> {
    let status = file::parsed(tree, STATUS, proc_status::parse)?.unwrap_or_default().value;
    Ok(Allowed { cpus: status.cpus_allowed, nodes: status.mems_allowed })
}

/// How many nodes this kernel can number: its masks are that wide.
///
/// # Source
/// The groups of 32 bits of `Mems_allowed` in `/proc/self/status`.
///
/// # Errors
/// A file that cannot be read.
pub fn node_mask_bits(tree: &Tree) -> Result<Option<usize>, ReadError> {
    let text = tree.read_text(STATUS)?;
    let mask =
        text.as_deref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("Mems_allowed:")));
    Ok(mask.map(|mask| mask.trim().split(',').count() * 32))
}

/// The share of a node in weighted interleaving; `None` on kernels without it, before Linux 6.9.
///
/// # Source
/// `/sys/kernel/mm/mempolicy/weighted_interleave/nodeN`.
///
/// # Errors
/// A file that cannot be read or does not parse.
pub fn interleave_weight(tree: &Tree, node: NodeId) -> Result<Option<u32>, FileError> {
    file::value(tree, &format!("{WEIGHTS}/node{node}"), number::number::<u32>)
}

/// A device by its entry in `/sys`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceEntry<'n> {
    Net(&'n str),
    Block(&'n str),
    /// A disk or partition by its numbers.
    BlockNumber(u32, u32),
}

/// The outermost PCI function that a device is below, or that it is, as the path behind `/sys`:
/// `/devices/pci0000:00/0000:00:03.0`. `None` for devices below none.
///
/// # Source
/// `/sys/class/net/`, `/sys/class/block/`, `/sys/dev/block/`.
pub fn outermost_function(tree: &Tree, device: DeviceEntry<'_>) -> Option<String> {
    let entry = match device {
        DeviceEntry::Net(name) => format!("/sys/class/net/{name}"),
        DeviceEntry::Block(name) => format!("/sys/class/block/{name}"),
        DeviceEntry::BlockNumber(major, minor) => format!("/sys/dev/block/{major}:{minor}"),
    };
    let target = tree.target(&entry).ok().flatten()?;
    let path = target.strip_prefix("/sys")?;
    let mut end = 0;
    for part in path.split_inclusive('/') {
        end += part.len();
        let name = part.trim_end_matches('/');
        if name.contains('.') && name.parse::<PciAddress>().is_ok() {
            return Some(path[..end].trim_end_matches('/').to_owned());
        }
    }
    None
}

/// The node of the device at a path behind `/sys`; `None` where the kernel does not say.
///
/// # Source
/// `numa_node`.
pub fn stated_node(tree: &Tree, path: &str) -> Option<NodeId> {
    let text = tree.read_text(&format!("/sys{path}/numa_node")).ok().flatten()?;
    let number = text.trim().parse::<u32>().ok();
    number.filter(|number| *number < <NodeId as nodewise_machine::id::Id>::LIMIT).map(NodeId::new)
}

/// Whether a PCI function is on a root bus, so without a bridge above it.
///
/// # Source
/// `/sys/devices/pciDDDD:BB/`.
pub fn is_on_root_bus(tree: &Tree, function: PciAddress) -> bool {
    let text = function.to_string();
    let bus = text.rsplit_once(':').map_or("", |(bus, _)| bus);
    tree.exists(&format!("/sys/devices/pci{bus}/{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory as Files;

    fn tree() -> Tree {
        let files = Files::new()
            .file("/sys/devices/system/node/node0/cpumap", "0000000f\n")
            .file("/sys/devices/system/node/node0/distance", "10 21\n")
            .file(
                "/sys/devices/system/node/node0/meminfo",
                "Node 0 MemTotal: 2048 kB\nNode 0 MemFree: x kB\n",
            )
            .file("/sys/devices/system/node/node5/cpulist", "\n")
            .file("/sys/devices/system/node/node5/distance", "21\tten\n")
            .file("/sys/devices/pci0000:20/0000:20:00.0/numa_node", "1\n")
            .file("/proc/self/status", "Cpus_allowed:\t3\nMems_allowed:\t00000000,00000021\n");
        Tree::memory(files)
    }

    #[test]
    fn a_fact_is_read_from_its_own_file() {
        let tree = tree();
        assert_eq!(nodes(&tree).unwrap(), NodeSet::from([0, 5]));
        assert_eq!(cpus_of(&tree, NodeId::new(0)).unwrap(), Some(CpuSet::from([0, 1, 2, 3])));
        assert_eq!(cpus_of(&tree, NodeId::new(5)).unwrap(), Some(CpuSet::new()));
        assert_eq!(distances_from(&tree, NodeId::new(0)).unwrap(), Some(vec![10, 21]));
        let allowed = allowed(&tree).unwrap();
        assert_eq!((allowed.cpus, allowed.nodes), (Some(CpuSet::from([0, 1])), Some(NodeSet::from([0, 5]))));
        assert_eq!(node_mask_bits(&tree).unwrap(), Some(64));
        assert!(is_on_root_bus(&tree, "20:00.0".parse().unwrap()));
        assert!(!is_on_root_bus(&tree, "21:00.0".parse().unwrap()));
    }

    #[test]
    fn what_is_missing_is_none_and_what_is_broken_is_an_error() {
        let tree = tree();
        assert_eq!(cpus_of(&tree, NodeId::new(9)).unwrap(), None);
        assert_eq!(memory_of(&tree, NodeId::new(9)).unwrap(), None);
        let memory = memory_of(&tree, NodeId::new(0)).unwrap().unwrap();
        assert_eq!((memory.total, memory.free), (Some(Bytes::from_mib(2)), None));
        assert!(distances_from(&tree, NodeId::new(5)).unwrap_err().to_string().contains("node5/distance:1"));
        assert_eq!(possible_cpus(&tree).unwrap(), None);
        assert_eq!(interleave_weight(&tree, NodeId::new(0)).unwrap(), None);
    }
}
