//! Tables as a whole: their header, and those that are a list of structures.

use super::layout::{Entries, Field, Layout, structure};
use super::{Cedt, FirmwareFinding, Hmat, Madt, Msct, Slit, Srat};

structure! {
    /// The header of every table.
    TableHeader {
        /// Which table it is, in four letters.
        signature: [u8; 4], "Signature";
        /// Bytes of the whole table.
        length: u32, "Length";
        /// Of the table's form.
        revision: u8, "Revision";
        /// Makes the sum of all bytes a multiple of 256.
        checksum: u8, "Checksum";
        /// The maker.
        oem_id: [u8; 6], "OEM ID";
        /// The maker's name for the table.
        oem_table_id: [u8; 8], "OEM Table ID";
        /// The maker's number of the table.
        oem_revision: u32, "OEM Revision";
        /// The maker of the program that wrote the table.
        creator_id: [u8; 4], "Creator ID";
        /// The number of that program.
        creator_revision: u32, "Creator Revision";
    }
}

impl TableHeader {
    /// The header of a table that nodewise writes. Length and checksum are set when it is written.
    pub const fn new(signature: [u8; 4], revision: u8) -> Self {
        Self {
            signature,
            length: 0,
            revision,
            checksum: 0,
            oem_id: *b"NODEWI",
            oem_table_id: *b"NODEWISE",
            oem_revision: 1,
            creator_id: *b"NDWS",
            creator_revision: 1,
        }
    }

    /// The signature as text; bytes that are not letters are replaced.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.signature).into_owned()
    }
}

/// A structure in a table: where it lies, what it says, and what a later specification may have
/// added to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<E> {
    /// Bytes from the start of the table to its head. Not used for writing.
    pub offset: usize,
    /// The reserved field in its head, where there is one.
    pub reserved: u16,
    pub body: E,
    /// Bytes that its length has more than its fields.
    pub extra: Vec<u8>,
}

impl<E: Entries> Entry<E> {
    /// A structure to be written.
    pub const fn new(body: E) -> Self {
        Self { offset: 0, reserved: 0, body, extra: Vec::new() }
    }

    /// Its fields, with their offsets in the table; without those of its head.
    pub fn fields(&self) -> Vec<Field> {
        let mut fields = Vec::new();
        self.body.fields(self.offset + E::HEAD.width(), &mut fields);
        fields
    }
}

/// A table that is a list of structures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subtables<H, E> {
    pub header: TableHeader,
    /// The fields before the first structure.
    pub fixed: H,
    pub entries: Vec<Entry<E>>,
    /// Bytes at the end that cannot be taken apart.
    pub rest: Vec<u8>,
}

impl<H: Layout, E: Entries> Subtables<H, E> {
    /// A table to be written.
    pub fn new(header: TableHeader, fixed: H, bodies: impl IntoIterator<Item = E>) -> Self {
        let entries = bodies.into_iter().map(Entry::new).collect();
        Self { header, fixed, entries, rest: Vec::new() }
    }

    /// The structures without what surrounds them.
    pub fn bodies(&self) -> impl Iterator<Item = &E> {
        self.entries.iter().map(|entry| &entry.body)
    }
}

/// A table that nodewise does not take apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    pub header: TableHeader,
    pub bytes: Vec<u8>,
}

/// A table of the firmware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Table {
    /// Which CPUs, memory and devices are near to one another.
    Srat(Srat),
    Slit(Slit),
    /// Latency, bandwidth, and caches before memory.
    Hmat(Hmat),
    Cedt(Cedt),
    /// How far the machine can grow.
    Msct(Msct),
    /// Interrupt controllers, and with them the CPUs.
    Madt(Madt),
    Other(Other),
}

impl Table {
    /// Its header.
    pub const fn header(&self) -> &TableHeader {
        match self {
            Self::Srat(table) => &table.header,
            Self::Slit(table) => &table.header,
            Self::Hmat(table) => &table.header,
            Self::Cedt(table) => &table.header,
            Self::Msct(table) => &table.header,
            Self::Madt(table) => &table.header,
            Self::Other(table) => &table.header,
        }
    }
}

/// The tables of a machine, and what is wrong with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// The tables, in the order in which they were found; of two of a kind the first is the one
    /// that counts.
    pub tables: Vec<Table>,
    pub findings: Vec<FirmwareFinding>,
}

macro_rules! first {
    ($($(#[$doc:meta])* $name:ident $variant:ident)*) => {
        impl Tables {
            $(
                $(#[$doc])*
                pub fn $name(&self) -> Option<&$variant> {
                    self.tables.iter().find_map(|table| match table {
                        Table::$variant(table) => Some(table),
                        _ => None,
                    })
                }
            )*
        }
    };
}

first! {
    /// The first SRAT.
    srat Srat
    /// The first SLIT.
    slit Slit
    /// The first HMAT.
    hmat Hmat
    /// The first CEDT.
    cedt Cedt
    /// The first MSCT.
    msct Msct
    /// The first MADT.
    madt Madt
}
