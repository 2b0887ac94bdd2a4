//! Devices: PCI functions and what else has a kernel name.
//!
//! A name in `/sys/class` is a link to the device's place in `/sys/devices`; the last PCI address
//! on that way is the function it belongs to. What lies below `virtual` is not a device. What lies
//! elsewhere (virtio-mmio, a platform bus, persistent memory) becomes a device without an address.

use std::collections::BTreeMap;

use nodewise_machine::check::node_names;
use nodewise_machine::id::Id as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{
    Bytes, CpuSet, DaxMemory, Device, DeviceClass, DeviceName, Machine, Node, NodeId, NodeSet, OddityKind,
    Origin, PciAddress, PciLink,
};

use super::reader::number_behind;
use super::{Detail, Reader};
use crate::parse::{ParseError, number, pci_link};
use crate::tree::Tree;

/// Class and subclass of a bridge between PCI buses (PCI code and ID assignment).
const BRIDGE: u32 = 0x0604;
const PCI: &str = "/sys/bus/pci/devices";
const DAX: &str = "/sys/bus/dax/devices";
const DEVICES: &str = "/sys/devices/";
const VIRTUAL: &str = "/sys/devices/virtual/";

/// Devices on their way to the machine, with the folders their attributes are in.
#[derive(Default)]
struct Found {
    functions: BTreeMap<PciAddress, Place>,
    others: BTreeMap<String, Place>,
}

/// A device's folder and names.
struct Place {
    folder: String,
    names: Vec<DeviceName>,
}

impl Place {
    fn new(folder: String) -> Self {
        Self { folder, names: Vec::new() }
    }
}

/// Every PCI function and everything else with a kernel name, whatever was read before.
pub(crate) fn all(tree: &Tree, nodes: &BTreeMap<NodeId, Node>, basis: Basis) -> Vec<Device> {
    let mut machine = Machine::new(Origin::Live);
    machine.nodes.clone_from(nodes);
    read_on(&mut Reader::new(tree, Detail::Full), &mut machine, basis);
    machine.devices
}

/// The facts that may decide where a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Only `numa_node` of the device or of a bridge above it.
    Stated,
    /// Its local CPUs too, and that the machine has one node.
    Inferred,
}

impl Basis {
    pub(crate) fn home_of(self, machine: &Machine, device: &Device) -> Option<NodeId> {
        match self {
            Self::Stated => device.node,
            Self::Inferred => machine.home_of(device),
        }
    }
}

/// Finds the nodes of devices: the one rule for what is shown and for what a user names.
pub(crate) struct Homes<'m> {
    machine: &'m Machine,
    basis: Basis,
    nodes: NodeSet,
    climbed: BTreeMap<String, Option<NodeId>>,
}

impl<'m> Homes<'m> {
    pub(crate) fn new(machine: &'m Machine, basis: Basis) -> Self {
        Self { machine, basis, nodes: machine.node_ids(), climbed: BTreeMap::new() }
    }

    /// The node of a device without attributes of PCI: its own or that of a bridge above it, else the node
    /// around the local CPUs of the PCI function that it belongs to.
    pub(crate) fn node_of(&mut self, reader: &mut Reader<'_>, folder: &str) -> Option<NodeId> {
        let own = self.node_above(reader, folder);
        let function = function_of(folder).filter(|_| own.is_none());
        let local_cpus = function.and_then(|(_, folder)| local_cpus(reader, &folder)).unwrap_or_default();
        self.settle(&Device { node: own, local_cpus, ..Device::default() })
    }

    fn settle(&self, device: &Device) -> Option<NodeId> {
        self.basis.home_of(self.machine, device)
    }
}

/// The CPUs that the kernel calls local to a function; `None` where no file says. The list and the mask come from
/// one number in the kernel.
fn local_cpus(reader: &mut Reader<'_>, folder: &str) -> Option<CpuSet> {
    reader.agreeing_cpus(folder, &["local_cpulist", "local_cpus"], None)
}

/// Fills the devices: all PCI functions, or for an overview those with kernel names.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
    read_on(reader, machine, Basis::Inferred);
}

fn read_on(reader: &mut Reader<'_>, machine: &mut Machine, basis: Basis) {
    let mut found = Found::default();
    if !reader.is_quick() {
        find_functions(reader, &mut found);
    }
    for class in DeviceClass::ALL {
        find_names(reader, class, &mut found);
    }
    let mut homes = Homes::new(machine, basis);
    let mut devices = Vec::new();
    for (address, place) in found.functions {
        devices.push(read_function(reader, address, place, &mut homes));
    }
    for place in found.others.into_values() {
        let node = homes.node_of(reader, &place.folder);
        let dax = place.names.iter().any(|name| name.class == DeviceClass::Dax);
        let dax = dax.then(|| read_dax(reader, &place.folder));
        devices.push(Device { dax, ..device(place.names, node) });
    }
    machine.devices = devices;
}

fn read_dax(reader: &mut Reader<'_>, folder: &str) -> DaxMemory {
    let node = reader.value(&format!("{folder}/target_node"), number::number_or_unknown).flatten();
    let size = reader.value(&format!("{folder}/size"), number::number);
    DaxMemory { node: node.filter(|node| *node < NodeId::LIMIT).map(NodeId::new), size: size.map(Bytes::new) }
}

