//! A process's mappings in groups: where their pages are, what policies say, and where the two differ.

pub mod comparison;

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::mapping::{
    DrawnPages, MappedPages, Mapping, MappingKind, MappingsMethod, ProcessMappings,
};
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, NodeId, NodeSet, PolicyMode};
use nodewise_stats::share::wilson_interval;

use crate::digest::counts::plural;
use crate::digest::estimate::Estimate;

/// Interleaving is judged from this many small pages on: with fewer a node's share varies by itself.
///
/// # Source
/// Ours: 10,000 pages of 4 KiB, and 10 points of share.
const JUDGED: Bytes = Bytes::new(10_000 * 4096);
const UNEVEN: f64 = 0.10;

/// The memory of several mappings.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    counted: BTreeMap<NodeId, Bytes>,
    drawn: DrawnPages,
    /// Memory whose node is not known.
    elsewhere: Bytes,
    /// Mappings whose size is not known either.
    unsized_mappings: usize,
    /// The part in transparent huge pages; `None` where nothing says.
    pub transparent: Option<Bytes>,
    pub swapped: Option<Bytes>,
    pub mappings: usize,
}

impl Tally {
    /// The sum of mappings.
    pub fn from_mappings<'m>(mappings: impl IntoIterator<Item = &'m Mapping>) -> Self {
        let mut tally = Self::default();
        mappings.into_iter().for_each(|mapping| tally.add(mapping));
        tally
    }

    fn add(&mut self, mapping: &Mapping) {
        self.mappings += 1;
        match &mapping.pages {
            MappedPages::Unknown { resident: Some(resident) } => self.elsewhere += *resident,
            // Pages of the kernel's own, which count in no process.
            MappedPages::Unknown { resident: None } if mapping.kind == MappingKind::Special => {}
            MappedPages::Unknown { resident: None } => self.unsized_mappings += 1,
            MappedPages::Counted(nodes) => {
                nodes.iter().for_each(|(node, size)| *self.counted.entry(*node).or_default() += *size);
            }
            MappedPages::Drawn(drawn) => {
                self.drawn.candidates += drawn.candidates;
                // A recording may hold any number.
                self.drawn.drawn = self.drawn.drawn.saturating_add(drawn.drawn);
                for (node, hits) in &drawn.nodes {
                    let sum = self.drawn.nodes.entry(*node).or_default();
                    *sum = sum.saturating_add(*hits);
                }
            }
        }
        let sum = |to: &mut Option<Bytes>, size: Option<Bytes>| {
            if let Some(size) = size {
                *to = Some(to.unwrap_or_default() + size);
            }
        };
        sum(&mut self.transparent, mapping.transparent);
        sum(&mut self.swapped, mapping.swapped);
    }

    /// The memory on a node.
    pub fn on(&self, node: NodeId) -> Estimate {
        let counted = self.counted.get(&node).copied().unwrap_or_default();
        let DrawnPages { candidates, drawn, nodes } = &self.drawn;
        if *candidates == Bytes::new(0) {
            return Estimate::exact(counted);
        }
        let hits = nodes.get(&node).copied().unwrap_or(0);
        let interval = wilson_interval(hits, *drawn);
        let share = if *drawn == 0 { 0.0 } else { hits as f64 / *drawn as f64 };
        Estimate {
            size: counted + candidates.share(share),
            low: counted + candidates.share(interval.low),
            high: counted + candidates.share(interval.high),
        }
    }

    /// All of it that is present.
    pub fn all(&self) -> Bytes {
        let counted: Bytes = self.counted.values().copied().sum();
        counted + self.drawn.present() + self.elsewhere
    }

    /// All of it that is present, with the ends of its interval; `None` where the size of a part is not known.
    /// Pages that were drawn and not found present make it an estimate.
    pub fn present(&self) -> Option<Estimate> {
        let (drawn, found) = (self.drawn.drawn, self.drawn.nodes.values().sum());
        let all = self.all();
        if self.unsized_mappings > 0 {
            return None;
        }
        if found >= drawn {
            return Some(Estimate::exact(all));
        }
        let rest = Bytes::new(all.get().saturating_sub(self.drawn.present().get()));
        let interval = wilson_interval(found, drawn);
        let end = |share: f64| rest + self.drawn.candidates.share(share);
        Some(Estimate { size: all, low: end(interval.low), high: end(interval.high) })
    }

    /// The memory on a node; `None` where the node of a part is not known.
    pub fn known_on(&self, node: NodeId) -> Option<Estimate> {
        let is_known = self.unsized_mappings == 0 && self.elsewhere == Bytes::new(0) && !self.is_unseen();
        is_known.then(|| self.on(node))
    }

    /// The share of a node in what is present; `None` of nothing.
    pub fn share(&self, node: NodeId) -> Option<f64> {
        let all = self.all().get();
        (all > 0).then(|| self.on(node).size.get() as f64 / all as f64)
    }

    /// The nodes that have some of it.
    pub fn nodes(&self) -> NodeSet {
        let counted = self.counted.iter().filter(|(_, size)| **size > Bytes::new(0)).map(|(node, _)| *node);
        counted.chain(self.drawn.nodes.keys().copied()).collect()
    }

    /// Whether all of it was counted.
    pub fn is_exact(&self) -> bool {
        self.drawn.candidates == Bytes::new(0)
    }

    /// Whether none of its pages was looked at: nothing says on which nodes they are.
    pub fn is_unseen(&self) -> bool {
        self.nodes().is_empty() && !self.is_exact() && self.drawn.drawn == 0
    }

    /// How many pages were drawn for it.
    pub const fn drawn(&self) -> u64 {
        self.drawn.drawn
    }

    /// The nodes by their shares, largest first.
    pub fn shares(&self) -> Vec<(NodeId, f64)> {
        let mut shares: Vec<(NodeId, f64)> =
            self.nodes().iter().filter_map(|node| Some((node, self.share(node)?))).collect();
        shares.order_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        shares
    }

    /// The shares in words: `node 0 97 %, node 1 3 %`, those below a percent together.
    pub fn words(&self, most: usize) -> String {
        let shares = self.shares();
        let (named, rest): (Vec<_>, Vec<_>) = shares
            .iter()
            .enumerate()
            .partition(|(at, (_, share))| *at < most && (*share >= 0.005 || *at == 0));
        let mut words: Vec<String> =
            named.iter().map(|(_, (node, share))| format!("node {node} {:.0} %", share * 100.0)).collect();
        if !rest.is_empty() {
            let share: f64 = rest.iter().map(|(_, (_, share))| share).sum();
            let few = if share < 0.005 { "<1".to_owned() } else { format!("{:.0}", share * 100.0) };
            words.push(format!("{} {few} %", plural(rest.len(), "other")));
        }
        words.join(", ")
    }
}

