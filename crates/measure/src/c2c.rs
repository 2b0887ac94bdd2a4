//! Core to core: what it costs one CPU to get a cache line that another one has.
//!
//! Three things, each for every pair of CPUs and for each home of the line, the node whose memory it
//! belongs to: handing a line over ([`Transfer::HandOver`]), reading lines that the other has written
//! ([`Transfer::Dirty`]), and reading lines that it has only read ([`Transfer::Clean`]). The matrix is
//! measured in full: the way back need not cost the same.

pub mod pairs;
pub mod report;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nodewise_machine::{Bytes, CpuId, NodeId};
use nodewise_syscall::{PageKind, Usage};

use crate::cell::{Facts, Glance, Placed, PlacedMemory, Probe, Refusal, Seat};
use crate::kernel::lines::{Alone, LINES, Lines, WORDS};
use crate::stop::Stop;
use crate::survey::{Bench, Timed};
use crate::timer::Timer;
use nodewise_stats::random::Random;

pub use pairs::{Relation, relation};
pub use report::{C2cReport, PairReport};

/// Round trips of a hand-over between two looks at the clock, and in one sample at most.
const ROUND_TRIPS: u64 = 64;
const MOST_TRIPS: u64 = 256 * ROUND_TRIPS;
/// How long a sample takes at least, and longer where the clock needs it.
const LONG_ENOUGH: Duration = Duration::from_micros(200);
/// How often all lines are read before it counts, and in one sample at most.
const FIRST_READS: u64 = 3;
const MOST_READS: u64 = 2000;
/// How long a CPU spins before it takes part.
const WARM_UP: Duration = Duration::from_millis(1);
/// How long one side waits for the other: longer than any time slice.
const PATIENCE: Duration = Duration::from_secs(5);
/// The memory on each node: lines lie at another place of it in each sample.
const MEMORY: Bytes = Bytes::from_mib(1);

/// The timed part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transfer {
    /// One way of a line that both CPUs want to write: half a round trip of compare-and-exchange.
    HandOver,
    /// A load of a line that the other CPU has written.
    Dirty,
    /// A load of a line that the other CPU has, as it is in memory.
    Clean,
}

impl Transfer {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::HandOver, Self::Dirty, Self::Clean];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::HandOver => "hand-over",
            Self::Dirty => "dirty",
            Self::Clean => "clean",
        }
    }

    /// The transfer with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|transfer| transfer.name() == name)
    }
}

/// Two CPUs and the home of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// The CPU that gets the line, and whose time counts.
    pub to: CpuId,
    /// The CPU that has it.
    pub from: CpuId,
    /// The node that the line's memory is on.
    pub home: NodeId,
    pub transfer: Transfer,
}

/// The bench of `nodewise c2c`: nanoseconds per line.
#[derive(Debug)]
pub struct CoreBench {
    timer: Timer,
    random: Random,
    memories: HashMap<NodeId, PlacedMemory>,
}

impl CoreBench {
    /// A bench that draws the places of its lines from a seed.
    pub fn new(seed: u64) -> Self {
        Self { timer: Timer::choose(), random: Random::stream(seed, 2), memories: HashMap::new() }
    }

    /// The clock.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }
}

impl Bench for CoreBench {
    type Cell = Pair;

    fn begin_round(&mut self, _round: u32) {
        self.memories.clear();
    }

    fn prepare(&mut self, pair: &Pair, facts: &mut dyn Facts) -> Result<(), Refusal> {
        if let Entry::Vacant(vacant) = self.memories.entry(pair.home) {
            vacant.insert(PlacedMemory::new(MEMORY, pair.home, PageKind::Small, facts)?);
        }
        Ok(())
    }

    fn placed(&mut self, pair: &Pair, facts: &mut dyn Facts) -> Result<Option<Placed>, Refusal> {
        self.memories.get(&pair.home).map(|memory| memory.now(facts)).transpose()
    }

    fn sample(&mut self, pair: &Pair, facts: &mut dyn Facts) -> Result<Timed, Refusal> {
        let memory = self.memories.get_mut(&pair.home);
        let memory = memory.ok_or_else(|| Refusal::Wrong { what: "there is no memory".to_owned() })?;
        let words = memory.buffer_mut().as_mut_words();
        // Whole lines, wherever in the memory.
        let start = self.random.index((words.len() - WORDS) / 8) * 8;
        let lines = Lines::lay(&mut words[start..], &mut self.random);
        let lines = lines.ok_or(Refusal::NoMemory { needed: Bytes::new(8 * WORDS as u64) })?;
        let probe = Probe::take(&self.timer);
        let (timer, stop) = (self.timer, facts.stop().clone());
        let mut switched = None;
        let timed = Timed::around(facts, Some(probe), || {
            let (nanos, switches) = time(*pair, &lines, &timer, &stop)?;
            switched = switches;
            Ok(nanos)
        })?;
        // Those of the two threads: the calling one only waits, and its faults are of no interest.
        let meanwhile = Glance { switched, faults: None, ..timed.meanwhile };
        Ok(Timed { meanwhile, ..timed })
    }
}