fn find_functions(reader: &mut Reader<'_>, found: &mut Found) {
    for name in reader.list(PCI) {
        let Some(address) = exact_address(&name) else { continue };
        let entry = format!("{PCI}/{name}");
        // Some captures hold a folder in place of the link.
        let folder = reader.target(&entry).unwrap_or(entry);
        found.functions.insert(address, Place::new(folder));
    }
}

/// The address that a folder is named by: written in full, as the kernel does.
fn exact_address(name: &str) -> Option<PciAddress> {
    name.parse().ok().filter(|address: &PciAddress| address.to_string() == name)
}

/// Finds the names of a class, through the links in `/sys/class`, else in the folders below the
/// functions, where captures without `/sys/class` have them.
fn find_names(reader: &mut Reader<'_>, class: DeviceClass, found: &mut Found) {
    let root = match class {
        DeviceClass::Dax => DAX.to_owned(),
        class => format!("/sys/class/{}", class.folder()),
    };
    let names = reader.list(&root);
    for name in names.iter().filter(|name| is_name(class, name)) {
        let entry = format!("{root}/{name}");
        // Before Linux 2.6.27 or so the entry was a folder, and its link `device` leads on.
        let path = reader.target(&entry).or_else(|| reader.target(&format!("{entry}/device")));
        let Some(path) = path.filter(|path| path.starts_with(DEVICES)) else { continue };
        let is_partition = class == DeviceClass::Block
            && path.rsplit('/').nth(1).is_some_and(|parent| names.iter().any(|name| name == parent));
        if !is_partition {
            for path in physical(reader, path) {
                found.add(class, name, &path);
            }
        }
    }
    if names.is_empty() && !reader.trusts_files() {
        for place in found.functions.values_mut() {
            let below = reader.list(&format!("{}/{}", place.folder, class.folder()));
            let names = below.into_iter().filter(|name| is_name(class, name));
            place.names.extend(names.map(|name| DeviceName { class, name }));
        }
    }
}

/// Block devices that drivers make without any hardware.
const WITHOUT_HARDWARE: [&str; 5] = ["loop", "ram", "zram", "dm-", "md"];

/// Whether a name stands for a device: `card0` of drm does, its connectors and `renderD128` do not.
pub(crate) fn is_name(class: DeviceClass, name: &str) -> bool {
    match class {
        DeviceClass::Block => !WITHOUT_HARDWARE.iter().any(|driver| number_behind(name, driver).is_some()),
        DeviceClass::Net => name != "lo",
        DeviceClass::Gpu => number_behind(name, "card").is_some(),
        DeviceClass::Accelerator => number_behind(name, "accel").is_some(),
        _ => true,
    }
}

/// Where something virtual really is: nowhere, except for NVMe disks of several paths, which lie
/// below a virtual subsystem that links to its controllers.
pub(crate) fn physical(reader: &mut Reader<'_>, path: String) -> Vec<String> {
    if !path.starts_with(VIRTUAL) {
        return vec![path];
    }
    let Some(subsystem) = nvme_subsystem(&path) else { return Vec::new() };
    let controllers = reader.numbered(subsystem, "nvme");
    let links =
        controllers.into_iter().filter_map(|number| reader.target(&format!("{subsystem}/nvme{number}")));
    links.filter(|path| path.starts_with(DEVICES) && !path.starts_with(VIRTUAL)).collect()
}

/// The folder of the NVMe subsystem that a path lies in.
fn nvme_subsystem(path: &str) -> Option<&str> {
    let (above, below) = path.split_once("/nvme-subsystem/")?;
    let name = below.split('/').next()?;
    path.get(..above.len() + "/nvme-subsystem/".len() + name.len())
}

/// Lists the devices that a device is stacked upon: the parts of a volume, a mirror or a bond. A partition
/// of one is asked through the disk above it.
pub(crate) fn lower(reader: &mut Reader<'_>, path: &str) -> Vec<String> {
    let folders = [Some(path), path.rsplit_once('/').map(|(above, _)| above)];
    let mut lower = Vec::new();
    for folder in folders.into_iter().flatten().filter(|folder| folder.starts_with(VIRTUAL)) {
        let slaves = reader
            .list(&format!("{folder}/slaves"))
            .into_iter()
            .map(|name| format!("{folder}/slaves/{name}"));
        let names = reader.list(folder).into_iter().filter(|name| name.starts_with("lower_"));
        let links: Vec<String> = slaves.chain(names.map(|name| format!("{folder}/{name}"))).collect();
        lower.extend(
            links.iter().filter_map(|link| reader.target(link)).filter(|path| path.starts_with(DEVICES)),
        );
        if !lower.is_empty() {
            break;
        }
    }
    lower
}

impl Found {
    fn add(&mut self, class: DeviceClass, name: &str, path: &str) {
        let name = DeviceName { class, name: name.to_owned() };
        let place = match function_of(path) {
            Some((address, folder)) => self.functions.entry(address).or_insert_with(|| Place::new(folder)),
            None => {
                let folder = device_folder(class, path);
                self.others.entry(folder.to_owned()).or_insert_with(|| Place::new(folder.to_owned()))
            }
        };
        if !place.names.contains(&name) {
            place.names.push(name);
        }
    }
}

