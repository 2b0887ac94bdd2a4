//! Values that recur over the pages of a region, so that its size costs nothing.
//!
//! A cycle begins at page 0 and not where the region does: that is how the kernel lets turns fall, by the
//! number of a page.

use std::ops::Range;

/// More slots than this are not kept: turns over turns over turns, which no machine has.
const MOST_SLOTS: usize = 1 << 14;

/// Values in turn, each for some pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cycle<T> {
    slots: Vec<(u64, T)>,
    length: u64,
}

impl<T: Clone + PartialEq> Cycle<T> {
    /// The same for every page.
    pub fn one(value: T) -> Self {
        Self { slots: vec![(1, value)], length: 1 }
    }

    /// Values with the pages that each has; `None` without any.
    pub fn from_values(values: impl IntoIterator<Item = (u64, T)>) -> Option<Self> {
        let mut slots: Vec<(u64, T)> = Vec::new();
        for (pages, value) in values.into_iter().filter(|(pages, _)| *pages > 0) {
            match slots.last_mut() {
                Some((last, same)) if *same == value => *last += pages,
                _ => slots.push((pages, value)),
            }
        }
        match slots.as_slice() {
            [] => None,
            [(_, value)] => Some(Self::one(value.clone())),
            _ => Some(Self { length: slots.iter().map(|(pages, _)| pages).sum(), slots }),
        }
    }

    /// The same cycle of other values.
    pub fn map<U: Clone + PartialEq>(&self, value: impl Fn(&T) -> U) -> Cycle<U> {
        let slots = self.slots.iter().map(|(pages, old)| (*pages, value(old)));
        Cycle::from_values(slots).expect("a cycle has slots, and each has pages")
    }

    /// Both at once; `None` where their round would be too long to be kept.
    pub fn joined<U: Clone + PartialEq>(&self, other: &Cycle<U>) -> Option<Cycle<(T, U)>> {
        let mut slots = Vec::new();
        let (mut left, mut right) = ((0, 0), (0, 0));
        loop {
            let ((width, value), (other_width, other_value)) = (&self.slots[left.0], &other.slots[right.0]);
            let pages = (width - left.1).min(other_width - right.1);
            slots.push((pages, (value.clone(), other_value.clone())));
            left = following(left, pages, *width, self.slots.len());
            right = following(right, pages, *other_width, other.slots.len());
            if (left, right) == ((0, 0), (0, 0)) {
                return Cycle::from_values(slots);
            }
            if slots.len() >= MOST_SLOTS {
                return None;
            }
        }
    }

    /// Its values, each once.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        let is_first = |at: usize, value: &T| self.slots[..at].iter().all(|(_, before)| before != value);
        self.slots
            .iter()
            .enumerate()
            .filter(move |(at, (_, value))| is_first(*at, value))
            .map(|(_, slot)| &slot.1)
    }

    /// How many of some pages have a value for which `is` holds.
    pub fn count(&self, pages: &Range<u64>, is: impl Fn(&T) -> bool) -> u64 {
        if let [(_, value)] = &self.slots[..] {
            return if is(value) { pages.end.saturating_sub(pages.start) } else { 0 };
        }
        self.before(pages.end, &is) - self.before(pages.start.min(pages.end), &is)
    }

    /// How many pages before one have such a value.
    pub fn before(&self, page: u64, is: impl Fn(&T) -> bool) -> u64 {
        let rest = page % self.length;
        let mut begin = 0;
        let (mut all, mut last) = (0, 0);
        for (width, value) in &self.slots {
            if is(value) {
                all += width;
                last += rest.saturating_sub(begin).min(*width);
            }
            begin += width;
        }
        page / self.length * all + last
    }

    /// The page that this many with such a value come before, and that has one itself; `None` where none has.
    pub fn find(&self, rank: u64, is: impl Fn(&T) -> bool) -> Option<u64> {
        let all: u64 = self.slots.iter().filter(|(_, value)| is(value)).map(|(width, _)| width).sum();
        let mut rest = rank.checked_rem(all)?;
        let mut begin = 0;
        for (width, value) in &self.slots {
            if is(value) {
                if rest < *width {
                    return (rank / all).checked_mul(self.length)?.checked_add(begin + rest);
                }
                rest -= width;
            }
            begin += width;
        }
        None
    }
}

/// The place after some pages: the slot, and how many of its pages come before.
const fn following((slot, passed): (usize, u64), pages: u64, width: u64, slots: usize) -> (usize, u64) {
    if passed + pages < width { (slot, passed + pages) } else { ((slot + 1) % slots, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, prop_assert_eq, proptest};

    fn cycles() -> impl Strategy<Value = Cycle<u8>> {
        proptest::collection::vec((1u64..5, 0u8..3), 1..6)
            .prop_map(|slots| Cycle::from_values(slots).expect("there are slots"))
    }

    /// The value of each page from 0 on, page by page.
    fn spelled(cycle: &Cycle<u8>, pages: usize) -> Vec<u8> {
        let round = cycle.slots.iter().flat_map(|(width, value)| vec![*value; *width as usize]);
        round.collect::<Vec<_>>().into_iter().cycle().take(pages).collect()
    }

    proptest! {
        #[test]
        fn counting_and_finding_are_those_of_the_pages_one_by_one(cycle in cycles(), value in 0u8..3, start in 0u64..40, length in 0u64..40) {
            let pages = spelled(&cycle, 100);
            let of: Vec<u64> = (0..100).filter(|page| pages[*page as usize] == value).collect();
            let range = start..start + length;
            let expected = of.iter().filter(|page| range.contains(page)).count() as u64;
            prop_assert_eq!(cycle.count(&range, |own| *own == value), expected);
            for (rank, page) in of.iter().enumerate() {
                prop_assert_eq!(cycle.find(rank as u64, |own| *own == value), Some(*page));
            }
            prop_assert_eq!(cycle.find(0, |own| *own == value).is_none(), of.is_empty());
        }

        #[test]
        fn two_cycles_joined_say_of_each_page_what_either_says(one in cycles(), two in cycles()) {
            let joined = one.joined(&two).expect("so short a round is kept");
            let pages: Vec<(u8, u8)> = spelled(&one, 200).into_iter().zip(spelled(&two, 200)).collect();
            for value in joined.values() {
                let expected = pages.iter().filter(|pair| *pair == value).count() as u64;
                prop_assert_eq!(joined.count(&(0..200), |own| own == value), expected);
            }
        }
    }

    #[test]
    fn a_round_that_is_too_long_is_not_kept() {
        let turns =
            |count: u64| Cycle::from_values((0..count).map(|value| (1, value))).expect("there are slots");
        assert!(turns(1009).joined(&turns(1013)).is_none());
        assert!(turns(64).joined(&turns(48)).is_some());
    }
}
