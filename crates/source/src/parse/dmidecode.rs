//! The text that dmidecode(8) prints: memory slots.
//!
//! ```text
//! Handle 0x1100, DMI type 17, 34 bytes
//! Memory Device
//!         Array Handle: 0x1000
//!         Size: 4096 MB
//!         Locator: DIMM_A1
//! ```
//!
//! # Source
//! dmidecode 2.12 to 3.6; with `-q` there are no lines `Handle`, so that the titles count. Other structures
//! are passed over.

use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, MemoryModule, MemorySlot, SlotState};

use super::number::hex_digits;
use super::{Parsed, Problems, lines};
use crate::smbios::Slots;
use crate::smbios::slots::{Device, NO_RANGE, Records, Socket, known};

/// Fields of a structure: the longest has some forty.
const MOST_FIELDS: usize = 256;
/// Titles of the structures that are read.
const TITLES: [&str; 6] = [
    "System Information",
    "Processor Information",
    "Physical Memory Array",
    "Memory Device",
    "Memory Array Mapped Address",
    "Memory Device Mapped Address",
];

/// Types of processors that have no memory.
const OTHER_PROCESSORS: [&str; 3] = ["Math Processor", "DSP Processor", "Video Processor"];

/// A structure as it is read: its handle, its title, and its fields with their lines.
#[derive(Default)]
struct Block<'t> {
    handle: Option<u16>,
    title: Option<&'t str>,
    fields: Vec<(u32, &'t str, &'t str)>,
}

/// Whether a text looks as if dmidecode had written it.
pub fn is_dmidecode(text: &str) -> bool {
    let is_line = |line: &str| {
        let line = line.trim();
        line.starts_with("# dmidecode ") || handle_line(line).is_some() || TITLES[2..4].contains(&line)
    };
    text.lines().take(2000).any(is_line)
}

/// Reads the slots.
pub fn parse(text: &str) -> Parsed<Slots> {
    let (mut records, mut problems) = (Records::default(), Problems::default());
    let mut block = Block::default();
    for (number, line) in lines(text) {
        let trimmed = line.trim();
        if let Some(handle) = handle_line(trimmed) {
            std::mem::take(&mut block).add(&mut records, &mut problems);
            block.handle = handle;
        } else if TITLES.contains(&trimmed) {
            if block.title.is_some() {
                std::mem::take(&mut block).add(&mut records, &mut problems);
            }
            block.title = Some(trimmed);
        } else if trimmed.is_empty() {
            std::mem::take(&mut block).add(&mut records, &mut problems);
        } else if let Some((key, value)) = trimmed.split_once(':').filter(|_| block.title.is_some()) {
            if block.fields.len() < MOST_FIELDS {
                block.fields.push((number, key.trim_end(), value.trim()));
            }
        }
    }
    block.add(&mut records, &mut problems);
    Parsed { value: records.finish(), problems }
}

/// The handle in a line such as `Handle 0x1100, DMI type 17, 34 bytes`; `Some(None)` where it is not a number.
fn handle_line(line: &str) -> Option<Option<u16>> {
    let (handle, rest) = line.strip_prefix("Handle 0x")?.split_once(',')?;
    rest.trim_start().starts_with("DMI type ").then(|| handle_of(handle))
}

fn handle_of(digits: &str) -> Option<u16> {
    u16::try_from(hex_digits(digits)?).ok()
}

impl<'t> Block<'t> {
    fn field(&self, names: &[&str]) -> Option<(u32, &'t str)> {
        let field = self.fields.iter().find(|(_, key, _)| names.contains(key))?;
        Some((field.0, field.2))
    }

    fn text(&self, name: &str) -> Option<String> {
        known(self.field(&[name])?.1)
    }

    /// The number at the start of a field; `None` for one that is not known, and for one that does not parse.
    fn number(&self, names: &[&str], expected: &str, problems: &mut Problems) -> Option<u32> {
        let (line, value) = self.field(names)?;
        known(value)?;
        let number = value.split(' ').next().and_then(|word| word.parse().ok());
        if number.is_none() {
            problems.add(line, expected, value);
        }
        number.filter(|number| *number > 0)
    }

    fn handle(&self, name: &str, problems: &mut Problems) -> Option<u16> {
        let (line, value) = self.field(&[name])?;
        let handle = value.strip_prefix("0x").and_then(handle_of);
        if handle.is_none() {
            problems.add(line, "a handle such as 0x1000", value);
        }
        handle
    }

