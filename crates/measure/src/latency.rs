//! Latency of memory: what one load costs that waits for the one before.
//!
//! Each memory node has one buffer per kind of page and round, which the cells of that column share:
//! it is only read while samples are taken, each of which goes on where the last has ended, so that
//! no sample finds in a cache what another has left there. The time of a chase over all of a large
//! buffer holds the latency of memory and that of looking up pages; the difference between small
//! and huge pages is what looking up costs.

pub mod cache;
pub mod findings;
pub mod loaded;
pub mod report;
pub mod sweep;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::{Bytes, CpuId, CpuSet, NodeId};
use nodewise_syscall::PageKind;

use crate::cell::memory::{check_room, locate};
use crate::cell::{Cell, Facts, Phase, Placed, PlacedMemory, Probe, Refusal, Seat};
use crate::kernel::chase::TURN;
use crate::kernel::cycle::Cycle;
use crate::kernel::track::{Spacing, Track};
use crate::survey::{Bench, Timed};
use crate::timer::Timer;
use nodewise_stats::random::Random;

pub use findings::{LatencyFinding, findings};
pub use report::{LatencyReport, Lookup};

/// Loads in one sample: some 80 us where every load hits the first cache, some 15 ms in memory.
const LOADS: u64 = 1 << 16;
/// Untimed loads before them: page tables come back into the caches.
const LEAD_IN: u64 = 1 << 12;
/// How long a CPU spins before a sample.
const WARM_UP: Duration = Duration::from_millis(1);

/// In which order a chase visits its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// Line by line in random order: latency.
    Random,
    /// In steps of this many elements of 8 bytes, lap after lap until all were visited. Caches fetch
    /// ahead what comes next, so what is measured is the cost of an access and no latency.
    Stride(u32),
}

/// Parameters of a chase: a cell, with the size of its buffer and the way through it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chase {
    pub cell: Cell,
    /// The size of the buffer; whole lines of it are used.
    pub size: Bytes,
    pub pattern: Pattern,
}

impl Chase {
    fn spacing(&self) -> Spacing {
        match self.pattern {
            Pattern::Random => Spacing::Line,
            Pattern::Stride(_) => Spacing::Word,
        }
    }

    /// How many places the way has; `None` for less than a line, and more than a `u32` numbers.
    fn places(&self) -> Option<usize> {
        let lines = self.size.get() / Spacing::Line.bytes() as u64;
        let places = lines.checked_mul((Spacing::Line.bytes() / self.spacing().bytes()) as u64)?;
        u32::try_from(places).ok().filter(|places| *places > 0).map(|places| places as usize)
    }

    /// Returns the memory of a drawn order beside the buffer: two numbers of 4 bytes for each line.
    fn beside(&self) -> Bytes {
        match self.pattern {
            Pattern::Random => Bytes::new(self.size.get() / 8),
            Pattern::Stride(_) => Bytes::new(0),
        }
    }
}

/// A track belongs to all cells that reach for the same memory in the same way.
type Key = (NodeId, PageKind, Bytes, Pattern);

/// The bench of `nodewise latency`: nanoseconds per load.
#[derive(Debug)]
pub struct LatencyBench {
    timer: Timer,
    seed: u64,
    cycles: HashMap<(Bytes, Pattern), Arc<Cycle>>,
    tracks: HashMap<Key, Track>,
}

impl LatencyBench {
    /// A bench that draws its orders from this seed.
    pub fn new(seed: u64) -> Self {
        Self { timer: Timer::choose(), seed, cycles: HashMap::new(), tracks: HashMap::new() }
    }

    /// The clock.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }

