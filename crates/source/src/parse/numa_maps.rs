//! Where the pages of a process are.
//!
//! # Source
//! `/proc/PID/numa_maps`, Linux 2.6.14. One line per mapping:
//!
//! ```text
//! 7f2c00000000 bind=static:0-1 file=/tmp/a\040b huge anon=8 dirty=8 N0=4 N1=4 kernelpagesize_kB=2048
//! ```
//!
//! Everything behind `huge` is there only when the mapping has pages. Counts are in pages of
//! the line's own `kernelpagesize_kB`. A policy may hold a blank (`prefer (many):3`), and the kernel
//! cuts it after 63 characters. Paths have octal escapes for blanks, line feeds and `=`, so `N0=`
//! inside a path cannot be taken for a count.

pub mod sums;

use nodewise_machine::id::Id as _;
use nodewise_machine::{Bytes, MemPolicy, NodeId, PolicyMode};

use super::number::hex_digits;
use super::{Parsed, Problems, digits, kib, lines, unescape};

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Mapping {
    pub start: u64,
    /// Its policy in the kernel's words, as it was read.
    pub policy_text: String,
    /// Its policy; `None` when the words were cut or are not known.
    pub policy: Option<MemPolicy>,
    /// The file behind it, escapes decoded and otherwise as it was read.
    pub file: Option<String>,
    pub kind: MappingKind,
    /// Whether the mapping is made of pages from a huge page pool (`huge`).
    pub huge: bool,
    /// Pages per node, in the order of the line.
    pub pages: Vec<(NodeId, u64)>,
    /// The size of those pages; missing when there are none.
    pub page_size: Option<Bytes>,
    /// Anonymous pages.
    pub anon: Option<u64>,
    /// Dirty pages.
    pub dirty: Option<u64>,
    /// Mapped pages, printed when they differ from both `anon` and `dirty`.
    pub mapped: Option<u64>,
    /// The most processes that share one page, printed above 1.
    pub mapmax: Option<u64>,
    /// Pages in the swap cache.
    pub swapcache: Option<u64>,
    /// Active pages, printed when they are fewer than all.
    pub active: Option<u64>,
    /// Pages under write-back.
    pub writeback: Option<u64>,
}

/// The kind of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MappingKind {
    /// A file or anonymous memory.
    #[default]
    Other,
    /// The heap of `brk(2)`.
    Heap,
    /// The stack of the main thread.
    Stack,
}

impl Mapping {
    /// Bytes per node; `None` when the size of the pages is missing.
    pub fn bytes(&self) -> Option<impl Iterator<Item = (NodeId, Bytes)>> {
        let size = self.page_size?;
        Some(self.pages.iter().map(move |(node, pages)| (*node, size.times(*pages))))
    }
}

/// Reads every line.
pub fn parse(text: &str) -> Parsed<Vec<Mapping>> {
    let mut parsed = Parsed::<Vec<Mapping>>::default();
    for (number, line) in lines(text).filter(|(_, line)| !line.trim().is_empty()) {
        let mapping = parse_line(line, number, &mut parsed.problems);
        parsed.value.extend(mapping);
    }
    parsed
}

/// Reads one line; `None` when it has no address. What is wrong further on is added to the problems
/// and left out; words that no release before this one printed are passed over.
pub fn parse_line(line: &str, number: u32, problems: &mut Problems) -> Option<Mapping> {
    let line = line.trim_matches([' ', '\n']);
    let (address, rest) = line.split_once(' ').unwrap_or((line, ""));
    let Some(start) = hex_digits(address) else {
        problems.add(number, "an address in hexadecimal", line);
        return None;
    };
    let (policy_text, words) = split_policy(rest);
    if policy_text.is_empty() {
        problems.add(number, "a policy after the address", line);
    }
    let policy_text = policy_text.to_owned();
    let mut mapping = Mapping { start, policy: policy_text.parse().ok(), policy_text, ..Mapping::default() };
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        if let Err(expected) = mapping.take(word) {
            problems.add(number, expected, word);
        }
    }
    Some(mapping)
}

