//! Files of `name value` lines.
//!
//! # Source
//! `/proc/vmstat`, `/sys/devices/system/node/nodeN/vmstat` (Linux 2.6.33) and
//! `/sys/devices/system/node/nodeN/numastat`. Values count pages or events since boot.

use super::{Parsed, digits, lines};

/// More counters than any release prints.
const MOST_COUNTERS: usize = 4096;

/// Counters by name, in the kernel's order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counters {
    counters: Vec<(String, u64)>,
}

impl Counters {
    /// The counter with this name; `None` when this kernel does not have it.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.counters.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Every counter in the kernel's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counters.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// How many counters there are.
    pub fn len(&self) -> usize {
        self.counters.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }

    /// Adds a counter, unless there are too many.
    pub(super) fn push(&mut self, name: &str, value: u64) -> bool {
        let room = self.counters.len() < MOST_COUNTERS;
        if room {
            self.counters.push((name.to_owned(), value));
        }
        room
    }
}

impl FromIterator<(String, u64)> for Counters {
    fn from_iter<T: IntoIterator<Item = (String, u64)>>(counters: T) -> Self {
        Self { counters: counters.into_iter().take(MOST_COUNTERS).collect() }
    }
}

/// Reads every line of two words.
pub fn parse(text: &str) -> Parsed<Counters> {
    let mut parsed = Parsed::<Counters>::default();
    for (number, line) in lines(text).filter(|(_, line)| !line.trim().is_empty()) {
        let mut words = line.split_ascii_whitespace();
        let pair = (words.next(), words.next().and_then(digits), words.next());
        let kept = match pair {
            (Some(name), Some(value), None) if is_name(name) => parsed.value.push(name, value),
            _ => false,
        };
        if !kept {
            parsed.problems.add(number, "a name and a number", line.trim());
        }
    }
    parsed
}

/// Whether the text has the form of the kernel's counter names.
pub(super) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn counters_are_found_by_name() {
        let parsed = parse("numa_hit 63712\nnuma_miss 0\ninterleave_hit 18446744073709551615\n");
        assert!(parsed.problems.is_empty());
        assert_eq!(parsed.value.get("numa_hit"), Some(63712));
        assert_eq!(parsed.value.get("interleave_hit"), Some(u64::MAX));
        assert_eq!(parsed.value.get("other_node"), None, "missing is not 0");
    }

    #[test]
    fn a_bad_line_costs_one_line() {
        let parsed =
            parse("numa_hit 1\nnuma_miss\nnuma_foreign 18446744073709551616\nlocal_node 2 3\nother_node 4\n");
        assert_eq!(parsed.value.iter().collect::<Vec<_>>(), [("numa_hit", 1), ("other_node", 4)]);
        assert_eq!(parsed.problems.count(), 3);
        assert_eq!(
            parsed.problems.first[0].to_string(),
            "line 2: expected a name and a number, found \"numa_miss\""
        );
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(counters in prop::collection::vec(("[a-z_0-9]{1,20}", any::<u64>()), 0..30)) {
            let text: String = counters.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
            let parsed = parse(&text);
            prop_assert!(parsed.problems.is_empty());
            prop_assert_eq!(parsed.value, Counters { counters });
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = parse(&text);
        }
    }
}
