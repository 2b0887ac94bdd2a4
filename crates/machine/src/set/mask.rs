//! Masks: `00000001,ffffffff`, most significant group first.
//!
//! # Source
//! The kernel's `%*pb` format: groups of 32 bits in hexadecimal, separated by commas; the first
//! group is as narrow as the highest possible id needs (`0000,0000003f` on a 48-CPU machine).

use std::fmt;

use super::IdSet;
use crate::id::Id;
use crate::printable::quote;

/// Why a text is not a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskError {
    /// The text that was read.
    pub text: String,
    /// What its members are: `node`, `CPU`.
    pub word: &'static str,
    /// Where it stops being a mask, counted in characters from 1.
    pub column: usize,
    /// What would have been right there.
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
            Err(MaskError {
                text: text.to_owned(),
                word: I::WORD,
                column: text[..at].chars().count() + 1,
                expected,
            })
        };
        let skipped = if text.starts_with("0x") { 2 } else { 0 };
        let mut set = Self::new();
        if text.is_empty() {
            return Ok(set);
        }
        let mut base: u64 = 0;
        let mut end = text.len();
        for group in text[skipped..].rsplit(',') {
            let start = end - group.len();
            if let Some(bad) = group.find(|c: char| !c.is_ascii_hexdigit()) {
                return fail(start + bad, "a hexadecimal digit or \",\"".to_owned());
            }
            let Ok(bits) = u32::from_str_radix(group, 16) else {
                return fail(start, "one to eight hexadecimal digits".to_owned());
            };
            if group.len() > 8 {
                return fail(start, "one to eight hexadecimal digits".to_owned());
            }
            for bit in (0..32).filter(|bit| bits >> bit & 1 == 1) {
                match u32::try_from(base + bit) {
                    Ok(number) if number < I::LIMIT => set.insert(I::new(number)),
                    _ => return fail(start, format!("bits below {}", I::LIMIT)),
                };
            }
            base += 32;
            end = start.saturating_sub(1);
        }
        Ok(set)
    }

    /// Writes the set as a mask of groups of 32 bits, at least one.
    pub fn to_mask(&self) -> String {
        let groups = self.last().map_or(1, |last| last.number() / 32 + 1);
        let mut text = String::new();
        for group in (0..groups).rev() {
            let word = self.words.get(group as usize / 2).copied().unwrap_or(0);
            let bits = (word >> (32 * (group % 2))) as u32;
            text.push_str(&format!("{bits:08x}"));
            if group > 0 {
                text.push(',');
            }
        }
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
