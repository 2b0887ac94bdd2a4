//! Blocks: deflated lines behind a header with lengths and checksums.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

/// The first bytes of a block.
pub(super) const MAGIC: [u8; 4] = *b"NWB1";
/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 36;
/// The most that a block unpacks to. A sample of the largest machines has some ten megabytes.
pub(super) const MOST_RAW_BYTES: u32 = 256 << 20;
/// Set where the first line is a whole sample.
const BEGINS_WHOLE: u32 = 1;

/// The header of a block. All numbers are little-endian in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    /// Whether the first line is a whole sample, not a change to the last of the block before.
    pub(super) begins_whole: bool,
    /// The number of the block in its file, from 0, so that a missing one is noticed.
    pub(super) number: u32,
    /// Bytes of the content as it lies in the file.
    pub(super) packed: u32,
    /// Bytes of the content.
    pub(super) raw: u32,
    /// The moment of the first sample, milliseconds since 1970.
    pub(super) first_ms: u64,
    /// The moment of the last.
    pub(super) last_ms: u64,
    content_crc: u32,
}

impl BlockHeader {
    /// Reads a header whose own checksum is right.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES + 4] = bytes.first_chunk()?;
        let (bytes, crc) = bytes.split_at(HEADER_BYTES);
        let u32_at = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let right = bytes.starts_with(&MAGIC) && crc == crc32fast::hash(bytes).to_le_bytes();
        let header = Self {
            begins_whole: u32_at(4)? & BEGINS_WHOLE != 0,
            number: u32_at(4)? >> 1,
            packed: u32_at(8)?,
            raw: u32_at(12)?,
            first_ms: u64_at(16)?,
            last_ms: u64_at(24)?,
            content_crc: u32_at(32)?,
        };
        (right && header.raw <= MOST_RAW_BYTES).then_some(header)
    }

    /// Bytes of the whole block in the file.
    pub(super) fn length(&self) -> usize {
        HEADER_BYTES + 4 + self.packed as usize
    }
}

/// Packs lines into the bytes of a block.
pub(super) fn pack(
    lines: &[u8],
    begins_whole: bool,
    number: u32,
    (first_ms, last_ms): (u64, u64),
) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(vec![0; HEADER_BYTES + 4], Compression::default());
    // A vector takes every byte.
    let packed = encoder.write_all(lines).and_then(|()| encoder.finish());
    let mut block = packed.unwrap_or_default();
    let content = &block[HEADER_BYTES + 4..];
    let mut header = Vec::with_capacity(HEADER_BYTES + 4);
    header.extend(MAGIC);
    header.extend((number << 1 | u32::from(begins_whole)).to_le_bytes());
    header.extend(u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes());
    header.extend(u32::try_from(lines.len()).unwrap_or(u32::MAX).to_le_bytes());
    header.extend(first_ms.to_le_bytes());
    header.extend(last_ms.to_le_bytes());
    header.extend(crc32fast::hash(content).to_le_bytes());
    header.extend(crc32fast::hash(&header).to_le_bytes());
    block[..HEADER_BYTES + 4].copy_from_slice(&header);
    block
}

/// The content of the block at the beginning of these bytes; `None` where it is damaged.
fn content<'b>(header: &BlockHeader, bytes: &'b [u8]) -> Option<&'b [u8]> {
    let content = bytes.get(HEADER_BYTES + 4..header.length())?;
    (crc32fast::hash(content) == header.content_crc).then_some(content)
}

/// Whether the block at the beginning of these bytes is whole.
pub(super) fn is_whole(header: &BlockHeader, bytes: &[u8]) -> bool {
    content(header, bytes).is_some()
}

/// Unpacks the block at the beginning of these bytes; `None` where it is damaged.
pub(super) fn unpack(header: &BlockHeader, bytes: &[u8]) -> Option<Vec<u8>> {
    let content = content(header, bytes)?;
    let mut lines = Vec::new();
    let mut decoder = DeflateDecoder::new(content).take(u64::from(header.raw) + 1);
    decoder.read_to_end(&mut lines).ok()?;
    (lines.len() == header.raw as usize).then_some(lines)
}

/// Where the next header that is right begins, at or behind `from`.
pub(super) fn next(bytes: &[u8], from: usize) -> Option<(usize, BlockHeader)> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.windows(MAGIC.len()).position(|window| window == MAGIC)?;
        if let Some(header) = BlockHeader::from_bytes(&bytes[at..]) {
            return Some((at, header));
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn a_block_comes_back_and_one_changed_bit_does_not() {
        let block = pack(b"{}\n", true, 3, (5, 9));
        let header = BlockHeader::from_bytes(&block).unwrap();
        assert!((header.begins_whole, header.number, header.first_ms, header.last_ms) == (true, 3, 5, 9));
        assert_eq!(header.length(), block.len());
        assert_eq!(unpack(&header, &block).unwrap(), b"{}\n");
        for bit in 0..block.len() * 8 {
            let mut damaged = block.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let found = BlockHeader::from_bytes(&damaged).and_then(|header| unpack(&header, &damaged));
            assert_eq!(found, None, "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused_without_a_panic(bytes in any::<Vec<u8>>(), lines in any::<Vec<u8>>()) {
            if let Some((at, header)) = next(&bytes, 0) {
                let _ = unpack(&header, &bytes[at..]);
            }
            let mut after = bytes.clone();
            after.extend(pack(&lines, false, 0, (0, 0)));
            let found = next(&after, bytes.len());
            prop_assert_eq!(found.map(|(at, _)| at), Some(bytes.len()));
            let (at, header) = found.unwrap();
            prop_assert!(!header.begins_whole);
            prop_assert_eq!(unpack(&header, &after[at..]), Some(lines));
        }
    }
}
