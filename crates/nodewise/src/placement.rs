//! Typed options to a [`Placement`] on a machine. Used by `run` and by `tune --placement`.

use nodewise_machine::check::node_names;
use nodewise_machine::expr::{Devices, ExprError, Scope as ExprScope, SetExpr};
use nodewise_machine::placement::{HugePages, Placement};
use nodewise_machine::{
    CpuSet, DeviceRef, HugePool, Machine, MemPolicy, ModeFlags, NodeId, NodeSet, PolicyMode,
};

use crate::cli::place::{Huge, PlacementOptions};

/// Finds the node of a device; the error is a finished sentence.
pub type FindNode<'a> = dyn Fn(&DeviceRef) -> Result<NodeId, String> + 'a;

/// A placement, and what has to be said about how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub placement: Placement,
    /// Sentences for standard error: what was replaced by what, and why.
    pub notes: Vec<String>,
}

/// Options and the machine they are to have a meaning on.
pub struct Resolver<'a> {
    pub place: &'a PlacementOptions,
    /// Node options in the order in which they were typed, for `same`.
    pub order: Vec<&'static str>,
    pub machine: &'a Machine,
    /// Finds the nodes of devices.
    pub find: &'a FindNode<'a>,
}

/// Whether a node is asked for its memory or for its CPUs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Memory,
    Cpus,
}

