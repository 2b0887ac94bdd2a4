//! Reads TOML that a user wrote: says where something is wrong, and what was expected.

use nodewise_machine::printable::printable;
use serde::de::DeserializeOwned;

/// A fault in a TOML file, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct TomlError {
    /// The line of the file, from 1.
    pub line: usize,
    /// The character in that line, from 1.
    pub column: usize,
    /// The fault and what would be right; fit to be shown.
    pub what: String,
}

/// The text of a TOML file, with the ends of its lines: places are searched for, not counted each time.
#[derive(Debug)]
pub struct TomlText<'a> {
    text: &'a str,
    ends: Vec<usize>,
}

impl<'a> TomlText<'a> {
    /// The text of a file.
    pub fn new(text: &'a str) -> Self {
        Self { text, ends: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    /// Reads it as a value.
    ///
    /// # Errors
    /// The first fault.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, TomlError> {
        toml::from_str(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.fault(at, &error.message().trim().replace('\n', ": "))
        })
    }

    /// The line in which a byte is; the first is 1.
    pub fn line(&self, offset: usize) -> usize {
        self.ends.partition_point(|end| *end < offset) + 1
    }

    /// A fault at a byte. What it quotes from the file, such as the name of an unknown field, may hold anything.
    pub fn fault(&self, offset: usize, what: &str) -> TomlError {
        let line = self.line(offset);
        let start = line.checked_sub(2).map_or(0, |before| self.ends[before] + 1);
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count()) + 1;
        TomlError { line, column, what: printable(what).into_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, proptest};
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[expect(dead_code, reason = "only what is wrong is looked at")]
        name: Option<String>,
    }

    #[test]
    fn a_fault_is_named_with_its_place_and_fit_for_a_terminal() {
        let check = |text: &str, expected: &str| {
            let error = TomlText::new(text).read::<File>().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            assert!(!error.contains(char::is_control), "{error:?}");
        };
        check("name = 1", "line 1, column 8: invalid type: integer `1`, expected a string");
        check("\n\n\"\\u001b[31mx\" = 1\n", "line 3, column 1: unknown field `\\x1b[31mx`");
        check("name = \"x\"\n=", "line 2, column 1: ");
        check("# \u{e9}\n\"\u{e9}\u{e9}\" = 1", "line 2, column 1: unknown field");
        check("name = \"\u{e9}\u{e9}\" ]", "line 1, column 13: ");
    }

    proptest! {
        #[test]
        fn any_byte_of_any_text_has_a_place(text in "(?s).{0,40}", at in 0_usize..200) {
            let fault = TomlText::new(&text).fault(at, "x");
            prop_assert!(fault.line <= text.matches('\n').count() + 1);
            prop_assert!(fault.column <= text.chars().count() + 1);
        }
    }
}
