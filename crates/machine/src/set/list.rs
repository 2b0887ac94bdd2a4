//! Lists: `0-3,8`.
//!
//! The form is read and written by [`nodewise_notation::list`].

use std::fmt;
use std::str::FromStr;

use nodewise_notation::list::{self, Fault};

use super::{IdSet, column};
use crate::id::Id;
use crate::printable::quote;

/// Why a text is not a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListError {
    /// The text that was read.
    pub text: String,
    /// The kind of its members: `node`, `CPU`.
    pub word: &'static str,
    /// Where it stops being a list, counted in characters from 1.
    pub column: usize,
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

impl<I: Id> FromStr for IdSet<I> {
    type Err = ListError;

    /// Reads a list. White space around it is ignored; an empty text is the empty set.
    fn from_str(text: &str) -> Result<Self, ListError> {
        let text = text.trim_matches([' ', '\t', '\n']);
        let mut set = Self::new();
        for span in list::spans(text.as_bytes(), I::LIMIT.into()) {
            let span = span.map_err(|Fault { at, expected }| ListError {
                text: text.to_owned(),
                word: I::WORD,
                column: column(text, at),
                expected: expected.to_string(),
            })?;
            // All are below the limit, which has 32 bits.
            let id = |number: u64| I::new(number as u32);
            match span.group {
                None => set.insert_range(id(span.first), id(span.last)),
                Some(_) => set.extend(span.numbers(I::LIMIT.into()).map(id)),
            }
        }
        Ok(set)
    }
}

impl<I: Id> fmt::Display for IdSet<I> {
    /// Writes the set as the kernel does: `0-3,8`; the empty set is the empty text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        let number = |id: I| u64::from(id.number());
        list::write(&mut text, self.ranges().map(|(first, last)| (number(first), number(last))))?;
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
