//! The memory of a process, summed over its mappings.
//!
//! # Source
//! `/proc/PID/smaps_rollup`, Linux 4.14. Reading it walks the page tables of the whole process.

use nodewise_machine::Bytes;

use super::{Parsed, kib, lines};

/// Sums over all mappings. `None`: this release does not print it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SmapsRollup {
    /// Resident memory.
    pub rss: Option<Bytes>,
    /// Resident memory, shared pages divided by those who share them. Only used for ratios.
    pub pss: Option<Bytes>,
    /// Anonymous memory.
    pub anonymous: Option<Bytes>,
    /// Anonymous memory in transparent huge pages.
    pub anon_huge: Option<Bytes>,
    /// Shared memory mapped by huge pages. Linux 4.8.
    pub shmem_huge: Option<Bytes>,
    /// Files mapped by huge pages. Linux 5.4.
    pub file_huge: Option<Bytes>,
    /// Shared pages of a huge page pool; not part of `rss`.
    pub shared_hugetlb: Option<Bytes>,
    /// Private pages of a huge page pool; not part of `rss`.
    pub private_hugetlb: Option<Bytes>,
    /// Swapped out.
    pub swap: Option<Bytes>,
}

impl SmapsRollup {
    /// Memory in huge pages of any kind; `None` when no such field was there.
    pub fn huge(&self) -> Option<Bytes> {
        let kinds =
            [self.anon_huge, self.shmem_huge, self.file_huge, self.shared_hugetlb, self.private_hugetlb];
        kinds.into_iter().flatten().reduce(|sum, size| sum + size)
    }

    fn field(&mut self, name: &str) -> Option<&mut Option<Bytes>> {
        Some(match name {
            "Rss" => &mut self.rss,
            "Pss" => &mut self.pss,
            "Anonymous" => &mut self.anonymous,
            "AnonHugePages" => &mut self.anon_huge,
            "ShmemPmdMapped" => &mut self.shmem_huge,
            "FilePmdMapped" => &mut self.file_huge,
            "Shared_Hugetlb" => &mut self.shared_hugetlb,
            "Private_Hugetlb" => &mut self.private_hugetlb,
            "Swap" => &mut self.swap,
            _ => return None,
        })
    }
}

/// Reads the fields above; the header and other fields are passed over.
pub fn parse(text: &str) -> Parsed<SmapsRollup> {
    let mut parsed = Parsed::<SmapsRollup>::default();
    for (number, line) in lines(text) {
        let Some((name, value)) = line.split_once(':') else { continue };
        let Some(field) = parsed.value.field(name) else { continue };
        match value.trim().strip_suffix("kB").map(str::trim).and_then(kib) {
            Some(size) => *field = Some(size),
            None => parsed.problems.add(number, "a number of kB", line),
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn sums_are_read_below_their_header() {
        let parsed = parse(
            "555749864000-7ffcb7643000 ---p 00000000 00:00 0                          [rollup]\nRss:                1740 kB\nAnonHugePages:      1024 kB\nPrivate_Hugetlb:    2048 kB\nSwap:                  0 kB\n",
        );
        assert!(parsed.problems.is_empty());
        assert_eq!(parsed.value.rss, Some(Bytes::from_kib(1740)));
        assert_eq!(parsed.value.huge(), Some(Bytes::from_kib(3072)));
        assert_eq!(parsed.value.pss, None);
        assert_eq!(SmapsRollup::default().huge(), None, "missing is not 0");
    }

    #[test]
    fn a_bad_line_costs_one_line() {
        let parsed = parse("Rss: x kB\nPss: 18446744073709551615 kB\nSwap: 4\nAnonymous: 4 kB\n");
        assert_eq!((parsed.problems.count(), parsed.value.anonymous), (3, Some(Bytes::from_kib(4))));
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(rss in 0u64..1 << 54, huge in 0u64..1 << 54) {
            let parsed = parse(&format!("Rss: {rss:16} kB\nAnonHugePages: {huge} kB\n"));
            prop_assert_eq!(parsed.value.rss, Some(Bytes::from_kib(rss)));
            prop_assert_eq!(parsed.value.huge(), Some(Bytes::from_kib(huge)));
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>()) {
            let _ = parse(&text).value.huge();
        }
    }
}
