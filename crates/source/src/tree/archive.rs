//! Unpacking a tar archive in memory.
//!
//! An archive is foreign: its names can lead upwards, its links anywhere, its compression can hide
//! terabytes. So nothing is written to disk, names that lead out are refused and reported, and size and
//! number of what is kept are bounded.
//!
//! It may be damaged as well, and a damaged archive shows facts that no machine has: one changed byte can make
//! 92 GiB of 16. So it is read to its last byte before anything of it is shown, and refused when a checksum
//! of its compression or of a header is wrong, or when it ends inside a file. What lacks no checksum and is
//! merely strange (no end mark, bytes behind the end) is noted.

use std::io::{ErrorKind, Read};

use nodewise_machine::plural::by_count;
use nodewise_machine::printable::{printable, quote};
use tar::EntryType;

use super::compressed::{Compression, Members};
use super::memory::Refusal;
use super::{MOST_FILE_BYTES, Memory, OpenError, ReadCause};

/// How much of an archive is unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes after decompression, headers included.
    pub bytes: u64,
    /// Most files, links and folders.
    pub entries: usize,
}

impl Default for Limits {
    /// 512 MiB and a million entries: twenty times the largest capture known, 32 sockets with
    /// every device.
    fn default() -> Self {
        Self { bytes: 512 << 20, entries: 1 << 20 }
    }
}

/// Counts what was decompressed and stops at the limit.
struct Bounded<R> {
    reader: R,
    left: u64,
    exceeded: bool,
    /// Whether the reader has nothing more to give.
    ended: bool,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            self.exceeded = true;
            return Err(std::io::Error::other("too large"));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let length = self.reader.read(&mut buffer[..most])?;
        self.left -= length as u64;
        self.ended |= length == 0 && most > 0;
        Ok(length)
    }
}

/// Entries that were not kept, or not as they are there.
#[derive(Default)]
struct Notes {
    refused: Option<(String, Refusal)>,
    refusals: usize,
    repeated: Option<String>,
    repetitions: usize,
    /// Whether no block of zeros ends the archive.
    is_open: bool,
    /// Whether anything but zeros follows the block that ends it.
    goes_on: bool,
}

impl Notes {
    fn refuse(&mut self, name: &str, why: Refusal) {
        self.refusals += 1;
        self.refused.get_or_insert_with(|| (name.to_owned(), why));
    }

    fn sentences(self) -> Vec<String> {
        let others = |count: usize| match count {
            0 | 1 => String::new(),
            2 => ", and one other entry".to_owned(),
            count => format!(", and {} other entries", count - 1),
        };
        let refused = self.refused.map(|(name, why)| {
            format!("{} {} and was left out{}", quote(&name), why.words(), others(self.refusals))
        });
        let repeated = self.repeated.map(|name| {
            format!("{} comes more than once, the last one counts{}", quote(&name), others(self.repetitions))
        });
        let open = "the archive has no end mark: files at its end can be missing";
        let goes_on = "data follow the end mark of the archive: left out";
        let end = [(self.is_open, open), (self.goes_on, goes_on)];
        let end = end.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text.to_owned());
        refused.into_iter().chain(repeated).chain(end).collect()
    }
}

/// Unpacks an archive; also gives sentences on what was strange about it.
pub(super) fn unpack(reader: impl Read, limits: &Limits) -> Result<(Memory, Vec<String>), OpenError> {
    let bounded = Bounded { reader, left: limits.bytes, exceeded: false, ended: false };
    let mut archive = tar::Archive::new(bounded);
    let mut files = Memory::new();
    let mut notes = Notes::default();
    let result = unpack_entries(&mut archive, limits, &mut files, &mut notes);
    let mut reader = archive.into_inner();
    let result = result.and_then(|()| {
        notes.is_open = reader.ended;
        notes.goes_on = has_more(&mut reader).map_err(damaged)?;
        Ok(())
    });
    if reader.exceeded {
        return Err(OpenError::TooLarge("the archive", limits.bytes));
    }
    result?;
    Ok((files, notes.sentences()))
}

