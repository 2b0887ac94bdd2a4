//! Devices whose files a process has open, and their nodes.

use std::collections::BTreeSet;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{NodeId, PciAddress};

use crate::file;
use crate::parse::number;
use crate::process::Pid;
use crate::tree::Tree;

/// The most open files that are looked at.
const MOST: usize = 1 << 12;
/// The most functions of one group of the IOMMU.
const MOST_FUNCTIONS: usize = 256;
/// The driver's folder of NVIDIA's graphics processors.
const NVIDIA: &str = "/proc/driver/nvidia/gpus";
/// Where no device is any more.
const TOP: &str = "/sys/devices";

/// A device that computes, or that reads and writes memory of programs by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenDevice {
    /// The name of its file: `nvidia0`, `uverbs0`, `vfio/12`. Letters, digits, and at most one slash.
    pub name: String,
    /// `None`: the firmware does not say, or nothing leads from the file to the device.
    pub node: Option<NodeId>,
}

/// Devices that a process has open; `None` where its files are not readable.
///
/// # Source
/// `/proc/PID/fd`; the node from `/sys/class/*/*/device/numa_node` or a folder above, for VFIO from
/// `/sys/kernel/iommu_groups/N/devices`, for NVIDIA from `/proc/driver/nvidia/gpus/*/information`.
pub fn open(tree: &Tree, pid: Pid) -> Option<Vec<OpenDevice>> {
    let folder = format!("/proc/{pid}/fd");
    let files = tree.list(&folder).ok().flatten()?;
    let opened =
        files.iter().take(MOST).filter_map(|file| tree.link(&format!("{folder}/{file}")).ok().flatten());
    let opened: BTreeSet<String> = opened.collect_set();
    Some(opened.iter().filter_map(|path| of_file(tree, path)).collect())
}

/// The device of a file; `None` where it is the file of no such device.
fn of_file(tree: &Tree, path: &str) -> Option<OpenDevice> {
    let name = path.strip_prefix("/dev/")?;
    let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
    let node = match folder {
        "infiniband" if is_numbered(file, "uverbs") => of_class(tree, "infiniband_verbs", file),
        "dri" if is_numbered(file, "renderD") => of_class(tree, "drm", file),
        "accel" if is_numbered(file, "accel") => of_class(tree, "accel", file),
        "vfio" if is_numbered(file, "") => of_group(tree, file),
        "" if is_numbered(file, "nvidia") => of_nvidia(tree, file.strip_prefix("nvidia")?),
        "" => of_class(tree, "nvme", controller(file)?),
        _ => return None,
    };
    let name = if folder == "vfio" { name } else { file };
    Some(OpenDevice { name: name.to_owned(), node })
}

fn is_numbered(name: &str, stem: &str) -> bool {
    let number = name.strip_prefix(stem);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The controller of an NVMe disk or partition: `nvme0` of `nvme0n1p2`.
fn controller(file: &str) -> Option<&str> {
    let rest = file.strip_prefix("nvme")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_disk = rest[digits..].strip_prefix('n').is_some_and(|rest| {
        let (disk, part) = rest.split_once('p').unwrap_or((rest, "0"));
        is_numbered(disk, "") && is_numbered(part, "")
    });
    (digits > 0 && is_disk).then(|| &file[.."nvme".len() + digits])
}

/// The node of a device, or of the nearest one above it that has any: a virtio device is a part of a PCI function.
fn of_class(tree: &Tree, class: &str, name: &str) -> Option<NodeId> {
    let link = format!("/sys/class/{class}/{name}");
    let found = node(tree, &format!("{link}/device/numa_node"));
    if found.is_some() {
        return found;
    }
    let mut folder = tree.target(&link).ok().flatten()?;
    while folder.starts_with(TOP) && folder.len() > TOP.len() {
        let found = node(tree, &format!("{folder}/numa_node"));
        if found.is_some() {
            return found;
        }
        folder.truncate(folder.rfind('/')?);
    }
    None
}

/// The node of all functions of a group of the IOMMU; `None` where they are on several.
fn of_group(tree: &Tree, group: &str) -> Option<NodeId> {
    let functions = tree.list(&format!("/sys/kernel/iommu_groups/{group}/devices")).ok().flatten()?;
    let functions = functions.iter().take(MOST_FUNCTIONS).filter_map(|name| name.parse::<PciAddress>().ok());
    let nodes: BTreeSet<Option<NodeId>> = functions.map(|function| of_function(tree, function)).collect_set();
    if nodes.len() == 1 { nodes.into_iter().next()? } else { None }
}

/// The number in the name of the file is the driver's own, which it shows beside the address.
fn of_nvidia(tree: &Tree, number: &str) -> Option<NodeId> {
    let addresses = tree.list(NVIDIA).ok().flatten()?;
    let is_it = |address: &&String| {
        let text = tree.read_text(&format!("{NVIDIA}/{address}/information")).ok().flatten();
        let minor =
            text.as_deref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("Device Minor:")));
        minor.is_some_and(|minor| minor.trim() == number)
    };
    of_function(tree, addresses.iter().take(MOST_FUNCTIONS).find(is_it)?.parse().ok()?)
}

