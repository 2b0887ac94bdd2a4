//! The name of a placement, and the command lines that apply it.

use crate::check::node_names;
use crate::{CpuSet, MemPolicy, ModeFlags, NodeSet, PolicyMode};

use super::{HugePages, Placement, Scope, TransparentHuge};

/// Lists longer than this are given by their number in a name.
const LONGEST_LIST: usize = 24;

impl HugePages {
    /// Which ones, behind the words "huge pages".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Transparent(TransparentHuge::Allowed) => "on",
            Self::Transparent(TransparentHuge::Never) => "off",
            Self::Transparent(TransparentHuge::OnlyAdvised) => "only where advised",
            Self::Pool => "of the pool",
        }
    }
}

impl Placement {
    /// A short name for tables: `default`, `local to node 0` (CPUs and memory), `prefer node
    /// 0` (its memory preferred), `interleave all`, `CPUs of node 0, memory of node 2`.
    pub fn name(&self, scope: &Scope) -> String {
        let cpus = self.cpus.as_ref().map(|cpus| (cpus, whole_nodes(cpus, scope)));
        if let (Some(MemPolicy { mode, flags: ModeFlags::NONE, nodes }), Some((_, Some(home)))) =
            (&self.policy, &cpus)
        {
            let word = match mode {
                PolicyMode::Bind => Some("local to"),
                PolicyMode::Preferred => Some("prefer"),
                _ => None,
            };
            if let Some(word) = word.filter(|_| nodes == home) {
                return join([Some(format!("{word} {}", node_names(nodes))), self.huge_words()]);
            }
        }
        let cpus = cpus.map(|(cpus, nodes)| match nodes {
            Some(nodes) => format!("CPUs of {}", node_names(&nodes)),
            None => cpu_words(cpus),
        });
        let memory = self.policy.as_ref().map(|policy| memory_words(policy, scope));
        let name = join([cpus, memory, self.huge_words()]);
        if name.is_empty() { "default".to_owned() } else { name }
    }

    fn huge_words(&self) -> Option<String> {
        self.huge.map(|huge| format!("huge pages {}", huge.words()))
    }

    /// The options of `nodewise run` that apply it; empty for the default.
    ///
    /// `None` where no option says it: node sets with `static` or `relative` flags, and huge pages
    /// only where advised.
    pub fn run_options(&self, scope: &Scope) -> Option<Vec<String>> {
        let mut options = self.cpu_and_memory_options(scope)?;
        match self.huge {
            None => {}
            Some(HugePages::Transparent(TransparentHuge::Allowed)) => {
                options.push("--huge=always".to_owned())
            }
            Some(HugePages::Transparent(TransparentHuge::Never)) => options.push("--huge=never".to_owned()),
            Some(HugePages::Pool) => options.push("--huge=pool".to_owned()),
            Some(HugePages::Transparent(TransparentHuge::OnlyAdvised)) => return None,
        }
        Some(options)
    }

    /// The options of `numactl` that apply it; empty for the default.
    ///
    /// `None` where it has none: flags as for [`Placement::run_options`], and anything about huge
    /// pages. Weighted interleave needs numactl 2.0.19, preferred-many 2.0.15.
    pub fn numactl(&self, scope: &Scope) -> Option<Vec<String>> {
        if self.huge.is_some() {
            return None;
        }
        self.cpu_and_memory_options(scope)
    }

    /// Returns the options that `nodewise run` and `numactl` call by the same names.
    fn cpu_and_memory_options(&self, scope: &Scope) -> Option<Vec<String>> {
        let mut options = Vec::new();
        if let Some(cpus) = &self.cpus {
            options.push(match whole_nodes(cpus, scope) {
                Some(nodes) => format!("--cpunodebind={nodes}"),
                None => format!("--physcpubind={cpus}"),
            });
        }
        let Some(policy) = &self.policy else { return Some(options) };
        if policy.flags == ModeFlags::NUMA_BALANCING && policy.mode == PolicyMode::Bind {
            options.push("--balancing".to_owned());
        } else if policy.flags != ModeFlags::NONE {
            return None;
        }
        let nodes = or_all(&policy.nodes, scope);
        options.push(match policy.mode {
            PolicyMode::Default => return Some(options),
            PolicyMode::Local => "--localalloc".to_owned(),
            PolicyMode::Preferred if policy.nodes.is_empty() => "--localalloc".to_owned(),
            PolicyMode::Preferred => format!("--preferred={nodes}"),
            PolicyMode::Bind => format!("--membind={nodes}"),
            PolicyMode::Interleave => format!("--interleave={nodes}"),
            PolicyMode::PreferredMany => format!("--preferred-many={nodes}"),
            PolicyMode::WeightedInterleave => format!("--weighted-interleave={nodes}"),
        });
        Some(options)
    }
}

