//! One file per kernel format: text in, value out, no I/O.
//!
//! Files with one value give `Result<T, ParseError>`. Files with many lines give [`Parsed`]: what
//! could be read, and what could not, so that one bad line costs one line. Every error says the
//! line and what would have been right there. All of it takes hostile text: nothing panics, nothing
//! becomes 0 because it was unreadable, and memory stays in proportion to the text.

pub mod boot_log;
pub mod btf;
pub mod buddyinfo;
pub mod cache_size;
pub mod cgroup;
pub mod cgroup_name;
pub mod choice;
pub mod counters;
pub mod cpu_architecture;
pub mod cpu_max;
pub mod cpuinfo;
pub mod distance;
pub mod dmidecode;
pub mod elf;
pub mod fib_trie;
pub mod interrupts;
pub mod kallsyms;
pub mod kernel_config;
pub mod kubelet_config;
pub mod loadavg;
pub mod maps;
pub mod meminfo;
pub mod memory_map;
pub mod memory_numa_stat;
pub mod mountinfo;
pub mod mounts;
pub mod nofile_info;
pub mod numa_maps;
pub mod numactl_hardware;
pub mod number;
pub mod passwd;
pub mod pci_link;
pub mod pid_stat;
pub mod pmu;
pub mod pressure;
pub mod proc_stat;
pub mod proc_status;
pub mod resctrl;
pub mod route;
pub mod sched;
pub mod schedstat;
pub mod set;
pub mod slurm_conf;
pub mod smaps;
pub mod sysvipc_shm;
pub mod zoneinfo;

use std::borrow::Cow;
use std::fmt;

use nodewise_machine::Bytes;
use nodewise_machine::printable::quote;

/// Why a text is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: u32,
    pub expected: String,
    /// The text that is there, cut after 120 characters and otherwise as it was read.
    pub found: String,
}

impl ParseError {
    /// An error in a line.
    pub fn new(line: u32, expected: impl Into<String>, found: &str) -> Self {
        Self { line, expected: expected.into(), found: found.chars().take(120).collect() }
    }

    /// The sentence without the line: `expected a number, found "x"`.
    pub fn sentence(&self) -> String {
        if self.found.is_empty() {
            format!("expected {}, found nothing", self.expected)
        } else {
            format!("expected {}, found {}", self.expected, quote(&self.found))
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.sentence())
    }
}

impl std::error::Error for ParseError {}

/// The faults in a text of many lines: the first few errors, and how many more there were.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Problems {
    /// The first errors.
    pub first: Vec<ParseError>,
    /// How many others there were.
    pub others: usize,
}

impl Problems {
    /// Errors that are kept with their text; a file of a million bad lines must not cost memory.
    const KEPT: usize = 8;

    /// Adds an error.
    pub fn add(&mut self, line: u32, expected: impl Into<String>, found: &str) {
        if self.first.len() < Self::KEPT {
            self.first.push(ParseError::new(line, expected, found));
        } else {
            self.others += 1;
        }
    }

    /// Whether nothing was wrong.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// How many errors there were.
    pub fn count(&self) -> usize {
        self.first.len() + self.others
    }

    /// Takes over the errors of another text.
    pub fn absorb(&mut self, other: Self) {
        let room = Self::KEPT.saturating_sub(self.first.len());
        self.others += other.others + other.first.len().saturating_sub(room);
        self.first.extend(other.first.into_iter().take(room));
    }
}

/// The readable part of a text, and the faults in the rest.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Parsed<T> {
    pub value: T,
    pub problems: Problems,
}

/// The text of a file, and whether NUL bytes at its end were taken away.
///
/// Some releases print a NUL behind a list in sysfs, and captures of them hold it.
pub fn text_of(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let text = &bytes[..end];
    // Nearly every file is ASCII, which the strict reader takes words at a time.
    let text = std::str::from_utf8(text).map_or_else(|_| String::from_utf8_lossy(text), Cow::Borrowed);
    (text, end < bytes.len())
}

/// Lines with their numbers, from 1; the last one needs no line feed.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1u32..).zip(text.lines())
}

/// A number of decimal digits only: no sign, no blank.
pub(crate) fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// A number of KiB as a size; `None` when it is not a number or does not fit.
fn kib(text: &str) -> Option<Bytes> {
    digits::<u64>(text)?.checked_mul(1024).map(Bytes::new)
}

/// Decodes the octal escapes of the kernel's path printer: `\040` is a blank.
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let octal =
            tail.get(..3).filter(|code| *first == b'\\' && code.iter().all(|c| (b'0'..=b'7').contains(c)));
        let value = octal.map(|code| code.iter().fold(0u32, |sum, c| sum * 8 + u32::from(c - b'0')));
        match value.and_then(|value| u8::try_from(value).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    #[test]
    fn nul_bytes_at_the_end_are_taken_away_and_told() {
        assert_eq!(text_of(b"0-3\n\0"), (Cow::Borrowed("0-3\n"), true));
        assert_eq!(text_of(b"0-3\n"), (Cow::Borrowed("0-3\n"), false));
        assert_eq!(text_of(b"\0\0"), (Cow::Borrowed(""), true));
        assert_eq!(text_of(b"a\0b"), (Cow::Borrowed("a\0b"), false));
    }

    #[test]
    fn escapes_of_the_kernel_are_decoded() {
        assert_eq!(unescape(r"/tmp/a\040b\012\075"), "/tmp/a b\n=");
        assert_eq!(unescape(r"\9\04\777\\"), r"\9\04\777\\");
    }

    #[test]
    fn an_error_is_a_sentence_with_its_line() {
        let error = ParseError::new(3, "a number", "x\u{1b}[2J");
        assert_eq!(error.to_string(), "line 3: expected a number, found \"x\\x1b[2J\"");
        assert_eq!(ParseError::new(1, "a number", "").sentence(), "expected a number, found nothing");
    }

    #[test]
    fn many_errors_are_counted_and_few_are_kept() {
        let mut problems = Problems::default();
        (0..20).for_each(|line| problems.add(line, "a number", "x"));
        assert_eq!((problems.first.len(), problems.others), (8, 12));
        let mut sum = Problems::default();
        sum.add(1, "y", "z");
        sum.absorb(problems);
        assert_eq!((sum.first.len(), sum.count()), (8, 21));
    }

    proptest! {
        #[test]
        fn any_bytes_become_text(bytes in any::<Vec<u8>>()) {
            let (text, stray) = text_of(&bytes);
            prop_assert!(!text.ends_with('\0'));
            prop_assert_eq!(stray, bytes.last() == Some(&0));
            let _ = unescape(&text);
        }

        #[test]
        fn only_plain_digits_are_a_number(text in "[+ 0-9-]{0,6}") {
            prop_assert_eq!(digits::<u64>(&text).is_some(), !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
        }
    }
}
