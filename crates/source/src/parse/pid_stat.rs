//! A process or a thread in one line.
//!
//! # Source
//! `/proc/PID/stat`, `/proc/PID/task/TID/stat`; the fields are counted from 1 in proc(5):
//!
//! ```text
//! 8609 (a (b) c) R 8596 8596 8005 0 -1 4194304 99 0 0 0 7 3 0 0 20 0 1 0 228849 3133440 382 ...
//! ```
//!
//! The name is the program's own choice and is printed as it is: blanks, brackets and line feeds are in it.
//! Behind the last `)` no later field can hold one.

use nodewise_machine::CpuId;
use nodewise_machine::id::Id as _;

use super::{ParseError, digits};
use crate::process::Pid;

/// `PF_KTHREAD` of `include/linux/sched.h`: a thread of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The fields that are used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PidStat<'t> {
    pub pid: Pid,
    /// The name that it chose itself: not fit for a terminal.
    pub name: &'t str,
    pub state: char,
    /// `None` for those that have no parent (0).
    pub parent: Option<Pid>,
    pub kernel_thread: bool,
    pub minor_faults: u64,
    pub major_faults: u64,
    /// In ticks of `USER_HZ`.
    pub user_ticks: u64,
    /// In ticks of `USER_HZ`.
    pub system_ticks: u64,
    pub threads: u32,
    /// When it began, in ticks since boot.
    pub started_ticks: u64,
    /// Its address space in bytes.
    pub virtual_bytes: u64,
    /// Resident pages, imprecise.
    pub resident_pages: u64,
    /// The CPU that it ran on last. Linux 2.2.8.
    pub processor: Option<CpuId>,
    /// Its scheduling policy: `SCHED_FIFO` is 1. Linux 2.5.19.
    pub policy: Option<u32>,
}

impl PidStat<'_> {
    /// CPU time in ticks.
    pub const fn cpu_ticks(&self) -> u64 {
        self.user_ticks.saturating_add(self.system_ticks)
    }
}

/// Reads the line.
///
/// # Errors
/// A text without a number, a name in brackets and the fields up to the resident pages.
pub fn parse(text: &str) -> Result<PidStat<'_>, ParseError> {
    let error = |expected: &str, found: &str| ParseError::new(1, expected, found);
    let (pid, rest) = text.split_once(" (").ok_or_else(|| error("a number and a name in brackets", text))?;
    let (name, rest) = rest.rsplit_once(')').ok_or_else(|| error("a name that ends with a bracket", text))?;
    let pid = digits(pid).map(Pid::new).ok_or_else(|| error("a process number", pid))?;
    let mut fields = Fields { words: rest.split_ascii_whitespace(), next: 3 };
    let state = fields.word(3)?;
    let mut letters = state.chars();
    let state = match (letters.next(), letters.next()) {
        (Some(letter), None) => letter,
        _ => return Err(error("a state of one letter", state)),
    };
    let parent = fields.number(4)?;
    let kernel_thread = fields.number::<u64>(9)? & KERNEL_THREAD != 0;
    Ok(PidStat {
        pid,
        name,
        state,
        parent: Some(parent).filter(|parent| *parent != 0).map(Pid::new),
        kernel_thread,
        minor_faults: fields.number(10)?,
        major_faults: fields.number(12)?,
        user_ticks: fields.number(14)?,
        system_ticks: fields.number(15)?,
        threads: fields.number(20)?,
        started_ticks: fields.number(22)?,
        virtual_bytes: fields.number(23)?,
        resident_pages: fields.number(24)?,
        processor: fields.number(39).ok().filter(|cpu| *cpu < CpuId::LIMIT).map(CpuId::new),
        policy: fields.number(41).ok(),
    })
}

/// The words behind the name, by the number of their field.
struct Fields<'t> {
    words: std::str::SplitAsciiWhitespace<'t>,
    next: usize,
}

