//! A scenario that the model has played: what each step did, and how full the nodes were after it.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;
use nodewise_machine::check::node_names;
use nodewise_model::simulate::{Act, Step};
use nodewise_model::{Memory, Release};

use super::walk::{Basis, consequence, size};

/// Programs with their pages of 4 KiB by node.
pub type Programs = BTreeMap<String, BTreeMap<NodeId, u64>>;

/// A step, and what came of it.
#[derive(Clone, Debug)]
pub struct Moment {
    /// When, in seconds from the beginning.
    pub at_s: f64,
    /// Whose step.
    pub program: String,
    /// The step.
    pub act: Act,
    /// What became of it.
    pub step: Step,
    /// The programs after it.
    pub programs: Programs,
    /// The memory after it.
    pub memory: Memory,
}

/// A scenario that was played.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// What it is called.
    pub title: String,
    /// What it is about.
    pub about: Option<String>,
    /// The machine, in words of whoever named it.
    pub machine: String,
    /// Which kernel.
    pub release: Release,
    /// Where the zones come from.
    pub basis: Basis,
    /// The memory before the first step.
    pub before: Memory,
    /// The steps, in order.
    pub moments: Vec<Moment>,
}

impl Timeline {
    /// The nodes that have memory.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.before.nodes().iter().collect()
    }

    /// The memory after the last step.
    pub fn after(&self) -> &Memory {
        self.moments.last().map_or(&self.before, |moment| &moment.memory)
    }

    /// The least free pages that a node had at any time.
    pub fn least_free(&self, node: NodeId) -> u64 {
        let all = self.moments.iter().map(|moment| moment.memory.free_of(node));
        all.fold(self.before.free_of(node), u64::min)
    }

    /// The most pages that each program had at any time, by node: its fullest moment.
    pub fn largest(&self) -> Programs {
        let mut largest = Programs::new();
        for (name, nodes) in self.moments.iter().flat_map(|moment| &moment.programs) {
            let sum = |nodes: &BTreeMap<NodeId, u64>| nodes.values().sum::<u64>();
            if largest.get(name).is_none_or(|so_far| sum(so_far) < sum(nodes)) {
                largest.insert(name.clone(), nodes.clone());
            }
        }
        largest
    }
}

impl Moment {
    /// What the program does, in a word or two.
    pub fn does(&self) -> String {
        match &self.act {
            Act::Start { .. } => "starts".to_owned(),
            Act::Allocate { pages, huge: false, .. } => format!("takes {}", size(*pages)),
            Act::Allocate { pages, .. } => format!("takes {} huge", size(*pages)),
            Act::Free { .. } => "frees".to_owned(),
            Act::SetPolicy(_) => "sets its policy".to_owned(),
            Act::RunOn(_) => "goes".to_owned(),
            Act::Migrate { .. } => "is moved".to_owned(),
            Act::End => "ends".to_owned(),
        }
    }

    /// With what, or where; empty where there is nothing to tell.
    pub fn object(&self) -> String {
        match &self.act {
            Act::Start { cpu_node, policy, .. } => format!("on node {cpu_node}, {policy}"),
            Act::Allocate { region, policy: Some(policy), .. } => format!("{region}, {policy}"),
            Act::Allocate { region, .. } | Act::Free { region } => region.clone(),
            Act::SetPolicy(policy) => policy.to_string(),
            Act::RunOn(node) => format!("to node {node}"),
            Act::Migrate { old, new } => {
                format!("from {} to {}: {}", node_names(old), node_names(new), size(self.step.moved))
            }
            Act::End => String::new(),
        }
    }

    /// What did not find room, as a sentence; `None` when all did.
    pub fn finding(&self) -> Option<String> {
        self.step.missing().map(|end| {
            let consequence = consequence(end, &self.memory);
            format!("At {} s {} of {} find no room: {consequence}", self.at_s, size(end.pages), self.program)
        })
    }
}
