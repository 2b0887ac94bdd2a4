//! The bytes of a recording: in memory, or in a file whose wanted parts are read.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::block::{self, BlockHeader, HEADER_BYTES};

/// Bytes of a header with its checksum.
const HEAD: usize = HEADER_BYTES + 4;
/// Bytes that are searched at once for the next header.
const WINDOW: usize = 64 << 10;

/// The bytes of a recording.
pub(super) trait Store: fmt::Debug + Send {
    fn length(&self) -> u64;

    /// Fills the buffer with the bytes from `at` on.
    ///
    /// # Errors
    /// Fewer bytes than the buffer takes, and a file that cannot be read.
    fn fill(&self, at: u64, buffer: &mut [u8]) -> io::Result<()>;
}

impl Store for Vec<u8> {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn fill(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)?.get(..buffer.len()));
        buffer.copy_from_slice(rest.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A regular file, as long as it was when it was opened: a recording may still be written.
#[derive(Debug)]
pub(super) struct FileStore {
    file: File,
    length: u64,
}

impl FileStore {
    pub(super) const fn new(file: File, length: u64) -> Self {
        Self { file, length }
    }
}

impl Store for FileStore {
    fn length(&self) -> u64 {
        self.length
    }

    fn fill(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, at)
    }
}

/// The bytes from `at` on, at most this number of them.
pub(super) fn bytes_at(store: &dyn Store, at: u64, most: usize) -> io::Result<Vec<u8>> {
    let left = store.length().saturating_sub(at);
    let mut bytes = vec![0; most.min(usize::try_from(left).unwrap_or(usize::MAX))];
    store.fill(at, &mut bytes)?;
    Ok(bytes)
}

/// The block that begins at `at`, with its header; `None` where the file ends within it.
pub(super) fn block_at(store: &dyn Store, at: u64, header: &BlockHeader) -> Option<Vec<u8>> {
    let length = header.length();
    let is_there = store.length().saturating_sub(at) >= length as u64;
    if is_there { bytes_at(store, at, length).ok() } else { None }
}

/// The places of blocks, and the bytes between them that belong to none.
///
/// Only headers are read, and not what lies between them: a header has a checksum of its own, so its length is right.
/// The content is looked at where no header follows it, for then the length may name the bytes of other blocks.
///
/// # Errors
/// A file that cannot be read.
pub(super) fn index(store: &dyn Store, begin: u64) -> io::Result<(Vec<(u64, BlockHeader)>, u64)> {
    let end = store.length();
    let (mut blocks, mut between, mut at) = (Vec::new(), 0, begin);
    // A header that is known to be at this place.
    let mut known = None;
    while at < end {
        let block = match known.take() {
            Some(header) => Some((at, header)),
            None => next(store, at)?,
        };
        let Some((found, header)) = block else {
            between += end - at;
            break;
        };
        between += found - at;
        // A header of a block that was cut stays: its time shows what is missing.
        blocks.push((found, header));
        let behind = found.saturating_add(header.length() as u64);
        known = if behind < end { head(store, behind)? } else { None };
        let is_whole =
            || block_at(store, found, &header).is_some_and(|bytes| block::is_whole(&header, &bytes));
        at =
            if known.is_some() || behind == end || is_whole() { behind } else { found + HEADER_BYTES as u64 };
    }
    Ok((blocks, between))
}

fn head(store: &dyn Store, at: u64) -> io::Result<Option<BlockHeader>> {
    Ok(BlockHeader::from_bytes(&bytes_at(store, at, HEAD)?))
}

/// Where the next header that is right begins, at or behind `from`.
fn next(store: &dyn Store, from: u64) -> io::Result<Option<(u64, BlockHeader)>> {
    // Nearly always it is there.
    if let Some(header) = head(store, from)? {
        return Ok(Some((from, header)));
    }
    let mut at = from + 1;
    while at < store.length() {
        let bytes = bytes_at(store, at, WINDOW)?;
        if let Some((found, header)) = block::next(&bytes, 0) {
            return Ok(Some((at + found as u64, header)));
        }
        // A header may begin in this window and end in the next one.
        at += (bytes.len() - (HEAD - 1).min(bytes.len() - 1)) as u64;
    }
    Ok(None)
}

/// The first line, without its line feed; `None` where it is longer than this or does not end.
///
/// # Errors
/// A file that cannot be read.
pub(super) fn first_line(store: &dyn Store, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    while line.len() < most {
        let part = bytes_at(store, line.len() as u64, WINDOW.min(most - line.len()))?;
        if part.is_empty() {
            break;
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        line.extend_from_slice(&part[..end.unwrap_or(part.len())]);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::block::MAGIC;
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn a_header_across_two_windows_is_found() {
        let block = block::pack(b"{}\n", true, 3, (5, 9));
        for before in [0, 1, HEAD, WINDOW - 1, WINDOW, WINDOW + 1, WINDOW - HEAD, 3 * WINDOW - 20] {
            // Half of a magic word before it.
            let mut bytes = vec![MAGIC[0]; before];
            bytes.extend(&block);
            let (blocks, between) = index(&bytes, 0).unwrap();
            let places: Vec<u64> = blocks.iter().map(|(at, _)| *at).collect();
            assert_eq!((places, between), (vec![before as u64], before as u64));
        }
    }

    #[test]
    fn a_length_that_names_other_blocks_does_not_hide_them() {
        // A block that was cut, and went on with another: a full disk that was given room.
        let cut = block::pack(&[b'x'; 999], true, 0, (5, 9));
        let other = block::pack(b"{}\n", true, 1, (10, 11));
        let bytes = [&cut[..HEAD + 3], &other, &other].concat();
        let (blocks, _) = index(&bytes, 0).unwrap();
        assert_eq!(blocks.len(), 3);
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_index(bytes in any::<Vec<u8>>(), lines in any::<Vec<u8>>()) {
            let block = block::pack(&lines, false, 0, (0, 0));
            let (blocks, between) = index(&[bytes.clone(), block.clone()].concat(), 0).unwrap();
            prop_assert_eq!(blocks.last().map(|(at, _)| *at), Some(bytes.len() as u64));
            prop_assert_eq!(between, bytes.len() as u64);
        }
    }
}
