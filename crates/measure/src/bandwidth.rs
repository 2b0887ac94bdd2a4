//! Bandwidth of memory: bytes per second on the ways between CPUs and nodes.
//!
//! Which variant of a kernel is fastest is not known before: it differs with the processor, the kind
//! of pages, one thread or many, near or far memory. So the first way of each such kind holds a
//! [`contest`], and every figure names the winner. On a busy machine a team's contest takes a second:
//! where time is limited and contests have had their share, a kind takes over the winner for the same
//! kernel.
//!
//! Each memory node has one buffer per kind of page and round, which the ways to it use in turn: every
//! sample fills it again, and what is in it afterwards is checked.

pub mod contest;
pub mod file;
pub mod findings;
pub mod report;
pub mod weights;
pub mod yardstick;

use std::collections::HashMap;
use std::time::Duration;

use nodewise_machine::{Bytes, CpuId, CpuSet};
use nodewise_syscall::PageKind;

use crate::cell::memories::{Memories, place};
use crate::cell::{Cell, Facts, Glance, Placed, Probe, Refusal};
use crate::kernel::bandwidth::{Kernel, Variant};
use crate::survey::{Bench, Timed};
use crate::team::work::PAGE;
use crate::team::{self, Member, Task};
use crate::timer::Timer;
use contest::Contest;

pub use findings::{BandwidthFinding, findings};
pub use report::{BandwidthReport, TransferReport};
pub use weights::Weights;
pub use yardstick::{BandwidthYardstick, PeakOwner, PeakShare};

/// CPUs and memory that are measured together, and what is done there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemoryTransfer {
    /// Which CPUs reach for the memory of which node, each with a thread of its own. One cell; or
    /// several, that run at the same time and on memory of their own.
    pub cells: Vec<Cell>,
    pub kernel: Kernel,
}

impl MemoryTransfer {
    /// How many threads run.
    pub fn threads(&self) -> usize {
        self.cells.iter().map(|cell| cell.cpus.len()).sum()
    }

    /// All CPUs.
    pub fn cpus(&self) -> CpuSet {
        self.cells.iter().flat_map(|cell| cell.cpus.iter()).collect()
    }

    /// Returns the facts that decide which variant is fastest.
    fn kind(&self) -> Kind {
        let remote = self.cells.iter().any(|cell| cell.from != cell.memory);
        let pages = self.cells.first().map_or(PageKind::Small, |cell| cell.pages);
        Kind { kernel: self.kernel, pages, remote, several: self.threads() > 1 }
    }
}

/// Ways of one kind share a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    kernel: Kernel,
    pages: PageKind,
    remote: bool,
    several: bool,
}

/// The bench of `nodewise bandwidth`: GB/s (10^9 bytes per second) that the program reads and writes.
#[derive(Debug)]
pub struct BandwidthBench {
    timer: Timer,
    time: Duration,
    memories: Memories,
    winners: Winners,
}

/// The share of a limited time that contests may take, until they are held only for new kernels and without finals.
const FOR_CONTESTS: f64 = 0.2;

/// The winners of the contests, and the time these took.
#[derive(Debug, Default)]
struct Winners {
    variants: HashMap<Kind, Variant>,
    /// The time that was left when the first contest began; `None` before, and without a limit.
    limit: Option<Duration>,
    spent: Duration,
}

impl Winners {
    /// A contest begins with so much time left: how it is held.
    fn begin(&mut self, left: Option<Duration>) -> Contest {
        self.limit = self.limit.or(left);
        let is_over = self.limit.is_some_and(|limit| self.spent > limit.mul_f64(FOR_CONTESTS));
        if is_over { Contest::Short } else { Contest::Whole }
    }

    /// Returns the winner for the same kernel in another kind.
    fn of_kernel(&self, kernel: Kernel) -> Option<Variant> {
        // Of several always the same: the fewest differences from the usual first.
        let known = self.variants.iter().filter(|(kind, _)| kind.kernel == kernel);
        known.min_by_key(|(kind, _)| (kind.remote, kind.several)).map(|(_, variant)| *variant)
    }
}

impl BandwidthBench {
    /// A bench whose ways have buffers of this size on each node, and whose samples take so long.
    pub fn new(size: Bytes, time: Duration) -> Self {
        let memories = Memories::new(size);
        Self { timer: Timer::choose(), time, memories, winners: Winners::default() }
    }

