//! Where RAM lies in the physical address space, to which node it belongs, and in pages of which size.

use nodewise_machine::{Bytes, Machine, NodeId, NodeSet};

pub use nodewise_machine::MemoryRange as Range;

/// Bytes of an ordinary page on x86-64 and, as distributions build it, on arm64.
pub const PAGE: u64 = 4096;
/// The order of a huge page of 2 MiB in such pages.
pub const HUGE_ORDER: u32 = 9;
/// Bytes of a page on ppc64le, as distributions build it.
const POWER_PAGE: u64 = 64 << 10;
/// The largest page that Linux is built with.
const LARGEST_PAGE: u64 = 256 << 10;

/// The processor's architecture, as far as the layout of memory depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64.
    X86,
    /// arm64.
    Arm,
    /// 64-bit POWER, of either byte order.
    Power,
    /// s390x.
    S390,
    /// 64-bit RISC-V.
    RiscV,
    /// One whose zones this model does not know.
    Other,
}

impl Architecture {
    /// The architecture of a machine; x86-64 where it does not say.
    pub fn from_machine(machine: &Machine) -> Self {
        match machine.architecture.as_deref() {
            None | Some("x86_64") => Self::X86,
            Some("aarch64") => Self::Arm,
            Some("ppc64" | "ppc64le") => Self::Power,
            Some("s390x") => Self::S390,
            Some("riscv64") => Self::RiscV,
            Some(_) => Self::Other,
        }
    }

    /// Number of nodes that distributions build their kernels for (`MAX_NUMNODES`): `NODES_SHIFT`
    /// is 10 on x86-64, 8 on POWER, 4 on arm64 and on s390 as long as it had several nodes, 2 on RISC-V.
    pub const fn max_nodes(self) -> u32 {
        match self {
            Self::X86 | Self::Other => 1024,
            Self::Power => 256,
            Self::Arm | Self::S390 => 16,
            Self::RiscV => 4,
        }
    }

    /// Bytes of a page as distributions build their kernels.
    const fn usual_page(self) -> u64 {
        match self {
            Self::Power => POWER_PAGE,
            _ => PAGE,
        }
    }
}

/// Bytes of a page of a machine: its own, else as distributions build kernels for it.
pub fn page_bytes(machine: &Machine) -> u64 {
    let own = machine.page_size.map(Bytes::get);
    let is_one = |page: &u64| page.is_power_of_two() && (PAGE..=LARGEST_PAGE).contains(page);
    own.filter(is_one).unwrap_or_else(|| Architecture::from_machine(machine).usual_page())
}

/// Bytes of a transparent huge page of a machine: its own, else that of its architecture. `None` where the
/// architecture has several: on POWER the MMU decides (2 MiB with radix, 16 MiB with hash tables).
///
/// # Source
/// What one entry of the page table above the lowest maps (`PMD_SIZE`): `Documentation/arch/arm64/hugetlbpage.rst`
/// (2, 32 and 512 MiB for pages of 4, 16 and 64 KiB), `HPAGE_SHIFT` in `arch/{x86,riscv,s390}/include/asm/page.h`.
pub fn huge_page_bytes(machine: &Machine) -> Option<u64> {
    let page = page_bytes(machine);
    let is_one = |huge: &u64| huge.is_power_of_two() && *huge > page && huge / page <= MOST_SMALL;
    let own = machine.settings.transparent_hugepage_size.map(Bytes::get);
    let usual = match Architecture::from_machine(machine) {
        Architecture::X86 | Architecture::RiscV if page == PAGE => Some(2 << 20),
        Architecture::Arm => Some(page * (page / ENTRY)),
        Architecture::S390 => Some(1 << 20),
        _ => None,
    };
    own.or(usual).filter(is_one)
}

/// The order of a huge page of a machine: it is 2^order pages.
pub fn huge_order(machine: &Machine) -> Option<u32> {
    huge_page_bytes(machine).map(|huge| (huge / page_bytes(machine)).ilog2())
}

