//! Which mappings of a process are in transparent huge pages.
//!
//! # Source
//! `/proc/PID/smaps`, Linux 2.6.14; `AnonHugePages` since 2.6.38. Reading it walks the page tables of
//! the whole process.

use nodewise_machine::Bytes;

use super::{Parsed, kib, lines, maps};

/// One mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Anonymous memory of it in transparent huge pages. `None`: this release does not print it.
    pub anon_huge: Option<Bytes>,
}

/// Reads every mapping in order; other fields are passed over.
pub fn parse(text: &str) -> Parsed<Vec<Mapping>> {
    let mut parsed = Parsed::<Vec<Mapping>>::default();
    for (number, line) in lines(text) {
        if let Some(size) = line.strip_prefix("AnonHugePages:") {
            let size = size.trim().strip_suffix("kB").map(str::trim).and_then(kib);
            match (parsed.value.last_mut(), size) {
                (Some(mapping), Some(size)) => mapping.anon_huge = Some(size),
                (None, Some(_)) => parsed.problems.add(number, "a mapping before its fields", line),
                (_, None) => parsed.problems.add(number, "a number of kB", line),
            }
        } else if line.starts_with(|c: char| matches!(c, '0'..='9' | 'a'..='f')) {
            // Names of fields begin with capitals, addresses are in small hexadecimal digits.
            match range(line) {
                Some((start, end)) => parsed.value.push(Mapping { start, end, anon_huge: None }),
                None => parsed.problems.add(number, "two addresses with \"-\" between them", line),
            }
        }
    }
    parsed
}

fn range(line: &str) -> Option<(u64, u64)> {
    maps::range(line.split(' ').next()?)
}

/// Memory in transparent huge pages of the mappings that lie in a range of addresses, in part or
/// whole; `None` when none of them says.
pub fn anon_huge_within(mappings: &[Mapping], start: u64, end: u64) -> Option<Bytes> {
    let within = mappings.iter().filter(|mapping| mapping.start < end && start < mapping.end);
    within.filter_map(|mapping| mapping.anon_huge).reduce(|sum, size| sum + size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    /// As Linux 6.12 prints it, shortened, and as 2.6.32 does.
    const SAMPLE: &str = "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \nSize:               4096 kB\nRss:                4096 kB\nAnonHugePages:      2048 kB\nVmFlags: rd wr mr mw me ac sd hg \n7f0000400000-7f0000600000 rw-p 00000000 00:00 0          [heap]\nAnonHugePages:         0 kB\nfffe0000-ffff0000 r-xp 00000000 00:00 0 /a b\nReferenced: 4 kB\n";

    #[test]
    fn mappings_are_read_with_their_huge_pages() {
        let parsed = parse(SAMPLE);
        assert!(parsed.problems.is_empty());
        let sizes: Vec<Option<Bytes>> = parsed.value.iter().map(|mapping| mapping.anon_huge).collect();
        assert_eq!(sizes, [Some(Bytes::from_mib(2)), Some(Bytes::new(0)), None]);
        assert_eq!(parsed.value[1].start, 0x7f00_0040_0000);
    }

    #[test]
    fn huge_pages_are_summed_where_mappings_touch_the_range() {
        let mappings = parse(SAMPLE).value;
        let check = |start, end, expected| assert_eq!(anon_huge_within(&mappings, start, end), expected);
        check(0x7f00_0000_0000, 0x7f00_0060_0000, Some(Bytes::from_mib(2)));
        check(0x7f00_0040_0000, 0x7f00_0060_0000, Some(Bytes::new(0)));
        check(0xfffe_0000, 0xffff_0000, None);
        check(0x1000, 0x2000, None);
    }

    #[test]
    fn bad_lines_cost_one_line_each() {
        let parsed = parse(
            "AnonHugePages: 4 kB\n7f00-7f00 rw-p\nf-\n1000-2000 r\nAnonHugePages: x kB\nAnonHugePages: 8 kB\n",
        );
        assert_eq!(parsed.problems.count(), 4);
        assert_eq!(
            parsed.value,
            [Mapping { start: 0x1000, end: 0x2000, anon_huge: Some(Bytes::from_kib(8)) }]
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(start in 0u64..u64::MAX, length in 1u64..1 << 40, kib in 0u64..1 << 40) {
            let end = start.saturating_add(length);
            let parsed = parse(&format!("{start:x}-{end:x} rw-p 00000000 00:00 0\nAnonHugePages: {kib:9} kB\n"));
            prop_assert_eq!(parsed.value, [Mapping { start, end, anon_huge: Some(Bytes::from_kib(kib)) }]);
        }

        #[test]
        fn any_text_is_survived(text in any::<String>()) {
            let parsed = parse(&text);
            prop_assert_eq!(anon_huge_within(&parsed.value, 0, 0), None);
        }
    }
}