fn of_function(tree: &Tree, function: PciAddress) -> Option<NodeId> {
    node(tree, &format!("/sys/bus/pci/devices/{function}/numa_node"))
}

fn node(tree: &Tree, path: &str) -> Option<NodeId> {
    let number = file::value(tree, path, number::number::<u32>).ok().flatten();
    number.filter(|number| *number < <NodeId as nodewise_machine::id::Id>::LIMIT).map(NodeId::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Memory, ReadCause};

    fn files() -> Memory {
        Memory::new()
            .file("/sys/class/infiniband_verbs/uverbs0/device/numa_node", "1\n")
            .file("/sys/class/drm/renderD128/device/numa_node", "-1\n")
            .file("/sys/class/nvme/nvme0/device/numa_node", "2\n")
            .file("/sys/kernel/iommu_groups/12/devices/0000:3b:00.0", "")
            .file("/sys/kernel/iommu_groups/12/devices/0000:3b:00.1", "")
            .file("/sys/kernel/iommu_groups/13/devices/0000:3b:00.1", "")
            .file("/sys/kernel/iommu_groups/13/devices/0000:5e:00.0", "")
            .file("/sys/bus/pci/devices/0000:3b:00.0/numa_node", "3\n")
            .file("/sys/bus/pci/devices/0000:3b:00.1/numa_node", "3\n")
            .file("/sys/bus/pci/devices/0000:5e:00.0/numa_node", "0\n")
            .file("/proc/driver/nvidia/gpus/0000:5e:00.0/information", "Model: x\nDevice Minor: \t 1\n")
            .file("/proc/driver/nvidia/gpus/0000:3b:00.0/information", "Model: y\nDevice Minor: \t 0\n")
            .link_to(
                "/sys/class/drm/renderD129",
                "../../devices/pci0000:40/0000:41:00.0/virtio3/drm/renderD129",
            )
            .file("/sys/devices/pci0000:40/0000:41:00.0/virtio3/drm/renderD129/dev", "226:129\n")
            .file("/sys/devices/pci0000:40/0000:41:00.0/numa_node", "1\n")
            .link_to("/proc/7/fd/3", "/dev/nvidia0")
            .link_to("/proc/7/fd/4", "/dev/nvidia0")
            .link_to("/proc/7/fd/5", "/srv/secret")
    }

    #[test]
    fn files_of_devices_have_the_node_that_the_firmware_names() {
        let tree = Tree::memory(files());
        let node = |path: &str| of_file(&tree, path).map(|device| device.node.map(|node| node.number()));
        assert_eq!(node("/dev/infiniband/uverbs0"), Some(Some(1)));
        assert_eq!(node("/dev/dri/renderD128"), Some(None));
        assert_eq!(node("/dev/dri/renderD129"), Some(Some(1)), "a virtio device");
        assert_eq!((node("/dev/nvme0n1"), node("/dev/nvme0n1p2")), (Some(Some(2)), Some(Some(2))));
        assert_eq!((node("/dev/vfio/12"), node("/dev/vfio/13")), (Some(Some(3)), Some(None)));
        assert_eq!((node("/dev/nvidia0"), node("/dev/nvidia1")), (Some(Some(3)), Some(Some(0))));
        assert_eq!(node("/dev/nvidia7"), Some(None));
        for path in [
            "/dev/nvidiactl",
            "/dev/null",
            "/tmp/uverbs0",
            "socket:[1]",
            "/dev/dri/card0",
            "",
            "/dev/vfio/vfio",
            "/dev/vfio/../x",
            "/dev/nvme0",
            "/dev/nvme0nx",
            "/dev/nvme-fabrics",
            "/dev/nvmen1",
        ] {
            assert_eq!(node(path), None, "{path}");
        }
    }

    #[test]
    fn a_device_counts_once_and_other_files_do_not() {
        let found = open(&Tree::memory(files()), Pid::new(7)).unwrap();
        assert_eq!(found, [OpenDevice { name: "nvidia0".to_owned(), node: Some(NodeId::new(3)) }]);
        let closed = Memory::new().unreadable("/proc/7/fd", ReadCause::System(13));
        assert_eq!(open(&Tree::memory(closed), Pid::new(7)), None);
    }
}
