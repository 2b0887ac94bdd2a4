//! The Heterogeneous Memory Attribute Table: latency, bandwidth, and caches before memory.
//!
//! # Source
//! ACPI 6.5, section 5.2.28; revision 1 of ACPI 6.2.

use super::layout::{Field, Head, Layout, Needs, entries, list, put_list, structure, take_list};
use super::table::Subtables;

/// The signature of the table.
pub const SIGNATURE: [u8; 4] = *b"HMAT";
/// A [`DomainAttributes`] names the initiator's domain.
pub const INITIATOR_VALID: u16 = 1;
/// A [`DomainAttributes`] of revision 1 names the memory's domain.
pub const MEMORY_VALID: u16 = 1 << 1;

/// The table.
pub type Hmat = Subtables<HmatFixed, HmatEntry>;

structure! {
    /// The fields before the first structure.
    HmatFixed {
        /// Reserved.
        reserved: u32, "Reserved";
    }
}

structure! {
    /// Which initiator a memory is attached to.
    DomainAttributes {
        /// Bit 0: the initiator's domain is valid, 1: the memory's (revision 1).
        flags: u16, "Flags";
        /// Reserved.
        reserved1: u16, "Reserved";
        /// The domain of the initiator.
        initiator_domain: u32, "Attached Initiator Proximity Domain";
        /// The domain of the memory.
        memory_domain: u32, "Memory Proximity Domain";
        /// Reserved.
        reserved2: u32, "Reserved";
        /// Reserved; in revision 1 the first byte of the range.
        reserved3: u64, "Reserved";
        /// Reserved; in revision 1 the bytes of the range.
        reserved4: u64, "Reserved";
    }
}

structure! {
    /// The first part of a [`Locality`].
    LocalityHead {
        /// Bits 3:0: the memory (0) or which of its caches.
        flags: u8, "Flags";
        /// The quantity of the entries: see [`DataType`].
        data_type: u8, "Data Type";
        /// The smallest transfer for which they hold, as a power of two.
        min_transfer_size: u8, "Min Transfer Size";
        /// Reserved.
        reserved1: u8, "Reserved";
        /// How many initiators there are.
        initiators: u32, "Initiator Proximity Domains #";
        /// How many targets there are.
        targets: u32, "Target Proximity Domains #";
        /// Reserved.
        reserved2: u32, "Reserved";
        /// The factor of an entry.
        base_unit: u64, "Entry Base Unit";
    }
}

/// The quantity of the entries of a [`Locality`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DataType {
    /// Latency of reads and of writes.
    AccessLatency,
    ReadLatency,
    WriteLatency,
    /// Bandwidth of reads and of writes.
    AccessBandwidth,
    ReadBandwidth,
    WriteBandwidth,
}

impl DataType {
    /// Every type, in the order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::AccessLatency,
        Self::ReadLatency,
        Self::WriteLatency,
        Self::AccessBandwidth,
        Self::ReadBandwidth,
        Self::WriteBandwidth,
    ];

    /// The type with this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Whether the quantity is a latency.
    pub const fn is_latency(self) -> bool {
        matches!(self, Self::AccessLatency | Self::ReadLatency | Self::WriteLatency)
    }

    /// Its name in the specification.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccessLatency => "Access Latency",
            Self::ReadLatency => "Read Latency",
            Self::WriteLatency => "Write Latency",
            Self::AccessBandwidth => "Access Bandwidth",
            Self::ReadBandwidth => "Read Bandwidth",
            Self::WriteBandwidth => "Write Bandwidth",
        }
    }
}

/// Latencies or bandwidths from initiators to targets.
///
/// # Shape
/// `entries`, initiator by initiator: one per target.
///
/// # Units
/// An entry times the base unit: picoseconds, or MB/s; in revision 1 a tenth of a nanosecond or of
/// a MB/s, as Linux reads it. 0 and 0xffff: not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locality {
    /// The fields of a fixed size. Its counts are those of the lists.
    pub head: LocalityHead,
    /// The domains of the initiators.
    pub initiators: Vec<u32>,
    /// The domains of the targets.
    pub targets: Vec<u32>,
    pub entries: Vec<u16>,
}

impl Locality {
    /// Entries of memory (not of a cache) to be written.
    pub fn new(data: DataType, base_unit: u64, domains: (Vec<u32>, Vec<u32>), entries: Vec<u16>) -> Self {
        let (initiators, targets) = domains;
        let head = LocalityHead {
            flags: 0,
            data_type: data as u8,
            min_transfer_size: 0,
            reserved1: 0,
            initiators: initiators.len() as u32,
            targets: targets.len() as u32,
            reserved2: 0,
            base_unit,
        };
        Self { head, initiators, targets, entries }
    }

    /// The entries as (initiator, target, entry), by their domains.
    pub fn cells(&self) -> impl Iterator<Item = (u32, u32, u16)> {
        let rows = self.entries.chunks(self.targets.len().max(1)).zip(&self.initiators);
        rows.flat_map(|(row, from)| row.iter().zip(&self.targets).map(move |(cell, to)| (*from, *to, *cell)))
    }
}

