//! How long a thread ran and waited.
//!
//! # Source
//! `/proc/PID/schedstat` for the main thread, `/proc/PID/task/TID/schedstat` for each: three numbers, the
//! first two in ns. All 0 where the kernel was built without them.

use std::time::Duration;

use super::{ParseError, digits};

/// Times since the thread began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SchedStat {
    /// On a CPU.
    pub run: Duration,
    /// Ready, and waiting for a CPU.
    pub wait: Duration,
    /// How often it was put on a CPU.
    pub slices: u64,
}

/// Reads the line.
///
/// # Errors
/// A text without three numbers.
pub fn parse(text: &str) -> Result<SchedStat, ParseError> {
    let mut numbers = text.split_ascii_whitespace().map(digits::<u64>);
    match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
        (Some(Some(run)), Some(Some(wait)), Some(Some(slices)), None) => {
            Ok(SchedStat { run: Duration::from_nanos(run), wait: Duration::from_nanos(wait), slices })
        }
        _ => Err(ParseError::new(1, "three numbers", text.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn times_are_read() {
        let read = parse("580380 1279805 2\n").unwrap();
        assert_eq!(
            (read.run, read.wait, read.slices),
            (Duration::from_nanos(580_380), Duration::from_nanos(1_279_805), 2)
        );
        assert_eq!(parse("580380 12").unwrap_err().sentence(), "expected three numbers, found \"580380 12\"");
        assert!(parse("1 2 3 4\n").is_err() && parse("1 2 18446744073709551616").is_err());
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(n in any::<[u64; 3]>()) {
            let expected = SchedStat { run: Duration::from_nanos(n[0]), wait: Duration::from_nanos(n[1]), slices: n[2] };
            prop_assert_eq!(parse(&format!("{} {} {}\n", n[0], n[1], n[2])), Ok(expected));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in "[0-9 -]{0,60}") {
            let _ = parse(&text);
            let _ = parse(&near);
        }
    }
}
