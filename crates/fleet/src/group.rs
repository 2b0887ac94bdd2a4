//! Groups of identical machines, and the distribution of their figures.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use nodewise_machine::NodeId;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_stats::location::quantile_of_sorted;

use crate::outlier::{Population, Slowness, judge, middle};
use crate::survey::{CellKey, HostSurvey, Quantity};

/// The probability of naming any machine of a healthy group an outlier, with normal noise: all figures of the group together.
pub const FALSE_ALARMS: f64 = 0.01;
/// Pairs of nodes that explain an outlier.
const MOST_PAIRS: usize = 3;

/// Machines of one kind and one layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// A letter: the largest group is A.
    pub name: String,
    /// The hardware and its division into nodes in words. Foreign text.
    pub kind: String,
    pub layout: String,
    pub layout_key: u64,
    /// Hosts, in order.
    pub hosts: Vec<String>,
    pub distributions: Vec<Distribution>,
    pub figures: Vec<GroupFigure>,
}

/// The distribution of one figure over the machines of a group, in the unit of its quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distribution {
    pub cell: CellKey,
    pub count: usize,
    pub least: f64,
    pub quarter: f64,
    pub median: f64,
    pub three_quarters: f64,
    pub most: f64,
}

/// A figure by which machines are judged: over all pairs of nodes, or over those with the memory of one node. One slow
/// memory module moves the second and, on a machine with many nodes, not the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FigureName {
    pub quantity: Quantity,
    pub memory: Option<NodeId>,
}

impl fmt::Display for FigureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.quantity.word())?;
        self.memory.map_or(Ok(()), |node| write!(f, " of node {node}'s memory"))
    }
}

/// A judged figure of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupFigure {
    pub name: FigureName,
    /// How many times slower than usual each host is; those without the figure are left out.
    pub slowness: BTreeMap<String, f64>,
    /// Machines that are alike: one population, or two.
    pub populations: Vec<GroupPopulation>,
}

/// Machines that are alike in a figure, with names.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupPopulation {
    pub hosts: Vec<String>,
    pub yardstick: crate::outlier::Yardstick,
    pub outliers: Vec<Outlier>,
}

/// A machine that is slower than its group.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlier {
    pub host: String,
    pub figure: FigureName,
    /// How many times slower than the median of its group.
    pub slowness: f64,
    /// The same in robust deviations.
    pub deviations: f64,
    /// The slowest of its pairs of nodes.
    pub pairs: Vec<OutlierPair>,
}

/// A figure of an outlier beside that of its group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutlierPair {
    pub cell: CellKey,
    pub value: f64,
    pub usual: f64,
}

/// The medians of figures over the machines of a group.
pub type UsualFigures = BTreeMap<CellKey, f64>;

impl Group {
    /// A group of these machines, in order of hosts.
    pub fn new(name: String, machines: &[&HostSurvey]) -> Self {
        let distributions = distributions(machines);
        let usual: UsualFigures = distributions.iter().map(|one| (one.cell, one.median)).collect_map();
        let names = figure_names(&usual);
        let probability = FALSE_ALARMS / names.len().max(1) as f64;
        let figures = names.into_iter().filter_map(|name| figure(name, machines, &usual, probability));
        let first = machines.first().map(|survey| &survey.structure);
        Self {
            name,
            kind: first.map(|structure| structure.kind.clone()).unwrap_or_default(),
            layout: first.map(|structure| structure.layout.clone()).unwrap_or_default(),
            layout_key: first.map(|structure| structure.layout_key).unwrap_or_default(),
            hosts: machines.iter().map(|survey| survey.key.host.clone()).collect(),
            figures: figures.collect(),
            distributions,
        }
    }

    /// All outliers of the group.
    pub fn outliers(&self) -> impl Iterator<Item = &Outlier> {
        self.figures.iter().flat_map(|figure| &figure.populations).flat_map(|one| &one.outliers)
    }
}

/// Machines by kind and layout: the largest group first.
pub fn groups(surveys: &[HostSurvey]) -> Vec<Group> {
    let mut members: BTreeMap<(&str, u64), Vec<&HostSurvey>> = BTreeMap::new();
    for survey in surveys {
        members.entry((&survey.structure.kind, survey.structure.layout_key)).or_default().push(survey);
    }
    let mut members: Vec<_> = members.into_values().collect();
    members.order_by_key(|machines| std::cmp::Reverse(machines.len()));
    members.iter().enumerate().map(|(at, machines)| Group::new(letters(at), machines)).collect()
}

/// The name of a group: A to Z, then AA.
fn letters(mut at: usize) -> String {
    let mut name = String::new();
    loop {
        name.insert(0, char::from(b'A' + (at % 26) as u8));
        match (at / 26).checked_sub(1) {
            Some(rest) => at = rest,
            None => return name,
        }
    }
}

fn distributions(machines: &[&HostSurvey]) -> Vec<Distribution> {
    let mut values: BTreeMap<CellKey, Vec<f64>> = BTreeMap::new();
    for survey in machines {
        for (key, cell) in &survey.cells {
            values.entry(*key).or_default().push(cell.value);
        }
    }
    let distribution = |(cell, mut values): (CellKey, Vec<f64>)| {
        values.sort_unstable_by(f64::total_cmp);
        let [least, quarter, median, three_quarters, most] =
            [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| quantile_of_sorted(&values, part));
        Distribution { cell, count: values.len(), least, quarter, median, three_quarters, most }
    };
    values.into_iter().map(distribution).collect()
}

