//! Which placements are worth trying on a machine, and which are not and why.
//!
//! Every rule gives a reason when it leaves something out, so that a table of results can say what
//! was not tried. Placements with the same effect are tried once: on a machine with one node hardly
//! anything remains, and the reasons say so.

pub mod binding;
mod cores;
mod nodes;

use nodewise_machine::check::node_names;
use nodewise_machine::{CpuSet, HugePool, Machine, NodeSet, PolicyMode};

use nodewise_machine::placement::{HugePages, Placement, Scope};

pub use nodes::MOST_NODES;

/// A placement that is worth trying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub name: String,
    /// The placement, in its simplest form.
    pub placement: Placement,
}

/// A placement that is not tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub name: String,
    /// Why, as the second half of a sentence: `the same as default here`.
    pub why: String,
}

/// The placements to try and those left out.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Candidates {
    /// Placements with different effects, the default first.
    pub chosen: Vec<Candidate>,
    pub left_out: Vec<LeftOut>,
}

impl Candidates {
    /// The placements that make sense on a machine, for a program started by the process that
    /// looked at it.
    pub fn from_machine(machine: &Machine) -> Self {
        let mut gathering = Gathering::new(machine);
        gathering.offer("default".to_owned(), &Placement::DEFAULT);
        gathering.node_by_node();
        gathering.interleaved();
        gathering.weighted();
        gathering.preferred();
        gathering.compact_and_spread();
        gathering.balancing();
        gathering.huge_pages();
        gathering.candidates
    }
}

struct Gathering<'a> {
    machine: &'a Machine,
    scope: Scope,
    candidates: Candidates,
}

impl<'a> Gathering<'a> {
    fn new(machine: &'a Machine) -> Self {
        Self { machine, scope: Scope::from_machine(machine), candidates: Candidates::default() }
    }

    /// Takes a placement in under its own name, unless one with the same effect is in already.
    fn offer_placement(&mut self, placement: &Placement) {
        let simple = placement.within(&self.scope);
        if self.is_new(&placement.name(&self.scope), &simple) {
            let name = simple.name(&self.scope);
            self.candidates.chosen.push(Candidate { name, placement: simple });
        }
    }

    /// Takes a placement in under a name of its role.
    fn offer(&mut self, name: String, placement: &Placement) {
        let placement = placement.within(&self.scope);
        if self.is_new(&name, &placement) {
            self.candidates.chosen.push(Candidate { name, placement });
        }
    }

    fn is_new(&mut self, name: &str, placement: &Placement) -> bool {
        let same = self.candidates.chosen.iter().find(|chosen| chosen.placement == *placement);
        let why = same.map(|same| format!("the same as {} here", same.name));
        if let Some(why) = why {
            self.leave_out(name, why);
            return false;
        }
        true
    }

    fn leave_out(&mut self, name: &str, why: impl Into<String>) {
        self.candidates.left_out.push(LeftOut { name: name.to_owned(), why: why.into() });
    }

    /// CPUs and memory of one node, or of the nearest pair where a node has only one of them.
    fn node_by_node(&mut self) {
        let targets = nodes::Targets::from_machine(self.machine, &self.scope);
        for node in &targets.tried {
            self.offer_placement(&nodes::local_to(*node, self.machine, &self.scope));
        }
        for (first, others) in &targets.alike {
            let why = format!(
                "with more than {MOST_NODES} nodes, node {first} stands for all with the same CPUs, memory \
                 and distances"
            );
            self.leave_out(&format!("local to {}", node_names(others)), why);
        }
        if !targets.beyond.is_empty() {
            let why = format!("only the first {MOST_NODES} nodes that differ are tried one by one");
            self.leave_out(&format!("local to {}", node_names(&targets.beyond)), why);
        }
    }

    fn interleaved(&mut self) {
        let all = self.scope.memory_nodes.clone();
        if let Some(why) = self.one_memory_node() {
            self.leave_out("interleave", why);
            return;
        }
        self.offer_placement(&Placement::memory(PolicyMode::Interleave, all.clone()));
        // Where some memory has no CPUs (CXL, HBM), the nodes that have them are ordinary DRAM.
        let with_cpus: NodeSet = self.scope.cpus_of.keys().copied().collect();
        let with_cpus = all.intersection(&with_cpus);
        if with_cpus.len() > 1 && with_cpus != all {
            self.offer_placement(&Placement::memory(PolicyMode::Interleave, with_cpus));
        }
    }

