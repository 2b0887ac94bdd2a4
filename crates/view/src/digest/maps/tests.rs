use nodewise_machine::Pid;
use nodewise_machine::mapping::{FileId, MappingPolicy};

use super::*;

const MIB: u64 = 1 << 20;

fn mapping(start: u64, kind: MappingKind, policy: &str, nodes: &[(u32, u64)]) -> Mapping {
    let sizes = nodes.iter().map(|(node, mib)| (NodeId::new(*node), Bytes::from_mib(*mib)));
    Mapping {
        file: (kind == MappingKind::File).then_some(FileId { device: (8, 1), inode: start }),
        policy: Some(MappingPolicy { text: policy.to_owned(), policy: policy.parse().ok() }),
        pages: MappedPages::Counted(sizes.collect()),
        ..Mapping::new(start..start + 4096 * MIB, kind)
    }
}

fn process(mappings: Vec<Mapping>) -> ProcessMappings {
    ProcessMappings::new(Pid::new(7), mappings)
}

fn findings(mappings: Vec<Mapping>) -> Vec<String> {
    Maps { process: &process(mappings), by: GroupBy::Kind, shared_with: None }.findings()
}

#[test]
fn any_numbers_of_drawn_pages_are_summed() {
    let mut mapping = mapping(0, MappingKind::Heap, "default", &[]);
    let nodes = [(NodeId::new(0), u64::MAX - 1), (NodeId::new(1), u64::MAX - 1)].into();
    mapping.pages =
        MappedPages::Drawn(DrawnPages { candidates: Bytes::from_gib(1), drawn: u64::MAX - 1, nodes });
    let tally = Tally::from_mappings([&mapping, &mapping]);
    assert_eq!(tally.drawn(), u64::MAX);
    assert!(tally.all() >= tally.on(NodeId::new(0)).size);
}

#[test]
fn memory_outside_of_its_binding_is_found_unless_it_is_of_files() {
    use MappingKind::{Anonymous, File, Heap};
    assert_eq!(
        findings(vec![
            mapping(0, Anonymous, "bind:1", &[(1, 5)]),
            mapping(1, Heap, "bind:1", &[(0, 3), (2, 1)])
        ]),
        [
            "bind:1 covers 9 MiB, and 4 MiB of it are on nodes 0,2: pages that were touched before the policy was set \
             stay where they are"
        ]
    );
    assert_eq!(findings(vec![mapping(0, File, "bind:1", &[(0, 5)])]), [""; 0]);
    assert_eq!(findings(vec![mapping(0, Heap, "default", &[(0, 500)])]), [""; 0]);
}

#[test]
fn uneven_interleaving_is_found_where_there_is_enough_of_it() {
    let check = |nodes: &[(u32, u64)], expected: usize| {
        let found = findings(vec![mapping(0, MappingKind::Anonymous, "interleave:0-1", nodes)]);
        assert_eq!(found.len(), expected, "{nodes:?}: {found:?}");
    };
    check(&[(0, 100), (1, 100)], 0);
    check(&[(0, 119), (1, 81)], 0);
    check(&[(0, 130), (1, 70)], 1);
    check(&[(0, 20), (1, 0)], 0);
    check(&[(0, 80), (1, 80), (2, 40)], 1);
}

#[test]
fn draws_of_several_mappings_are_draws_of_their_sum() {
    let drawn = |start, candidates, drawn, hits| Mapping {
        pages: MappedPages::Drawn(DrawnPages {
            candidates: Bytes::from_mib(candidates),
            drawn,
            nodes: BTreeMap::from([(NodeId::new(1), hits)]),
        }),
        ..mapping(start, MappingKind::Anonymous, "default", &[])
    };
    let counted = mapping(9, MappingKind::Anonymous, "default", &[(1, 10)]);
    let tally = Tally::from_mappings(&[drawn(0, 300, 750, 250), drawn(1, 100, 250, 0), counted]);
    let Estimate { size, low, high } = tally.on(NodeId::new(1));
    assert_eq!(size, Bytes::from_mib(110));
    let interval = wilson_interval(250, 1000);
    assert_eq!(low, Bytes::from_mib(10) + Bytes::from_mib(400).share(interval.low));
    assert_eq!(high, Bytes::from_mib(10) + Bytes::from_mib(400).share(interval.high));
    assert!(!tally.is_exact() && tally.on(NodeId::new(0)).size == Bytes::new(0));
    assert!(tally.on(NodeId::new(0)).high > Bytes::new(0), "none of a thousand is not none");
    // A mapping from which nothing was drawn can be anywhere.
    let unseen = Tally::from_mappings(&[drawn(0, 8, 0, 0)]);
    assert_eq!(unseen.on(NodeId::new(0)).high, Bytes::from_mib(8));
}

#[test]
fn shares_are_named_largest_first_and_the_rest_together() {
    let tally =
        Tally::from_mappings(&[mapping(0, MappingKind::Heap, "default", &[(0, 5), (1, 90), (2, 3), (3, 2)])]);
    assert_eq!(tally.words(2), "node 1 90 %, node 0 5 %, 2 others 5 %");
    assert_eq!(tally.words(4), "node 1 90 %, node 0 5 %, node 2 3 %, node 3 2 %");
}

#[test]
fn pages_become_runs_where_they_follow_each_other() {
    let mut runs = PageRuns { page_size: 4096, runs: Vec::new() };
    for (address, node) in [(0x1000, 0), (0x2000, 0), (0x3000, 1), (0x8000, 1)] {
        runs.push(address, Some(NodeId::new(node)));
    }
    let found: Vec<(u64, u64)> = runs.runs.iter().map(|run| (run.start, run.pages)).collect();
    assert_eq!(found, [(0x1000, 2), (0x3000, 1), (0x8000, 1)]);
}
