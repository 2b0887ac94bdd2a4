//! Numbers as the C library reads them: the originals hand every number to `strtoul(3)`.

/// A number at the beginning of a text, and what follows it. `None` where there is no digit.
///
/// White space and a sign may stand in front; `0x` begins hexadecimal and `0` octal digits when the
/// base is 0; a negative number wraps around, one that is too large is the largest.
///
/// # Source
/// `strtoul(3)` with 64 bits; base 0, 8 or 10.
pub fn leading(text: &str, base: u32) -> Option<(u64, &str)> {
    let (value, negative, rest) = digits(text, base)?;
    let signed = |value: u64| if negative { value.wrapping_neg() } else { value };
    Some((value.map_or(u64::MAX, signed), rest))
}

/// Whether a text begins with a number that is too large: `ERANGE` in C.
pub fn overflows(text: &str) -> bool {
    digits(text, 0).is_some_and(|(value, ..)| value.is_none())
}

/// The digits at the beginning of a text as a number, `None` for one that is too large; whether a hyphen stands
/// before them; and what follows.
fn digits(text: &str, base: u32) -> Option<(Option<u64>, bool, &str)> {
    let unpadded = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let (negative, unsigned) = match unpadded.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, unpadded.strip_prefix('+').unwrap_or(unpadded)),
    };
    let hexadecimal = unsigned
        .strip_prefix("0x")
        .or_else(|| unsigned.strip_prefix("0X"))
        .filter(|rest| base == 0 && rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (digits, radix) = match hexadecimal {
        Some(rest) => (rest, 16),
        None if base == 0 && unsigned.starts_with('0') => (unsigned, 8),
        None => (unsigned, if base == 0 { 10 } else { base }),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    Some((u64::from_str_radix(&digits[..end], radix).ok(), negative, &digits[end..]))
}

/// A size: a number and perhaps `k`, `m` or `g` of either case, for 1,024 and its powers. What else
/// follows the number is passed over, and a text without a number is 0.
///
/// # Units
/// Bytes.
pub fn size(text: &str) -> u64 {
    let Some((number, rest)) = leading(text, 0) else { return 0 };
    let shift = match rest.chars().next().map(|unit| unit.to_ascii_lowercase()) {
        Some('g') => 30,
        Some('m') => 20,
        Some('k') => 10,
        _ => 0,
    };
    number.wrapping_shl(shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn check(text: &str, expected: Option<(u64, &str)>) {
        assert_eq!(leading(text, 0), expected, "{text:?}");
    }

    #[test]
    fn the_base_is_in_the_prefix() {
        check("1", Some((1, "")));
        check("0x1f,", Some((31, ",")));
        check("0X1F", Some((31, "")));
        check("010", Some((8, "")));
        check("08", Some((0, "8")));
        check("0x", Some((0, "x")));
        check("0xg", Some((0, "xg")));
        check("0", Some((0, "")));
    }

    #[test]
    fn blanks_and_signs_may_stand_in_front() {
        check(" 1 ", Some((1, " ")));
        check("\t+7", Some((7, "")));
        check("-1", Some((u64::MAX, "")));
        check("- 1", None);
        check("", None);
        check("x", None);
        check("+-1", None);
        check("99999999999999999999", Some((u64::MAX, "")));
        check("-99999999999999999999", Some((u64::MAX, "")));
    }

    #[test]
    fn a_number_that_is_too_large_is_known() {
        for (text, expected) in [
            ("18446744073709551615", false),
            ("18446744073709551616x", true),
            ("-18446744073709551616", true),
            ("0xffffffffffffffff", false),
            ("0x10000000000000000", true),
            ("-1", false),
            ("x", false),
        ] {
            assert_eq!(overflows(text), expected, "{text}");
        }
    }

    #[test]
    fn a_base_of_its_own_has_no_prefix() {
        assert_eq!(leading("0600", 8), Some((0o600, "")));
        assert_eq!(leading("9", 8), None);
        assert_eq!(leading("0x1", 10), Some((0, "x1")));
    }

    #[test]
    fn sizes_have_one_letter() {
        for (text, expected) in [
            ("64k", 65536),
            ("1M", 1 << 20),
            ("0x10G", 16 << 30),
            ("1x", 1),
            ("2kib", 2048),
            ("", 0),
            ("k", 0),
        ] {
            assert_eq!(size(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in any::<String>()) {
            if let Some((_, rest)) = leading(&text, 0) {
                prop_assert!(text.ends_with(rest));
            }
            size(&text);
        }

        #[test]
        fn a_printed_number_is_read_back(number: u64) {
            for (text, rest) in
                [(format!("{number},"), ","), (format!("{number:#x}-"), "-"), (format!("0{number:o}"), "")]
            {
                prop_assert_eq!(leading(&text, 0), Some((number, rest)));
            }
        }
    }
}
