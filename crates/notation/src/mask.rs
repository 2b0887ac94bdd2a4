//! Masks: `00000001,ffffffff`, the most significant group first.
//!
//! # Source
//! The kernel's `%*pb` format: groups of 32 bits in hexadecimal, separated by commas; the first
//! group is as narrow as the highest possible number needs (`0000,0000003f` on a 48-CPU machine).

use core::fmt;

/// How many digits a mask without commas may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Eight, as any group of the kernel's.
    Kernel,
    /// Any number: `numa_parse_bitmap` of the originals reads digits without commas as one number.
    Unlimited,
}

/// 32 bits of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The number of the lowest of them: a multiple of 32.
    pub first: u64,
    pub bits: u32,
    /// How many digits they were written with: 4 bits each.
    pub digits: usize,
    /// The byte where the digits begin, counted from 0.
    pub at: usize,
}

impl Group {
    /// The numbers of its bits that are set, ascending.
    pub fn numbers(self) -> impl Iterator<Item = u64> {
        // Nearly all groups of a mask of 1,024 nodes are empty.
        let mut left = self.bits;
        core::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left.wrapping_sub(1);
            Some(self.first.saturating_add(bit.into()))
        })
    }
}

/// Where and why a text is not a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The byte, counted from 0.
    pub at: usize,
    pub expected: Expected,
}

/// The text that would have been right at a place of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A digit, or the end of the group.
    Digit,
    /// A group that is neither empty nor too long.
    Group,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Digit => "a hexadecimal digit or \",\"",
            Self::Group => "one to eight hexadecimal digits",
        })
    }
}

/// The groups of a mask, from the right; the first fault ends them. An empty text has none.
pub fn groups(text: &[u8], width: Width) -> Groups<'_> {
    let unlimited = width == Width::Unlimited && !text.contains(&b',');
    Groups { rest: (!text.is_empty()).then_some(text), first: 0, unlimited }
}

/// Made by [`groups`].
#[derive(Clone, Debug)]
pub struct Groups<'a> {
    /// The text before the groups that were read; `None` behind the first.
    rest: Option<&'a [u8]>,
    first: u64,
    unlimited: bool,
}

/// The digits of a group.
const DIGITS: usize = 8;

impl Groups<'_> {
    fn group(&mut self, text: &[u8]) -> Result<Group, Fault> {
        let comma = text.iter().rposition(|byte| *byte == b',');
        let mut at = comma.map_or(0, |comma| comma.saturating_add(1));
        let mut digits = text.get(at..).unwrap_or_default();
        if let Some(bad) = digits.iter().position(|byte| !byte.is_ascii_hexdigit()) {
            return Err(Fault { at: at.saturating_add(bad), expected: Expected::Digit });
        }
        if digits.is_empty() || (digits.len() > DIGITS && !self.unlimited) {
            return Err(Fault { at, expected: Expected::Group });
        }
        if digits.len() > DIGITS {
            at = text.len().saturating_sub(DIGITS);
            digits = text.get(at..).unwrap_or_default();
        }
        let value = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0);
        let bits = digits.iter().fold(0u32, |bits, digit| bits << 4 | value(digit));
        Ok(Group { first: self.first, bits, digits: digits.len(), at })
    }
}

impl Iterator for Groups<'_> {
    type Item = Result<Group, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.rest.take()?;
        let group = self.group(text);
        if let Ok(Group { at, .. }) = group {
            // A comma precedes a group, but not eight digits of a longer one.
            let end = if self.unlimited { Some(at) } else { at.checked_sub(1) };
            self.rest =
                end.and_then(|end| text.get(..end)).filter(|rest| !(self.unlimited && rest.is_empty()));
            self.first = self.first.saturating_add(32);
        }
        Some(group)
    }
}

/// Writes groups of 32 bits, the most significant first.
///
/// # Errors
/// Those of the writer.
pub fn write(f: &mut dyn fmt::Write, groups: impl Iterator<Item = u32>) -> fmt::Result {
    let mut comma = "";
    for bits in groups {
        write!(f, "{comma}{bits:08x}")?;
        comma = ",";
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn numbers(text: &str, width: Width) -> Result<Vec<u64>, (usize, String)> {
        let mut found = Vec::new();
        for group in groups(text.as_bytes(), width) {
            found.extend(group.map_err(|fault| (fault.at, fault.expected.to_string()))?.numbers());
        }
        Ok(found)
    }

    fn check(text: &str, expected: &[u64]) {
        for width in [Width::Kernel, Width::Unlimited] {
            assert_eq!(numbers(text, width), Ok(expected.to_vec()), "{text}");
        }
    }

    fn refuse(text: &str, at: usize, expected: &str) {
        assert_eq!(numbers(text, Width::Kernel), Err((at, expected.to_owned())), "{text}");
    }

    #[test]
    fn groups_are_read_from_the_right() {
        check("ff", &[0, 1, 2, 3, 4, 5, 6, 7]);
        check("00000001,00000000", &[32]);
        check("1,0", &[32]);
        check("0000,0000003f", &[0, 1, 2, 3, 4, 5]);
        check("", &[]);
    }

    #[test]
    fn a_long_group_is_one_number_where_that_is_asked_for() {
        assert_eq!(numbers("8000000000000001", Width::Unlimited), Ok(vec![0, 63]));
        assert_eq!(numbers("100000000", Width::Unlimited), Ok(vec![32]));
        assert_eq!(numbers("123456789,0", Width::Unlimited), Err((0, Expected::Group.to_string())));
    }

    #[test]
    fn a_fault_names_the_place() {
        refuse("ff,0g", 4, "a hexadecimal digit or \",\"");
        refuse("1,", 2, "one to eight hexadecimal digits");
        refuse(",1", 0, "one to eight hexadecimal digits");
        refuse("123456789", 0, "one to eight hexadecimal digits");
        refuse("+1", 0, "a hexadecimal digit or \",\"");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(words in proptest::collection::vec(any::<u32>(), 1..6)) {
            let mut text = String::new();
            write(&mut text, words.iter().rev().copied()).expect("a text takes all");
            let found: Result<Vec<u32>, _> =
                groups(text.as_bytes(), Width::Kernel).map(|group| group.map(|group| group.bits)).collect();
            prop_assert_eq!(found.as_ref(), Ok(&words));
            let joined = text.replace(',', "");
            let found: Result<Vec<u32>, _> =
                groups(joined.as_bytes(), Width::Unlimited).map(|group| group.map(|group| group.bits)).collect();
            prop_assert_eq!(found, Ok(words));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            for width in [Width::Kernel, Width::Unlimited] {
                groups(&bytes, width).for_each(drop);
            }
        }

        #[test]
        fn nearly_masks_are_read_or_refused(text in "[0-9a-gx,]{0,40}") {
            let _ = numbers(&text, Width::Unlimited);
        }
    }
}