    /// The way of a chase, drawn when it is needed first. The numbers of a drawn one take an eighth of
    /// its buffer, which the node must have too: they are near the thread that draws them, or elsewhere
    /// when that node is full.
    fn cycle(&mut self, chase: &Chase, facts: &mut dyn Facts) -> Result<Arc<Cycle>, Refusal> {
        let key = (chase.size, chase.pattern);
        if let Some(cycle) = self.cycles.get(&key) {
            return Ok(Arc::clone(cycle));
        }
        let refused = Refusal::NoMemory { needed: chase.size };
        let places = chase.places().ok_or(refused.clone())?;
        let beside = match chase.cell.pages {
            PageKind::Hugetlb(_) => chase.beside(),
            PageKind::Small | PageKind::TransparentHuge => chase.size + chase.beside(),
        };
        check_room(beside, chase.cell.memory, PageKind::Small, facts)?;
        let cycle = match chase.pattern {
            Pattern::Random => {
                facts.enter(Phase::Drawing { size: chase.size });
                let mut random = Random::stream(self.seed, u64::MAX - chase.size.get());
                Cycle::random_while(places, &mut random, &mut || facts.go_on().is_ok())
            }
            Pattern::Stride(elements) => Cycle::strided(places, elements as usize),
        };
        facts.stop().check()?;
        let cycle = Arc::new(cycle.ok_or(refused)?);
        self.cycles.insert(key, Arc::clone(&cycle));
        Ok(cycle)
    }
}

fn key(chase: &Chase) -> Key {
    (chase.cell.memory, chase.cell.pages, chase.size, chase.pattern)
}

impl Bench for LatencyBench {
    type Cell = Chase;

    fn begin_round(&mut self, _round: u32) {
        self.tracks.clear();
    }

    fn prepare(&mut self, chase: &Chase, facts: &mut dyn Facts) -> Result<(), Refusal> {
        if self.tracks.contains_key(&key(chase)) {
            return Ok(());
        }
        let Cell { from, cpus, memory, pages } = &chase.cell;
        if best_cpu(cpus).is_none() {
            return Err(Refusal::NoCpu { node: *from });
        }
        check_room(chase.size, *memory, *pages, facts)?;
        let cycle = self.cycle(chase, facts)?;
        let placed = PlacedMemory::new(chase.size, *memory, *pages, facts)?;
        facts.enter(Phase::Laying { node: *memory });
        let mut go_on = || facts.go_on().is_ok();
        let track = Track::lay_while(placed.into_buffer(), cycle, chase.spacing(), &mut go_on);
        facts.stop().check()?;
        let track = track.ok_or_else(|| Refusal::Wrong { what: "the chain was not laid as drawn".into() })?;
        self.tracks.insert(key(chase), track);
        Ok(())
    }

    fn placed(&mut self, chase: &Chase, facts: &mut dyn Facts) -> Result<Option<Placed>, Refusal> {
        match self.tracks.get(&key(chase)) {
            Some(track) => locate(track.buffer(), chase.cell.memory, facts).map(Some),
            None => Ok(None),
        }
    }

    fn sample(&mut self, chase: &Chase, facts: &mut dyn Facts) -> Result<Timed, Refusal> {
        let track = self.tracks.get_mut(&key(chase));
        let track = track.ok_or_else(|| Refusal::Wrong { what: "there is no chain".into() })?;
        let cpu = best_cpu(&chase.cell.cpus).ok_or(Refusal::NoCpu { node: chase.cell.from })?;
        sample(track, cpu, LOADS, &self.timer, facts)
    }
}

/// The CPU that a single thread is put on: the first but CPU 0, which handles most interrupts.
pub fn best_cpu(cpus: &CpuSet) -> Option<CpuId> {
    cpus.iter().find(|cpu| cpu.number() != 0).or_else(|| cpus.first())
}

