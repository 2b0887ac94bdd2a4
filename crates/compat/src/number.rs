//! Numbers as the C library reads them: the originals hand every number to `strtoul(3)`.

/// The digits that a number may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// `0x` begins hexadecimal digits and `0` octal ones: base 0.
    Prefixed,
    /// `0b` begins binary digits too: base 0 in C23, which programs built with glibc 2.38 and newer get.
    PrefixedOrBinary,
    /// Octal digits: base 8.
    Octal,
    /// Decimal digits: base 10.
    Decimal,
    /// Hexadecimal digits, behind `0x` or without it: base 16.
    Hexadecimal,
}

impl Base {
    /// The digits of an unsigned number, and their radix.
    fn digits(self, unsigned: &str) -> (&str, u32) {
        let behind = |prefix: &str, radix: u32| {
            let (head, rest) = unsigned.split_at_checked(2)?;
            let begins = rest.starts_with(|c: char| c.is_digit(radix));
            (head.eq_ignore_ascii_case(prefix) && begins).then_some((rest, radix))
        };
        let octal = if unsigned.starts_with('0') { 8 } else { 10 };
        match self {
            Self::Prefixed => behind("0x", 16).unwrap_or((unsigned, octal)),
            Self::PrefixedOrBinary => {
                behind("0x", 16).or_else(|| behind("0b", 2)).unwrap_or((unsigned, octal))
            }
            Self::Octal => (unsigned, 8),
            Self::Decimal => (unsigned, 10),
            Self::Hexadecimal => behind("0x", 16).unwrap_or((unsigned, 16)),
        }
    }
}

/// A number at the beginning of a text, and what follows it. `None` where there is no digit.
///
/// White space and a sign may stand in front; a negative number wraps around, one that is too large is the
/// largest.
///
/// # Source
/// `strtoul(3)` with 64 bits.
pub fn leading(text: &str, base: Base) -> Option<(u64, &str)> {
    let (value, negative, rest) = digits(text, base)?;
    let signed = |value: u64| if negative { value.wrapping_neg() } else { value };
    Some((value.map_or(u64::MAX, signed), rest))
}

/// Whether a text begins with a number that is too large: `ERANGE` in C.
pub fn overflows(text: &str, base: Base) -> bool {
    digits(text, base).is_some_and(|(value, ..)| value.is_none())
}

/// A text without the white space that C knows at its beginning.
pub fn unpadded(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r'])
}

/// The digits at the beginning of a text as a number, `None` for one that is too large; whether a hyphen stands
/// before them; and what follows.
fn digits(text: &str, base: Base) -> Option<(Option<u64>, bool, &str)> {
    let text = unpadded(text);
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, radix) = base.digits(unsigned);
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
    let Some((number, rest)) = leading(text, Base::Prefixed) else { return 0 };
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
        assert_eq!(leading(text, Base::Prefixed), expected, "{text:?}");
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
    fn binary_digits_are_those_of_a_newer_c_library() {
        for (text, expected) in
            [("0b1,", (1, ",")), ("-0B10", (u64::MAX - 1, "")), ("0b2", (0, "b2")), ("0b", (0, "b"))]
        {
            assert_eq!(leading(text, Base::PrefixedOrBinary), Some(expected), "{text}");
        }
        check("0b1", Some((0, "b1")));
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
            assert_eq!(overflows(text, Base::Prefixed), expected, "{text}");
        }
    }

    #[test]
    fn a_base_of_its_own_has_no_prefix() {
        assert_eq!(leading("0600", Base::Octal), Some((0o600, "")));
        assert_eq!(leading("9", Base::Octal), None);
        assert_eq!(leading("0x1", Base::Decimal), Some((0, "x1")));
        assert_eq!(leading("0x1g", Base::Hexadecimal), Some((1, "g")));
        assert_eq!(leading("-fz", Base::Hexadecimal), Some((u64::MAX - 14, "z")));
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
            if let Some((_, rest)) = leading(&text, Base::Prefixed) {
                prop_assert!(text.ends_with(rest));
            }
            size(&text);
        }

        #[test]
        fn a_printed_number_is_read_back(number: u64) {
            for (text, rest) in
                [(format!("{number},"), ","), (format!("{number:#x}-"), "-"), (format!("0{number:o}"), "")]
            {
                prop_assert_eq!(leading(&text, Base::Prefixed), Some((number, rest)));
            }
        }
    }
}
