//! The walk from one structure of a table to the next.
//!
//! A structure has a formatted area, whose second byte is its length, and strings behind it, each with a NUL at
//! its end and an empty one after the last.

use super::SmbiosProblem;

/// Bytes of a header: type, length, handle.
pub const HEADER: usize = 4;
/// The structure behind the last.
pub const END: u8 = 127;
/// Problems that are kept.
const MOST_PROBLEMS: usize = 16;
/// Structures have handles of 16 bits.
const MOST_STRUCTURES: usize = 1 << 16;

/// A structure in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structure<'a> {
    /// Where it begins.
    pub offset: usize,
    pub kind: u8,
    /// The number by which others refer to it.
    pub handle: u16,
    /// The formatted area with its header.
    pub area: &'a [u8],
    /// The strings with the NULs behind them, without the last.
    strings: &'a [u8],
}

impl<'a> Structure<'a> {
    /// A byte of the formatted area; `None` behind its end: older firmware has shorter structures.
    pub fn byte(&self, at: usize) -> Option<u8> {
        self.area.get(at).copied()
    }

    /// Two bytes.
    pub fn word(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.area.get(at..at + 2)?.try_into().ok()?))
    }

    /// Four bytes.
    pub fn double(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.area.get(at..at + 4)?.try_into().ok()?))
    }

    /// Eight bytes.
    pub fn quad(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.area.get(at..at + 8)?.try_into().ok()?))
    }

    /// The string whose number is at this place, without blanks around it; `Ok(None)` where there is none.
    ///
    /// # Errors
    /// A number beyond the last string.
    pub fn string(&self, at: usize) -> Result<Option<String>, String> {
        let Some(number) = self.byte(at).filter(|number| *number > 0) else { return Ok(None) };
        let mut strings = self.strings.split(|byte| *byte == 0).filter(|string| !string.is_empty());
        match strings.nth(usize::from(number) - 1) {
            Some(string) => {
                let text = String::from_utf8_lossy(string).trim().to_owned();
                Ok(Some(text).filter(|text| !text.is_empty()))
            }
            None => {
                let count = self.strings.split(|byte| *byte == 0).filter(|string| !string.is_empty()).count();
                Err(format!(
                    "type {} names string {number} at byte {at:#x}: it has {count} strings",
                    self.kind
                ))
            }
        }
    }

    /// Where each string is in the table: its first byte, and the first behind it.
    pub fn string_places(&self) -> Vec<(usize, usize)> {
        let mut at = self.offset + self.area.len();
        let mut places = Vec::new();
        for string in self.strings.split(|byte| *byte == 0) {
            if !string.is_empty() {
                places.push((at, at + string.len()));
            }
            at += string.len() + 1;
        }
        places
    }
}

/// The structures of a table, up to the end marker or to what cannot be followed.
#[derive(Debug, Default)]
pub struct Structures<'a> {
    pub all: Vec<Structure<'a>>,
    pub problems: Vec<SmbiosProblem>,
    /// Problems beyond those that are kept.
    pub others: usize,
}

impl Structures<'_> {
    /// Adds a problem.
    pub fn problem(&mut self, offset: usize, text: impl Into<String>) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(SmbiosProblem { offset, text: text.into() });
        } else {
            self.others += 1;
        }
    }
}

/// Whether a table must have an end marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A whole table has one.
    Marked,
    /// A structure on its own has none.
    Open,
}

/// Walks a table.
pub fn walk(table: &[u8], ending: Ending) -> Structures<'_> {
    let mut found = Structures::default();
    let mut at = 0;
    while at < table.len() {
        let rest = &table[at..];
        let [kind, length, low, high, ..] = *rest else {
            found.problem(at, format!("{} bytes are left: expected a header of {HEADER}", rest.len()));
            return found;
        };
        let length = usize::from(length);
        if length < HEADER {
            found.problem(at, format!("type {kind} has length {length}: expected {HEADER} or more"));
            return found;
        }
        if rest.len() < length {
            found.problem(
                at,
                format!("type {kind} has length {length}, and the table ends after {}", rest.len()),
            );
            return found;
        }
        let (area, behind) = rest.split_at(length);
        // Without strings there are two NULs.
        let end = behind.windows(2).position(|pair| pair == [0, 0]);
        let strings = match end {
            Some(end) => &behind[..end],
            None => behind,
        };
        let handle = u16::from_le_bytes([low, high]);
        if found.all.len() >= MOST_STRUCTURES {
            found.problem(
                at,
                format!("more than {MOST_STRUCTURES} structures: a table has a handle for each"),
            );
            return found;
        }
        found.all.push(Structure { offset: at, kind, handle, area, strings });
        match end {
            _ if kind == END && ending == Ending::Marked => return found,
            Some(end) => at += length + end + 2,
            None => {
                found.problem(at, format!("the strings of type {kind} have no end: expected two NULs"));
                return found;
            }
        }
    }
    if ending == Ending::Marked {
        found.problem(at, format!("the table has no end: expected a structure of type {END}"));
    }
    found
}

#[cfg(test)]
mod tests;
