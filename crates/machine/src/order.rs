//! Sorts, and maps and sets in order, that add little code for each type.
//!
//! The standard library's stable sort is four kilobytes of machine code for each type and key, and to collect a
//! `BTreeMap` or a `BTreeSet` is to sort its entries first. Together they were an eighth of the command. Where entries
//! are many and time counts, the standard library's are right: they move less, and call nothing through a pointer.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Stable sorts of slices by one function that all types share.
pub trait Order<T> {
    /// Sorts as [`sort_by`](slice::sort_by) does.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts as [`sort_by_key`](slice::sort_by_key) does.
    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|one, other| key(one).cmp(&key(other)));
    }

    /// Sorts as [`sort`](slice::sort) does.
    fn order(&mut self)
    where
        T: Ord,
    {
        self.order_by(T::cmp);
    }
}

impl<T> Order<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let places = ordered(self.len(), &mut |one, other| compare(&self[one], &self[other]));
        arrange(places, &mut |one, other| self.swap(one, other));
    }
}

/// The places of elements, in the order of the elements.
fn ordered(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|one, other| compare(*one, *other));
    places
}

/// Brings to each place the element that is at `places` of it, a cycle of places after the other.
fn arrange(mut places: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for first in 0..places.len() {
        let mut to = first;
        loop {
            let from = std::mem::replace(&mut places[to], to);
            if from == first {
                break;
            }
            swap(to, from);
            to = from;
        }
    }
}

/// Maps and sets from iterators, entry by entry. Of equal keys the last value stays, as with
/// [`collect`](Iterator::collect).
pub trait CollectOrdered: Iterator + Sized {
    /// Collects pairs into a map.
    fn collect_map<K: Ord, V>(self) -> BTreeMap<K, V>
    where
        Self: Iterator<Item = (K, V)>,
    {
        let mut map = BTreeMap::new();
        map.extend(self);
        map
    }

    /// Collects pairs into a map, up to the first error.
    ///
    /// # Errors
    /// The first.
    fn try_collect_map<K: Ord, V, E>(self) -> Result<BTreeMap<K, V>, E>
    where
        Self: Iterator<Item = Result<(K, V), E>>,
    {
        let mut map = BTreeMap::new();
        for pair in self {
            let (key, value) = pair?;
            map.insert(key, value);
        }
        Ok(map)
    }

    /// Collects elements into a set.
    fn collect_set(self) -> BTreeSet<Self::Item>
    where
        Self::Item: Ord,
    {
        let mut set = BTreeSet::new();
        set.extend(self);
        set
    }
}

impl<I: Iterator> CollectOrdered for I {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_standard_library(list in prop::collection::vec((0..9_u8, any::<u8>()), 0..60)) {
            let (mut ours, mut theirs) = (list.clone(), list.clone());
            ours.order_by_key(|(key, _)| *key);
            theirs.sort_by_key(|(key, _)| *key);
            prop_assert_eq!(&ours, &theirs);
            ours.order_by(|one, other| other.cmp(one));
            theirs.sort_by(|one, other| other.cmp(one));
            prop_assert_eq!(&ours, &theirs);
            ours.order();
            theirs.sort();
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn maps_and_sets_are_those_of_the_standard_library(list in prop::collection::vec((0..9_u8, any::<u8>()), 0..60)) {
            prop_assert_eq!(list.iter().copied().collect_map(), list.iter().copied().collect::<BTreeMap<_, _>>());
            prop_assert_eq!(list.iter().collect_set(), list.iter().collect::<BTreeSet<_>>());
            let checked = || list.iter().map(|(key, value)| if *key < 8 { Ok((*key, *value)) } else { Err(*value) });
            prop_assert_eq!(checked().try_collect_map(), checked().collect::<Result<BTreeMap<_, _>, _>>());
        }
    }
}
