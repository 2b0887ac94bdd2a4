//! Sets of nodes and of CPUs, and every text form they have.
//!
//! The words, as the kernel's documentation uses them:
//!
//! | word | form | where |
//! |---|---|---|
//! | list | `0-3,8` | `online`, `cpulist`, `shared_cpu_list`, `Cpus_allowed_list` |
//! | mask | `00000001,ffffffff` | `cpumap`, `shared_cpu_map`, `Cpus_allowed` |
//! | words | `unsigned long[]` | the arguments of `mbind(2)`, `sched_setaffinity(2)` |
//!
//! One parser and one printer each, in [`list`], [`mask`] and [`words`]; those of the first two are of the crate
//! `notation`. What users type on a
//! command line is richer and lives in [`crate::expr`].

pub mod list;
pub mod mask;
pub mod words;

use std::fmt;
use std::marker::PhantomData;

use crate::id::{CpuId, Id, NodeId};

/// A set of node ids.
pub type NodeSet = IdSet<NodeId>;
/// A set of CPU ids.
pub type CpuSet = IdSet<CpuId>;

/// A set of ids of one kind, kept as a bitmap.
///
/// Sets of different kinds are different types: a `NodeSet` cannot be passed where CPUs are meant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdSet<I> {
    /// Bit `n % 64` of word `n / 64` is id `n`. The last word is never zero, so that equal sets
    /// are equal vectors.
    words: Vec<u64>,
    kind: PhantomData<I>,
}

impl<I: Id> IdSet<I> {
    /// The set without members.
    pub const fn new() -> Self {
        Self { words: Vec::new(), kind: PhantomData }
    }

    /// The ids from `first` to `last`, both included; empty when `last < first`.
    pub fn range(first: I, last: I) -> Self {
        let mut set = Self::new();
        set.insert_range(first, last);
        set
    }

    fn from_words(mut words: Vec<u64>) -> Self {
        while words.last() == Some(&0) {
            words.pop();
        }
        Self { words, kind: PhantomData }
    }

    /// Adds an id; says whether it was new.
    pub fn insert(&mut self, id: I) -> bool {
        let (word, bit) = place(id);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Adds the ids from `first` to `last`, both included.
    pub fn insert_range(&mut self, first: I, last: I) {
        for number in first.number()..=last.number() {
            self.insert(I::new(number));
        }
    }

    /// Takes an id out; says whether it was there.
    pub fn remove(&mut self, id: I) -> bool {
        let (word, bit) = place(id);
        let Some(slot) = self.words.get_mut(word) else { return false };
        let there = *slot & bit != 0;
        *slot &= !bit;
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
        there
    }

    /// Whether the id is a member.
    pub fn contains(&self, id: I) -> bool {
        let (word, bit) = place(id);
        self.words.get(word).is_some_and(|slot| slot & bit != 0)
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The smallest member.
    pub fn first(&self) -> Option<I> {
        self.iter().next()
    }

    /// The largest member.
    pub fn last(&self) -> Option<I> {
        let top = self.words.len().checked_sub(1)?;
        let bit = 63 - self.words[top].leading_zeros();
        Some(I::new(top as u32 * 64 + bit))
    }

    /// The members in ascending order.
    pub fn iter(&self) -> Iter<'_, I> {
        Iter {
            words: &self.words,
            base: 0,
            rest: self.words.first().copied().unwrap_or(0),
            kind: PhantomData,
        }
    }

    /// Runs of consecutive members, each as (first, last), in ascending order.
    pub fn ranges(&self) -> impl Iterator<Item = (I, I)> + '_ {
        let mut members = self.iter().peekable();
        std::iter::from_fn(move || {
            let first = members.next()?;
            let mut last = first;
            while let Some(next) = members.peek() {
                if next.number() != last.number() + 1 {
                    break;
                }
                last = *next;
                members.next();
            }
            Some((first, last))
        })
    }

    /// The `n`-th member, counting from 0.
    pub fn nth(&self, n: usize) -> Option<I> {
        self.iter().nth(n)
    }

    /// Members of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a | b)
    }

    /// Members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a & b)
    }

    /// Members of this set that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(other, |a, b| a & !b)
    }

    /// Whether every member is also in the other set.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }

    /// Whether the sets have no member in common.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & b == 0)
    }

    fn combine(&self, other: &Self, join: impl Fn(u64, u64) -> u64) -> Self {
        let length = self.words.len().max(other.words.len());
        let word = |words: &[u64], at: usize| words.get(at).copied().unwrap_or(0);
        Self::from_words((0..length).map(|at| join(word(&self.words, at), word(&other.words, at))).collect())
    }
}

