//! Attributes of hwloc's objects.

use nodewise_machine::id::Id;
use nodewise_machine::node::MemorySideCache;
use nodewise_machine::{Access, Bytes, Cache, CacheKind, Device, DeviceClass, IdSet, Machine, Node, PciLink};

use super::super::xml::Attributes;
use super::tree::ObjectKind;

/// Kinds of groups in hwloc's own numbers: drawers and books of s390, clusters of CPUs, CPUs of a node.
const GROUP_OF_S390: (u32, u32, u32) = (110, 0, 1);
const GROUP_OF_CLUSTER: u32 = 222;
const GROUP_OF_NODE: u32 = 1001;

/// `HWLOC_MEMATTR_FLAG_HIGHER_FIRST` or `..._LOWER_FIRST`, with `..._NEED_INITIATOR`.
const HIGHER_FROM_INITIATOR: u32 = 1 | 4;
const LOWER_FROM_INITIATOR: u32 = 2 | 4;

/// A set as hwloc writes it: words of 32 bits, the highest first; a word of zeros is empty, the last one `0x0`.
pub(super) fn mask<I: Id>(set: &IdSet<I>) -> String {
    let Some(last) = set.last() else { return "0x0".to_owned() };
    let mut words = vec![0u32; last.number() as usize / 32 + 1];
    for id in set {
        words[id.number() as usize / 32] |= 1 << (id.number() % 32);
    }
    let text = |(at, word): (usize, &u32)| match (word, at) {
        (0, 0) => "0x0".to_owned(),
        (0, _) => String::new(),
        _ => format!("0x{word:08x}"),
    };
    let words: Vec<String> = words.iter().enumerate().rev().map(|(at, word)| text((at, word))).collect();
    words.join(",")
}

/// The type of an object, and its number where the kernel gives one.
pub(super) fn numbered(kind: ObjectKind<'_>) -> (String, Option<u32>) {
    let (name, number) = match kind {
        ObjectKind::Machine => ("Machine", Some(0)),
        ObjectKind::Drawer(drawer) => ("Group", Some(drawer.number())),
        ObjectKind::Book(book) => ("Group", Some(book.number())),
        ObjectKind::Package(package) => ("Package", Some(package.number())),
        ObjectKind::Die(die) => ("Die", Some(die.number())),
        ObjectKind::Around => ("Group", None),
        ObjectKind::Cluster(cluster) => ("Group", Some(cluster.number())),
        ObjectKind::Cache(cache) => {
            let letter = if cache.kind == CacheKind::Instruction { "i" } else { "" };
            return (format!("L{}{letter}Cache", cache.level), None);
        }
        ObjectKind::Core(core) => ("Core", core.map(|core| core.number())),
        ObjectKind::Cpu(cpu) => ("PU", Some(cpu.number())),
    };
    (name.to_owned(), number)
}

/// The attributes that only objects of this kind have.
pub(super) fn of_kind(kind: ObjectKind<'_>) -> Attributes {
    let group = |subtype: Option<&str>, kind: u32, subkind: u32| -> Attributes {
        let subtype = subtype.map(|subtype| ("subtype", subtype.to_owned()));
        let numbers = [("kind", kind.to_string()), ("subkind", subkind.to_string())];
        subtype.into_iter().chain(numbers).collect()
    };
    let (s390, book, drawer) = GROUP_OF_S390;
    match kind {
        ObjectKind::Drawer(_) => group(Some("Drawer"), s390, drawer),
        ObjectKind::Book(_) => group(Some("Book"), s390, book),
        ObjectKind::Cluster(_) => group(Some("Cluster"), GROUP_OF_CLUSTER, 0),
        ObjectKind::Around => group(None, GROUP_OF_NODE, 0),
        ObjectKind::Cache(of_cpus) => cache(of_cpus),
        _ => Vec::new(),
    }
}

/// A cache of CPUs.
pub(super) fn cache(cache: &Cache) -> Attributes {
    let kind = match cache.kind {
        CacheKind::Unified => 0,
        CacheKind::Data => 1,
        CacheKind::Instruction => 2,
    };
    // The kernel writes 0 for a cache whose lines can be anywhere, hwloc -1.
    let ways = cache.ways.map(|ways| if ways == 0 { "-1".to_owned() } else { ways.to_string() });
    cache_attributes(cache.size, cache.level, cache.line_size, ways, kind)
}

/// A cache in front of memory.
pub(super) fn memory_side_cache(cache: &MemorySideCache) -> Attributes {
    // 0 is direct mapped: a line has one place.
    let ways = cache.indexing.filter(|indexing| *indexing == 0).map(|_| "1".to_owned());
    cache_attributes(cache.size, cache.level, cache.line_size, ways, 0)
}

