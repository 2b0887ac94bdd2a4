//! Zones and fallback orders: what text and JSON both show.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;
use nodewise_model::zonelist::Zonelists;
use nodewise_model::{BuiltAt, FallbackOrders, Release, Watermarks, Zone, ZoneState};

use super::walk::Basis;

/// A zone: where it is, and how full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub zone: Zone,
    /// How full. Watermarks are those in force, a boost included.
    pub state: ZoneState,
    /// The pages that a boost adds to every watermark at the moment; `None` where no kernel says.
    pub boost: Option<u64>,
}

/// The zones of a machine beside what the model says of them.
#[derive(Clone, Copy, Debug)]
pub struct Zones<'a> {
    /// By node and then lowest first.
    pub rows: &'a [Row],
    pub basis: Basis,
    /// Bytes of a page.
    pub page: u64,
    /// The same zones with the watermarks and reserves that follow from their managed pages.
    pub model: &'a [Row],
    /// Whose rules the model follows.
    pub release: Release,
}

impl<'a> Zones<'a> {
    /// The model's rows where the kernel has other reserves, or other watermarks without their boost.
    pub fn differing(&self) -> Vec<Row> {
        let differs = |kernel: &Row, ours: &Row| {
            let marks = without(kernel.state.marks, kernel.boost.unwrap_or(0));
            marks != ours.state.marks || kernel.state.reserves != ours.state.reserves
        };
        let rows = self.rows.iter().zip(self.model).filter(|(kernel, ours)| differs(kernel, ours));
        rows.map(|(_, ours)| ours.clone()).collect()
    }

    /// Zones with a boost in force, and how many pages it has.
    pub fn boosted(&self) -> impl Iterator<Item = (&'a Zone, u64)> + use<'a> {
        let boosted = |row: &'a Row| Some((&row.zone, row.boost.filter(|pages| *pages > 0)?));
        self.rows.iter().filter_map(boosted)
    }
}

/// Watermarks less what a boost adds to each of them.
fn without(marks: Watermarks, boost: u64) -> Watermarks {
    let less = |mark: u64| mark.saturating_sub(boost);
    Watermarks {
        min: less(marks.min),
        low: less(marks.low),
        high: less(marks.high),
        promo: less(marks.promo),
    }
}

/// The orders in the kernel's own log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoggedOrders {
    /// There is no kernel to ask, or another one is meant.
    NotAsked,
    /// It cannot be known, and why.
    Unknown(String),
    /// The orders in its log, the last of each node.
    Orders(BTreeMap<NodeId, Vec<NodeId>>),
}

/// The fallback order of every node.
#[derive(Clone, Copy, Debug)]
pub struct Orders<'a> {
    pub orders: &'a FallbackOrders,
    /// The orders as built at the other moment.
    pub others: &'a FallbackOrders,
    /// When the orders were built.
    pub built: BuiltAt,
    /// The populated zones of all nodes.
    pub zones: &'a [Zone],
    /// Where the zones come from.
    pub basis: Basis,
    pub release: Release,
    pub logged: &'a LoggedOrders,
}

impl Orders<'_> {
    /// Returns the remark on orders whose rules were others.
    pub fn remark(&self) -> Option<&'static str> {
        let is_old = self.release < Release::new(5, 16);
        is_old.then_some(
            "before Linux 5.16 nodes were loaded otherwise: nodes at the same distance may come in another order",
        )
    }

    /// The zones that are tried.
    pub fn lists(&self) -> Zonelists<'_> {
        Zonelists::new(self.orders, self.zones)
    }

    /// Nodes whose order in the kernel's log differs from the model's.
    pub fn differing(&self) -> Vec<(NodeId, &[NodeId])> {
        let LoggedOrders::Orders(told) = self.logged else { return Vec::new() };
        let other = |(node, order): &(NodeId, &[NodeId])| *order != self.orders.logged(*node, self.release);
        told.iter().map(|(node, order)| (*node, order.as_slice())).filter(other).collect()
    }

    /// Whether all that the kernel reports is what the model says of orders built at the other moment.
    pub fn is_other_moment(&self) -> bool {
        let LoggedOrders::Orders(told) = self.logged else { return false };
        told.iter().all(|(node, order)| *order == self.others.logged(*node, self.release))
    }
}

