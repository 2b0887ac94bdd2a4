//! Reading TOML that a user wrote: what is wrong is said with its line.

use nodewise_machine::printable::printable;
use serde::de::DeserializeOwned;

/// Reads a file of TOML.
///
/// # Errors
/// What is wrong and in which line, as a sentence.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        // What the file says, such as the name of a field that is not known, comes as it is.
        format!("line {line}: {}", printable(&error.message().trim().replace('\n', ": ")))
    })
}

/// The line in which a byte is; the first is 1.
pub fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
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
