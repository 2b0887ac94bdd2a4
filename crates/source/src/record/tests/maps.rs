//! Mappings in a recording.

use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::mapping::{
    DrawnPages, FileId, MappedPages, Mapping, MappingKind, MappingPolicy, MappingsMethod, Permissions,
    ProcessMappings,
};
use nodewise_machine::{Bytes, NodeId};
use proptest::prelude::{Strategy, any, prop, prop_oneof};

use super::{Recording, Writer, at_second, header, maybe, moments, node_ids, of_frame, sizes, written};
use crate::process::Pid;
use crate::sample::{Identity, MappingsSample, Moment, Sample};

/// Mappings with their number, so that none overlaps another, and when they were read.
pub(super) fn mappings() -> impl Strategy<Value = (Moment, ProcessMappings)> {
    let drawn = (sizes(), 0..1u64 << 60, prop::collection::btree_map(node_ids(), 0..1u64 << 60, 0..3));
    let drawn = drawn.prop_map(|(candidates, more, nodes)| {
        let drawn = more + nodes.values().sum::<u64>();
        MappedPages::Drawn(DrawnPages { candidates, drawn, nodes })
    });
    let pages = prop_oneof![
        maybe(sizes()).prop_map(|resident| MappedPages::Unknown { resident }),
        prop::collection::btree_map(node_ids(), sizes(), 0..3).prop_map(MappedPages::Counted),
        drawn,
    ];
    let permissions = any::<[bool; 4]>().prop_map(|[read, write, execute, shared]| Permissions {
        read,
        write,
        execute,
        shared,
    });
    let file = any::<((u32, u32), u64)>().prop_map(|(device, inode)| FileId { device, inode });
    let policy = prop_oneof!["default|bind:0-1|prefer \\(many\\):1", ".{0,4}"]
        .prop_map(|text: String| MappingPolicy { policy: text.parse().ok(), text });
    let facts = (maybe(".{0,5}"), maybe(policy), maybe(file), maybe(sizes()), maybe(sizes()), any::<bool>());
    let place = (1u64..0xffff, permissions, 0..MappingKind::ALL.len(), pages);
    let mapping = (place, facts).prop_map(|((length, permissions, kind, pages), facts)| {
        let (name, policy, file, page_size, transparent, unsure) = facts;
        Mapping {
            start: 0,
            end: length,
            permissions,
            kind: MappingKind::ALL[kind],
            file,
            name,
            policy,
            page_size,
            pages,
            transparent,
            swapped: page_size,
            dirty: transparent,
            most_mapped: file.map(|file| file.inode),
            unsure,
        }
    });
    let method = prop_oneof![
        any::<bool>().prop_map(|exact| if exact { MappingsMethod::Exact } else { MappingsMethod::NoNodes }),
        any::<(u64, u64)>().prop_map(|(asked, seed)| MappingsMethod::Sampled { asked, seed }),
    ];
    let process = (
        maybe(".{0,4}"),
        maybe(sizes()),
        method,
        maybe(0u64..1 << 40),
        prop::collection::btree_map(0u64..64, mapping, 0..4),
        prop::collection::vec(".{0,4}", 0..2),
    );
    (moments(), process).prop_map(|(seen, (name, resident, method, took, mappings, notes))| {
        let placed = |(number, mapping): (u64, Mapping)| {
            let start = number << 40;
            Mapping { start, end: start + mapping.end, ..mapping }
        };
        let process = ProcessMappings {
            pid: Pid::new(0),
            name,
            resident,
            swapped: resident,
            method,
            thread_policy: None,
            took: took.map(Duration::from_micros),
            predicted: Duration::from_micros(took.unwrap_or(3)),
            mappings: mappings.into_iter().map(placed).collect(),
            notes,
        };
        (seen, process)
    })
}

pub(super) fn process_mappings(
    identity: Identity,
    (seen, process): (Moment, ProcessMappings),
) -> MappingsSample {
    let mappings = Arc::new(ProcessMappings { pid: identity.pid, ..process });
    MappingsSample { identity, seen, mappings }
}

