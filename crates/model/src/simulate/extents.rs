//! The pages of a mapped object, found by their numbers and by who has them.
//!
//! Of private memory a page may be there many times, once for each set of programs that has a copy of its own. Three indexes keep
//! a step from walking over all of them:
//!
//! | index | finds |
//! |---|---|
//! | by page | what has to be cut, put together, or moved in the order of addresses |
//! | by maker | what a program has: it made it, or one of its ancestors made it last before the fork |
//! | by first holder | what is free, or counted with another program, when a program ends |

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::family::Family;
use super::holders::{Holders, Id, Mappers, steps};
use super::limits::GroupId;
use super::run::Run;

/// Where an extent is: its first page, and its place among those that begin there.
pub(super) type Key = (u64, i64);

/// Pages that were touched, with the programs that have them. In private memory a page number may be in
/// several extents; no two of them have a program in common.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    pub run: Run,
    pub holders: Holders,
    /// The control group that they are charged to.
    pub charged: Option<GroupId>,
    /// When they were last touched: the number of the step.
    pub since: u64,
    /// The program that touched them then; `None` where children do not inherit them.
    pub maker: Option<Id>,
}

/// The extents of an object, in the order of their addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents {
    by_page: BTreeMap<Key, Extent>,
    /// Pages before which no extent has to be cut.
    seams: BTreeSet<u64>,
    /// Extents that children inherit: maker, first page, when it was made, place.
    by_maker: BTreeSet<(Id, u64, u64, i64)>,
    /// The same by the first who has them.
    by_first: BTreeSet<(Id, u64, i64)>,
    /// Pages before which extents may have become alike.
    loose: BTreeSet<u64>,
    /// The next place before all extents that begin at a page, and the one behind them.
    before: i64,
    behind: i64,
}

impl Extent {
    /// Whether its pages follow those of another, and are alike in all else but who has them.
    pub fn continues(&self, last: &Self) -> bool {
        last.run.pages.end == self.run.pages.start
            && last.since == self.since
            && last.maker == self.maker
            && last.charged == self.charged
            && last.run.held == self.run.held
    }
}

