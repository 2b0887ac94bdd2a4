//! Masks: `00000001,ffffffff`, most significant group first.
//!
//! The form is read and written by [`nodewise_notation::mask`].

use std::fmt;

use nodewise_notation::mask::{self, Expected, Fault, Width};

use super::{IdSet, column};
use crate::id::Id;
use crate::printable::quote;

/// Why a text is not a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskError {
    /// The text that was read.
    pub text: String,
    /// The kind of its members: `node`, `CPU`.
    pub word: &'static str,
    /// Where it stops being a mask, counted in characters from 1.
    pub column: usize,
    pub expected: String,
}

impl fmt::Display for MaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is not a {} mask: expected {} (column {})",
            quote(&self.text),
            self.word,
            self.expected,
            self.column
        )
    }
}

impl std::error::Error for MaskError {}

impl<I: Id> IdSet<I> {
    /// Reads a mask. White space around it and a leading `0x` are ignored; an empty text is the
    /// empty set.
    ///
    /// # Errors
    /// A character that is not a hexadecimal digit, an empty group or one of more than eight
    /// digits, or an id at or above the limit of its kind.
    pub fn from_mask(text: &str) -> Result<Self, MaskError> {
        let text = text.trim_matches([' ', '\t', '\n']);
        let fail = |at: usize, expected: String| {
            Err(MaskError { text: text.to_owned(), word: I::WORD, column: column(text, at), expected })
        };
        let skipped = if text.starts_with("0x") { 2 } else { 0 };
        if skipped == text.len() && skipped > 0 {
            return fail(skipped, Expected::Group.to_string());
        }
        let mut set = Self::new();
        for group in mask::groups(&text.as_bytes()[skipped..], Width::Kernel) {
            let group = match group {
                Ok(group) => group,
                Err(Fault { at, expected }) => return fail(skipped + at, expected.to_string()),
            };
            for number in group.numbers() {
                match u32::try_from(number) {
                    Ok(number) if number < I::LIMIT => set.insert(I::new(number)),
                    _ => return fail(skipped + group.at, format!("bits below {}", I::LIMIT)),
                };
            }
        }
        Ok(set)
    }

    /// Writes the set as a mask of groups of 32 bits, at least one.
    pub fn to_mask(&self) -> String {
        let groups = self.last().map_or(1, |last| last.number() / 32 + 1);
        let bits = |group: u32| {
            let word = self.words.get(group as usize / 2).copied().unwrap_or(0);
            (word >> (32 * (group % 2))) as u32
        };
        let mut text = String::new();
        mask::write(&mut text, (0..groups).rev().map(bits)).expect("a String takes all");
        text
    }
}

#[cfg(test)]
mod tests {
    use crate::set::tests::any_set;
    use crate::{CpuId, CpuSet};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn check(text: &str, list: &str) {
        assert_eq!(CpuSet::from_mask(text).unwrap().to_string(), list, "{text}");
    }

    fn refuse(text: &str, expected: &str) {
        assert_eq!(CpuSet::from_mask(text).unwrap_err().to_string(), expected);
    }

    #[test]
    fn groups_are_read_from_the_right() {
        check("ff", "0-7");
        check("00000001,00000000\n", "32");
        check("0000,0000003f", "0-5");
        check("0x3", "0-1");
        check("", "");
        check("00000000,00000000,00000000,00000000,00000000,000aaaa0", "5,7,9,11,13,15,17,19");
    }

    #[test]
    fn an_error_names_the_column() {
        refuse("ff,0g", "\"ff,0g\" is not a CPU mask: expected a hexadecimal digit or \",\" (column 5)");
        refuse("1,", "\"1,\" is not a CPU mask: expected one to eight hexadecimal digits (column 3)");
        refuse(
            "123456789",
            "\"123456789\" is not a CPU mask: expected one to eight hexadecimal digits (column 1)",
        );
        refuse("0x", "\"0x\" is not a CPU mask: expected one to eight hexadecimal digits (column 3)");
        refuse("0x1,", "\"0x1,\" is not a CPU mask: expected one to eight hexadecimal digits (column 5)");
        refuse("+1", "\"+1\" is not a CPU mask: expected a hexadecimal digit or \",\" (column 1)");
    }

    #[test]
    fn a_mask_wider_than_any_machine_is_refused() {
        let wide = format!("1{}", ",00000000".repeat(8192));
        assert!(CpuSet::from_mask(&wide).unwrap_err().to_string().contains("expected bits below 262144"));
    }

    proptest! {
        #[test]
        fn parse_then_print_is_identity(set in any_set::<CpuId>()) {
            prop_assert_eq!(CpuSet::from_mask(&set.to_mask()).unwrap(), set);
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = CpuSet::from_mask(&text);
        }

        #[test]
        fn nearly_masks_are_read_or_refused_without_a_panic(text in "[0-9a-gx,]{0,40}") {
            let _ = CpuSet::from_mask(&text);
        }
    }
}