fn cache_attributes(
    size: Option<Bytes>,
    level: u8,
    line_size: Option<u32>,
    ways: Option<String>,
    kind: u8,
) -> Attributes {
    let attributes = [
        ("cache_size", size.map(|size| size.get().to_string())),
        ("depth", Some(level.to_string())),
        ("cache_linesize", line_size.map(|size| size.to_string())),
        ("cache_associativity", ways),
        ("cache_type", Some(kind.to_string())),
    ];
    attributes.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Sizes of pages with their number: ordinary pages where huge ones leave a number that is known, then the pools.
pub(super) fn pages(machine: &Machine, node: Option<&Node>, memory: Option<Bytes>) -> Vec<(u64, u64)> {
    let pools = node.map(|node| node.huge_pools.as_slice()).unwrap_or_default();
    let known: Option<Vec<(u64, u64)>> =
        pools.iter().map(|pool| Some((pool.page_size.get(), pool.total?))).collect();
    let mut pages = Vec::new();
    if let (Some(pools), Some(memory), Some(size)) = (&known, memory, machine.page_size) {
        let huge =
            pools.iter().fold(0u64, |sum, (size, count)| sum.saturating_add(size.saturating_mul(*count)));
        let ordinary = memory.get().saturating_sub(huge).checked_div(size.get());
        pages.extend(ordinary.map(|count| (size.get(), count)));
    }
    let counted = pools.iter().filter_map(|pool| Some((pool.page_size.get(), pool.total?)));
    pages.extend(counted);
    pages
}

/// Attributes of a PCI function; `None` for other devices.
///
/// `pci_type` has no form without vendors, devices and revision: what is not known is 0, as hwloc writes where it may not
/// read them. A [`Machine`] holds neither the subsystem nor the revision.
pub(super) fn pci(device: &Device) -> Option<Attributes> {
    let mut attributes = vec![("pci_busid", device.pci?.to_string())];
    if let Some(class) = device.class_code {
        let [vendor, number] = [device.vendor, device.device].map(Option::unwrap_or_default);
        let class = (class >> 8) & 0xffff;
        attributes.push(("pci_type", format!("{class:04x} [{vendor:04x}:{number:04x}] [0000:0000] 00")));
    }
    let speed = device.link.and_then(gigabytes_per_second);
    attributes.extend(speed.map(|speed| ("pci_link_speed", format!("{speed:.6}"))));
    Some(attributes)
}

/// The throughput of a link: its transfers without the bits of the line code, in bytes.
///
/// # Source
/// PCI Express base specification: 8 bits of 10 up to 5 GT/s, then 128 of 130.
fn gigabytes_per_second(link: PciLink) -> Option<f64> {
    let (speed, width) = (link.speed?, link.width?);
    let code = if speed <= 5000 { 8.0 / 10.0 } else { 128.0 / 130.0 };
    Some(f64::from(speed) / 1000.0 * code * f64::from(width) / 8.0)
}

/// The number of a class of names in hwloc, and its subtype; `None` for names that hwloc does not list.
pub(super) const fn name_type(class: DeviceClass) -> Option<(u32, Option<&'static str>)> {
    match class {
        DeviceClass::Block => Some((0, None)),
        DeviceClass::Dax => Some((0, Some("NVM"))),
        DeviceClass::Gpu => Some((1, None)),
        DeviceClass::Net => Some((2, None)),
        DeviceClass::Infiniband => Some((3, None)),
        DeviceClass::Accelerator => Some((5, None)),
        // hwloc lists its disks.
        DeviceClass::Nvme => None,
    }
}

/// Values of an access by hwloc's names, with the flags of each. Its `Bandwidth` and `Latency` are the means of reading
/// and writing.
pub(super) fn initiator_attributes(access: &Access) -> [(&'static str, u32, Option<u64>); 6] {
    let mean = |read: Option<u32>, write: Option<u32>| Some((u64::from(read?) + u64::from(write?)) / 2);
    let only = |value: Option<u32>| value.map(u64::from);
    let (read, write) = (access.read_bandwidth_mb_per_s, access.write_bandwidth_mb_per_s);
    let (read_latency, write_latency) = (access.read_latency_ns, access.write_latency_ns);
    let values = [
        mean(read, write),
        mean(read_latency, write_latency),
        only(read),
        only(write),
        only(read_latency),
        only(write_latency),
    ];
    let mut values = values.into_iter();
    INITIATOR_ATTRIBUTES.map(|(name, (_, flags))| (name, flags, values.next().flatten()))
}

/// The attributes of memory that initiators have: name, place in the file, flags.
pub(super) const INITIATOR_ATTRIBUTES: [(&str, (u8, u32)); 6] = [
    ("Bandwidth", (0, HIGHER_FROM_INITIATOR)),
    ("Latency", (1, LOWER_FROM_INITIATOR)),
    ("ReadBandwidth", (2, HIGHER_FROM_INITIATOR)),
    ("WriteBandwidth", (3, HIGHER_FROM_INITIATOR)),
    ("ReadLatency", (4, LOWER_FROM_INITIATOR)),
    ("WriteLatency", (5, LOWER_FROM_INITIATOR)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::CpuSet;

    #[test]
    fn masks_are_written_as_hwloc_does() {
        for (cpus, text) in [
            (CpuSet::new(), "0x0"),
            (CpuSet::from([0, 3]), "0x00000009"),
            (CpuSet::from([40]), "0x00000100,0x0"),
            (CpuSet::from([24, 64]), "0x00000001,,0x01000000"),
            (CpuSet::from([96, 103]), "0x00000081,,,0x0"),
        ] {
            assert_eq!(mask(&cpus), text);
        }
    }

    #[test]
    fn links_carry_what_their_line_code_leaves() {
        let link = |speed, width| PciLink { speed: Some(speed), width: Some(width), ..PciLink::default() };
        let speed =
            |speed, width| gigabytes_per_second(link(speed, width)).map(|speed| format!("{speed:.6}"));
        assert_eq!(speed(8000, 16).as_deref(), Some("15.753846"));
        assert_eq!(speed(2500, 1).as_deref(), Some("0.250000"));
        assert_eq!(gigabytes_per_second(PciLink::default()), None);
    }
}
