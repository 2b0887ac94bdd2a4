//! Words of commands as a POSIX shell needs them.

use std::borrow::Cow;

use nodewise_machine::printable::printable;

/// Characters beside letters and digits that no shell changes inside a word.
const PLAIN: &str = "-_./=:,+@%";

/// A word, in quotes where a shell needs them. A NUL, which no word of a command can hold, is left out.
pub fn word(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || PLAIN.contains(c);
    if !text.is_empty() && !text.starts_with('=') && text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    shlex::try_quote(text).unwrap_or_else(|_| Cow::Owned(word(&text.replace('\0', "")).into_owned()))
}

/// Words as one command line, fit for a terminal.
pub fn shown(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let shown = |text: &str| word(&printable(text)).into_owned();
    words.into_iter().map(|text| shown(text.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        for (text, expected) in [
            ("./a-b", "./a-b"),
            ("--membind=0-3,5", "--membind=0-3,5"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", "\"it's\""),
            ("=x", "'=x'"),
            ("~", "'~'"),
            ("a\0b", "ab"),
        ] {
            assert_eq!(word(text), expected);
        }
        assert_eq!(shown(["a", "b c", "\u{1b}[2J"]), "a 'b c' \"\\\\x1b[2J\"");
    }

    proptest! {
        #[test]
        fn a_shell_reads_back_what_was_quoted(words in prop::collection::vec("[^\0]{0,12}", 1..4)) {
            let script = format!("printf '%s\\0' {}", words.iter().map(|text| word(text)).collect::<Vec<_>>().join(" "));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            let read = String::from_utf8(output.stdout).unwrap();
            prop_assert_eq!(read.split_terminator('\0').collect::<Vec<_>>(), words);
        }
    }
}
