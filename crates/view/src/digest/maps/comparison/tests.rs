use std::time::Duration;

use nodewise_machine::Pid;
use nodewise_machine::mapping::{DrawnPages, MappedPages, MappingPolicy};
use proptest::prelude::{any, prop, prop_assert_eq, proptest};

use unicode_width::UnicodeWidthStr as _;

use super::*;
use crate::text::maps::Named;
use crate::{Style, csv, json, text};

const MIB: u64 = 1 << 20;

fn mapping(start: u64, length: u64, kind: MappingKind, nodes: &[(u32, u64)]) -> Mapping {
    let sizes = nodes.iter().map(|(node, mib)| (NodeId::new(*node), Bytes::from_mib(*mib)));
    Mapping { pages: MappedPages::Counted(sizes.collect()), ..Mapping::new(start..start + length, kind) }
}

fn process(mappings: Vec<Mapping>) -> ProcessMappings {
    ProcessMappings::new(Pid::new(7), mappings)
}

fn comparison<'a>(before: &'a ProcessMappings, after: &'a ProcessMappings) -> MapsComparison<'a> {
    let moment = |recording: &str, age| MapsMoment {
        recording: recording.to_owned(),
        at: Duration::from_millis(2500),
        age,
    };
    let moments = [moment("a.nwr", None), moment("b.nwr", Some(Duration::from_millis(300)))];
    MapsComparison { before, after, relation: Relation::SameBoot, is_same: true, moments }
}

/// The change of a size that is known.
fn change_of(pair: &TallyPair) -> i128 {
    pair.all().unwrap().change
}

