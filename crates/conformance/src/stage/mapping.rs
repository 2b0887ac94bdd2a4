//! A mapping of a script in the kernel.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;

use nodewise_machine::Bytes;
use nodewise_syscall::advice::advise;
use nodewise_syscall::shared::SharedMemory;
use nodewise_syscall::{Advice, CallError, NodeBuffer, PageKind};

use crate::nodes::PAGE;
use crate::script::{BLOCK, MappingKind};
use crate::trace::MadeMapping;

/// A file in a folder of tmpfs.
const FILE: &str = "nodewise-script";

enum Memory {
    Own(NodeBuffer),
    /// The pages of a buffer from one on, and their number. Those around them are kept to small pages: the kernel would make one
    /// mapping of neighbours that are alike, and huge pages across their border.
    Within(NodeBuffer, u64, u64),
    /// With the number of its inode.
    File(SharedMemory, u64),
}

/// A mapping, unmapped when dropped.
pub struct Mapping {
    pub kind: MappingKind,
    memory: Memory,
}

impl Mapping {
    /// Maps this many pages, which no one has touched.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn new(kind: MappingKind, pages: u64, folder: &str) -> Result<Self, String> {
        let size = Bytes::new(pages * PAGE);
        let own = |kind: PageKind| -> Result<Memory, CallError> {
            let buffer = NodeBuffer::reserve(size, kind, None)?;
            advise(buffer.address(), size.get() as usize, Advice::ForChildren)?;
            Ok(Memory::Own(buffer))
        };
        let say = |error: CallError| error.to_string();
        let memory = match kind {
            MappingKind::Huge => own(PageKind::TransparentHuge).map_err(say)?,
            MappingKind::Small => own(PageKind::Small).map_err(say)?,
            MappingKind::Plain(lead) => plain(lead, pages).map_err(say)?,
            MappingKind::File(first) => {
                let path = format!("{folder}/{FILE}-{}", std::process::id());
                file(&path, first, pages).map_err(|error| format!("{path}: {error}"))?
            }
        };
        Ok(Self { kind, memory })
    }

    /// Its first byte.
    pub fn address(&self) -> usize {
        match &self.memory {
            Memory::Own(buffer) => buffer.address(),
            Memory::Within(buffer, first, _) => buffer.address() + (first * PAGE) as usize,
            Memory::File(memory, _) => memory.address(),
        }
    }

    /// Its number of small pages.
    pub fn pages(&self) -> u64 {
        match &self.memory {
            Memory::Own(buffer) => buffer.length().get() / PAGE,
            Memory::Within(_, _, pages) => *pages,
            Memory::File(memory, _) => memory.length() as u64 / PAGE,
        }
    }

    /// The facts about it that a program needs to map the same.
    pub fn made(&self) -> MadeMapping {
        let (kind, address, pages, inode) = (self.kind, self.address(), self.pages(), self.inode());
        MadeMapping { kind, address, pages, inode }
    }

    /// The number by address of one of its pages.
    pub fn page(&self, number: u64) -> u64 {
        self.address() as u64 / PAGE + number
    }

    /// The inode's number, of a file.
    pub fn inode(&self) -> Option<u64> {
        if let Memory::File(_, inode) = self.memory { Some(inode) } else { None }
    }

    /// Writes to a page.
    ///
    /// # Errors
    /// The kernel gives no page.
    pub fn write(&mut self, number: u64) -> Result<(), String> {
        let at = (number * PAGE) as usize;
        match &mut self.memory {
            Memory::Own(buffer) => buffer.as_mut_slice()[at] = 1,
            Memory::Within(buffer, first, _) => buffer.as_mut_slice()[(*first * PAGE) as usize + at] = 1,
            Memory::File(memory, _) => advise(memory.address() + at, PAGE as usize, Advice::Populate)
                .map_err(|error| error.to_string())?,
        }
        Ok(())
    }
}

/// Memory without advice whose first place for a huge page is behind this many pages.
fn plain(lead: u64, pages: u64) -> Result<Memory, CallError> {
    // A huge page of others before it, and one behind it.
    let all = (pages.next_multiple_of(BLOCK) + 2 * BLOCK) * PAGE;
    let buffer = NodeBuffer::unadvised(Bytes::new(all))?;
    let first = BLOCK - lead;
    let (start, end) = (buffer.address(), ((first + pages) * PAGE) as usize);
    advise(start, (first * PAGE) as usize, Advice::SmallPages)?;
    advise(start + end, all as usize - end, Advice::SmallPages)?;
    Ok(Memory::Within(buffer, first, pages))
}

/// Part of a new file, whose name is gone again.
fn file(path: &str, first: u64, pages: u64) -> Result<Memory, Box<dyn std::error::Error>> {
    let file = File::options().read(true).write(true).create_new(true).open(path)?;
    std::fs::remove_file(path)?;
    file.set_len((first + pages) * PAGE)?;
    let memory = SharedMemory::map(file.as_fd(), first * PAGE, (pages * PAGE) as usize)
        .map_err(|errno| format!("mmap: {errno:?}"))?;
    Ok(Memory::File(memory, file.metadata()?.ino()))
}