/// Bytes of an entry of a page table.
const ENTRY: u64 = 8;
/// Most small pages in a huge one: more than any page table has entries.
const MOST_SMALL: u64 = 1 << 16;

/// Why the model cannot say which zones a machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The kernel does not say how much memory these nodes have.
    Sizes(NodeSet),
    Nodes,
    /// This model does not know the zones of the architecture.
    Zones(String),
}

/// Whether all is known that [`machine_zones`](crate::zones::machine_zones) needs.
///
/// # Errors
/// What is missing.
pub fn check(machine: &Machine) -> Result<(), Unknown> {
    let sizes = machine.nodes_of_unknown_size();
    if machine.nodes.is_empty() {
        return Err(Unknown::Nodes);
    }
    if !sizes.is_empty() && machine.memory_map.ram.is_empty() {
        return Err(Unknown::Sizes(sizes));
    }
    match (&machine.architecture, Architecture::from_machine(machine)) {
        (Some(name), Architecture::Other) => Err(Unknown::Zones(name.clone())),
        _ => Ok(()),
    }
}

/// The numbers of a range's whole pages: the first, and the one behind the last.
pub const fn pages_of(range: Range, page: u64) -> (u64, u64) {
    (range.start.div_ceil(page), range.end / page)
}

/// First byte of RAM behind the BIOS area of a PC, and the end of the RAM before it.
const BIOS_AREA: (u64, u64) = (0x9f000, 0x10_0000);
/// The gap below 4 GiB in which PCs and most servers map devices.
const DEVICE_GAP: (u64, u64) = (3 << 30, 4 << 30);
/// Where RAM starts on QEMU's arm64 machine and on several servers.
const ARM_START: u64 = 1 << 30;
/// Where RAM starts on most RISC-V machines, QEMU's among them.
const RISCV_START: u64 = 2 << 30;

/// The ranges of a machine's RAM: those that it says, else [`assumed`] ones.
pub fn ranges(machine: &Machine) -> Vec<Range> {
    if machine.memory_map.ram.is_empty() { assumed(machine) } else { machine.memory_map.ram.clone() }
}

/// The ranges that a machine would have when it does not say: its nodes one after the other by
/// number, from the bottom of the address space, around the gaps that such machines have.
///
/// A node's size is what is present ([`Machine::ram_of`]); where only what its kernel manages is known, those
/// pages that a kernel keeps for itself are left out. A node of unknown size has no range: [`check`].
pub fn assumed(machine: &Machine) -> Vec<Range> {
    let gaps: &[(u64, u64)] = match Architecture::from_machine(machine) {
        Architecture::X86 => &[(0, BIOS_AREA.1), DEVICE_GAP],
        Architecture::Arm => &[(0, ARM_START)],
        Architecture::RiscV => &[(0, RISCV_START)],
        Architecture::Power | Architecture::S390 | Architecture::Other => &[],
    };
    let page = page_bytes(machine);
    let mut at = 0;
    let mut ranges = Vec::new();
    for node in machine.nodes.values() {
        let Some(size) = machine.ram_of(node.id) else { continue };
        at = place(node.id, size.get() / page * page, at, gaps, &mut ranges);
    }
    ranges
}

