//! Recordings: samples in a file, schema `nodewise.record/1`.
//!
//! ```text
//! {"schema":"nodewise.record/1", ...}\n        the header: one line of JSON
//! NWB1 flags packed raw first crc crc          a block: 36 bytes,
//! deflate of lines                             then one JSON line for each sample
//! NWB1 ...
//! ```
//!
//! The first sample of each minute is written whole, the others as changes to the one before
//! ([`change`]); a sample is about forty times smaller so, and the pure-Rust deflate does as well as zstd. A
//! block is written with one call when it is full or ten seconds old, and ends with nothing half: a recording
//! that was cut, by `kill -9` or by a full disk, lacks the samples of its last block and nothing else. Each block
//! has two checksums, its own and that of its content; behind a damaged one the reader looks for the next
//! that is whole and begins with a whole sample, and says how many seconds are missing.
//!
//! Fields that a reader does not know are passed over. A field that changes its meaning raises the version.
//!
//! # Modules
//!
//! - `record/frame.rs` a sample as JSON; in `record/frame/` its processes, their mappings, and
//!   queues of network devices
//! - `record/change.rs` the change from one JSON value to the next
//! - `record/block.rs` blocks: bytes with lengths and checksums
//! - `record/write.rs` writing, in a bounded size
//! - `record/store.rs` the bytes of a recording, and the places of its blocks
//! - `record/read.rs` reading, around damage

mod block;
mod change;
mod frame;
mod read;
mod store;
mod write;

use std::time::Duration;

use nodewise_machine::Machine;
use nodewise_machine::printable::quote;
use serde::{Deserialize, Serialize};

use crate::machine_file::{self, MachineFileError};
use crate::tree::ReadCause;

pub use read::{Ends, Gap, Recording};
pub use write::{Rotation, Writer};

/// The schema that is written and read.
pub const SCHEMA: &str = "nodewise.record/1";
/// The longest header: machines of thousands of CPUs have some megabytes.
const MOST_HEADER_BYTES: usize = 64 << 20;

/// The first line of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Header {
    pub schema: String,
    /// The release of nodewise that wrote it.
    pub version: String,
    /// The wanted time between samples.
    pub interval_ms: u64,
    /// A mark of this start of the machine: numbers of processes mean the same within one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// The machine, as a document of schema `nodewise.machine/1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<serde_json::Value>,
}

impl Header {
    /// A header without a machine.
    pub fn new(version: &str, interval: Duration, boot: Option<String>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            version: version.to_owned(),
            interval_ms: u64::try_from(interval.as_millis()).unwrap_or(u64::MAX),
            boot,
            machine: None,
        }
    }

    /// The header with a machine, as the text of a machine file.
    ///
    /// # Errors
    /// Text that is not JSON.
    pub fn with_machine_file(mut self, text: &str) -> Result<Self, MachineFileError> {
        let value = serde_json::from_str(text).map_err(|error| MachineFileError::Json(error.to_string()))?;
        self.machine = Some(value);
        Ok(self)
    }

    /// Bytes that it takes in a file.
    pub fn length(&self) -> u64 {
        serde_json::to_vec(self).map_or(0, |line| line.len() as u64 + 1)
    }

    /// The machine that was recorded, where the header has it.
    ///
    /// # Errors
    /// A document that is not a machine file.
    pub fn machine(&self) -> Result<Option<Machine>, MachineFileError> {
        self.machine.as_ref().map(|value| machine_file::from_json(&value.to_string())).transpose()
    }
}

/// Why a file is not a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("it is empty: expected a recording of nodewise record")]
    Empty,
    #[error("it is not a recording: expected a first line with \"schema\": \"{SCHEMA}\"")]
    NotARecording,
    /// The line has a schema, and something else is wrong.
    #[error("its first line is damaged: {0}")]
    Header(String),
    #[error("its schema is {}, and this nodewise reads {SCHEMA}", quote(.0))]
    OtherSchema(String),
    #[error("it holds no whole sample{}", damage(.0))]
    NoSamples(u64),
    #[error("cannot read it: {0}")]
    Read(#[from] ReadCause),
}

fn damage(bytes: &u64) -> String {
    if *bytes == 0 { String::new() } else { format!(": {bytes} bytes of it are damaged") }
}

#[cfg(test)]
mod tests;
