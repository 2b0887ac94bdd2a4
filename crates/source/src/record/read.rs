//! Reading a recording.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use nodewise_machine::printable::printable;
use rustix::io::Errno;
use serde_json::Value;

use super::block::{self, BlockHeader};
use super::frame::{Frame, Texts};
use super::store::{self, FileStore, Store};
use super::{Header, MOST_HEADER_BYTES, RecordError, SCHEMA, change};
use crate::sample::Sample;
use crate::tree::{ReadCause, read_bounded};

/// The largest recording that is taken from a pipe, which memory has to hold.
const MOST_PIPED_BYTES: u64 = 4 << 30;
/// The number of the error that a file cannot be read.
const UNREADABLE: i32 = Errno::IO.raw_os_error();

/// A recording, with the places of its blocks. Samples are read and unpacked as they are asked for.
#[derive(Debug)]
pub struct Recording {
    header: Header,
    store: Box<dyn Store>,
    blocks: Vec<(u64, BlockHeader)>,
    /// Bytes between blocks that belong to none.
    between: u64,
}

/// A part of a recording that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Wall clock of the last moment before it and of the first behind it, where there are any.
    pub from: Option<Duration>,
    pub to: Option<Duration>,
    /// The damage, fit for a terminal.
    pub reason: String,
}

/// The two ends of a recording, and what lies between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Ends {
    /// `None` where there is only one sample.
    pub first: Option<Sample>,
    pub last: Sample,
    pub gaps: Vec<Gap>,
}

impl Recording {
    /// Opens a recording. Of a regular file only the headers of blocks are read.
    ///
    /// # Errors
    /// A file that cannot be read, or that is not a recording. A damaged recording is one.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let file = File::open(path).map_err(cause)?;
        let metadata = file.metadata().map_err(cause)?;
        if metadata.is_file() {
            return Self::from_store(Box::new(FileStore::new(file, metadata.len())));
        }
        Self::from_bytes(read_bounded(path, MOST_PIPED_BYTES)?)
    }

    /// Takes the bytes of a recording.
    ///
    /// # Errors
    /// Bytes that are not a recording. A damaged recording is one.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, RecordError> {
        Self::from_store(Box::new(bytes))
    }

    pub(super) fn from_store(store: Box<dyn Store>) -> Result<Self, RecordError> {
        if store.length() == 0 {
            return Err(RecordError::Empty);
        }
        let line = store::first_line(&*store, MOST_HEADER_BYTES).map_err(cause)?;
        let line = line.ok_or(RecordError::NotARecording)?;
        let header = header(&line)?;
        let (blocks, between) = store::index(&*store, line.len() as u64 + 1).map_err(cause)?;
        Ok(Self { header, store, blocks, between })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes between blocks, and of blocks that are damaged. All of the recording is read for it.
    pub fn damaged_bytes(&self) -> u64 {
        let damaged = self.blocks.iter().filter(|block| !self.is_whole(block));
        self.between + damaged.map(|(at, header)| self.length_there(*at, header)).sum::<u64>()
    }

    /// Bytes of a block, as far as the recording has them.
    fn length_there(&self, at: u64, header: &BlockHeader) -> u64 {
        (header.length() as u64).min(self.store.length() - at)
    }

    fn is_whole(&self, (at, header): &(u64, BlockHeader)) -> bool {
        store::block_at(&*self.store, *at, header).is_some_and(|bytes| block::is_whole(header, &bytes))
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
        self.read_blocks(0..self.blocks.len(), each)
    }

    /// Reads these blocks.
    fn read_blocks(&self, blocks: Range<usize>, mut each: impl FnMut(Sample) -> bool) -> Vec<Gap> {
        let ends = blocks.end == self.blocks.len();
        let mut walk = Walk::new(self, blocks.start);
        let mut texts = Texts::default();
        let mut state: Option<Value> = None;
        for (at, header) in &self.blocks[blocks] {
            walk.arrive(header);
            let lines = store::block_at(&*self.store, *at, header);
            let lines = lines.and_then(|bytes| block::unpack(header, &bytes));
            let Some(lines) = walk.enter(header, lines) else { continue };
            if header.begins_whole {
                state = None;
            }
            let text = String::from_utf8_lossy(&lines);
            for line in text.lines() {
                let sample = next(&mut state, line).and_then(|value| sample(value, &mut texts));
                match sample {
                    Ok(sample) => {
                        walk.found(sample.moment.wall);
                        if !each(sample) {
                            return walk.gaps;
                        }
                    }
                    Err(reason) => {
                        walk.lose(printable(&reason).into_owned());
                        break;
                    }
                }
            }
        }
        if ends { walk.end(self) } else { walk.gaps }
    }

    /// The first sample and the last one, and the gaps between them, from the headers of blocks: only the content of
    /// the first block and of the last minute is unpacked, that of the others has its checksum compared.
    ///
    /// # Errors
    /// A recording without a single whole sample.
    pub fn ends(&self) -> Result<Ends, RecordError> {
        let mut first = None;
        self.read(|sample| {
            first = Some(sample);
            false
        });
        let first = first.ok_or_else(|| RecordError::NoSamples(self.damaged_bytes()))?;
        let mut last = None;
        let mut end = self.blocks.len();
        while last.is_none() && end > 0 {
            let begin = self.blocks[..end].iter().rposition(|(_, header)| header.begins_whole).unwrap_or(0);
            self.read_blocks(begin..end, |sample| {
                last = Some(sample);
                true
            });
            end = begin;
        }
        let gaps = self.gaps();
        Ok(match last.filter(|last| last.moment != first.moment) {
            Some(last) => Ends { first: Some(first), last, gaps },
            None => Ends { first: None, last: first, gaps },
        })
    }

    /// The gaps, without unpacking anything.
    fn gaps(&self) -> Vec<Gap> {
        let mut walk = Walk::new(self, 0);
        for block in &self.blocks {
            let header = &block.1;
            walk.arrive(header);
            if walk.enter(header, self.is_whole(block).then_some(())).is_some() {
                walk.found(Duration::from_millis(header.first_ms));
                walk.last = Some(Duration::from_millis(header.last_ms));
            }
        }
        walk.end(self)
    }

    /// The last block of a recording that was cut has no header that is right.
    fn ends_damaged(&self) -> Option<String> {
        let end = self.blocks.last().map(|(at, header)| at + header.length() as u64)?;
        (end < self.store.length()).then(|| "the file ends within a block".to_owned())
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
        if samples.is_empty() {
            Err(RecordError::NoSamples(self.damaged_bytes()))
        } else {
            Ok((samples, gaps))
        }
    }

    /// Hands over samples from a little before a wall clock time on, until `each` says that it has enough, and names
    /// the gaps between them. The last sample at or before that time is among them, and the one before it.
    pub fn read_around(&self, wall: Duration, each: impl FnMut(Sample) -> bool) -> Vec<Gap> {
        // Two whole samples back: the one before the wanted one may lie in front of the nearest.
        let begins = (0..self.blocks.len()).filter(|block| self.blocks[*block].1.begins_whole);
        let begins = begins.take_while(|block| Duration::from_millis(self.blocks[*block].1.first_ms) <= wall);
        let first = begins.collect::<Vec<_>>().into_iter().rev().nth(1).unwrap_or(0);
        self.read_blocks(first..self.blocks.len(), each)
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
            (_, None) => Err(RecordError::NoSamples(self.damaged_bytes())),
        }
    }
}

