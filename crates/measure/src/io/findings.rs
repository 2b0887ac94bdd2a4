//! Findings from reading devices, and how far they can be believed.

use nodewise_machine::NodeId;
use nodewise_machine::order::Order as _;

use super::{Access, DeviceReport, IoReport, IoTransferReport};
use crate::survey::{Figure, SurveyFinding};
use nodewise_stats::Direction;

/// Two nodes differ when one is this much better than the other and their intervals are apart.
const DIFFERENT: f64 = 1.05;

/// Something that reading devices shows.
#[derive(Clone, Debug, PartialEq)]
pub enum IoFinding {
    /// Buffers on one node cost more than on another.
    Far {
        device: String,
        access: Access,
        /// The best node, and the worst.
        nodes: (NodeId, NodeId),
        /// How many times the best is better than the worst: above 1.
        times: f64,
        /// The node that the device hangs on, where it is known.
        home: Option<NodeId>,
    },
}

/// The contents of a report.
pub fn findings(report: &IoReport) -> Vec<SurveyFinding<IoFinding>> {
    let far = report.devices.iter().flat_map(|device| Access::ALL.map(|access| far(device, access)));
    let mut findings: Vec<SurveyFinding<IoFinding>> = far.flatten().map(SurveyFinding::Shown).collect();
    findings.extend(report.account.noise(report.cells()).into_iter().map(SurveyFinding::Noise));
    findings
}

fn far(device: &DeviceReport, access: Access) -> Option<IoFinding> {
    let measured = |way: &'_ IoTransferReport| way.cell.figure.map(|figure| (way.cell.memory, figure));
    let of_access = device.ways.iter().filter(|way| way.access == access);
    let mut figures: Vec<(NodeId, Figure)> = of_access.filter_map(measured).collect();
    figures.order_by(|one, other| one.1.median.total_cmp(&other.1.median));
    let ((least, low), (most, high)) = (figures.first()?, figures.last()?);
    let apart = low.interval.zip(high.interval).is_some_and(|(low, high)| low.high < high.low);
    let times = high.median / low.median;
    let nodes = match access.direction() {
        Direction::LowerIsBetter => (*least, *most),
        Direction::HigherIsBetter => (*most, *least),
    };
    let home = device.home.node();
    (apart && times > DIFFERENT).then(|| IoFinding::Far {
        device: device.name.clone(),
        access,
        nodes,
        times,
        home,
    })
}

#[cfg(test)]
mod tests {
    use nodewise_machine::Bytes;

    use super::*;
    use crate::io::{DeviceKind, Home};
    use crate::survey::{Account, CellReport};

    fn report(access: Access, medians: &[f64]) -> IoReport {
        let way = |(memory, median): (u32, &f64)| IoTransferReport {
            access,
            cell: CellReport::made(0, memory, *median),
        };
        let device = DeviceReport {
            name: "sda".to_owned(),
            kind: DeviceKind::Block,
            home: Home::Node(NodeId::new(1)),
            size: None,
            refused: None,
            ways: (0..).zip(medians).map(way).collect(),
            perftest: Vec::new(),
        };
        IoReport { account: Account::default(), size: Bytes::from_mib(16), devices: vec![device] }
    }

    fn check(access: Access, medians: &[f64], expected: Option<(u32, u32)>) {
        let found = findings(&report(access, medians));
        let nodes: Vec<(u32, u32)> = found
            .iter()
            .map(|finding| match finding {
                SurveyFinding::Shown(IoFinding::Far { nodes: (best, worst), times, home, .. }) => {
                    assert!(*times > 1.0 && *home == Some(NodeId::new(1)));
                    (best.number(), worst.number())
                }
                SurveyFinding::Noise(noise) => panic!("{noise:?}"),
            })
            .collect();
        assert_eq!(nodes, Vec::from_iter(expected), "{access:?} {medians:?}");
    }

    #[test]
    fn the_best_and_the_worst_node_are_named_where_their_intervals_are_apart() {
        check(Access::Random, &[90.0, 80.0, 120.0], Some((1, 2)));
        check(Access::Sequential, &[3.0, 6.0, 5.0], Some((1, 0)));
        check(Access::Sequential, &[6.0, 6.1], None);
        check(Access::Random, &[80.0], None);
        check(Access::Random, &[], None);
    }
}
