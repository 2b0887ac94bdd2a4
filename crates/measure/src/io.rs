//! Devices that are read: what a block device, or the file on one, gives to buffers on each node.
//!
//! A way reads one device past the page cache (direct I/O: the device writes into the buffer itself), with a
//! thread near the device and a buffer that is proven to be on one node. Two things are timed: large blocks
//! one after the other, and blocks of 4 KiB at random places. Each node has one buffer per round, which the
//! ways to it use in turn. Reading goes on where the last sample has ended, so that no sample finds what
//! another has just brought into a cache of the device.

pub mod findings;
pub mod report;
pub mod target;

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use nodewise_machine::Bytes;

use crate::cell::memories::Memories;
use crate::cell::{Cell, Facts, Placed, Probe, Refusal, Seat};
use crate::latency::best_cpu;
use crate::stop::Stop;
use crate::survey::{Bench, Timed};
use crate::timer::Timer;
use nodewise_stats::Direction;
use nodewise_stats::median;
use nodewise_stats::random::Random;

pub use findings::{IoFinding, findings};
pub use report::{DeviceKind, DeviceReport, Home, IoReport, IoTransferReport};
pub use target::{Target, TargetError};

/// The largest block that is read at once: large enough that the kernel splits it into requests that keep
/// several parts of a device busy.
pub const LARGE: Bytes = Bytes::from_mib(4);
/// The block of random reads: the small page of most processors, and what databases read.
pub const SMALL: Bytes = Bytes::from_kib(4);
/// Random reads of a sample, at least and at most, whatever time they take.
const READS: (usize, usize) = (16, 4096);
/// How long a CPU spins before a sample.
const WARM_UP: Duration = Duration::from_millis(1);

/// How a device is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Large blocks one after the other: GB/s (10^9 bytes per second).
    Sequential,
    /// Blocks of 4 KiB at random places, one at a time: us, the median of the reads of a sample.
    Random,
}

impl Access {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sequential, Self::Random];

    /// The word for text and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
        }
    }

    /// The unit of its figures.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Sequential => "GB/s",
            Self::Random => "us",
        }
    }

    /// Which figures are good.
    pub const fn direction(self) -> Direction {
        match self {
            Self::Sequential => Direction::HigherIsBetter,
            Self::Random => Direction::LowerIsBetter,
        }
    }
}

/// A device, how it is read, and who reads into which memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IoTransfer {
    /// The device or the file.
    pub path: PathBuf,
    pub access: Access,
    /// The CPUs near the device, and the memory of the buffer.
    pub cell: Cell,
}

/// The bench of `nodewise io`: GB/s for large blocks, us for small ones.
#[derive(Debug)]
pub struct IoBench {
    timer: Timer,
    time: Duration,
    random: Random,
    targets: HashMap<PathBuf, Target>,
    memories: Memories,
    /// The next large block of each device, counted on forever.
    next: HashMap<PathBuf, u64>,
}

impl IoBench {
    /// A bench with buffers of this size, of at least [`SMALL`], whose samples take so long.
    pub fn new(size: Bytes, time: Duration, seed: u64) -> Self {
        Self {
            timer: Timer::choose(),
            time,
            random: Random::stream(seed, u64::MAX),
            targets: HashMap::new(),
            memories: Memories::new(size.max(SMALL)),
            next: HashMap::new(),
        }
    }

    /// The clock.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }
}

impl Bench for IoBench {
    type Cell = IoTransfer;

    fn begin_round(&mut self, _round: u32) {
        self.memories.clear();
        // Opened again, so that a device that has gone is noticed.
        self.targets.clear();
    }

    fn prepare(&mut self, way: &IoTransfer, facts: &mut dyn Facts) -> Result<(), Refusal> {
        if best_cpu(&way.cell.cpus).is_none() {
            return Err(Refusal::NoCpu { node: way.cell.from });
        }
        if !self.targets.contains_key(&way.path) {
            let target = Target::open(&way.path).map_err(|error| Refusal::Other(error.to_string()))?;
            self.targets.insert(way.path.clone(), target);
        }
        self.memories.make(&way.cell, facts)
    }

