//! Latency by the size of what is chased: the staircase of caches, and the table of sizes and ways.

use nodewise_machine::{Bytes, NodeId};
use nodewise_syscall::PageKind;

use super::Pattern;
use crate::survey::{Account, CellReport};

/// Sizes that cost at most this much more than the first of them belong to one level: a second level
/// costs twice the first at least, and noise and page walks less than this.
const SAME: f64 = 1.15;
/// A level costs at least this much more than the one before.
const NEXT: f64 = 1.3;
/// How many sizes in a row a level has at least: an octave and a half.
const ENOUGH: usize = 3;
/// The share of disturbed chases from which on a sweep is too noisy.
const NOISY: f64 = 0.1;
/// A claimed size is the one that was found when they are not farther apart than this.
const NEAR: f64 = 1.6;

/// One chase of a sweep or a table.
#[derive(Clone, Debug, PartialEq)]
pub struct ChaseReport {
    /// The size of its buffer.
    pub size: Bytes,
    pub pattern: Pattern,
    pub cell: CellReport,
}

/// A cache that the system claims to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Its name: `L1d`.
    pub name: String,
    pub size: Bytes,
}

/// A sweep over sizes, or a table of sizes and ways.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepReport {
    /// The survey as a whole.
    pub account: Account,
    /// The chases, by size within each way, kind of page and node.
    pub chases: Vec<ChaseReport>,
    /// The caches that the system claims for the CPU, from the nearest.
    pub claimed: Vec<Claimed>,
}

/// Something that holds up to so much and costs so much: a cache, or memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The largest size that was measured within it.
    pub holds: Bytes,
    /// The cost of a load there, ns.
    pub ns: f64,
    /// Whether the level goes on to the largest size: it may hold more than was tried.
    pub is_last: bool,
}

/// Sizes from the least to the most, two to an octave: 4, 6, 8, 12, 16 KiB.
pub fn sizes(least: Bytes, most: Bytes) -> Vec<Bytes> {
    let octaves = (0..58).map(|shift| 64_u64 << shift);
    let all = octaves.flat_map(|size| [size, size / 2 * 3]);
    all.map(Bytes::new).filter(|size| (least..=most).contains(size)).collect()
}

/// The levels that a staircase shows: runs of sizes that cost the same. `points` are sizes with what
/// a load costs, ns, in ascending order; the best samples show the hardware rather than the moment.
pub fn levels(points: &[(Bytes, f64)]) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    let mut first = 0;
    while first < points.len() {
        let base = points[first].1;
        let run = points[first..].iter().take_while(|(_, ns)| *ns <= base * SAME).count().max(1);
        let end = first + run;
        let is_last = end == points.len();
        // The last level may have been reached only just.
        if run >= ENOUGH || (is_last && run + 1 >= ENOUGH) {
            let holds = points[end - 1].0;
            match levels.last_mut() {
                Some(level) if base < level.ns * NEXT => {
                    level.holds = holds;
                    level.is_last = is_last;
                }
                _ => levels.push(Level { holds, ns: base, is_last }),
            }
        }
        first = end;
    }
    levels
}

impl SweepReport {
    /// The best samples of one way to the memory of one node in one kind of pages, by size.
    pub fn staircase(&self, memory: NodeId, pages: PageKind) -> Vec<(Bytes, f64)> {
        let own = |chase: &&ChaseReport| {
            (chase.cell.memory, chase.cell.pages, chase.pattern) == (memory, pages, Pattern::Random)
        };
        let points = self.chases.iter().filter(own);
        points.filter_map(|chase| Some((chase.size, chase.cell.figure.as_ref()?.best))).collect()
    }

    /// How many chases were disturbed of how many that have figures, where these are this many that
    /// levels need not be true.
    pub fn noise(&self) -> Option<(usize, usize)> {
        let figures = || self.chases.iter().filter(|chase| chase.cell.figure.is_some());
        let (disturbed, of) = (figures().filter(|chase| chase.cell.disturbed).count(), figures().count());
        (disturbed as f64 > NOISY * of as f64).then_some((disturbed, of))
    }

