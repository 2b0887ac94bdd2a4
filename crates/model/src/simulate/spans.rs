//! Values for ranges of pages, such as the policies of mappings.

use std::ops::Range;

/// Values by range; ranges do not overlap, and are in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spans<T>(Vec<(Range<u64>, T)>);

impl<T> Default for Spans<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone> Spans<T> {
    /// Gives a range a value, or takes it away.
    pub fn set(&mut self, range: Range<u64>, value: Option<T>) {
        if range.is_empty() {
            return;
        }
        self.cut(range.start);
        self.cut(range.end);
        let first = self.0.partition_point(|(own, _)| own.start < range.start);
        let behind = self.0.partition_point(|(own, _)| own.start < range.end);
        self.0.splice(first..behind, value.map(|value| (range, value)));
    }

    /// Cuts the range that a page is inside of, before it.
    fn cut(&mut self, page: u64) {
        let at = self.0.partition_point(|(own, _)| own.end <= page);
        if let Some((own, value)) = self.0.get(at).filter(|(own, _)| own.start < page).cloned() {
            self.0[at].0.end = page;
            self.0.insert(at + 1, (page..own.end, value));
        }
    }

    /// A range in pieces, each with its value.
    pub fn pieces(&self, range: Range<u64>) -> Vec<(Range<u64>, Option<T>)> {
        let mut pieces = Vec::new();
        let mut first = range.start;
        let at = self.0.partition_point(|(own, _)| own.end <= range.start);
        for (own, value) in self.0[at..].iter().take_while(|(own, _)| own.start < range.end) {
            let (start, end) = (own.start.max(range.start), own.end.min(range.end));
            if start < end {
                if first < start {
                    pieces.push((first..start, None));
                }
                pieces.push((start..end, Some(value.clone())));
                first = end;
            }
        }
        if first < range.end {
            pieces.push((first..range.end, None));
        }
        pieces
    }

    /// The values.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn a_page_has_the_value_that_was_set_last(sets in proptest::collection::vec((0u64..20, 0u64..20, proptest::option::of(0u8..3)), 0..20), from in 0u64..20, to in 0u64..20) {
            let mut spans = Spans::default();
            let mut pages = [None; 20];
            for (start, end, value) in sets {
                spans.set(start..end, value);
                pages.iter_mut().take(end as usize).skip(start as usize).for_each(|page| *page = value);
            }
            let pieces = spans.pieces(from..to);
            prop_assert!(pieces.windows(2).all(|pair| pair[0].0.end == pair[1].0.start));
            let spelled: Vec<Option<u8>> = pieces.iter().flat_map(|(range, value)| range.clone().map(|_| *value)).collect();
            let expected: Vec<Option<u8>> = pages.iter().take(to as usize).skip(from as usize).copied().collect();
            prop_assert_eq!(spelled, expected);
        }
    }
}
