//! Writing a recording.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::mapping::ProcessMappings;
use serde_json::Value;

use super::frame::{Frame, key};
use super::{Header, block, change};
use crate::sample::{Identity, MappingsSample, Sample};

/// A whole sample is written at least this often, so that a damaged block costs at most so much.
const WHOLE_EVERY: Duration = Duration::from_secs(60);
/// A block is written at least this often: a crash costs at most so much.
const BLOCK_EVERY: Duration = Duration::from_secs(10);
/// Bytes of lines at which a block is full.
const FULL_BLOCK_BYTES: usize = 4 << 20;

/// Whether a recording should go on in a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// There is room in this file.
    Stay,
    /// The file has reached its size: finish it and begin another.
    Due,
}

/// Writes samples into one file.
#[derive(Debug)]
pub struct Writer<W> {
    file: W,
    /// The last sample as JSON.
    last: Option<Value>,
    /// The mappings of that sample.
    mapped: BTreeMap<Identity, Arc<ProcessMappings>>,
    /// The moment of the last whole sample, since boot.
    whole_at: Duration,
    lines: Vec<u8>,
    open: Option<OpenBlock>,
    blocks: u32,
    written: u64,
    /// Bytes of the largest block so far.
    largest_block: u64,
    most_bytes: Option<u64>,
}

/// The block whose lines are being collected.
#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    begins_whole: bool,
    first_ms: u64,
    last_ms: u64,
    /// Since boot.
    began: Duration,
}

/// The mappings of a process in a sample as JSON.
fn mappings_in<'v>(sample: &'v mut Value, key: &str) -> Option<&'v mut Value> {
    sample.get_mut("maps")?.get_mut(key)?.get_mut("mappings")
}

impl<W: Write> Writer<W> {
    /// Begins a recording: writes its header. A file that has no room for another block within `most_bytes` asks
    /// for a new one.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn begin(mut file: W, header: &Header, most_bytes: Option<u64>) -> io::Result<Self> {
        let mut line = serde_json::to_vec(header)?;
        line.push(b'\n');
        file.write_all(&line)?;
        Ok(Self {
            file,
            last: None,
            mapped: BTreeMap::new(),
            whole_at: Duration::ZERO,
            lines: Vec::new(),
            open: None,
            blocks: 0,
            written: line.len() as u64,
            largest_block: 0,
            most_bytes,
        })
    }

    /// Takes a sample, and writes the block when it is due.
    ///
    /// # Errors
    /// A file that cannot be written: nothing after it is whole.
    pub fn push(&mut self, sample: &Sample) -> io::Result<Rotation> {
        let now = sample.moment.since_boot;
        let is_kept = |process: &MappingsSample| {
            self.mapped.get(&process.identity).is_some_and(|last| Arc::ptr_eq(last, &process.mappings))
        };
        // No field is null: in a change, null takes away.
        let mut value = serde_json::to_value(Frame::new(sample, is_kept))?;
        // Mappings that were not read again are neither written as JSON nor compared again.
        let kept: Vec<(String, Value)> = sample
            .mappings
            .iter()
            .filter(|process| is_kept(process))
            .filter_map(|process| {
                let key = key(process.identity);
                // As the new sample has them.
                let empty = Value::Object(serde_json::Map::new());
                let mappings = std::mem::replace(mappings_in(self.last.as_mut()?, &key)?, empty);
                Some((key, mappings))
            })
            .collect();
        let of = |process: &MappingsSample| (process.identity, Arc::clone(&process.mappings));
        self.mapped = sample.mappings.iter().map(of).collect();
        let change = match &self.last {
            // A clock that went back is another machine's.
            Some(last) if now >= self.whole_at && now - self.whole_at < WHOLE_EVERY => {
                Some(change::change(last, &value).unwrap_or_else(|| Value::Object(serde_json::Map::new())))
            }
            _ => None,
        };
        for (key, mappings) in kept {
            if let Some(place) = mappings_in(&mut value, &key) {
                *place = mappings;
            }
        }
        // A whole sample begins a block, so that reading can begin there.
        if change.is_none() {
            self.flush()?;
            self.whole_at = now;
        }
        let wall = u64::try_from(sample.moment.wall.as_millis()).unwrap_or(u64::MAX);
        let open = self.open.get_or_insert(OpenBlock {
            begins_whole: change.is_none(),
            first_ms: wall,
            last_ms: wall,
            began: now,
        });
        open.last_ms = wall;
        let due = now.saturating_sub(open.began) >= BLOCK_EVERY;
        serde_json::to_writer(&mut self.lines, change.as_ref().unwrap_or(&value))?;
        self.lines.push(b'\n');
        self.last = Some(value);
        if due || self.lines.len() >= FULL_BLOCK_BYTES {
            self.flush()?;
        }
        // The next block may be as large as the largest so far. Only what a block was written to can be full.
        let next = self.written.saturating_add(self.largest_block);
        let full = self.blocks > 0 && self.most_bytes.is_some_and(|most| next > most);
        Ok(if full { Rotation::Due } else { Rotation::Stay })
    }

    /// Writes the open block, with one call.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let block = block::pack(&self.lines, open.begins_whole, self.blocks, (open.first_ms, open.last_ms));
        self.blocks = self.blocks.wrapping_add(1) & (u32::MAX >> 1);
        self.lines.clear();
        self.file.write_all(&block)?;
        self.written += block.len() as u64;
        self.largest_block = self.largest_block.max(block.len() as u64);
        self.file.flush()
    }

    /// Bytes that were written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes the open block and hands the file back.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.file)
    }

    /// The file, to be made safe on disk.
    pub fn file(&self) -> &W {
        &self.file
    }
}
