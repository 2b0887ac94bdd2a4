//! A table of distances in sentences: in words where words are exact, in classes of like nodes where
//! not.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Machine, NodeId, NodeSet};

use crate::digest::node::packages_of_nodes;

/// Most different remote distances that are reported in words; more make a list, not a sentence.
const MOST_LEVELS: usize = 4;

/// Most nodes among which like ones are looked for: comparing all with all takes the cube of it.
const MOST_COMPARED: usize = 256;

/// Lists of nodes up to this many characters are written out rather than called "others".
const SHORT_LIST: usize = 5;

/// Nodes that are nearer to each other than to any node outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The distance between two nodes of a group that no smaller group holds.
    pub distance: u32,
    /// The groups, those of one node left out.
    pub groups: Vec<NodeSet>,
}

/// The distances of a machine, looked at as a whole.
#[derive(Clone, Debug)]
pub struct Distances<'a> {
    machine: &'a Machine,
    nodes: Vec<NodeId>,
}

impl<'a> Distances<'a> {
    /// The distances between the nodes of a machine.
    pub fn from_machine(machine: &'a Machine) -> Self {
        Self { machine, nodes: machine.nodes.keys().copied().collect() }
    }

    /// The nodes, in order.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    /// The distance between two nodes.
    pub fn get(&self, from: NodeId, to: NodeId) -> Option<u32> {
        self.machine.distance(from, to)
    }

    /// Whether no distance is known.
    pub fn is_empty(&self) -> bool {
        self.machine.distances.is_empty()
    }

    /// All values between different nodes, ascending.
    pub fn remote_values(&self) -> BTreeSet<u32> {
        self.machine
            .distances
            .iter()
            .filter(|(from, to, _)| from != to)
            .map(|(_, _, value)| *value)
            .collect_set()
    }

    /// The distance of every node to itself, if all agree.
    pub fn itself(&self) -> Option<u32> {
        let mut values = self.nodes.iter().map(|node| self.get(*node, *node));
        let first = values.next()??;
        values.all(|value| value == Some(first)).then_some(first)
    }

    /// Groups inside groups, nearest first, that describe the whole table exactly; the last level
    /// is one group with all nodes. `None` when no such groups exist: then the table itself, or
    /// [`Distances::classes`], has to be shown.
    pub fn levels(&self) -> Option<Vec<Level>> {
        let values = self.remote_values();
        if values.len() > MOST_LEVELS || self.nodes.len() < 2 {
            return None;
        }
        let mut group_of: BTreeMap<NodeId, NodeId> =
            self.nodes.iter().map(|node| (*node, *node)).collect_map();
        let mut levels = Vec::new();
        for value in values {
            let inner = group_of.clone();
            let mut groups: BTreeMap<NodeId, NodeSet> = BTreeMap::new();
            for node in &self.nodes {
                // Everything at most this far away must be the same from each member's view: the
                // first node of the group is found from every one of them.
                let near =
                    |to: &&NodeId| **to == *node || self.get(*node, **to).is_some_and(|it| it <= value);
                let first = *self.nodes.iter().find(near)?;
                group_of.insert(*node, first);
                groups.entry(first).or_default().insert(*node);
            }
            if !self.hold(value, &groups, &inner) {
                return None;
            }
            let groups: Vec<NodeSet> = groups.into_values().filter(|group| group.len() > 1).collect();
            levels.push(Level { distance: value, groups });
        }
        let all = levels.last()?.groups.first()?.len() == self.nodes.len();
        all.then_some(levels)
    }

    /// Whether two nodes are this far apart exactly when they are in one group of this level and in
    /// no common group of the level inside it.
    fn hold(&self, value: u32, groups: &BTreeMap<NodeId, NodeSet>, inner: &BTreeMap<NodeId, NodeId>) -> bool {
        self.nodes.iter().all(|from| {
            let group = groups.values().find(|group| group.contains(*from));
            self.nodes.iter().filter(|to| *to != from).all(|to| {
                let here = group.is_some_and(|group| group.contains(*to)) && inner[from] != inner[to];
                here == (self.get(*from, *to) == Some(value))
            })
        })
    }

    /// The whole table in words, if words can say it exactly:
    /// `10 to itself, 11 inside a package, 20 to others`.
    pub fn words(&self) -> Option<String> {
        let itself = self.itself()?;
        let levels = self.levels()?;
        let (last, inner) = levels.split_last()?;
        if inner.is_empty() && last.distance == itself {
            return Some(format!("{itself} to itself and to every other"));
        }
        let mut parts = vec![format!("{itself} to itself")];
        let mut told: Vec<&NodeSet> = Vec::new();
        for level in inner {
            // A group that is no larger than at the level before has nothing at this distance.
            let new: Vec<&NodeSet> = level.groups.iter().filter(|group| !told.contains(group)).collect();
            parts.push(format!("{} inside {}", level.distance, self.group_words(&new)));
            told.extend(new);
        }
        let rest = if inner.is_empty() { "to every other" } else { "to others" };
        parts.push(format!("{} {rest}", last.distance));
        Some(sentence(&parts))
    }