    /// The variant that won the contest of a way; `None` before there was one.
    pub fn variant(&self, way: &MemoryTransfer) -> Option<Variant> {
        self.winners.variants.get(&way.kind()).copied()
    }

    /// The clock.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }

    /// The variant for a way: what wins a contest, or what has won one for this kernel.
    fn winner(&mut self, way: &MemoryTransfer, facts: &mut dyn Facts) -> Result<Variant, Refusal> {
        let left = facts.stop().left();
        let held = self.winners.begin(left);
        if let (Contest::Short, Some(known)) = (held, self.winners.of_kernel(way.kernel)) {
            return Ok(known);
        }
        let (timer, memories) = (&self.timer, &mut self.memories);
        let winner = contest::of_team(way.kernel, held, timer, facts, memories, |memories| {
            Self::members(memories, way)
        });
        let spent = left.zip(facts.stop().left()).map(|(before, after)| before.saturating_sub(after));
        self.winners.spent += spent.unwrap_or_default();
        winner
    }

    /// The threads of a way, each with its part of the memory.
    fn members<'a>(memories: &'a mut Memories, way: &MemoryTransfer) -> Result<Vec<Member<'a>>, Refusal> {
        let mut members = Vec::new();
        let mut wanted: Vec<&Cell> = way.cells.iter().collect();
        for (at, memory) in memories.all() {
            let Some(at) = wanted.iter().position(|cell| place(cell) == at) else { continue };
            let cell = wanted.swap_remove(at);
            let words = memory.buffer_mut().as_mut_words();
            // Whole pages, unless there are too few: a part that begins within a line would have its ends
            // moved word by word.
            let even = words.len() / cell.cpus.len().max(1);
            let part = if even < PAGE { even } else { even / PAGE * PAGE };
            let cpus: Vec<CpuId> = cell.cpus.iter().collect();
            let parts = words.chunks_mut(part.max(1));
            members.extend(cpus.into_iter().zip(parts).map(|(cpu, part)| Member { cpu, part }));
        }
        let complete = wanted.is_empty() && members.len() == way.threads() && !members.is_empty();
        let missing = || Refusal::Other("there is no CPU, or no memory, to run on".to_owned());
        complete.then_some(members).ok_or_else(missing)
    }
}

impl Bench for BandwidthBench {
    type Cell = MemoryTransfer;

    fn begin_round(&mut self, _round: u32) {
        self.memories.clear();
    }

    fn prepare(&mut self, way: &MemoryTransfer, facts: &mut dyn Facts) -> Result<(), Refusal> {
        for cell in &way.cells {
            if cell.cpus.is_empty() {
                return Err(Refusal::NoCpu { node: cell.from });
            }
            self.memories.make(cell, facts)?;
        }
        if !self.winners.variants.contains_key(&way.kind()) {
            let winner = self.winner(way, facts)?;
            self.winners.variants.insert(way.kind(), winner);
        }
        Ok(())
    }

    fn placed(&mut self, way: &MemoryTransfer, facts: &mut dyn Facts) -> Result<Option<Placed>, Refusal> {
        let mut all: Option<Placed> = None;
        for cell in &way.cells {
            if let Some(placed) = self.memories.placed(cell, facts)? {
                all = Some(match all {
                    Some(all) => all.worse(placed),
                    None => placed,
                });
            }
        }
        Ok(all)
    }

    fn sample(&mut self, way: &MemoryTransfer, facts: &mut dyn Facts) -> Result<Timed, Refusal> {
        let variant =
            self.variant(way).ok_or_else(|| Refusal::Wrong { what: "there was no contest".to_owned() })?;
        let stop = facts.stop().clone();
        let task = Task { kernel: way.kernel, variants: &[variant], time: self.time, stop: &stop };
        let members = Self::members(&mut self.memories, way)?;
        let probe = Probe::take(&self.timer);
        let mut switched = None;
        let timed = Timed::around(facts, Some(probe), || {
            let results = team::run(members, task, &self.timer)?;
            let throughput = results.into_iter().next().unwrap_or(Err(Refusal::TooShort))?;
            switched = throughput.switched;
            Ok(throughput.program / 1e9)
        })?;
        // Those of the team: the calling thread only waits for it, and its faults are of no interest.
        let meanwhile = Glance { switched, faults: None, ..timed.meanwhile };
        Ok(Timed { meanwhile, ..timed })
    }
}

#[cfg(test)]
mod tests;