    /// The claimed cache that a level is, by its size.
    pub fn claim_of(&self, level: &Level) -> Option<&Claimed> {
        let apart = |claimed: &Claimed| {
            let ratio = claimed.size.get() as f64 / level.holds.get().max(1) as f64;
            ratio.max(1.0 / ratio)
        };
        let nearest = self.claimed.iter().min_by(|a, b| apart(a).total_cmp(&apart(b)));
        nearest.filter(|claimed| !level.is_last && apart(claimed) <= NEAR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_stats::random::Random;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// A staircase of caches with these sizes and costs, memory behind the last.
    fn stairs(caches: &[(u64, f64)], memory: f64, noise: &mut dyn FnMut() -> f64) -> Vec<(Bytes, f64)> {
        let cost = |size: Bytes| {
            let cache = caches.iter().find(|(kib, _)| size <= Bytes::from_kib(*kib));
            cache.map_or(memory, |(_, ns)| *ns)
        };
        let sizes = sizes(Bytes::from_kib(4), Bytes::from_mib(256));
        sizes.into_iter().map(|size| (size, cost(size) * noise())).collect()
    }

    #[test]
    fn sizes_are_two_to_an_octave() {
        let kib: Vec<u64> =
            sizes(Bytes::from_kib(4), Bytes::from_kib(17)).iter().map(|size| size.get() / 1024).collect();
        assert_eq!(kib, [4, 6, 8, 12, 16]);
        assert_eq!(sizes(Bytes::new(0), Bytes::new(u64::MAX)).len(), 116);
        assert_eq!(sizes(Bytes::from_kib(5), Bytes::from_kib(4)), []);
    }

    #[test]
    fn a_staircase_has_its_caches_and_memory() {
        let points = stairs(&[(48, 1.2), (2048, 4.5), (32 * 1024, 22.0)], 130.0, &mut || 1.0);
        let found: Vec<(u64, f64, bool)> =
            levels(&points).iter().map(|level| (level.holds.get() >> 10, level.ns, level.is_last)).collect();
        assert_eq!(
            found,
            [(48, 1.2, false), (2048, 4.5, false), (32 << 10, 22.0, false), (256 << 10, 130.0, true)]
        );
    }

    #[test]
    fn a_slope_is_no_level_and_a_slow_rise_stays_one() {
        let sizes = sizes(Bytes::from_kib(4), Bytes::from_mib(1));
        let slope: Vec<(Bytes, f64)> =
            sizes.iter().zip(0_i32..).map(|(size, at)| (*size, 1.3_f64.powi(at))).collect();
        assert_eq!(levels(&slope), []);
        let rise: Vec<(Bytes, f64)> =
            sizes.iter().zip(0_i32..).map(|(size, at)| (*size, 100.0 * 1.012_f64.powi(at))).collect();
        assert_eq!(levels(&rise).len(), 1);
        assert_eq!(levels(&[]), []);
    }

    #[test]
    fn a_claim_is_matched_by_size_and_never_to_memory() {
        let claimed = |name: &str, size| Claimed { name: name.to_owned(), size };
        let report = SweepReport {
            account: Account::default(),
            chases: Vec::new(),
            claimed: vec![claimed("L1d", Bytes::from_kib(48)), claimed("L3", Bytes::from_mib(480))],
        };
        let claim = |holds, is_last| {
            report.claim_of(&Level { holds, ns: 1.0, is_last }).map(|claimed| claimed.name.as_str())
        };
        assert_eq!(claim(Bytes::from_kib(32), false), Some("L1d"));
        assert_eq!(claim(Bytes::from_mib(16), false), None);
        assert_eq!(claim(Bytes::from_mib(480), true), None);
        assert_eq!(report.noise(), None);
    }

    proptest! {
        #[test]
        fn caches_are_found_through_noise(
            l1 in 5_u32..7, l2 in 8_u32..11, l3 in 13_u32..16, seed in any::<u64>(),
        ) {
            let mut random = Random::new(seed);
            let caches = [(1 << l1, 1.2), (1 << l2, 4.0), (1 << l3, 20.0)];
            let points = stairs(&caches, 120.0, &mut || 1.0 + 0.03 * random.unit());
            let found: Vec<u64> = levels(&points).iter().map(|level| level.holds.get() >> 10).collect();
            prop_assert_eq!(found, [1 << l1, 1 << l2, 1 << l3, 256 << 10]);
        }
    }
}
