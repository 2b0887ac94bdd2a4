//! Where pages were before they were moved, as a file: what takes a migration back.
//!
//! ```text
//! nodewise.moved/1
//! process 4711 123456 6f1d2c3b-0000-4000-8000-123456789abc
//! 7f2c00000000 4194304 4096 anon 0
//! ```
//!
//! The process has its number, the tick of its start, and the boot. A run of pages has the address of the first in
//! hexadecimal, its length in bytes, the size of a page, the kind of memory, and the node that it was on. Runs ascend
//! and do not overlap.

use nodewise_machine::id::Id as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::printable::quote;
use nodewise_machine::{Bytes, NodeId};

use super::MemoryKind;
use crate::boot;
use crate::parse::digits;
use crate::parse::number::hex_digits;
use crate::process::Pid;

/// The first line.
pub const SCHEMA: &str = "nodewise.moved/1";

/// Pages that followed one another and were on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub start: u64,
    /// In bytes, a multiple of the page size.
    pub length: u64,
    pub page_size: Bytes,
    pub kind: MemoryKind,
    /// Where they were.
    pub node: NodeId,
}

impl Run {
    /// The address behind the last page.
    pub const fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }
}

/// The pages of a process that were moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub pid: Pid,
    pub started_at_ticks: u64,
    /// The boot in which it ran.
    pub boot: String,
    /// By address.
    pub runs: Vec<Run>,
}

impl Moved {
    /// Nothing of a process has moved yet.
    pub const fn new(pid: Pid, started_at_ticks: u64, boot: String) -> Self {
        Self { pid, started_at_ticks, boot, runs: Vec::new() }
    }

    /// Writes it as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{SCHEMA}\nprocess {} {} {}\n", self.pid, self.started_at_ticks, self.boot);
        for Run { start, length, page_size, kind, node } in &self.runs {
            text.push_str(&format!("{start:x} {length} {} {kind} {node}\n", page_size.get()));
        }
        text
    }

    /// Reads what [`Moved::to_text`] wrote.
    ///
    /// # Errors
    /// The first line that is none of these, with its number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines = (1..).zip(text.lines());
        let wrong = |number: u32, line: &str, expected: &str| {
            format!("line {number} is {}: expected {expected}", quote(line))
        };
        let (number, line) = lines.next().unwrap_or((1, ""));
        if line != SCHEMA {
            return Err(wrong(number, line, SCHEMA));
        }
        let (number, line) = lines.next().unwrap_or((2, ""));
        let mut moved = process(line)
            .ok_or_else(|| wrong(number, line, "process, its number, the tick of its start and a boot id"))?;
        for (number, line) in lines {
            let run = run(line).ok_or_else(|| {
                wrong(number, line, "an address, a length, a page size, a kind of memory and a node")
            })?;
            if moved.runs.last().is_some_and(|last| last.end() > run.start) {
                return Err(wrong(number, line, "an address behind the run before"));
            }
            moved.runs.push(run);
        }
        Ok(moved)
    }

    /// Adds a page that was on a node; pages are sorted and joined by [`Moved::join`].
    pub fn add(&mut self, start: u64, page_size: Bytes, kind: MemoryKind, node: NodeId) {
        let length = page_size.get();
        match self.runs.last_mut() {
            Some(last)
                if last.end() == start
                    && (last.page_size, last.kind, last.node) == (page_size, kind, node) =>
            {
                last.length += length;
            }
            _ => self.runs.push(Run { start, length, page_size, kind, node }),
        }
    }

    /// Sorts the runs by address, and joins those that touch.
    pub fn join(&mut self) {
        let mut runs = std::mem::take(&mut self.runs);
        runs.order_by_key(|run| run.start);
        for run in runs {
            match self.runs.last_mut() {
                Some(last)
                    if last.end() == run.start
                        && (last.page_size, last.kind, last.node) == (run.page_size, run.kind, run.node) =>
                {
                    last.length += run.length;
                }
                // A page that was moved twice is taken back to where it was first.
                Some(last) if last.end() > run.start => {}
                _ => self.runs.push(run),
            }
        }
    }

    /// All of it in bytes.
    pub fn size(&self) -> Bytes {
        self.runs.iter().map(|run| Bytes::new(run.length)).sum()
    }
}

fn process(line: &str) -> Option<Moved> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["process", pid, started, boot] = words.as_slice() else { return None };
    let boot = Some(*boot).filter(|boot| boot::is_id(boot))?.to_owned();
    let pid = digits(pid).filter(|pid| *pid > 0)?;
    Some(Moved { pid: Pid::new(pid), started_at_ticks: digits(started)?, boot, runs: Vec::new() })
}