/// Adds ranges of `size` bytes from `at` on, around the gaps; gives the end of the last.
fn place(node: NodeId, size: u64, mut at: u64, gaps: &[(u64, u64)], ranges: &mut Vec<Range>) -> u64 {
    let mut left = size;
    while left > 0 {
        if let Some((_, end)) = gaps.iter().find(|(start, end)| (*start..*end).contains(&at)) {
            at = *end;
        }
        let limit = gaps.iter().map(|(start, _)| *start).filter(|start| *start > at).min();
        let room = limit.map_or(u64::MAX - at, |limit| limit - at);
        let part = left.min(room);
        ranges.push(Range { start: at, end: at + part, node });
        at += part;
        if part < left && limit.is_none() {
            // Sizes that together exceed the address space: only a hostile machine file has them.
            break;
        }
        left -= part;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    fn check(spec: &str, expected: &[(u64, u64, u32)]) {
        let machine = spec::machine(spec).unwrap();
        let ranges: Vec<(u64, u64, u32)> = assumed(&machine)
            .iter()
            .map(|range| (range.start >> 20, range.end >> 20, range.node.number()))
            .collect();
        assert_eq!(ranges, expected, "{spec}");
    }

    #[test]
    fn a_pc_has_gaps_at_one_mebibyte_and_below_four_gibibytes() {
        check("(1c 4G) (1c 1G)", &[(1, 3072, 0), (4096, 5121, 0), (5121, 6145, 1)]);
        check("(1c 1G); arch=aarch64", &[(1024, 2048, 0)]);
    }

    #[test]
    fn nodes_without_memory_have_no_range() {
        check("(1c) (1c 1G)", &[(1, 1025, 1)]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let mut machine = spec::machine("2x(1c 1G)").unwrap();
        assert_eq!(super::check(&machine), Ok(()));
        machine.architecture = Some("ia64".to_owned());
        assert_eq!(super::check(&machine), Err(Unknown::Zones("ia64".to_owned())));
        machine.nodes.get_mut(&NodeId::new(1)).unwrap().meminfo.clear();
        assert_eq!(super::check(&machine), Err(Unknown::Sizes(NodeSet::from([1]))));
        machine.nodes.clear();
        assert_eq!(super::check(&machine), Err(Unknown::Nodes));
    }

    #[test]
    fn pages_are_the_machines_own() {
        let page = |spec: &str, own: Option<u64>| {
            let mut machine = spec::machine(spec).unwrap();
            machine.page_size = own.map(Bytes::new);
            page_bytes(&machine)
        };
        assert_eq!(page("(1c 1G)", None), 4096);
        assert_eq!(page("(1c 1G); arch=ppc64le", None), 65536);
        assert_eq!(page("(1c 1G); arch=ppc64le", Some(4096)), 4096);
        assert_eq!(page("(1c 1G); arch=aarch64", Some(16384)), 16384);
        // A machine file can say anything.
        for hostile in [0, 1, 4095, 12288, u64::MAX] {
            assert_eq!(page("(1c 1G)", Some(hostile)), 4096);
        }
    }

    #[test]
    fn huge_pages_are_the_machines_own_or_its_architectures() {
        let order = |spec: &str, page: Option<u64>, huge: Option<u64>| {
            let mut machine = spec::machine(spec).unwrap();
            machine.page_size = page.map(Bytes::from_kib);
            machine.settings.transparent_hugepage_size = huge.map(Bytes::new);
            huge_order(&machine)
        };
        assert_eq!(order("(1c 1G)", None, None), Some(9));
        assert_eq!(order("(1c 1G); arch=s390x", None, None), Some(8));
        let arm = [4, 16, 64].map(|page| order("(1c 1G); arch=aarch64", Some(page), None));
        assert_eq!(arm, [Some(9), Some(11), Some(13)]);
        let power = |huge| order("(1c 1G); arch=ppc64le", None, huge);
        assert_eq!([power(None), power(Some(2 << 20)), power(Some(16 << 20))], [None, Some(5), Some(8)]);
        // A machine file can say anything.
        for hostile in [0, 1, 4096, 3 << 20, 1 << 63] {
            assert_eq!(order("(1c 1G)", None, Some(hostile)), None, "{hostile}");
        }
    }

    #[test]
    fn sizes_beyond_the_address_space_are_survived() {
        let machine = spec::machine("64x(1c 16383P)").unwrap();
        assert!(assumed(&machine).iter().all(|range| range.start <= range.end));
    }
}
