//! Times as people type them: the same forms for every option and file.

use std::fmt;
use std::time::Duration;

use crate::printable::quote;

/// Why a text is not a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationError {
    /// The text that was read.
    pub text: String,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is not a time: expected seconds, or a number with ms, s, m or h as in 10m",
            quote(&self.text)
        )
    }
}

impl std::error::Error for DurationError {}

/// Reads `500ms`, `90s`, `1.5m`, `2h`; a bare number is seconds. No time is 0.
///
/// # Errors
/// Any other text, and a time that is too long to be counted.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let time = moment(text)?;
    if time.is_zero() { Err(DurationError { text: text.to_owned() }) } else { Ok(time) }
}

/// Reads a time since a beginning: as [`parse`], and 0.
///
/// # Errors
/// Those of [`parse`] for other texts.
pub fn moment(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError { text: text.to_owned() };
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(error()),
    };
    let number: f64 = number.parse().map_err(|_| error())?;
    Duration::try_from_secs_f64(number * scale).map_err(|_| error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn times_are_read_with_units() {
        for (text, seconds) in
            [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2min", 120.0), ("2h", 7200.0), ("500ms", 0.5)]
        {
            assert_eq!(parse(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
            assert_eq!(moment(text), parse(text), "{text}");
        }
        for text in ["0", "0s", "0ms", "0.0h"] {
            assert_eq!((moment(text), parse(text).is_err()), (Ok(Duration::ZERO), true), "{text}");
        }
        for text in ["", "m", "1d", "-1", "0", "1e9h", "1.2.3", "99999999999999999999h", " 1s", "1 s"] {
            assert_eq!(parse(text), Err(DurationError { text: text.to_owned() }));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_whole_seconds_read_back(text in any::<String>(), seconds in 1u32..) {
            let _ = parse(&text);
            prop_assert_eq!(parse(&format!("{seconds}s")), Ok(Duration::from_secs(seconds.into())));
        }
    }
}
