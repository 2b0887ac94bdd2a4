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
use crate::line::{insert_at, kernel_words, remove};

/// How the words begin that name a size, and the number of pages.
const SIZE: &str = "hugepagesz=";
const DEFAULT_SIZE: &str = "default_hugepagesz=";
const PAGES: &str = "hugepages=";
/// How a word begins that has its place in a line before others.
const ROOTWAIT: &str = "rootwait";

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
        (!pages.is_empty()).then(|| format!("{SIZE}{} {PAGES}{}", short(self.size), pages.join(",")))
    }

    /// Replaces the words for this size in a line, or takes them out.
    pub(crate) fn apply(&self, line: &mut String, is_wanted: bool) -> Result<(), Refusal> {
        for word in self.own(line)?.into_iter().rev() {
            remove(line, word);
        }
        let Some(new) = self.words().filter(|_| is_wanted) else { return Ok(()) };
        let kernels = kernel_words(line)?;
        let place = |prefix: &str| kernels.iter().rposition(|word| line[word.clone()].starts_with(prefix));
        // Not between a size and its number.
        let last = place(PAGES).or(place(SIZE)).max(place(DEFAULT_SIZE));
        let rootwait = kernels.iter().position(|word| &line[word.clone()] == ROOTWAIT);
        let at = rootwait.filter(|at| last.is_none_or(|last| last < *at)).unwrap_or(kernels.len());
        insert_at(line, &new, at)
    }

    /// The words of a line for this size.
    ///
    /// # Errors
    /// A number of pages without a size, where it belongs to another one: words put before it would change its
    /// meaning.
    fn own(&self, line: &str) -> Result<Vec<Range<usize>>, Refusal> {
        let mut own = Vec::new();
        let mut current = None;
        for word in kernel_words(line)? {
            let text = line[word.clone()].trim_matches('"');
            if let Some(size) = text.strip_prefix(SIZE) {
                current = Some(bytes(size));
                if bytes(size) == Some(self.size) {
                    own.push(word);
                }
            } else if let Some(size) = text.strip_prefix(DEFAULT_SIZE) {
                current = Some(bytes(size));
            } else if text.starts_with(PAGES) {
                match current {
                    Some(size) if size == Some(self.size) => own.push(word),
                    Some(_) => {}
                    None if self.is_default => own.push(word),
                    None => return Err(Refusal::NoPageSize),
                }
            }
        }
        Ok(own)
    }
}

/// Whether two command lines, or files with one, differ in the words for pools and in nothing else.
pub(crate) fn differ_in_pools_only(one: &str, other: &str) -> bool {
    fn rest(text: &str) -> impl Iterator<Item = &str> {
        let words = text.split(|c: char| c.is_ascii_whitespace() || c == '"' || c == '\'');
        // The name of a line that had no words before.
        let is_name = |word: &str| word.is_empty() || word.ends_with('=') || word == "options";
        words.filter(move |word| !is_name(word) && !word.starts_with(SIZE) && !word.starts_with(PAGES))
    }
    rest(one).eq(rest(other))
}

/// A size as the kernel reads it: `2M`, `2048K`, `1g`, or bytes.
fn bytes(text: &str) -> Option<Bytes> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    let number: u64 = digits.parse().ok()?;
    Some(Bytes::new(number.checked_mul(1 << shift)?))
}

/// A size in the largest unit that holds it without a rest.
fn short(size: Bytes) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let unit = units.into_iter().find(|(shift, _)| size.get() > 0 && size.get().trailing_zeros() >= *shift);
    unit.map_or_else(|| size.get().to_string(), |(shift, unit)| format!("{}{unit}", size.get() >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    fn pools(size: Bytes, is_default: bool, pages: &[u64]) -> BootPools {
        let pages = (0..).map(NodeId::new).zip(pages.iter().copied()).collect();
        BootPools { size, is_default, pages }
    }

    #[track_caller]
    fn check(pools: &BootPools, line: &str, expected: &str) {
        for line in [line, expected] {
            let mut line = line.to_owned();
            pools.apply(&mut line, true).unwrap();
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
        assert_eq!(gigantic.apply(&mut "hugepages=9".to_owned(), true), Err(Refusal::NoPageSize));
        check(
            &gigantic,
            "hugepagesz=2M hugepages=9",
            "hugepagesz=2M hugepages=9 hugepagesz=1G hugepages=0:1",
        );
    }

    #[test]
    fn other_changes_are_told_from_those_of_pools() {
        assert!(differ_in_pools_only("ro quiet", "ro hugepagesz=2M hugepages=0:4 quiet"));
        assert!(differ_in_pools_only("X=\"ro\"\n", "X=\"ro hugepagesz=2M hugepages=0:4\"\n"));
        assert!(differ_in_pools_only("Y=1\n", "Y=1\nX=\"hugepagesz=2M hugepages=0:4\"\n"));
        assert!(!differ_in_pools_only("ro quiet", "ro numa=fake=2 quiet"));
    }

    #[test]
    fn sizes_are_those_of_the_kernel() {
        for (text, expected) in [
            ("2M", Some(2 << 20)),
            ("2048k", Some(2 << 20)),
            ("65536", Some(65_536)),
            ("1G", Some(1 << 30)),
            ("2MiB", None),
            ("", None),
            ("99999999T", None),
        ] {
            assert_eq!(bytes(text), expected.map(Bytes::new), "{text}");
        }
        assert_eq!(short(Bytes::from_kib(64)), "64K");
        assert_eq!(short(Bytes::from_gib(16)), "16G");
    }

    proptest! {
        #[test]
        fn every_other_word_stays(words in proptest::collection::vec("[a-z=]{1,6}|hugepagesz=(1G|2M)|hugepages=[0-9]|--|rootwait", 0..9), is_default in any::<bool>()) {
            let line = words.join(" ");
            let pools = pools(Bytes::from_mib(2), is_default, &[3]);
            let mut once = line.clone();
            if pools.apply(&mut once, true).is_ok() {
                let mut twice = once.clone();
                pools.apply(&mut twice, true).unwrap();
                prop_assert_eq!(&once, &twice);
                let others = |line: &str| {
                    line.split(' ').filter(|word| !word.starts_with("huge") && !word.is_empty()).map(str::to_owned).collect::<Vec<_>>()
                };
                prop_assert_eq!(others(&line), others(&once));
            }
        }
    }
}
