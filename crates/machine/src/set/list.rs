//! Lists: `0-3,8`.
//!
//! # Source
//! The kernel's `bitmap_parselist` and `bitmap_print_list`: comma separated numbers and ranges,
//! and groups `first-last:used/size` ("of every `size` ids the first `used`"), Linux 3.7. sysfs
//! never prints groups, but cpuset files, kernel parameters and people do use them.

use std::fmt;
use std::str::FromStr;

use super::IdSet;
use crate::id::Id;
use crate::printable::quote;

/// Why a text is not a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListError {
    /// The text that was read.
    pub text: String,
    /// What its members are: `node`, `CPU`.
    pub word: &'static str,
    /// Where it stops being a list, counted in characters from 1.
    pub column: usize,
    /// What would have been right there.
    pub expected: String,
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is not a {} list: expected {} (column {})",
            quote(&self.text),
            self.word,
            self.expected,
            self.column
        )
    }
}

impl std::error::Error for ListError {}

struct Reader<'a, I> {
    text: &'a str,
    at: usize,
    kind: std::marker::PhantomData<I>,
}

impl<I: Id> Reader<'_, I> {
    fn fail<T>(&self, at: usize, expected: impl Into<String>) -> Result<T, ListError> {
        Err(ListError {
            text: self.text.to_owned(),
            word: I::WORD,
            column: self.text[..at].chars().count() + 1,
            expected: expected.into(),
        })
    }

    fn take(&mut self, byte: u8) -> bool {
        let hit = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(hit);
        hit
    }

    fn number(&mut self, after: &str) -> Result<u32, ListError> {
        let start = self.at;
        while self.text.as_bytes().get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if start == self.at {
            return self.fail(start, format!("a number{after}"));
        }
        match self.text[start..self.at].parse() {
            Ok(number) if number < I::LIMIT => Ok(number),
            _ => self.fail(start, format!("a number below {}", I::LIMIT)),
        }
    }

    fn item(&mut self, set: &mut IdSet<I>, after: &str) -> Result<(), ListError> {
        let start = self.at;
        let first = self.number(after)?;
        if !self.take(b'-') {
            set.insert(I::new(first));
            return Ok(());
        }
        let last = self.number(" after \"-\"")?;
        if last < first {
            return self.fail(start, format!("the smaller number first, {last}-{first}"));
        }
        if !self.take(b':') {
            set.insert_range(I::new(first), I::new(last));
            return Ok(());
        }
        let used_at = self.at;
        let used = self.number(" after \":\"")?;
        if !self.take(b'/') {
            return self.fail(self.at, "\"/\" and the size of a group");
        }
        let size = self.number(" after \"/\"")?;
        if size == 0 || used > size {
            return self.fail(used_at, "a group as used/size with used not above size");
        }
        for number in first..=last {
            if (number - first) % size < used {
                set.insert(I::new(number));
            }
        }
        Ok(())
    }
}

impl<I: Id> FromStr for IdSet<I> {
    type Err = ListError;

    /// Reads a list. White space around it is ignored; an empty text is the empty set.
    fn from_str(text: &str) -> Result<Self, ListError> {
        let text = text.trim_matches([' ', '\t', '\n']);
        let mut set = Self::new();
        if text.is_empty() {
            return Ok(set);
        }
        let mut reader = Reader { text, at: 0, kind: std::marker::PhantomData };
        reader.item(&mut set, "")?;
        while reader.at < text.len() {
            if !reader.take(b',') {
                return reader.fail(reader.at, "\",\", \"-\" or the end");
            }
            reader.item(&mut set, " after \",\"")?;
        }
        Ok(set)
    }
}

impl<I: Id> fmt::Display for IdSet<I> {
    /// Writes the set as the kernel does: `0-3,8`; the empty set is the empty text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for (first, last) in self.ranges() {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(&first.number().to_string());
            if last != first {
                text.push('-');
                text.push_str(&last.number().to_string());
            }
        }
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use crate::set::tests::any_set;
    use crate::{CpuId, CpuSet, NodeId, NodeSet};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn check(text: &str, expected: &[u32]) {
        let set: CpuSet = text.parse().unwrap();
        assert_eq!(set.iter().map(CpuId::number).collect::<Vec<_>>(), expected, "{text}");
    }

    fn refuse(text: &str, expected: &str) {
        assert_eq!(text.parse::<NodeSet>().unwrap_err().to_string(), expected);
    }

    #[test]
    fn numbers_ranges_and_groups_are_read() {
        check("", &[]);
        check("\n", &[]);
        check("0", &[0]);
        check("0-3,8\n", &[0, 1, 2, 3, 8]);
        check("8,0-1,1", &[0, 1, 8]);
        check("0-9:2/4", &[0, 1, 4, 5, 8, 9]);
    }

    #[test]
    fn an_error_names_the_column_and_what_was_expected() {
        refuse("0-x", "\"0-x\" is not a node list: expected a number after \"-\" (column 3)");
        refuse("x", "\"x\" is not a node list: expected a number (column 1)");
        refuse("0,,1", "\"0,,1\" is not a node list: expected a number after \",\" (column 3)");
        refuse("3-1", "\"3-1\" is not a node list: expected the smaller number first, 1-3 (column 1)");
        refuse("0 1", "\"0 1\" is not a node list: expected \",\", \"-\" or the end (column 2)");
        refuse("0-7:2", "\"0-7:2\" is not a node list: expected \"/\" and the size of a group (column 6)");
        refuse(
            "0-7:4/2",
            "\"0-7:4/2\" is not a node list: expected a group as used/size with used not above size (column 5)",
        );
    }

    #[test]
    fn a_number_that_would_exhaust_memory_is_refused() {
        refuse(
            "0-4294967295",
            "\"0-4294967295\" is not a node list: expected a number below 16384 (column 3)",
        );
        refuse(
            "99999999999999999999",
            "\"99999999999999999999\" is not a node list: expected a number below 16384 (column 1)",
        );
    }

    #[test]
    fn control_characters_in_an_error_are_escaped() {
        refuse("\u{1b}[2J", "\"\\x1b[2J\" is not a node list: expected a number (column 1)");
    }

    proptest! {
        #[test]
        fn parse_then_print_is_identity(set in any_set::<NodeId>()) {
            prop_assert_eq!(set.to_string().parse::<NodeSet>().unwrap(), set);
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = text.parse::<CpuSet>();
        }

        #[test]
        fn nearly_lists_are_read_or_refused_without_a_panic(text in "[0-9,:/-]{0,24}") {
            if let Ok(set) = text.parse::<NodeSet>() {
                prop_assert_eq!(set.to_string().parse::<NodeSet>().unwrap(), set);
            }
        }
    }
}