impl<'t> Fields<'t> {
    /// The word of this field, which lies behind those that were asked for before.
    fn word(&mut self, field: usize) -> Result<&'t str, ParseError> {
        let word = self.words.nth(field - self.next);
        self.next = field + 1;
        word.ok_or_else(|| ParseError::new(1, format!("field {field}"), ""))
    }

    fn number<T: std::str::FromStr>(&mut self, field: usize) -> Result<T, ParseError> {
        let word = self.word(field)?;
        digits(word).ok_or_else(|| ParseError::new(1, format!("a number in field {field}"), word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// Linux 6.18.
    const NEW: &str = "10667 (cat) R 10665 10665 8005 0 -1 4194304 99 0 2 0 7 3 0 0 20 0 1 0 228849 3133440 382 18446744073709551615 93920450834432 93920450854313 140732290401872 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 93920450870320 93920450871936 93921218338816 140732290407138 140732290407158 140732290407158 140732290408427 0\n";
    /// Linux 2.6.32: 44 fields.
    const OLD: &str = "2 (kthreadd) S 0 0 0 0 -1 2149613632 0 0 0 0 0 4 0 0 20 0 1 0 3 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 18446744071579517590 0 0 0 3 0 0 0 0 0\n";

    #[test]
    fn the_fields_of_two_releases_are_read() {
        let new = parse(NEW).unwrap();
        assert_eq!(
            (new.pid, new.name, new.state, new.parent),
            (Pid::new(10667), "cat", 'R', Some(Pid::new(10665)))
        );
        assert_eq!((new.minor_faults, new.major_faults, new.cpu_ticks()), (99, 2, 10));
        assert_eq!((new.threads, new.started_ticks), (1, 228_849));
        assert_eq!((new.virtual_bytes, new.resident_pages), (3_133_440, 382));
        assert_eq!((new.processor, new.kernel_thread), (Some(CpuId::new(1)), false));
        let realtime = NEW.replace(" 17 1 0 0 ", " 17 1 50 1 ");
        assert_eq!((new.policy, parse(&realtime).unwrap().policy), (Some(0), Some(1)));
        let old = parse(OLD).unwrap();
        assert_eq!((old.name, old.parent, old.kernel_thread), ("kthreadd", None, true));
        assert_eq!((old.processor, old.cpu_ticks()), (Some(CpuId::new(3)), 4));
    }

    #[test]
    fn a_name_may_hold_what_surrounds_it() {
        let named = NEW.replace("(cat)", "(a) R 1 (b\n) )");
        let stat = parse(&named).unwrap();
        assert_eq!((stat.name, stat.state, stat.started_ticks), ("a) R 1 (b\n) ", 'R', 228_849));
    }

    #[test]
    fn what_is_cut_is_refused() {
        for end in 0..OLD.len() {
            let _ = parse(&OLD[..end]);
        }
        assert_eq!(parse("7 (x) S 1").unwrap_err().sentence(), "expected field 9, found nothing");
        assert_eq!(
            parse("7 x").unwrap_err().sentence(),
            "expected a number and a name in brackets, found \"7 x\""
        );
        assert_eq!(
            parse("7 (x").unwrap_err().sentence(),
            "expected a name that ends with a bracket, found \"7 (x\""
        );
        let bad = parse("7 (x) S 1 2 3 4 5 -9").unwrap_err();
        assert_eq!(bad.sentence(), "expected a number in field 9, found \"-9\"");
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(
            pid in any::<u32>(), name in any::<String>(), state in proptest::char::range('A', 'Z'),
            ticks in any::<[u32; 2]>(), n in any::<[u64; 4]>(), threads in any::<u32>(), cpu in 0u32..8192, policy in 0u32..7,
        ) {
            let [user, system] = ticks;
            let text = format!(
                "{pid} ({name}) {state} 1 1 1 0 -1 2097152 {} 0 {} 0 {user} {system} 0 0 20 0 {threads} 0 {} 4096 {} 0 0 0 0 0 0 0 0 0 0 0 0 0 17 {cpu} 0 {policy}\n",
                n[0], n[1], n[2], n[3]
            );
            let expected = PidStat {
                pid: Pid::new(pid), name: &name, state, parent: Some(Pid::new(1)), kernel_thread: true,
                minor_faults: n[0], major_faults: n[1], user_ticks: user.into(), system_ticks: system.into(), threads,
                started_ticks: n[2], virtual_bytes: 4096, resident_pages: n[3], processor: Some(CpuId::new(cpu)), policy: Some(policy),
            };
            prop_assert_eq!(parse(&text), Ok(expected));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in r"[0-9]{0,3} \([a-z) \n]{0,5}\)?( [A-Z0-9-]{0,21}){0,40}") {
            let _ = parse(&text);
            let _ = parse(&near);
        }
    }
}
