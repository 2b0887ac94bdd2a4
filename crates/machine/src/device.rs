//! Devices, their kernel names, and the node they hang on.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use nodewise_notation::device::{self, DeviceKind};

use crate::id::NodeId;
use crate::link::PciLink;
use crate::printable::quote;
use crate::set::CpuSet;
use crate::units::Bytes;

/// A PCI address: `0000:21:00.0` (domain, bus, device, function).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    /// The PCI domain (segment); more than 16 bits behind some controllers.
    pub domain: u32,
    pub bus: u8,
    /// The device on the bus, below 32.
    pub device: u8,
    /// The function of the device, below 8.
    pub function: u8,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function))
    }
}

impl fmt::Debug for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PciAddress({self})")
    }
}

/// Why a text is not a device, or not a PCI address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceError {
    /// The text that was read.
    pub text: String,
    pub expected: &'static str,
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a device: expected {}", quote(&self.text), self.expected)
    }
}

impl std::error::Error for DeviceError {}

impl FromStr for PciAddress {
    type Err = DeviceError;

    /// Reads `[domain:]bus:device[.function]` in hexadecimal, as `lspci` prints it.
    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let error = || DeviceError {
            text: text.to_owned(),
            expected: "a PCI address as [domain:]bus:device[.function] in hexadecimal, as in 21:00.0",
        };
        let hex = |digits: &str, most: usize| match digits.len() {
            length if length >= 1 && length <= most && digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
                u32::from_str_radix(digits, 16).map_err(|_| error())
            }
            _ => Err(error()),
        };
        let (rest, function) =
            text.split_once('.').map_or((text, 0), |(rest, function)| (rest, hex(function, 1).unwrap_or(8)));
        let parts: Vec<&str> = rest.split(':').collect();
        let (domain, bus, device) = match parts[..] {
            [bus, device] => (0, hex(bus, 2)?, hex(device, 2)?),
            [domain, bus, device] => (hex(domain, 8)?, hex(bus, 2)?, hex(device, 2)?),
            _ => return Err(error()),
        };
        if function > 7 || device > 31 {
            return Err(error());
        }
        Ok(Self { domain, bus: bus as u8, device: device as u8, function: function as u8 })
    }
}

/// The kernel's class of a device name: the folder in `/sys/class` it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceClass {
    /// A network interface (`/sys/class/net`).
    Net,
    /// A whole disk (`/sys/class/block`, partitions left out).
    Block,
    /// An NVMe controller (`/sys/class/nvme`).
    Nvme,
    /// An RDMA device (`/sys/class/infiniband`).
    Infiniband,
    /// A graphics card (`/sys/class/drm`).
    Gpu,
    /// A compute accelerator (`/sys/class/accel`).
    Accelerator,
    /// Persistent or CXL memory used as a device (`/sys/bus/dax/devices`).
    Dax,
}

impl DeviceClass {
    /// Every class, in the order in which they are shown.
    pub const ALL: [Self; 7] =
        [Self::Gpu, Self::Accelerator, Self::Infiniband, Self::Net, Self::Nvme, Self::Block, Self::Dax];

    /// The word for text and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Net => "net",
            Self::Block => "block",
            Self::Nvme => "nvme",
            Self::Infiniband => "infiniband",
            Self::Gpu => "gpu",
            Self::Accelerator => "accelerator",
            Self::Dax => "dax",
        }
    }

    /// The folder in `/sys/class`.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Gpu => "drm",
            Self::Accelerator => "accel",
            other => other.word(),
        }
    }

    /// The class with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.word() == word)
    }
}

/// A name that the kernel gave to a device, and its class: `net eth0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceName {
    pub class: DeviceClass,
    pub name: String,
}

/// A device: a PCI function, or something with a kernel name that hangs elsewhere (virtio-mmio,
/// a platform bus). `None`: the kernel does not say.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Device {
    /// Its PCI address, if it is on a PCI bus.
    pub pci: Option<PciAddress>,
    /// The 24-bit PCI class code: class, subclass, interface.
    pub class_code: Option<u32>,
    pub vendor: Option<u16>,
    pub device: Option<u16>,
    /// Its kernel names, sorted.
    pub names: Vec<DeviceName>,
    /// The node it hangs on: `numa_node` of the device or of the nearest bridge above it; where all of them
    /// say -1, what [`Machine::home_of`](crate::Machine::home_of) makes of its local CPUs.
    pub node: Option<NodeId>,
    /// The CPUs that the kernel calls local to it; empty when it does not say.
    pub local_cpus: CpuSet,
    /// Its PCI Express link, if it has one.
    pub link: Option<PciLink>,
    /// The memory behind it, if it is a DAX device.
    pub dax: Option<DaxMemory>,
}

/// The memory of a DAX device: it can become ordinary memory of a node of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaxMemory {
    /// The node that it belongs to once it is ordinary memory: `target_node`. Linux 5.1.
    pub node: Option<NodeId>,
    pub size: Option<Bytes>,
}

/// PCI base classes: 3 is display, 0x12 is processing accelerator (PCI code and ID assignment).
const DISPLAY: u32 = 0x03;
const PROCESSING_ACCELERATOR: u32 = 0x12;
/// Base class and subclass of a 3D controller: a GPU that drives no screen.
const CONTROLLER_3D: u32 = 0x0302;

impl Device {
    /// Whether the device computes: a 3D controller or processing accelerator, or something with a name in
    /// the accelerator class.
    pub fn is_compute(&self) -> bool {
        self.class_code.is_some_and(|code| code >> 16 == PROCESSING_ACCELERATOR || code >> 8 == CONTROLLER_3D)
            || self.names.iter().any(|name| name.class == DeviceClass::Accelerator)
    }

