//! Lists: `0-3,8`.
//!
//! # Source
//! The kernel's `bitmap_parselist` and `bitmap_print_list`: comma separated numbers and ranges,
//! and groups `first-last:used/size` ("of every `size` numbers the first `used`"), Linux 3.7. sysfs
//! never prints groups, but cpuset files, kernel parameters and people do use them.

use core::fmt;

use crate::number;

/// A number, a range, or the groups in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first number.
    pub first: u64,
    /// The last number, not below the first.
    pub last: u64,
    /// How many of how many are taken, where not all are: used and size, which is above 0.
    pub group: Option<(u64, u64)>,
}

impl Span {
    /// Its numbers below a limit, ascending.
    pub fn numbers(self, limit: u64) -> impl Iterator<Item = u64> {
        let end = self.last.saturating_add(1).min(limit);
        (self.first..end).filter(move |number| {
            let place = |size| number.wrapping_sub(self.first).checked_rem(size);
            self.group.is_none_or(|(used, size)| place(size).is_some_and(|place| place < used))
        })
    }
}

/// Where and why a text is not a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The byte, counted from 0.
    pub at: usize,
    pub expected: Expected,
}

/// The text that would have been right at a place of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Number,
    /// A number behind this character.
    NumberAfter(char),
    /// A number below this one.
    NumberBelow(u64),
    /// The two numbers of a range in this order.
    InOrder(u64, u64),
    /// The rest of a group.
    Slash,
    /// A group that can be.
    Group,
    /// The end, or what carries a list on.
    Separator,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number => f.write_str("a number"),
            Self::NumberAfter(character) => write!(f, "a number after \"{character}\""),
            Self::NumberBelow(limit) => write!(f, "a number below {limit}"),
            Self::InOrder(first, last) => write!(f, "the smaller number first, {first}-{last}"),
            Self::Slash => f.write_str("\"/\" and the size of a group"),
            Self::Group => f.write_str("a group as used/size with used not above size"),
            Self::Separator => f.write_str("\",\", \"-\" or the end"),
        }
    }
}

/// The spans of a list of numbers below a limit; the first fault ends it. An empty text has none.
pub fn spans(text: &[u8], limit: u64) -> Spans<'_> {
    Spans {
        length: text.len(),
        rest: text,
        limit,
        place: if text.is_empty() { Place::End } else { Place::Start },
    }
}

/// Made by [`spans`].
#[derive(Clone, Debug)]
pub struct Spans<'a> {
    length: usize,
    rest: &'a [u8],
    limit: u64,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    Behind,
    End,
}

impl Spans<'_> {
    fn at(&self) -> usize {
        self.length.saturating_sub(self.rest.len())
    }

    fn fail<T>(&self, at: usize, expected: Expected) -> Result<T, Fault> {
        Err(Fault { at, expected })
    }

    fn take(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn number(&mut self, expected: Expected) -> Result<u64, Fault> {
        if !self.rest.first().is_some_and(u8::is_ascii_digit) {
            return self.fail(self.at(), expected);
        }
        match number::decimal(self.rest) {
            Some((number, rest)) if number < self.limit => {
                self.rest = rest;
                Ok(number)
            }
            _ => self.fail(self.at(), Expected::NumberBelow(self.limit)),
        }
    }

    fn span(&mut self, expected: Expected) -> Result<Span, Fault> {
        let start = self.at();
        let first = self.number(expected)?;
        if !self.take(b'-') {
            return Ok(Span { first, last: first, group: None });
        }
        let last = self.number(Expected::NumberAfter('-'))?;
        if last < first {
            return self.fail(start, Expected::InOrder(last, first));
        }
        if !self.take(b':') {
            return Ok(Span { first, last, group: None });
        }
        let used_at = self.at();
        let used = self.number(Expected::NumberAfter(':'))?;
        if !self.take(b'/') {
            return self.fail(self.at(), Expected::Slash);
        }
        let size = self.number(Expected::NumberAfter('/'))?;
        if size == 0 || used > size {
            return self.fail(used_at, Expected::Group);
        }
        Ok(Span { first, last, group: Some((used, size)) })
    }
}