impl Resolver<'_> {
    /// Brings options and machine together.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what would be right.
    pub fn resolve(&self) -> Result<Resolved, String> {
        let mut notes = Vec::new();
        let mut same: Option<NodeSet> = None;
        let mut policies: Vec<(&str, MemPolicy)> = Vec::new();
        let mut cpus: Option<CpuSet> = None;
        for option in &self.order {
            let Some(text) = self.place.nodes_of(option) else { continue };
            let flag = format!("--{}", option.replace('_', "-"));
            let role = if *option == "cpunodebind" { Role::Cpus } else { Role::Memory };
            let nodes = self.nodes(text, role, same.as_ref()).map_err(|error| format!("{flag}: {error}"))?;
            match mode_of(option) {
                Some(mode) => policies.push((option, self.policy(mode, &nodes)?)),
                None => cpus = Some(self.cpus_of(&nodes)),
            }
            same = Some(nodes);
        }
        if self.place.localalloc {
            policies.push(("localalloc", MemPolicy::new(PolicyMode::Local, NodeSet::new())));
        }
        if let Some(text) = &self.place.physcpubind {
            cpus = Some(self.cpu_numbers(text).map_err(|error| format!("--physcpubind: {error}"))?);
        }
        if let [(first, _), (second, _), ..] = policies[..] {
            let words = [first, second].map(|option| format!("--{}", option.replace('_', "-")));
            return Err(format!(
                "{} and {} contradict each other: one memory policy at a time",
                words[0], words[1]
            ));
        }
        let mut policy = policies.pop().map(|(_, policy)| policy);
        if let Some(device) = &self.place.near {
            let near = self.near(device, &mut notes).map_err(|error| format!("--near: {error}"))?;
            cpus = cpus.or(near.cpus);
            policy = policy.or(near.policy);
        }
        let huge = self.huge(&mut notes)?;
        let policy = self.balanced(policy)?;
        Ok(Resolved { placement: Placement { policy, cpus, huge }, notes })
    }

    fn policy(&self, mode: PolicyMode, nodes: &NodeSet) -> Result<MemPolicy, String> {
        if mode == PolicyMode::Preferred && nodes.len() > 1 {
            return Err(format!(
                "--preferred takes one node: {nodes} are {}; --preferred-many takes several",
                nodes.len()
            ));
        }
        Ok(MemPolicy::new(mode, nodes.clone()))
    }

    /// With `--balancing`, the policy with its flag.
    fn balanced(&self, policy: Option<MemPolicy>) -> Result<Option<MemPolicy>, String> {
        if !self.place.balancing {
            return Ok(policy);
        }
        match policy {
            Some(policy) if matches!(policy.mode, PolicyMode::Bind | PolicyMode::PreferredMany) => {
                Ok(Some(MemPolicy { flags: policy.flags.with(ModeFlags::NUMA_BALANCING), ..policy }))
            }
            _ => {
                Err("--balancing needs --membind, --preferred-many or --near with --strict: pages move inside the nodes they name"
                    .to_owned())
            }
        }
    }

    fn nodes(&self, text: &str, role: Role, same: Option<&NodeSet>) -> Result<NodeSet, String> {
        let expr = SetExpr::parse::<NodeId>(text, Devices::Accepted).map_err(|error| error.to_string())?;
        let existing = self.machine.node_ids();
        let usable = match role {
            Role::Memory => self.memory_nodes(),
            Role::Cpus => self.machine.nodes_with_cpus(),
        };
        let device = |device: &DeviceRef| (self.find)(device).map(|node| NodeSet::from_iter([node]));
        let scope = ExprScope {
            existing: &existing,
            allowed: &usable,
            limit: "this cpuset's memory nodes",
            own: &usable,
            same,
            device: Some(&device),
        };
        let nodes = expr.resolve(&scope).map_err(|error| self.node_error(error, role))?;
        match nodes.difference(&usable).first() {
            Some(node) => Err(self.unusable(node, role)),
            None => Ok(nodes),
        }
    }

    /// Memory nodes that this process may use.
    fn memory_nodes(&self) -> NodeSet {
        let nodes = self.machine.memory_nodes();
        self.machine.allowed_nodes.as_ref().map_or(nodes.clone(), |allowed| nodes.intersection(allowed))
    }

    fn node_error(&self, error: ExprError, role: Role) -> String {
        match error {
            ExprError::NotAllowed { number, .. } => self.unusable(NodeId::new(number), role),
            other => other.to_string(),
        }
    }

    /// Why a node that exists cannot be used for its memory, or for its CPUs.
    fn unusable(&self, node: NodeId, role: Role) -> String {
        let machine = self.machine;
        match role {
            Role::Cpus => {
                let nearest = machine.nearest_with_cpus(node).map_or(String::new(), |nearest| {
                    format!("; the nearest node with CPUs is {nearest}: --cpunodebind={nearest}")
                });
                let memory = if machine.memory_nodes().contains(node) {
                    format!(" (its memory can be used with --membind={node})")
                } else {
                    String::new()
                };
                format!("node {node} has no CPUs: a program cannot run there{memory}{nearest}")
            }
            Role::Memory if !machine.memory_nodes().contains(node) => {
                let nearest = machine
                    .nearest_with_memory(node)
                    .map_or(String::new(), |nearest| format!("; the nearest node with memory is {nearest}"));
                format!(
                    "node {node} has no memory (programs can run there with --cpunodebind={node}){nearest}"
                )
            }
            Role::Memory => {
                format!("node {node} is outside this cpuset's memory {}", node_names(&self.memory_nodes()))
            }
        }
    }

    fn cpu_numbers(&self, text: &str) -> Result<CpuSet, String> {
        let expr = SetExpr::parse::<nodewise_machine::CpuId>(text, Devices::Refused)
            .map_err(|error| error.to_string())?;
        let online = self.machine.online_cpus();
        let own = self.machine.allowed_cpus.as_ref().map_or(online.clone(), |own| own.intersection(&online));
        // Any online CPU can be named: whether the cpuset allows it, the kernel decides.
        let scope =
            ExprScope { existing: &online, allowed: &online, limit: "", own: &own, same: None, device: None };
        expr.resolve(&scope).map_err(|error| match error {
            ExprError::DoesNotExist { number, .. }
                if self.machine.cpu_ids().contains(nodewise_machine::CpuId::new(number)) =>
            {
                format!("CPU {number} is offline: online are {online}")
            }
            other => other.to_string(),
        })
    }

    fn cpus_of(&self, nodes: &NodeSet) -> CpuSet {
        self.machine.cpus_of_nodes(nodes)
    }

    /// CPUs and memory of a device's node, or of the nearest nodes that have some.
    fn near(&self, device: &str, notes: &mut Vec<String>) -> Result<Placement, String> {
        let device: DeviceRef =
            device.parse().map_err(|error: nodewise_machine::device::DeviceError| error.to_string())?;
        let node = (self.find)(&device)?;
        let missing = |what: &str| format!("{device} is on node {node}, and no node has {what}");
        let runs_on = self.machine.nearest_with_cpus(node).ok_or_else(|| missing("CPUs"))?;
        let memory = self.machine.nearest_with_memory(node).ok_or_else(|| missing("memory"))?;
        if runs_on != node {
            notes.push(format!(
                "{device} is on node {node}, which has no CPUs: using those of node {runs_on}, the nearest"
            ));
        }
        if memory != node {
            notes.push(format!(
                "{device} is on node {node}, which has no memory: using that of node {memory}, the nearest"
            ));
        }
        if !self.memory_nodes().contains(memory) {
            return Err(self.unusable(memory, Role::Memory));
        }
        // A program that needs more than the node has is slower elsewhere, but it is not killed.
        let mode = if self.place.strict { PolicyMode::Bind } else { PolicyMode::Preferred };
        Ok(Placement {
            policy: Some(MemPolicy::new(mode, NodeSet::from_iter([memory]))),
            cpus: Some(self.cpus_of(&NodeSet::from_iter([runs_on]))),
            huge: None,
        })
    }

    fn huge(&self, notes: &mut Vec<String>) -> Result<Option<HugePages>, String> {
        match self.place.huge {
            None => Ok(None),
            Some(Huge::Never) => Ok(Some(HugePages::NEVER)),
            Some(Huge::Pool) => {
                let size = HugePool::of_malloc(self.machine).ok_or(
                    "--huge=pool: no pool has a free huge page: write how many there are to be to \
                     /proc/sys/vm/nr_hugepages",
                )?;
                notes.push(format!(
                    "malloc of glibc (2.35 and later) is set to take pages of {size} from the pools; what a program \
                     allocates otherwise does not come from there"
                ));
                Ok(Some(HugePages::Pool))
            }
            Some(Huge::Always) => {
                match self.machine.settings.transparent_hugepage.as_deref() {
                    Some("never") => {
                        return Err("--huge=always: transparent huge pages are off on this machine: \
                                    /sys/kernel/mm/transparent_hugepage/enabled is never, and must be madvise or always"
                            .to_owned());
                    }
                    Some("madvise") => notes.push(
                        "this kernel gives huge pages only where a program asks for them (transparent_hugepage is \
                         madvise): malloc is set to request them (GLIBC_TUNABLES=glibc.malloc.hugetlb=1)"
                            .to_owned(),
                    ),
                    _ => {}
                }
                Ok(Some(HugePages::ALWAYS))
            }
        }
    }
}