    fn group_words(&self, groups: &[&NodeSet]) -> String {
        if self.are_the_packages(groups) {
            return "a package".to_owned();
        }
        let names: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let size = groups.first().map_or(0, |group| group.len());
        let regular = groups.iter().all(|group| group.len() == size && group.ranges().count() == 1);
        match &names[..] {
            [only] => only.clone(),
            [one, other] => format!("{one} and {other}"),
            [first, second, .., last] if regular && names.len() > 4 && self.in_a_row(groups) => {
                format!("each group of {size} ({first}, {second} ... {last})")
            }
            _ => names.join(", "),
        }
    }

    /// Whether groups follow each other without a hole, so that the first and last imply the rest.
    fn in_a_row(&self, groups: &[&NodeSet]) -> bool {
        let members: Vec<NodeId> = groups.iter().flat_map(|group| group.iter()).collect();
        members.windows(2).all(|pair| pair[1].number() == pair[0].number() + 1)
            && members.len() == self.nodes.len()
    }

    /// Whether these groups are the packages that hold several nodes.
    fn are_the_packages(&self, groups: &[&NodeSet]) -> bool {
        let mut packages: BTreeMap<_, NodeSet> = BTreeMap::new();
        for (node, of_node) in packages_of_nodes(self.machine) {
            if of_node.len() != 1 {
                return false;
            }
            for package in of_node {
                packages.entry(package).or_default().insert(node);
            }
        }
        let mut several: Vec<NodeSet> = packages.into_values().filter(|nodes| nodes.len() > 1).collect();
        several.order_by_key(NodeSet::first);
        several.iter().eq(groups.iter().copied())
    }

    /// Nodes in classes: two nodes of a class can change places without changing the table. In the
    /// order of their first node. Beyond 256 nodes every node is its own class.
    pub fn classes(&self) -> Vec<NodeSet> {
        if self.nodes.len() > MOST_COMPARED {
            return self.nodes.iter().map(|node| NodeSet::from_iter([*node])).collect();
        }
        let mut classes: Vec<NodeSet> = Vec::new();
        for node in &self.nodes {
            // Being alike is transitive, so one member speaks for its class.
            match classes.iter_mut().find(|class| class.first().is_some_and(|first| self.alike(first, *node)))
            {
                Some(class) => {
                    class.insert(*node);
                }
                None => classes.push(NodeSet::from_iter([*node])),
            }
        }
        classes
    }

    fn alike(&self, a: NodeId, b: NodeId) -> bool {
        self.get(a, a) == self.get(b, b)
            && self.get(a, b) == self.get(b, a)
            && self.nodes.iter().filter(|node| **node != a && **node != b).all(|node| {
                self.get(a, *node) == self.get(b, *node) && self.get(*node, a) == self.get(*node, b)
            })
    }

    /// One row of the table in words, exactly, for a class of like nodes:
    /// `10 to itself, 16 to 1,4-5, 22 to others`.
    pub fn row_words(&self, class: &NodeSet) -> String {
        let Some(from) = class.first() else { return String::new() };
        let written =
            |value: Option<u32>| value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
        let mut parts = vec![format!("{} to itself", written(self.get(from, from)))];
        if let Some(other) = class.nth(1) {
            let whom = if class.len() == 2 { "the other" } else { "each other" };
            parts.push(format!("{} to {whom}", written(self.get(from, other))));
        }
        let mut targets: BTreeMap<Option<u32>, NodeSet> = BTreeMap::new();
        for to in self.nodes.iter().filter(|to| !class.contains(**to)) {
            targets.entry(self.get(from, *to)).or_default().insert(*to);
        }
        // The value with the longest list needs none: it is what is left. A short one is written.
        let length = |nodes: &NodeSet| nodes.to_string().len();
        let rest = targets.iter().max_by_key(|(_, nodes)| length(nodes));
        let rest = rest.filter(|(_, nodes)| length(nodes) > SHORT_LIST).map(|(value, _)| *value);
        let mut ordered: Vec<_> = targets.iter().filter(|(value, _)| Some(**value) != rest).collect();
        ordered.order_by_key(|(value, _)| (value.is_none(), **value));
        for (value, nodes) in ordered {
            parts.push(format!("{} to {nodes}", written(*value)));
        }
        if let Some(value) = rest {
            let word = if targets.len() == 1 { "every other" } else { "others" };
            parts.push(format!("{} to {word}", written(value)));
        }
        sentence(&parts)
    }

    /// The least and the largest distance between different nodes, for where the table has no
    /// room: `16 to 33 between nodes`.
    pub fn summary(&self) -> Option<String> {
        let values = self.remote_values();
        let (first, last) = (values.first()?, values.last()?);
        let range = if first == last { first.to_string() } else { format!("{first} to {last}") };
        Some(format!("{range} between nodes"))
    }
}

