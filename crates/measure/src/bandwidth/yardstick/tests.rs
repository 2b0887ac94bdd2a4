use nodewise_machine::Bytes;
use nodewise_machine::memory_slot::peak::PeakTerm;
use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::bandwidth::{BandwidthFinding, findings};
use crate::kernel::bandwidth::Kernel;
use crate::survey::{Account, CellReport, SurveyFinding};

fn way(from: u32, memory: u32, threads: usize, kernel: Kernel, median: f64) -> TransferReport {
    let cell = CellReport::made(from, memory, median);
    TransferReport { kernel, variant: None, threads, everywhere: false, cell }
}

fn peak(channels: u32) -> Result<PeakBandwidth, String> {
    PeakBandwidth::new([PeakTerm { channels, mt_per_s: 3200, bytes: 8 }]).ok_or_else(String::new)
}

/// Two nodes, each with two channels of 25.6 GB/s.
fn report() -> BandwidthReport {
    let read = |from, memory, median| way(from, memory, 4, Kernel::Read, median);
    let node = NodeId::new;
    BandwidthReport {
        account: Account::default(),
        size: Bytes::from_mib(64),
        kernel: Kernel::Read,
        matrix: vec![read(0, 0, 40.0), read(0, 1, 20.0), read(1, 0, 20.0), read(1, 1, 38.4)],
        kernels: vec![way(0, 0, 1, Kernel::Copy, 15.0), way(0, 0, 4, Kernel::TriadNt, 44.8)],
        scaling: Vec::new(),
        everywhere: Some(TransferReport { everywhere: true, ..way(0, 0, 8, Kernel::Read, 76.8) }),
        declared: Vec::new(),
        yardstick: Some(BandwidthYardstick {
            nodes: vec![(node(0), peak(2)), (node(1), peak(2))],
            machine: peak(4),
            sockets: Some(2),
        }),
    }
}

/// Shares of the peaks, in percent, and the kernels that reached them.
fn check(report: &BandwidthReport, expected: &[(PeakOwner, Option<(f64, Kernel)>)]) {
    let shares = report.peak_shares();
    let found: Vec<_> = shares
        .iter()
        .map(|peak| {
            (peak.owner, peak.share().zip(peak.most).map(|(share, most)| (share * 100.0, most.kernel)))
        })
        .collect();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.0, expected.0);
        assert_eq!(found.1.map(|found| found.1), expected.1.map(|expected| expected.1), "{found:?}");
        let apart = found.1.zip(expected.1).map_or(0.0, |(found, expected)| found.0 - expected.0);
        assert!(apart.abs() < 1e-9, "{found:?} {expected:?}");
    }
}

#[test]
fn a_share_is_that_of_the_fastest_way_to_the_memory() {
    let node = |number| PeakOwner::Node(NodeId::new(number));
    check(
        &report(),
        &[
            (node(0), Some((87.5, Kernel::TriadNt))),
            (node(1), Some((75.0, Kernel::Read))),
            (PeakOwner::Machine, Some((75.0, Kernel::Read))),
        ],
    );
    let mut unknown = report();
    let yardstick = unknown.yardstick.as_mut().unwrap();
    yardstick.nodes[0].1 = Err("no".to_owned());
    yardstick.machine = Err("no".to_owned());
    check(&unknown, &[(node(0), None), (node(1), Some((75.0, Kernel::Read))), (PeakOwner::Machine, None)]);
    let mut refused = report();
    for way in refused.matrix.iter_mut().chain(&mut refused.kernels) {
        way.cell.figure = None;
    }
    check(&refused, &[(node(0), None), (node(1), None), (PeakOwner::Machine, Some((75.0, Kernel::Read)))]);
    check(&BandwidthReport { yardstick: None, ..report() }, &[]);
}

#[test]
fn a_part_of_the_nodes_is_not_the_machine() {
    let mut part = report();
    part.matrix.retain(|way| way.cell.from == NodeId::new(0) && way.cell.memory == NodeId::new(0));
    check(&part, &[(PeakOwner::Node(NodeId::new(0)), Some((87.5, Kernel::TriadNt)))]);
}

#[test]
fn more_than_the_peak_is_a_finding() {
    let above = |report: &BandwidthReport| {
        findings(report).into_iter().find_map(|finding| match finding {
            SurveyFinding::Shown(BandwidthFinding::AbovePeak { owner, .. }) => Some(owner),
            _ => None,
        })
    };
    assert_eq!(above(&report()), None);
    let mut fast = report();
    fast.matrix[3] = way(1, 1, 4, Kernel::Read, 60.0);
    assert_eq!(above(&fast), Some(PeakOwner::Node(NodeId::new(1))));
}

#[test]
fn a_whole_machine_is_all_nodes_at_once_or_the_only_one() {
    let is = |kernel: Kernel| move |way: &TransferReport| way.kernel == kernel;
    assert_eq!(report().whole_machine(is(Kernel::Read)), Some(76.8));
    assert_eq!(report().whole_machine(is(Kernel::TriadNt)), None, "not measured on all nodes");
    let mut one = BandwidthReport { everywhere: None, ..report() };
    assert_eq!(one.whole_machine(is(Kernel::Read)), None, "two nodes one by one");
    one.matrix.truncate(1);
    assert_eq!(one.whole_machine(is(Kernel::Read)), Some(40.0));
    assert_eq!(one.whole_machine(is(Kernel::TriadNt)), Some(44.8));
    assert_eq!(one.whole_machine(is(Kernel::Copy)), None, "one thread of four");
}

proptest! {
    #[test]
    fn a_share_is_what_was_reached_over_the_peak(
        medians in proptest::collection::vec(0.1_f64..500.0, 4), channels in 1_u32..17,
    ) {
        let mut report = report();
        for (way, median) in report.matrix.iter_mut().zip(&medians) {
            way.cell = CellReport::made(way.cell.from.number(), way.cell.memory.number(), *median);
        }
        report.kernels.clear();
        if let Some(yardstick) = &mut report.yardstick {
            yardstick.nodes[0].1 = peak(channels);
        }
        let shares = report.peak_shares();
        let most = medians[0].max(medians[2]);
        prop_assert_eq!(shares[0].reached_gb_per_s(), Some(most));
        let share = shares[0].share().unwrap();
        prop_assert!((share * f64::from(channels) * 25.6 - most).abs() < 1e-6);
    }
}