/// The policy that a node option asks for; `None` for the one that asks for CPUs.
fn mode_of(option: &str) -> Option<PolicyMode> {
    match option {
        "membind" => Some(PolicyMode::Bind),
        "interleave" => Some(PolicyMode::Interleave),
        "weighted_interleave" => Some(PolicyMode::WeightedInterleave),
        "preferred" => Some(PolicyMode::Preferred),
        "preferred_many" => Some(PolicyMode::PreferredMany),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};
    use nodewise_machine::Bytes;
    use nodewise_machine::spec;

    const MIXED: &str = "2x(3c 512M) (2c) (512M); dist=10,11,20,20/11,10,20,20/20,20,10,11/20,20,11,10; dev=net:eth0@1; dev=gpu:0@3; dev=ib:mlx5_0@2";

    fn resolve_on(machine: &Machine, options: &str) -> Result<Resolved, String> {
        let command = PlacementOptions::augment_args(clap::Command::new("test").no_binary_name(true));
        let matches = command.try_get_matches_from(options.split(' ')).map_err(|error| error.to_string())?;
        let place = PlacementOptions::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        let find = |device: &DeviceRef| {
            machine.device(device).and_then(|device| device.node).ok_or(format!("{device} does not exist"))
        };
        Resolver { place: &place, order: PlacementOptions::typed_order(&matches), machine, find: &find }
            .resolve()
    }

    fn check(options: &str, expected: &str) {
        let machine = spec::machine(MIXED).unwrap();
        let Resolved { placement, notes } = resolve_on(&machine, options).unwrap();
        let policy = placement.policy.map_or("-".to_owned(), |policy| policy.to_string());
        let cpus = placement.cpus.map_or("-".to_owned(), |cpus| cpus.to_string());
        let notes = notes.iter().map(|note| format!(" | {note}")).collect::<String>();
        assert_eq!(format!("{policy} on {cpus}{notes}"), expected, "{options}");
    }

    fn refuse(options: &str, expected: &str) {
        let machine = spec::machine(MIXED).unwrap();
        assert_eq!(resolve_on(&machine, options).unwrap_err(), expected, "{options}");
    }

    #[test]
    fn every_option_becomes_its_policy() {
        check("--membind=0-1", "bind:0-1 on -");
        check("-m 3 -b", "bind=balancing:3 on -");
        check("--interleave=all", "interleave:0-1,3 on -");
        check("--weighted-interleave=!0", "weighted interleave:1,3 on -");
        check("--preferred=+2", "prefer:3 on -");
        check("--preferred-many=0,3", "prefer (many):0,3 on -");
        check("--localalloc", "local on -");
        check("--physcpubind=0-2,7", "- on 0-2,7");
        check("--cpunodebind=all", "- on 0-7");
    }

    #[test]
    fn same_means_the_option_typed_before() {
        check("--cpunodebind=1 --membind=same", "bind:1 on 3-5");
        check("--membind=1 --cpunodebind=same", "bind:1 on 3-5");
        refuse("--membind=same", "--membind: \"same\" needs a node option before it");
    }

    #[test]
    fn devices_lead_to_nodes() {
        check("--membind=netdev:eth0", "bind:1 on -");
        check("--near=net:eth0", "prefer:1 on 3-5");
        check("--near=net:eth0 --strict", "bind:1 on 3-5");
        check("--near=net:eth0 --strict --balancing", "bind=balancing:1 on 3-5");
        check(
            "--near=gpu:0",
            "prefer:3 on 6-7 | gpu:0 is on node 3, which has no CPUs: using those of node 2, the nearest",
        );
        check(
            "--near=ib:mlx5_0",
            "prefer:3 on 6-7 | ib:mlx5_0 is on node 2, which has no memory: using that of node 3, the nearest",
        );
        check("--near=net:eth0 --interleave=0,3", "interleave:0,3 on 3-5");
        refuse("--near=net:eth7", "--near: net:eth7 does not exist");
    }

    #[test]
    fn what_cannot_be_is_explained() {
        refuse("--membind=7", "--membind: node 7 does not exist: this machine has nodes 0-3");
        refuse(
            "--membind=2",
            "--membind: node 2 has no memory (programs can run there with --cpunodebind=2); the nearest node with memory is 3",
        );
        refuse(
            "--cpunodebind=3",
            "--cpunodebind: node 3 has no CPUs: a program cannot run there (its memory can be used with --membind=3); the nearest node with CPUs is 2: --cpunodebind=2",
        );
        refuse("--preferred=0,1", "--preferred takes one node: 0-1 are 2; --preferred-many takes several");
        refuse(
            "--interleave=0 --membind=1",
            "--interleave and --membind contradict each other: one memory policy at a time",
        );
        refuse(
            "--balancing --interleave=0",
            "--balancing needs --membind, --preferred-many or --near with --strict: pages move inside the nodes they name",
        );
        refuse("--physcpubind=9", "--physcpubind: CPU 9 does not exist: this machine has CPUs 0-7");
    }

    #[test]
    fn a_cpuset_is_named_as_the_limit() {
        let mut machine = spec::machine(MIXED).unwrap();
        machine.allowed_nodes = Some(NodeSet::from([1]));
        assert_eq!(
            resolve_on(&machine, "--membind=0").unwrap_err(),
            "--membind: node 0 is outside this cpuset's memory node 1"
        );
        assert_eq!(
            resolve_on(&machine, "--interleave=all").unwrap().placement.policy.unwrap().nodes,
            NodeSet::from([1])
        );
    }

    #[test]
    fn huge_pages_follow_the_systems_setting() {
        let mut machine = spec::machine(MIXED).unwrap();
        let huge = |machine: &Machine, when: &str| {
            resolve_on(machine, &format!("--huge={when}")).map(|r| (r.placement.huge, r.notes.len()))
        };
        machine.settings.transparent_hugepage = Some("madvise".to_owned());
        assert_eq!(huge(&machine, "always"), Ok((Some(HugePages::ALWAYS), 1)));
        assert_eq!(huge(&machine, "never"), Ok((Some(HugePages::NEVER), 0)));
        machine.settings.transparent_hugepage = Some("never".to_owned());
        assert!(huge(&machine, "always").unwrap_err().contains("must be madvise or always"));
        assert!(huge(&machine, "pool").unwrap_err().contains("no pool has a free huge page"));
        let pool = HugePool { page_size: Bytes::from_mib(2), total: Some(2), free: Some(1), surplus: None };
        machine.nodes.get_mut(&NodeId::new(1)).unwrap().huge_pools.push(pool);
        assert_eq!(huge(&machine, "pool"), Ok((Some(HugePages::Pool), 1)));
    }
}
