//! Latency under load: one CPU chases while others move data, with longer and longer pauses.
//!
//! A [`Loaded`] is a point of a curve: a chase, and what is moved meanwhile ([`traffic`]). Without
//! traffic it is the idle latency that the others are compared with. The bytes that count are those of
//! the time of the chase, and those of the chase itself do not. Both have memory of their own, proven to
//! be where it should be; points of all curves are interleaved by the one loop ([`crate::survey`]).

pub mod findings;
pub mod knee;
pub mod report;
pub mod traffic;

use std::collections::HashMap;
use std::time::Duration;

use nodewise_machine::{Bytes, CpuId};
use nodewise_syscall::PageKind;

use super::{Chase, LEAD_IN, LatencyBench, WARM_UP, best_cpu, key};
use crate::bandwidth::contest::{self, Contest};
use crate::cell::memories::Memories;
use crate::cell::{Cell, Facts, Glance, Placed, Probe, Refusal, Seat};
use crate::kernel::bandwidth::{Kernel, Variant};
use crate::kernel::chase::TURN;
use crate::kernel::track::Track;
use crate::survey::{Bench, Beside, Timed};
use crate::team::work::PAGE;
use crate::team::{self, Away, Member};
use crate::timer::{Moment, Timer};
use nodewise_stats::quantile;

pub use findings::{LoadedFinding, findings};
pub use knee::{Knee, knee};
pub use report::{Curve, LoadedReport, Path, Point};
use traffic::{Load, Meanwhile};

/// Pauses after each 4 KiB, ns: from full speed to a hundredth of it, and finest where a curve bends.
///
/// # Source
/// The numbers are the injection delays of Intel's Memory Latency Checker ("19 delays" of
/// `--loaded_latency`, in cycles there, after fewer bytes).
pub const PAUSES: [u32; 19] =
    [0, 2, 8, 15, 50, 100, 200, 300, 400, 500, 700, 1000, 1300, 1700, 2500, 3500, 5000, 9000, 20_000];
/// Those of `--quick`.
pub const FEW_PAUSES: [u32; 7] = [0, 50, 100, 200, 500, 1300, 5000];

/// Loads between two looks at the clock: some 50 us in memory.
const BLOCK: u64 = 512;
/// Blocks of a sample at most: of a chase in caches, whose blocks are short.
const BLOCKS: usize = 8192;

/// A chase, and what goes on meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Loaded {
    /// The chase; the best of its CPUs is used.
    pub chase: Chase,
    /// The traffic of others meanwhile; `None` for the idle latency.
    pub traffic: Option<Traffic>,
}

/// The traffic of threads on other CPUs while one chases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Traffic {
    /// A thread on each of its CPUs, and their memory.
    pub cell: Cell,
    pub kernel: Kernel,
    /// The pause after each 4 KiB of an array, ns; 0 for none.
    pub pause_ns: u32,
}

impl Traffic {
    /// Returns the facts that decide which variant is fastest: kernel, pages, whether the memory is near.
    fn kind(&self) -> Kind {
        (self.kernel, self.cell.pages, self.cell.from == self.cell.memory)
    }
}

type Kind = (Kernel, PageKind, bool);

/// The bench of `nodewise latency --loaded`: the median of nanoseconds per load, and [`Beside`] it their
/// 90th percentile and the GB/s of the traffic.
#[derive(Debug)]
pub struct LoadedBench {
    latency: LatencyBench,
    /// How long a sample takes.
    time: Duration,
    memories: Memories,
    variants: HashMap<Kind, Variant>,
}

impl LoadedBench {
    /// A bench that draws from this seed, whose traffic uses so much memory, and whose samples take so
    /// long.
    pub fn new(seed: u64, size: Bytes, time: Duration) -> Self {
        let latency = LatencyBench::new(seed);
        Self { latency, time, memories: Memories::new(size), variants: HashMap::new() }
    }

    /// The variant that won the contest for some traffic; `None` before there was one.
    pub fn variant(&self, traffic: &Traffic) -> Option<Variant> {
        self.variants.get(&traffic.kind()).copied()
    }

    /// The clock.
    pub fn timer(&self) -> &Timer {
        self.latency.timer()
    }

    fn prepare_traffic(&mut self, traffic: &Traffic, facts: &mut dyn Facts) -> Result<(), Refusal> {
        if traffic.cell.cpus.is_empty() {
            return Err(Refusal::NoCpu { node: traffic.cell.from });
        }
        self.memories.make(&traffic.cell, facts)?;
        if !self.variants.contains_key(&traffic.kind()) {
            let (timer, memories) = (self.latency.timer(), &mut self.memories);
            let winner =
                contest::of_team(traffic.kernel, Contest::Whole, timer, facts, memories, |memories| {
                    members(memories, traffic)
                })?;
            self.variants.insert(traffic.kind(), winner);
        }
        Ok(())
    }
}

/// The threads of some traffic, each with its part of the memory in whole pages.
fn members<'a>(memories: &'a mut Memories, traffic: &Traffic) -> Result<Vec<Member<'a>>, Refusal> {
    let memory = memories.buffer(&traffic.cell);
    let memory = memory.ok_or_else(|| Refusal::Wrong { what: "the traffic has no memory".to_owned() })?;
    let words = memory.buffer_mut().as_mut_words();
    let part = words.len() / traffic.cell.cpus.len().max(1) / PAGE * PAGE;
    if part == 0 {
        return Err(team::too_small());
    }
    let parts = words.chunks_exact_mut(part);
    Ok(traffic.cell.cpus.iter().zip(parts).map(|(cpu, part)| Member { cpu, part }).collect())
}

