//! Pools of huge pages on a kernel command line.
//!
//! # Source
//! `Documentation/admin-guide/mm/hugetlbpage.rst`: `hugepages=` belongs to the size that `hugepagesz=` or
//! `default_hugepagesz=` named last before it, and to the kernel's default size where none did; since Linux 5.16
//! it takes numbers for each node (`0:512,1:256`).

use std::collections::BTreeMap;
use std::ops::Range;

use nodewise_machine::{Bytes, NodeId};

use crate::error::Refusal;
use crate::line::{begins, ends, insert, kernel_words, remove, value_of, words};

/// How the words begin that name a size, and the number of pages.
pub(crate) const SIZE: &str = "hugepagesz=";
const DEFAULT_SIZE: &str = "default_hugepagesz=";
pub(crate) const PAGES: &str = "hugepages=";

/// The size to which a number of pages belongs, at a place of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SizeInForce {
    /// No word has named one yet.
    #[default]
    KernelDefault,
    Named(Bytes),
    /// Behind `--`, where nothing is the kernel's.
    Ended,
}

impl SizeInForce {
    /// Reads a word; gives its number of pages where it is one.
    fn read<'a>(&mut self, word: &'a str) -> Option<&'a str> {
        if let Some(size) = value_of(word, SIZE).or_else(|| value_of(word, DEFAULT_SIZE)) {
            *self = Self::Named(bytes(size));
        }
        value_of(word, PAGES)
    }
}

/// The pools that a kernel is to have from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootPools {
    /// Bytes of a page.
    pub size: Bytes,
    /// Whether that is the kernel's default size.
    pub is_default: bool,
    /// Pages by node; nodes with none need not be named.
    pub pages: BTreeMap<NodeId, u64>,
}

impl BootPools {
    /// The two words for it; `None` where no node is to have pages.
    pub fn words(&self) -> Option<String> {
        let pages: Vec<String> = self
            .pages
            .iter()
            .filter(|(_, pages)| **pages > 0)
            .map(|(node, pages)| format!("{node}:{pages}"))
            .collect();
        (!pages.is_empty()).then(|| format!("{SIZE}{} {PAGES}{}", self.size.exact(), pages.join(",")))
    }

    /// No pools of this size.
    pub(crate) fn emptied(&self) -> Self {
        Self { pages: BTreeMap::new(), ..*self }
    }

    /// Replaces the words for this size in a part of a line, or takes them out; gives the size in force behind
    /// what the part was.
    pub(crate) fn apply(&self, line: &mut String, size: SizeInForce) -> Result<SizeInForce, Refusal> {
        let (own, behind) = self.own(line, size)?;
        for word in own.into_iter().rev() {
            remove(line, word);
        }
        if let Some(new) = self.words() {
            let is_of_pools = |word: &Range<usize>| {
                [SIZE, DEFAULT_SIZE, PAGES].iter().any(|prefix| begins(&line[word.clone()], prefix))
            };
            // Not between a size and its number.
            let last = kernel_words(line)?.iter().rposition(is_of_pools);
            insert(line, &new, last.map_or(0, |last| last + 1))?;
        }
        Ok(behind)
    }

    /// The words of a part of a line for this size, and the size in force behind the part.
    ///
    /// # Errors
    /// A number of pages without a size, where it belongs to another one: words put before it would change its
    /// meaning.
    fn own(&self, line: &str, mut size: SizeInForce) -> Result<(Vec<Range<usize>>, SizeInForce), Refusal> {
        let mut own = Vec::new();
        if size == SizeInForce::Ended {
            return Ok((own, size));
        }
        for word in kernel_words(line)? {
            let text = &line[word.clone()];
            let is_pages = size.read(text).is_some();
            match size {
                SizeInForce::KernelDefault if is_pages && !self.is_default => {
                    return Err(Refusal::NoPageSize);
                }
                size if (is_pages || begins(text, SIZE)) && self.has(size) => own.push(word),
                _ => {}
            }
        }
        Ok((own, if ends(line) { SizeInForce::Ended } else { size }))
    }

    /// Whether numbers of pages belong to these pools where this size is in force.
    fn has(&self, size: SizeInForce) -> bool {
        size == SizeInForce::Named(self.size) || self.is_default && size == SizeInForce::KernelDefault
    }

    /// Refuses a change after which a number of pages belongs to another size.
    pub(crate) fn check_others(&self, before: &str, after: &str) -> Result<(), Refusal> {
        if self.others(before)? == self.others(after)? { Ok(()) } else { Err(Refusal::SizeInAnotherPart) }
    }

