//! The node of a device that a user names.

mod file;
mod host;

use nodewise_machine::check::node_names;
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::printable;
use nodewise_machine::{DeviceClass, DeviceRef, Machine, NodeId, NodeSet};

use crate::sysfs::devices::{Basis, Homes};
use crate::sysfs::{Detail, Reader, devices as sysfs_devices};
use crate::tree::Tree;

/// How deep devices may be stacked: a file system on encryption on a volume on a mirror.
const MOST_LAYERS: usize = 8;
/// Most devices that a message lists.
const MOST_LISTED: usize = 12;

/// Why a device leads to no node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoNode {
    /// There is no such device.
    #[error("{device} does not exist: {existing}")]
    DoesNotExist {
        /// The device, as the user named it.
        device: String,
        /// The existing ones, in words: `this machine has net:eth0, net:ib0`.
        existing: String,
    },
    /// The kernel says -1, as on most machines with one node.
    #[error(
        "the kernel does not know the node of {0}: neither it nor a bridge above it has a numa_node, and its local CPUs are not those of one node"
    )]
    NotKnown(String),
    #[error("{0} has no node: it is made by software, without a device behind it")]
    Virtual(String),
    /// Devices on different nodes behind it.
    #[error("{device} spans {}", node_names(.nodes))]
    SeveralNodes {
        device: String,
        /// The nodes of what is behind it.
        nodes: NodeSet,
    },
    /// A file or a host on a machine that is not the running one.
    #[error("{0} can only be looked up on the running system")]
    LiveOnly(String),
    /// A file that cannot be looked at.
    #[error("cannot find the device of {path}: {cause}")]
    File { path: String, cause: String },
    /// A file system without a block device of its own.
    #[error("{path} lies on {filesystem}, which has no block device of its own")]
    NoBlockDevice {
        path: String,
        /// The file system: `tmpfs`.
        filesystem: &'static str,
    },
    /// A host that is this machine.
    #[error("{0} is an address of this machine: it is reached through lo, which has no node")]
    OwnAddress(String),
    /// A host that cannot be reached.
    #[error("{host}: {cause}")]
    Host {
        /// The host, as the user named it.
        host: String,
        cause: String,
    },
}

/// Finds the node of a device. Partitions lead to their disk, volumes and bonds to what they are
/// made of, files to the disk they are on, hosts to the interface that leads to them.
///
/// A device whose node the kernel does not know is on the only node of a machine that has one.
///
/// With a tree the device is looked up in its files, so a [`Detail::Overview`] of the machine is
/// enough; without one (a machine file, a spec) only what the machine holds can be found.
///
/// # Errors
/// A device that does not exist, or whose node is not known, in a sentence.
pub fn node_of_device(tree: Option<&Tree>, machine: &Machine, device: &DeviceRef) -> Result<NodeId, NoNode> {
    // Most machines with one node do not say where their devices are: there is no other place.
    match (find(tree, machine, device, Basis::Inferred), machine.only_node()) {
        (Err(NoNode::NotKnown(_)), Some(only)) => Ok(only),
        (found, _) => found,
    }
}

/// As [`node_of_device`], but only as the kernel states it: neither local CPUs nor a single node decide.
///
/// # Errors
/// A device that does not exist, or whose node is not known, in a sentence.
pub fn node_as_stated(tree: Option<&Tree>, machine: &Machine, device: &DeviceRef) -> Result<NodeId, NoNode> {
    find(tree, machine, device, Basis::Stated)
}

fn find(tree: Option<&Tree>, machine: &Machine, device: &DeviceRef, basis: Basis) -> Result<NodeId, NoNode> {
    let finder = Finder { tree, machine, basis, name: printable(&device.to_string()).into_owned() };
    match device {
        DeviceRef::Net(name) => finder.named(DeviceClass::Net, name, device),
        DeviceRef::Block(name) => finder.named(DeviceClass::Block, name, device),
        DeviceRef::Infiniband(name) => finder.named(DeviceClass::Infiniband, name, device),
        DeviceRef::Pci(_) | DeviceRef::Gpu(_) => finder.function(device),
        DeviceRef::File(path) => finder.file(path),
        DeviceRef::Ip(host) => finder.host(host),
    }
}

struct Finder<'a> {
    tree: Option<&'a Tree>,
    machine: &'a Machine,
    basis: Basis,
    /// The device as the user named it, fit for a terminal.
    name: String,
}