/// The figures by which machines with these cells are judged.
pub fn figure_names(usual: &UsualFigures) -> BTreeSet<FigureName> {
    let mut names = BTreeSet::new();
    for quantity in Quantity::ALL {
        let of_quantity = || usual.keys().filter(|key| key.quantity == quantity);
        let nodes: BTreeSet<NodeId> = of_quantity().map(|key| key.memory).collect_set();
        names.extend(nodes.first().map(|_| FigureName { quantity, memory: None }));
        // Of one node both figures are the same.
        let nodes = nodes.iter().filter(|_| nodes.len() > 1);
        names.extend(nodes.map(|node| FigureName { quantity, memory: Some(*node) }));
    }
    names
}

/// How many times slower than usual a machine is in a figure: the median over its pairs of nodes. `None` where it has none
/// of them.
pub fn slowness(name: FigureName, survey: &HostSurvey, usual: &UsualFigures) -> Option<Slowness> {
    let mut parts: Vec<(f64, f64)> = survey
        .cells
        .iter()
        .filter(|(key, _)| key.quantity == name.quantity && name.memory.is_none_or(|node| node == key.memory))
        .filter_map(|(key, cell)| {
            let slowness = name.quantity.slowness(cell.value, *usual.get(key)?);
            Some((slowness, slowness * cell.error_share))
        })
        .collect();
    parts.order_by(|a, b| a.0.total_cmp(&b.0));
    let [values, errors]: [Vec<f64>; 2] =
        [parts.iter().map(|part| part.0).collect(), parts.iter().map(|part| part.1).collect()];
    // The median of several figures is at least as certain as a typical one of them.
    let mut errors = errors;
    errors.order_by(f64::total_cmp);
    Some(Slowness { value: middle(&values)?, error: middle(&errors)? })
}

fn figure(
    name: FigureName,
    machines: &[&HostSurvey],
    usual: &UsualFigures,
    probability: f64,
) -> Option<GroupFigure> {
    let known: Vec<(&HostSurvey, Slowness)> =
        machines.iter().filter_map(|survey| Some((*survey, slowness(name, survey, usual)?))).collect();
    let values: Vec<Slowness> = known.iter().map(|(_, slowness)| *slowness).collect();
    let populations = judge(&values, probability);
    if populations.is_empty() {
        return None;
    }
    let host = |at: &usize| known[*at].0.key.host.clone();
    let named = |population: Population| {
        let Population { members, yardstick, outliers } = population;
        let outlier = |at: &usize| {
            let (survey, slowness) = known[*at];
            Outlier {
                host: host(at),
                figure: name,
                slowness: slowness.value / yardstick.median,
                deviations: yardstick.deviations(slowness),
                pairs: pairs(name, survey, usual),
            }
        };
        GroupPopulation {
            hosts: members.iter().map(host).collect(),
            outliers: outliers.iter().map(outlier).collect(),
            yardstick,
        }
    };
    Some(GroupFigure {
        name,
        slowness: known
            .iter()
            .map(|(survey, slowness)| (survey.key.host.clone(), slowness.value))
            .collect_map(),
        populations: populations.into_iter().map(named).collect(),
    })
}

/// The slowest pairs of nodes of a machine, beside what is usual.
pub fn pairs(name: FigureName, survey: &HostSurvey, usual: &UsualFigures) -> Vec<OutlierPair> {
    let mut pairs: Vec<OutlierPair> = survey
        .cells
        .iter()
        .filter(|(key, _)| key.quantity == name.quantity && name.memory.is_none_or(|node| node == key.memory))
        .filter_map(|(key, cell)| {
            Some(OutlierPair { cell: *key, value: cell.value, usual: *usual.get(key)? })
        })
        .collect();
    let slowness = |pair: &OutlierPair| name.quantity.slowness(pair.value, pair.usual);
    pairs.order_by(|a, b| slowness(b).total_cmp(&slowness(a)).then(a.cell.cmp(&b.cell)));
    pairs.truncate(MOST_PAIRS);
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::tests::measured;

    /// A fleet whose hosts differ by up to 1 %.
    fn fleet(count: usize) -> Vec<HostSurvey> {
        let part = |at: usize| 1.0 + 0.01 * ((at * 5 % count) as f64 / count as f64 - 0.5);
        (0..count).map(|at| measured(&format!("n{at:02}"), [part(at), part(at + 3)])).collect()
    }

    #[test]
    fn names_of_groups_go_on_behind_z() {
        assert_eq!(
            [0, 1, 25, 26, 27, 51, 52, 701, 702].map(letters),
            ["A", "B", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA"]
        );
    }

    #[test]
    fn one_slow_node_is_found_by_the_figure_of_its_memory() {
        let mut fleet = fleet(12);
        fleet[4] = measured("n04", [1.0, 1.3]);
        let groups = groups(&fleet);
        assert_eq!(groups.len(), 1);
        let outliers: Vec<&Outlier> = groups[0].outliers().collect();
        let names: Vec<String> = outliers.iter().map(|outlier| outlier.figure.to_string()).collect();
        assert!(outliers.iter().all(|outlier| outlier.host == "n04"), "{outliers:?}");
        assert!(names.contains(&"latency of node 1's memory".to_owned()), "{names:?}");
        assert!(!names.contains(&"latency of node 0's memory".to_owned()), "{names:?}");
        let node = outliers.iter().find(|outlier| outlier.figure.memory.is_some()).unwrap();
        assert!((node.slowness - 1.3).abs() < 0.02, "{node:?}");
        assert_eq!(node.pairs[0].cell.memory, NodeId::new(1));
    }

    #[test]
    fn a_healthy_group_has_no_outlier_and_its_distribution_is_known() {
        let groups = groups(&fleet(20));
        assert_eq!(groups[0].outliers().count(), 0);
        let local = groups[0].distributions[0];
        assert_eq!(local.count, 20);
        assert!(local.least < local.median && local.median < local.most, "{local:?}");
    }
}