/// An order in words that stay short for many nodes: numbers that follow one another as ranges. Of more than
/// `most` ranges half as many are reported.
pub fn in_words(order: &[NodeId], most: usize) -> Words {
    let mut runs: Vec<(NodeId, NodeId)> = Vec::new();
    for node in order {
        match runs.last_mut() {
            Some((_, last)) if last.number() + 1 == node.number() => *last = *node,
            _ => runs.push((*node, *node)),
        }
    }
    let told = if runs.len() > most { most / 2 } else { runs.len() };
    let text = |(first, last): &(NodeId, NodeId)| match last.number() - first.number() {
        0 => first.to_string(),
        1 => format!("{first} {last}"),
        _ => format!("{first}-{last}"),
    };
    let mut words: Vec<String> = runs[..told].iter().map(text).collect();
    let rest: u32 = runs[told..].iter().map(|(first, last)| last.number() - first.number() + 1).sum();
    if rest > 0 {
        words.push(format!("and {rest} more"));
    }
    Words { text: words.join(" "), is_cut: rest > 0 }
}

/// An order in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    pub text: String,
    /// Whether nodes at the end are only counted.
    pub is_cut: bool,
}

/// Whether an order is the node itself, those above it, then those below it, each by their numbers.
pub fn is_rotation(node: NodeId, order: &[NodeId]) -> bool {
    if order.first() != Some(&node) {
        return false;
    }
    let falls = order.windows(2).filter(|pair| pair[0] >= pair[1]).count();
    match (order.first(), order.last()) {
        (Some(first), Some(last)) => falls == 0 || falls == 1 && last < first,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    fn nodes(order: &[u32]) -> Vec<NodeId> {
        order.iter().copied().map(NodeId::new).collect()
    }

    fn check(order: &[u32], most: usize, expected: &str) {
        assert_eq!(in_words(&nodes(order), most).text, expected);
    }

    #[test]
    fn orders_are_told_by_ranges() {
        check(&[1, 0, 3, 2], 16, "1 0 3 2");
        check(&[0, 1, 2, 7, 8, 3, 4, 5, 6], 16, "0-2 7 8 3-6");
        check(&[2, 1, 0, 5, 6, 7], 4, "2 1 0 5-7");
        check(&[2, 1, 0, 5, 6, 7], 2, "2 and 5 more");
        check(&[], 16, "");
    }

    #[test]
    fn a_log_that_names_a_node_without_memory_before_6_7_is_no_difference() {
        let machine = spec::machine("(1c 1G) (1c) (1G); dist=10,20,30/20,10,15/30,15,10").unwrap();
        let [boot, run_time] =
            [BuiltAt::Boot, BuiltAt::RunTime].map(|at| FallbackOrders::from_machine(&machine, at));
        let check = |release: Release, bare: &[u32], expected: (usize, bool)| {
            let told = [(0, nodes(&[0, 2])), (1, nodes(bare)), (2, nodes(&[2, 0]))];
            let told = LoggedOrders::Orders(told.map(|(node, order)| (NodeId::new(node), order)).into());
            let (orders, others) = (&boot, &run_time);
            let orders = Orders {
                orders,
                others,
                built: BuiltAt::Boot,
                zones: &[],
                basis: Basis::Assumed,
                release,
                logged: &told,
            };
            assert_eq!((orders.differing().len(), orders.is_other_moment()), expected, "{release}: {bare:?}");
        };
        check(Release::new(6, 1), &[1, 2, 0], (0, true));
        check(Release::new(6, 7), &[2, 0], (0, true));
        check(Release::new(6, 7), &[1, 2, 0], (1, false));
        check(Release::new(6, 1), &[2, 0], (1, false));
    }

    #[test]
    fn a_rotation_begins_with_the_node_itself() {
        let check = |node: u32, order: &[u32], expected: bool| {
            assert_eq!(is_rotation(NodeId::new(node), &nodes(order)), expected, "{node}: {order:?}");
        };
        check(0, &[0, 1, 4], true);
        check(1, &[1, 4, 0], true);
        check(4, &[4, 0, 1], true);
        // A node without memory is not the first of its order.
        check(2, &[4, 0, 1], false);
        check(1, &[1, 0, 4], false);
        check(2, &[2, 4, 0, 3], false);
    }
}
