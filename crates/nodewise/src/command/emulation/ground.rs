//! Ground that an emulation cuts: the machine's RAM and the nodes of its hardware.

use nodewise_machine::{Machine, MemoryMap, NodeId};
use nodewise_model::Release;
use nodewise_model::fake::outcome::physical;
use nodewise_model::firmware::used;
use nodewise_model::ram::{self, Architecture, Range, Unknown};
use nodewise_source::parse::boot_log::{BootLog, NodeRange};
use nodewise_view::digest::walk::Basis;

/// RAM and nodes of the hardware.
pub(super) struct Ground {
    /// The machine with the nodes of its hardware, also where it runs with emulated ones.
    pub(super) hardware: Machine,
    pub(super) ram: Vec<Range>,
    /// The ranges of the hardware's nodes, holes included.
    pub(super) blocks: Vec<Range>,
    /// From where this is known.
    pub(super) basis: Basis,
}

impl Ground {
    /// Takes the ranges from the kernel's log where it has them, else assumes some.
    pub(super) fn from_machine(machine: &Machine, log: Option<&BootLog>) -> Self {
        log.and_then(|log| Self::from_log(machine, log)).unwrap_or_else(|| Self::assumed(machine))
    }

    fn from_log(machine: &Machine, log: &BootLog) -> Option<Self> {
        if log.ram.is_empty() {
            return None;
        }
        let ram = ranges(&log.ram);
        let table = match &log.only {
            Some(only) => ranges(&[*only]),
            // Without a table of the firmware's and without emulation the kernel's own nodes are it.
            None if log.firmware.is_empty() && log.emulated.is_empty() => ram.clone(),
            None => ranges(&log.firmware),
        };
        let blocks = cleaned(machine, &table, &ram)?;
        let hardware = match &log.emulated[..] {
            [] => machine.clone(),
            emulated => physical(machine, &ranges(emulated), &blocks)?,
        };
        Some(Self { hardware, ram, blocks, basis: Basis::Kernel })
    }

    fn assumed(machine: &Machine) -> Self {
        if !machine.memory_map.ram.is_empty() {
            let MemoryMap { ram, nodes } = machine.memory_map.clone();
            return Self { hardware: machine.clone(), ram, blocks: nodes, basis: Basis::Firmware };
        }
        let ram = ram::assumed(machine);
        let blocks = cleaned(machine, &ram, &ram).unwrap_or_else(|| ram.clone());
        Self { hardware: machine.clone(), ram, blocks, basis: Basis::assumed_of(machine) }
    }

    /// Whether the sizes that it is assumed from are known.
    ///
    /// # Errors
    /// What is missing.
    pub(super) fn check(&self, machine: &Machine) -> Result<(), Unknown> {
        if matches!(self.basis, Basis::Assumed | Basis::AssumedX86) { ram::check(machine) } else { Ok(()) }
    }
}

fn cleaned(machine: &Machine, table: &[Range], ram: &[Range]) -> Option<Vec<Range>> {
    let spans: Vec<(u64, u64)> = ram.iter().map(|range| (range.start, range.end)).collect();
    used(table, &spans, Architecture::from_machine(machine), Release::from_kernel(machine.kernel.as_ref()))
}

fn ranges(found: &[NodeRange]) -> Vec<Range> {
    let range = |found: &NodeRange| Range {
        start: found.start,
        end: found.end,
        node: NodeId::new(found.node.number()),
    };
    found.iter().map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;
    use nodewise_source::parse::boot_log;

    const LOG: &str = "\
[    0.000000] Linux version 6.12.107
[    0.000000] ACPI: SRAT: Node 0 PXM 0 [mem 0x00000000-0x0009ffff]
[    0.000000] ACPI: SRAT: Node 0 PXM 0 [mem 0x00100000-0x2fffffff]
[    0.000000] ACPI: SRAT: Node 1 PXM 1 [mem 0x30000000-0x5fffffff]
[    0.000000]   node   0: [mem 0x0000000000001000-0x000000000009efff]
[    0.000000]   node   0: [mem 0x0000000000100000-0x000000002fffffff]
[    0.000000]   node   1: [mem 0x0000000030000000-0x000000005ffdefff]
";

    #[test]
    fn the_log_gives_ranges_to_the_byte() {
        let machine = spec::machine("2x(1c 768M); arch=x86_64; kernel=6.12.107").unwrap();
        let ground = Ground::from_machine(&machine, Some(&boot_log::parse(LOG)));
        assert_eq!(ground.basis, Basis::Kernel);
        let bounds: Vec<(u64, u64)> = ground.blocks.iter().map(|block| (block.start, block.end)).collect();
        assert_eq!(bounds, [(0x1000, 0x3000_0000), (0x3000_0000, 0x5ffd_f000)]);
    }

    #[test]
    fn a_log_that_names_no_memory_is_no_ground() {
        let machine = spec::machine("(1c 4G)").unwrap();
        for log in [None, Some(boot_log::parse("[ 0] Linux version 6\n"))] {
            let ground = Ground::from_machine(&machine, log.as_ref());
            assert_eq!(ground.basis, Basis::Assumed);
            // The gap of devices below 4 GiB belongs to the node.
            assert_eq!(ground.blocks.len(), 1);
        }
    }
}
