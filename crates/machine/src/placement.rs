//! Placements: where a program may run and where its memory comes from, as data.
//!
//! A [`Placement`] says nothing of how it is applied (the crate `nodewise_syscall` does that) and
//! has no meaning without a machine: binding to CPUs 0-3 is nothing on a machine that has no others.
//! The [`Scope`] is what a placement can choose from, and [`Placement::within`] brings it to the one
//! form in which placements with the same effect are equal. Names and command lines are in
//! [`words`].

pub mod words;

use std::collections::BTreeMap;

use crate::{CpuSet, Machine, MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode};

/// Where a program may run and where its memory comes from. `None`: as it is without nodewise.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Placement {
    /// The memory policy of the process.
    pub policy: Option<MemPolicy>,
    /// The CPUs it may run on.
    pub cpus: Option<CpuSet>,
    /// Which huge pages it gets.
    pub huge: Option<HugePages>,
}

/// Huge pages for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// Permission to get transparent ones, or none. Where the kernel gives them only to programs that ask,
    /// `Allowed` means that its malloc is set to request them.
    Transparent(TransparentHuge),
    /// Its malloc takes them from the pools (hugetlb) while these have any, and transparent ones or small
    /// pages then.
    Pool,
}

impl HugePages {
    /// Transparent ones wherever the kernel can give them.
    pub const ALWAYS: Self = Self::Transparent(TransparentHuge::Allowed);
    /// No transparent ones.
    pub const NEVER: Self = Self::Transparent(TransparentHuge::Never);
}

/// Whether a process may get transparent huge pages, whatever the system's setting is.
///
/// The setting belongs to the whole process and is kept by `fork(2)` and `execve(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransparentHuge {
    /// As the system's setting says.
    Allowed,
    /// Never, even where the program advises them. Linux 3.15.
    Never,
    /// Only where the program advises them. Linux 6.18.
    OnlyAdvised,
}

/// The part of a machine that a program started here can use.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Scope {
    /// CPUs that are online and allowed.
    pub cpus: CpuSet,
    /// Nodes whose memory is there and allowed.
    pub memory_nodes: NodeSet,
    /// The CPUs of [`Scope::cpus`] on each node that has any.
    pub cpus_of: BTreeMap<NodeId, CpuSet>,
    /// Weights of weighted interleave; empty where the kernel gives none.
    pub weights: BTreeMap<NodeId, u32>,
    /// Whether the kernel gives transparent huge pages only where a program asks for them (the
    /// setting `madvise`).
    pub huge_on_request: bool,
}

impl Scope {
    /// Returns the CPUs and nodes that the process that looked at this machine may use; all of the machine
    /// where that is not known.
    pub fn from_machine(machine: &Machine) -> Self {
        let online = machine.online_cpus();
        let cpus = match &machine.allowed_cpus {
            Some(allowed) => online.intersection(allowed),
            None => online,
        };
        let nodes = machine.memory_nodes();
        let memory_nodes = match &machine.allowed_nodes {
            Some(allowed) => nodes.intersection(allowed),
            None => nodes,
        };
        let cpus_of = machine
            .node_ids()
            .iter()
            .map(|node| (node, machine.cpus_of(node).intersection(&cpus)))
            .filter(|(_, cpus)| !cpus.is_empty())
            .collect();
        Self {
            cpus,
            memory_nodes,
            cpus_of,
            weights: machine.settings.interleave_weights.clone(),
            huge_on_request: machine.settings.transparent_hugepage.as_deref() == Some("madvise"),
        }
    }

    /// The CPUs of a node that may be used; empty for a node without.
    pub fn cpus_of(&self, node: NodeId) -> CpuSet {
        self.cpus_of.get(&node).cloned().unwrap_or_default()
    }

    /// Whether weighted interleave over these nodes is known to give each the same share.
    pub fn weights_are_equal(&self, nodes: &NodeSet) -> bool {
        let mut weights = nodes.iter().map(|node| self.weights.get(&node));
        let first = weights.next().flatten();
        first.is_some() && weights.all(|weight| weight == first)
    }
}

impl Placement {
    /// The placement that leaves everything as it is.
    pub const DEFAULT: Self = Self { policy: None, cpus: None, huge: None };

    /// Only a memory policy.
    pub fn memory(mode: PolicyMode, nodes: NodeSet) -> Self {
        Self { policy: Some(MemPolicy::new(mode, nodes)), ..Self::DEFAULT }
    }

