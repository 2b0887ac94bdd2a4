//! A line as it was typed, up to the cursor, in words.

/// Quotes that may still be open at the cursor, and a backslash that waits for its character.
const ENDS: [&str; 4] = ["", "'", "\"", " "];

/// The words of a line. The last one is being typed: it is empty behind a blank.
pub fn words(line: &str) -> Vec<String> {
    // A character at the cursor keeps the word that is being typed, also where it is empty.
    let marked = format!("{line}{MARK}");
    let ended = ENDS.iter().find_map(|end| shlex::split(&format!("{marked}{end}")));
    let mut words = ended.unwrap_or_default();
    if let Some(last) = words.last_mut() {
        *last = last.replace(MARK, "");
    }
    words
}

/// A character that is not in lines that people type.
const MARK: char = '\u{1}';

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::words;

    #[test]
    fn the_last_word_is_the_one_being_typed() {
        assert_eq!(words("nodewise"), ["nodewise"]);
        assert_eq!(words("nodewise "), ["nodewise", ""]);
        assert_eq!(words("nodewise show --ma"), ["nodewise", "show", "--ma"]);
        assert_eq!(words("nodewise show --machine \"2x(8c "), ["nodewise", "show", "--machine", "2x(8c "]);
        assert_eq!(words("nodewise stat 'a b' c"), ["nodewise", "stat", "a b", "c"]);
        assert_eq!(words("nodewise stat a\\ b"), ["nodewise", "stat", "a b"]);
        assert_eq!(words(""), [""]);
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_a_panic(line in any::<String>()) {
            let _ = words(&line);
        }
    }
}