#[test]
fn a_mapping_that_cannot_be_is_a_fault() {
    let check = |mapping: &str, expected: &str| {
        let frame = format!(r#"{{"maps": {{"7.5": {{"method": "exact", "mappings": {{{mapping}}}}}}}}}"#);
        let gaps = of_frame(&frame);
        let reason = gaps.first().map_or("", |gap| gap.reason.as_str());
        assert!(reason.contains(expected) && reason.is_empty() == expected.is_empty(), "{frame}: {reason}");
    };
    let rest = r#""permissions": "rw-p", "kind": "heap""#;
    check(&format!(r#""1000": {{"size": 4096, {rest}, "later": 1}}"#), "");
    check(&format!(r#""x": {{"size": 4096, {rest}}}"#), "expected an address in hexadecimal");
    check(&format!(r#""+1": {{"size": 4096, {rest}}}"#), "expected an address in hexadecimal");
    check(&format!(r#""01000": {{"size": 4096, {rest}}}"#), "without zeros in front");
    check(&format!(r#""A000": {{"size": 4096, {rest}}}"#), "expected an address in hexadecimal");
    let two =
        |second: &str| format!(r#""1000": {{"size": 4096, {rest}}}, "{second}": {{"size": 1, {rest}}}"#);
    check(&two("1fff"), "mapping 1fff overlaps mapping 1000");
    check(&two("2000"), "");
    let drawn = |nodes: &str| {
        format!(r#""1000": {{"size": 4096, {rest}, "drawn": {{"drawn": 5, "nodes": {{{nodes}}}}}}}"#)
    };
    check(&drawn(r#""0": 3, "1": 2"#), "");
    check(&drawn(r#""0": 3, "1": 3"#), "more pages on nodes than the 5 drawn");
    check(&drawn(r#""0": 18446744073709551615, "1": 1"#), "more pages on nodes than the 5 drawn");
    check(&format!(r#""1000": {{"size": 0, {rest}}}"#), "0 bytes do not fit behind it");
    check(&format!(r#""fffffffffffff000": {{"size": 8192, {rest}}}"#), "8192 bytes do not fit");
    check(r#""1000": {"size": 1, "permissions": "rw-p", "kind": "odd"}"#, "is not a kind of mapping");
    check(r#""1000": {"size": 1, "permissions": "rwxrwx", "kind": "heap"}"#, "expected four letters");
    check(&format!(r#""1000": {{"size": 1, {rest}, "nodes": {{"99999": 1}}}}"#), "node 99999: expected");
    let method = |words: &str| of_frame(&format!(r#"{{"maps": {{"7.5": {{{words}}}}}}}"#));
    assert!(method(r#""method": "guessed""#)[0].reason.contains("expected exact, sampled or no nodes"));
    assert!(method(r#""method": "sampled""#)[0].reason.contains("expected asked and seed"));
}

#[test]
fn mappings_cost_nothing_while_they_stay_as_they_are() {
    let mapping = |number: u64, size: u64| Mapping {
        permissions: Permissions { read: true, ..Permissions::default() },
        file: Some(FileId { device: (254, 1), inode: number }),
        name: Some(format!("/usr/lib/x86_64-linux-gnu/lib{number}.so")),
        page_size: Some(Bytes::from_kib(4)),
        pages: MappedPages::Counted([(NodeId::new(0), Bytes::new(size))].into()),
        most_mapped: Some(3),
        ..Mapping::new(number << 24..(number + 1) << 24, MappingKind::File)
    };
    let with_maps = |second: u64, grown: u64| {
        let sample = at_second(second);
        let mappings = (1..200).map(|number| mapping(number, 4096 * number)).chain([mapping(200, grown)]);
        let process = ProcessMappings {
            name: Some("x".to_owned()),
            took: Some(Duration::from_millis(1)),
            predicted: Duration::from_millis(1),
            ..ProcessMappings::new(Pid::new(7), mappings.collect())
        };
        let identity = Identity { pid: Pid::new(7), started_ticks: 1 };
        let moment = sample.moment;
        Sample { mappings: vec![process_mappings(identity, (moment, process))], ..sample }
    };
    let length = |samples: &[Sample]| {
        let mut writer = Writer::begin(Vec::new(), &header(), None).unwrap();
        for sample in samples {
            writer.push(sample).unwrap();
        }
        writer.finish().unwrap().len()
    };
    let (one, still, moving): (Vec<Sample>, Vec<Sample>, Vec<Sample>) = (
        vec![with_maps(0, 4096)],
        (0..9).map(|second| with_maps(second, 4096)).collect(),
        (0..9).map(|second| with_maps(second, 4096 * second * second * 7919)).collect(),
    );
    let (one, still, moving) = (length(&one), length(&still), length(&moving));
    assert!(still - one < 200, "eight samples more: {one} to {still} bytes");
    assert!(moving - one < 500, "and a mapping that grows: {moving} bytes");
}

#[test]
fn mappings_that_were_not_read_again_are_written_as_those_that_were() {
    let process = |resident: u64| {
        let resident = Some(Bytes::new(resident));
        let pages = MappedPages::Unknown { resident };
        let heap = Mapping { pages, ..Mapping::new(4096..8192, MappingKind::Heap) };
        ProcessMappings { resident, ..ProcessMappings::new(Pid::new(7), vec![heap]) }
    };
    let identity = Identity { pid: Pid::new(7), started_ticks: 1 };
    let seen = at_second(0).moment;
    // One that is read again, gone, and back, also where a sample is written whole.
    let readings: Vec<(u64, Option<Arc<ProcessMappings>>)> = {
        let (first, second) = (Arc::new(process(1)), Arc::new(process(2)));
        (0..70)
            .map(|at: u64| {
                let mappings = match at {
                    0..20 | 30..40 => Some(&first),
                    20..30 => None,
                    _ => Some(&second),
                };
                (at, mappings.map(Arc::clone))
            })
            .collect()
    };
    let samples = |copy: bool| -> Vec<Sample> {
        let sample = |(second, mappings): &(u64, Option<Arc<ProcessMappings>>)| {
            let mappings = mappings.iter().map(|mappings| MappingsSample {
                identity,
                seen,
                mappings: if copy { Arc::new((**mappings).clone()) } else { Arc::clone(mappings) },
            });
            Sample { mappings: mappings.collect(), ..at_second(*second) }
        };
        readings.iter().map(sample).collect()
    };
    let kept = written(&samples(false));
    assert_eq!(kept, written(&samples(true)));
    assert_eq!(Recording::from_bytes(kept).unwrap().samples().unwrap().0, samples(false));
}
