//! A file without a name whose pages are proven to be on one node.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use nodewise_machine::printable::{io_words, printable};
use nodewise_machine::{Bytes, MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_syscall::arguments::BindOptions;
use nodewise_syscall::shared::SharedMemory;
use nodewise_syscall::{Advice, PageCounts, PageKind, Task, advice, mempolicy, pages};
use rustix::fs::{MemfdFlags, Mode, OFlags, fstatfs, memfd_create, open};

use super::{BLOCK, TmpfsLocation};
use crate::cell::memory::check_room;
use crate::cell::{Facts, Phase, Placed, Refusal};

/// `TMPFS_MAGIC` of `linux/magic.h`.
const TMPFS: u64 = 0x0102_1994;

/// Bytes whose pages are asked for between two questions whether to go on: whole pages of any size.
const PART: usize = 64 << 20;

/// A file of tmpfs on one node. It vanishes when this is dropped, and when the process ends in any way.
#[derive(Debug)]
pub struct PlacedFile {
    file: File,
    mapping: SharedMemory,
    node: NodeId,
    size: Bytes,
}

impl PlacedFile {
    /// Makes a file, gives it its policy, writes all of it, and asks the kernel where its pages are.
    ///
    /// # Errors
    /// Before anything is taken: where the node or the file system has too little room, or the folder is on no
    /// tmpfs. Afterwards: what the calls are refused with, and pages that came elsewhere.
    pub fn new(
        size: Bytes,
        node: NodeId,
        place: &TmpfsLocation,
        facts: &mut dyn Facts,
    ) -> Result<Self, Refusal> {
        check_room(size, node, PageKind::Small, facts)?;
        let file = match place {
            TmpfsLocation::Kernel => unnamed_in_kernel(),
            TmpfsLocation::Folder(folder) => unnamed_in_folder(folder, size),
        }?;
        let length = usize::try_from(size.get()).map_err(|_| Refusal::NoMemory { needed: size })?;
        file.set_len(size.get()).map_err(|error| refused("the file cannot be made", &error))?;
        let mapping = SharedMemory::map(file.as_fd(), 0, length)
            .map_err(|errno| Refusal::Other(format!("the file cannot be mapped: {errno}")))?;
        let policy = MemPolicy::new(PolicyMode::Bind, NodeSet::from([node.number()]));
        mempolicy::bind_range(mapping.address(), length, &policy, BindOptions::default())?;
        let placed_file = Self { file, mapping, node, size };
        facts.enter(Phase::Filling { size, node });
        placed_file.fill(facts)?;
        let placed = placed_file.now(facts)?;
        if placed.is_full() {
            Ok(placed_file)
        } else {
            Err(Refusal::Elsewhere { node, on_node: placed.on_node, pages: placed.pages })
        }
    }

    /// Where its pages are now: those in the page cache, mapped here so that the kernel can be asked.
    ///
    /// # Errors
    /// A refused `move_pages(2)`, or `madvise(2)`: `MADV_POPULATE_WRITE` came with Linux 5.14; and an end of
    /// the measurement meanwhile.
    pub fn now(&self, facts: &mut dyn Facts) -> Result<Placed, Refusal> {
        facts.enter(Phase::Locating { node: self.node });
        let (address, length) = (self.mapping.address(), self.mapping.length());
        let mut counts = PageCounts::default();
        for at in (0..length).step_by(PART) {
            facts.go_on()?;
            let (start, part) = (address + at, PART.min(length - at));
            advice::advise(start, part, Advice::Populate)?;
            let addresses = pages::addresses(start, part, pages::page_size());
            pages::locate(Task::CURRENT, addresses, |_, location| counts.add(location))?;
        }
        Ok(Placed::from_counts(&counts, self.node, None))
    }

    /// Takes all pages from it; its policy stays.
    ///
    /// # Errors
    /// A refused `ftruncate(2)`.
    pub fn empty(&self) -> Result<(), Refusal> {
        self.file.set_len(0).map_err(|error| refused("the file cannot be emptied", &error))
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// How much is in it when it is full.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// The refusal of what was to be done with it.
    pub fn refused(&self, verb: &str, error: &io::Error) -> Refusal {
        refused(&format!("the file on node {} refuses to {verb}", self.node), error)
    }

    fn fill(&self, facts: &mut dyn Facts) -> Result<(), Refusal> {
        let block = vec![0x5a; BLOCK.get() as usize];
        let size = self.size.get();
        for at in (0..size).step_by(block.len()) {
            facts.go_on()?;
            let part = &block[..(size - at).min(BLOCK.get()) as usize];
            self.file.write_all_at(part, at).map_err(|error| self.refused("write", &error))?;
        }
        Ok(())
    }
}

fn unnamed_in_kernel() -> Result<File, Refusal> {
    let file = memfd_create("nodewise", MemfdFlags::CLOEXEC);
    file.map(File::from).map_err(|errno| refused("the file cannot be made", &errno.into()))
}

fn unnamed_in_folder(folder: &Path, size: Bytes) -> Result<File, Refusal> {
    let name = printable(&folder.to_string_lossy()).into_owned();
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = open(folder, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| refused(&format!("no file can be made in {name}"), &errno.into()))?;
    let system = fstatfs(&file).map_err(|errno| refused(&name, &errno.into()))?;
    if u64::try_from(system.f_type).ok() != Some(TMPFS) {
        return Err(Refusal::Other(format!(
            "{name} is on no tmpfs: expected a folder as /dev/shm, for only there the pages of a file have a \
             policy"
        )));
    }
    // A tmpfs without a limit reports 0 blocks.
    let free = Bytes::new(system.f_bavail.saturating_mul(u64::try_from(system.f_bsize).unwrap_or(0)));
    if system.f_blocks > 0 && free < size {
        return Err(Refusal::Other(format!(
            "{name} has {free} free, {size} are needed: try a smaller --size"
        )));
    }
    Ok(File::from(file))
}

fn refused(what: &str, error: &io::Error) -> Refusal {
    Refusal::Other(format!("{what}: {}", io_words(error)))
}
