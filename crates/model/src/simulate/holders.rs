//! The programs that have a page.

use std::collections::BTreeSet;

use super::family::Family;

/// A program, in the order in which they started.
pub(super) type Id = u32;

/// A set of programs. It is kept as ranges of numbers: after thousands of forks a page has nearly all programs, in few ranges,
/// while every page that one of them has written to lacks that one.
///
/// A fork changes no set. Before a program is taken out of a set, or all of it is needed, the set takes in the children that were
/// born since it was looked at last, each of which has the page if its parent has it. A program that has no more the memory that
/// the page is in stays in the ranges: whoever asks says which programs have it.
#[derive(Clone, Debug)]
pub(super) struct Holders {
    /// The first and the last of each range, in order, with a gap before the next.
    ranges: Vec<(Id, Id)>,
    /// Programs from this one on are not in the ranges yet; `None` where children do not inherit the page.
    known: Option<Id>,
    first: Option<Id>,
}

/// Programs that have the memory of a page.
pub(super) type Mappers = BTreeSet<Id>;

impl Holders {
    /// No program has the page, and children do not inherit it.
    pub const NONE: Self = Self { ranges: Vec::new(), known: None, first: None };

    /// One program, whose children born from now on have the page too where they inherit it.
    pub fn one(id: Id, inherited: Option<&Family>) -> Self {
        Self { ranges: vec![(id, id)], known: inherited.map(Family::next), first: Some(id) }
    }

    /// The place of the first range that ends at a program or behind it.
    fn place(&self, id: Id) -> usize {
        self.ranges.partition_point(|(_, last)| *last < id)
    }

    fn is_listed(&self, id: Id) -> bool {
        self.ranges.get(self.place(id)).is_some_and(|(first, _)| *first <= id)
    }

    /// Whether a program that has the memory is one of them.
    pub fn contains(&self, id: Id, family: &Family) -> bool {
        let Some(known) = self.known else { return self.is_listed(id) };
        family.ancestor_below(id, known).is_some_and(|ancestor| self.is_listed(ancestor))
    }

    /// Takes in the children that were born since it was done last.
    pub fn update(&mut self, family: &Family) {
        let Some(known) = self.known.filter(|known| *known < family.next()) else { return };
        self.known = Some(family.next());
        let births = family.births_since(known);
        steps::count(births.len().min(self.ranges.len()));
        let listed: u64 = self.ranges.iter().map(|(first, last)| u64::from(last - first) + 1).sum();
        if births.len() as u64 <= listed {
            for birth in births {
                if self.is_listed(birth.parent) {
                    self.append(birth.first.max(known), birth.last);
                }
            }
            return;
        }
        let mut parents: Vec<Id> = self.ranges.iter().flat_map(|(first, last)| *first..=*last).collect();
        let mut born = Vec::new();
        while let Some(parent) = parents.pop() {
            let children = family.children_since(parent, known);
            born.extend_from_slice(children);
            parents.extend_from_slice(children);
        }
        steps::count(born.len());
        born.sort_unstable();
        born.into_iter().for_each(|child| self.append(child, child));
    }

    /// Adds programs behind all others.
    fn append(&mut self, first: Id, last: Id) {
        match self.ranges.last_mut().filter(|(_, end)| end.checked_add(1) == Some(first)) {
            Some((_, end)) => *end = last,
            None => self.ranges.push((first, last)),
        }
    }

