//! The programs that have a page.

/// A program, in the order in which they started.
pub(super) type Id = u32;

/// A set of programs. It is kept as ranges of numbers: after thousands of forks a page has nearly all programs, in few ranges,
/// while every page that one of them has written to lacks that one.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Holders {
    /// The first and the last of each range, in order, with a gap before the next.
    ranges: Vec<(Id, Id)>,
}

impl Holders {
    /// One program.
    pub fn one(id: Id) -> Self {
        Self { ranges: vec![(id, id)] }
    }

    /// The place of the first range that ends at a program or behind it.
    fn place(&self, id: Id) -> usize {
        self.ranges.partition_point(|(_, last)| *last < id)
    }

    /// Whether a program is one of them.
    pub fn contains(&self, id: Id) -> bool {
        self.ranges.get(self.place(id)).is_some_and(|(first, _)| *first <= id)
    }

    /// Adds a program.
    pub fn insert(&mut self, id: Id) {
        // A child is the last of all.
        if let Some((_, last)) = self.ranges.last_mut().filter(|(_, last)| last.checked_add(1) == Some(id)) {
            *last = id;
            return;
        }
        let at = self.place(id);
        if self.contains(id) {
            return;
        }
        let touches_left = at.checked_sub(1).is_some_and(|left| self.ranges[left].1 + 1 == id);
        let touches_right = self.ranges.get(at).is_some_and(|(first, _)| id + 1 == *first);
        match (touches_left, touches_right) {
            (true, true) => {
                self.ranges[at - 1].1 = self.ranges[at].1;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].1 = id,
            (false, true) => self.ranges[at].0 = id,
            (false, false) => self.ranges.insert(at, (id, id)),
        }
    }

    /// Takes a program out; says whether it was there.
    pub fn remove(&mut self, id: Id) -> bool {
        if !self.contains(id) {
            return false;
        }
        let at = self.place(id);
        match self.ranges[at] {
            (first, last) if first == last => {
                self.ranges.remove(at);
            }
            (first, _) if first == id => self.ranges[at].0 = id + 1,
            (_, last) if last == id => self.ranges[at].1 = id - 1,
            (first, last) => {
                self.ranges[at] = (id + 1, last);
                self.ranges.insert(at, (first, id - 1));
            }
        }
        true
    }

    /// The ranges that it is kept as.
    #[cfg(test)]
    pub const fn range_count(&self) -> usize {
        self.ranges.len()
    }

    /// The one that started first.
    pub fn first(&self) -> Option<Id> {
        self.ranges.first().map(|(first, _)| *first)
    }

    /// Whether one program alone has the page.
    pub fn is_one(&self) -> bool {
        matches!(self.ranges[..], [(first, last)] if first == last)
    }

    /// Whether no one has the page.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// All of them, in the order in which they started.
    pub fn iter(&self) -> impl Iterator<Item = Id> + '_ {
        self.ranges.iter().flat_map(|(first, last)| *first..=*last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_hold_what_a_set_holds(steps in proptest::collection::vec((any::<bool>(), 0u32..12), 0..60)) {
            let (mut holders, mut set) = (Holders::default(), BTreeSet::new());
            for (adds, id) in steps {
                if adds {
                    holders.insert(id);
                    set.insert(id);
                } else {
                    prop_assert_eq!(holders.remove(id), set.remove(&id));
                }
                prop_assert_eq!(holders.iter().collect::<Vec<_>>(), set.iter().copied().collect::<Vec<_>>());
                prop_assert!((0..13).all(|id| holders.contains(id) == set.contains(&id)));
                prop_assert_eq!((holders.first(), holders.is_one(), holders.is_empty()), (set.first().copied(), set.len() == 1, set.is_empty()));
                // The same set is always kept in the same way.
                prop_assert!(holders.ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            }
        }
    }
}
