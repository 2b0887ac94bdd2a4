//! The order in which a chase visits its places: one cycle through all of them, proven by a walk.
//!
//! Places are numbers here; [`super::track`] lays them into memory. An order is drawn once and laid
//! many times: what is walked and proven is the order, and that memory holds it is compared place by
//! place, which is far quicker than another walk.

use nodewise_stats::random::Random;

/// Places between two questions whether to go on: some ten milliseconds of drawing.
const PART: usize = 1 << 16;

/// One cycle through this many places.
#[derive(Clone, PartialEq, Eq)]
pub struct Cycle {
    places: usize,
    way: Way,
}

#[derive(Clone, PartialEq, Eq)]
enum Way {
    Drawn {
        /// For each place the one after it.
        next: Vec<u32>,
        /// The places in the order of the walk, from place 0.
        order: Vec<u32>,
    },
    /// In steps of this many places, lap after lap: known without being written down.
    Strided { stride: usize },
}

impl std::fmt::Debug for Cycle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cycle of {} places", self.places)
    }
}

impl Cycle {
    /// A cycle in random order, every one of them as likely as any other. `None` without places, with
    /// more than a `u32` numbers, and when the memory cannot be had.
    ///
    /// # Source
    /// Sattolo, "An algorithm to generate a random cyclic permutation", Inf. Proc. Letters 22, 1986.
    pub fn random(places: usize, random: &mut Random) -> Option<Self> {
        Self::random_while(places, random, &mut || true)
    }

    /// As [`Cycle::random`], for as long as `go_on` says so; `None` also where it ended that.
    pub fn random_while(places: usize, random: &mut Random, go_on: &mut dyn FnMut() -> bool) -> Option<Self> {
        let mut next = numbers(places, go_on)?;
        for last in (1..places).rev() {
            if last % PART == 0 && !go_on() {
                return None;
            }
            next.swap(last, random.index(last));
        }
        Self::proven(next, go_on)
    }

    /// A cycle that visits windows in random order and, before it leaves one, all of its places in
    /// random order: each window's pages are then known to the TLB, and what is left is the latency
    /// of memory alone. `None` as for [`Cycle::random`], and for windows without places.
    pub fn windowed(places: usize, window: usize, random: &mut Random) -> Option<Self> {
        let mut order = numbers(places, &mut || true)?;
        if window == 0 {
            return None;
        }
        for places in order.chunks_mut(window) {
            random.shuffle(places);
        }
        let mut windows: Vec<&[u32]> = order.chunks(window).collect();
        random.shuffle(&mut windows);
        Self::through(&windows.concat())
    }

    /// A cycle in steps of this many places, with the places between visited in later laps. `None`
    /// without places, and for steps of 0.
    pub fn strided(places: usize, stride: usize) -> Option<Self> {
        (places > 0 && stride > 0)
            .then_some(Self { places, way: Way::Strided { stride: stride.min(places) } })
    }

    /// The cycle that visits places in this order.
    fn through(order: &[u32]) -> Option<Self> {
        let mut next = numbers(order.len(), &mut || true)?;
        for pair in order.windows(2) {
            next[pair[0] as usize] = pair[1];
        }
        next[*order.last()? as usize] = *order.first()?;
        Self::proven(next, &mut || true)
    }

    /// Walks once around and keeps the way; `None` when that does not pass every place, or `go_on` ends it.
    fn proven(next: Vec<u32>, go_on: &mut dyn FnMut() -> bool) -> Option<Self> {
        let mut order = Vec::new();
        order.try_reserve_exact(next.len()).ok()?;
        let mut at = 0;
        loop {
            if order.len() % PART == 0 && !go_on() {
                return None;
            }
            order.push(at);
            at = *next.get(at as usize)?;
            if at == 0 || order.len() == next.len() {
                break;
            }
        }
        let places = next.len();
        (at == 0 && order.len() == places).then_some(Self { places, way: Way::Drawn { next, order } })
    }

    /// How many places it has.
    pub fn places(&self) -> usize {
        self.places
    }

    /// The place after this one.
    pub fn after(&self, place: usize) -> usize {
        match &self.way {
            Way::Drawn { next, .. } => next[place] as usize,
            Way::Strided { stride } if place + stride < self.places => place + stride,
            Way::Strided { stride } => (place % stride + 1) % stride,
        }
    }

