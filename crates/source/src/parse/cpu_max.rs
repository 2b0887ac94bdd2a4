//! The CPU time that a control group may use.
//!
//! # Source
//! `cpu.max` of a control group, Linux 4.15: a quota in microseconds, or `max`, and its period.

use super::{ParseError, digits};

/// The quota of a group; `None`: it has none.
///
/// # Units
/// Thousandths of a CPU.
pub type CpuQuota = Option<u64>;

/// Reads the two words.
///
/// # Errors
/// Anything else than a quota or `max`, and a period above 0.
pub fn parse(text: &str) -> Result<CpuQuota, ParseError> {
    let fail = || ParseError::new(1, "a quota or \"max\", and a period in microseconds", text.trim());
    let mut words = text.split_ascii_whitespace();
    let (quota, period) = (words.next().ok_or_else(fail)?, words.next().ok_or_else(fail)?);
    let period: u64 = digits(period).filter(|period| *period > 0).ok_or_else(fail)?;
    if words.next().is_some() {
        return Err(fail());
    }
    match quota {
        "max" => Ok(None),
        quota => Ok(Some(thousandths(digits(quota).ok_or_else(fail)?, period))),
    }
}

/// A quota for a period in thousandths of a CPU.
pub fn thousandths(quota: u64, period: u64) -> u64 {
    let exact = u128::from(quota) * 1000 / u128::from(period.max(1));
    u64::try_from(exact).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn a_quota_is_a_part_of_its_period() {
        assert_eq!(parse("max 100000\n"), Ok(None));
        assert_eq!(parse("150000 100000\n"), Ok(Some(1_500)));
        for text in ["", "max", "max 0", "1 0", "-1 100000", "1 2 3", "x 100000", "1 \u{1b}[2J"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(quota in any::<u64>(), period in 1u64..) {
            prop_assert_eq!(parse(&format!("{quota} {period}\n")), Ok(Some(thousandths(quota, period))));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = parse(&text);
        }
    }
}