    /// Only a set of CPUs.
    pub fn on_cpus(cpus: CpuSet) -> Self {
        Self { cpus: Some(cpus), ..Self::DEFAULT }
    }

    /// This placement, bound to these CPUs.
    #[must_use]
    pub fn with_cpus(self, cpus: CpuSet) -> Self {
        Self { cpus: Some(cpus), ..self }
    }

    /// The simplest placement with the same effect here; placements that are equal afterwards are
    /// the same one.
    ///
    /// | given | is the same as |
    /// |---|---|
    /// | all CPUs that may be used | no binding |
    /// | any policy, where one node holds all memory that may be used | no policy |
    /// | the default policy | no policy (of a process that was started under none) |
    /// | interleave or weighted interleave over one node | that node preferred |
    /// | preferred-many over one node, where two hold all memory | that node preferred |
    /// | weighted interleave with weights that are known and equal | interleave |
    /// | preferred without a node | local |
    /// | transparent huge pages allowed | no wish, unless the kernel waits to be asked for them |
    ///
    /// Nodes without memory are taken out of a policy, as the kernel does; a policy that names only
    /// such nodes is left as it is, for the kernel to refuse.
    #[must_use]
    pub fn within(&self, scope: &Scope) -> Self {
        let huge = self.huge.filter(|huge| *huge != HugePages::ALWAYS || scope.huge_on_request);
        let cpus = self.cpus.as_ref().filter(|cpus| !scope.cpus.is_subset(cpus)).cloned();
        Self { policy: self.policy.as_ref().and_then(|policy| plain(policy, scope)), cpus, huge }
    }
}