/// The nodes whose CPUs these are, all of them and nothing else; `None` for any other set.
///
/// Emulated nodes can list the same CPUs; the lowest nodes that cover the set are named.
fn whole_nodes(cpus: &CpuSet, scope: &Scope) -> Option<NodeSet> {
    let (mut covered, mut nodes) = (CpuSet::new(), NodeSet::new());
    for (node, of_node) in &scope.cpus_of {
        if of_node.is_subset(cpus) && !of_node.is_subset(&covered) {
            covered = covered.union(of_node);
            nodes.insert(*node);
        }
    }
    (covered == *cpus && !nodes.is_empty()).then_some(nodes)
}

/// A list of nodes, `all` for every one whose memory may be used.
fn or_all(nodes: &NodeSet, scope: &Scope) -> String {
    if nodes.len() > 1 && *nodes == scope.memory_nodes { "all".to_owned() } else { nodes.to_string() }
}

fn memory_words(policy: &MemPolicy, scope: &Scope) -> String {
    let nodes = or_all(&policy.nodes, scope);
    let words = match policy.mode {
        PolicyMode::Default => "default policy".to_owned(),
        PolicyMode::Local => "local memory".to_owned(),
        PolicyMode::Preferred if policy.nodes.is_empty() => "local memory".to_owned(),
        PolicyMode::Preferred => format!("{} preferred", node_names(&policy.nodes)),
        PolicyMode::PreferredMany => format!("{} preferred", node_names(&policy.nodes)),
        PolicyMode::Bind => format!("memory of {}", node_names(&policy.nodes)),
        PolicyMode::Interleave => format!("interleave {nodes}"),
        PolicyMode::WeightedInterleave => format!("weighted interleave {nodes}"),
    };
    if policy.flags == ModeFlags::NONE { words } else { format!("{words} ({})", policy.flags) }
}

/// `CPU 3`, `CPUs 0-3,8`, `48 CPUs` where the list is long.
fn cpu_words(cpus: &CpuSet) -> String {
    let list = cpus.to_string();
    match cpus.len() {
        1 => format!("CPU {list}"),
        count if list.len() > LONGEST_LIST => format!("{count} CPUs"),
        _ => format!("CPUs {list}"),
    }
}