    /// Whether the device is a display adapter of any kind, the server's management console included.
    pub fn is_display(&self) -> bool {
        self.class_code.is_some_and(|code| code >> 16 == DISPLAY)
            || self.names.iter().any(|name| name.class == DeviceClass::Gpu)
    }

    /// The name of this class, if it has one.
    pub fn name_in(&self, class: DeviceClass) -> Option<&str> {
        self.names.iter().find(|name| name.class == class).map(|name| name.name.as_str())
    }
}

/// How a user names a device: `net:eth0`, `gpu:0`, `pci:21:00.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceRef {
    /// A network interface: `net:IF`, also `netdev:IF`.
    Net(String),
    /// A block device: `block:DEV`.
    Block(String),
    /// The device that holds a file: `file:PATH`.
    File(PathBuf),
    /// The network interface that leads to a host: `ip:HOST`.
    Ip(String),
    /// An RDMA device: `ib:DEV`.
    Infiniband(String),
    /// The n-th GPU or accelerator in order of PCI address: `gpu:N`.
    Gpu(usize),
    /// A PCI function: `pci:ADDR`.
    Pci(PciAddress),
}

impl DeviceRef {
    /// The form of each kind, for messages.
    pub const KINDS: &'static str = "gpu:N, net:IF, block:DEV, ib:DEV, file:PATH, ip:HOST or pci:ADDR";

    /// Whether a text begins like a device, so that the rest of it belongs to the device's name.
    pub fn starts(text: &str) -> bool {
        device::split(text.as_bytes()).is_some()
    }
}

impl FromStr for DeviceRef {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let fail = |expected| DeviceError { text: text.to_owned(), expected };
        let kind = device::split(text.as_bytes()).ok_or_else(|| fail(Self::KINDS))?.kind;
        let name = text.split_once(':').map_or("", |(_, name)| name);
        let name = name.trim_start_matches(' ');
        if name.is_empty() {
            return Err(fail("a name after the colon"));
        }
        // A kernel name is one path component: "..", or a slash, would name another file.
        let kernel_name = |name: &str| match name {
            "" | "." | ".." => Err(fail("a kernel name after the colon, as in net:eth0")),
            name if name.contains(['/', '\0']) => Err(fail("a kernel name after the colon, as in net:eth0")),
            name => Ok(name.to_owned()),
        };
        match kind {
            DeviceKind::Net => Ok(Self::Net(kernel_name(name)?)),
            // The kernel writes the slash of /dev/cciss/c0d0 as an exclamation mark.
            DeviceKind::Block => Ok(Self::Block(match name.strip_prefix("/dev/") {
                Some(file) => kernel_name(&file.replace('/', "!"))?,
                None => kernel_name(name)?,
            })),
            DeviceKind::Infiniband => Ok(Self::Infiniband(kernel_name(name)?)),
            DeviceKind::File => Ok(Self::File(PathBuf::from(name))),
            DeviceKind::Host => Ok(Self::Ip(name.to_owned())),
            DeviceKind::Gpu => {
                name.parse().map(Self::Gpu).map_err(|_| fail("a number after gpu:, counting from 0"))
            }
            DeviceKind::Pci => name.parse().map(Self::Pci),
        }
    }
}

impl fmt::Display for DeviceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(name) => write!(f, "net:{name}"),
            Self::Block(name) => write!(f, "block:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Ip(host) => write!(f, "ip:{host}"),
            Self::Infiniband(name) => write!(f, "ib:{name}"),
            Self::Gpu(index) => write!(f, "gpu:{index}"),
            Self::Pci(address) => write!(f, "pci:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn pci_addresses_are_read_as_lspci_prints_them() {
        for (text, full) in
            [("21:00.0", "0000:21:00.0"), ("0000:ff:1f.7", "0000:ff:1f.7"), ("10000:e1:0", "10000:e1:00.0")]
        {
            assert_eq!(text.parse::<PciAddress>().unwrap().to_string(), full);
        }
        for text in ["", "21", "21:20.0", "21:00.8", "x:0.0", "0:0:0:0.0", "123:00.0", "21:00.", "+1:00.0"] {
            assert!(text.parse::<PciAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn devices_are_named_by_kind() {
        for (text, printed) in [
            ("net:eth0.5", "net:eth0.5"),
            ("netdev: eth0", "net:eth0"),
            ("block:/dev/cciss/c0d0", "block:cciss!c0d0"),
            ("gpu:3", "gpu:3"),
            ("pci:21:00.0", "pci:0000:21:00.0"),
            ("ip:10.0.0.1", "ip:10.0.0.1"),
            ("file:/data/a,b", "file:/data/a,b"),
        ] {
            assert_eq!(text.parse::<DeviceRef>().unwrap().to_string(), printed);
        }
    }

    #[test]
    fn a_name_that_leaves_its_folder_is_refused() {
        for text in [
            "net:..",
            "ib:../x",
            "net:a/b",
            "block:/dev/..",
            "block:/dev/",
            "block:/dev/a\0",
            "gpu:x",
            "disk:sda",
            "eth0",
            "net:",
        ] {
            assert!(text.parse::<DeviceRef>().is_err(), "{text}");
        }
        assert_eq!(
            "disk:sda".parse::<DeviceRef>().unwrap_err().to_string(),
            "\"disk:sda\" is not a device: expected gpu:N, net:IF, block:DEV, ib:DEV, file:PATH, ip:HOST or pci:ADDR"
        );
    }

    proptest! {
        #[test]
        fn pci_parse_then_print_is_identity(domain in any::<u32>(), bus in any::<u8>(), device in 0u8..32, function in 0u8..8) {
            let address = PciAddress { domain, bus, device, function };
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = text.parse::<DeviceRef>();
            let _ = text.parse::<PciAddress>();
        }
    }
}
