//! Reading TOML that a user wrote: what is wrong is said with its line.

use nodewise_machine::printable::printable;
use serde::de::DeserializeOwned;

/// Reads a file of TOML.
///
/// # Errors
/// What is wrong and in which line, as a sentence.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| Lines::of(text).at(span.start));
        // What the file says, such as the name of a field that is not known, comes as it is.
        format!("line {line}: {}", printable(&error.message().trim().replace('\n', ": ")))
    })
}

/// Where the lines of a text end: a search for every place in it, and not a walk through all of it.
#[derive(Debug)]
pub struct Lines(Vec<usize>);

impl Lines {
    /// Those of a text.
    pub fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at).collect())
    }

    /// The line in which a byte is; the first is 1.
    pub fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|end| *end < offset) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[expect(dead_code, reason = "only what is wrong is looked at")]
        name: Option<String>,
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_fit_for_a_terminal() {
        let check = |text: &str, expected: &str| {
            let error = read::<File>(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
            assert!(!error.contains(char::is_control), "{error:?}");
        };
        check("name = 1", "line 1: invalid type: integer `1`, expected a string");
        check("\n\n\"\\u001b[31mx\" = 1\n", "line 3: unknown field `\\x1b[31mx`");
        check("name = \"x\"\n=", "line 2: ");
    }
}
