//! Memory by node of several mappings, whose pages were counted or drawn.

use std::collections::BTreeMap;

use nodewise_machine::mapping::{DrawnPages, MappedPages};
use nodewise_machine::{Bytes, NodeId, NodeSet};
use nodewise_stats::share::wilson_interval;

/// Memory by node.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct NodePages {
    counted: BTreeMap<NodeId, Bytes>,
    drawn: DrawnPages,
}

/// A share of memory, from 0 to 1, with the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareEstimate {
    pub share: f64,
    pub low: f64,
    pub high: f64,
}

impl NodePages {
    /// Adds the pages of a mapping; those whose nodes are not known are not added, which is said.
    pub fn add(&mut self, pages: &MappedPages) -> bool {
        match pages {
            MappedPages::Counted(pages) => super::process::add_pages(&mut self.counted, pages),
            MappedPages::Drawn(drawn) if drawn.drawn > 0 => {
                self.drawn.candidates += drawn.candidates;
                self.drawn.drawn = self.drawn.drawn.saturating_add(drawn.drawn);
                for (node, hits) in &drawn.nodes {
                    let sum = self.drawn.nodes.entry(*node).or_default();
                    *sum = sum.saturating_add(*hits);
                }
            }
            MappedPages::Drawn(_) | MappedPages::Unknown { .. } => return false,
        }
        true
    }

    /// All of it that is present.
    pub fn size(&self) -> Bytes {
        self.counted.values().copied().sum::<Bytes>() + self.present()
    }

    /// Nodes that have some of it.
    pub fn nodes(&self) -> NodeSet {
        let counted = self.counted.iter().filter(|(_, size)| size.get() > 0).map(|(node, _)| *node);
        let drawn = self.drawn.nodes.iter().filter(|(_, hits)| **hits > 0).map(|(node, _)| *node);
        counted.chain(drawn).collect()
    }

    /// The memory on nodes.
    pub fn on(&self, nodes: &NodeSet) -> Bytes {
        self.counted_on(nodes) + self.present().share(self.hits(nodes) as f64 / self.found().max(1) as f64)
    }

    /// The share of nodes; `None` of nothing.
    pub fn share(&self, nodes: &NodeSet) -> Option<ShareEstimate> {
        let size = self.size().get() as f64;
        if size == 0.0 {
            return None;
        }
        let counted = self.counted_on(nodes).get() as f64;
        // Pages that were drawn and are not present say nothing about where the others are.
        let drawn = self.present().get() as f64;
        let of = |part: f64| ((counted + part * drawn) / size).clamp(0.0, 1.0);
        let interval = wilson_interval(self.hits(nodes), self.found());
        let share = of(self.hits(nodes) as f64 / self.found().max(1) as f64);
        let is_exact = !self.is_drawn();
        let end = |part: f64| if is_exact { share } else { of(part) };
        Some(ShareEstimate { share, low: end(interval.low), high: end(interval.high) })
    }

    /// Whether some of its pages were drawn.
    pub fn is_drawn(&self) -> bool {
        self.present().get() > 0
    }

    /// The memory that was drawn from and is present; none where no drawn page was found, which says nothing.
    fn present(&self) -> Bytes {
        if self.found() == 0 { Bytes::default() } else { self.drawn.present() }
    }

    fn found(&self) -> u64 {
        self.drawn.nodes.values().copied().fold(0, u64::saturating_add)
    }

    fn hits(&self, nodes: &NodeSet) -> u64 {
        let on = self.drawn.nodes.iter().filter(|(node, _)| nodes.contains(**node));
        on.map(|(_, hits)| *hits).fold(0, u64::saturating_add)
    }

    fn counted_on(&self, nodes: &NodeSet) -> Bytes {
        self.counted.iter().filter(|(node, _)| nodes.contains(**node)).map(|(_, size)| *size).sum()
    }
}

impl ShareEstimate {
    /// The interval in words; `None` where every page was counted.
    pub fn interval(&self) -> Option<String> {
        let percent = |share: f64| share * 100.0;
        (self.low < self.high).then(|| {
            format!(
                "{:.1} % to {:.1} % (95 % interval of sampled pages)",
                percent(self.low),
                percent(self.high)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(text: &str) -> NodeSet {
        text.parse().expect("nodes")
    }

    fn drawn(mib: u64, drawn: u64, hits: &[(u32, u64)]) -> MappedPages {
        let nodes = hits.iter().map(|(node, hits)| (NodeId::new(*node), *hits)).collect();
        MappedPages::Drawn(DrawnPages { candidates: Bytes::from_mib(mib), drawn, nodes })
    }

    fn counted(mib: u64, node: u32) -> MappedPages {
        MappedPages::Counted([(NodeId::new(node), Bytes::from_mib(mib))].into())
    }

    #[test]
    fn counted_and_drawn_pages_add_up() {
        let mut pages = NodePages::default();
        assert!(pages.add(&counted(100, 0)) && !pages.is_drawn());
        let exact = pages.share(&nodes("0")).unwrap();
        assert_eq!((exact.share, exact.low, exact.high, exact.interval()), (1.0, 1.0, 1.0, None));
        assert!(pages.add(&drawn(300, 900, &[(1, 600), (0, 300)])));
        assert_eq!((pages.size(), pages.on(&nodes("1"))), (Bytes::from_mib(400), Bytes::from_mib(200)));
        let half = pages.share(&nodes("1")).unwrap();
        assert!((half.share - 0.5).abs() < 1e-9 && half.low < 0.48 && half.high > 0.52, "{half:?}");
        assert!(half.interval().unwrap().contains("sampled"));
        assert_eq!(pages.nodes(), nodes("0-1"));
    }

    #[test]
    fn pages_whose_node_is_not_known_are_not_on_any() {
        let mut pages = NodePages::default();
        assert!(!pages.add(&MappedPages::Unknown { resident: Some(Bytes::from_gib(1)) }));
        assert!(!pages.add(&drawn(300, 0, &[])));
        assert_eq!(pages.share(&nodes("0")), None);
        // Half of what could be there is: its share of the present is what counts.
        assert!(pages.add(&drawn(200, 1_000, &[(3, 500)])));
        assert_eq!((pages.size(), pages.on(&nodes("3"))), (Bytes::from_mib(100), Bytes::from_mib(100)));
        assert_eq!(pages.share(&nodes("3")).unwrap().share, 1.0);
    }
}
