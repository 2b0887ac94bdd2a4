//! How large the last-level cache really is beside a CPU, found by a short sweep: what a system claims of
//! it need not be so.
//!
//! A virtual machine repeats the cache of its whole host (480 MiB for two virtual CPUs have been seen, while
//! some 16 to 32 MiB were theirs), and many Arm machines have a cache in front of their memory that no table
//! names. What is measured with a buffer that fits into a cache is that cache, so default sizes look at this
//! first.
//!
//! One buffer is filled with a chain in random order that grows from octave to octave: a line more is
//! put behind one that is drawn of those that are there. So each octave is laid once, and is in the caches,
//! as far as it fits, when it is chased. That is coarser than the chase that latencies come from
//! ([`super::sample`]), and some hundred times quicker.

use nodewise_machine::{Bytes, CpuId};

use super::best_cpu;
use crate::cell::{Cell, Facts, Phase, PlacedMemory, Refusal, Seat};
use crate::kernel::chase::LINE;
use crate::timer::Timer;
use nodewise_stats::random::Random;

/// The least size that is chased. Every cache beyond the second level is larger.
const LEAST: Bytes = Bytes::from_mib(4);
/// How often each size is chased (the least counts), and how many loads that takes: a quarter of a
/// millisecond in memory, so that some of them fall between what else runs on the CPU.
const TIMES: usize = 24;
const LOADS: usize = 1 << 11;
/// The most that a load from a cache costs, as a part of a load from the largest size. A buffer of a
/// cache's own size costs a third of memory or less, one that is twice as large two thirds.
const IN_CACHE: f64 = 0.5;

/// Lines between two questions whether to go on.
const PART: usize = 1 << 15;

/// The last-level cache beside the CPUs that measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LastLevel {
    /// The size that the system claims; `None` where it claims none.
    pub claimed: Option<Bytes>,
    /// The largest size that was [found](last_level) to be held; `None` where nothing was found.
    pub found: Option<Bytes>,
    /// The memory that all CPUs of a node hold in these caches together, at most; `None` where nothing says.
    pub together: Option<Bytes>,
    /// Whether the search ended before it could find any.
    pub is_cut_short: bool,
}

/// Words of a line.
const WORDS: usize = LINE / size_of::<u64>();

/// The largest size, doubling from 4 MiB, that the caches of a cell's CPU hold; `None` where not even the
/// least is held, or all are, so that they show nothing.
///
/// It takes a buffer of `most` on the cell's node for the time being.
///
/// # Errors
/// The obstacle to measuring the cell, and an end of the measurement meanwhile.
pub fn last_level(
    cell: &Cell,
    most: Bytes,
    seed: u64,
    facts: &mut dyn Facts,
) -> Result<Option<Bytes>, Refusal> {
    let cpu = best_cpu(&cell.cpus).ok_or(Refusal::NoCpu { node: cell.from })?;
    facts.enter(Phase::LastLevel);
    let mut memory = PlacedMemory::new(most, cell.memory, cell.pages, facts)?;
    facts.enter(Phase::LastLevel);
    let words = memory.buffer_mut().as_mut_words();
    Ok(held(&octaves(words, cpu, seed, facts)?))
}

/// The cost of a load by size, ns.
fn octaves(
    words: &mut [u64],
    cpu: CpuId,
    seed: u64,
    facts: &mut dyn Facts,
) -> Result<Vec<(Bytes, f64)>, Refusal> {
    let timer = Timer::choose();
    let seat = Seat::take(cpu, super::WARM_UP, &timer)?;
    let mut random = Random::stream(seed, u64::MAX - 1);
    let mut chain = Chain { words, lines: 0 };
    let mut points = Vec::new();
    let mut size = LEAST;
    while chain.grow(size, &mut random, &mut || facts.go_on().is_ok()) {
        let mut at = 0;
        let mut time = || {
            let begin = timer.now();
            at = chain.follow(at, LOADS);
            timer.now().since(begin).as_nanos() as f64 / LOADS as f64
        };
        let least = (0..TIMES).map(|_| time()).fold(f64::INFINITY, f64::min);
        points.push((size, least));
        size = size.times(2);
    }
    facts.stop().check()?;
    seat.check()?;
    Ok(points)
}