/// A way from block to block that notes what is missing.
struct Walk {
    gaps: Vec<Gap>,
    /// The moment of the last sample.
    last: Option<Duration>,
    /// Why samples behind it are missing.
    lost: Option<String>,
    /// The number of the next block.
    expected: u32,
    /// Whether the block before was read to its end, so that changes to it can be made.
    goes_on: bool,
}

impl Walk {
    /// Begins before this block.
    fn new(recording: &Recording, first: usize) -> Self {
        let number = |(_, header): &(u64, BlockHeader)| header.number;
        // The first block of a file has number 0.
        let expected = if first == 0 { 0 } else { recording.blocks.get(first).map_or(0, number) };
        Self { gaps: Vec::new(), last: None, lost: None, expected, goes_on: false }
    }

    fn lose(&mut self, reason: String) {
        self.lost.get_or_insert(reason);
        self.goes_on = false;
    }

    /// Comes to a block.
    fn arrive(&mut self, header: &BlockHeader) {
        if header.number != self.expected {
            self.lose(format!("blocks from {} to {} are missing", self.expected, header.number));
        }
        self.expected = header.number.wrapping_add(1) & (u32::MAX >> 1);
    }

    /// Goes into it; returns the content where it is whole, and not a change to something that is missing.
    fn enter<T>(&mut self, header: &BlockHeader, content: Option<T>) -> Option<T> {
        if content.is_none() {
            self.lose("a damaged block".to_owned());
        } else if header.begins_whole {
            self.goes_on = true;
        } else if !self.goes_on {
            self.lose("changes to a damaged block".to_owned());
        }
        content.filter(|_| self.goes_on)
    }

    /// Finds a sample.
    fn found(&mut self, wall: Duration) {
        if let Some(reason) = self.lost.take() {
            self.gaps.push(Gap { from: self.last, to: Some(wall), reason });
        }
        self.last = Some(wall);
    }

    /// Ends behind the last block.
    fn end(mut self, recording: &Recording) -> Vec<Gap> {
        if let Some(reason) = self.lost.or_else(|| recording.ends_damaged()) {
            self.gaps.push(Gap { from: self.last, to: None, reason });
        }
        self.gaps
    }
}

fn cause(error: io::Error) -> RecordError {
    RecordError::Read(ReadCause::System(error.raw_os_error().unwrap_or(UNREADABLE)))
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
