//! Files that show a choice: `always [madvise] never`.
//!
//! # Source
//! `/sys/kernel/mm/transparent_hugepage/*` and other switches of the kernel.

use super::ParseError;

/// Words to choose from, and the chosen one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub chosen: String,
    /// Every word, the chosen one included, in the kernel's order.
    pub words: Vec<String>,
}

/// Reads a line of words, exactly one of them in brackets.
///
/// # Errors
/// No bracketed word, or several; a word that is not printable ASCII.
pub fn parse(text: &str) -> Result<Choice, ParseError> {
    let fail = |expected: &str| Err(ParseError::new(1, expected, text.trim()));
    let mut chosen = None;
    let mut words = Vec::new();
    for word in text.split_ascii_whitespace().take(64) {
        let bare = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
        let name = bare.unwrap_or(word);
        if name.is_empty()
            || !name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'[' | b']'))
        {
            return fail("words of printable characters");
        }
        if bare.is_some() && chosen.replace(name.to_owned()).is_some() {
            return fail("one word in brackets only");
        }
        words.push(name.to_owned());
    }
    match chosen {
        Some(chosen) => Ok(Choice { chosen, words }),
        None => fail("one word in brackets, as in \"always [madvise] never\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    #[test]
    fn the_chosen_word_stands_in_brackets() {
        let choice = parse("always defer defer+madvise [madvise] never\n").unwrap();
        assert_eq!(choice.chosen, "madvise");
        assert_eq!(choice.words, ["always", "defer", "defer+madvise", "madvise", "never"]);
    }

    #[test]
    fn no_choice_and_two_choices_are_refused() {
        for text in ["", "always never", "[a] [b]", "[]", "[a", "[a]\u{1b}[2J"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(
            parse("never\n").unwrap_err().sentence(),
            "expected one word in brackets, as in \"always [madvise] never\", found \"never\""
        );
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(words in prop::collection::vec("[a-z+]{1,10}", 1..8), at in any::<prop::sample::Index>()) {
            let at = at.index(words.len());
            let text: Vec<String> = words.iter().enumerate()
                .map(|(place, word)| if place == at { format!("[{word}]") } else { word.clone() })
                .collect();
            prop_assert_eq!(parse(&text.join(" ")), Ok(Choice { chosen: words[at].clone(), words }));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = parse(&text);
        }
    }
}
