//! Zones and fallback orders: what text and JSON both show.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;
use nodewise_model::zonelist::Zonelist;
use nodewise_model::{BuiltAt, FallbackOrders, Release, Watermarks, Zone, ZoneKind, ZoneState};

use super::walk::Basis;

/// A zone: where it is, and how full.
pub type Row = (Zone, ZoneState);

/// The zones of a machine beside what the model says of them.
#[derive(Clone, Copy, Debug)]
pub struct Zones<'a> {
    /// By node and then lowest first. Watermarks are those in force, a boost included.
    pub rows: &'a [Row],
    /// What a boost adds to every watermark of a row at the moment; `None` where the kernel does not say.
    pub boosts: &'a [Option<u64>],
    /// Where they come from.
    pub basis: Basis,
    /// The same zones with the watermarks and reserves that follow from their managed pages.
    pub model: &'a [Row],
    /// Whose rules the model follows.
    pub release: Release,
}

impl<'a> Zones<'a> {
    /// The model's rows where the kernel has other reserves, or other watermarks without their boost.
    pub fn differing(&self) -> Vec<Row> {
        let rows = self.rows.iter().zip(self.boosts).zip(self.model);
        let differs = |(_, kernel): &Row, boost: u64, (_, ours): &Row| {
            without(kernel.marks, boost) != ours.marks || kernel.reserves != ours.reserves
        };
        rows.filter(|((row, boost), ours)| differs(row, boost.unwrap_or(0), ours))
            .map(|(_, ours)| ours.clone())
            .collect()
    }

    /// Zones with a boost in force, and how many pages it has.
    pub fn boosted(&self) -> impl Iterator<Item = (&'a Zone, u64)> + use<'a> {
        let rows = self.rows.iter().zip(self.boosts);
        rows.filter_map(|((zone, _), boost)| boost.filter(|pages| *pages > 0).map(|pages| (zone, pages)))
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

/// The orders that the kernel itself told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
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
    /// What the model says.
    pub orders: &'a FallbackOrders,
    /// What it says of orders built at the other moment.
    pub others: &'a FallbackOrders,
    /// When the orders were built.
    pub built: BuiltAt,
    /// The populated zones of all nodes.
    pub zones: &'a [Zone],
    /// Whose rules these are.
    pub release: Release,
    /// What the kernel says itself.
    pub told: &'a Told,
}

impl Orders<'_> {
    /// What is to be said where the rules of the orders were others.
    pub fn remark(&self) -> Option<&'static str> {
        let is_old = self.release < Release::new(5, 16);
        is_old.then_some(
            "before Linux 5.16 nodes were loaded otherwise: nodes at the same distance may come in another order",
        )
    }

    /// The zones of each node, the highest first: all that is tried where a page must come from the node.
    pub fn own_zones(&self) -> BTreeMap<NodeId, Vec<ZoneKind>> {
        let mut zones: BTreeMap<NodeId, Vec<Zone>> = BTreeMap::new();
        self.zones.iter().for_each(|zone| zones.entry(zone.node).or_default().push(*zone));
        let own = |(node, _): (NodeId, &[NodeId])| {
            let own = zones.get(&node).map_or(&[][..], Vec::as_slice);
            let list = Zonelist::of(node, self.orders, own).no_fallback;
            (node, list.into_iter().map(|(_, kind)| kind).collect())
        };
        self.orders.iter().map(own).collect()
    }

    /// Nodes whose order the kernel tells, and tells otherwise than the model.
    pub fn differing(&self) -> Vec<(NodeId, &[NodeId])> {
        let Told::Orders(told) = self.told else { return Vec::new() };
        let other = |(node, order): &(NodeId, &[NodeId])| *order != self.orders.from(*node);
        told.iter().map(|(node, order)| (*node, order.as_slice())).filter(other).collect()
    }

    /// Whether all that the kernel tells is what the model says of orders built at the other moment.
    pub fn is_other_moment(&self) -> bool {
        let Told::Orders(told) = self.told else { return false };
        told.iter().all(|(node, order)| *order == self.others.from(*node))
    }
}

/// An order in words that stay short for many nodes: numbers that follow one another as ranges. Of more than
/// `most` ranges half as many are told.
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
    /// The words.
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
