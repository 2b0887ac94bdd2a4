//! Access attributes, tiers, devices and settings in a file.

use std::collections::BTreeMap;

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{
    Access, AccessClass, Bytes, DaxMemory, Device, DeviceClass, DeviceName, PciAddress, PciLink, Settings,
    Tier, TierId,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::set::{CpuList, NodeList, NodeNumber};

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum AccessClassFile {
    Any,
    Cpu,
}

#[derive(Deserialize, Serialize)]
pub(super) struct AccessFile {
    target: NodeNumber,
    class: AccessClassFile,
    initiators: NodeList,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_latency_ns: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    write_latency_ns: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_bandwidth_mb_per_s: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    write_bandwidth_mb_per_s: Option<u32>,
}

impl From<&Access> for AccessFile {
    fn from(access: &Access) -> Self {
        let class = match access.class {
            AccessClass::Any => AccessClassFile::Any,
            AccessClass::Cpu => AccessClassFile::Cpu,
        };
        Self {
            target: NodeNumber(access.target),
            class,
            initiators: NodeList(access.initiators.clone()),
            read_latency_ns: access.read_latency_ns,
            write_latency_ns: access.write_latency_ns,
            read_bandwidth_mb_per_s: access.read_bandwidth_mb_per_s,
            write_bandwidth_mb_per_s: access.write_bandwidth_mb_per_s,
        }
    }
}

impl From<AccessFile> for Access {
    fn from(access: AccessFile) -> Self {
        let class = match access.class {
            AccessClassFile::Any => AccessClass::Any,
            AccessClassFile::Cpu => AccessClass::Cpu,
        };
        Self {
            target: access.target.0,
            class,
            initiators: access.initiators.0,
            read_latency_ns: access.read_latency_ns,
            write_latency_ns: access.write_latency_ns,
            read_bandwidth_mb_per_s: access.read_bandwidth_mb_per_s,
            write_bandwidth_mb_per_s: access.write_bandwidth_mb_per_s,
        }
    }
}

#[derive(Deserialize, Serialize)]
pub(super) struct TierFile {
    id: u32,
    nodes: NodeList,
}

impl From<&Tier> for TierFile {
    fn from(tier: &Tier) -> Self {
        Self { id: tier.id.number(), nodes: NodeList(tier.nodes.clone()) }
    }
}

impl From<TierFile> for Tier {
    fn from(tier: TierFile) -> Self {
        Self { id: TierId::new(tier.id), nodes: tier.nodes.0 }
    }
}

/// A number as people know it from PCI: `"0x8086"`.
#[derive(Clone, Copy)]
pub(super) struct Hex<const DIGITS: usize>(pub(super) u32);

impl<const DIGITS: usize> Serialize for Hex<DIGITS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("0x{:0DIGITS$x}", self.0))
    }
}

impl<'de, const DIGITS: usize> Deserialize<'de> for Hex<DIGITS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let value = crate::parse::number::hexadecimal(&text).ok();
        let value = value.filter(|value| u64::from(*value) < 1 << (4 * DIGITS));
        value
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("expected 0x and up to {DIGITS} hexadecimal digits")))
    }
}

struct Address(PciAddress);

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map(Self).map_err(D::Error::custom)
    }
}

#[derive(Deserialize, Serialize)]
struct LinkFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    speed_mt_per_s: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_speed_mt_per_s: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_width: Option<u32>,
}

impl From<PciLink> for LinkFile {
    fn from(link: PciLink) -> Self {
        let PciLink { speed, width, max_speed, max_width } = link;
        Self { speed_mt_per_s: speed, width, max_speed_mt_per_s: max_speed, max_width }
    }
}

impl From<LinkFile> for PciLink {
    fn from(link: LinkFile) -> Self {
        let LinkFile { speed_mt_per_s, width, max_speed_mt_per_s, max_width } = link;
        Self { speed: speed_mt_per_s, width, max_speed: max_speed_mt_per_s, max_width }
    }
}

#[derive(Deserialize, Serialize)]
pub(super) struct DeviceFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pci: Option<Address>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class_code: Option<Hex<8>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vendor: Option<Hex<4>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<Hex<4>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<DeviceNameFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<NodeNumber>,
    #[serde(default, skip_serializing_if = "CpuList::is_empty")]
    local_cpus: CpuList,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<LinkFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dax: Option<DaxFile>,
}

#[derive(Deserialize, Serialize)]
struct DaxFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<NodeNumber>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
}

impl From<DaxMemory> for DaxFile {
    fn from(dax: DaxMemory) -> Self {
        Self { node: dax.node.map(NodeNumber), size_bytes: dax.size.map(Bytes::get) }
    }
}

impl From<DaxFile> for DaxMemory {
    fn from(dax: DaxFile) -> Self {
        Self { node: dax.node.map(|node| node.0), size: dax.size_bytes.map(Bytes::new) }
    }
}

