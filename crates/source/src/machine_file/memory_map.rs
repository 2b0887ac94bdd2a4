//! Where memory lies, in a file: `{"start": "0x100000", "end": "0x7ffe0000", "node": 0}`.

use nodewise_machine::{MemoryMap, MemoryRange};
use serde::{Deserialize, Serialize};

use super::set::NodeNumber;

#[derive(Default, Deserialize, Serialize)]
pub(super) struct MemoryMapFile {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ram: Vec<RangeFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<RangeFile>,
}

/// Addresses are text: numbers beyond 2^53 do not survive every reader of JSON.
#[derive(Deserialize, Serialize)]
struct RangeFile {
    start: String,
    end: String,
    node: NodeNumber,
}

impl From<&MemoryRange> for RangeFile {
    fn from(range: &MemoryRange) -> Self {
        Self {
            start: format!("{:#x}", range.start),
            end: format!("{:#x}", range.end),
            node: NodeNumber(range.node),
        }
    }
}

impl From<&MemoryMap> for MemoryMapFile {
    fn from(map: &MemoryMap) -> Self {
        let ranges = |ranges: &[MemoryRange]| ranges.iter().map(RangeFile::from).collect();
        Self { ram: ranges(&map.ram), nodes: ranges(&map.nodes) }
    }
}

impl MemoryMapFile {
    pub(super) fn is_empty(&self) -> bool {
        self.ram.is_empty() && self.nodes.is_empty()
    }

    /// The map, or the field that is wrong and why.
    pub(super) fn map(self) -> Result<MemoryMap, (String, String)> {
        Ok(MemoryMap { ram: ranges("ram", self.ram)?, nodes: ranges("nodes", self.nodes)? })
    }
}

fn ranges(list: &str, files: Vec<RangeFile>) -> Result<Vec<MemoryRange>, (String, String)> {
    let read = |(at, file): (usize, RangeFile)| {
        let wrong = |field: &str, why: &str| (format!("memory_map.{list}[{at}].{field}"), why.to_owned());
        let address = |field: &str, text: &str| {
            let digits = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
            digits
                .and_then(|digits| u64::from_str_radix(digits, 16).ok())
                .ok_or_else(|| wrong(field, "expected an address such as 0x100000"))
        };
        let (start, end) = (address("start", &file.start)?, address("end", &file.end)?);
        if start > end {
            return Err(wrong("end", "expected an address that is not below start"));
        }
        Ok(MemoryRange { start, end, node: file.node.0 })
    };
    files.into_iter().enumerate().map(read).collect()
}
