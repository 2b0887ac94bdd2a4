//! A cache: sets of ways. The least recently used way of a set is replaced.

/// The effect of an access on a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The line was there.
    Hit,
    /// The line came from memory, and in its place this one left, if it had been written to.
    Miss { written_back: Option<u64> },
}

/// A cache of lines that are fetched also to be written, and written back when they leave.
pub struct Cache<'a> {
    /// The ways of all sets, each set with its latest line in front: twice the number of the line that follows, plus 1 if
    /// it was written to. 0 is an empty way.
    slots: &'a mut [u64],
    sets: u64,
    ways: usize,
}

impl<'a> Cache<'a> {
    /// An empty cache in this memory, which must be zero.
    ///
    /// # Panics
    /// There is not a whole number of sets, or none.
    pub fn new(slots: &'a mut [u64], ways: usize) -> Self {
        assert!(ways > 0 && !slots.is_empty() && slots.len() % ways == 0);
        let sets = (slots.len() / ways) as u64;
        Self { slots, sets, ways }
    }

    /// An access to a line.
    #[inline]
    pub fn access(&mut self, line: u64, is_write: bool) -> Outcome {
        let set = if self.sets.is_power_of_two() { line & (self.sets - 1) } else { line % self.sets };
        let start = set as usize * self.ways;
        let ways = &mut self.slots[start..start + self.ways];
        let tag = line + 1;
        let found = ways.iter().position(|slot| slot >> 1 == tag);
        let place = found.unwrap_or(ways.len() - 1);
        let former = ways[place];
        ways.copy_within(..place, 1);
        ways[0] = tag << 1 | u64::from(is_write);
        if found.is_some() {
            ways[0] |= former & 1;
            return Outcome::Hit;
        }
        Outcome::Miss { written_back: (former & 1 == 1).then(|| (former >> 1) - 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// The same, as the words say it: all lines with the time of their latest access.
    struct Naive {
        lines: Vec<(u64, u64, bool)>,
        sets: u64,
        ways: usize,
        now: u64,
    }

    impl Naive {
        fn access(&mut self, line: u64, is_write: bool) -> Outcome {
            self.now += 1;
            if let Some(found) = self.lines.iter_mut().find(|(there, ..)| *there == line) {
                *found = (line, self.now, found.2 || is_write);
                return Outcome::Hit;
            }
            let sets = self.sets;
            let of_set = |(there, ..): &&(u64, u64, bool)| there % sets == line % sets;
            let mut written_back = None;
            if self.lines.iter().filter(of_set).count() == self.ways {
                let oldest = *self.lines.iter().filter(of_set).min_by_key(|(_, at, _)| *at).unwrap();
                self.lines.retain(|there| *there != oldest);
                written_back = oldest.2.then_some(oldest.0);
            }
            self.lines.push((line, self.now, is_write));
            Outcome::Miss { written_back }
        }
    }

    proptest! {
        #[test]
        fn it_does_what_a_naive_model_does(
            sets in 1usize..9,
            ways in 1usize..5,
            accesses in proptest::collection::vec((0u64..40, any::<bool>()), 0..400),
        ) {
            let mut slots = vec![0; sets * ways];
            let mut cache = Cache::new(&mut slots, ways);
            let mut naive = Naive { lines: Vec::new(), sets: sets as u64, ways, now: 0 };
            for (line, is_write) in accesses {
                prop_assert_eq!(cache.access(line, is_write), naive.access(line, is_write));
            }
        }
    }

    fn count(size: usize, ways: usize, lines: impl Iterator<Item = u64>, is_write: bool) -> (u64, u64) {
        let mut slots = vec![0; size / 64];
        let mut cache = Cache::new(&mut slots, ways);
        let (mut reads, mut writes) = (0, 0);
        for line in lines {
            if let Outcome::Miss { written_back } = cache.access(line, is_write) {
                reads += 1;
                writes += u64::from(written_back.is_some());
            }
        }
        (reads, writes)
    }

    #[test]
    fn a_stream_twice_the_cache_misses_each_line_and_writes_back_all_but_what_stays() {
        let (size, lines) = (1 << 20, (2 << 20) / 64);
        let rounds = || (0..3).flat_map(move |_| 0..lines);
        assert_eq!(count(size, 16, rounds(), false), (3 * lines, 0));
        assert_eq!(count(size, 16, rounds(), true), (3 * lines, 3 * lines - size as u64 / 64));
    }

    #[test]
    fn what_fits_is_fetched_once() {
        let lines = (1 << 20) / 64;
        assert_eq!(count(1 << 20, 16, (0..5).flat_map(|_| 0..lines), true), (lines, 0));
    }

    #[test]
    fn a_stride_of_a_power_of_two_uses_few_sets() {
        // Rows that lie 4 KiB apart fall into every 64th set: 16 of 1,024 sets, so 256 lines fit.
        let rows = |count: u64| (0..4).flat_map(move |_| (0..count).map(|row| row * 64));
        assert_eq!(count(1 << 20, 16, rows(256), false).0, 256);
        assert_eq!(count(1 << 20, 16, rows(512), false).0, 4 * 512);
    }
}