fn join<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{any_placement, scope};
    use super::*;
    use proptest::prelude::{prop_assert, proptest};

    const MACHINE: &str = "2x(4c2t 8G) (8G)";

    fn check(placement: &Placement, name: &str, run: Option<&str>, numactl: Option<&str>) {
        let scope = scope(MACHINE);
        assert_eq!(placement.name(&scope), name);
        assert_eq!(placement.run_options(&scope).map(|options| options.join(" ")).as_deref(), run);
        assert_eq!(placement.numactl(&scope).map(|options| options.join(" ")).as_deref(), numactl);
    }

    fn bind(nodes: impl Into<NodeSet>) -> Placement {
        Placement::memory(PolicyMode::Bind, nodes.into())
    }

    fn node_cpus(node: u32) -> CpuSet {
        scope(MACHINE).cpus_of(crate::NodeId::new(node))
    }

    #[test]
    fn the_default_has_a_name_and_no_options() {
        check(&Placement::DEFAULT, "default", Some(""), Some(""));
    }

    #[test]
    fn one_node_with_its_memory_is_local() {
        let options = "--cpunodebind=0 --membind=0";
        check(&bind([0]).with_cpus(node_cpus(0)), "local to node 0", Some(options), Some(options));
        let both = node_cpus(0).union(&node_cpus(1));
        let options = "--cpunodebind=0-1 --membind=0-1";
        check(&bind([0, 1]).with_cpus(both), "local to nodes 0-1", Some(options), Some(options));
    }

    #[test]
    fn memory_of_another_node_is_named_with_the_cpus() {
        let options = "--cpunodebind=1 --membind=2";
        let name = "CPUs of node 1, memory of node 2";
        check(&bind([2]).with_cpus(node_cpus(1)), name, Some(options), Some(options));
    }

    #[test]
    fn every_policy_has_its_option() {
        for (mode, name, options) in [
            (PolicyMode::Interleave, "interleave all", "--interleave=all"),
            (PolicyMode::WeightedInterleave, "weighted interleave all", "--weighted-interleave=all"),
            (PolicyMode::PreferredMany, "nodes 0-2 preferred", "--preferred-many=all"),
            (PolicyMode::Bind, "memory of nodes 0-2", "--membind=all"),
        ] {
            check(&Placement::memory(mode, NodeSet::from([0, 1, 2])), name, Some(options), Some(options));
        }
        let preferred = Placement::memory(PolicyMode::Preferred, NodeSet::from([1]));
        check(&preferred, "node 1 preferred", Some("--preferred=1"), Some("--preferred=1"));
        let local = Placement::memory(PolicyMode::Local, NodeSet::new());
        check(&local, "local memory", Some("--localalloc"), Some("--localalloc"));
    }

    #[test]
    fn what_numactl_cannot_say_has_no_numactl_line() {
        let off = Placement { huge: Some(HugePages::NEVER), ..bind([0, 1]) };
        check(&off, "memory of nodes 0-1, huge pages off", Some("--membind=0-1 --huge=never"), None);
        let pool = Placement { huge: Some(HugePages::Pool), ..bind([0, 1]) };
        check(&pool, "memory of nodes 0-1, huge pages of the pool", Some("--membind=0-1 --huge=pool"), None);
        let huge = Some(HugePages::Transparent(TransparentHuge::OnlyAdvised));
        let advised = Placement { huge, ..Placement::DEFAULT };
        check(&advised, "huge pages only where advised", None, None);
    }

    #[test]
    fn balancing_has_an_option_and_other_flags_have_none() {
        let flagged = |flags| Placement {
            policy: Some(MemPolicy { mode: PolicyMode::Bind, flags, nodes: NodeSet::from([1]) }),
            ..Placement::DEFAULT
        };
        let options = "--balancing --membind=1";
        check(
            &flagged(ModeFlags::NUMA_BALANCING),
            "memory of node 1 (balancing)",
            Some(options),
            Some(options),
        );
        check(&flagged(ModeFlags::STATIC_NODES), "memory of node 1 (static)", None, None);
    }

    #[test]
    fn cpus_that_are_no_whole_nodes_are_listed() {
        let one = Placement::on_cpus(CpuSet::from([3]));
        check(&one, "CPU 3", Some("--physcpubind=3"), Some("--physcpubind=3"));
        let odd: CpuSet = (0..16).step_by(2).map(crate::CpuId::new).collect();
        let options = "--physcpubind=0,2,4,6,8,10,12,14";
        check(&Placement::on_cpus(odd), "CPUs 0,2,4,6,8,10,12,14", Some(options), Some(options));
    }

    #[test]
    fn a_long_list_of_cpus_is_counted_in_the_name() {
        let scope = scope("(64c2t 8G)");
        let odd: CpuSet = (0..128).step_by(2).map(crate::CpuId::new).collect();
        assert_eq!(Placement::on_cpus(odd).name(&scope), "64 CPUs");
    }

    #[test]
    fn emulated_nodes_that_share_cpus_are_named_once() {
        let mut scope = scope("(4c 1G) 3x(1G)");
        let cpus = scope.cpus.clone();
        scope.cpus_of = scope.memory_nodes.iter().map(|node| (node, cpus.clone())).collect();
        assert_eq!(whole_nodes(&cpus, &scope), Some(NodeSet::from([0])));
    }

    proptest! {
        #[test]
        fn every_placement_has_a_name_and_numactl_says_no_more_than_run(placement in any_placement()) {
            let scope = scope("4x(4c 8G) (8G)");
            prop_assert!(!placement.name(&scope).is_empty());
            if let Some(numactl) = placement.numactl(&scope) {
                prop_assert!(placement.run_options(&scope) == Some(numactl));
            }
        }
    }
}