    /// Adds a program.
    pub fn insert(&mut self, id: Id) {
        self.first = Some(self.first.map_or(id, |first| first.min(id)));
        let at = self.place(id);
        if self.is_listed(id) {
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

    /// Takes a program out of a set that is up to date; says whether it was there.
    pub fn remove(&mut self, id: Id, mappers: &Mappers) -> bool {
        if !self.is_listed(id) {
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
        if self.first == Some(id) {
            self.choose_first(mappers);
        }
        true
    }

    /// Finds the first of them in a set that is up to date, after the one that it was has gone.
    pub fn choose_first(&mut self, mappers: &Mappers) {
        let gone =
            self.ranges.iter().take_while(|(first, last)| mappers.range(*first..=*last).next().is_none());
        let gone = gone.count();
        self.ranges.drain(..gone);
        let first = self.iter(mappers).next();
        self.first = first;
    }

    /// The ranges that it is kept as.
    #[cfg(test)]
    pub const fn range_count(&self) -> usize {
        self.ranges.len()
    }

    /// The one that started first.
    pub const fn first(&self) -> Option<Id> {
        self.first
    }

    /// Whether no one has the page.
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Whether one program alone has the page, in a set that is up to date.
    pub fn is_one(&self, mappers: &Mappers) -> bool {
        let mut all = self.iter(mappers);
        all.next().is_some() && all.next().is_none()
    }

    /// All of them in a set that is up to date, in the order in which they started.
    pub fn iter<'h>(&'h self, mappers: &'h Mappers) -> impl Iterator<Item = Id> + 'h {
        self.ranges.iter().flat_map(|(first, last)| mappers.range(*first..=*last).copied())
    }

    /// Whether the same programs have another page; both sets are up to date.
    pub fn are_those_of(&self, other: &Self, mappers: &Mappers) -> bool {
        if self.first != other.first {
            return false;
        }
        // Between two bounds a program is in both sets or in none, or in one of them.
        let bounds = |holders: &Self| -> Vec<Id> {
            holders.ranges.iter().flat_map(|(first, last)| [*first, last.saturating_add(1)]).collect()
        };
        let (left, right) = (bounds(self), bounds(other));
        let (mut passed_left, mut passed_right, mut since) = (0, 0, 0);
        loop {
            let next = left.get(passed_left).into_iter().chain(right.get(passed_right)).min().copied();
            let Some(next) = next else { return true };
            let differ = (passed_left + passed_right) % 2 == 1;
            if differ && mappers.range(since..next).next().is_some() {
                return false;
            }
            since = next;
            passed_left += usize::from(left.get(passed_left) == Some(&next));
            passed_right += usize::from(right.get(passed_right) == Some(&next));
        }
    }

    /// All of them, in a set of any age.
    #[cfg(test)]
    pub fn all(&self, family: &Family, mappers: &Mappers) -> Vec<Id> {
        let mut now = self.clone();
        now.update(family);
        now.iter(mappers).collect()
    }
}

/// Steps over extents and sets of holders, counted in tests.
pub(super) mod steps {
    #[cfg(test)]
    thread_local! {
        static COUNT: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    /// Counts steps.
    #[cfg(test)]
    pub fn count(steps: usize) {
        COUNT.with(|count| count.set(count.get() + steps as u64));
    }

    /// Counts nothing outside of tests.
    #[cfg(not(test))]
    pub const fn count(_: usize) {}

    /// Gives how many there were since the last call.
    #[cfg(test)]
    pub fn take() -> u64 {
        COUNT.with(|count| count.replace(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn ranges_hold_what_a_set_holds(steps in proptest::collection::vec((any::<bool>(), 0u32..12), 0..60)) {
            let (mut holders, mut set) = (Holders::NONE, BTreeSet::new());
            let (everybody, family): (Mappers, Family) = ((0..12).collect(), Family::default());
            for (adds, id) in steps {
                if adds {
                    holders.insert(id);
                    set.insert(id);
                } else {
                    prop_assert_eq!(holders.remove(id, &everybody), set.remove(&id));
                }
                prop_assert_eq!(holders.iter(&everybody).collect::<Vec<_>>(), set.iter().copied().collect::<Vec<_>>());
                prop_assert!((0..13).all(|id| holders.contains(id, &family) == set.contains(&id)));
                prop_assert_eq!((holders.first(), holders.is_one(&everybody), holders.is_empty()), (set.first().copied(), set.len() == 1, set.is_empty()));
                // The same set is always kept in the same way.
                prop_assert!(holders.ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            }
        }

        /// Sets of two pages, one that the first program has from the beginning and one that a later one takes.
        #[test]
        fn children_have_what_their_parents_have_when_they_are_born(
            steps in proptest::collection::vec((0u8..6, 0u32..40), 0..60), taken_at in 0usize..20,
        ) {
            let mut family = Family::default();
            family.add(None);
            let mut mappers = Mappers::from([0]);
            let mut sets = vec![(Holders::one(0, Some(&family)), BTreeSet::from([0u32]))];
            for (at, (kind, id)) in steps.into_iter().enumerate() {
                let Some(id) = mappers.iter().copied().cycle().nth(id as usize) else { break };
                if at == taken_at {
                    sets.push((Holders::one(id, Some(&family)), BTreeSet::from([id])));
                }
                match kind {
                    0..3 => {
                        let child = family.add(Some((id, at as u64)));
                        mappers.insert(child);
                        sets.iter_mut().filter(|(_, set)| set.contains(&id)).for_each(|(_, set)| {
                            set.insert(child);
                        });
                    }
                    3 | 4 => for (holders, set) in &mut sets {
                        holders.update(&family);
                        prop_assert_eq!(holders.remove(id, &mappers), set.remove(&id));
                    },
                    _ => {
                        mappers.remove(&id);
                        for (holders, set) in &mut sets {
                            set.remove(&id);
                            if holders.first() == Some(id) {
                                holders.update(&family);
                                holders.choose_first(&mappers);
                            }
                        }
                    }
                }
                for (holders, set) in &sets {
                    prop_assert_eq!(holders.all(&family, &mappers), set.iter().copied().collect::<Vec<_>>());
                    prop_assert!(mappers.iter().all(|id| holders.contains(*id, &family) == set.contains(id)));
                    prop_assert_eq!(holders.first(), set.first().copied());
                }
                if let [(one, its), (other, others)] = &sets[..] {
                    let (mut one, mut other) = (one.clone(), other.clone());
                    one.update(&family);
                    other.update(&family);
                    prop_assert_eq!(one.are_those_of(&other, &mappers), its == others);
                }
            }
        }
    }
}
