//! Numbers with digits behind the point, rounded as the C library rounds: to the nearest, and of two
//! equally near to the even one.

/// Parts of one; the numbers of numastat's tables are whole multiples of a part: a KiB is a 1,024th of a MiB,
/// and a page a 256th.
const PARTS: u64 = 1024;

/// A number with this many digits behind the point: as `format!("{value:.decimals$}")`, which takes ten times
/// as long for fractions such as these.
pub fn decimal(value: f64, decimals: usize) -> String {
    let parts = value * PARTS as f64;
    // Two digits more of such a number still fit into an integer.
    let is_exact = parts.is_sign_positive() && parts < (1u64 << 53) as f64 && parts.fract() == 0.0;
    match decimals {
        0 if is_exact => rounded(parts as u64, 1).to_string(),
        2 if is_exact => {
            let hundredths = rounded(parts as u64, 100);
            let mut text = (hundredths / 100).to_string();
            text.push('.');
            text.extend([hundredths / 10 % 10, hundredths % 10].map(digit));
            text
        }
        _ => format!("{value:.decimals$}"),
    }
}

/// A number of parts times a factor, in whole.
fn rounded(parts: u64, factor: u64) -> u64 {
    let (whole, rest) = (parts * factor / PARTS, parts * factor % PARTS);
    let up = rest > PARTS / 2 || rest == PARTS / 2 && whole % 2 == 1;
    whole + u64::from(up)
}

fn digit(digit: u64) -> char {
    char::from(b'0' + digit as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn of_two_equally_near_numbers_the_even_one_is_taken() {
        let check = |value: f64, two: &str, none: &str| {
            assert_eq!((decimal(value, 2).as_str(), decimal(value, 0).as_str()), (two, none));
        };
        check(0.0, "0.00", "0");
        check(0.125, "0.12", "0");
        check(0.375, "0.38", "0");
        check(0.5, "0.50", "0");
        check(1.5, "1.50", "2");
        check(390.625, "390.62", "391");
        check(9.999, "10.00", "10");
        check(-1.5, "-1.50", "-2");
        check(f64::INFINITY, "inf", "inf");
    }

    proptest! {
        #[test]
        fn parts_are_written_as_the_standard_library_writes_them(parts in 0u64..1 << 53, decimals in 0usize..4) {
            let value = parts as f64 / PARTS as f64;
            prop_assert_eq!(decimal(value, decimals), format!("{value:.decimals$}"));
        }

        #[test]
        fn so_is_any_other_number(value in any::<f64>(), decimals in 0usize..4) {
            prop_assert_eq!(decimal(value, decimals), format!("{value:.decimals$}"));
        }
    }
}
