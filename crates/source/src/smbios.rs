//! SMBIOS tables (DMI): memory slots and the modules in them.
//!
//! # Source
//! DSP0134 (System Management BIOS Reference Specification), 2.1 to 3.7. Linux 4.2 shows the table as
//! `/sys/firmware/dmi/tables/DMI` with its entry point beside it, and since Linux 3.9 each structure as
//! `/sys/firmware/dmi/entries/TYPE-N/raw`; all of them to root only.

pub mod blank;
pub mod entry;
pub mod files;
pub mod saved;
pub mod slots;
pub mod structure;

use nodewise_machine::MemorySlot;
use nodewise_machine::memory_slot::locator::place::Board;

/// Something wrong in a table: where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmbiosProblem {
    /// The first byte of the structure, or of the table.
    pub offset: usize,
    pub text: String,
}

impl std::fmt::Display for SmbiosProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at {:#x}: {}", self.offset, self.text)
    }
}

/// Memory slots as the firmware lists them, without the nodes they belong to.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Slots {
    pub slots: Vec<MemorySlot>,
    /// The facts that decide about nodes; its nodes are not known here.
    pub board: Board,
    /// For each slot its address ranges, each with the first byte behind it (types 19 and 20).
    pub ranges: Vec<Vec<(u64, u64)>>,
}