/// How mappings are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum GroupBy {
    #[default]
    Kind,
    File,
    Policy,
}

impl GroupBy {
    /// Every way, with its word.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Kind, "kind"), (Self::File, "file"), (Self::Policy, "policy")];

    /// The word for it.
    pub fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(by, _)| *by == self).map_or("kind", |(_, word)| word)
    }
}

/// Other processes that map the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedWith {
    /// By the place of the mapping.
    pub processes: BTreeMap<usize, Vec<(u32, Option<String>)>>,
    /// Processes that could not be read.
    pub unreadable: usize,
}

/// A process's mappings as they are shown.
#[derive(Clone, Copy, Debug)]
pub struct Maps<'a> {
    pub process: &'a ProcessMappings,
    pub by: GroupBy,
    /// `None` where no one asked for it.
    pub shared_with: Option<&'a SharedWith>,
}

impl<'a> Maps<'a> {
    /// The nodes that have pages, ascending.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.all().nodes().iter().collect()
    }

    /// All mappings together.
    pub fn all(&self) -> Tally {
        Tally::from_mappings(&self.process.mappings)
    }

    /// Groups with a name each; kinds in their order, others by size. Groups without pages are left out.
    pub fn groups(&self) -> Vec<(String, Tally)> {
        let mut groups: BTreeMap<(usize, String), Vec<&Mapping>> = BTreeMap::new();
        for mapping in &self.process.mappings {
            groups.entry(self.group_of(mapping)).or_default().push(mapping);
        }
        let tallies = groups.into_iter().map(|((_, name), mappings)| (name, Tally::from_mappings(mappings)));
        let is_shown = |tally: &Tally| {
            tally.all() > Bytes::new(0) || tally.swapped.is_some_and(|size| size > Bytes::new(0))
        };
        let mut tallies: Vec<(String, Tally)> = tallies.filter(|(_, tally)| is_shown(tally)).collect();
        if self.by != GroupBy::Kind {
            tallies.order_by_key(|(_, tally)| std::cmp::Reverse(tally.all()));
        }
        tallies
    }

    fn group_of(&self, mapping: &Mapping) -> (usize, String) {
        match self.by {
            GroupBy::Kind => {
                let place = MappingKind::ALL.iter().position(|kind| *kind == mapping.kind);
                (place.unwrap_or_default(), mapping.kind.words().to_owned())
            }
            GroupBy::Policy => (0, policy_words(mapping).unwrap_or("policy not read").to_owned()),
            GroupBy::File => (
                0,
                match (&mapping.file, &mapping.name) {
                    (Some(_), Some(name)) => name.clone(),
                    _ => mapping.kind.words().to_owned(),
                },
            ),
        }
    }

    /// Memory by its policy, largest first; empty where policies were not read.
    pub fn policies(&self) -> Vec<(&'a str, Tally)> {
        let mut by_text: BTreeMap<&str, Vec<&Mapping>> = BTreeMap::new();
        for mapping in &self.process.mappings {
            if let Some(policy) = policy_words(mapping) {
                by_text.entry(policy).or_default().push(mapping);
            }
        }
        let mut policies: Vec<(&str, Tally)> =
            by_text.into_iter().map(|(text, mappings)| (text, Tally::from_mappings(mappings))).collect();
        policies.retain(|(_, tally)| tally.all() > Bytes::new(0));
        policies.order_by_key(|(_, tally)| std::cmp::Reverse(tally.all()));
        policies
    }

    /// The largest mappings with their places.
    pub fn largest(&self, most: usize) -> Vec<(usize, &'a Mapping)> {
        let mut mappings: Vec<(usize, &Mapping)> = self.process.mappings.iter().enumerate().collect();
        mappings.retain(|(_, mapping)| mapping.resident().is_some_and(|size| size > Bytes::new(0)));
        mappings.order_by_key(|(at, mapping)| (std::cmp::Reverse(mapping.resident()), *at));
        mappings.truncate(most);
        mappings
    }

    /// Memory by the size of its pages, in words with a share each.
    pub fn page_sizes(&self) -> Vec<(String, Bytes)> {
        let small = self.process.mappings.iter().filter(|mapping| mapping.kind != MappingKind::HugePool);
        let small = Tally::from_mappings(small);
        let mut sizes = Vec::new();
        match small.transparent {
            Some(transparent) => {
                let rest = small.all().get().saturating_sub(transparent.get());
                sizes.push(("small pages".to_owned(), Bytes::new(rest)));
                sizes.push(("transparent huge pages".to_owned(), transparent));
            }
            None => sizes.push(("small or transparent huge pages".to_owned(), small.all())),
        }
        let mut pools: BTreeMap<Option<Bytes>, Bytes> = BTreeMap::new();
        for mapping in self.process.mappings.iter().filter(|mapping| mapping.kind == MappingKind::HugePool) {
            *pools.entry(mapping.page_size).or_default() += mapping.resident().unwrap_or_default();
        }
        sizes.extend(pools.into_iter().map(|(size, sum)| {
            let name = size.map_or_else(|| "huge page pools".to_owned(), |size| format!("pools of {size}"));
            (name, sum)
        }));
        sizes.retain(|(_, size)| *size > Bytes::new(0));
        sizes
    }

    /// Sentences about memory that is elsewhere than its policy says, or swapped out.
    pub fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let mut judged: BTreeSet<&str> = BTreeSet::new();
        for mapping in &self.process.mappings {
            let Some(text) = policy_words(mapping).filter(|_| mapping.kind.follows_policy()) else {
                continue;
            };
            if judged.insert(text) {
                findings.extend(self.misplaced(text));
            }
        }
        let swapped = self.process.swapped.or(self.all().swapped);
        if let Some(swapped) = swapped.filter(|size| *size > Bytes::new(0)) {
            findings.push(format!("{swapped} swapped out (not on any node)"));
        }
        findings
    }

    /// The memory under a policy that follows policies, if it is not where the policy says.
    fn misplaced(&self, text: &str) -> Option<String> {
        let under = |mapping: &&Mapping| mapping.kind.follows_policy() && policy_words(mapping) == Some(text);
        let mappings: Vec<&Mapping> = self.process.mappings.iter().filter(under).collect();
        let policy = mappings.first()?.policy.as_ref()?.policy.as_ref()?;
        let tally = Tally::from_mappings(mappings);
        let all = tally.all();
        let stays = "pages that were touched before the policy was set stay where they are";
        match policy.mode {
            PolicyMode::Bind => {
                let outside: Vec<NodeId> =
                    tally.nodes().iter().filter(|node| !policy.nodes.contains(*node)).collect();
                let size: Bytes = outside.iter().map(|node| tally.on(*node).size).sum();
                (size > Bytes::new(0)).then(|| {
                    let nodes: NodeSet = outside.into_iter().collect();
                    format!("{text} covers {all}, and {size} of it are on {}: {stays}", node_words(&nodes))
                })
            }
            PolicyMode::Interleave if all >= JUDGED && !policy.nodes.is_empty() => {
                let wanted = 1.0 / policy.nodes.len() as f64;
                let of = |node: NodeId| (node, tally.share(node).unwrap_or_default());
                let nodes = policy.nodes.union(&tally.nodes());
                let off = |(node, share): &(NodeId, f64)| {
                    let wanted = if policy.nodes.contains(*node) { wanted } else { 0.0 };
                    (share - wanted).abs()
                };
                let worst = nodes.iter().map(of).max_by(|one, other| off(one).total_cmp(&off(other)))?;
                (off(&worst) > UNEVEN).then(|| {
                    let (node, share) = (worst.0, worst.1 * 100.0);
                    let wanted =
                        if policy.nodes.contains(node) { format!("{:.0} %", wanted * 100.0) } else { "none".to_owned() };
                    format!(
                        "{text} covers {all}, and {share:.0} % of it are on node {node} where {wanted} would be even: \
                         {stays}"
                    )
                })
            }
            _ => None,
        }
    }

    /// The reading in words: `exact, 41 ms of CPU time`.
    pub fn method(&self) -> String {
        let took =
            self.process.took.map(|took| format!(", {} of CPU time", milliseconds(took.as_secs_f64())));
        let took = took.unwrap_or_default();
        match self.process.method {
            MappingsMethod::Exact => format!("every page counted{took}"),
            MappingsMethod::NoNodes => format!("nodes not known{took}"),
            MappingsMethod::Sampled { asked, seed } => {
                let predicted = milliseconds(self.process.predicted.as_secs_f64());
                format!(
                    "sampled: {} asked for{took}, seed {seed} (all: --exact, about {predicted})",
                    plural(asked, "page")
                )
            }
        }
    }
}

