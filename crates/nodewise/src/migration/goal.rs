//! Where pages are to go, from what was typed.

use std::collections::BTreeMap;

use nodewise_machine::check::node_names;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::quote;
use nodewise_machine::{NodeId, NodeSet};

/// Where pages are to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// From each node to another; pages elsewhere stay.
    Nodes(BTreeMap<NodeId, NodeId>),
    /// Page by page over some nodes, by their place in the address space.
    Interleave {
        /// Pages elsewhere stay.
        from: NodeSet,
        over: Vec<NodeId>,
    },
    /// To where they were, wherever they are.
    Back(NodeId),
}

impl Goal {
    /// From each node of a set to the node of the same rank in the other, and round again where that is shorter. Pages
    /// on a node of the second set stay there.
    ///
    /// # Errors
    /// A set without nodes.
    pub fn nodes(from: &NodeSet, to: &NodeSet) -> Result<Self, String> {
        if to.is_empty() {
            return Err("--to names no node".to_owned());
        }
        let leaving = from.difference(to);
        let rank = |at: usize| to.nth(at % to.len()).expect("the rank is below the length");
        Ok(Self::Nodes(leaving.iter().enumerate().map(|(at, node)| (node, rank(at))).collect_map()))
    }

    /// Reads what is behind `--to`: `1`, `2-3`, `0=1,2=3` or `interleave:0-3`.
    ///
    /// # Errors
    /// A sentence with what is wrong, and what was expected.
    pub fn parse(to: &str, from: Option<&str>, existing: &NodeSet) -> Result<Self, String> {
        let leaving =
            from.map_or_else(|| Ok(existing.clone()), |text| nodes("--from-nodes", text, existing))?;
        if let Some(over) = to.strip_prefix("interleave:") {
            let over: Vec<NodeId> = nodes("--to", over, existing)?.iter().collect();
            return Ok(Self::Interleave { from: leaving, over });
        }
        if !to.contains('=') {
            return Self::nodes(&leaving, &nodes("--to", to, existing)?);
        }
        if from.is_some() {
            return Err(format!(
                "--to={to} names the nodes to leave already: --from-nodes has no meaning with it"
            ));
        }
        let mut map = BTreeMap::new();
        for word in to.split(',') {
            let pair = word.split_once('=').filter(|(_, to)| !to.contains('='));
            let (from, to) =
                pair.ok_or_else(|| format!("--to: {} is not a pair of nodes, such as 0=1", quote(word)))?;
            let (from, to) = (nodes("--to", from, existing)?, nodes("--to", to, existing)?);
            let one = to.first().filter(|_| to.len() == 1);
            let one = one.ok_or_else(|| format!("--to: {} is not one node to go to", quote(word)))?;
            for node in &from {
                if map.insert(node, one).is_some() {
                    return Err(format!("--to: node {node} is named twice"));
                }
            }
        }
        map.retain(|from, to| from != to);
        Ok(Self::Nodes(map))
    }

    /// Whether pages of a node may go elsewhere.
    pub fn leaves(&self, node: NodeId) -> bool {
        match self {
            Self::Nodes(map) => map.contains_key(&node),
            Self::Interleave { from, .. } => from.contains(node),
            Self::Back(_) => true,
        }
    }

    /// Where a page goes that is on a node; `None` where it stays. The number of the page is its address by its size.
    pub fn target(&self, number: u64, now: NodeId) -> Option<NodeId> {
        let target = match self {
            Self::Nodes(map) => *map.get(&now)?,
            Self::Interleave { from, over } => {
                let rank = usize::try_from(number % over.len() as u64).ok()?;
                *over.get(rank).filter(|_| from.contains(now))?
            }
            Self::Back(node) => *node,
        };
        (target != now).then_some(target)
    }

    /// The nodes that pages may go to.
    pub fn targets(&self) -> NodeSet {
        match self {
            Self::Nodes(map) => map.values().copied().collect(),
            Self::Interleave { over, .. } => over.iter().copied().collect(),
            Self::Back(node) => NodeSet::from_iter([*node]),
        }
    }
}

fn nodes(option: &str, text: &str, existing: &NodeSet) -> Result<NodeSet, String> {
    if text == "all" {
        return Ok(existing.clone());
    }
    let nodes: NodeSet = text.parse().map_err(|error| format!("{option}: {error}"))?;
    if nodes.is_empty() {
        return Err(format!("{option} names no node"));
    }
    match nodes.iter().find(|node| !existing.contains(*node)) {
        Some(node) => {
            Err(format!("{option}: node {node} does not exist: this machine has {}", node_names(existing)))
        }
        None => Ok(nodes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    fn four() -> NodeSet {
        NodeSet::from([0, 1, 2, 3])
    }

    fn check(to: &str, from: Option<&str>, expected: Result<&[(u32, u32)], &str>) {
        let found = Goal::parse(to, from, &four());
        let found = found.map(|goal| match goal {
            Goal::Nodes(map) => map.into_iter().map(|(from, to)| (from.number(), to.number())).collect(),
            other => panic!("{other:?}"),
        });
        assert_eq!(found.as_ref().map(Vec::as_slice).map_err(String::as_str), expected, "{to} {from:?}");
    }

    #[test]
    fn nodes_go_to_the_node_of_their_rank() {
        check("1", None, Ok(&[(0, 1), (2, 1), (3, 1)]));
        check("1", Some("0"), Ok(&[(0, 1)]));
        check("2-3", Some("0-1"), Ok(&[(0, 2), (1, 3)]));
        check("2-3", None, Ok(&[(0, 2), (1, 3)]));
        check("2", Some("all"), Ok(&[(0, 2), (1, 2), (3, 2)]));
        check("0=1,2=3", None, Ok(&[(0, 1), (2, 3)]));
        check("0=1,1=0", None, Ok(&[(0, 1), (1, 0)]));
        check("1=1", None, Ok(&[]));
    }

    #[test]
    fn what_names_no_nodes_is_refused() {
        check("4", None, Err("--to: node 4 does not exist: this machine has nodes 0-3"));
        check("1", Some("9"), Err("--from-nodes: node 9 does not exist: this machine has nodes 0-3"));
        check("", None, Err("--to names no node"));
        check("0=1,2", None, Err("--to: \"2\" is not a pair of nodes, such as 0=1"));
        check("0=1-2", None, Err("--to: \"0=1-2\" is not one node to go to"));
        check("0=1,0=2", None, Err("--to: node 0 is named twice"));
        check(
            "0=1",
            Some("0"),
            Err("--to=0=1 names the nodes to leave already: --from-nodes has no meaning with it"),
        );
        assert!(Goal::parse("interleave:7", None, &four()).is_err());
    }

    #[test]
    fn interleaved_pages_go_by_their_number() {
        let goal = Goal::parse("interleave:1,3", Some("0-1"), &four()).unwrap();
        let n = NodeId::new;
        assert_eq!(goal.target(6, n(0)), Some(n(1)));
        assert_eq!(goal.target(7, n(0)), Some(n(3)));
        assert_eq!(goal.target(6, n(1)), None, "it is there");
        assert_eq!(goal.target(6, n(2)), None, "node 2 is not left");
        assert_eq!(goal.targets(), NodeSet::from([1, 3]));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in any::<String>(), near in "(interleave:)?([0-9]{0,3}[-=,]?){0,5}") {
            for text in [text, near] {
                let _ = Goal::parse(&text, None, &four());
                let _ = Goal::parse("0", Some(&text), &four());
            }
        }
    }
}
