//! Which evidence carries the advice of a study: what differs most clearly between the default and the placement
//! that is named, beside the metric itself.

use nodewise_experiment::evidence::Counter;
use nodewise_experiment::schedule::ArmId;
use nodewise_experiment::study::Study;
use nodewise_experiment::verdict::{Advice, Analysis};
use nodewise_machine::NodeId;

use super::evidence::Counted;

/// Two shares differ clearly from this difference on, and two counts from this ratio on where the larger one is at
/// least this many: a choice. Runs of one placement differ by less.
const SHARES_APART: f64 = 0.1;
const TIMES: f64 = 1.5;
const LEAST_COUNT: f64 = 1000.0;

/// The counts that can explain a gain, the most direct first: with less of each, a program waits less.
const FEWER: [Counted; 7] = [
    Counted::Event(Counter::NodeLoadMisses),
    Counted::Event(Counter::TlbLoadMisses),
    Counted::Foreign,
    Counted::Balanced,
    Counted::Moved,
    Counted::MajorFaults,
    Counted::MinorFaults,
];

/// The quantity that differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Difference {
    /// The share of the program's own memory on a node.
    Memory(NodeId),
    Counted(Counted),
}

/// Why a placement is named: what was seen under the default and under it.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The clearest difference, with the values of the default and of the placement; `None` where nothing that was
    /// seen differs clearly.
    pub difference: Option<(Difference, f64, f64)>,
    placement: String,
}

impl Why {
    /// That of a study; `None` where it names no placement.
    pub fn from_study(study: &Study, analysis: &Analysis) -> Option<Self> {
        let Advice::Use { best, .. } = analysis.advice else { return None };
        let difference = memory(study, best).or_else(|| counted(study, best));
        Some(Self { difference, placement: study.plan.arm(best).name.clone() })
    }

    /// As a sentence, without an end.
    pub fn sentence(&self) -> String {
        let name = &self.placement;
        let Some((difference, default, best)) = &self.difference else {
            return format!(
                "not known: memory by node, faults and other counts are about those of the default; the difference of \
                 the medians alone speaks for {name}"
            );
        };
        let (default, best) = match difference {
            Difference::Memory(_) | Difference::Counted(Counted::Local) => {
                (percent(*default), percent(*best))
            }
            Difference::Counted(counted) => (counted.words(*default), counted.words(*best)),
        };
        let what = match difference {
            Difference::Memory(node) => format!("of its memory was on node {node}"),
            Difference::Counted(counted) => noun(*counted).to_owned(),
        };
        format!("{default} {what} by default, {best} with {name}")
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Names a counted quantity, behind a number.
const fn noun(counted: Counted) -> &'static str {
    match counted {
        Counted::Local => "of allocations were local",
        Counted::Event(Counter::NodeLoadMisses) => "loads came from another node's memory",
        Counted::Event(Counter::TlbLoadMisses) => "loads missed the TLB",
        Counted::Foreign => "pages were allocated on another node than intended",
        Counted::Balanced => "pages were moved by NUMA balancing",
        Counted::Moved => "pages were moved",
        Counted::MajorFaults => "page faults had to read",
        _ => "page faults",
    }
}

/// The node on which the shares of the program's memory differ most, where they differ clearly.
fn memory(study: &Study, best: ArmId) -> Option<(Difference, f64, f64)> {
    let (default, best) = (study.residency(ArmId::BASELINE)?, study.residency(best)?);
    let nodes = default.by_node.keys().chain(best.by_node.keys());
    let shares =
        nodes.filter_map(|node| Some((*node, default.share(*node)?, best.share(*node).unwrap_or(0.0))));
    let apart = |(_, default, best): &(NodeId, f64, f64)| (default - best).abs();
    // Of nodes alike the first.
    let (node, default, best) =
        shares.reduce(|one, other| if apart(&other) > apart(&one) + 1e-9 { other } else { one })?;
    ((default - best).abs() >= SHARES_APART).then_some((Difference::Memory(node), default, best))
}

/// The most direct of what was counted that differs clearly, for the better.
fn counted(study: &Study, best: ArmId) -> Option<(Difference, f64, f64)> {
    let medians =
        |counted: Counted| Some((counted.median(study, ArmId::BASELINE)?, counted.median(study, best)?));
    let is_more_local = |(default, best): &(f64, f64)| best - default >= SHARES_APART;
    let local = medians(Counted::Local).filter(is_more_local);
    let fewer = || {
        FEWER.into_iter().find_map(|counted| {
            let (default, best) = medians(counted)?;
            (default >= LEAST_COUNT && default >= TIMES * best).then_some((counted, default, best))
        })
    };
    let found = local.map(|(default, best)| (Counted::Local, default, best)).or_else(fewer)?;
    Some((Difference::Counted(found.0), found.1, found.2))
}
