//! The one place that makes foreign text fit for a terminal.
//!
//! File names, process names, PCI strings and everything else that is read can hold escape
//! sequences; several monitors of this field were caught printing them raw. Every string that did
//! not come from nodewise itself passes through [`printable`] before a person sees it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

/// Longest quotation in a message, in characters; the rest is cut and marked.
const QUOTE_LIMIT: usize = 80;

/// Whether a character can move the cursor, recolour, reorder or hide text.
///
/// C0, DEL and C1 drive terminals; the bidirectional controls and the line separators of Unicode
/// can make one line look like another.
fn is_hazard(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Writes hazardous characters as escapes (`\x1b`, `\u{202e}`) and leaves the rest alone.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hazard) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            c if is_hazard(c) && u32::from(c) < 0x100 => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if is_hazard(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Quotes foreign text for a message: escaped, in double quotes, cut after 80 characters.
pub fn quote(text: &str) -> String {
    let mut cut: String = text.chars().take(QUOTE_LIMIT).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    format!("\"{}\"", printable(&cut))
}

/// A name for a message: escaped, and in quotes only where no one would see it or its end without.
pub fn visible(name: &str) -> Cow<'_, str> {
    if name.is_empty() || name.starts_with(' ') || name.ends_with(' ') {
        Cow::Owned(quote(name))
    } else {
        printable(name)
    }
}

/// A JSON text in which nothing drives a terminal: hazards above ASCII become escapes, which read
/// back as what they were. Those inside ASCII are escaped in any JSON.
pub fn json(text: &str) -> Cow<'_, str> {
    let hazard = |c: char| c >= '\x7f' && is_hazard(c);
    if !text.contains(hazard) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            // All of them lie in the first plane, so one escape is enough.
            c if hazard(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The system's words for an `errno`, as they are in a sentence: `permission denied`.
pub fn errno_words(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    let words = text.strip_suffix(&format!(" (os error {errno})")).unwrap_or(&text);
    // "Operation not permitted", but "RPC struct is bad" and "I/O error".
    let mut chars = words.chars();
    match (chars.next(), chars.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => first.to_lowercase().chain(chars).collect(),
        _ => words.to_owned(),
    }
}

/// Returns the message of an error of the standard library, in the system's words where it has a number.
pub fn io_words(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), errno_words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Strategy, any, proptest};

    #[test]
    fn an_error_of_the_system_is_a_part_of_a_sentence() {
        for (errno, expected) in
            [(30, "read-only file system"), (28, "no space left on device"), (73, "RFS specific error")]
        {
            assert_eq!(errno_words(errno), expected);
            assert_eq!(io_words(&io::Error::from_raw_os_error(errno)), expected);
        }
        assert_eq!(io_words(&io::Error::other("cut short")), "cut short");
    }

    #[test]
    fn escape_sequences_become_visible() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a\\x1b[2Jb");
        assert_eq!(printable("x\u{9b}1m"), "x\\x9b1m");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(printable("tab\tline\n"), "tab\\tline\\n");
    }

    #[test]
    fn ordinary_text_is_borrowed() {
        assert!(matches!(printable("mlx5_0 – größer"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_long_quotation_is_cut() {
        let quoted = quote(&"x".repeat(500));
        assert_eq!(quoted.chars().count(), QUOTE_LIMIT + 3);
        assert!(quoted.ends_with("…\""));
    }

    #[test]
    fn json_keeps_its_meaning_and_loses_its_hazards() {
        let text = "{\n  \"a\": \"\u{9b}2J \u{202e}\u{7f} µ\"\n}\n";
        assert_eq!(json(text), "{\n  \"a\": \"\\u009b2J \\u202e\\u007f µ\"\n}\n");
    }

    #[test]
    fn names_that_cannot_be_seen_are_quoted() {
        for (name, expected) in [("a b", "a b"), ("", "\"\""), ("a ", "\"a \""), ("\u{1b}", "\\x1b")] {
            assert_eq!(visible(name), expected);
        }
    }

    proptest! {
        #[test]
        fn nothing_hazardous_survives(text in any::<Vec<char>>().prop_map(|c| c.into_iter().collect::<String>())) {
            assert!(!printable(&text).chars().any(is_hazard));
        }
    }
}
