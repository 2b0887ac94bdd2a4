//! Reading a recording.

use std::path::Path;
use std::time::Duration;

use nodewise_machine::printable::printable;
use serde_json::Value;

use super::block::{self, BlockHeader};
use super::frame::{Frame, Texts};
use super::{Header, MOST_HEADER_BYTES, RecordError, SCHEMA, change};
use crate::sample::Sample;
use crate::tree::read_bounded;

/// The largest recording that is opened.
const MOST_RECORDING_BYTES: u64 = 4 << 30;

/// A recording, with the places of its blocks. Samples are unpacked as they are asked for.
#[derive(Debug)]
pub struct Recording {
    header: Header,
    bytes: Vec<u8>,
    blocks: Vec<(usize, BlockHeader)>,
    damaged_bytes: usize,
}

/// A part of a recording that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where the recording goes on: the number of the first sample behind the gap. The number of samples where
    /// nothing follows.
    pub before: usize,
    /// Wall clock of the last moment before it and of the first behind it, where there are any.
    pub from: Option<Duration>,
    pub to: Option<Duration>,
    /// The damage, fit for a terminal.
    pub reason: String,
}

impl Recording {
    /// Opens a recording.
    ///
    /// # Errors
    /// A file that cannot be read, or that is not a recording. A damaged recording is one.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        Self::from_bytes(read_bounded(path, MOST_RECORDING_BYTES)?)
    }

    /// Takes the bytes of a recording.
    ///
    /// # Errors
    /// Bytes that are not a recording. A damaged recording is one.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, RecordError> {
        if bytes.is_empty() {
            return Err(RecordError::Empty);
        }
        let line = bytes.iter().take(MOST_HEADER_BYTES).position(|byte| *byte == b'\n');
        let Some(end) = line else { return Err(RecordError::NotARecording) };
        let header = header(&bytes[..end])?;
        let mut blocks = Vec::new();
        let mut damaged_bytes = 0;
        let mut at = end + 1;
        while at < bytes.len() {
            let Some((found, header)) = block::next(&bytes, at) else {
                damaged_bytes += bytes.len() - at;
                break;
            };
            damaged_bytes += found - at;
            // A header of a block that was cut stays: its time shows what is missing.
            blocks.push((found, header));
            let whole = block::is_whole(&header, &bytes[found..]);
            // Bytes that a damaged length names may hold the next block.
            at = if whole { found + header.length() } else { found + block::HEADER_BYTES };
        }
        Ok(Self { header, bytes, blocks, damaged_bytes })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes between blocks that belong to none.
    pub fn damaged_bytes(&self) -> usize {
        self.damaged_bytes
    }

    /// Wall clock of the first sample and of the last. Headers of blocks have both in milliseconds; the first
    /// sample, from which all times count, has more digits where it is whole.
    pub fn span(&self) -> Option<(Duration, Duration)> {
        let (first, last) = (self.blocks.first()?.1, self.blocks.last()?.1);
        let mut begin = Duration::from_millis(first.first_ms);
        self.read(|sample| {
            let wall = sample.moment.wall;
            if wall.as_millis() == begin.as_millis() {
                begin = wall;
            }
            false
        });
        Some((begin, Duration::from_millis(last.last_ms).max(begin)))
    }

    /// Hands over the samples in their order, until `each` says that it has enough, and names the gaps between
    /// them.
    pub fn read(&self, each: impl FnMut(Sample) -> bool) -> Vec<Gap> {
        self.read_blocks(0, each)
    }

    /// Reads from this block on.
    fn read_blocks(&self, first: usize, mut each: impl FnMut(Sample) -> bool) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut texts = Texts::default();
        let mut state: Option<Value> = None;
        let mut last: Option<Duration> = None;
        let mut count = 0;
        let mut lost: Option<String> = None;
        let mut expected =
            self.blocks.get(first).map_or(0, |(_, header)| if first == 0 { 0 } else { header.number });
        for (at, header) in &self.blocks[first..] {
            if header.number != expected {
                state = None;
                lost.get_or_insert_with(|| {
                    format!("blocks from {expected} to {} are missing", header.number)
                });
            }
            expected = header.number.wrapping_add(1) & (u32::MAX >> 1);
            let lines = block::unpack(header, &self.bytes[*at..]);
            let Some(lines) = lines else {
                state = None;
                lost.get_or_insert_with(|| "a damaged block".to_owned());
                continue;
            };
            if header.begins_whole {
                state = None;
            } else if state.is_none() {
                lost.get_or_insert_with(|| "changes to a damaged block".to_owned());
                continue;
            }
            let text = String::from_utf8_lossy(&lines);
            for line in text.lines() {
                let sample = next(&mut state, line).and_then(|value| sample(value, &mut texts));
                match sample {
                    Ok(sample) => {
                        let wall = sample.moment.wall;
                        if let Some(reason) = lost.take() {
                            gaps.push(Gap { before: count, from: last, to: Some(wall), reason });
                        }
                        last = Some(wall);
                        count += 1;
                        if !each(sample) {
                            return gaps;
                        }
                    }
                    Err(reason) => {
                        lost.get_or_insert(printable(&reason).into_owned());
                        state = None;
                        break;
                    }
                }
            }
        }
        if let Some(reason) = lost.or_else(|| self.ends_damaged()) {
            gaps.push(Gap { before: count, from: last, to: None, reason });
        }
        gaps
    }

    /// The last block of a recording that was cut has no header that is right.
    fn ends_damaged(&self) -> Option<String> {
        let end = self.blocks.last().map(|(at, header)| at + header.length())?;
        (end < self.bytes.len()).then(|| "the file ends within a block".to_owned())
    }

    /// All samples, and the gaps between them. For recordings that fit in memory.
    ///
    /// # Errors
    /// A recording without a single whole sample.
    pub fn samples(&self) -> Result<(Vec<Sample>, Vec<Gap>), RecordError> {
        let mut samples = Vec::new();
        let gaps = self.read(|sample| {
            samples.push(sample);
            true
        });
        if samples.is_empty() { Err(RecordError::NoSamples(self.damaged_bytes)) } else { Ok((samples, gaps)) }
    }

    /// Hands over samples from a little before a wall clock time on, until `each` says that it has enough, and names
    /// the gaps between them. The last sample at or before that time is among them, and the one before it.
    pub fn read_around(&self, wall: Duration, each: impl FnMut(Sample) -> bool) -> Vec<Gap> {
        // Two whole samples back: the one before the wanted one may lie in front of the nearest.
        let begins = (0..self.blocks.len()).filter(|block| self.blocks[*block].1.begins_whole);
        let begins = begins.take_while(|block| Duration::from_millis(self.blocks[*block].1.first_ms) <= wall);
        let first = begins.collect::<Vec<_>>().into_iter().rev().nth(1).unwrap_or(0);
        self.read_blocks(first, each)
    }

    /// The last sample at or before a wall clock time, and the one before it for rates; the first two where
    /// the recording begins later.
    ///
    /// # Errors
    /// A recording without a single whole sample.
    pub fn at(&self, wall: Duration) -> Result<(Option<Sample>, Sample), RecordError> {
        let mut found: (Option<Sample>, Option<Sample>) = (None, None);
        self.read_around(wall, |sample| match &found {
            (Some(_), Some(_)) if sample.moment.wall > wall => false,
            _ => {
                found = (found.1.take(), Some(sample));
                true
            }
        });
        match found {
            (before, Some(sample)) => Ok((before, sample)),
            (_, None) => Err(RecordError::NoSamples(self.damaged_bytes)),
        }
    }
}

fn header(line: &[u8]) -> Result<Header, RecordError> {
    #[derive(serde::Deserialize)]
    struct Schema {
        schema: String,
    }
    let Schema { schema } = serde_json::from_slice(line).map_err(|_| RecordError::NotARecording)?;
    if schema != SCHEMA {
        return Err(if schema.starts_with("nodewise.record/") {
            RecordError::OtherSchema(schema)
        } else {
            RecordError::NotARecording
        });
    }
    serde_json::from_slice(line)
        .map_err(|error| RecordError::Header(printable(&error.to_string()).into_owned()))
}

/// The next whole value: the line itself, or the last value with the line's change.
fn next<'s>(state: &'s mut Option<Value>, line: &str) -> Result<&'s Value, String> {
    let value: Value =
        serde_json::from_str(line).map_err(|error| format!("a line that is not JSON: {error}"))?;
    match state {
        Some(state) => {
            change::apply(state, value);
            Ok(state)
        }
        None => Ok(state.insert(value)),
    }
}

fn sample(value: &Value, texts: &mut Texts) -> Result<Sample, String> {
    let frame: Frame =
        serde::Deserialize::deserialize(value).map_err(|error| format!("a sample: {error}"))?;
    frame.into_sample(texts)
}
