//! Pressure stall information: how much time tasks lost waiting.
//!
//! # Source
//! `/proc/pressure/{cpu,memory,io}`, Linux 4.20:
//!
//! ```text
//! some avg10=0.00 avg60=0.12 avg300=0.00 total=4711
//! full avg10=0.00 avg60=0.00 avg300=0.00 total=0
//! ```

use super::loadavg::decimal;
use super::{Parsed, digits, lines};

/// Time lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// Percent of the last ten seconds.
    pub avg10: f64,
    /// Percent of the last minute.
    pub avg60: f64,
    /// Percent of the last five minutes.
    pub avg300: f64,
    pub total_us: u64,
}

/// One resource's stalls.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Pressure {
    /// At least one task waited.
    pub some: Option<Stall>,
    pub full: Option<Stall>,
}

/// Reads both lines.
pub fn parse(text: &str) -> Parsed<Pressure> {
    let mut parsed = Parsed::<Pressure>::default();
    for (number, line) in lines(text).filter(|(_, line)| !line.trim().is_empty()) {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (kind, stall(rest)) {
            ("some", Some(stall)) => parsed.value.some = Some(stall),
            ("full", Some(stall)) => parsed.value.full = Some(stall),
            _ => parsed.problems.add(number, "some or full, then avg10=, avg60=, avg300= and total=", line),
        }
    }
    parsed
}

fn stall(text: &str) -> Option<Stall> {
    let mut words = text.split_ascii_whitespace();
    let mut value = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=');
    let (avg10, avg60, avg300) = (value("avg10")?, value("avg60")?, value("avg300")?);
    let total_us = digits(value("total")?)?;
    Some(Stall { avg10: decimal(avg10)?, avg60: decimal(avg60)?, avg300: decimal(avg300)?, total_us })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn both_lines_are_read() {
        let parsed = parse(
            "some avg10=0.00 avg60=1.25 avg300=0.10 total=4711\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        );
        assert!(parsed.problems.is_empty());
        assert_eq!(parsed.value.some.map(|stall| (stall.avg60, stall.total_us)), Some((1.25, 4711)));
        assert_eq!(parsed.value.full.map(|stall| stall.total_us), Some(0));
    }

    #[test]
    fn before_5_13_the_cpu_has_no_second_line() {
        assert_eq!(parse("some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n").value.full, None);
        assert_eq!(parse("some avg10=nan\nmost avg10=0.0\n").problems.count(), 2);
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(a in 0u32..10_000, total in any::<u64>()) {
            let percent = f64::from(a) / 100.0;
            let parsed = parse(&format!("full avg10={percent:.2} avg60=0.00 avg300=0.00 total={total}\n"));
            let stall = Stall { avg10: percent, avg60: 0.0, avg300: 0.0, total_us: total };
            prop_assert_eq!(parsed.value.full, Some(stall));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = parse(&text);
        }
    }
}