/// Parts of a sentence; where a list of nodes has commas of its own, the parts take semicolons.
fn sentence(parts: &[String]) -> String {
    parts.join(if parts.iter().any(|part| part.contains(',')) { "; " } else { ", " })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    fn check(spec: &str, expected: Option<&str>) {
        let machine = spec::machine(spec).unwrap();
        assert_eq!(Distances::from_machine(&machine).words().as_deref(), expected, "{spec}");
    }

    #[test]
    fn regular_tables_are_told_in_words() {
        check("2x(10c2t 64G); dist=21", Some("10 to itself, 21 to every other"));
        check("2x(2x(2c 1G)); dist=11,20", Some("10 to itself, 11 inside a package, 20 to others"));
        check("32x(2x(4c 8G)); dist=16,40", Some("10 to itself, 16 inside a package, 40 to others"));
        check("3x(2c 1G); dist=10", Some("10 to itself and to every other"));
        check("(4c 1G)", None);
    }

    #[test]
    fn groups_that_are_no_packages_are_named() {
        check(
            "4x(1c 1G); dist=10,12,20,20/12,10,20,20/20,20,10,12/20,20,12,10",
            Some("10 to itself, 12 inside 0-1 and 2-3, 20 to others"),
        );
        check(
            "3x(1c 1G); dist=10,12,20/12,10,20/20,20,10",
            Some("10 to itself, 12 inside 0-1, 20 to others"),
        );
        check(
            "4x(1c 1G); dist=10,12,20,20/12,10,20,20/20,20,10,13/20,20,13,10",
            Some("10 to itself, 12 inside 0-1, 13 inside 2-3, 20 to others"),
        );
    }

    #[test]
    fn what_words_cannot_say_exactly_is_left_to_the_table() {
        check("3x(1c 1G); dist=10,12,20/12,10,12/20,12,10", None);
        check("2x(1c 1G); dist=10,12/20,10", None);
        check("2x(1c 1G); dist=10,12/12,11", None);
    }

    #[test]
    fn many_like_groups_are_told_by_the_first_and_the_last() {
        let rows: Vec<String> = (0..12)
            .map(|from| {
                let cell = |to| {
                    if from == to {
                        10
                    } else if from / 2 == to / 2 {
                        12
                    } else {
                        30
                    }
                };
                (0..12).map(|to| cell(to).to_string()).collect::<Vec<_>>().join(",")
            })
            .collect();
        check(
            &format!("12x(1c 1G); dist={}", rows.join("/")),
            Some("10 to itself; 12 inside each group of 2 (0-1, 2-3 ... 10-11); 30 to others"),
        );
    }

    #[test]
    fn like_nodes_form_classes_and_rows_are_told_exactly() {
        let machine = spec::machine(
            "(2c 8G) (2c 8G) (16G) (16G); dist=10,21,17,17/21,10,28,28/17,28,10,28/17,28,28,10",
        )
        .unwrap();
        let distances = Distances::from_machine(&machine);
        let classes = distances.classes();
        assert_eq!(classes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["0", "1", "2-3"]);
        assert_eq!(distances.row_words(&classes[0]), "10 to itself, 17 to 2-3, 21 to 1");
        assert_eq!(distances.row_words(&classes[2]), "10 to itself, 28 to the other, 17 to 0, 28 to 1");
    }

    /// Tables over a few nodes with few values, so that regular ones are common.
    fn machine_of(cells: &[u32]) -> Machine {
        let size = (1..).take_while(|size| size * size <= cells.len()).last().unwrap_or(0);
        let mut machine = spec::machine(&format!("{size}x(1c 1G)")).unwrap();
        for (at, value) in cells.iter().take(size * size).enumerate() {
            let id = |place: usize| NodeId::new(place as u32);
            let value = if at / size == at % size { 10 } else { *value };
            machine.distances.set(id(at / size), id(at % size), value);
        }
        machine
    }

    proptest! {
        #[test]
        fn levels_rebuild_the_table(cells in prop::collection::vec(prop::sample::select(vec![11u32, 20]), 4..17)) {
            let machine = machine_of(&cells);
            let distances = Distances::from_machine(&machine);
            let Some(levels) = distances.levels() else { return Ok(()) };
            for from in distances.nodes() {
                for to in distances.nodes().iter().filter(|to| *to != from) {
                    let level = levels.iter().find(|level| level.groups.iter().any(|group| group.contains(*from) && group.contains(*to)));
                    prop_assert_eq!(level.map(|level| level.distance), distances.get(*from, *to));
                }
            }
        }

        #[test]
        fn classes_hold_every_node_once_and_only_like_ones(cells in prop::collection::vec(prop::sample::select(vec![11u32, 20]), 4..17)) {
            let machine = machine_of(&cells);
            let distances = Distances::from_machine(&machine);
            let classes = distances.classes();
            let all: Vec<NodeId> = classes.iter().flat_map(NodeSet::iter).collect();
            prop_assert_eq!(all.len(), distances.nodes().len());
            for class in &classes {
                for (a, b) in class.iter().flat_map(|a| class.iter().map(move |b| (a, b))).filter(|(a, b)| a != b) {
                    prop_assert!(distances.alike(a, b));
                }
            }
        }
    }
}