/// Reads what follows the end of the archive: checksums of its compression, and zeros up to the end of a
/// record. Says whether there is anything else.
fn has_more(reader: &mut impl Read) -> std::io::Result<bool> {
    let mut buffer = vec![0; 64 << 10];
    let mut more = false;
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(more),
            length => more |= buffer[..length].iter().any(|byte| *byte != 0),
        }
    }
}

/// Unpacks an archive that is compressed.
pub(super) fn unpack_compressed(
    compression: Compression,
    bytes: &[u8],
    limits: &Limits,
) -> Result<(Memory, Vec<String>), OpenError> {
    let mut members = Members::new(compression, bytes);
    let (files, mut notes) = unpack(&mut members, limits)?;
    let behind = members.bytes_behind();
    if behind > 0 {
        let bytes = by_count(&behind, "byte follows", "bytes follow");
        notes.push(format!("{behind} {bytes} the compressed data: left out"));
    }
    Ok((files, notes))
}

fn unpack_entries<R: Read>(
    archive: &mut tar::Archive<R>,
    limits: &Limits,
    files: &mut Memory,
    notes: &mut Notes,
) -> Result<(), OpenError> {
    let mut any = false;
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        any = true;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        match keep(&mut entry, &name, files, notes) {
            Ok(()) => (),
            Err(Kept::Refused(why)) => notes.refuse(&name, why),
            Err(Kept::Damaged(error)) => return Err(damaged(error)),
        }
        if files.len() > limits.entries {
            return Err(OpenError::TooMany(limits.entries));
        }
    }
    if any { Ok(()) } else { Err(OpenError::NoEntries) }
}

/// Why an entry was not kept.
enum Kept {
    Refused(Refusal),
    Damaged(std::io::Error),
}

impl From<Refusal> for Kept {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn keep<R: Read>(
    entry: &mut tar::Entry<'_, R>,
    name: &str,
    files: &mut Memory,
    notes: &mut Notes,
) -> Result<(), Kept> {
    let kind = entry.header().entry_type();
    let target = || {
        let target = entry.link_name_bytes().ok_or(Refusal::Dangling)?;
        Ok::<_, Refusal>(String::from_utf8_lossy(&target).into_owned())
    };
    if !kind.is_dir() && files.holds(name) {
        notes.repetitions += 1;
        notes.repeated.get_or_insert_with(|| name.to_owned());
    }
    match kind {
        EntryType::Regular | EntryType::Continuous => {
            if entry.size() > MOST_FILE_BYTES {
                return Ok(files.add_closed(name, ReadCause::TooLarge(MOST_FILE_BYTES))?);
            }
            let mut contents = Vec::new();
            entry.read_to_end(&mut contents).map_err(Kept::Damaged)?;
            if contents.len() as u64 != entry.size() {
                let text = format!("it ends inside {}", quote(name));
                return Err(Kept::Damaged(std::io::Error::new(ErrorKind::UnexpectedEof, text)));
            }
            files.add_file(name, &contents)?;
        }
        EntryType::Directory => files.add_directory(name)?,
        EntryType::Symlink => files.add_link(name, &target()?)?,
        EntryType::Link => files.add_hard_link(name, &target()?)?,
        EntryType::Fifo => files.add_closed(name, ReadCause::NotAFile("a FIFO"))?,
        EntryType::Char | EntryType::Block => files.add_closed(name, ReadCause::NotAFile("a device"))?,
        // Attributes for all entries: nothing of it is used.
        EntryType::XGlobalHeader => (),
        _ => files.add_closed(name, ReadCause::NotAFile("a special entry of the archive"))?,
    }
    Ok(())
}

fn damaged(error: std::io::Error) -> OpenError {
    OpenError::Damaged(printable(&error.to_string()).into_owned())
}
