//! The memory of a control group by kind and node.
//!
//! # Source
//! `memory.numa_stat`: of version 2 in bytes, Linux 5.11, `anon N0=4096 N1=0`; of version 1 in pages, Linux 3.0,
//! `anon=1 N0=1 N1=0`, with a second line `hierarchical_anon=...` that counts the groups below too, Linux 3.17.
//! Version 2 always counts them, so the second lines of version 1 are taken where they are there.

use std::collections::BTreeMap;

use nodewise_machine::id::Id as _;
use nodewise_machine::{Bytes, NodeId};

use super::counters::is_name;
use super::{Parsed, digits, lines};

/// More kinds than any release prints.
const MOST_KINDS: usize = 256;

/// Memory by kind and node.
pub type MemoryByKind = BTreeMap<String, BTreeMap<NodeId, Bytes>>;

/// Reads every line but those that count events instead of memory: `workingset_`, `pgdemote_`, `pgpromote_`.
pub fn parse(text: &str, page: Bytes) -> Parsed<MemoryByKind> {
    let mut own = Parsed::<MemoryByKind>::default();
    let mut with_those_below = MemoryByKind::new();
    for (number, line) in lines(text).filter(|(_, line)| !line.trim().is_empty()) {
        let Some((name, nodes)) = kind(line, page) else {
            own.problems.add(number, "a kind of memory, then nodes with numbers as in N0=1", line.trim());
            continue;
        };
        if ["workingset_", "pgdemote_", "pgpromote_"].iter().any(|events| name.starts_with(events)) {
            continue;
        }
        let (kinds, name) = match name.strip_prefix("hierarchical_") {
            Some(name) => (&mut with_those_below, name),
            None => (&mut own.value, name),
        };
        if kinds.len() < MOST_KINDS {
            kinds.insert(name.to_owned(), nodes);
        } else {
            own.problems.add(number, format!("at most {MOST_KINDS} kinds of memory"), line.trim());
        }
    }
    if !with_those_below.is_empty() {
        own.value = with_those_below;
    }
    own
}

fn kind(line: &str, page: Bytes) -> Option<(&str, BTreeMap<NodeId, Bytes>)> {
    let mut words = line.split_ascii_whitespace();
    let first = words.next()?;
    let (name, unit) = match first.split_once('=') {
        Some((name, total)) => {
            digits::<u64>(total)?;
            (name, page.get())
        }
        None => (first, 1),
    };
    let node = |word: &str| {
        let (node, count) = word.strip_prefix('N')?.split_once('=')?;
        let node = digits(node).filter(|node| *node < NodeId::LIMIT).map(NodeId::new)?;
        Some((node, Bytes::new(digits::<u64>(count)?.checked_mul(unit)?)))
    };
    let nodes = words.map(node).collect::<Option<_>>()?;
    is_name(name).then_some((name, nodes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    const PAGE: Bytes = Bytes::from_kib(4);

    fn check(text: &str, kind: &str, expected: &[(u32, u64)]) {
        let parsed = parse(text, PAGE);
        assert!(parsed.problems.is_empty(), "{:?}", parsed.problems);
        let found = parsed.value[kind].iter().map(|(node, size)| (node.number(), size.get()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn version_2_counts_bytes() {
        let text = "anon N0=122880 N1=0\nfile N0=5 N1=6\nworkingset_refault_anon N0=9 N1=9\npgdemote_kswapd N0=1 N1=1\n";
        check(text, "anon", &[(0, 122_880), (1, 0)]);
        assert_eq!(parse(text, PAGE).value.len(), 2, "events are no memory");
    }

    #[test]
    fn version_1_counts_pages_and_the_groups_below_apart() {
        check("total=7 N0=3 N4=4\nanon=1 N0=1 N4=0\n", "total", &[(0, 12288), (4, 16384)]);
        let text = "total=7 N0=7\nanon=1 N0=1\nhierarchical_total=9 N0=9\nhierarchical_anon=2 N0=2\n";
        check(text, "anon", &[(0, 8192)]);
        check(text, "total", &[(0, 36864)]);
    }

    #[test]
    fn a_bad_line_costs_one_line() {
        let parsed = parse(
            "anon N0=1\nfile N0\nshmem Nx=1\nslab=x N0=1\na/b N0=1\nx=1 N0=18446744073709551615\n",
            PAGE,
        );
        assert_eq!((parsed.value.len(), parsed.problems.count()), (1, 5));
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(kinds in prop::collection::btree_map("[a-v_]{1,12}", prop::collection::btree_map(0u32..1024, any::<u64>(), 0..4), 0..6)) {
            let nodes = |nodes: &BTreeMap<u32, u64>| nodes.iter().map(|(node, size)| format!(" N{node}={size}")).collect::<String>();
            let text: String = kinds.iter().map(|(name, of)| format!("{name}{}\n", nodes(of))).collect();
            let parsed = parse(&text, PAGE);
            prop_assert!(parsed.problems.is_empty());
            let events = |name: &String| ["pgdemote_", "pgpromote_"].iter().any(|events| name.starts_with(events));
            let expected: MemoryByKind = kinds.into_iter().filter(|(name, _)| !events(name))
                .map(|(name, of)| (name, of.into_iter().map(|(node, size)| (NodeId::new(node), Bytes::new(size))).collect())).collect();
            prop_assert_eq!(parsed.value, expected);
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in any::<String>(), near in "([a-z]{0,4}=?[0-9]{0,3}( N[0-9]{0,8}=[0-9]{0,21}){0,3}\n){0,5}") {
            let _ = parse(&text, PAGE);
            let _ = parse(&near, PAGE);
        }
    }
}