/// A policy in its simplest form, `None` where it changes nothing.
fn plain(policy: &MemPolicy, scope: &Scope) -> Option<MemPolicy> {
    if policy.flags.contains(ModeFlags::RELATIVE_NODES) {
        return Some(policy.clone());
    }
    let usable = policy.nodes.intersection(&scope.memory_nodes);
    if usable.is_empty() && !policy.nodes.is_empty() {
        return Some(policy.clone());
    }
    let mode = match policy.mode {
        PolicyMode::Default => return None,
        PolicyMode::Preferred if usable.is_empty() => PolicyMode::Local,
        PolicyMode::Interleave | PolicyMode::WeightedInterleave if usable.len() == 1 => PolicyMode::Preferred,
        // When that node is full, the nodes next to it follow for the one, and those next to the CPU for
        // the other: `nodewise_model` says so, and the same only where one node is left.
        PolicyMode::PreferredMany if usable.len() == 1 && scope.memory_nodes.len() <= 2 => {
            PolicyMode::Preferred
        }
        PolicyMode::WeightedInterleave if scope.weights_are_equal(&usable) => PolicyMode::Interleave,
        mode => mode,
    };
    (scope.memory_nodes.len() > 1).then_some(MemPolicy { mode, flags: policy.flags, nodes: usable })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;
    use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

    pub(crate) fn scope(text: &str) -> Scope {
        Scope::from_machine(&spec::machine(text).unwrap())
    }

    /// Placements with sets of existing and of other nodes and CPUs.
    pub(crate) fn any_placement() -> impl Strategy<Value = Placement> {
        let nodes =
            prop::collection::vec(0u32..6, 0..6).prop_map(|n| n.into_iter().map(NodeId::new).collect());
        let flags = prop_oneof![
            Just(ModeFlags::NONE),
            Just(ModeFlags::NUMA_BALANCING),
            Just(ModeFlags::STATIC_NODES),
            Just(ModeFlags::RELATIVE_NODES)
        ];
        let policy = (0usize..7, flags, nodes).prop_map(|(mode, flags, nodes): (_, _, NodeSet)| {
            let mode = PolicyMode::ALL[mode];
            let nodes =
                if matches!(mode, PolicyMode::Default | PolicyMode::Local) { NodeSet::new() } else { nodes };
            MemPolicy { mode, flags, nodes }
        });
        let cpus = prop::collection::vec(0u32..20, 1..20)
            .prop_map(|cpus| cpus.into_iter().map(crate::CpuId::new).collect());
        let huge = prop_oneof![
            Just(HugePages::ALWAYS),
            Just(HugePages::NEVER),
            Just(HugePages::Transparent(TransparentHuge::OnlyAdvised)),
            Just(HugePages::Pool)
        ];
        (prop::option::of(policy), prop::option::of(cpus), prop::option::of(huge))
            .prop_map(|(policy, cpus, huge)| Placement { policy, cpus, huge })
    }

    fn check(placement: Placement, on: &str, same_as: Placement) {
        assert_eq!(placement.within(&scope(on)), same_as, "on {on}");
    }

    const FOUR: &str = "4x(4c 8G)";

    #[test]
    fn binding_to_every_cpu_is_no_binding() {
        check(Placement::on_cpus(CpuSet::from([0, 1, 2, 3])), "(4c 8G)", Placement::DEFAULT);
        let three = Placement::on_cpus(CpuSet::from([0, 1, 2]));
        check(three.clone(), "(4c 8G)", three);
    }

    #[test]
    fn every_policy_of_a_machine_with_one_memory_node_is_none() {
        for mode in PolicyMode::ALL {
            check(Placement::memory(mode, NodeSet::from([0])), "(4c 8G)", Placement::DEFAULT);
            check(Placement::memory(mode, NodeSet::from([0])), "(4c 8G) (4c)", Placement::DEFAULT);
        }
    }

    #[test]
    fn interleaving_over_one_node_prefers_it() {
        let preferred = Placement::memory(PolicyMode::Preferred, NodeSet::from([2]));
        for mode in [PolicyMode::Interleave, PolicyMode::WeightedInterleave] {
            check(Placement::memory(mode, NodeSet::from([2])), FOUR, preferred.clone());
        }
        let many = |nodes: NodeSet| Placement::memory(PolicyMode::PreferredMany, nodes);
        check(many(NodeSet::from([2])), FOUR, many(NodeSet::from([2])));
        let preferred = Placement::memory(PolicyMode::Preferred, NodeSet::from([1]));
        check(many(NodeSet::from([1])), "2x(4c 8G)", preferred);
        let local = MemPolicy::new(PolicyMode::Local, NodeSet::new());
        let local = Placement { policy: Some(local), ..Placement::DEFAULT };
        check(Placement::memory(PolicyMode::Preferred, NodeSet::new()), FOUR, local);
    }

    #[test]
    fn equal_weights_are_plain_interleave() {
        let nodes = NodeSet::from([0, 1]);
        let weighted = Placement::memory(PolicyMode::WeightedInterleave, nodes.clone());
        let plain = Placement::memory(PolicyMode::Interleave, nodes);
        check(weighted.clone(), "2x(4c 8G); weights=0:3,1:3", plain);
        for other in ["2x(4c 8G); weights=0:3,1:1", "2x(4c 8G); weights=0:3", "2x(4c 8G)"] {
            check(weighted.clone(), other, weighted.clone());
        }
    }

    #[test]
    fn nodes_without_memory_leave_a_policy_and_foreign_ones_are_kept_to_be_refused() {
        let two = Placement::memory(PolicyMode::Interleave, NodeSet::from([0, 1]));
        check(Placement::memory(PolicyMode::Interleave, NodeSet::from([0, 1, 2])), "2x(4c 8G) (4c)", two);
        let foreign = Placement::memory(PolicyMode::Bind, NodeSet::from([2, 7]));
        check(foreign.clone(), "2x(4c 8G) (4c)", foreign);
    }

    #[test]
    fn a_scope_keeps_to_what_is_allowed() {
        let mut machine = spec::machine(FOUR).unwrap();
        machine.allowed_cpus = Some(CpuSet::from([4, 5, 99]));
        machine.allowed_nodes = Some(NodeSet::from([1, 2]));
        let scope = Scope::from_machine(&machine);
        assert_eq!(scope.cpus, CpuSet::from([4, 5]));
        assert_eq!(scope.memory_nodes, NodeSet::from([1, 2]));
        assert_eq!(scope.cpus_of.keys().map(ToString::to_string).collect::<String>(), "1");
        assert_eq!(scope.cpus_of(NodeId::new(0)), CpuSet::new());
    }

    proptest! {
        #[test]
        fn the_simplest_form_is_its_own_simplest_form(placement in any_placement(), weights in any::<bool>()) {
            let scope = scope(if weights { "4x(4c 8G) (8G); weights=0:2,1:3" } else { "3x(4c 8G) (4c)" });
            let once = placement.within(&scope);
            prop_assert_eq!(once.within(&scope), once);
        }
    }
}
