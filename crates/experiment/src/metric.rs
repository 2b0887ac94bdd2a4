//! Quantity that is compared: the time a program takes, what it uses, or a number that it prints.

use nodewise_machine::printable::quote;
use nodewise_stats::Direction;
use nodewise_syscall::perf::Counter;
use regex_lite::Regex;

/// Longest end of a program's output that is searched for a number.
pub const SEARCHED_BYTES: usize = 256 << 10;

/// The compared quantity.
#[derive(Clone, Debug)]
pub enum Metric {
    /// The time from the start of the program to its end; lower is better.
    Wall,
    /// Its time on CPUs, in the program and in the kernel for it; lower is better.
    CpuTime,
    /// The most memory that it, or any one process that it started, had resident; lower is better.
    MaxRss,
    /// Events that are counted in it and all that it starts; fewer are better.
    Counted(Counter),
    /// A number that the program prints.
    Printed(Pattern, Direction),
}

/// The metrics of a plan: the first decides, the others are shown.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub first: Metric,
    pub also: Vec<Metric>,
}

impl Metric {
    /// Which way is better.
    pub fn direction(&self) -> Direction {
        match self {
            Self::Wall | Self::CpuTime | Self::MaxRss | Self::Counted(_) => Direction::LowerIsBetter,
            Self::Printed(_, direction) => *direction,
        }
    }
}

/// Why a text is not a pattern for a number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("{} is not a regular expression: {reason}", quote(.text))]
    Syntax {
        /// The text that was read.
        text: String,
        reason: String,
    },
    /// It does not say which part of a match is the number.
    #[error("{} has {groups} groups: expected one around the number, as in \"rate: ([0-9.]+)\"", quote(.text))]
    Groups {
        /// The text that was read.
        text: String,
        /// How many groups it has.
        groups: usize,
    },
}

/// Why no number could be taken from a program's output.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MetricError {
    #[error("nothing in the output matches {}", quote(.pattern))]
    NoMatch { pattern: String },
    /// The text it matched is not a number.
    #[error("{} in the output is not a number", quote(.text))]
    NotANumber { text: String },
    /// A ratio needs numbers above zero.
    #[error("the number {number} in the output cannot be compared: only numbers above 0 have ratios")]
    NotPositive { number: f64 },
}

/// A regular expression with one group, which is the number.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When it is not a regular expression, or has not exactly one group.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let text = text.to_owned();
        let regex = match Regex::new(&text) {
            Ok(regex) => regex,
            Err(error) => return Err(PatternError::Syntax { text, reason: error.to_string() }),
        };
        // The match as a whole counts as a group too.
        match regex.captures_len() - 1 {
            1 => Ok(Self { regex }),
            groups => Err(PatternError::Groups { text, groups }),
        }
    }

    /// The pattern as it was written.
    pub fn text(&self) -> &str {
        self.regex.as_str()
    }

    /// The number in the last match: programs print their result at the end.
    ///
    /// # Errors
    /// When nothing matches, or the group is not a number above zero.
    pub fn number(&self, output: &str) -> Result<f64, MetricError> {
        let matched = self.regex.captures_iter(output).filter_map(|captures| captures.get(1)).last();
        let Some(matched) = matched else {
            return Err(MetricError::NoMatch { pattern: self.text().to_owned() });
        };
        let text = matched.as_str().trim();
        // The standard library reads "inf" and "nan" too.
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
            Ok(number) if number.is_finite() => Err(MetricError::NotPositive { number }),
            _ => Err(MetricError::NotANumber { text: text.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    fn check(pattern: &str, output: &str, expected: Result<f64, &str>) {
        let found = Pattern::new(pattern)
            .map_err(|error| error.to_string())
            .and_then(|pattern| pattern.number(output).map_err(|error| error.to_string()));
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn the_last_match_counts() {
        check("([0-9.]+) GFLOPS", "1.5 GFLOPS\nsome text\n2.25 GFLOPS\n", Ok(2.25));
        check("rate: *(.*) MB/s", "rate:   1e3 MB/s", Ok(1000.0));
        check("(?m)^([0-9]+)$", "7\n8\n", Ok(8.0));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        check("x=(.*)", "y=3", Err("nothing in the output matches \"x=(.*)\""));
        check("x=(.*)", "x=fast", Err("\"fast\" in the output is not a number"));
        check("x=(.*)", "x=1,5", Err("\"1,5\" in the output is not a number"));
        check("x=(.*)", "x=inf", Err("\"inf\" in the output is not a number"));
        check("x=(.*)", "x=\u{1b}[31m4", Err("\"\\x1b[31m4\" in the output is not a number"));
        check(
            "x=(.*)",
            "x=0",
            Err("the number 0 in the output cannot be compared: only numbers above 0 have ratios"),
        );
        check(
            "x=()|y=([0-9])",
            "",
            Err("\"x=()|y=([0-9])\" has 2 groups: expected one around the number, as in \"rate: ([0-9.]+)\""),
        );
    }

    #[test]
    fn a_pattern_without_one_group_is_refused() {
        let error = Pattern::new("[0-9.]+ MB/s").unwrap_err().to_string();
        assert_eq!(
            error,
            "\"[0-9.]+ MB/s\" has 0 groups: expected one around the number, as in \"rate: ([0-9.]+)\""
        );
        assert!(matches!(Pattern::new("(").unwrap_err(), PatternError::Syntax { .. }));
    }

    proptest! {
        #[test]
        fn any_pattern_is_read_or_refused_and_any_output_searched_without_a_panic(
            pattern in r"[a-c0-9().*+?|\[\]\\{},^$:-]{0,12}", output in any::<String>(),
        ) {
            if let Ok(pattern) = Pattern::new(&pattern) {
                let _ = pattern.number(&output);
            }
        }
    }
}
