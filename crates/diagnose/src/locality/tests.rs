use std::time::Duration;

use super::*;
use crate::example::{moment, node, size};
use nodewise_source::sample::{PageMethod, PageShare, PoolSample};
use proptest::prelude::{prop, prop_assert, proptest};

fn n(number: u32) -> NodeId {
    NodeId::new(number)
}

fn pages(nodes: &[(u32, u64)]) -> PageSample {
    let share = |mib| PageShare {
        size: Bytes::from_mib(mib),
        low: Bytes::from_mib(mib),
        high: Bytes::from_mib(mib),
        own: None,
    };
    PageSample {
        seen: moment(1),
        method: PageMethod::Exact,
        nodes: nodes.iter().map(|(node, mib)| (n(*node), share(*mib))).collect(),
    }
}

/// Two nodes with CPUs, and node 2 without.
fn places() -> Places {
    let nodes = vec![node(0, &[0]), node(1, &[1]), node(2, &[])];
    Places::new([&Sample { nodes, ..Sample::default() }])
}

fn time(certain: &[(u32, u64)], unsure: u64, within: Option<&[u32]>) -> CpuTime {
    let certain: BTreeMap<NodeId, Duration> =
        certain.iter().map(|(node, ms)| (n(*node), Duration::from_millis(*ms))).collect();
    let unsure = Duration::from_millis(unsure);
    CpuTime {
        used: certain.values().sum::<Duration>() + unsure,
        certain,
        unsure,
        within: within.map(|nodes| nodes.iter().copied().map(NodeId::new).collect()),
    }
}

fn check(
    pages: &PageSample,
    cpu: Option<&CpuTime>,
    reach: Option<&[u32]>,
    index: Option<f64>,
    stranded: Option<u64>,
) {
    let reach: Option<NodeSet> = reach.map(|nodes| nodes.iter().copied().map(NodeId::new).collect());
    let locality = Locality::new(pages, cpu, reach.as_ref(), &places());
    assert_eq!(locality.local_index, index, "{pages:?} {cpu:?}");
    assert_eq!(
        locality.stranded.map(|stranded| stranded.size),
        stranded.map(Bytes::from_mib),
        "{pages:?} {cpu:?}"
    );
}

#[test]
fn memory_is_stranded_on_nodes_where_its_process_did_not_run() {
    let away = pages(&[(0, 0), (1, 64)]);
    let spread = pages(&[(0, 32), (1, 32)]);
    let on_0 = time(&[(0, 900)], 0, Some(&[]));
    check(&away, Some(&on_0), None, Some(0.0), Some(64));
    check(&spread, Some(&on_0), None, Some(0.5), Some(32));
    check(&spread, Some(&time(&[(0, 900), (1, 100)], 0, Some(&[]))), None, Some(0.5), Some(0));
    // Unsure time may have been spent anywhere, or within the nodes that its threads may use.
    check(&away, Some(&time(&[(0, 900)], 10, None)), None, Some(0.0), Some(0));
    check(&away, Some(&time(&[], 10, Some(&[0]))), None, None, Some(64));
    // Of time that nothing else bounds the nodes where it may run decide.
    check(&away, Some(&time(&[], 10, None)), Some(&[0]), None, Some(64));
    check(&away, Some(&time(&[], 10, None)), Some(&[0, 1]), None, Some(0));
    check(&spread, Some(&time(&[(1, 900)], 10, None)), Some(&[0]), Some(0.5), Some(0));
    // Without CPU time the nodes where it may run decide; without those nothing is known.
    check(&away, None, Some(&[0]), None, Some(64));
    check(&away, Some(&time(&[], 0, Some(&[]))), Some(&[0, 1]), None, Some(0));
    check(&away, None, None, None, None);
    // Memory on a node without CPUs is a tier, and an empty process has no shares.
    check(&pages(&[(2, 64)]), Some(&on_0), None, Some(0.0), Some(0));
    check(&pages(&[]), Some(&on_0), None, None, None);
}

#[test]
fn the_uses_of_memory_end_with_the_rest() {
    let mib = Bytes::from_mib;
    let mut sample = node(0, &[0]);
    sample.memory = vec![
        size("MemTotal", mib(1000)),
        size("MemFree", mib(100)),
        size("FilePages", mib(300)),
        size("Shmem", mib(50)),
        size("SwapCached", mib(10)),
        size("AnonPages", mib(200)),
        size("SReclaimable", mib(20)),
        size("SUnreclaim", mib(30)),
        size("KernelStack", mib(1)),
    ];
    sample.pools = vec![PoolSample { page_size: mib(2), total: 50, ..PoolSample::default() }];
    let memory = MemoryUse::from_node(&sample).unwrap();
    assert_eq!((memory.file, memory.slab, memory.page_tables), (Some(mib(240)), Some(mib(50)), None));
    assert_eq!((memory.huge_pools, memory.rest, memory.excess), (Some(mib(100)), mib(259), mib(0)));
    sample.memory[0] = size("MemTotal", mib(700));
    let memory = MemoryUse::from_node(&sample).unwrap();
    assert_eq!((memory.rest, memory.excess), (mib(0), mib(41)), "parts read at different moments");
    sample.memory.remove(1);
    assert_eq!(MemoryUse::from_node(&sample), None);
}

#[test]
fn a_node_that_lags_has_the_size_that_the_system_counts() {
    let mut sample =
        Sample { nodes: vec![node(0, &[0])], memory: Some(Bytes::from_gib(24)), ..Sample::default() };
    sample.nodes[0].memory = vec![size("MemTotal", Bytes::from_gib(10)), size("MemFree", Bytes::from_gib(1))];
    sample.nodes[0].present = Some(Bytes::from_gib(24));
    let lagging = sizes(&sample)[&n(0)];
    assert_eq!((lagging.size, lagging.uninitialised), (Bytes::from_gib(24), Bytes::from_gib(14)));
    assert_eq!(lagging.free, Some(Bytes::from_gib(15)));
    sample.memory = Some(Bytes::from_gib(10));
    assert_eq!(sizes(&sample)[&n(0)].uninitialised, Bytes::new(0));
}

proptest! {
    #[test]
    fn the_index_and_the_stranded_share_are_shares(
        memory in prop::collection::vec(0u64..5000, 0..4),
        cpu in prop::collection::vec(0u64..1000, 0..3),
        unsure in 0u64..1000,
    ) {
        let memory: Vec<(u32, u64)> = (0..).zip(memory).collect();
        let cpu: Vec<(u32, u64)> = (0..).zip(cpu).filter(|(_, ms)| *ms > 0).collect();
        let locality = Locality::new(&pages(&memory), Some(&time(&cpu, unsure, None)), None, &places());
        prop_assert!(locality.local_index.is_none_or(|index| (0.0..=1.000001).contains(&index)));
        prop_assert!(locality.stranded.is_none_or(|stranded| stranded.size <= locality.size && stranded.share <= 1.0));
    }
}
