//! Scripts in words, one line per call.

use std::fmt::Write as _;

use nodewise_machine::NodeSet;
use nodewise_syscall::{BindOptions, PageScope};

use crate::script::{Call, MappingKind, Member, Part, PoolStep, Script, Step};

impl Script {
    /// The lines of a script: the weights first, where they are not all 1.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.weights.iter().any(|(_, weight)| *weight != 1) {
            lines.push(format!("weights of the nodes: {}", pairs(&self.weights, "=")));
        }
        let mut mappings = 0;
        for call in &self.calls {
            lines.push(call.text(mappings));
            mappings += usize::from(matches!(call, Call::Map(..)));
        }
        lines
    }

    /// The number of its calls, those inside of a fork or of a use of the pools included.
    pub fn length(&self) -> usize {
        let inside = |call: &Call| match call {
            Call::Fork(steps) => steps.len(),
            Call::Pool { steps, .. } => steps.len(),
            Call::Group(script) => script.steps.len(),
            Call::Cache(script) => script.steps.len(),
            _ => 0,
        };
        self.calls.iter().map(|call| 1 + inside(call)).sum()
    }
}

impl Call {
    /// The call in words, with the number that a new mapping gets.
    pub fn text(&self, mappings: usize) -> String {
        match self {
            Self::RunOn(node) => format!("run on a CPU of node {node}"),
            Self::SetPolicy(policy) => format!("set_mempolicy({policy})"),
            Self::Map(kind, pages) => format!("m{mappings} = mmap({})", mapped(*kind, *pages)),
            Self::Touch(mapping, pages) => format!("write to {}", listed(*mapping, pages)),
            Self::Bind(part, policy, options) => {
                format!("mbind({}, {policy}{})", part_text(*part), options_text(*options))
            }
            Self::SetHome(part, node) => {
                format!("set_mempolicy_home_node({}, node {node})", part_text(*part))
            }
            Self::Restrict(nodes) => format!("cpuset.mems = {nodes}"),
            Self::Migrate(old, new) => format!("migrate_pages({}, {})", set(old), set(new)),
            Self::Move(mapping, moves) => format!("move_pages(m{mapping}: {})", pairs(moves, " to node ")),
            Self::Program(pages) => format!("start a program that writes to {pages} pages"),
            Self::HugePages(enabled, defrag) => {
                format!("transparent_hugepage/enabled = {enabled}, defrag = {defrag}")
            }
            Self::Thread(number) => format!("in thread {number}"),
            Self::Keep(mapping) => format!("madvise(m{mapping}, MADV_DONTFORK)"),
            Self::Fork(steps) => {
                format!("fork a child: {}", joined(steps.iter().map(Step::text)))
            }
            Self::Pool { pools, pages, steps } => format!(
                "with pools of {}: p = mmap({pages} huge pages); {}",
                pairs(pools, ": "),
                joined(steps.iter().map(PoolStep::text))
            ),
            Self::Group(script) => script.text(),
            Self::Cache(script) => script.text(),
        }
    }
}

impl Step {
    /// The step in words.
    pub fn text(&self) -> String {
        let who = |member: &Member| match member {
            Member::Parent => "parent",
            Member::Child => "child",
        };
        match self {
            Self::RunOn(member, node) => format!("{} runs on a CPU of node {node}", who(member)),
            Self::Write(member, mapping, pages) => {
                format!("{} writes to {}", who(member), listed(*mapping, pages))
            }
            Self::SetPolicy(policy) => format!("parent: set_mempolicy({policy})"),
            Self::Bind(part, policy) => format!("parent: mbind({}, {policy})", part_text(*part)),
        }
    }
}

impl PoolStep {
    /// The step in words.
    pub fn text(&self) -> String {
        match self {
            Self::Touch(page) => format!("write to page {page} of p"),
            Self::Bind(policy, options) => format!("mbind(p, {policy}{})", options_text(*options)),
            Self::Move(page, node) => format!("move_pages(p: {page} to node {node})"),
            Self::Migrate(old, new) => format!("migrate_pages({}, {})", set(old), set(new)),
            Self::Resize(None, pages) => format!("nr_hugepages = {pages}"),
            Self::Resize(Some(node), pages) => format!("nr_hugepages of node {node} = {pages}"),
        }
    }
}

fn joined(steps: impl Iterator<Item = String>) -> String {
    steps.collect::<Vec<_>>().join("; ")
}

fn mapped(kind: MappingKind, pages: u64) -> String {
    match kind {
        MappingKind::Small => format!("{pages} pages"),
        MappingKind::Huge => format!("{pages} pages with MADV_HUGEPAGE"),
        MappingKind::Plain(lead) => {
            format!("{pages} pages without advice, a huge page could begin at page {lead}")
        }
        MappingKind::File(0) => format!("{pages} pages of a file of tmpfs"),
        MappingKind::File(first) => format!("{pages} pages of a file of tmpfs, from its page {first} on"),
    }
}

fn listed(mapping: usize, pages: &[u64]) -> String {
    let pages: Vec<String> = pages.iter().map(ToString::to_string).collect();
    format!("m{mapping}: {}", pages.join(", "))
}

fn part_text(Part { mapping, first, count }: Part) -> String {
    if count == 1 {
        return format!("m{mapping} page {first}");
    }
    format!("m{mapping} pages {first}-{}", (first + count).saturating_sub(1))
}

fn options_text(options: BindOptions) -> String {
    let mut text = String::new();
    match options.moving {
        Some(PageScope::Own) => text.push_str(", MPOL_MF_MOVE"),
        Some(PageScope::All) => text.push_str(", MPOL_MF_MOVE_ALL"),
        None => {}
    }
    if options.strict {
        text.push_str(", MPOL_MF_STRICT");
    }
    text
}

fn set(nodes: &NodeSet) -> String {
    if nodes.is_empty() { "no node".to_owned() } else { format!("nodes {nodes}") }
}

/// Pairs such as `0=2, 1=3`.
fn pairs<A: ToString, B: ToString>(pairs: &[(A, B)], between: &str) -> String {
    let mut text = String::new();
    for (a, b) in pairs {
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{comma}{}{between}{}", a.to_string(), b.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{MemPolicy, NodeId};

    #[test]
    fn a_script_is_written_line_by_line() {
        let node = NodeId::new;
        let policy = MemPolicy::DEFAULT;
        let script = Script {
            weights: vec![(node(0), 1), (node(1), 3)],
            calls: vec![
                Call::Map(MappingKind::Small, 4),
                Call::Map(MappingKind::File(2), 1),
                Call::Bind(
                    Part { mapping: 0, first: 1, count: 2 },
                    policy,
                    BindOptions { moving: Some(PageScope::Own), strict: true },
                ),
                Call::Move(0, vec![(3, node(1)), (0, node(0))]),
                Call::Fork(vec![
                    Step::RunOn(Member::Child, node(1)),
                    Step::Write(Member::Child, 1, vec![0, 0]),
                ]),
            ],
        };
        assert_eq!(
            script.lines(),
            [
                "weights of the nodes: 0=1, 1=3",
                "m0 = mmap(4 pages)",
                "m1 = mmap(1 pages of a file of tmpfs, from its page 2 on)",
                "mbind(m0 pages 1-2, default, MPOL_MF_MOVE, MPOL_MF_STRICT)",
                "move_pages(m0: 3 to node 1, 0 to node 0)",
                "fork a child: child runs on a CPU of node 1; child writes to m1: 0, 0",
            ]
        );
        assert_eq!(script.length(), 7);
    }
}