impl Iterator for Spans<'_> {
    type Item = Result<Span, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let place = self.place;
        let span = match place {
            Place::Start => self.span(Expected::Number),
            Place::Behind if self.rest.is_empty() => return None,
            Place::Behind if self.take(b',') => self.span(Expected::NumberAfter(',')),
            Place::Behind => self.fail(self.at(), Expected::Separator),
            Place::End => return None,
        };
        self.place = if span.is_ok() { Place::Behind } else { Place::End };
        Some(span)
    }
}

/// Writes ranges, each as (first, last), as the kernel does: `0-3,8`. None of them is the empty text.
///
/// # Errors
/// Those of the writer.
pub fn write(f: &mut dyn fmt::Write, ranges: impl Iterator<Item = (u64, u64)>) -> fmt::Result {
    let mut comma = "";
    for (first, last) in ranges {
        match first == last {
            true => write!(f, "{comma}{first}")?,
            false => write!(f, "{comma}{first}-{last}")?,
        }
        comma = ",";
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn numbers(text: &str, limit: u64) -> Result<Vec<u64>, Fault> {
        let mut found = Vec::new();
        for span in spans(text.as_bytes(), limit) {
            found.extend(span?.numbers(64));
        }
        Ok(found)
    }

    fn check(text: &str, expected: &[u64]) {
        assert_eq!(numbers(text, 64), Ok(expected.to_vec()), "{text}");
    }

    fn refuse(text: &str, at: usize, expected: &str) {
        let fault = numbers(text, 64).expect_err(text);
        assert_eq!((fault.at, fault.expected.to_string().as_str()), (at, expected), "{text}");
    }

    #[test]
    fn numbers_ranges_and_groups_are_read() {
        check("", &[]);
        check("0", &[0]);
        check("0-3,8", &[0, 1, 2, 3, 8]);
        check("8,0-1,1", &[8, 0, 1, 1]);
        check("0-9:2/4", &[0, 1, 4, 5, 8, 9]);
    }

    #[test]
    fn a_fault_names_the_place_and_what_was_expected() {
        refuse("0-x", 2, "a number after \"-\"");
        refuse("x", 0, "a number");
        refuse("0,,1", 2, "a number after \",\"");
        refuse("0,", 2, "a number after \",\"");
        refuse("3-1", 0, "the smaller number first, 1-3");
        refuse("0 1", 1, "\",\", \"-\" or the end");
        refuse("0-7:2", 5, "\"/\" and the size of a group");
        refuse("0-7:4/2", 4, "a group as used/size with used not above size");
        refuse("0-7:0/0", 4, "a group as used/size with used not above size");
        refuse("1,64", 2, "a number below 64");
        refuse("99999999999999999999", 0, "a number below 64");
    }

    #[test]
    fn a_hostile_range_costs_nothing() {
        assert_eq!(numbers("62-18446744073709551614", u64::MAX), Ok(vec![62, 63]));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(set in proptest::collection::btree_set(0u64..64, 0..20)) {
            let mut text = String::new();
            write(&mut text, set.iter().map(|number| (*number, *number))).expect("a text takes all");
            prop_assert_eq!(numbers(&text, 64), Ok(set.into_iter().collect()));
        }

        #[test]
        fn ranges_are_read_back(first in 0u64..60, more in 0u64..60) {
            let last = (first + more).min(63);
            let mut text = String::new();
            write(&mut text, [(first, last)].into_iter()).expect("a text takes all");
            prop_assert_eq!(numbers(&text, 64), Ok((first..=last).collect()));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            for span in spans(&bytes, 64) {
                if let Err(fault) = span {
                    assert!(fault.at <= bytes.len());
                }
            }
        }

        #[test]
        fn nearly_lists_are_read_or_refused(text in "[0-9,:/-]{0,24}") {
            let _ = numbers(&text, 64);
        }
    }
}