/// The start of each mapping before and after, in the order in which they are shown.
fn check(before: Vec<Mapping>, after: Vec<Mapping>, expected: &[(Option<u64>, Option<u64>)]) {
    let (before, after) = (process(before), process(after));
    let comparison = comparison(&before, &after);
    let start = |mapping: Option<&Mapping>| mapping.map(|mapping| mapping.start);
    let found: Vec<(Option<u64>, Option<u64>)> =
        comparison.mappings().iter().map(|pair| (start(pair.before), start(pair.after))).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_mapping_is_known_by_its_beginning_or_its_end() {
    use MappingKind::{Anonymous, Heap, Stack};
    check(
        vec![
            mapping(0x1000, 0x1000, Heap, &[(0, 1)]),
            mapping(0x9000, 0x1000, Anonymous, &[(0, 4)]),
            mapping(0xf000, 0x1000, Stack, &[(0, 1)]),
            mapping(0x5000, 0x1000, Anonymous, &[(0, 1)]),
        ],
        vec![
            mapping(0x1000, 0x4000, Heap, &[(0, 9)]),
            mapping(0xd000, 0x3000, Stack, &[(0, 2)]),
            // Something else at the same address.
            mapping(0x5000, 0x1000, Heap, &[(0, 3)]),
        ],
        &[
            (Some(0x1000), Some(0x1000)),
            (Some(0x9000), None),
            (None, Some(0x5000)),
            (Some(0x5000), None),
            (Some(0xf000), Some(0xd000)),
        ],
    );
}

#[test]
fn pages_that_moved_between_nodes_are_a_change() {
    let before = process(vec![mapping(0, 64 * MIB, MappingKind::Heap, &[(0, 30), (1, 10)])]);
    let after = process(vec![mapping(0, 64 * MIB, MappingKind::Heap, &[(0, 5), (1, 35)])]);
    let comparison = comparison(&before, &after);
    assert_eq!(comparison.headline(), "0 resident: node 0 -25 MiB, node 1 +25 MiB");
    let (kind, pair) = &comparison.kinds()[0];
    assert_eq!((*kind, change_of(pair), pair.weight()), (MappingKind::Heap, 0, u128::from(25 * MIB)));
    assert_eq!(comparison.all().nodes().len(), 2);
    assert!(!comparison.mappings()[0].is_altered(), "pages moved, the mapping stayed");
}

#[test]
fn a_change_within_the_chance_of_drawing_is_marked() {
    let drawn = |hits: u64| {
        let mut mapping = mapping(0, 64 * MIB, MappingKind::Heap, &[]);
        let nodes = [(NodeId::new(0), hits), (NodeId::new(1), 100 - hits)].into();
        mapping.pages =
            MappedPages::Drawn(DrawnPages { candidates: Bytes::from_mib(100), drawn: 100, nodes });
        process(vec![mapping])
    };
    let (before, little, much) = (drawn(50), drawn(52), drawn(95));
    let change = |after| comparison(&before, after).all().on(NodeId::new(0)).unwrap();
    assert!(change(&little).may_be_none() && !change(&little).is_exact());
    assert!(!change(&much).may_be_none());
    assert_eq!(comparison(&before, &little).headline(), "0 resident");
    // A difference by chance does not count as a change of the mapping.
    let listed = |after: &ProcessMappings| {
        let comparison = comparison(&before, after);
        let text = text::maps::comparison(&comparison, Named::Largest, &Style::plain(80));
        (comparison.mappings()[0].is_changed(), text.contains("Changed mappings: 1"))
    };
    assert_eq!((listed(&little), listed(&much)), ((false, false), (true, true)));
    // All forms have the ends of an estimate.
    let comparison = comparison(&before, &much);
    let SizeChange { low, high, .. } = comparison.all().on(NodeId::new(0)).unwrap();
    let document: serde_json::Value = serde_json::from_str(&json::maps_comparison(&comparison)).unwrap();
    let node = &document["mappings"][0]["nodes"][0];
    assert_eq!(
        (node["low_bytes"].as_i64(), node["high_bytes"].as_i64()),
        (Some(low as i64), Some(high as i64))
    );
    let table = csv::maps_comparison(&comparison);
    assert!(table.contains(&format!(",47185920,{low},{high}\n")), "{table}");
}

#[test]
fn what_only_one_reading_has_is_no_change() {
    let placed = process(vec![mapping(0, 64 * MIB, MappingKind::Heap, &[(0, 30)])]);
    let check = |resident: Option<Bytes>, all: Option<i128>, sizes: &str| {
        let mut unknown = placed.clone();
        unknown.mappings[0].pages = MappedPages::Unknown { resident };
        let comparison = comparison(&unknown, &placed);
        let pair = &comparison.mappings()[0];
        let tallies = pair.tallies();
        assert_eq!((tallies.all().map(|change| change.change), tallies.on(NodeId::new(0))), (all, None));
        assert_eq!(pair.is_changed(), all.is_some_and(|change| change != 0));
        let table = csv::maps_comparison(&comparison);
        assert!(table.contains(&format!("stayed,0,4000000,heap,,0,,31457280,{sizes},,\n")), "{table}");
        let document: serde_json::Value = serde_json::from_str(&json::maps_comparison(&comparison)).unwrap();
        let row = &document["mappings"][0];
        assert_eq!(row.get("change_bytes").and_then(|change| change.as_i64()), all.map(|all| all as i64));
        assert_eq!(row["nodes"][0].get("change_bytes"), None);
        text::maps::comparison(&comparison, Named::All, &Style::plain(80))
    };
    assert!(check(None, None, "").contains("the size of a mapping is not known"));
    let text = check(Some(Bytes::from_mib(10)), Some(20 << 20), "");
    assert!(text.starts_with("7 (no name): +20 MiB resident\n"), "{text}");
}

#[test]
fn a_policy_that_was_not_read_is_no_other_one() {
    let bound = |text: Option<&str>| {
        let mut mapping = mapping(0, MIB, MappingKind::Heap, &[(0, 1)]);
        mapping.policy = text.map(|text| MappingPolicy { text: text.to_owned(), policy: None });
        process(vec![mapping])
    };
    let check = |before, after, expected| {
        let (before, after) = (bound(before), bound(after));
        assert_eq!(comparison(&before, &after).mappings()[0].is_changed(), expected);
    };
    check(None, Some("default"), false);
    check(Some("bind:0"), None, false);
    check(Some("default"), Some("default"), false);
    check(Some("default"), Some("bind:0"), true);
}

#[test]
fn nodes_with_the_largest_change_have_a_column_of_their_own() {
    let on = |sizes: &dyn Fn(u32) -> u64| {
        let nodes: Vec<(u32, u64)> = (0..32).map(|node| (node, sizes(node))).collect();
        process(vec![mapping(0, 64 * MIB, MappingKind::Heap, &nodes)])
    };
    // Node 30 shrinks from all to nothing, so that it is last by size.
    let before = on(&|node| if node == 30 { 900_000 } else { 1000 });
    let after = on(&|node| if node == 30 { 0 } else { 1000 });
    let text = text::maps::comparison(&comparison(&before, &after), Named::Largest, &Style::plain(60));
    assert!(text.contains("node 30  31 others"), "{text}");
    assert!(text.contains("-878.9 GiB"), "{text}");
}

#[test]
fn addresses_of_another_process_say_nothing() {
    let one = process(vec![mapping(0, MIB, MappingKind::Heap, &[(0, 1)])]);
    let comparison = MapsComparison { is_same: false, ..comparison(&one, &one) };
    assert_eq!(comparison.mappings(), []);
    assert_eq!(comparison.kinds().len(), 1);
}

#[test]
fn every_form_fits_and_says_the_same() {
    let nodes = |mib: u64| (0..64).map(|node| (node, mib + u64::from(node))).collect::<Vec<_>>();
    let mut long = mapping(0x7000, 0x1000, MappingKind::File, &nodes(3));
    long.name = Some(format!("/a\u{1b}[2J,{}", "long/".repeat(40)));
    let before = process(vec![mapping(0x1000, 0x1000, MappingKind::Heap, &nodes(1)), long.clone()]);
    let after = process(vec![mapping(0x1000, 0x2000, MappingKind::Heap, &nodes(5)), {
        long.start = 0x9000;
        long.end = 0xa000;
        long
    }]);
    let comparison = comparison(&before, &after);
    for width in [60, 80, 160] {
        for named in [Named::Largest, Named::All] {
            let text = text::maps::comparison(&comparison, named, &Style::plain(width));
            assert!(text.lines().all(|line| line.width() <= width), "{width}: {text}");
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
            assert!(text.contains("Added mappings: 1") && text.contains("+256 MiB"), "{text}");
        }
    }
    let document: serde_json::Value = serde_json::from_str(&json::maps_comparison(&comparison)).unwrap();
    assert_eq!(document["all"]["change_bytes"], 256 << 20);
    let states = |document: &serde_json::Value| {
        let rows = document["mappings"].as_array().unwrap().iter();
        rows.map(|row| row["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(states(&document), ["removed", "added", "stayed"]);
    assert_eq!(document["mappings"][2]["end_before"], "2000");
    let table = csv::maps_comparison(&comparison);
    assert_eq!(table.lines().count(), 1 + 3 * 64);
    assert!(table.contains("stayed,1000,3000,heap,,0,1048576,5242880,4194304,,\n"), "{table}");
    assert!(!table.contains('\u{1b}'), "{table:?}");
}

proptest! {
    #[test]
    fn every_mapping_is_in_one_pair_and_kinds_sum_up(
        before in prop::collection::vec((0u64..6, 1u64..3, 0usize..7, any::<u16>()), 0..8),
        after in prop::collection::vec((0u64..6, 1u64..3, 0usize..7, any::<u16>()), 0..8),
    ) {
        let made = |all: &[(u64, u64, usize, u16)]| {
            let one = |(start, length, kind, mib): &(u64, u64, usize, u16)| {
                mapping(*start, *length, MappingKind::ALL[*kind], &[(u32::from(*mib % 3), u64::from(*mib))])
            };
            process(all.iter().map(one).collect())
        };
        let (before, after) = (made(&before), made(&after));
        let comparison = comparison(&before, &after);
        let pairs = comparison.mappings();
        prop_assert_eq!(pairs.iter().filter(|pair| pair.before.is_some()).count(), before.mappings.len());
        prop_assert_eq!(pairs.iter().filter(|pair| pair.after.is_some()).count(), after.mappings.len());
        let all = change_of(&comparison.all());
        prop_assert_eq!(pairs.iter().map(|pair| change_of(&pair.tallies())).sum::<i128>(), all);
        prop_assert_eq!(comparison.kinds().iter().map(|(_, pair)| change_of(pair)).sum::<i128>(), all);
    }
}