impl Extents {
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_page.len()
    }

    /// All of them, in the order of their addresses.
    pub fn iter(&self) -> impl Iterator<Item = &Extent> {
        self.by_page.values()
    }

    /// The keys of those that are such.
    pub fn keys_of(&self, is: impl Fn(&Extent) -> bool) -> Vec<Key> {
        steps::count(self.by_page.len());
        self.by_page.iter().filter(|(_, extent)| is(extent)).map(|(key, _)| *key).collect()
    }

    /// The extent at a place.
    pub fn get(&self, key: Key) -> Option<&Extent> {
        self.by_page.get(&key)
    }

    /// Adds one behind all that begin at the same page.
    pub fn push(&mut self, extent: Extent) {
        self.behind += 1;
        self.put((extent.run.pages.start, self.behind), extent);
    }

    /// Notes that a program touches one in a step.
    pub fn touch(&mut self, key: Key, since: u64, id: Id) {
        let Some(extent) = self.by_page.get_mut(&key) else { return };
        steps::count(1);
        self.loose.extend([extent.run.pages.start, extent.run.pages.end]);
        if let Some(maker) = &mut extent.maker {
            self.by_maker.remove(&(*maker, key.0, extent.since, key.1));
            self.by_maker.insert((id, key.0, since, key.1));
            *maker = id;
        }
        extent.since = since;
    }

    /// Puts one at a place that is free.
    pub fn put(&mut self, key: Key, extent: Extent) {
        let pages = extent.run.pages.clone();
        if pages.is_empty() {
            return;
        }
        steps::count(1);
        let closed: Vec<u64> = self.seams.range(pages.start.saturating_add(1)..pages.end).copied().collect();
        closed.iter().for_each(|page| {
            self.seams.remove(page);
        });
        self.loose.extend([pages.start, pages.end]);
        if let Some(maker) = extent.maker {
            self.by_maker.insert((maker, key.0, extent.since, key.1));
            if let Some(first) = extent.holders.first() {
                self.by_first.insert((first, key.0, key.1));
            }
        }
        self.by_page.insert(key, extent);
    }

    /// Takes one out.
    pub fn take(&mut self, key: Key) -> Option<Extent> {
        let extent = self.by_page.remove(&key)?;
        self.loose.extend([extent.run.pages.start, extent.run.pages.end]);
        self.loose.extend(self.by_page.range(key..).next().map(|(next, _)| next.0));
        if let Some(maker) = extent.maker {
            self.by_maker.remove(&(maker, key.0, extent.since, key.1));
            if let Some(first) = extent.holders.first() {
                self.by_first.remove(&(first, key.0, key.1));
            }
        }
        Some(extent)
    }

    /// Puts pieces where extents were taken from, in the same order.
    pub fn put_pieces(&mut self, pieces: Vec<(Key, Vec<Extent>)>) {
        for (key, pieces) in pieces.into_iter().rev() {
            for piece in pieces.into_iter().rev() {
                let first = piece.run.pages.start;
                if first == key.0 {
                    self.put(key, piece);
                } else {
                    self.before -= 1;
                    self.put((first, self.before), piece);
                }
            }
        }
    }

    /// Cuts those that reach over an end of a range.
    pub fn carve(&mut self, pages: &Range<u64>, family: &Family) {
        if self.by_page.is_empty() {
            return;
        }
        for page in [pages.end, pages.start] {
            if self.seams.contains(&page) {
                continue;
            }
            for key in self.reaching_over(page) {
                let Some(mut left) = self.take(key) else { continue };
                // Both parts would have to take the same children in later.
                left.holders.update(family);
                let run = left.run.cut(page);
                let right = Extent { run, ..left.clone() };
                self.put(key, left);
                self.push(right);
            }
            self.seams.insert(page);
        }
    }

    fn reaching_over(&self, page: u64) -> Vec<Key> {
        let from = self.seams.range(..=page).next_back().copied().unwrap_or(0);
        let before = self.by_page.range((from, i64::MIN)..(page, i64::MIN)).inspect(|_| steps::count(1));
        before.filter(|(_, extent)| extent.run.pages.end > page).map(|(key, _)| *key).collect()
    }

    /// Those with pages in a range, whoever has them.
    pub fn overlapping(&self, pages: &Range<u64>) -> impl Iterator<Item = (Key, &Extent)> {
        let (start, end) = (pages.start, pages.end.max(pages.start));
        let from = self.seams.range(..=start).next_back().copied().unwrap_or(0);
        let near = self.by_page.range((from, i64::MIN)..(end, i64::MIN)).inspect(|_| steps::count(1));
        near.filter(move |(_, extent)| extent.run.pages.end > start).map(|(key, extent)| (*key, extent))
    }

    /// Those of a program in a range that was carved, in the order of their addresses, of pages that children inherit.
    pub fn keys_within(&self, id: Id, pages: &Range<u64>, family: &Family) -> Vec<Key> {
        let mut keys = Vec::new();
        let mut left = pages.end.saturating_sub(pages.start);
        // Copies are looked at in turn with ancestors: where there are fewer of them, they are all that is looked at.
        let (mut near, mut copies) = (None, Vec::new());
        let (mut maker, mut until) = (id, u64::MAX);
        while left > 0 {
            steps::count(1);
            let end = (maker, pages.end, 0, i64::MIN);
            let mut made = self.by_maker.range((maker, pages.start, 0, i64::MIN)..end).peekable();
            while let Some((_, first, since, place)) = made.next().filter(|_| left > 0) {
                steps::count(1);
                let mut last = Some(place).filter(|_| *since <= until);
                // Of the copies of a page that an ancestor made, its last before the fork is the one that a child may have.
                if made.peek().is_some_and(|(_, next, ..)| next == first) {
                    let copies = (maker, *first, 0, i64::MIN)..=(maker, *first, until, i64::MAX);
                    last = self.by_maker.range(copies).next_back().map(|(.., place)| place);
                    made = self.by_maker.range((maker, first + 1, 0, i64::MIN)..end).peekable();
                }
                let Some(key) = last.map(|place| (*first, *place)) else { continue };
                let extent = self.by_page.get(&key).filter(|extent| extent.holders.contains(id, family));
                if let Some(extent) = extent {
                    left = left.saturating_sub(extent.run.pages.end - extent.run.pages.start);
                    keys.push(key);
                }
            }
            let Some((parent, step)) = family.parent(maker) else { break };
            (maker, until) = (parent, step);
            let Some(copy) = near.get_or_insert_with(|| self.overlapping(pages)).next() else {
                copies.retain(|(_, extent): &(Key, &Extent)| extent.holders.contains(id, family));
                return copies.into_iter().map(|(key, _)| key).collect();
            };
            copies.push(copy);
        }
        keys.sort_unstable();
        keys
    }

    /// Those that a program is the first holder of.
    pub fn first_of(&self, id: Id) -> Vec<Key> {
        let own = self.by_first.range((id, 0, i64::MIN)..=(id, u64::MAX, i64::MAX));
        own.map(|(_, page, place)| (*page, *place)).collect()
    }

    /// Takes the children in that were born since, in the sets of holders of some.
    pub fn update(&mut self, keys: &[Key], family: &Family) {
        for key in keys {
            if let Some(extent) = self.by_page.get_mut(key) {
                extent.holders.update(family);
            }
        }
    }

    /// Puts extents together that are one, so that their number stays small.
    pub fn tidy(&mut self, family: &Family, mappers: &Mappers) {
        while let Some(page) = self.loose.pop_first() {
            steps::count(1);
            let next = self.by_page.range((page, i64::MIN)..=(page, i64::MAX)).next();
            let Some((key, next)) = next else { continue };
            let last = self.by_page.range(..(page, i64::MIN)).next_back();
            let Some((last_key, _)) = last.filter(|(_, last)| next.continues(last)) else { continue };
            let (last_key, key) = (*last_key, *key);
            self.update(&[last_key, key], family);
            let holders = |key: Key| self.by_page.get(&key).map(|extent| &extent.holders);
            let same = holders(last_key)
                .zip(holders(key))
                .is_some_and(|(last, own)| own.are_those_of(last, mappers));
            if !same {
                continue;
            }
            let Some((mut last, next)) = self.take(last_key).zip(self.take(key)) else { continue };
            last.run.pages.end = next.run.pages.end;
            self.put(last_key, last);
        }
    }
}

impl<'e> IntoIterator for &'e Extents {
    type Item = &'e Extent;
    type IntoIter = std::collections::btree_map::Values<'e, Key, Extent>;

    fn into_iter(self) -> Self::IntoIter {
        self.by_page.values()
    }
}

impl IntoIterator for Extents {
    type Item = Extent;
    type IntoIter = std::collections::btree_map::IntoValues<Key, Extent>;

    fn into_iter(self) -> Self::IntoIter {
        self.by_page.into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::cycle::Cycle;
    use crate::simulate::run::Held;

    #[test]
    fn an_extent_without_pages_is_not_kept() {
        let mut extents = Extents::default();
        let run = Run { pages: 7..7, held: Cycle::one(Held::SWAPPED) };
        extents.push(Extent { run, holders: Holders::NONE, charged: None, since: 1, maker: None });
        assert_eq!(extents.len(), 0);
    }
}
