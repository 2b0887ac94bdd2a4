//! The mappings of a process in sizes: what is present, in transparent huge pages, swapped out.
//!
//! # Source
//! `/proc/PID/smaps`, Linux 2.6.14; `AnonHugePages` since 2.6.38, `ShmemPmdMapped` since 4.8 and
//! `FilePmdMapped` since 5.4. Reading it walks the page tables of the whole process.

use nodewise_machine::Bytes;

use super::{Parsed, Problems, kib, lines, maps};

/// One mapping.
///
/// `None`: this release does not print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Its memory that is present, without pages of huge page pools: `Rss`.
    pub resident: Option<Bytes>,
    /// Anonymous memory of it in transparent huge pages.
    pub anon_huge: Option<Bytes>,
    /// Shared memory in transparent huge pages: `ShmemPmdMapped`.
    pub shared_huge: Option<Bytes>,
    /// Files in transparent huge pages: `FilePmdMapped`.
    pub file_huge: Option<Bytes>,
    pub swapped: Option<Bytes>,
}

impl Mapping {
    /// All of it in transparent huge pages.
    pub fn transparent(&self) -> Option<Bytes> {
        [self.anon_huge, self.shared_huge, self.file_huge]
            .into_iter()
            .flatten()
            .reduce(|sum, size| sum + size)
    }
}

/// Reads every mapping in order; other fields are passed over.
pub fn parse(text: &str) -> Parsed<Vec<Mapping>> {
    let mut reading = Reading::default();
    lines(text).for_each(|(_, line)| reading.push(line));
    reading.finish()
}

/// A `smaps` file that comes line by line: for a process of very many mappings it is too large to be kept.
#[derive(Debug, Default)]
pub struct Reading {
    mappings: Vec<Mapping>,
    problems: Problems,
    line: u32,
}

impl Reading {
    /// Takes the next line.
    pub fn push(&mut self, line: &str) {
        self.line = self.line.saturating_add(1);
        // Names of fields begin with capitals, addresses are in small hexadecimal digits.
        if line.starts_with(|c: char| matches!(c, '0'..='9' | 'a'..='f')) {
            match range(line) {
                Some((start, end)) => self.mappings.push(Mapping { start, end, ..Mapping::default() }),
                None => self.problems.add(self.line, "two addresses with \"-\" between them", line),
            }
            return;
        }
        let Some((name, value)) = line.split_once(':') else { return };
        let field: fn(&mut Mapping) -> &mut Option<Bytes> = match name {
            "Rss" => |mapping| &mut mapping.resident,
            "AnonHugePages" => |mapping| &mut mapping.anon_huge,
            "ShmemPmdMapped" => |mapping| &mut mapping.shared_huge,
            "FilePmdMapped" => |mapping| &mut mapping.file_huge,
            "Swap" => |mapping| &mut mapping.swapped,
            _ => return,
        };
        let size = value.trim().strip_suffix("kB").map(str::trim).and_then(kib);
        match (self.mappings.last_mut(), size) {
            (Some(mapping), Some(size)) => *field(mapping) = Some(size),
            (None, Some(_)) => self.problems.add(self.line, "a mapping before its fields", line),
            (_, None) => self.problems.add(self.line, "a number of kB", line),
        }
    }

    /// Ends the file.
    pub fn finish(self) -> Parsed<Vec<Mapping>> {
        Parsed { value: self.mappings, problems: self.problems }
    }
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
        assert_eq!(parsed.value[0].resident, Some(Bytes::from_mib(4)));
        assert_eq!(parsed.value[0].swapped, None);
    }

    #[test]
    fn huge_pages_of_all_kinds_are_summed() {
        let parsed = parse(
            "1000-9000 rw-s 0 00:01 7 /x\nAnonHugePages: 4 kB\nShmemPmdMapped: 8 kB\nFilePmdMapped: 16 kB\nSwap: 3 kB\nSwapPss: 9 kB\n",
        );
        assert_eq!(parsed.value[0].transparent(), Some(Bytes::from_kib(28)));
        assert_eq!(parsed.value[0].swapped, Some(Bytes::from_kib(3)));
        assert_eq!(Mapping::default().transparent(), None);
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
            [Mapping {
                start: 0x1000,
                end: 0x2000,
                anon_huge: Some(Bytes::from_kib(8)),
                ..Mapping::default()
            }]
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(start in 0u64..u64::MAX, length in 1u64..1 << 40, kib in 0u64..1 << 40) {
            let end = start.saturating_add(length);
            let parsed = parse(&format!("{start:x}-{end:x} rw-p 00000000 00:00 0\nAnonHugePages: {kib:9} kB\n"));
            let expected = Mapping { start, end, anon_huge: Some(Bytes::from_kib(kib)), ..Mapping::default() };
            prop_assert_eq!(parsed.value, [expected]);
        }

        #[test]
        fn any_text_is_survived(text in any::<String>()) {
            let parsed = parse(&text);
            prop_assert_eq!(anon_huge_within(&parsed.value, 0, 0), None);
        }
    }
}
