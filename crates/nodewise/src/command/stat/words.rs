//! The words of `nodewise stat`: an interval and a count, or processes.

use std::time::Duration;

use nodewise_machine::duration;
use nodewise_machine::printable::quote;

/// Numbers from here on are PIDs. Linux gives smaller ones only to processes that start with the system
/// (`RESERVED_PIDS`).
const FIRST_PID: u32 = 300;

/// The words, understood.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Words {
    pub(super) every: Option<Duration>,
    pub(super) count: Option<u64>,
    pub(super) pids: Vec<u32>,
    pub(super) names: Vec<String>,
}

impl Words {
    /// Reads them, beside what options say.
    pub(super) fn read(
        words: &[String],
        every: Option<Duration>,
        count: Option<u64>,
    ) -> Result<Self, String> {
        let mut read = Self { every, count, ..Self::default() };
        if every.is_none() {
            if let Some((interval, number)) = times(words)? {
                if count.is_some() && number.is_some() {
                    return Err("both COUNT and --count are given: one of them is enough".to_owned());
                }
                read.every = Some(interval);
                read.count = number.or(count);
                return read.checked();
            }
        }
        for word in words {
            match word.parse::<u32>() {
                Ok(number) if number >= FIRST_PID || every.is_some() => read.pids.push(number),
                Ok(0) => {
                    return Err(
                        "an interval of 0 has no rates: expected a time such as 500ms or 1s".to_owned()
                    );
                }
                Ok(number) => {
                    return Err(format!(
                        "{number} beside a process is ambiguous: write --every {number}s for an interval, or --pid \
                         {number} for a process"
                    ));
                }
                Err(_) => read.names.push(word.clone()),
            }
        }
        read.checked()
    }

    fn checked(self) -> Result<Self, String> {
        if self.count.is_some() && self.every.is_none() {
            return Err("--count needs an interval: --every 1s --count 3".to_owned());
        }
        Ok(self)
    }
}

/// `INTERVAL [COUNT]`, where that is all there is.
fn times(words: &[String]) -> Result<Option<(Duration, Option<u64>)>, String> {
    let (first, second) = match words {
        [first] => (first, None),
        [first, second] => (first, Some(second)),
        _ => return Ok(None),
    };
    let is_pid = first.parse::<u32>().is_ok_and(|number| number >= FIRST_PID);
    let Some(interval) = duration::parse(first).ok().filter(|_| !is_pid) else { return Ok(None) };
    let count = match second {
        None => None,
        Some(text) => match text.parse::<u64>() {
            Ok(count) if count > 0 => Some(count),
            _ => {
                return Err(format!(
                    "{} is not a COUNT behind the interval {first}: expected 1 or more",
                    quote(text)
                ));
            }
        },
    };
    Ok(Some((interval, count)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, proptest};

    fn read(words: &str) -> Result<Words, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        Words::read(&words, None, None)
    }

    #[test]
    fn a_small_number_alone_is_an_interval_and_any_other_a_process() {
        let timed =
            |every, count| Ok(Words { every: Some(Duration::from_millis(every)), count, ..Words::default() });
        assert_eq!(read("1"), timed(1000, None));
        assert_eq!(read("1 3"), timed(1000, Some(3)));
        assert_eq!(read("0.5 1000"), timed(500, Some(1000)));
        assert_eq!(read("10m"), timed(600_000, None));
        let pids = |pids: &[u32]| Ok(Words { pids: pids.to_vec(), ..Words::default() });
        assert_eq!(read("4121"), pids(&[4121]));
        assert_eq!(read("4121 4122 4123"), pids(&[4121, 4122, 4123]));
        let names = Words { pids: vec![812], names: vec!["postgres".to_owned()], ..Words::default() };
        assert_eq!(read("postgres 812"), Ok(names));
        assert_eq!(read(""), Ok(Words::default()));
    }

    #[test]
    fn numbers_that_may_be_either_are_refused_with_both_spellings() {
        for text in ["4121 1", "postgres 5", "1 2 3"] {
            let error = read(text).unwrap_err();
            assert!(error.contains("--every") && error.contains("--pid"), "{text}: {error}");
        }
        assert!(read("1 postgres").unwrap_err().contains("COUNT"));
        assert!(read("0").unwrap_err().contains("no rates"));
    }

    #[test]
    fn beside_options_every_number_is_a_process() {
        let every = Some(Duration::from_secs(2));
        let words = Words::read(&["7".to_owned()], every, Some(3)).unwrap();
        assert_eq!((words.pids, words.count), (vec![7], Some(3)));
        assert!(Words::read(&[], None, Some(3)).unwrap_err().contains("--every"));
        assert!(Words::read(&["1".to_owned(), "2".to_owned()], None, Some(3)).is_err());
    }

    proptest! {
        #[test]
        fn any_words_are_read_or_refused(words in prop::collection::vec(any::<String>(), 0..4)) {
            let _ = Words::read(&words, None, None);
        }
    }
}
