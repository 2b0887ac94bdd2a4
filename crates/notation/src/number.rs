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
    fn digits(self, unsigned: &[u8]) -> (&[u8], u32) {
        let behind = |prefix: u8, radix: u32| match unsigned {
            [b'0', letter, rest @ ..] if letter.eq_ignore_ascii_case(&prefix) => {
                let begins = rest.first().is_some_and(|digit| is_digit(*digit, radix));
                begins.then_some((rest, radix))
            }
            _ => None,
        };
        let octal = if unsigned.first() == Some(&b'0') { 8 } else { 10 };
        match self {
            Self::Prefixed => behind(b'x', 16).unwrap_or((unsigned, octal)),
            Self::PrefixedOrBinary => {
                behind(b'x', 16).or_else(|| behind(b'b', 2)).unwrap_or((unsigned, octal))
            }
            Self::Octal => (unsigned, 8),
            Self::Decimal => (unsigned, 10),
            Self::Hexadecimal => behind(b'x', 16).unwrap_or((unsigned, 16)),
        }
    }
}

fn is_digit(byte: u8, radix: u32) -> bool {
    value_of(byte).is_some_and(|value| value < radix)
}

/// The value of a digit of any radix up to 16.
fn value_of(byte: u8) -> Option<u32> {
    char::from(byte).to_digit(16)
}

/// A number at the beginning of a text, and what follows it. `None` where there is no digit.
///
/// White space and a sign may precede the digits; a negative number wraps around, one that is too large is
/// the largest.
///
/// # Source
/// `strtoul(3)` with 64 bits.
pub fn leading(text: &[u8], base: Base) -> Option<(u64, &[u8])> {
    let Digits { value, negative, rest } = digits(text, base)?;
    let signed = |value: u64| if negative { value.wrapping_neg() } else { value };
    Some((value.map_or(u64::MAX, signed), rest))
}

/// The same of a text of characters.
pub fn leading_str(text: &str, base: Base) -> Option<(u64, &str)> {
    let (number, rest) = leading(text.as_bytes(), base)?;
    // Only ASCII was taken, so this is a boundary of characters.
    Some((number, text.get(text.len().checked_sub(rest.len())?..)?))
}

/// Whether a text begins with a number that is too large: `ERANGE` in C.
pub fn overflows(text: &[u8], base: Base) -> bool {
    digits(text, base).is_some_and(|digits| digits.value.is_none())
}

/// A text without the white space that C knows at its beginning.
pub fn unpadded(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    text.get(blanks..).unwrap_or_default()
}

/// The digits at the beginning of a text.
struct Digits<'a> {
    /// Their number; `None` when it is too large.
    value: Option<u64>,
    /// Whether a hyphen precedes them.
    negative: bool,
    rest: &'a [u8],
}

fn digits(text: &[u8], base: Base) -> Option<Digits<'_>> {
    let text = unpadded(text);
    let (negative, unsigned) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let (digits, radix) = base.digits(unsigned);
    let length = digits.iter().take_while(|digit| is_digit(**digit, radix)).count();
    let (digits, rest) = digits.split_at_checked(length).filter(|(digits, _)| !digits.is_empty())?;
    Some(Digits { value: value(digits, radix), negative, rest })
}

fn value(digits: &[u8], radix: u32) -> Option<u64> {
    digits
        .iter()
        .try_fold(0u64, |value, digit| value.checked_mul(radix.into())?.checked_add(value_of(*digit)?.into()))
}

/// Decimal digits at the beginning of a text, and what follows them: a number as the kernel prints it, without
/// blanks and signs. `None` where there is no digit, or where the number has more than 64 bits.
pub fn decimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(length).filter(|(digits, _)| !digits.is_empty())?;
    Some((value(digits, 10)?, rest))
}

/// A size: a number and perhaps `k`, `m` or `g` of either case, for 1,024 and its powers. What else
/// follows the number is passed over, and a text without a number is 0.
///
/// # Units
/// Bytes.
pub fn size(text: &[u8]) -> u64 {
    let Some((number, rest)) = leading(text, Base::Prefixed) else { return 0 };
    let shift = match rest.first().map(u8::to_ascii_lowercase) {
        Some(b'g') => 30,
        Some(b'm') => 20,
        Some(b'k') => 10,
        _ => 0,
    };
    number.wrapping_shl(shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    fn check(text: &str, expected: Option<(u64, &str)>) {
        check_base(text, Base::Prefixed, expected);
    }

    fn check_base(text: &str, base: Base, expected: Option<(u64, &str)>) {
        assert_eq!(leading_str(text, base), expected, "{text:?}");
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
            check_base(text, Base::PrefixedOrBinary, Some(expected));
        }
        check("0b1", Some((0, "b1")));
    }

    #[test]
    fn blanks_and_signs_may_stand_in_front() {
        check(" 1 ", Some((1, " ")));
        check("\t+7", Some((7, "")));
        check("\u{b}7", Some((7, "")));
        check("-1", Some((u64::MAX, "")));
        check("- 1", None);
        check("", None);
        check("-", None);
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
            assert_eq!(overflows(text.as_bytes(), Base::Prefixed), expected, "{text}");
        }
    }

    #[test]
    fn a_base_of_its_own_has_no_prefix() {
        check_base("0600", Base::Octal, Some((0o600, "")));
        check_base("9", Base::Octal, None);
        check_base("0x1", Base::Decimal, Some((0, "x1")));
        check_base("0x1g", Base::Hexadecimal, Some((1, "g")));
        check_base("-fz", Base::Hexadecimal, Some((u64::MAX - 14, "z")));
    }

    #[test]
    fn plain_digits_have_neither_blanks_nor_signs() {
        for (text, expected) in [
            ("010-", Some((10, &b"-"[..]))),
            ("18446744073709551615", Some((u64::MAX, b""))),
            ("18446744073709551616", None),
            (" 1", None),
            ("+1", None),
            ("", None),
        ] {
            assert_eq!(decimal(text.as_bytes()), expected, "{text:?}");
        }
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
            assert_eq!(size(text.as_bytes()), expected, "{text}");
        }
    }

    const BASES: [Base; 5] =
        [Base::Prefixed, Base::PrefixedOrBinary, Base::Octal, Base::Decimal, Base::Hexadecimal];

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            for base in BASES {
                if let Some((_, rest)) = leading(&bytes, base) {
                    prop_assert!(bytes.ends_with(rest) && rest.len() < bytes.len());
                }
            }
            decimal(&bytes);
            size(&bytes);
        }

        #[test]
        fn any_text_is_cut_between_characters(text in any::<String>(), number in any::<i128>()) {
            let text = format!("{number}{text}");
            let (_, rest) = leading_str(&text, Base::Prefixed).expect("it begins with a number");
            prop_assert!(text.ends_with(rest));
        }

        #[test]
        fn a_printed_number_is_read_back(number: u64) {
            for (text, rest) in
                [(format!("{number},"), ","), (format!("{number:#x}-"), "-"), (format!("0{number:o}"), "")]
            {
                prop_assert_eq!(leading_str(&text, Base::Prefixed), Some((number, rest)));
            }
            let text = format!("{number:#b}");
            prop_assert_eq!(leading_str(&text, Base::PrefixedOrBinary), Some((number, "")));
        }
    }
}