    /// The numbers of pages of other sizes, and their sizes.
    fn others<'a>(&self, line: &'a str) -> Result<Vec<(SizeInForce, &'a str)>, Refusal> {
        let mut size = SizeInForce::default();
        let words = kernel_words(line)?;
        let numbers = words.into_iter().filter_map(|word| {
            let pages = size.read(&line[word])?;
            Some((size, pages))
        });
        Ok(numbers.filter(|(size, _)| !self.has(*size)).collect())
    }
}

/// Whether two command lines have the same words but for those for pools.
pub(crate) fn differ_in_pools_only(one: &str, other: &str) -> bool {
    let rest = |line: &str| -> Option<Vec<String>> {
        let words = words(line).ok()?.into_iter().map(|word| &line[word]);
        let others = words.filter(|word| !begins(word, SIZE) && !begins(word, PAGES));
        Some(others.map(str::to_owned).collect())
    };
    rest(one).is_some_and(|one| rest(other) == Some(one))
}

/// A size as the kernel reads it.
///
/// # Source
/// `memparse` in `lib/cmdline.c`: a number in base 10, 16 behind `0x` or 8 behind `0`, then at most one letter
/// for a power of 1024; what follows is ignored. No digits are 0, and what does not fit loses its upper bits.
fn bytes(text: &str) -> Bytes {
    let behind_x = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let is_hex = |digits: &&str| digits.starts_with(|c: char| c.is_ascii_hexdigit());
    let (digits, radix) = match behind_x.filter(is_hex) {
        Some(digits) => (digits, 16),
        None => (text, if text.starts_with('0') { 8 } else { 10 }),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (number, unit) = digits.split_at(end);
    let number = number.chars().filter_map(|c| c.to_digit(radix));
    let number =
        number.fold(0_u64, |sum, digit| sum.wrapping_mul(u64::from(radix)).wrapping_add(u64::from(digit)));
    let unit = unit.chars().next().and_then(|unit| "KMGTPE".find(unit.to_ascii_uppercase()));
    Bytes::new(number << unit.map_or(0, |power| 10 * (power + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Change;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn pools(size: Bytes, is_default: bool, pages: &[u64]) -> BootPools {
        let pages = (0..).map(NodeId::new).zip(pages.iter().copied()).collect();
        BootPools { size, is_default, pages }
    }

    #[track_caller]
    fn check(pools: &BootPools, line: &str, expected: &str) {
        for line in [line, expected] {
            let mut line = line.to_owned();
            pools.apply(&mut line, SizeInForce::default()).unwrap();
            assert_eq!(line, expected);
        }
    }

    #[test]
    fn words_of_this_size_are_replaced_and_others_stay() {
        let two = pools(Bytes::from_mib(2), true, &[512, 0, 256]);
        let own = "hugepagesz=2M hugepages=0:512,2:256";
        check(&two, "ro quiet", &format!("ro quiet {own}"));
        check(&two, "ro rootwait quiet", &format!("ro {own} rootwait quiet"));
        check(&two, "ro -- x", &format!("ro {own} -- x"));
        check(&two, "hugepages=9 ro", &format!("ro {own}"));
        check(
            &two,
            "hugepagesz=2048K hugepages=9 hugepagesz=1G hugepages=1 ro",
            &format!("hugepagesz=1G hugepages=1 ro {own}"),
        );
        check(
            &two,
            "hugepagesz=1G rootwait hugepages=1 ro",
            &format!("hugepagesz=1G rootwait hugepages=1 ro {own}"),
        );
        check(&two, "default_hugepagesz=2M hugepages=9 ro", &format!("default_hugepagesz=2M ro {own}"));
        check(
            &two,
            "default_hugepagesz=1G hugepages=9 ro",
            &format!("default_hugepagesz=1G hugepages=9 ro {own}"),
        );
        check(&two, "", own);
        check(&pools(Bytes::from_gib(1), false, &[0, 0]), "a hugepagesz=1G hugepages=4 b", "a b");
    }

    #[test]
    fn a_number_of_another_size_keeps_its_meaning() {
        let gigantic = pools(Bytes::from_gib(1), false, &[1]);
        assert_eq!(Change::pools(gigantic.clone()).apply("hugepages=9"), Err(Refusal::NoPageSize));
        check(
            &gigantic,
            "hugepagesz=2M hugepages=9",
            "hugepagesz=2M hugepages=9 hugepagesz=1G hugepages=0:1",
        );
    }

    #[test]
    fn other_changes_are_told_from_those_of_pools() {
        assert!(differ_in_pools_only("ro quiet", "ro hugepagesz=2M hugepages=0:4 quiet"));
        assert!(differ_in_pools_only("", "hugepagesz=2M hugepages=0:4"));
        assert!(!differ_in_pools_only("ro", "options"));
        assert!(!differ_in_pools_only("ro quiet", "ro numa=fake=2 quiet"));
    }

    #[test]
    fn sizes_are_those_of_the_kernel() {
        for (text, expected) in [
            ("2M", 2 << 20),
            ("2048k", 2 << 20),
            ("65536", 65_536),
            ("1G", 1 << 30),
            ("2MiB", 2 << 20),
            ("0x200000", 2 << 20),
            ("0x2m,", 2 << 20),
            ("02M", 2 << 20),
            ("010", 8),
            ("0x", 0),
            ("0xM", 0),
            ("-2M", 0),
            ("2 M", 2),
            ("", 0),
            ("K", 0),
            ("18446744073709551618M", 2 << 20),
            ("99999999T", 99_999_999 << 40),
        ] {
            assert_eq!(bytes(text), Bytes::new(expected), "{text}");
        }
        for size in [Bytes::from_kib(64), Bytes::from_mib(32), Bytes::from_gib(16), Bytes::from_gib(2048)] {
            assert_eq!(bytes(&size.exact()), size);
        }
    }

    #[test]
    fn words_of_this_size_are_found_however_the_kernel_reads_them() {
        let two = pools(Bytes::from_mib(2), false, &[4]);
        let own = "hugepagesz=2M hugepages=0:4";
        for line in [
            "hugepagesz=0x200000 hugepages=9",
            "hugepagesz=2MiB hugepages=9",
            "\"hugepagesz=2m\" hugepages=9",
        ] {
            check(&two, &format!("{line} ro"), &format!("ro {own}"));
        }
        // A number behind a size of the kernel's is of that size, however the size is written.
        check(
            &two,
            "hugepagesz=0x40000000 hugepages=1 ro",
            &format!("hugepagesz=0x40000000 hugepages=1 ro {own}"),
        );
        check(
            &two,
            "default-hugepagesz=1G hugepages=1 ro",
            &format!("default-hugepagesz=1G hugepages=1 ro {own}"),
        );
    }

    #[test]
    fn a_size_counts_in_the_parts_behind_its_own() {
        let check = |pools: &BootPools, parts: [&str; 2], expected: Result<[&str; 2], Refusal>| {
            let parts = Change::pools(pools.clone()).apply_to_parts(&parts, 0);
            assert_eq!(parts, expected.map(|parts| parts.map(str::to_owned).to_vec()));
        };
        let two = pools(Bytes::from_mib(2), true, &[4]);
        let own = "hugepagesz=2M hugepages=0:4";
        check(&two, ["hugepagesz=1G", "hugepages=4"], Err(Refusal::SizeInAnotherPart));
        check(&two.emptied(), ["hugepagesz=1G", "hugepages=4"], Ok(["hugepagesz=1G", "hugepages=4"]));
        check(&two, ["hugepagesz=2M", "hugepages=4 ro"], Ok([own, "ro"]));
        check(&two, ["ro", "hugepages=4"], Ok([&format!("ro {own}"), ""]));
        let gigantic = pools(Bytes::from_gib(1), false, &[1]);
        let gigantic_own = "hugepagesz=1G hugepages=0:1";
        check(&gigantic, ["ro", "hugepages=4"], Err(Refusal::NoPageSize));
        check(&gigantic, ["hugepagesz=1G", "hugepages=4 ro"], Ok([gigantic_own, "ro"]));
        check(
            &gigantic,
            ["ro -- x", "hugepagesz=1G hugepages=4"],
            Ok([&format!("ro {gigantic_own} -- x"), "hugepagesz=1G hugepages=4"]),
        );
    }

    proptest! {
        #[test]
        fn every_other_word_stays(words in proptest::collection::vec("[a-z=]{1,6}|hugepagesz=(1G|2M)|hugepages=[0-9]|--|rootwait", 0..9), is_default in any::<bool>()) {
            let line = words.join(" ");
            let pools = pools(Bytes::from_mib(2), is_default, &[3]);
            let mut once = line.clone();
            if pools.apply(&mut once, SizeInForce::default()).is_ok() {
                let mut twice = once.clone();
                pools.apply(&mut twice, SizeInForce::default()).unwrap();
                prop_assert_eq!(&once, &twice);
                let others = |line: &str| {
                    line.split(' ').filter(|word| !word.starts_with("huge") && !word.is_empty()).map(str::to_owned).collect::<Vec<_>>()
                };
                prop_assert_eq!(others(&line), others(&once));
            }
        }
    }
}