/// The last PCI function on a way, and its folder.
pub(crate) fn function_of(path: &str) -> Option<(PciAddress, String)> {
    let mut folder = path;
    loop {
        let (above, name) = folder.rsplit_once('/')?;
        if let Some(address) = exact_address(name) {
            return Some((address, folder.to_owned()));
        }
        folder = above;
    }
}

/// The folder of the device that a class entry belongs to: `.../virtio0` of `.../virtio0/net/eth0`.
fn device_folder(class: DeviceClass, path: &str) -> &str {
    if class == DeviceClass::Dax {
        return path;
    }
    let above = path.rsplit_once('/').map_or(path, |(above, _)| above);
    match above.rsplit_once('/') {
        Some((device, folder)) if folder == class.folder() => device,
        _ => above,
    }
}

fn device(mut names: Vec<DeviceName>, node: Option<NodeId>) -> Device {
    names.order();
    names.dedup();
    Device { names, node, ..Device::default() }
}

fn read_function(
    reader: &mut Reader<'_>,
    address: PciAddress,
    place: Place,
    homes: &mut Homes<'_>,
) -> Device {
    let folder = place.folder;
    let node = homes.node_above(reader, &folder);
    let mut device = device(place.names, node);
    device.pci = Some(address);
    // An overview needs the class to distinguish a GPU from a display.
    let shows =
        [DeviceClass::Gpu, DeviceClass::Accelerator].iter().any(|class| device.name_in(*class).is_some());
    if shows || !reader.is_quick() {
        let class = |text: &str| number::padded_hexadecimal(text, 6);
        device.class_code = reader.value(&format!("{folder}/class"), class);
    }
    if !reader.is_quick() {
        let id = |text: &str| {
            let id = number::padded_hexadecimal(text, 4)?;
            u16::try_from(id).map_err(|_| ParseError::new(1, "four hexadecimal digits", text.trim()))
        };
        device.vendor = reader.value(&format!("{folder}/vendor"), id);
        device.device = reader.value(&format!("{folder}/device"), id);
    }
    if node.is_none() || !reader.is_quick() {
        device.local_cpus = local_cpus(reader, &folder).unwrap_or_default();
    }
    if !reader.is_quick() && device.class_code.is_none_or(|class| class >> 8 != BRIDGE) {
        device.link = link(reader, &folder);
    }
    device.node = homes.settle(&device);
    device
}

/// The link of a function; `None` without one.
fn link(reader: &mut Reader<'_>, folder: &str) -> Option<PciLink> {
    let mut read = |name: &str, parse: fn(&str) -> Result<Option<u32>, ParseError>| {
        reader.value_or_silence(&format!("{folder}/{name}"), parse).flatten()
    };
    let link = PciLink {
        speed: read("current_link_speed", pci_link::speed),
        width: read("current_link_width", pci_link::width),
        max_speed: read("max_link_speed", pci_link::speed),
        max_width: read("max_link_width", pci_link::width),
    };
    Some(link).filter(|link| *link != PciLink::default())
}

impl Homes<'_> {
    /// The device's own `numa_node`, else that of the nearest bridge or bus above it. Only the way below
    /// `/sys/devices` is climbed; what was learned on the way is kept.
    fn node_above(&mut self, reader: &mut Reader<'_>, folder: &str) -> Option<NodeId> {
        let mut way = Vec::new();
        let mut at = Some(folder);
        let mut node = None;
        while let Some(folder) = at {
            if let Some(known) = self.climbed.get(folder) {
                node = *known;
                break;
            }
            way.push(folder);
            node = own_node(reader, folder, &self.nodes);
            if node.is_some() {
                break;
            }
            let above = folder.rsplit_once('/').map(|(above, _)| above);
            at = above.filter(|above| worth_asking(above, folder));
        }
        self.climbed.extend(way.into_iter().map(|folder| (folder.to_owned(), node)));
        node
    }
}

/// Reads a device's own `numa_node`; `None` for -1, and for a missing node.
fn own_node(reader: &mut Reader<'_>, folder: &str, nodes: &NodeSet) -> Option<NodeId> {
    let path = format!("{folder}/numa_node");
    let node: u32 = reader.value(&path, number::number_or_unknown).flatten()?;
    let node = Some(node).filter(|node| *node < NodeId::LIMIT).map(NodeId::new)?;
    if nodes.contains(node) || nodes.is_empty() {
        return Some(node);
    }
    let text = format!("it says node {node}, and this machine has {}", node_names(nodes));
    reader.note_in(OddityKind::Disagreement, &path, text);
    None
}

/// Whether the folder above may know the node: above a PCI function only another function does.
fn worth_asking(above: &str, folder: &str) -> bool {
    let name = |path: &str| path.rsplit_once('/').and_then(|(_, name)| exact_address(name));
    above.starts_with(DEVICES) && (name(folder).is_none() || name(above).is_some())
}