#[derive(Deserialize, Serialize)]
struct DeviceNameFile {
    class: ClassWord,
    name: String,
}

struct ClassWord(DeviceClass);

impl Serialize for ClassWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<'de> Deserialize<'de> for ClassWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let words = DeviceClass::ALL.map(DeviceClass::word).join(", ");
        DeviceClass::from_word(&word)
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("unknown class of devices: expected one of {words}")))
    }
}

impl From<&Device> for DeviceFile {
    fn from(device: &Device) -> Self {
        let names = device.names.iter();
        Self {
            pci: device.pci.map(Address),
            class_code: device.class_code.map(Hex),
            vendor: device.vendor.map(|vendor| Hex(vendor.into())),
            device: device.device.map(|device| Hex(device.into())),
            names: names
                .map(|name| DeviceNameFile { class: ClassWord(name.class), name: name.name.clone() })
                .collect(),
            node: device.node.map(NodeNumber),
            local_cpus: CpuList(device.local_cpus.clone()),
            link: device.link.map(LinkFile::from),
            dax: device.dax.map(DaxFile::from),
        }
    }
}

impl From<DeviceFile> for Device {
    fn from(device: DeviceFile) -> Self {
        let names = device.names.into_iter();
        Self {
            pci: device.pci.map(|address| address.0),
            class_code: device.class_code.map(|code| code.0),
            // The digits were counted, so the low 16 bits are all of it.
            vendor: device.vendor.map(|vendor| vendor.0 as u16),
            device: device.device.map(|device| device.0 as u16),
            names: names.map(|name| DeviceName { class: name.class.0, name: name.name }).collect(),
            node: device.node.map(|node| node.0),
            local_cpus: device.local_cpus.0,
            link: device.link.map(PciLink::from),
            dax: device.dax.map(DaxMemory::from),
        }
    }
}

#[derive(Default, Deserialize, Serialize)]
pub(super) struct SettingsFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    numa_balancing: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone_reclaim_mode: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    watermark_boost_factor: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transparent_hugepage: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transparent_hugepage_defrag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transparent_hugepage_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default_huge_page_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    demotion_enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lru_gen_enabled: Option<bool>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    interleave_weights: BTreeMap<NodeNumber, u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interleave_weights_auto: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    swappiness: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_free_kib: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overcommit_memory: Option<u32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    governors: BTreeMap<String, CpuList>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command_line: Option<String>,
}

impl From<&Settings> for SettingsFile {
    fn from(settings: &Settings) -> Self {
        let settings = settings.clone();
        let weights = settings.interleave_weights.into_iter();
        Self {
            numa_balancing: settings.numa_balancing,
            zone_reclaim_mode: settings.zone_reclaim_mode,
            watermark_boost_factor: settings.watermark_boost_factor,
            transparent_hugepage: settings.transparent_hugepage,
            transparent_hugepage_defrag: settings.transparent_hugepage_defrag,
            transparent_hugepage_bytes: settings.transparent_hugepage_size.map(Bytes::get),
            default_huge_page_bytes: settings.default_huge_page_size.map(Bytes::get),
            demotion_enabled: settings.demotion_enabled,
            lru_gen_enabled: settings.lru_gen_enabled,
            interleave_weights: weights.map(|(node, weight)| (NodeNumber(node), weight)).collect_map(),
            interleave_weights_auto: settings.interleave_weights_auto,
            swappiness: settings.swappiness,
            min_free_kib: settings.min_free_kib,
            overcommit_memory: settings.overcommit_memory,
            governors: settings.governors.into_iter().map(|(name, cpus)| (name, CpuList(cpus))).collect_map(),
            command_line: settings.command_line,
        }
    }
}

impl From<SettingsFile> for Settings {
    fn from(settings: SettingsFile) -> Self {
        let weights = settings.interleave_weights.into_iter();
        Self {
            numa_balancing: settings.numa_balancing,
            zone_reclaim_mode: settings.zone_reclaim_mode,
            watermark_boost_factor: settings.watermark_boost_factor,
            transparent_hugepage: settings.transparent_hugepage,
            transparent_hugepage_defrag: settings.transparent_hugepage_defrag,
            transparent_hugepage_size: settings.transparent_hugepage_bytes.map(Bytes::new),
            default_huge_page_size: settings.default_huge_page_bytes.map(Bytes::new),
            demotion_enabled: settings.demotion_enabled,
            lru_gen_enabled: settings.lru_gen_enabled,
            interleave_weights: weights.map(|(node, weight)| (node.0, weight)).collect_map(),
            interleave_weights_auto: settings.interleave_weights_auto,
            swappiness: settings.swappiness,
            min_free_kib: settings.min_free_kib,
            overcommit_memory: settings.overcommit_memory,
            governors: settings.governors.into_iter().map(|(name, cpus)| (name, cpus.0)).collect_map(),
            command_line: settings.command_line,
        }
    }
}
