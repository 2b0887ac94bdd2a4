//! The Maximum System Characteristics Table: how far the machine can grow.
//!
//! # Source
//! ACPI 6.5, section 5.2.19. Linux does not read it.

use super::layout::{Head, entries, structure};
use super::table::Subtables;

/// The signature of the table.
pub const SIGNATURE: [u8; 4] = *b"MSCT";

/// The table. Its structures have a revision where those of other tables have a type.
pub type Msct = Subtables<MsctFixed, MsctEntry>;

structure! {
    /// The fields before the first structure.
    MsctFixed {
        /// Bytes from the start of the table to the first structure.
        proximity_offset: u32, "Proximity Offset";
        /// The largest number of domains, less one.
        max_proximity_domains: u32, "Max Proximity Domains";
        /// The largest number of clock domains, less one.
        max_clock_domains: u32, "Max Clock Domains";
        /// The largest address that memory can have.
        max_physical_address: u64, "Max Physical Address";
    }
}

structure! {
    /// The most that domains can hold.
    DomainMaximum {
        /// The first domain.
        first: u32, "Domain Range Start";
        /// The last.
        last: u32, "Domain Range End";
        /// CPUs of each; 0: none.
        processors: u32, "Processor Capacity";
        /// Bytes of memory of each; 0: none.
        memory: u64, "Memory Capacity";
    }
}

entries! {
    /// A structure of the MSCT.
    MsctEntry, Head::Short;
    /// The most that domains can hold, in the first revision.
    1 DomainMaximum(DomainMaximum) "Maximum Proximity Domain Information"
}