/// The largest size that costs next to nothing against the largest of all.
fn held(points: &[(Bytes, f64)]) -> Option<Bytes> {
    let (_, memory) = points.last()?;
    let cached = points.iter().take_while(|(_, ns)| *ns <= IN_CACHE * memory);
    cached.last().map(|(size, _)| *size)
}

/// Lines that lead to each other: the first word of each holds the number of the next.
struct Chain<'a> {
    words: &'a mut [u64],
    lines: usize,
}

impl Chain<'_> {
    /// Makes it this large; `false` where there is too little memory for that, or `go_on` ends it. Every order
    /// is as likely as any other, if that was so before: a new line comes after each of the others equally
    /// often.
    fn grow(&mut self, size: Bytes, random: &mut Random, go_on: &mut dyn FnMut() -> bool) -> bool {
        let lines = usize::try_from(size.get()).map_or(usize::MAX, |bytes| bytes / LINE);
        if lines > self.words.len() / WORDS {
            return false;
        }
        for line in self.lines..lines {
            if line % PART == 0 && !go_on() {
                return false;
            }
            let before = if line == 0 { 0 } else { random.index(line) };
            let after = if line == 0 { 0 } else { self.words[before * WORDS] };
            self.words[line * WORDS] = after;
            self.words[before * WORDS] = line as u64;
        }
        self.lines = lines;
        true
    }

    /// Follows it for this many loads, and says where that ends. This is what is timed.
    fn follow(&self, from: usize, loads: usize) -> usize {
        let mut at = from;
        for _ in 0..loads {
            at = self.words[at * WORDS] as usize;
        }
        std::hint::black_box(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::PageKind;
    use crate::cell::facts::NoFacts;
    use nodewise_machine::{CpuSet, NodeId};
    use nodewise_syscall::{Task, affinity};
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn what_costs_half_of_memory_at_most_is_held() {
        let check = |nanos: &[f64], expected: Option<u64>| {
            let sizes = (0..).map(|octave| LEAST.times(1 << octave));
            let points: Vec<(Bytes, f64)> = sizes.zip(nanos.iter().copied()).collect();
            assert_eq!(held(&points), expected.map(Bytes::from_mib), "{nanos:?}");
        };
        check(&[12.0, 12.0, 13.0, 25.0, 70.0, 88.0, 95.0], Some(32));
        check(&[36.0, 36.0, 60.0, 110.0, 140.0], Some(16));
        check(&[80.0, 85.0, 88.0], None);
        check(&[12.0, 12.0, 12.0], None);
        check(&[12.0], None);
        check(&[], None);
        // A size that seems to be held behind one that is not was disturbed, or lucky.
        check(&[12.0, 70.0, 12.0, 95.0], Some(4));
    }

    #[test]
    fn the_caches_of_this_machine_are_looked_at_or_the_reason_is_told() {
        let cpus = affinity::cpus(Task::CURRENT).unwrap();
        let cell = |memory, cpus| Cell {
            from: NodeId::new(0),
            cpus,
            memory: NodeId::new(memory),
            pages: PageKind::Small,
        };
        let of = |cell: &Cell| last_level(cell, Bytes::from_mib(8), 1, &mut NoFacts);
        // Whatever it is: less than what was tried.
        assert!(of(&cell(0, cpus.clone())).unwrap().is_none_or(|held| held == LEAST));
        assert_eq!(of(&cell(0, CpuSet::new())), Err(Refusal::NoCpu { node: NodeId::new(0) }));
        assert!(matches!(of(&cell(900, cpus)), Err(Refusal::Call(_))));
    }

    proptest! {
        #[test]
        fn a_chain_that_grows_is_one_cycle_through_all_lines(
            parts in proptest::collection::vec(1_u64..200, 1..4), seed in any::<u64>(),
        ) {
            let mut words = vec![u64::MAX; 600 * WORDS];
            let mut chain = Chain { words: &mut words, lines: 0 };
            let mut random = Random::new(seed);
            let mut lines = 0;
            for part in parts {
                lines += part;
                prop_assert!(chain.grow(Bytes::new(lines * 64), &mut random, &mut || true));
                let mut seen = std::collections::BTreeSet::new();
                let mut at = 0;
                while seen.insert(at) {
                    at = chain.follow(at, 1);
                }
                prop_assert_eq!((seen.len() as u64, at), (lines, 0));
            }
            prop_assert!(!chain.grow(Bytes::new(601 * 64), &mut random, &mut || true));
        }
    }
}