impl Bench for LoadedBench {
    type Cell = Loaded;

    fn begin_round(&mut self, round: u32) {
        self.memories.clear();
        self.latency.begin_round(round);
    }

    fn prepare(&mut self, cell: &Loaded, facts: &mut dyn Facts) -> Result<(), Refusal> {
        self.latency.prepare(&cell.chase, facts)?;
        cell.traffic.as_ref().map_or(Ok(()), |traffic| self.prepare_traffic(traffic, facts))
    }

    fn placed(&mut self, cell: &Loaded, facts: &mut dyn Facts) -> Result<Option<Placed>, Refusal> {
        let chased = self.latency.placed(&cell.chase, facts)?;
        let Some(traffic) = &cell.traffic else { return Ok(chased) };
        let moved = self.memories.placed(&traffic.cell, facts)?;
        Ok(chased.zip(moved).map(|(chased, moved)| together(&chased, &moved)))
    }

    fn sample(&mut self, cell: &Loaded, facts: &mut dyn Facts) -> Result<Timed, Refusal> {
        let variant = cell.traffic.as_ref().and_then(|traffic| self.variant(traffic));
        let cpu = best_cpu(&cell.chase.cell.cpus).ok_or(Refusal::NoCpu { node: cell.chase.cell.from })?;
        let LatencyBench { timer, tracks, .. } = &mut self.latency;
        let track = tracks.get_mut(&key(&cell.chase));
        let track = track.ok_or_else(|| Refusal::Wrong { what: "there is no chain".to_owned() })?;
        let mut chaser = Chaser { track, cpu, time: self.time, timer };
        let Some(traffic) = &cell.traffic else { return chaser.run(facts).map(|measured| measured.result) };
        let load = Load {
            kernel: traffic.kernel,
            variant: variant.ok_or_else(|| Refusal::Wrong { what: "there was no contest".to_owned() })?,
            pause_ns: traffic.pause_ns,
        };
        let members = members(&mut self.memories, traffic)?;
        // Out of the way of the others from the beginning: they have CPUs of their own.
        let _seat = Seat::take(cpu, Duration::ZERO, timer)?;
        let stop = facts.stop().clone();
        let (mut timed, moved) = traffic::during(members, load, timer, &stop, || chaser.run(facts))?;
        let switched = timed.meanwhile.switched.zip(moved.switched).map(|(own, others)| own + others);
        timed.meanwhile = Glance { switched, ..timed.meanwhile };
        if let Some(beside) = &mut timed.beside {
            beside.load = Some(moved.program / 1e9);
        }
        Ok(timed)
    }
}

/// Where the pages of two buffers were, each as seen from the node it should be on.
fn together(one: &Placed, other: &Placed) -> Placed {
    Placed {
        on_node: one.on_node + other.on_node,
        pages: one.pages + other.pages,
        elsewhere: one.elsewhere.union(&other.elsewhere),
        huge: one.huge.zip(other.huge).map(|(one, other)| one + other),
    }
}

/// One that chases on a CPU.
struct Chaser<'a> {
    track: &'a mut Track,
    cpu: CpuId,
    time: Duration,
    timer: &'a Timer,
}

impl Chaser<'_> {
    /// Chases for the time: the median over blocks of loads, and their 90th percentile.
    fn run(&mut self, facts: &mut dyn Facts) -> Result<Meanwhile<Timed>, Refusal> {
        let seat = Seat::take(self.cpu, WARM_UP, self.timer)?;
        let probe = Probe::take(self.timer);
        self.track.follow(LEAD_IN / TURN);
        // Touched before the clock runs: no page fault comes between.
        let mut blocks = vec![1.0; BLOCKS];
        let mut away = Away::default();
        let (mut window, mut taken) = (None, 0);
        let timed = Timed::around(facts, Some(probe), || {
            let (from, to);
            (taken, from, to) = away.around(|| self.chase(&mut blocks));
            window = Some((from, to));
            quantile(&blocks[..taken], 0.5)
                .filter(|_| self.timer.resolves(to.since(from)))
                .ok_or(Refusal::TooShort)
        })?;
        seat.check()?;
        if !self.track.is_where_it_should_be() {
            return Err(Refusal::Wrong { what: "the loads did not lead where the chain leads".to_owned() });
        }
        let p90 = quantile(&blocks[..taken], 0.9).ok_or(Refusal::TooShort)?;
        let meanwhile = Glance { switched: away.switched(), ..timed.meanwhile };
        let result = Timed { meanwhile, beside: Some(Beside { p90, load: None }), ..timed };
        Ok(Meanwhile { result, window: window.ok_or(Refusal::TooShort)? })
    }

    /// Fills in ns per load, block by block, for the time and for as long as the clock needs; how many, and
    /// from when to when.
    fn chase(&mut self, blocks: &mut [f64]) -> (usize, Moment, Moment) {
        let begin = self.timer.now();
        let mut last = begin;
        for (taken, block) in (1..).zip(&mut *blocks) {
            self.track.follow(BLOCK / TURN);
            let now = self.timer.now();
            *block = now.since(last).as_nanos() as f64 / BLOCK as f64;
            last = now;
            let elapsed = now.since(begin);
            if elapsed >= self.time && self.timer.resolves(elapsed) {
                return (taken, begin, now);
            }
        }
        (blocks.len(), begin, last)
    }
}

#[cfg(test)]
mod tests;
