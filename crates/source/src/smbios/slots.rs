//! Structures to memory slots.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::memory_slot::locator::place::Board;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, MemoryModule, MemorySlot, SlotState};

use super::structure::{Ending, Structure, walk};
use super::{Slots, SmbiosProblem};

/// Types of structures that are read.
pub const SYSTEM: u8 = 1;
pub const PROCESSOR: u8 = 4;
pub const ARRAY: u8 = 16;
pub const DEVICE: u8 = 17;
pub const ARRAY_RANGE: u8 = 19;
pub const DEVICE_RANGE: u8 = 20;
/// The status of a processor, and its bit for a socket that has one.
pub(super) const STATUS: usize = 0x18;
const POPULATED: u8 = 1 << 6;
/// Most slots that are kept: 32 sockets with 48 each.
const MOST_SLOTS: usize = 1536;
/// Most ranges that are kept: some firmware has several for each module.
const MOST_RANGES: usize = 8 * MOST_SLOTS;
/// Ranges of an array or a module: an array with several has one for each hole between them.
const MOST_RANGES_OF_HANDLE: usize = 64;

/// Sockets that are kept.
const MOST_SOCKETS: usize = 256;
/// The range that some firmware has for slots without a module: zeros, which stand for the first KiB.
pub(crate) const NO_RANGE: (u64, u64) = (0, 1 << 10);

/// Words for kinds of memory, from 1 (type 17, byte 0x12).
pub(crate) const TYPES: [&str; 36] = [
    "Other",
    "Unknown",
    "DRAM",
    "EDRAM",
    "VRAM",
    "SRAM",
    "RAM",
    "ROM",
    "Flash",
    "EEPROM",
    "FEPROM",
    "EPROM",
    "CDRAM",
    "3DRAM",
    "SDRAM",
    "SGRAM",
    "RDRAM",
    "DDR",
    "DDR2",
    "DDR2 FB-DIMM",
    "Unknown",
    "Unknown",
    "Unknown",
    "DDR3",
    "FBD2",
    "DDR4",
    "LPDDR",
    "LPDDR2",
    "LPDDR3",
    "LPDDR4",
    "Logical non-volatile device",
    "HBM",
    "HBM2",
    "DDR5",
    "LPDDR5",
    "HBM3",
];
/// Words for shapes, from 1 (byte 0x0e).
const FORMS: [&str; 17] = [
    "Other",
    "Unknown",
    "SIMM",
    "SIP",
    "Chip",
    "DIP",
    "ZIP",
    "Proprietary Card",
    "DIMM",
    "TSOP",
    "Row Of Chips",
    "RIMM",
    "SODIMM",
    "SRIMM",
    "FB-DIMM",
    "Die",
    "CAMM",
];
/// Words for technologies, from 1 (byte 0x28).
const TECHNOLOGIES: [&str; 8] = [
    "Other",
    "Unknown",
    "DRAM",
    "NVDIMM-N",
    "NVDIMM-F",
    "NVDIMM-P",
    "Intel Optane persistent memory",
    "MRDIMM",
];
/// Texts with which firmware, and dmidecode, say that they do not know.
const NOTHING: [&str; 10] = [
    "not specified",
    "unknown",
    "not available",
    "undefined",
    "no dimm",
    "n/a",
    "none",
    "other",
    "<bad index>",
    "<out of spec>",
];

/// A text, unless it says that nothing is known.
pub(crate) fn known(text: &str) -> Option<String> {
    let text = text.trim();
    let is_nothing = text.is_empty() || NOTHING.iter().any(|word| text.eq_ignore_ascii_case(word));
    (!is_nothing).then(|| text.to_owned())
}

/// Structures as they are read, from a table or from dmidecode's text.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) vendor: Option<String>,
    /// Sockets for processors, in the order of the firmware.
    pub(crate) sockets: Vec<Socket>,
    /// Whether an array is system memory, by handle; `None` where it does not say.
    pub(crate) arrays: BTreeMap<u16, Option<bool>>,
    pub(crate) devices: Vec<Device>,
    /// Ranges by the handle of a device, and by that of an array.
    pub(crate) device_ranges: Vec<(u16, (u64, u64))>,
    pub(crate) array_ranges: Vec<(u16, (u64, u64))>,
}

/// A socket for a processor.
#[derive(Debug, Default)]
pub(crate) struct Socket {
    pub(crate) name: Option<String>,
    pub(crate) is_populated: Option<bool>,
}

/// A memory device, and what it refers to.
#[derive(Debug, Default)]
pub(crate) struct Device {
    pub(crate) handle: Option<u16>,
    pub(crate) array: Option<u16>,
    pub(crate) slot: MemorySlot,
}

