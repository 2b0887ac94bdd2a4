//! The System Resource Affinity Table: which CPUs, memory and devices are near to one another.
//!
//! # Source
//! ACPI 6.5, section 5.2.16.

use super::layout::{Head, entries, structure};
use super::table::Subtables;

/// The signature of the table.
pub const SIGNATURE: [u8; 4] = *b"SRAT";
/// A structure whose flags have this bit counts.
pub const ENABLED: u32 = 1;
/// Memory that can be added or taken away while the system runs.
pub const HOT_PLUGGABLE: u32 = 1 << 1;
/// Memory that keeps its contents without power.
pub const NON_VOLATILE: u32 = 1 << 2;

/// The table.
pub type Srat = Subtables<SratFixed, SratEntry>;

structure! {
    /// The fields before the first structure.
    SratFixed {
        /// 1, for the sake of old systems.
        table_revision: u32, "Table Revision";
        /// Reserved.
        reserved: u64, "Reserved";
    }
}

structure! {
    /// A CPU by its local APIC.
    ProcessorApic {
        /// Bits 7:0 of the domain.
        domain_low: u8, "Proximity Domain Low(8)";
        /// Of the local APIC.
        apic_id: u8, "Apic ID";
        /// Bit 0: enabled.
        flags: u32, "Flags";
        /// Of the local SAPIC.
        sapic_eid: u8, "Local Sapic EID";
        /// Bits 31:8 of the domain.
        domain_high: [u8; 3], "Proximity Domain High(24)";
        /// CPUs of one clock domain have one clock.
        clock_domain: u32, "Clock Domain";
    }
}

impl ProcessorApic {
    /// The domain; the table's first revision has 8 bits of it.
    pub const fn proximity_domain(&self) -> u32 {
        let [a, b, c] = self.domain_high;
        u32::from_le_bytes([self.domain_low, a, b, c])
    }
}

structure! {
    Memory {
        /// The domain.
        proximity_domain: u32, "Proximity Domain";
        /// Reserved.
        reserved1: u16, "Reserved";
        /// The first byte.
        base_address: u64, "Base Address";
        /// Bytes.
        length: u64, "Address Length";
        /// Reserved.
        reserved2: u32, "Reserved";
        /// Bit 0: enabled, 1: hot-pluggable, 2: non-volatile.
        flags: u32, "Flags";
        /// Reserved.
        reserved3: u64, "Reserved";
    }
}

structure! {
    /// A CPU by its local x2APIC.
    ProcessorX2Apic {
        /// Reserved.
        reserved1: u16, "Reserved";
        /// The domain.
        proximity_domain: u32, "Proximity Domain";
        /// Of the local x2APIC.
        x2apic_id: u32, "Apic ID";
        /// Bit 0: enabled.
        flags: u32, "Flags";
        /// CPUs of one clock domain have one clock.
        clock_domain: u32, "Clock Domain";
        /// Reserved.
        reserved2: u32, "Reserved";
    }
}

structure! {
    Gicc {
        /// The domain.
        proximity_domain: u32, "Proximity Domain";
        /// The number that ACPI has for the CPU.
        processor_uid: u32, "Acpi Processor UID";
        /// Bit 0: enabled.
        flags: u32, "Flags";
        /// CPUs of one clock domain have one clock.
        clock_domain: u32, "Clock Domain";
    }
}

structure! {
    /// An interrupt translation service of Arm's.
    GicIts {
        /// The domain.
        proximity_domain: u32, "Proximity Domain";
        /// Reserved.
        reserved: u16, "Reserved";
        /// Its number.
        its_id: u32, "ITS ID";
    }
}

structure! {
    /// A device that is not a CPU and has a domain: an initiator of its own, or a port behind which
    /// memory can be.
    GenericDevice {
        /// Reserved.
        reserved1: u8, "Reserved";
        /// 0: an ACPI name, 1: a PCI address.
        device_handle_type: u8, "Device Handle Type";
        /// The domain.
        proximity_domain: u32, "Proximity Domain";
        /// The device.
        device_handle: [u8; 16], "Device Handle";
        /// Bit 0: enabled, 1: architectural transactions.
        flags: u32, "Flags";
        /// Reserved.
        reserved2: u32, "Reserved";
    }
}

structure! {
    Rintc {
        /// Reserved.
        reserved: u16, "Reserved";
        /// The domain.
        proximity_domain: u32, "Proximity Domain";
        /// The number that ACPI has for the CPU.
        processor_uid: u32, "Acpi Processor UID";
        /// Bit 0: enabled.
        flags: u32, "Flags";
        /// CPUs of one clock domain have one clock.
        clock_domain: u32, "Clock Domain";
    }
}

entries! {
    /// A structure of the SRAT.
    SratEntry, Head::Short;
    /// A CPU by its APIC.
    0 ProcessorApic(ProcessorApic) "Processor Local APIC/SAPIC Affinity"
    /// Memory.
    1 Memory(Memory) "Memory Affinity"
    /// A CPU by its x2APIC.
    2 ProcessorX2Apic(ProcessorX2Apic) "Processor Local x2APIC Affinity"
    /// A CPU of Arm's.
    3 Gicc(Gicc) "GICC Affinity"
    /// An interrupt translation service.
    4 GicIts(GicIts) "GIC ITS Affinity"
    /// An initiator that is not a CPU.
    5 GenericInitiator(GenericDevice) "Generic Initiator Affinity"
    /// A port behind which memory can be.
    6 GenericPort(GenericDevice) "Generic Port Affinity"
    /// A CPU of RISC-V's.
    7 Rintc(Rintc) "RINTC Affinity"
}

impl SratEntry {
    /// The domain and the flags; `None` for a structure that is not understood. An interrupt
    /// translation service has no flags and counts always.
    pub const fn domain_and_flags(&self) -> Option<(u32, u32)> {
        Some(match self {
            Self::ProcessorApic(cpu) => (cpu.proximity_domain(), cpu.flags),
            Self::Memory(memory) => (memory.proximity_domain, memory.flags),
            Self::ProcessorX2Apic(cpu) => (cpu.proximity_domain, cpu.flags),
            Self::Gicc(cpu) => (cpu.proximity_domain, cpu.flags),
            Self::GicIts(its) => (its.proximity_domain, ENABLED),
            Self::GenericInitiator(device) | Self::GenericPort(device) => {
                (device.proximity_domain, device.flags)
            }
            Self::Rintc(cpu) => (cpu.proximity_domain, cpu.flags),
            Self::Unknown(..) => return None,
        })
    }
}