    fn placed(&mut self, way: &IoTransfer, facts: &mut dyn Facts) -> Result<Option<Placed>, Refusal> {
        self.memories.placed(&way.cell, facts)
    }

    fn sample(&mut self, way: &IoTransfer, facts: &mut dyn Facts) -> Result<Timed, Refusal> {
        let missing = || Refusal::Wrong { what: "there is no device, or no memory, to read".to_owned() };
        let target = self.targets.get(&way.path).ok_or_else(missing)?;
        let memory = self.memories.buffer(&way.cell).ok_or_else(missing)?;
        let cpu = best_cpu(&way.cell.cpus).ok_or(Refusal::NoCpu { node: way.cell.from })?;
        let stop = facts.stop().clone();
        let buffer = memory.buffer_mut().as_mut_slice();
        let reader = Reader { target, buffer, timer: &self.timer, stop: &stop };
        let seat = Seat::take(cpu, WARM_UP, &self.timer)?;
        let probe = Probe::take(&self.timer);
        let (time, random) = (self.time, &mut self.random);
        let next = self.next.entry(way.path.clone()).or_default();
        let timed = Timed::around(facts, Some(probe), || match way.access {
            Access::Sequential => reader.blocks(next, time),
            Access::Random => reader.places(random, time),
        })?;
        seat.check()?;
        Ok(timed)
    }
}

/// One device and one buffer.
struct Reader<'a> {
    target: &'a Target,
    buffer: &'a mut [u8],
    timer: &'a Timer,
    stop: &'a Stop,
}

impl Reader<'_> {
    /// Reads large blocks one after the other, from the beginning again behind the last: GB/s.
    fn blocks(mut self, next: &mut u64, time: Duration) -> Result<f64, Refusal> {
        let block = self.block();
        let (blocks, slots) = (self.target.size().get() / block as u64, self.buffer.len() / block);
        let begin = self.timer.now();
        let mut done: u64 = 0;
        loop {
            let (place, slot) = (*next % blocks.max(1), done as usize % slots.max(1));
            self.read(slot * block, block, place * block as u64)?;
            *next = next.wrapping_add(1);
            done += 1;
            let elapsed = self.timer.now().since(begin);
            if elapsed >= time {
                let resolved = self.timer.resolves(elapsed);
                let bytes = (done * block as u64) as f64;
                return resolved.then(|| bytes / elapsed.as_nanos() as f64).ok_or(Refusal::TooShort);
            }
        }
    }

    /// Reads small blocks at random places, one at a time: us, the median.
    fn places(mut self, random: &mut Random, time: Duration) -> Result<f64, Refusal> {
        let block = SMALL.get() as usize;
        let (places, slots) = (self.target.size().get() / SMALL.get(), self.buffer.len() / block);
        let mut took: Vec<f64> = Vec::with_capacity(READS.1);
        let begin = self.timer.now();
        let mut from = begin;
        while took.len() < READS.1 && (took.len() < READS.0 || from.since(begin) < time) {
            let (place, slot) = (random.below(places.max(1)), took.len() % slots.max(1));
            self.read(slot * block, block, place * SMALL.get())?;
            let now = self.timer.now();
            took.push(now.since(from).as_nanos() as f64 / 1e3);
            from = now;
        }
        // One read of a hole in a file takes a microsecond, and the clock a few hundredths of that: no disk
        // is as fast. All together are long enough.
        let resolved = self.timer.resolves(from.since(begin));
        median(&took).filter(|_| resolved).ok_or(Refusal::TooShort)
    }

    /// A large block: as much as the buffer and the device hold of [`LARGE`], in whole small ones.
    fn block(&self) -> usize {
        let most = LARGE.get().min(self.buffer.len() as u64).min(self.target.size().get());
        (most / SMALL.get() * SMALL.get()) as usize
    }

    /// Reads once; a look at what ends the measurement costs a hundredth of the fastest device's read.
    fn read(&mut self, at: usize, length: usize, offset: u64) -> Result<(), Refusal> {
        self.stop.check()?;
        let part = self.buffer.get_mut(at..at + length);
        let part = part.ok_or_else(|| Refusal::Wrong { what: "the buffer is too small".to_owned() })?;
        self.target.read(part, offset).map_err(|error| Refusal::Other(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