    fn add(self, records: &mut Records, problems: &mut Problems) {
        let Some(title) = self.title else { return };
        match title {
            "System Information" => records.vendor = self.text("Manufacturer"),
            "Processor Information" => {
                let kind = self.field(&["Type"]).map(|(_, kind)| kind);
                // Of a socket without a processor the type may be <OUT OF SPEC>.
                if kind.is_none_or(|kind| !OTHER_PROCESSORS.contains(&kind)) {
                    let status = self.field(&["Status"]).map(|(_, status)| status);
                    records.add_socket(Socket {
                        name: self.text("Socket Designation"),
                        is_populated: status.and_then(|status| match status.split(',').next() {
                            Some("Populated") => Some(true),
                            Some("Unpopulated") => Some(false),
                            _ => None,
                        }),
                    });
                }
            }
            "Physical Memory Array" => {
                let usage = self.text("Use").map(|usage| usage == "System Memory");
                if let Some(handle) = self.handle {
                    records.arrays.insert(handle, usage);
                }
            }
            "Memory Device" => {
                let array = self.handle("Array Handle", problems);
                let slot = self.slot(problems);
                records.add(Device { handle: self.handle, array, slot });
            }
            _ => self.add_range(title.starts_with("Memory Device"), records, problems),
        }
    }

    fn add_range(&self, is_device: bool, records: &mut Records, problems: &mut Problems) {
        let name = if is_device { "Physical Device Handle" } else { "Physical Array Handle" };
        if self.field(&[name]).is_none() {
            // `-q` prints no handles.
            return;
        }
        let mut address = |name: &str| {
            let (line, value) = self.field(&[name])?;
            // dmidecode writes a k behind extended addresses, and these are in bytes like the others.
            let digits = value.strip_prefix("0x").map(|digits| digits.strip_suffix('k').unwrap_or(digits));
            let address = digits.and_then(hex_digits);
            if address.is_none() {
                problems.add(line, "an address such as 0x0003FFFFFFF", value);
            }
            address.map(|address| (line, address))
        };
        let (Some((_, start)), Some((line, last))) = (address("Starting Address"), address("Ending Address"))
        else {
            return;
        };
        let end = last.saturating_add(1);
        if start >= end {
            problems.add(line, format!("an address behind {start:#x}"), &format!("{last:#x}"));
            return;
        }
        if let Some(handle) = self.handle(name, problems).filter(|_| (start, end) != NO_RANGE) {
            records.add_range(is_device, handle, (start, end));
        }
    }

    fn slot(&self, problems: &mut Problems) -> MemorySlot {
        MemorySlot {
            locator: self.text("Locator"),
            bank: self.text("Bank Locator"),
            state: self.state(problems),
            ..MemorySlot::default()
        }
    }

    fn state(&self, problems: &mut Problems) -> SlotState {
        let Some((line, size)) = self.field(&["Size"]) else { return SlotState::Unknown };
        if matches!(size, "No Module Installed" | "Not Installed" | "None" | "0 MB" | "0 GB") {
            return SlotState::Empty;
        }
        let bytes = known(size).and_then(|size| {
            let bytes = bytes(&size);
            if bytes.is_none() {
                problems.add(line, "a size such as 16 GB", &size);
            }
            bytes
        });
        let configured = &["Configured Memory Speed", "Configured Clock Speed"];
        let speed = "a speed such as 3200 MT/s";
        SlotState::Installed(MemoryModule {
            size: bytes,
            memory_type: self.text("Type"),
            form_factor: self.text("Form Factor"),
            technology: self.text("Memory Technology"),
            max_speed_mt_per_s: self.number(&["Speed"], speed, problems),
            configured_speed_mt_per_s: self.number(configured, speed, problems),
            ranks: self.number(&["Rank"], "a number", problems),
            data_width_bits: self.number(&["Data Width"], "a width such as 64 bits", problems),
            total_width_bits: self.number(&["Total Width"], "a width such as 72 bits", problems),
            manufacturer: self.text("Manufacturer"),
            part_number: self.text("Part Number"),
        })
    }
}

/// A size such as `8192 MB`; dmidecode's units are powers of 1024.
fn bytes(text: &str) -> Option<Bytes> {
    let (number, unit) = text.split_once(' ')?;
    let shift = match unit {
        "bytes" => 0,
        "kB" | "KB" => 10,
        "MB" => 20,
        "GB" => 30,
        "TB" => 40,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).map(Bytes::new)
}

/// Why a text that dmidecode printed has no slots: it says so itself, mostly for want of root.
pub fn reason(text: &str) -> Option<String> {
    let words = ["Permission denied", "No SMBIOS nor DMI entry point found", "Operation not permitted"];
    let line = text.lines().find(|line| words.iter().any(|words| line.contains(words)))?;
    Some(quote(line.trim_start_matches(['#', ' '])))
}

#[cfg(test)]
mod tests;