/// A mapping's policy in the kernel's words.
pub fn policy_words(mapping: &Mapping) -> Option<&str> {
    mapping.policy.as_ref().map(|policy| policy.text.as_str())
}

/// `node 1`, `nodes 0-2`.
fn node_words(nodes: &NodeSet) -> String {
    if nodes.len() == 1 { format!("node {nodes}") } else { format!("nodes {nodes}") }
}

/// A time in milliseconds, with two digits or so.
fn milliseconds(seconds: f64) -> String {
    let ms = seconds * 1000.0;
    if ms < 9.95 { format!("{ms:.1} ms") } else { format!("{ms:.0} ms") }
}

/// A run of pages on one node; `None` where they are not present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRun {
    pub start: u64,
    pub pages: u64,
    pub node: Option<NodeId>,
}

/// The nodes of single pages as runs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PageRuns {
    pub page_size: u64,
    pub runs: Vec<NodeRun>,
}

impl PageRuns {
    /// Adds the next page.
    pub fn push(&mut self, address: u64, node: Option<NodeId>) {
        match self.runs.last_mut() {
            Some(last) if last.node == node && last.start + last.pages * self.page_size == address => {
                last.pages += 1;
            }
            _ => self.runs.push(NodeRun { start: address, pages: 1, node }),
        }
    }
}

#[cfg(test)]
mod tests;
