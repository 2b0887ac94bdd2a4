//! The memory of a process, and why its pages can be where they are.

use nodewise_machine::check::node_names;
use nodewise_machine::{Bytes, MemPolicy, NodeId, NodeSet, PolicyMode};

/// Whose policy holds for the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyOwner {
    /// The mapping's own (`mbind(2)`).
    Mapping,
    /// That of the thread (`set_mempolicy(2)`, numactl): the mapping has none.
    Thread,
    /// Neither has one.
    System,
    /// One of both, and the kernel does not say which.
    Unknown,
}

impl PolicyOwner {
    /// The word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Mapping => "mapping",
            Self::Thread => "thread",
            Self::System => "none",
            Self::Unknown => "unknown",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Mapping => "the mapping's own",
            Self::Thread => "its thread's",
            Self::System => "neither it nor its thread has set one",
            Self::Unknown => "the mapping's own or its thread's",
        }
    }
}

/// Memory of a process under one policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMemory {
    pub pid: u32,
    /// Fit for a terminal.
    pub name: Option<String>,
    /// Which of its memory: `heap`, `anonymous`, `all that follows a policy`.
    pub what: String,
    /// In the kernel's words.
    pub policy_text: String,
    pub policy: MemPolicy,
    pub owner: PolicyOwner,
    /// Policies of other memory of it, and of its threads, in the kernel's words.
    pub other_policies: Vec<String>,
    /// Nodes with CPUs on which its threads may run; `None` where that is not known.
    pub cpu_nodes: Option<NodeSet>,
    /// Memory nodes that its cpuset allows.
    pub allowed: NodeSet,
    /// Whether pages were drawn, so that sizes are estimates.
    pub is_sampled: bool,
    /// Its memory by node.
    pub nodes: Vec<NodeMemory>,
    /// Sentences about what could not be read.
    pub notes: Vec<String>,
}

/// Its memory on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeMemory {
    pub node: NodeId,
    pub size: Bytes,
    /// Pages that the node gave since boot although they were wanted from another (`numa_miss`), of all processes.
    pub missed: Option<u64>,
}

/// Why memory can be on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its policy names the node.
    Policy,
    /// It was the turn of the node.
    Turn,
    /// A CPU of the node touched it first.
    FirstTouch,
    /// The policy leaves the node out, and no full node changes that: it is older than the policy, or was moved.
    Older,
    /// The nodes that come first were full, or it is older than the policy.
    FullOrOlder,
    /// Its threads may not run there: the nodes that come first were full, or they ran there before.
    FullOrElsewhere,
}

impl Reason {
    /// The word in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Turn => "turn",
            Self::FirstTouch => "first_touch",
            Self::Older => "older_or_moved",
            Self::FullOrOlder => "others_full_or_older",
            Self::FullOrElsewhere => "others_full_or_touched_before",
        }
    }
}

impl ProcessMemory {
    /// Why some of it can be on a node. Who touched a page first is not recorded by any kernel: this is what the policy, the
    /// CPUs and the cpuset leave open.
    pub fn reason(&self, node: NodeId) -> Reason {
        let is_named = self.policy.nodes.contains(node);
        match self.policy.mode {
            PolicyMode::Bind if is_named => Reason::Policy,
            PolicyMode::Bind => Reason::Older,
            PolicyMode::Interleave | PolicyMode::WeightedInterleave if is_named => Reason::Turn,
            PolicyMode::Preferred if self.policy.nodes.first() == Some(node) => Reason::Policy,
            PolicyMode::PreferredMany if is_named => Reason::Policy,
            PolicyMode::Default | PolicyMode::Local => match &self.cpu_nodes {
                Some(nodes) if !nodes.contains(node) => Reason::FullOrElsewhere,
                _ => Reason::FirstTouch,
            },
            _ => Reason::FullOrOlder,
        }
    }

