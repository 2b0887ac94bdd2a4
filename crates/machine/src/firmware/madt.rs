//! The Multiple APIC Description Table, as far as it names CPUs: the kernel numbers them by it.
//!
//! # Source
//! ACPI 6.5, section 5.2.12.

use super::layout::{Head, entries, structure};
use super::table::Subtables;

/// The signature of the table.
pub const SIGNATURE: [u8; 4] = *b"APIC";
/// A CPU whose flags have this bit is there.
pub const ENABLED: u32 = 1;
/// A CPU that is not enabled and has this bit can be added while the system runs.
pub const ONLINE_CAPABLE: u32 = 1 << 1;

/// The table.
pub type Madt = Subtables<MadtFixed, MadtEntry>;

structure! {
    /// The fields before the first structure.
    MadtFixed {
        /// Of the local APICs.
        local_apic_address: u32, "Local Apic Address";
        /// Bit 0: there are 8259s too.
        flags: u32, "Flags";
    }
}

structure! {
    /// A CPU by its local APIC.
    LocalApic {
        /// The number that ACPI has for the CPU.
        processor_uid: u8, "Processor ID";
        /// Of the local APIC.
        apic_id: u8, "Local Apic ID";
        /// Bit 0: enabled, 1: online capable.
        flags: u32, "Flags";
    }
}

structure! {
    /// A CPU by its local x2APIC.
    LocalX2Apic {
        /// Reserved.
        reserved: u16, "Reserved";
        /// Of the local x2APIC.
        x2apic_id: u32, "Processor x2Apic ID";
        /// Bit 0: enabled, 1: online capable.
        flags: u32, "Flags";
        /// The number that ACPI has for the CPU.
        processor_uid: u32, "Processor UID";
    }
}

structure! {
    /// A CPU of Arm's, up to what names it; what follows is kept as bytes.
    Gicc {
        /// Reserved.
        reserved: u16, "Reserved";
        /// Of the interrupt interface.
        interface_number: u32, "CPU Interface Number";
        /// The number that ACPI has for the CPU.
        processor_uid: u32, "Processor UID";
        /// Bit 0: enabled, 3: online capable.
        flags: u32, "Flags";
    }
}

entries! {
    /// A structure of the MADT.
    MadtEntry, Head::Short;
    /// A CPU by its APIC.
    0 LocalApic(LocalApic) "Processor Local APIC"
    /// A CPU by its x2APIC.
    9 LocalX2Apic(LocalX2Apic) "Processor Local x2APIC"
    /// A CPU of Arm's.
    11 Gicc(Gicc) "Generic Interrupt Controller"
}
