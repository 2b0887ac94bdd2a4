//! A command line in one text, as words: what an option holds that names a whole program.

use nodewise_machine::printable::quote;

/// Splits a text as a shell does: at blanks, but for what is between quotes or behind a backslash.
/// Nothing else of a shell is meant, and what looks like it is refused.
///
/// # Errors
/// What is wrong with the text, and what would be right.
pub fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => word.get_or_insert_default().push_str(&quoted(&mut chars, '\'', text)?),
            '"' => word.get_or_insert_default().push_str(&quoted(&mut chars, '"', text)?),
            '\\' => match chars.next() {
                Some(next) => word.get_or_insert_default().push(next),
                None => {
                    return Err(format!("{} ends in a backslash: expected something behind it", quote(text)));
                }
            },
            '|' | '&' | ';' | '<' | '>' | '$' | '`' => {
                return Err(format!(
                    "{} needs a shell, for {c:?}: expected a program with its arguments, as in \"sh -c '...'\"",
                    quote(text)
                ));
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if words.is_empty() {
        Err("there is not a program: expected one with its arguments".to_owned())
    } else {
        Ok(words)
    }
}

/// Reads the text up to the closing quote. Between double quotes a backslash takes the next character
/// as it is, as it does outside.
fn quoted(chars: &mut std::str::Chars<'_>, close: char, text: &str) -> Result<String, String> {
    let mut word = String::new();
    while let Some(c) = chars.next() {
        match c {
            c if c == close => return Ok(word),
            '\\' if close == '"' => word.extend(chars.next()),
            c => word.push(c),
        }
    }
    Err(format!("a quote is not closed in {}: expected {close} at its end", quote(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    fn check(text: &str, expected: Result<&[&str], &str>) {
        let found = split(text);
        let found = found.as_ref().map(|words| words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(found.as_deref().map_err(|error| error.as_str()), expected);
    }

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        check("postgres -D /var/db", Ok(&["postgres", "-D", "/var/db"]));
        check("  sh -c 'a | b'  ", Ok(&["sh", "-c", "a | b"]));
        check("a\"b c\"d '' e\\ f", Ok(&["ab cd", "", "e f"]));
        check("\"a \\\" b\"", Ok(&["a \" b"]));
    }

    #[test]
    fn what_needs_a_shell_or_is_not_closed_is_refused() {
        check("", Err("there is not a program: expected one with its arguments"));
        check("a 'b", Err("a quote is not closed in \"a 'b\": expected ' at its end"));
        check("a\\", Err("\"a\\\" ends in a backslash: expected something behind it"));
        check(
            "a | b",
            Err(
                "\"a | b\" needs a shell, for '|': expected a program with its arguments, as in \"sh -c '...'\"",
            ),
        );
    }

    proptest! {
        #[test]
        fn any_text_is_split_or_refused(text in any::<String>()) {
            let _ = split(&text);
        }

        #[test]
        fn words_between_quotes_come_back(words in prop::collection::vec("[^']{0,12}", 1..5)) {
            let text: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            prop_assert_eq!(split(&text.join(" ")), Ok(words));
        }
    }
}
