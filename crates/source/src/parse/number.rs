//! Files with one number or one switch.

use super::{ParseError, digits};

/// Reads a file that holds one number that is not negative.
///
/// # Errors
/// Anything but decimal digits, zeros in front (the kernel writes none), or a number that does not fit.
pub fn number<T: std::str::FromStr>(text: &str) -> Result<T, ParseError> {
    unpadded(text.trim(), "a number")
}

/// Reads a file that holds one number, where -1 means that the kernel does not know.
///
/// # Errors
/// Anything but decimal digits or `-1`, zeros in front, or a number that does not fit.
pub fn number_or_unknown<T: std::str::FromStr>(text: &str) -> Result<Option<T>, ParseError> {
    match text.trim() {
        "-1" => Ok(None),
        plain => unpadded(plain, "a number, or -1 for unknown").map(Some),
    }
}

fn unpadded<T: std::str::FromStr>(text: &str, expected: &'static str) -> Result<T, ParseError> {
    if text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseError::new(1, format!("{expected} without zeros in front"), text));
    }
    digits(text).ok_or_else(|| ParseError::new(1, expected, text))
}

/// Reads a hexadecimal number as PCI attributes are written: `0x8086`.
///
/// # Errors
/// Anything but `0x` and hexadecimal digits, or a number above 32 bits.
pub fn hexadecimal(text: &str) -> Result<u32, ParseError> {
    let digits = text.trim().strip_prefix("0x").unwrap_or_default();
    let value = hex_digits(digits).and_then(|value| u32::try_from(value).ok());
    value.ok_or_else(|| ParseError::new(1, "a hexadecimal number as in 0x8086", text.trim()))
}

/// Reads a hexadecimal number of this many digits, as the kernel pads it: `0x8086`, `0x020000`.
///
/// # Errors
/// Anything but `0x` and that many hexadecimal digits.
pub fn padded_hexadecimal(text: &str, digits: usize) -> Result<u32, ParseError> {
    let value = hexadecimal(text).ok().filter(|_| text.trim().len() == 2 + digits);
    value.ok_or_else(|| ParseError::new(1, format!("0x and {digits} hexadecimal digits"), text.trim()))
}

/// A number of hexadecimal digits only: no `0x`, no sign, no blank.
pub(crate) fn hex_digits(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if plain { u64::from_str_radix(text, 16).ok() } else { None }
}

/// Reads a switch: `true`, `1`, `Y` or `false`, `0`, `N`.
///
/// # Errors
/// Any other text.
pub fn switch(text: &str) -> Result<bool, ParseError> {
    match text.trim() {
        "true" | "1" | "Y" => Ok(true),
        "false" | "0" | "N" => Ok(false),
        other => Err(ParseError::new(1, "true or false", other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn numbers_are_read_with_their_line_feed() {
        assert_eq!(number::<u32>("4096\n"), Ok(4096));
        assert_eq!(number::<u32>("0\n"), Ok(0));
        assert_eq!(number_or_unknown::<u32>("-1\n"), Ok(None));
        assert_eq!(number_or_unknown::<u32>("8442\n"), Ok(Some(8442)));
        assert_eq!(hexadecimal("0x020000\n"), Ok(0x2_0000));
        assert_eq!(switch("true\n"), Ok(true));
        assert_eq!(switch("0\n"), Ok(false));
    }

    #[test]
    fn a_padded_number_that_lost_a_digit_is_refused() {
        assert_eq!(padded_hexadecimal("0x0107\n", 4), Ok(0x107));
        assert_eq!(padded_hexadecimal("0x020000\n", 6), Ok(0x2_0000));
        for text in ["0x107\n", "0x01017\n", "107\n", "0x\n", ""] {
            assert!(padded_hexadecimal(text, 4).is_err(), "{text}");
        }
    }

    #[test]
    fn hexadecimal_digits_stand_alone() {
        assert_eq!(hex_digits("00fF"), Some(0xff));
        assert_eq!(hex_digits("ffffffffffffffff"), Some(u64::MAX));
        for text in ["", "+5", "-5", "0x5", " 5", "g", "10000000000000000"] {
            assert_eq!(hex_digits(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "+1", "-2", "1 2", "0x1", "4294967296", "1\0", "08160", "00"] {
            assert!(number::<u32>(text).is_err(), "{text}");
            assert!(number_or_unknown::<u32>(text).is_err(), "{text}");
        }
        for text in ["", "0x", "8086", "0x+1", "0x100000000"] {
            assert!(hexadecimal(text).is_err(), "{text}");
        }
        assert_eq!(switch("on").unwrap_err().sentence(), "expected true or false, found \"on\"");
        assert_eq!(number::<u8>("").unwrap_err().sentence(), "expected a number, found nothing");
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(value in any::<u64>(), word in any::<u32>()) {
            prop_assert_eq!(number(&format!("{value}\n")), Ok(value));
            prop_assert_eq!(hexadecimal(&format!("0x{word:06x}\n")), Ok(word));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = (number::<u64>(&text), number_or_unknown::<u16>(&text), hexadecimal(&text), switch(&text));
        }
    }
}
