//! Load averages.
//!
//! # Source
//! `/proc/loadavg`: `1.07 1.15 0.62 2/89 8580`.

use super::{ParseError, digits};

/// How many tasks ran or waited, averaged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadAverage {
    pub one_minute: f64,
    pub five_minutes: f64,
    pub fifteen_minutes: f64,
    /// Tasks that want to run now.
    pub runnable: u64,
    pub tasks: u64,
}

/// Reads the line.
///
/// # Errors
/// Anything but three decimals and two numbers with a slash.
pub fn parse(text: &str) -> Result<LoadAverage, ParseError> {
    read(text)
        .ok_or_else(|| ParseError::new(1, "load averages as in \"0.50 0.40 0.30 1/89 8580\"", text.trim()))
}

fn read(text: &str) -> Option<LoadAverage> {
    let mut words = text.split_ascii_whitespace();
    let mut average = || decimal(words.next()?);
    let (one_minute, five_minutes, fifteen_minutes) = (average()?, average()?, average()?);
    let (runnable, tasks) = words.next()?.split_once('/')?;
    Some(LoadAverage {
        one_minute,
        five_minutes,
        fifteen_minutes,
        runnable: digits(runnable)?,
        tasks: digits(tasks)?,
    })
}

/// A plain decimal as the kernel prints it: no sign, no exponent, no word for infinity.
pub(super) fn decimal(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once('.')?;
    digits::<u64>(whole)?;
    digits::<u64>(fraction)?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, proptest};

    #[test]
    fn averages_are_read() {
        let load = parse("1.07 1.15 0.62 2/89 8580\n").unwrap();
        assert_eq!((load.one_minute, load.fifteen_minutes, load.runnable, load.tasks), (1.07, 0.62, 2, 89));
        for text in
            ["", "1.07 1.15", "inf nan 0.0 1/2", "1e9 0.0 0.0 1/2", "1.0 1.0 1.0 2", "-1.0 1.0 1.0 1/2"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn averages_are_finite(text in any::<String>(), near in r"[0-9.e]{0,9} [0-9.]{0,9} [0-9.]{0,9} [0-9]{0,3}/[0-9]{0,3}") {
            let _ = parse(&text);
            if let Ok(load) = parse(&near) {
                prop_assert!(load.one_minute.is_finite() && load.one_minute >= 0.0);
            }
        }
    }
}