    /// The place that is this many steps after place 0.
    pub fn place_after(&self, steps: u64) -> usize {
        let steps = (steps % self.places as u64) as usize;
        match &self.way {
            Way::Drawn { order, .. } => order[steps] as usize,
            Way::Strided { stride } => {
                // The first laps are a place longer, where the stride does not divide the places.
                let (short, longer) = (self.places / stride, self.places % stride);
                let in_longer = longer * (short + 1);
                let (lap, at) = if steps < in_longer {
                    (steps / (short + 1), steps % (short + 1))
                } else {
                    (longer + (steps - in_longer) / short, (steps - in_longer) % short)
                };
                lap + at * stride
            }
        }
    }
}

/// The numbers below this one; `None` also where `go_on` ends it.
fn numbers(places: usize, go_on: &mut dyn FnMut() -> bool) -> Option<Vec<u32>> {
    let end = u32::try_from(places).ok().filter(|end| *end > 0)?;
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(places).ok()?;
    for part in (0..end).step_by(PART) {
        if !go_on() {
            return None;
        }
        numbers.extend(part..end.min(part.saturating_add(PART as u32)));
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    /// Walks by hand and counts.
    fn is_one_cycle(cycle: &Cycle) -> bool {
        let mut seen = vec![false; cycle.places()];
        let mut at = 0;
        for step in 0..cycle.places() {
            if std::mem::replace(&mut seen[at], true) || cycle.place_after(step as u64) != at {
                return false;
            }
            at = cycle.after(at);
        }
        at == 0
    }

    #[test]
    fn several_cycles_are_not_taken_for_one() {
        assert_eq!(Cycle::proven(vec![1, 0, 3, 2], &mut || true), None);
        assert_eq!(Cycle::proven(vec![0, 2, 1], &mut || true), None);
        assert_eq!(Cycle::proven(vec![1, 2, 1], &mut || true), None, "a walk that never comes back");
        assert_eq!(Cycle::proven(vec![7], &mut || true), None, "a place that does not exist");
        assert!(Cycle::proven(vec![1, 2, 0], &mut || true).is_some());
    }

    #[test]
    fn nothing_to_visit_is_no_cycle() {
        let random = &mut Random::new(1);
        assert_eq!(Cycle::random(0, random), None);
        assert_eq!(Cycle::random(usize::MAX, random), None);
        assert_eq!(Cycle::strided(8, 0), None);
        assert_eq!(Cycle::windowed(8, 0, random), None);
    }

    #[test]
    fn strides_visit_what_is_between_in_later_laps() {
        let cycle = Cycle::strided(7, 3).unwrap();
        let order: Vec<usize> = (0..7).map(|step| cycle.place_after(step)).collect();
        assert_eq!(order, [0, 3, 6, 1, 4, 2, 5]);
    }

    #[test]
    fn a_window_is_left_only_when_all_of_it_was_visited() {
        let cycle = Cycle::windowed(64, 8, &mut Random::new(3)).unwrap();
        let order: Vec<usize> = (0..64).map(|step| cycle.place_after(step) / 8).collect();
        // The walk is written from place 0, which lies somewhere inside a window.
        let changes = (0..64).filter(|at| order[*at] != order[(at + 1) % 64]).count();
        assert_eq!(changes, 8, "{order:?}");
    }

    proptest! {
        #[test]
        fn every_order_is_one_cycle(
            places in 1usize..3000, other in 1usize..3000, seed in any::<u64>(), steps in any::<u64>(),
        ) {
            let random = &mut Random::new(seed);
            for cycle in [
                Cycle::random(places, random),
                Cycle::windowed(places, other, random),
                Cycle::strided(places, other),
            ] {
                let cycle = cycle.unwrap();
                prop_assert_eq!(cycle.places(), places);
                prop_assert!(is_one_cycle(&cycle));
                prop_assert_eq!(cycle.after(cycle.place_after(steps % u64::from(u32::MAX))),
                    cycle.place_after(steps % u64::from(u32::MAX) + 1));
            }
        }
    }
}