    fn weighted(&mut self) {
        let name = "weighted interleave";
        let (major, minor) = PolicyMode::WeightedInterleave.since().unwrap_or((6, 9));
        if let Some(why) = self.one_memory_node() {
            self.leave_out(name, why);
            return;
        }
        match &self.machine.kernel {
            None => self.leave_out(name, "the kernel release is not known"),
            Some(kernel) if !kernel.is_at_least(major, minor) => {
                let release = nodewise_machine::printable::printable(kernel.text()).into_owned();
                self.leave_out(name, format!("needs Linux {major}.{minor} or newer: this is {release}"));
            }
            Some(_) if self.scope.memory_nodes.iter().any(|node| !self.scope.weights.contains_key(&node)) => {
                self.leave_out(name, "the kernel does not say the weights of its nodes");
            }
            Some(_) => {
                let all = self.scope.memory_nodes.clone();
                self.offer_placement(&Placement::memory(PolicyMode::WeightedInterleave, all));
            }
        }
    }

    /// A node preferred and not demanded; one node is enough to see whether that differs.
    fn preferred(&mut self) {
        let near: Vec<_> =
            self.scope.memory_nodes.iter().filter(|node| self.scope.cpus_of.contains_key(node)).collect();
        let Some(first) = near.first() else {
            self.leave_out("preferred", "no node has both CPUs and memory that may be used");
            return;
        };
        let on = |node| {
            let nodes = [node].into_iter().collect();
            Placement::memory(PolicyMode::Preferred, nodes).with_cpus(self.scope.cpus_of(node))
        };
        let (placement, count) = (on(*first), near.len());
        self.offer_placement(&placement);
        if count > 1 {
            let why = format!(
                "while a node has free memory this is the same as local to it; node {first} stands for all"
            );
            self.leave_out("preferred on the other nodes", why);
        }
    }

    fn compact_and_spread(&mut self) {
        let cores = cores::Cores::from_machine(self.machine, &self.scope);
        match cores.compact() {
            Ok(compact) => {
                let spread = cores.spread(compact.len());
                self.offer_cpus("compact", compact);
                self.offer_cpus("spread", spread);
            }
            Err(why) => {
                self.leave_out("compact", why);
                self.leave_out("spread", why);
            }
        }
        match cores.one_thread_each() {
            Some(cpus) => self.offer_cpus("one thread per core", cpus),
            None => self.leave_out("one thread per core", "no core has two CPUs that may be used"),
        }
    }

    /// Pages that stay where they are, where the kernel balances. It leaves the pages of a program
    /// with a policy of its own alone; to ask for local memory is to ask for what the default does in
    /// the first place. That is the model's rule (`nodewise_model::balancing`), seen on Linux 6.12.
    fn balancing(&mut self) {
        let name = "balancing off";
        match self.machine.settings.numa_balancing {
            // A kernel that was built without has nothing to switch off.
            None => {}
            Some(_) if self.scope.memory_nodes.len() < 2 => {}
            Some(0) => self.leave_out(name, "the system's setting is off: no program is balanced"),
            Some(_) => {
                let local = Placement::memory(PolicyMode::Local, NodeSet::new());
                self.offer(format!("{name}: {}", local.name(&self.scope)), &local);
            }
        }
    }

    fn offer_cpus(&mut self, role: &str, cpus: CpuSet) {
        let placement = Placement::on_cpus(cpus);
        self.offer(format!("{role}: {}", placement.name(&self.scope)), &placement);
    }

    fn huge_pages(&mut self) {
        let (on, off) = ("huge pages on", "huge pages off");
        let with = |huge: HugePages| Placement { huge: Some(huge), ..Placement::DEFAULT };
        let never = with(HugePages::NEVER);
        match self.machine.settings.transparent_hugepage.as_deref() {
            Some("always") => {
                self.offer(off.to_owned(), &never);
                self.leave_out(on, "the same as default here");
            }
            Some("madvise") => {
                self.offer(on.to_owned(), &with(HugePages::ALWAYS));
                self.offer(off.to_owned(), &never);
            }
            Some("never") => {
                let why = "the system's setting is never: no program gets them";
                self.leave_out(on, why);
                self.leave_out(off, why);
            }
            _ => {
                let why = "the kernel does not say whether it has transparent huge pages";
                self.leave_out(on, why);
                self.leave_out(off, why);
            }
        }
        let pool = with(HugePages::Pool);
        let name = pool.name(&self.scope);
        match HugePool::of_malloc(self.machine) {
            Some(_) => self.offer(name, &pool),
            None => self.leave_out(&name, "no pool has a free page"),
        }
    }

    /// Why nothing can be spread over nodes, where that is so.
    fn one_memory_node(&self) -> Option<String> {
        match self.scope.memory_nodes.len() {
            0 => Some("no node is known to have memory that may be used".to_owned()),
            1 => Some(format!(
                "needs two nodes with memory: this machine has only node {}",
                self.scope.memory_nodes
            )),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
