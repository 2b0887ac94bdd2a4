//! A line of a journal: a JSON object that begins with the checksum of its rest.
//!
//! ```text
//! {"check":"8c736521d9f3bb6a","run":{"block":1,...}}
//! ```
//!
//! The checksum, FNV-1a with 64 bits, finds lines that were cut or changed by accident. It is not a seal
//! against forgery.

use nodewise_machine::fnv::fnv_1a;

/// The beginning of every line.
const START: &str = "{\"check\":\"";

/// Digits of the checksum.
const DIGITS: usize = 16;

/// A JSON object as a line, without its end.
///
/// # Panics
/// For a text that does not begin as an object does.
pub(super) fn seal(object: &str) -> String {
    let rest = object.strip_prefix('{').expect("an entry is an object");
    format!("{START}{:016x}\",{rest}", fnv_1a(rest.as_bytes()))
}

/// The JSON object in a line, or what was expected of the line.
pub(super) fn unseal(line: &str) -> Result<String, &'static str> {
    let expected = "expected {\"check\":\" with a checksum of 16 digits behind it";
    let rest = line.strip_prefix(START).ok_or(expected)?;
    let (digits, rest) = rest.split_at_checked(DIGITS).ok_or(expected)?;
    let rest = rest.strip_prefix("\",").ok_or(expected)?;
    let plain = digits.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit));
    if !plain || u64::from_str_radix(digits, 16) != Ok(fnv_1a(rest.as_bytes())) {
        return Err("expected the checksum of the rest of the line: the line was changed or cut");
    }
    Ok(format!("{{{rest}"))
}

/// Whether a text that has no line end can be what is left of the first line of a journal.
pub(super) fn is_cut(text: &str) -> bool {
    text.starts_with(START) || START.starts_with(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn what_was_sealed_is_read_back(rest in any::<String>()) {
            let object = format!("{{{rest}");
            prop_assert_eq!(unseal(&seal(&object)), Ok(object));
        }

        #[test]
        fn a_line_with_one_byte_changed_or_missing_is_refused(
            rest in "[ -~]{1,40}", at in any::<usize>(), byte in b' '..b'~', cut in any::<bool>(),
        ) {
            let mut line = seal(&format!("{{{rest}")).into_bytes();
            let at = at % line.len();
            let before = line.clone();
            if cut { line.truncate(at) } else { line[at] = byte }
            let changed = String::from_utf8(line.clone()).expect("it is ASCII");
            prop_assert!(line == before || unseal(&changed).is_err(), "{}", changed);
        }

        #[test]
        fn any_line_is_read_or_refused(line in any::<String>()) {
            let _ = unseal(&line);
        }
    }
}