impl Layout for Locality {
    fn take(bytes: &mut &[u8]) -> Result<Self, Needs> {
        let head = LocalityHead::take(bytes)?;
        let (rows, columns) = (u64::from(head.initiators), u64::from(head.targets));
        let cells = rows.saturating_mul(columns);
        let lists = (rows + columns).saturating_mul(4).saturating_add(cells.saturating_mul(2));
        let needs = Needs(lists.saturating_add(LocalityHead::WIDTH as u64));
        if lists > bytes.len() as u64 {
            return Err(needs);
        }
        Ok(Self {
            initiators: take_list(rows, bytes).ok_or(needs)?,
            targets: take_list(columns, bytes).ok_or(needs)?,
            entries: take_list(cells, bytes).ok_or(needs)?,
            head,
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.head.put(out);
        put_list(&self.initiators, out);
        put_list(&self.targets, out);
        put_list(&self.entries, out);
    }

    fn fields(&self, offset: usize, out: &mut Vec<Field>) {
        self.head.fields(offset, out);
        let initiators = offset + LocalityHead::WIDTH;
        list("Initiator Proximity Domain List", &self.initiators, initiators, out);
        let targets = initiators + 4 * self.initiators.len();
        list("Target Proximity Domain List", &self.targets, targets, out);
        list("Entry", &self.entries, targets + 4 * self.targets.len(), out);
    }
}

structure! {
    /// The first part of a [`MemorySideCache`].
    MemorySideCacheHead {
        /// The domain of the memory.
        memory_domain: u32, "Memory Proximity Domain";
        /// Reserved.
        reserved1: u32, "Reserved";
        /// Bytes of the cache.
        size: u64, "Memory Side Cache Size";
        /// Levels in all, level, associativity and write policy, each in 4 bits; line size in 16.
        attributes: u32, "Cache Attributes";
        /// 1: the memory is extended by the cache. Reserved before ACPI 6.6.
        address_mode: u16, "Address Mode";
        /// How many handles there are.
        handles: u16, "SMBIOS Handle #";
    }
}

/// A cache in front of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemorySideCache {
    /// The fields of a fixed size. Its count is that of the list.
    pub head: MemorySideCacheHead,
    /// Of the SMBIOS, what the cache is made of.
    pub handles: Vec<u16>,
}

impl MemorySideCache {
    /// Its level; 1 is nearest to the memory's users.
    pub const fn level(&self) -> u8 {
        (self.head.attributes >> 4 & 0xf) as u8
    }

    /// 0 none, 1 direct mapped, 2 complex.
    pub const fn associativity(&self) -> u8 {
        (self.head.attributes >> 8 & 0xf) as u8
    }

    /// 0 none, 1 write back, 2 write through.
    pub const fn write_policy(&self) -> u8 {
        (self.head.attributes >> 12 & 0xf) as u8
    }

    /// Bytes per line.
    pub const fn line_size(&self) -> u16 {
        (self.head.attributes >> 16) as u16
    }
}

impl Layout for MemorySideCache {
    fn take(bytes: &mut &[u8]) -> Result<Self, Needs> {
        let head = MemorySideCacheHead::take(bytes)?;
        let count = u64::from(head.handles);
        let needs = Needs(MemorySideCacheHead::WIDTH as u64 + 2 * count);
        Ok(Self { handles: take_list(count, bytes).ok_or(needs)?, head })
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.head.put(out);
        put_list(&self.handles, out);
    }

    fn fields(&self, offset: usize, out: &mut Vec<Field>) {
        self.head.fields(offset, out);
        list("SMBIOS Handle", &self.handles, offset + MemorySideCacheHead::WIDTH, out);
    }
}

entries! {
    /// A structure of the HMAT.
    HmatEntry, Head::Long;
    /// Which initiator a memory is attached to.
    0 DomainAttributes(DomainAttributes) "Memory Proximity Domain Attributes"
    /// Latencies or bandwidths.
    1 Locality(Locality) "System Locality Latency and Bandwidth Information"
    /// A cache in front of memory.
    2 MemorySideCache(MemorySideCache) "Memory Side Cache Information"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_the_bytes_cannot_hold_are_refused() {
        let mut bytes = Vec::new();
        Locality::new(DataType::ReadLatency, 1, (vec![0], vec![0, 1]), vec![5, 6]).put(&mut bytes);
        assert!(Locality::take(&mut &bytes[..]).is_ok());
        bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        bytes[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(Locality::take(&mut &bytes[..]).is_err());
    }

    #[test]
    fn cells_are_named_by_their_domains() {
        let locality = Locality::new(DataType::ReadLatency, 1, (vec![7], vec![3, 9]), vec![5, 6]);
        assert_eq!(locality.cells().collect::<Vec<_>>(), [(7, 3, 5), (7, 9, 6)]);
        let empty = Locality::new(DataType::ReadLatency, 1, (vec![7], vec![]), vec![]);
        assert_eq!(empty.cells().count(), 0);
    }
}