impl Records {
    /// Adds a device, unless there are too many.
    pub(crate) fn add(&mut self, device: Device) {
        if self.devices.len() < MOST_SLOTS {
            self.devices.push(device);
        }
    }

    /// Adds a socket, unless there are too many.
    pub(crate) fn add_socket(&mut self, socket: Socket) {
        if self.sockets.len() < MOST_SOCKETS {
            self.sockets.push(socket);
        }
    }

    pub(crate) fn add_range(&mut self, is_device: bool, handle: u16, range: (u64, u64)) {
        let ranges = if is_device { &mut self.device_ranges } else { &mut self.array_ranges };
        if ranges.len() < MOST_RANGES {
            ranges.push((handle, range));
        }
    }

    /// The slots of system memory: not those of the firmware's own flash memory.
    pub(crate) fn finish(self) -> Slots {
        let Self { vendor, sockets, arrays, devices, device_ranges, array_ranges } = self;
        let by_handle = |ranges: Vec<(u16, (u64, u64))>| {
            let mut map: BTreeMap<u16, Vec<(u64, u64)>> = BTreeMap::new();
            ranges.into_iter().for_each(|(handle, range)| {
                let of_handle = map.entry(handle).or_default();
                if of_handle.len() < MOST_RANGES_OF_HANDLE {
                    of_handle.push(range);
                }
            });
            map
        };
        let (device_ranges, array_ranges) = (by_handle(device_ranges), by_handle(array_ranges));
        let is_memory = |device: &Device| {
            let array = device.array.and_then(|array| *arrays.get(&array)?);
            let module = device.slot.module();
            array != Some(false)
                && module.and_then(|module| module.memory_type.as_deref()).is_none_or(|kind| kind != "Flash")
        };
        let mut slots = Slots {
            board: Board {
                vendor,
                sockets: (!sockets.is_empty()).then_some(sockets.len()),
                processors: in_order(sockets).into_iter().map(|socket| socket.is_populated).collect(),
                ..Board::default()
            },
            ..Slots::default()
        };
        for device in devices.into_iter().filter(is_memory) {
            let own = device.handle.and_then(|handle| device_ranges.get(&handle));
            let ranges = own.or_else(|| array_ranges.get(&device.array?));
            // Some firmware repeats an address of the slot before it.
            let ranges = ranges.filter(|_| device.slot.state != SlotState::Empty);
            slots.ranges.push(ranges.cloned().unwrap_or_default());
            slots.board.arrays.push(device.array);
            slots.slots.push(device.slot);
        }
        slots
    }
}

/// Sockets by the numbers at the end of their names, where each has its own.
fn in_order(mut sockets: Vec<Socket>) -> Vec<Socket> {
    let number = |socket: &Socket| {
        let name = socket.name.as_deref()?;
        let digits = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        name[digits..].parse::<u32>().ok()
    };
    let numbers: Option<BTreeSet<u32>> = sockets.iter().map(number).collect();
    if numbers.is_some_and(|numbers| numbers.len() == sockets.len()) {
        sockets.order_by_key(number);
    }
    sockets
}

/// Reads the slots of a table, and what is wrong with it.
pub fn decode(table: &[u8], ending: Ending) -> (Slots, Vec<SmbiosProblem>) {
    let mut records = Records::default();
    let problems = read(table, ending, &mut records);
    (records.finish(), problems)
}

/// Adds the structures of a table.
pub(crate) fn read(table: &[u8], ending: Ending, records: &mut Records) -> Vec<SmbiosProblem> {
    let mut found = walk(table, ending);
    for one in std::mem::take(&mut found.all) {
        if let Err(text) = add(&one, records) {
            found.problem(one.offset, text);
        }
    }
    let mut problems = found.problems;
    if found.others > 0 {
        problems.push(SmbiosProblem { offset: 0, text: format!("{} more faults", found.others) });
    }
    problems
}