/// One sample of a chase on a CPU: ns per load.
///
/// # Errors
/// A CPU that cannot be used or kept, a time too short for the clock, and a chase that did not end
/// where it leads.
pub fn sample(
    track: &mut Track,
    cpu: CpuId,
    loads: u64,
    timer: &Timer,
    facts: &mut dyn Facts,
) -> Result<Timed, Refusal> {
    let seat = Seat::take(cpu, WARM_UP, timer)?;
    let probe = Probe::take(timer);
    track.follow(LEAD_IN.min(loads) / TURN);
    let turns = (loads / TURN).max(1);
    let timed = Timed::around(facts, Some(probe), || {
        let begin = timer.now();
        track.follow(turns);
        let elapsed = timer.now().since(begin);
        if !timer.resolves(elapsed) {
            return Err(Refusal::TooShort);
        }
        Ok(elapsed.as_nanos() as f64 / (turns * TURN) as f64)
    })?;
    seat.check()?;
    if track.is_where_it_should_be() {
        Ok(timed)
    } else {
        Err(Refusal::Wrong { what: "the loads did not lead where the chain leads".to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::facts::NoFacts;
    use crate::survey::{Pace, Survey, Surveyor};
    use nodewise_stats::Direction;
    use nodewise_syscall::{Task, affinity};

    fn cell(memory: u32, pages: PageKind) -> Cell {
        let cpus = affinity::cpus(Task::CURRENT).unwrap();
        Cell { from: NodeId::new(0), cpus, memory: NodeId::new(memory), pages }
    }

    fn survey(cells: &[Chase]) -> Survey {
        let mut surveyor = Surveyor {
            facts: &mut NoFacts,
            clock: &nodewise_syscall::clock::Monotonic::start(),
            observer: &mut |_| {},
        };
        surveyor.conduct(&mut LatencyBench::new(1), cells, Pace::exactly(6, 1), 1)
    }

    fn chase(cell: Cell, size: Bytes, pattern: Pattern) -> Chase {
        Chase { cell, size, pattern }
    }

    #[test]
    fn cells_of_this_machine_have_figures_and_others_are_refused() {
        let (here, _) = affinity::current_cpu().unwrap();
        let mut lost = cell(0, PageKind::Small);
        lost.cpus = CpuSet::from([here.number() + 100_000]);
        let mut none = cell(0, PageKind::Small);
        none.cpus = CpuSet::new();
        let size = Bytes::from_mib(4);
        let cells = [cell(0, PageKind::Small), cell(900, PageKind::Small), lost, none];
        let survey = survey(&cells.map(|cell| chase(cell, size, Pattern::Random)));
        let figure = survey.outcomes[0].figure(Direction::LowerIsBetter).unwrap();
        assert!(figure.best > 0.0 && figure.best <= figure.median && figure.interval.is_some());
        assert_eq!(figure.samples, 6);
        let pages = (4 << 20) / nodewise_syscall::pages::page_size() as u64;
        for placed in [&survey.outcomes[0].before, &survey.outcomes[0].after] {
            let placed = placed.as_ref().unwrap();
            assert!(placed.is_full() && placed.pages == pages, "{placed:?}");
        }
        assert!(matches!(survey.outcomes[1].refusal, Some(Refusal::Call(_))), "{:?}", survey.outcomes[1]);
        assert!(matches!(survey.outcomes[2].refusal, Some(Refusal::CpuLost { .. })));
        assert_eq!(survey.outcomes[3].refusal, Some(Refusal::NoCpu { node: NodeId::new(0) }));
    }

    #[test]
    fn every_pattern_and_size_is_chased() {
        let patterns = [Pattern::Random, Pattern::Stride(1), Pattern::Stride(32), Pattern::Stride(1 << 30)];
        let sizes = [64, 100, 2048, 1 << 20].map(Bytes::new);
        let chases: Vec<Chase> = patterns
            .into_iter()
            .flat_map(|pattern| sizes.map(|size| chase(cell(0, PageKind::Small), size, pattern)))
            .collect();
        for (chase, outcome) in chases.iter().zip(survey(&chases).outcomes) {
            assert!(outcome.figure(Direction::LowerIsBetter).is_some(), "{chase:?}: {outcome:?}");
        }
    }

    #[test]
    fn a_buffer_of_no_line_or_beyond_all_numbers_is_refused() {
        for size in [Bytes::new(0), Bytes::new(63), Bytes::from_gib(256), Bytes::new(u64::MAX)] {
            let chase = chase(cell(0, PageKind::Small), size, Pattern::Random);
            assert_eq!(chase.places(), None, "{size}");
            let refused = LatencyBench::new(1).cycle(&chase, &mut NoFacts);
            assert!(matches!(refused, Err(Refusal::NoMemory { .. })), "{size}");
        }
    }

    #[test]
    fn a_single_thread_avoids_the_cpu_of_the_interrupts() {
        assert_eq!(best_cpu(&CpuSet::from([0, 1, 2])), Some(CpuId::new(1)));
        assert_eq!(best_cpu(&CpuSet::from([0])), Some(CpuId::new(0)));
        assert_eq!(best_cpu(&CpuSet::new()), None);
    }
}