/// The policy, which may hold a blank of its own, and the words behind it.
fn split_policy(text: &str) -> (&str, &str) {
    let blank = [PolicyMode::PreferredMany, PolicyMode::WeightedInterleave]
        .map(PolicyMode::kernel_word)
        .into_iter()
        .find(|word| text.starts_with(word));
    let from = blank.map_or(0, str::len);
    let end = text[from..].find(' ').map_or(text.len(), |at| from + at);
    (&text[..end], &text[end..])
}

impl Mapping {
    fn take(&mut self, word: &str) -> Result<(), &'static str> {
        let Some((name, value)) = word.split_once('=') else {
            match word {
                "heap" => self.kind = MappingKind::Heap,
                "stack" => self.kind = MappingKind::Stack,
                "huge" => self.huge = true,
                _ => (),
            }
            return Ok(());
        };
        let count = || digits(value).map(Some).ok_or("a number of pages below 2^64");
        match name {
            "file" => self.file = Some(unescape(value)),
            "anon" => self.anon = count()?,
            "dirty" => self.dirty = count()?,
            "mapped" => self.mapped = count()?,
            "mapmax" => self.mapmax = count()?,
            "swapcache" => self.swapcache = count()?,
            "active" => self.active = count()?,
            "writeback" => self.writeback = count()?,
            "kernelpagesize_kB" => self.page_size = Some(kib(value).ok_or("a page size in kB below 2^54")?),
            _ => {
                let Some(node) = name.strip_prefix('N') else { return Ok(()) };
                let node = digits(node).filter(|node| *node < NodeId::LIMIT).ok_or("a node as in N0=1")?;
                self.pages.push((NodeId::new(node), digits(value).ok_or("a number of pages below 2^64")?));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeSet;
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

    fn read(line: &str) -> Mapping {
        let mut problems = Problems::default();
        let mapping = parse_line(line, 1, &mut problems).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        mapping
    }

    fn n(number: u32) -> NodeId {
        NodeId::new(number)
    }

    #[test]
    fn every_part_of_a_line_is_read() {
        let mapping = read(
            "7f2c00000000 bind=static:0-1 file=/tmp/a\\040b\\075c huge anon=8 dirty=7 mapped=9 mapmax=2 swapcache=1 active=3 writeback=4 N0=4 N255=5 kernelpagesize_kB=2048",
        );
        assert_eq!(mapping.start, 0x7f2c_0000_0000);
        assert_eq!(mapping.policy.as_ref().unwrap().to_string(), "bind=static:0-1");
        assert_eq!(mapping.file.as_deref(), Some("/tmp/a b=c"));
        assert!(mapping.huge);
        assert_eq!(mapping.pages, [(n(0), 4), (n(255), 5)]);
        assert_eq!(mapping.bytes().unwrap().last(), Some((n(255), Bytes::from_mib(10))));
        assert_eq!((mapping.anon, mapping.dirty, mapping.mapped), (Some(8), Some(7), Some(9)));
        assert_eq!((mapping.mapmax, mapping.swapcache), (Some(2), Some(1)));
        assert_eq!((mapping.active, mapping.writeback), (Some(3), Some(4)));
    }

    #[test]
    fn a_policy_may_hold_a_blank() {
        let many = read("7f prefer (many):3,5 heap anon=1 N3=1 kernelpagesize_kB=4");
        assert_eq!(many.policy, Some(MemPolicy::new(PolicyMode::PreferredMany, NodeSet::from([3, 5]))));
        assert_eq!(many.kind, MappingKind::Heap);
        let weighted = read("7f weighted interleave:0-1 stack");
        assert_eq!(weighted.policy.unwrap().mode, PolicyMode::WeightedInterleave);
        assert_eq!((weighted.kind, weighted.pages.len(), weighted.page_size), (MappingKind::Stack, 0, None));
    }

    #[test]
    fn a_policy_that_was_cut_or_is_not_known_is_kept_as_text() {
        assert_eq!(read("7f bind:0-1,3- anon=1").policy, None);
        let unknown = read("7f magic:0 anon=1 N0=1 kernelpagesize_kB=4");
        assert_eq!((unknown.policy_text.as_str(), unknown.policy), ("magic:0", None));
        assert_eq!(unknown.pages, [(n(0), 1)]);
    }

    #[test]
    fn a_count_in_a_path_is_no_count() {
        let mapping = read("7f default file=/tmp/x\\040N0\\0759 mapped=1 N1=1 kernelpagesize_kB=4");
        assert_eq!(mapping.file.as_deref(), Some("/tmp/x N0=9"));
        assert_eq!(mapping.pages, [(n(1), 1)]);
    }

    #[test]
    fn what_is_not_known_is_passed_over_and_what_overflows_is_told() {
        let parsed = parse(
            "7f default shiny=1 newword N0=18446744073709551616 anon=-1 N0=5 kernelpagesize_kB=4\nxyz default\n\n80 default N99999=1",
        );
        assert_eq!(parsed.value.len(), 2);
        assert_eq!((parsed.value[0].anon, &parsed.value[0].pages), (None, &vec![(n(0), 5)]));
        assert_eq!(
            parsed.problems.first.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "line 1: expected a number of pages below 2^64, found \"N0=18446744073709551616\"",
                "line 1: expected a number of pages below 2^64, found \"anon=-1\"",
                "line 2: expected an address in hexadecimal, found \"xyz default\"",
                "line 4: expected a node as in N0=1, found \"N99999=1\"",
            ]
        );
    }

    #[test]
    fn sizes_of_absurd_counts_stay_in_range() {
        let mapping = read("7f default N0=18446744073709551615 kernelpagesize_kB=4");
        assert_eq!(mapping.bytes().unwrap().next(), Some((n(0), Bytes::new(u64::MAX))));
        assert!(read("7f default N0=1").bytes().is_none(), "no page size, no bytes");
    }

    fn line() -> impl Strategy<Value = (u64, Option<String>, Vec<(u32, u64)>, u64)> {
        let pages = prop::collection::vec((0u32..1024, any::<u64>()), 0..5);
        (any::<u64>(), prop::option::of("/[ -~]{0,20}"), pages, 1u64..1 << 30)
    }

    proptest! {
        #[test]
        fn what_the_kernel_prints_is_read_back((start, file, pages, kib) in line()) {
            let escaped = file.as_ref().map(|file| {
                file.chars().map(|c| match c { ' ' => "\\040".into(), '=' => "\\075".into(), '\\' => "\\134".into(), c => c.to_string() }).collect::<String>()
            });
            let mut text = format!("{start:08x} default");
            text.extend(escaped.map(|file| format!(" file={file}")));
            text.extend(pages.iter().map(|(node, pages)| format!(" N{node}={pages}")));
            text += &format!(" kernelpagesize_kB={kib}\n");
            let parsed = parse(&text);
            prop_assert!(parsed.problems.is_empty());
            let mapping = &parsed.value[0];
            prop_assert_eq!(mapping.start, start);
            prop_assert_eq!(&mapping.file, &file);
            prop_assert_eq!(&mapping.pages, &pages.iter().map(|(node, pages)| (n(*node), *pages)).collect::<Vec<_>>());
            prop_assert_eq!(mapping.page_size, Some(Bytes::from_kib(kib)));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in r"([0-9a-f]{1,17} (default|bind|prefer \(many\)|weighted)[:=0-9]{0,4}( [NAanofile]{1,5}=?[0-9\\]{0,21}){0,4}\n){0,3}") {
            let _ = parse(&text);
            let _ = parse(&near);
        }
    }
}
