//! Bandwidth of files in memory: what `write(2)` and `read(2)` of a file of tmpfs give whose pages are on a
//! chosen node. What people do with `dd` and `cp` on `/dev/shm`, with the parts apart: writing a new file is
//! making pages and copying, writing it again is copying alone.
//!
//! A file belongs to no name from its beginning on, so that nothing is left on any end. Its pages obey a
//! policy of the file itself, whoever writes them; the kernel reports where they are through a mapping of
//! the file. All sizes count the bytes that the program hands over or gets, once: the copy moves them twice.

pub mod pages;
pub mod report;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::Duration;

use nodewise_machine::{Bytes, CpuId, NodeId};
use nodewise_syscall::{NodeBuffer, PageKind};

use crate::cell::{Cell, Facts, Glance, Placed, Probe, Refusal, Seat};
use crate::latency::best_cpu;
use crate::stop::Stop;
use crate::survey::{Bench, Timed};
use crate::team::Away;
use crate::timer::Timer;

use pages::PlacedFile;
pub use report::{FileFinding, FileReport, FileTransferReport, file_findings};

/// How much is handed over at once, as with `dd bs=1M`.
pub const BLOCK: Bytes = Bytes::MIB;
/// How long a CPU spins before a sample.
const WARM_UP: Duration = Duration::from_millis(1);

/// Operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Writes an empty file: the kernel takes a page, clears or fills it, for each page of it.
    Write,
    /// Writes a file that has its pages already.
    Rewrite,
    Read,
}

impl Operation {
    /// All.
    pub const ALL: [Self; 3] = [Self::Write, Self::Rewrite, Self::Read];

    /// The word for text and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Rewrite => "rewrite",
            Self::Read => "read",
        }
    }
}

/// Where files are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TmpfsLocation {
    /// In the tmpfs that the kernel keeps for itself (`memfd_create(2)`): no mount, no limit of its size.
    Kernel,
    /// In a folder of a mounted tmpfs, without a name (`O_TMPFILE`).
    Folder(PathBuf),
}

/// Who does what with a file on which node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileTransfer {
    /// The CPUs of the program (one is used), and the node of the file's pages.
    pub cell: Cell,
    pub operation: Operation,
}

/// The bench of `nodewise bandwidth --file`: GB/s (10^9 bytes per second) of the program.
#[derive(Debug)]
pub struct FileBench {
    timer: Timer,
    size: Bytes,
    place: TmpfsLocation,
    files: HashMap<NodeId, PlacedFile>,
    /// The data that is handed over, near the CPU that does: its first writer.
    blocks: HashMap<CpuId, NodeBuffer>,
}

impl FileBench {
    /// A bench with a file of this size on each node.
    pub fn new(size: Bytes, place: TmpfsLocation) -> Self {
        Self { timer: Timer::choose(), size, place, files: HashMap::new(), blocks: HashMap::new() }
    }

    /// The clock.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }
}

impl Bench for FileBench {
    type Cell = FileTransfer;

    fn begin_round(&mut self, _round: u32) {
        self.files.clear();
        self.blocks.clear();
    }

    fn prepare(&mut self, way: &FileTransfer, facts: &mut dyn Facts) -> Result<(), Refusal> {
        let Cell { from, cpus, memory, .. } = &way.cell;
        if best_cpu(cpus).is_none() {
            return Err(Refusal::NoCpu { node: *from });
        }
        if !self.files.contains_key(memory) {
            self.files.insert(*memory, PlacedFile::new(self.size, *memory, &self.place, facts)?);
        }
        Ok(())
    }

    fn placed(&mut self, way: &FileTransfer, facts: &mut dyn Facts) -> Result<Option<Placed>, Refusal> {
        self.files.get(&way.cell.memory).map(|file| file.now(facts)).transpose()
    }

    fn sample(&mut self, way: &FileTransfer, facts: &mut dyn Facts) -> Result<Timed, Refusal> {
        let file = self.files.get(&way.cell.memory);
        let file = file.ok_or_else(|| Refusal::Wrong { what: "there is no file".to_owned() })?;
        let cpu = best_cpu(&way.cell.cpus).ok_or(Refusal::NoCpu { node: way.cell.from })?;
        let seat = Seat::take(cpu, WARM_UP, &self.timer)?;
        let block = match self.blocks.entry(cpu) {
            Entry::Occupied(block) => block.into_mut(),
            Entry::Vacant(place) => place.insert(NodeBuffer::new(BLOCK, PageKind::Small, None)?),
        };
        if way.operation == Operation::Write {
            file.empty()?;
        }
        let probe = Probe::take(&self.timer);
        let (timer, stop) = (&self.timer, facts.stop().clone());
        let mut away = Away::default();
        let timed = Timed::around(facts, Some(probe), || {
            let elapsed = away.around(|| {
                let begin = timer.now();
                pass(file, way.operation, block.as_mut_slice(), &stop)?;
                Ok::<_, Refusal>(timer.now().since(begin))
            })?;
            let rate = file.size().get() as f64 / elapsed.as_nanos() as f64;
            timer.resolves(elapsed).then_some(rate).ok_or(Refusal::TooShort)
        })?;
        seat.check()?;
        let meanwhile = Glance { switched: away.switched(), ..timed.meanwhile };
        Ok(Timed { meanwhile, ..timed })
    }
}

/// Writes or reads a file from its beginning to its end. One look at what ends it costs less than a thousandth
/// of a block.
fn pass(file: &PlacedFile, operation: Operation, block: &mut [u8], stop: &Stop) -> Result<(), Refusal> {
    let (size, mut at) = (file.size().get(), 0);
    while at < size {
        stop.check()?;
        // At most the block, so it fits.
        let length = (size - at).min(block.len() as u64) as usize;
        let part = &mut block[..length];
        match operation {
            Operation::Write | Operation::Rewrite => file.file().write_all_at(part, at),
            Operation::Read => file.file().read_exact_at(part, at),
        }
        .map_err(|error| file.refused(operation.word(), &error))?;
        at += length as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