/// Times one pair: ns per line, and how often either thread had to leave its CPU.
fn time(pair: Pair, lines: &Lines<'_>, timer: &Timer, stop: &Stop) -> Result<(f64, Option<u64>), Refusal> {
    let together = Barrier::new(2);
    let begin = timer.now();
    let absent = AtomicBool::new(false);
    let waits = || !absent.load(Ordering::Relaxed) && timer.now().since(begin) < PATIENCE;
    let go_on = || waits() && !stop.is_set();
    // Both come to the barrier whatever happens; who cannot sit does not take part, and who waits for
    // it gives up.
    let sit = |cpu| {
        let seat = Seat::take(cpu, WARM_UP, timer);
        if seat.is_err() {
            absent.store(true, Ordering::Relaxed);
        }
        together.wait();
        seat
    };
    let (other, own) = thread::scope(|scope| {
        let other = scope.spawn(|| {
            let seat = sit(pair.from)?;
            let before = switches();
            let done = give(pair.transfer, lines, &go_on);
            let switched = since(before);
            seat.check().and(done.map_err(|Alone| alone(pair.to))).map(|()| switched)
        });
        let own = scope.spawn(|| {
            let seat = sit(pair.to)?;
            let before = switches();
            let timed = take(pair.transfer, lines, timer, &go_on);
            let switched = since(before);
            let nanos = timed.unwrap_or_else(|Alone| Err(alone(pair.from)));
            seat.check().and(nanos).map(|nanos| (nanos, switched))
        });
        (other.join().expect("handing lines over does not panic"), own.join().expect("nor taking them"))
    });
    // What the side that failed has to say, not the one that waited for it.
    match (own, other) {
        (Err(_), _) | (_, Err(_)) if stop.is_set() => Err(Refusal::Stopped),
        (Err(refusal @ Refusal::CpuLost { .. }), _) | (_, Err(refusal)) | (Err(refusal), Ok(_)) => {
            Err(refusal)
        }
        (Ok((nanos, own)), Ok(other)) => Ok((nanos, own.zip(other).map(|(own, other)| own + other))),
    }
}

/// How often the calling thread had to leave its CPU.
fn switches() -> Option<u64> {
    Usage::of_this_thread().map(|usage| usage.involuntary_switches)
}

fn since(before: Option<u64>) -> Option<u64> {
    before.zip(switches()).map(|(before, now)| now.saturating_sub(before))
}

fn alone(cpu: CpuId) -> Refusal {
    Refusal::Other(format!("CPU {cpu} did not answer within {} s: it is busy", PATIENCE.as_secs()))
}

/// The side of the CPU that has the lines.
fn give(transfer: Transfer, lines: &Lines<'_>, go_on: &impl Fn() -> bool) -> Result<(), Alone> {
    if transfer == Transfer::HandOver {
        return lines.answer(go_on).map(|_| ());
    }
    let mut read = 0;
    while lines.await_turn(2 * read, go_on)? {
        lines.mark(read + 1);
        if transfer == Transfer::Clean && !lines.clean() {
            lines.end_turns();
            break;
        }
        lines.set_turn(2 * read + 1);
        read += 1;
    }
    Ok(())
}

/// The side whose time counts: ns per line.
fn take(
    transfer: Transfer,
    lines: &Lines<'_>,
    timer: &Timer,
    go_on: &impl Fn() -> bool,
) -> Result<Result<f64, Refusal>, Alone> {
    let (elapsed, times) = if transfer == Transfer::HandOver {
        take_one(lines, timer, go_on)?
    } else {
        match read_all(lines, timer, go_on)? {
            Ok(read) => read,
            Err(refusal) => return Ok(Err(refusal)),
        }
    };
    let too_short = || {
        let cost = timer.cost().as_nanos();
        Refusal::Other(format!("lines come too fast for the clock, which takes {cost} ns to read"))
    };
    Ok(timer.resolves(elapsed).then(|| elapsed.as_nanos() as f64 / times as f64).ok_or_else(too_short))
}

fn is_enough(elapsed: Duration, timer: &Timer) -> bool {
    elapsed >= LONG_ENOUGH && timer.resolves(elapsed)
}

/// Hands one line over and takes it back: the time, and the ways that the line went.
fn take_one(lines: &Lines<'_>, timer: &Timer, go_on: &impl Fn() -> bool) -> Result<(Duration, u64), Alone> {
    // The first ones bring both sides into step.
    lines.ask(0, ROUND_TRIPS, go_on)?;
    let begin = timer.now();
    let (mut trips, mut elapsed) = (0, Duration::ZERO);
    while trips < MOST_TRIPS && !is_enough(elapsed, timer) {
        lines.ask(ROUND_TRIPS + trips, ROUND_TRIPS, go_on)?;
        trips += ROUND_TRIPS;
        elapsed = timer.now().since(begin);
    }
    lines.end();
    Ok((elapsed, 2 * trips))
}

/// Reads all lines as often as it takes: the time, and how many loads that was.
fn read_all(
    lines: &Lines<'_>,
    timer: &Timer,
    go_on: &impl Fn() -> bool,
) -> Result<Result<(Duration, u64), Refusal>, Alone> {
    let (mut elapsed, mut read) = (Duration::ZERO, 0);
    loop {
        if !lines.await_turn(2 * read + 1, go_on)? {
            return Ok(Err(Refusal::Other("this processor has no way known to clean a line".to_owned())));
        }
        let begin = timer.now();
        let came_back = lines.chase();
        let took = timer.now().since(begin);
        // The first ones bring page tables and the code into the caches.
        if read >= FIRST_READS {
            elapsed += took.saturating_sub(timer.cost());
        }
        if !came_back || !lines.are_marked(read + 1) {
            lines.end_turns();
            let what = "the lines that were read are not those that were written".to_owned();
            return Ok(Err(Refusal::Wrong { what }));
        }
        read += 1;
        if read == MOST_READS || is_enough(elapsed, timer) {
            // Instead of another turn, which the owner would take and end after the end.
            lines.end_turns();
            return Ok(Ok((elapsed, read.saturating_sub(FIRST_READS) * LINES as u64)));
        }
        lines.set_turn(2 * read);
    }
}

#[cfg(test)]
mod tests;