impl Finder<'_> {
    /// A device by its kernel name.
    fn named(&self, class: DeviceClass, name: &str, device: &DeviceRef) -> Result<NodeId, NoNode> {
        if let Some(node) =
            self.machine.device(device).and_then(|device| self.basis.home_of(self.machine, device))
        {
            return Ok(node);
        }
        let entry = format!("/sys/class/{}/{name}", class.folder());
        let path = self.tree.and_then(|tree| place(tree, &entry));
        match (path, self.machine.device(device), self.tree) {
            (Some(path), _, Some(tree)) => self.node_of_path(tree, path),
            (_, Some(_), _) => Err(NoNode::NotKnown(self.name.clone())),
            _ => Err(self.missing(&self.names_of(class))),
        }
    }

    /// A PCI function, or a GPU by its number. An overview need not hold them, so with a tree all
    /// functions are read.
    fn function(&self, device: &DeviceRef) -> Result<NodeId, NoNode> {
        let mut full = Machine::new(self.machine.origin.clone());
        full.devices = match self.tree {
            Some(tree) => sysfs_devices::all(tree, &self.machine.nodes, self.basis),
            None => self.machine.devices.clone(),
        };
        match full.device(device).map(|device| self.basis.home_of(self.machine, device)) {
            Some(node) => node.ok_or_else(|| NoNode::NotKnown(self.name.clone())),
            None => Err(self.missing(&names_like(device, &full))),
        }
    }

    /// The one node of a place in `/sys/devices` and of what it is stacked upon.
    fn node_of_path(&self, tree: &Tree, path: String) -> Result<NodeId, NoNode> {
        let mut search = Search {
            reader: Reader::new(tree, Detail::Full),
            homes: Homes::new(self.machine, self.basis),
            found: NodeSet::new(),
            hardware: false,
        };
        search.visit(path, 0);
        match (search.found.first(), search.found.len()) {
            (Some(node), 1) => Ok(node),
            (Some(_), _) => Err(NoNode::SeveralNodes { device: self.name.clone(), nodes: search.found }),
            (None, _) if search.hardware => Err(NoNode::NotKnown(self.name.clone())),
            (None, _) => Err(NoNode::Virtual(self.name.clone())),
        }
    }

    /// Devices of a class as a user would name them.
    fn names_of(&self, class: DeviceClass) -> Vec<String> {
        let prefix = match class {
            DeviceClass::Infiniband => "ib",
            class => class.word(),
        };
        let mut names: Vec<String> = self
            .machine
            .devices
            .iter()
            .filter_map(|device| device.name_in(class))
            .map(str::to_owned)
            .collect();
        if let Some(tree) = self.tree {
            let root = format!("/sys/class/{}", class.folder());
            let listed = tree.list(&root).ok().flatten().unwrap_or_default();
            names.extend(listed.into_iter().filter(|name| sysfs_devices::is_name(class, name)));
        }
        names.order();
        names.dedup();
        names.into_iter().map(|name| format!("{prefix}:{}", printable(&name))).collect()
    }

    fn missing(&self, names: &[String]) -> NoNode {
        let existing = match names.len() {
            0 => "this machine has none of its kind".to_owned(),
            count if count > MOST_LISTED => {
                format!(
                    "this machine has {} and {} more",
                    names[..MOST_LISTED].join(", "),
                    count - MOST_LISTED
                )
            }
            _ => format!("this machine has {}", names.join(", ")),
        };
        NoNode::DoesNotExist { device: self.name.clone(), existing }
    }
}

/// Lists the devices of the same kind that a machine has.
fn names_like(device: &DeviceRef, machine: &Machine) -> Vec<String> {
    match device {
        DeviceRef::Gpu(_) => (0..machine.gpus().len()).map(|index| format!("gpu:{index}")).collect(),
        _ => machine
            .devices
            .iter()
            .filter_map(|device| device.pci)
            .map(|address| format!("pci:{address}"))
            .collect(),
    }
}

/// Where a class entry leads.
fn place(tree: &Tree, entry: &str) -> Option<String> {
    let link = |path: &str| tree.target(path).ok().flatten();
    link(entry).or_else(|| link(&format!("{entry}/device"))).filter(|path| path.starts_with("/sys/devices/"))
}

/// The nodes below a stack of devices.
struct Search<'t> {
    reader: Reader<'t>,
    homes: Homes<'t>,
    found: NodeSet,
    hardware: bool,
}

impl Search<'_> {
    fn visit(&mut self, path: String, layer: usize) {
        if layer > MOST_LAYERS {
            return;
        }
        let lower = sysfs_devices::lower(&mut self.reader, &path);
        for path in sysfs_devices::physical(&mut self.reader, path) {
            self.hardware = true;
            self.found.extend(self.homes.node_of(&mut self.reader, &path));
        }
        for path in lower {
            self.visit(path, layer + 1);
        }
    }
}

#[cfg(test)]
mod tests;
