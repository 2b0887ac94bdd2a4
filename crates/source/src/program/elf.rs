//! The beginning of an ELF file: whether a Go linker wrote it.
//!
//! # Source
//! elf(5). The linker of Go writes a note of the owner `Go` with type 4, the build identifier, near the beginning of
//! the file (`cmd/link`, `ELF_NOTE_GOBUILDID_TAG`), with and without cgo.

/// The bytes of a file that are looked at.
pub const BEGINNING: usize = 1 << 14;
const NOTE: u32 = 4;
const GO_BUILD_ID: u32 = 4;
/// Most headers of segments.
const MOST: u16 = 128;

/// Whether these first bytes of a file name a program of Go. Files of 64 bits in little-endian order only.
pub fn is_go(file: &[u8]) -> bool {
    // Class 2 is 64 bits, data 1 is little-endian.
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return false;
    }
    let (Some(start), Some(size), Some(count)) = (u64_at(file, 32), u16_at(file, 54), u16_at(file, 56))
    else {
        return false;
    };
    let headers = (0..count.min(MOST)).map(|at| start.saturating_add(u64::from(at) * u64::from(size)));
    headers.filter_map(|at| usize::try_from(at).ok()).any(|at| has_note(file, at) == Some(true))
}

/// Whether the segment of this header holds the note.
fn has_note(file: &[u8], header: usize) -> Option<bool> {
    if u32_at(file, header)? != NOTE {
        return Some(false);
    }
    let field = |offset: usize| usize::try_from(u64_at(file, header.checked_add(offset)?)?).ok();
    let (offset, size) = (field(8)?, field(32)?);
    let mut notes = file.get(offset..offset.checked_add(size)?.min(file.len()))?;
    while let (Some(name), Some(content), Some(kind)) = (u32_at(notes, 0), u32_at(notes, 4), u32_at(notes, 8))
    {
        if kind == GO_BUILD_ID && notes.get(12..).is_some_and(|rest| rest.starts_with(b"Go\0")) && name == 4 {
            return Some(true);
        }
        let padded = |size: u32| usize::try_from(size).ok()?.checked_next_multiple_of(4);
        let next = 12usize.checked_add(padded(name)?)?.checked_add(padded(content)?)?;
        notes = notes.get(next..)?;
    }
    Some(false)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// A file with one segment of notes, as a linker writes it.
#[cfg(test)]
pub(super) fn with_note(owner: &[u8; 4], kind: u32) -> Vec<u8> {
    let mut file = vec![0; 64 + 56];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[32..40].copy_from_slice(&64u64.to_le_bytes());
    file[54..56].copy_from_slice(&56u16.to_le_bytes());
    file[56..58].copy_from_slice(&1u16.to_le_bytes());
    file[64..68].copy_from_slice(&NOTE.to_le_bytes());
    file[72..80].copy_from_slice(&120u64.to_le_bytes());
    // A note of another owner comes first.
    let note = |owner: &[u8; 4], kind: u32| {
        let numbers = [4u32, 5, kind].into_iter().flat_map(u32::to_le_bytes);
        numbers.chain(*owner).chain(*b"hello\0\0\0").collect::<Vec<u8>>()
    };
    let notes = [note(b"GNU\0", 3), note(owner, kind)].concat();
    file[96..104].copy_from_slice(&(notes.len() as u64).to_le_bytes());
    file.extend(notes);
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, proptest};

    #[test]
    fn the_note_of_gos_linker_is_found() {
        assert!(is_go(&with_note(b"Go\0\0", GO_BUILD_ID)));
        assert!(!is_go(&with_note(b"GNU\0", GO_BUILD_ID)));
        assert!(!is_go(&with_note(b"Go\0\0", 3)));
        let file = with_note(b"Go\0\0", GO_BUILD_ID);
        for cut in 0..file.len() - 8 {
            let _ = is_go(&file[..cut]);
        }
        assert!(!is_go(b"#!/bin/sh\n") && !is_go(b""));
        let own = std::fs::read("/proc/self/exe").unwrap();
        assert!(!is_go(&own[..BEGINNING.min(own.len())]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            at in 0usize..120,
            number in any::<u64>(),
        ) {
            let _ = is_go(&bytes);
            let mut file = with_note(b"Go\0\0", GO_BUILD_ID);
            file[at..at + 8].copy_from_slice(&number.to_le_bytes());
            let _ = is_go(&file);
        }
    }
}