    /// The reason in words.
    pub fn words(&self, memory: &NodeMemory) -> String {
        let node = memory.node;
        let mut words = match self.reason(node) {
            Reason::Policy => "its policy names the node".to_owned(),
            Reason::Turn => "its policy names the node, and gives it its turns".to_owned(),
            Reason::FirstTouch => "a CPU of the node touched it first, or it was moved here".to_owned(),
            Reason::Older => {
                "outside its policy: older than the policy, or moved here; a full node is not the cause"
                    .to_owned()
            }
            Reason::FullOrOlder => {
                format!(
                    "outside {}: full at that time, or it is older than the policy",
                    node_names(&self.policy.nodes)
                )
            }
            Reason::FullOrElsewhere => {
                let nodes = self.cpu_nodes.as_ref().map(node_names).unwrap_or_default();
                format!("its threads run on {nodes}: full at that time, or they ran here before")
            }
        };
        if let (Reason::FullOrOlder | Reason::FullOrElsewhere, Some(0)) = (self.reason(node), memory.missed) {
            words = words.replace(
                "full at that time, or ",
                "not full at that time (this node gave no such page since boot), so ",
            );
        }
        if !self.allowed.contains(node) {
            words.push_str("; its cpuset does not allow the node now");
        }
        words
    }

    /// The policy and whose it is.
    pub fn policy_words(&self) -> String {
        format!("{}, {}", self.policy_text, self.owner.words())
    }

    /// The CPUs and the cpuset in words.
    pub fn scope_words(&self) -> String {
        let cpus = match &self.cpu_nodes {
            Some(nodes) => format!("its threads may run on {}", node_names(nodes)),
            None => "where its threads may run is not known".to_owned(),
        };
        format!("{cpus}; its cpuset allows memory of {}", node_names(&self.allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(policy: &str, cpu_nodes: &[u32]) -> ProcessMemory {
        ProcessMemory {
            pid: 7,
            name: None,
            what: "heap".to_owned(),
            policy_text: policy.to_owned(),
            policy: policy.parse().unwrap(),
            owner: PolicyOwner::Thread,
            other_policies: Vec::new(),
            cpu_nodes: Some(cpu_nodes.iter().copied().map(NodeId::new).collect()),
            allowed: NodeSet::from([0, 1]),
            is_sampled: false,
            nodes: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn check(policy: &str, cpu_nodes: &[u32], node: u32, expected: Reason) {
        assert_eq!(memory(policy, cpu_nodes).reason(NodeId::new(node)), expected, "{policy} {node}");
    }

    #[test]
    fn a_reason_follows_from_policy_and_cpus() {
        check("default", &[0], 0, Reason::FirstTouch);
        check("default", &[0], 1, Reason::FullOrElsewhere);
        check("bind:1", &[0], 1, Reason::Policy);
        check("bind:1", &[0], 0, Reason::Older);
        check("prefer:1", &[0], 1, Reason::Policy);
        check("prefer:1", &[0], 0, Reason::FullOrOlder);
        check("interleave:0-1", &[0], 1, Reason::Turn);
        check("interleave:0", &[0], 1, Reason::FullOrOlder);
        check("local", &[1], 1, Reason::FirstTouch);
    }

    #[test]
    fn a_node_that_never_helped_out_was_not_the_way_out_of_a_full_one() {
        let words = |policy: &str, node: u32, missed: u64| {
            let size = Bytes::from_mib(1);
            memory(policy, &[0]).words(&NodeMemory { node: NodeId::new(node), size, missed: Some(missed) })
        };
        assert_eq!(
            words("default", 1, 5),
            "its threads run on node 0: full at that time, or they ran here before"
        );
        assert_eq!(
            words("default", 1, 0),
            "its threads run on node 0: not full at that time (this node gave no such page since boot), so they ran here before"
        );
        assert!(words("default", 2, 1).ends_with("; its cpuset does not allow the node now"));
        assert!(words("bind:1", 0, 0).contains("a full node is not the cause"));
    }
}
