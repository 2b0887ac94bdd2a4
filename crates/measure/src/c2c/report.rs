//! The record of `nodewise c2c`: everything that is shown, as plain data.

use nodewise_machine::{CpuId, NodeId};

use super::pairs::Relation;
use super::{Pair, Transfer};
use crate::cell::{Placed, Refusal};
use crate::survey::account::distinct;
use crate::survey::{Account, Figure, Outcome};
use nodewise_stats::Direction;
use nodewise_stats::{median, quantile};

/// Where the memory of a line is, as seen by its two CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Home {
    /// On the node of the CPU that gets the line; of both, where they share it.
    Near,
    /// On the node of the CPU that has it.
    Far,
    /// On a node of neither.
    Elsewhere,
}

impl Home {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Near, Self::Far, Self::Elsewhere];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
            Self::Elsewhere => "elsewhere",
        }
    }
}

/// One pair and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct PairReport {
    /// The CPUs, the node of the memory, and what was timed.
    pub pair: Pair,
    /// How the CPUs are related.
    pub relation: Relation,
    /// Where the memory is, as they see it.
    pub home: Home,
    /// Its figure in ns per line; `None` where it was refused, or has no samples.
    pub figure: Option<Figure>,
    /// Why there is none, in words.
    pub refused: Option<String>,
    /// Where the memory was before samples were taken.
    pub before: Option<Placed>,
    pub after: Option<Placed>,
    pub disturbed: bool,
}

impl PairReport {
    /// The outcome of a pair; `explain` makes a sentence of a refusal.
    pub fn new(
        pair: Pair,
        relation: Relation,
        home: Home,
        outcome: &Outcome,
        explain: &dyn Fn(&Refusal) -> String,
    ) -> Self {
        let moved = || outcome.has_moved().then(|| format!("its page did not stay on node {}", pair.home));
        Self {
            pair,
            relation,
            home,
            figure: outcome.figure(Direction::LowerIsBetter),
            refused: outcome.refusal.as_ref().map(explain).or_else(moved),
            before: outcome.before.clone(),
            after: outcome.after.clone(),
            disturbed: outcome.is_disturbed(),
        }
    }
}

/// Summary of the pairs of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// How the CPUs are related.
    pub relation: Relation,
    pub transfer: Transfer,
    pub home: Home,
    /// How many pairs have a figure.
    pub pairs: usize,
    /// The median of their medians, ns.
    pub median_ns: f64,
    /// The least of them.
    pub least_ns: f64,
    /// And the most.
    pub most_ns: f64,
}

/// All pairs and how they were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct C2cReport {
    /// The survey as a whole.
    pub account: Account,
    /// CPUs that could have been measured; some represent all.
    pub candidates: usize,
    pub pairs: Vec<PairReport>,
}

impl C2cReport {
    /// The CPUs, ascending.
    pub fn cpus(&self) -> Vec<CpuId> {
        distinct(self.pairs.iter().flat_map(|report| [report.pair.to, report.pair.from]))
    }

    /// Returns the transfers that were timed, in the order of tables.
    pub fn transfers(&self) -> Vec<Transfer> {
        distinct(self.pairs.iter().map(|report| report.pair.transfer))
    }

    /// The homes that were measured, in the order of tables.
    pub fn homes(&self) -> Vec<Home> {
        distinct(self.pairs.iter().map(|report| report.home))
    }

    /// The cell of a matrix.
    pub fn pair(&self, to: CpuId, from: CpuId, transfer: Transfer, home: Home) -> Option<&PairReport> {
        self.pairs.iter().find(|report| {
            (report.pair.to, report.pair.from, report.pair.transfer, report.home)
                == (to, from, transfer, home)
        })
    }

    /// Summarizes each kind of pairs, nearest first.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups = Vec::new();
        for relation in Relation::ALL {
            for transfer in self.transfers() {
                for home in self.homes() {
                    groups.extend(self.group(relation, transfer, home));
                }
            }
        }
        groups
    }

    fn group(&self, relation: Relation, transfer: Transfer, home: Home) -> Option<Group> {
        let is_one = |report: &&PairReport| {
            (report.relation, report.pair.transfer, report.home) == (relation, transfer, home)
        };
        let medians: Vec<f64> = self
            .pairs
            .iter()
            .filter(is_one)
            .filter_map(|report| report.figure.as_ref())
            .map(|figure| figure.median)
            .collect();
        Some(Group {
            relation,
            transfer,
            home,
            pairs: medians.len(),
            median_ns: median(&medians)?,
            least_ns: quantile(&medians, 0.0)?,
            most_ns: quantile(&medians, 1.0)?,
        })
    }
}

/// Where a node is, as seen by two CPUs on these nodes.
pub fn home(to: Option<NodeId>, from: Option<NodeId>, home: NodeId) -> Home {
    if to == Some(home) {
        Home::Near
    } else if from == Some(home) {
        Home::Far
    } else {
        Home::Elsewhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_seen_from_both_sides() {
        let check = |to, from, of, expected| {
            assert_eq!(home(Some(NodeId::new(to)), Some(NodeId::new(from)), NodeId::new(of)), expected);
        };
        check(0, 0, 0, Home::Near);
        check(0, 1, 0, Home::Near);
        check(0, 1, 1, Home::Far);
        check(0, 1, 2, Home::Elsewhere);
        assert_eq!(home(None, None, NodeId::new(0)), Home::Elsewhere);
    }

    #[test]
    fn groups_are_medians_of_pairs_with_figures() {
        let pair = |to: u32, from: u32, median: Option<f64>| PairReport {
            pair: Pair {
                to: CpuId::new(to),
                from: CpuId::new(from),
                home: NodeId::new(0),
                transfer: Transfer::Dirty,
            },
            relation: Relation::Cache,
            home: Home::Near,
            figure: median.and_then(|median| Figure::from_rounds(&[vec![median]], Direction::LowerIsBetter)),
            refused: None,
            before: None,
            after: None,
            disturbed: false,
        };
        let report = C2cReport {
            account: Account::default(),
            candidates: 2,
            pairs: vec![pair(0, 1, Some(50.0)), pair(1, 0, Some(60.0)), pair(0, 2, None)],
        };
        let [group] = report.groups()[..] else { panic!("one group") };
        assert_eq!((group.pairs, group.median_ns, group.least_ns, group.most_ns), (2, 55.0, 50.0, 60.0));
        assert_eq!(report.cpus(), [0, 1, 2].map(CpuId::new));
    }
}