fn add(one: &Structure<'_>, records: &mut Records) -> Result<(), String> {
    match one.kind {
        SYSTEM => records.vendor = one.string(4)?.as_deref().and_then(known),
        // A central processor, or one that does not say: not those for mathematics, signals and video.
        PROCESSOR if one.byte(5).is_none_or(|kind| !matches!(kind, 4..=6)) => {
            let is_populated = one.byte(STATUS).map(|status| status & POPULATED != 0);
            records.add_socket(Socket { name: one.string(4)?.as_deref().and_then(known), is_populated });
        }
        ARRAY => {
            let usage = one.byte(5).filter(|usage| *usage > 2);
            records.arrays.insert(one.handle, usage.map(|usage| usage == 3));
        }
        DEVICE => {
            let (slot, problem) = device(one);
            records.add(Device { handle: Some(one.handle), array: one.word(4), slot });
            problem?;
        }
        ARRAY_RANGE => {
            if let Some(range) = range(one, 0x0f)? {
                records.add_range(false, one.word(0x0c).unwrap_or(u16::MAX), range);
            }
        }
        DEVICE_RANGE => {
            if let Some(range) = range(one, 0x13)? {
                records.add_range(true, one.word(0x0c).unwrap_or(u16::MAX), range);
            }
        }
        _ => {}
    }
    Ok(())
}

/// A range of KiB, or where these do not hold it, of bytes further behind.
fn range(one: &Structure<'_>, extended: usize) -> Result<Option<(u64, u64)>, String> {
    let (Some(start), Some(end)) = (one.double(4), one.double(8)) else {
        return Err(format!("type {} has length {}: expected 15 or more", one.kind, one.area.len()));
    };
    // Zeros are those of [`NO_RANGE`].
    if (start, end) == (0, 0) {
        return Ok(None);
    }
    let range = if start == u32::MAX {
        one.quad(extended).zip(one.quad(extended + 8)).map(|(start, last)| (start, last.saturating_add(1)))
    } else {
        Some((u64::from(start) << 10, (u64::from(end) + 1) << 10))
    };
    match range {
        Some((start, end)) if start >= end => {
            Err(format!("type {} ends at {end:#x}, before its start at {start:#x}", one.kind))
        }
        range => Ok(range),
    }
}

/// A slot, and the first thing that is wrong with it.
fn device(one: &Structure<'_>) -> (MemorySlot, Result<(), String>) {
    let mut problem = Ok(());
    let mut string = |at: usize| match one.string(at) {
        Ok(text) => text.as_deref().and_then(known),
        Err(error) => {
            if problem.is_ok() {
                problem = Err(error);
            }
            None
        }
    };
    let (locator, bank) = (string(0x10), string(0x11));
    let (manufacturer, part_number) = (string(0x17), string(0x1a));
    if one.area.len() < 0x0e {
        problem = Err(format!("type 17 has length {}: expected 21 or more", one.area.len()));
    }
    let word = |words: &[&str], at: usize| {
        let place = usize::from(one.byte(at)?).checked_sub(1)?;
        known(words.get(place)?)
    };
    let width = |at: usize| one.word(at).filter(|bits| !matches!(*bits, 0 | u16::MAX)).map(u32::from);
    let module = |size| MemoryModule {
        size,
        memory_type: word(&TYPES, 0x12),
        form_factor: word(&FORMS, 0x0e),
        technology: word(&TECHNOLOGIES, 0x28),
        max_speed_mt_per_s: speed(one, 0x15, 0x54),
        configured_speed_mt_per_s: speed(one, 0x20, 0x58),
        ranks: one.byte(0x1b).map(|ranks| u32::from(ranks & 15)).filter(|ranks| *ranks > 0),
        data_width_bits: width(0x0a),
        total_width_bits: width(0x08),
        manufacturer,
        part_number,
    };
    let state = match one.word(0x0c) {
        None => SlotState::Unknown,
        Some(0) => SlotState::Empty,
        Some(u16::MAX) => SlotState::Installed(module(None)),
        Some(0x7fff) => {
            let mib = one.double(0x1c).map(|mib| mib & 0x7fff_ffff).filter(|mib| *mib > 0);
            if mib.is_none() && problem.is_ok() {
                problem = Err("type 17 has no extended size, which its size refers to".to_owned());
            }
            SlotState::Installed(module(mib.map(|mib| Bytes::from_mib(mib.into()))))
        }
        Some(size) if size & 0x8000 != 0 => {
            let kib = Some(u64::from(size & 0x7fff)).filter(|kib| *kib > 0);
            SlotState::Installed(module(kib.map(Bytes::from_kib)))
        }
        Some(size) => SlotState::Installed(module(Some(Bytes::from_mib(size.into())))),
    };
    (MemorySlot { locator, bank, state, ..MemorySlot::default() }, problem)
}

/// A speed; 0 is one that is not known, 0xffff refers to the extended one (SMBIOS 3.3).
fn speed(one: &Structure<'_>, at: usize, extended: usize) -> Option<u32> {
    let speed = match one.word(at)? {
        u16::MAX => one.double(extended)? & 0x7fff_ffff,
        speed => speed.into(),
    };
    (speed > 0).then_some(speed)
}

#[cfg(test)]
mod tests;