/// The column of a byte of a text, counted in characters from 1. `at` lies between two characters.
pub(crate) fn column(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).chars().count() + 1
}

fn place<I: Id>(id: I) -> (usize, u64) {
    let number = id.number();
    ((number / 64) as usize, 1 << (number % 64))
}

/// The members of a set in ascending order; made by [`IdSet::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a, I> {
    words: &'a [u64],
    base: u32,
    rest: u64,
    kind: PhantomData<I>,
}

impl<I: Id> Iterator for Iter<'_, I> {
    type Item = I;

    fn next(&mut self) -> Option<I> {
        while self.rest == 0 {
            self.words = self.words.get(1..)?;
            self.rest = *self.words.first()?;
            self.base += 64;
        }
        let bit = self.rest.trailing_zeros();
        self.rest &= self.rest - 1;
        Some(I::new(self.base + bit))
    }
}

impl<I: Id> Default for IdSet<I> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id> FromIterator<I> for IdSet<I> {
    fn from_iter<T: IntoIterator<Item = I>>(ids: T) -> Self {
        let mut set = Self::new();
        set.extend(ids);
        set
    }
}

impl<I: Id> Extend<I> for IdSet<I> {
    fn extend<T: IntoIterator<Item = I>>(&mut self, ids: T) {
        for id in ids {
            self.insert(id);
        }
    }
}

impl<I: Id, const N: usize> From<[u32; N]> for IdSet<I> {
    fn from(numbers: [u32; N]) -> Self {
        numbers.into_iter().map(I::new).collect()
    }
}

impl<'a, I: Id> IntoIterator for &'a IdSet<I> {
    type Item = I;
    type IntoIter = Iter<'a, I>;
    fn into_iter(self) -> Iter<'a, I> {
        self.iter()
    }
}

impl<I: Id> fmt::Debug for IdSet<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::{Strategy, prop, prop_assert_eq, proptest};
    use std::collections::BTreeSet;

    /// Sets with small and with distant members, for the property tests of this folder.
    pub(crate) fn any_set<I: Id>() -> impl Strategy<Value = IdSet<I>> {
        prop::collection::vec(0u32..I::LIMIT.min(3000), 0..40)
            .prop_map(|numbers| numbers.into_iter().map(I::new).collect())
    }

    fn model(set: &CpuSet) -> BTreeSet<u32> {
        set.iter().map(Id::number).collect()
    }

    #[test]
    fn a_removed_last_member_leaves_an_equal_smaller_set() {
        let mut set = CpuSet::from([1, 700]);
        assert!(set.remove(CpuId::new(700)));
        assert!(!set.remove(CpuId::new(700)));
        assert_eq!(set, CpuSet::from([1]));
    }

    #[test]
    fn the_last_member_is_found_in_a_high_word() {
        assert_eq!(CpuSet::from([3, 64, 191]).last(), Some(CpuId::new(191)));
        assert_eq!(CpuSet::new().last(), None);
    }

    proptest! {
        #[test]
        fn operations_agree_with_a_tree_set(a in any_set::<CpuId>(), b in any_set::<CpuId>()) {
            let (x, y) = (model(&a), model(&b));
            prop_assert_eq!(model(&a.union(&b)), x.union(&y).copied().collect());
            prop_assert_eq!(model(&a.intersection(&b)), x.intersection(&y).copied().collect());
            prop_assert_eq!(model(&a.difference(&b)), x.difference(&y).copied().collect());
            prop_assert_eq!(a.is_subset(&b), x.is_subset(&y));
            prop_assert_eq!(a.is_disjoint(&b), x.is_disjoint(&y));
            prop_assert_eq!(a.len(), x.len());
            prop_assert_eq!(a.last().map(Id::number), x.last().copied());
        }

        #[test]
        fn ranges_cover_the_members_and_nothing_else(set in any_set::<CpuId>()) {
            let mut again = CpuSet::new();
            for (first, last) in set.ranges() {
                again.insert_range(first, last);
            }
            prop_assert_eq!(again, set);
        }
    }
}
