//! The CXL Early Discovery Table: host bridges, and the windows of physical addresses behind which
//! CXL memory can be.
//!
//! # Source
//! CXL 3.1, section 9.18.1.

use super::layout::{Field, Head, Layout, Needs, entries, list, put_list, structure, take_list};
use super::table::Subtables;

/// The signature of the table.
pub const SIGNATURE: [u8; 4] = *b"CEDT";
/// The number of ways by a window's encoded number, from 0 on; from 8 on it is 3, 6 and 12.
const WAYS: [u8; 5] = [1, 2, 4, 8, 16];

/// The table.
pub type Cedt = Subtables<(), CedtEntry>;

structure! {
    /// A host bridge (CHBS).
    HostBridge {
        /// The number that ACPI has for the bridge.
        uid: u32, "Associated host bridge";
        /// 0: CXL 1.1, 1: CXL 2.0 or later.
        version: u32, "Specification version";
        /// Reserved.
        reserved: u32, "Reserved";
        /// Of its registers: the first byte.
        base: u64, "Register base";
        /// Of its registers: bytes.
        length: u64, "Register length";
    }
}

structure! {
    /// The first part of a [`FixedWindow`].
    FixedWindowHead {
        /// Reserved.
        reserved1: u32, "Reserved";
        /// The first byte.
        base_hpa: u64, "Window base address";
        /// Bytes.
        window_size: u64, "Window size";
        /// Over how many bridges it is interleaved, encoded.
        interleave_ways: u8, "Interleave Members (2^n)";
        /// 0: modulo, 1: with XOR.
        arithmetic: u8, "Interleave Arithmetic";
        /// Reserved.
        reserved2: u16, "Reserved";
        /// How much each bridge takes in its turn, encoded.
        granularity: u32, "Granularity";
        /// The memory that may be mapped: bit 0 type 2, 1 type 3, 2 volatile, 3 persistent, 4 fixed.
        restrictions: u16, "Restrictions";
        /// The class of quality of service.
        qtg_id: u16, "QtgId";
    }
}

/// A window of physical addresses (CFMWS).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    /// The fields of a fixed size.
    pub head: FixedWindowHead,
    /// The bridges in their order.
    pub targets: Vec<u32>,
}

impl FixedWindow {
    /// How many bridges the window is interleaved over; `None` for a code that is not defined.
    pub fn ways(&self) -> Option<u8> {
        let code = self.head.interleave_ways;
        WAYS.get(usize::from(code)).copied().or(match code {
            8 => Some(3),
            9 => Some(6),
            10 => Some(12),
            _ => None,
        })
    }

    /// The first byte behind it; `None` when that lies beyond all addresses.
    pub const fn end(&self) -> Option<u64> {
        self.head.base_hpa.checked_add(self.head.window_size)
    }
}

impl Layout for FixedWindow {
    fn take(bytes: &mut &[u8]) -> Result<Self, Needs> {
        let head = FixedWindowHead::take(bytes)?;
        let mut window = Self { head, targets: Vec::new() };
        // A code that is not defined says nothing of how long the list is: then it is all there is.
        let count = window.ways().map_or(bytes.len() as u64 / 4, u64::from);
        let needs = Needs(FixedWindowHead::WIDTH as u64 + 4 * count);
        window.targets = take_list(count, bytes).ok_or(needs)?;
        Ok(window)
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.head.put(out);
        put_list(&self.targets, out);
    }

    fn fields(&self, offset: usize, out: &mut Vec<Field>) {
        self.head.fields(offset, out);
        list("Interleave target", &self.targets, offset + FixedWindowHead::WIDTH, out);
    }
}

structure! {
    /// The first part of an [`InterleaveMath`].
    InterleaveMathHead {
        /// Reserved.
        reserved: u16, "Reserved";
        /// The granularity for which it holds, encoded.
        granularity: u8, "Host Bridge Interleave Granularity";
        /// How many bitmaps there are.
        bitmaps: u8, "Bitmap #";
    }
}

/// How XOR chooses the bridge of an address (CXIMS).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterleaveMath {
    /// The fields of a fixed size. Its count is that of the list.
    pub head: InterleaveMathHead,
    /// Bits of the address whose XOR is a bit of the bridge's place.
    pub bitmaps: Vec<u64>,
}

impl Layout for InterleaveMath {
    fn take(bytes: &mut &[u8]) -> Result<Self, Needs> {
        let head = InterleaveMathHead::take(bytes)?;
        let count = u64::from(head.bitmaps);
        let needs = Needs(InterleaveMathHead::WIDTH as u64 + 8 * count);
        Ok(Self { bitmaps: take_list(count, bytes).ok_or(needs)?, head })
    }

    fn put(&self, out: &mut Vec<u8>) {
        self.head.put(out);
        put_list(&self.bitmaps, out);
    }

    fn fields(&self, offset: usize, out: &mut Vec<Field>) {
        self.head.fields(offset, out);
        list("Bitmap", &self.bitmaps, offset + InterleaveMathHead::WIDTH, out);
    }
}

structure! {
    /// Where the registers of a root complex's downstream port are (RDPAS).
    DownstreamPort {
        /// The PCI segment.
        segment: u16, "Segment Number";
        /// Bus, device and function.
        bdf: u16, "BDF";
        /// 0: CXL.io, 1: CXL.cache and CXL.mem.
        protocol: u8, "Protocol Type";
        /// Of its registers: the first byte.
        base: u64, "Base Address";
    }
}

entries! {
    /// A structure of the CEDT.
    CedtEntry, Head::Middle;
    /// A host bridge.
    0 HostBridge(HostBridge) "CXL Host Bridge Structure"
    /// A window of addresses.
    1 FixedWindow(FixedWindow) "CXL Fixed Memory Window Structure"
    /// How XOR chooses the bridge of an address.
    2 InterleaveMath(InterleaveMath) "CXL XOR Interleave Math Structure"
    /// The registers of a downstream port.
    3 DownstreamPort(DownstreamPort) "RCEC Downstream Port Association Structure"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_powers_of_two_and_their_threefold() {
        let window = |code| FixedWindow {
            head: FixedWindowHead {
                reserved1: 0,
                base_hpa: 1 << 40,
                window_size: u64::MAX,
                interleave_ways: code,
                arithmetic: 0,
                reserved2: 0,
                granularity: 0,
                restrictions: 0,
                qtg_id: 0,
            },
            targets: Vec::new(),
        };
        for (code, ways) in
            [(0, Some(1)), (4, Some(16)), (5, None), (8, Some(3)), (10, Some(12)), (11, None), (255, None)]
        {
            assert_eq!(window(code).ways(), ways, "{code}");
        }
        assert_eq!(window(0).end(), None);
    }
}