fn run(line: &str) -> Option<Run> {
    let words: Vec<&str> = line.split(' ').collect();
    let [start, length, page_size, kind, node] = words.as_slice() else { return None };
    let page_size: u64 = digits(page_size).filter(|size: &u64| size.is_power_of_two() && *size >= 4096)?;
    let (start, length) = (hex_digits(start)?, digits::<u64>(length)?);
    let is_whole = length > 0 && length % page_size == 0 && start % page_size == 0;
    start.checked_add(length).filter(|_| is_whole)?;
    let node = digits(node).filter(|node| *node < NodeId::LIMIT)?;
    Some(Run {
        start,
        length,
        page_size: Bytes::new(page_size),
        kind: MemoryKind::from_word(kind)?,
        node: NodeId::new(node),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    fn check(lines: &str, expected: &str) {
        let text = format!("{SCHEMA}\nprocess 7 8 a-b\n{lines}");
        assert_eq!(Moved::parse(&text).unwrap_err(), expected, "{lines:?}");
    }

    #[test]
    fn a_file_that_cannot_be_trusted_is_refused_with_the_line() {
        assert_eq!(Moved::parse("").unwrap_err(), "line 1 is \"\": expected nodewise.moved/1");
        let expected =
            "line 2 is \"process 0 8 a\": expected process, its number, the tick of its start and a boot id";
        assert_eq!(Moved::parse(&format!("{SCHEMA}\nprocess 0 8 a\n")).unwrap_err(), expected);
        for line in [
            "1000 4096 4096 anon",
            "1000 4097 4096 anon 0",
            "1000 0 4096 anon 0",
            "1001 4096 4096 anon 0",
            "1000 4096 4096 code 0",
            "1000 4096 3 anon 0",
            "fffffffffffff000 8192 4096 anon 0",
        ] {
            let expected = format!(
                "line 3 is \"{line}\": expected an address, a length, a page size, a kind of memory and a node"
            );
            check(&format!("{line}\n"), &expected);
        }
        check(
            "1000 8192 4096 anon 0\n2000 4096 4096 anon 0\n",
            "line 4 is \"2000 4096 4096 anon 0\": expected an address behind the run before",
        );
    }

    #[test]
    fn pages_that_touch_are_one_run_and_the_first_place_counts() {
        let mut moved =
            Moved { pid: Pid::new(7), started_at_ticks: 8, boot: "a".to_owned(), runs: Vec::new() };
        let page = Bytes::from_kib(4);
        for (start, node) in [(0x3000, 1), (0x1000, 0), (0x2000, 0), (0x2000, 2), (0x4000, 1)] {
            moved.add(start, page, MemoryKind::Anon, NodeId::new(node));
        }
        moved.join();
        let runs: Vec<(u64, u64, u32)> =
            moved.runs.iter().map(|run| (run.start, run.length, run.node.number())).collect();
        assert_eq!(runs, [(0x1000, 0x2000, 0), (0x3000, 0x2000, 1)]);
        assert_eq!(moved.size(), Bytes::from_kib(16));
    }

    proptest! {
        #[test]
        fn a_file_is_read_back(
            pid in 1u32.., ticks in any::<u64>(), boot in "[0-9a-f-]{1,36}",
            runs in prop::collection::vec((0u64..1000, 1u64..1000, 0usize..6, 0u32..1024), 0..20),
        ) {
            let mut at = 0x1000;
            let runs = runs.into_iter().map(|(gap, pages, kind, node)| {
                let start = at + gap * 4096;
                at = start + pages * 4096;
                let kind = MemoryKind::ALL[kind];
                Run { start, length: pages * 4096, page_size: Bytes::from_kib(4), kind, node: NodeId::new(node) }
            });
            let moved = Moved { pid: Pid::new(pid), started_at_ticks: ticks, boot, runs: runs.collect() };
            prop_assert_eq!(Moved::parse(&moved.to_text()), Ok(moved));
        }

        #[test]
        fn any_text_is_survived(text in any::<String>(), lines in "([0-9a-f]{1,17}( [0-9a-z]{0,20}){0,4}\n){0,5}") {
            let _ = Moved::parse(&text);
            let _ = Moved::parse(&format!("{SCHEMA}\nprocess 1 2 a\n{lines}"));
        }
    }
}
