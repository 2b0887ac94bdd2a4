//! Machine to oddities: what is wrong or unusual about it.
//!
//! Only what can be seen in the finished [`Machine`] is judged here. What a source notices while it
//! reads (a file that does not parse, two files that disagree) it adds itself.

use std::collections::BTreeMap;

use crate::distance::LOCAL;
use crate::id::{CpuId, NodeId};
use crate::machine::Machine;
use crate::oddity::{Oddity, OddityKind};
use crate::plural::by_count;
use crate::set::{CpuSet, NodeSet};
use crate::size::HeldBack;
use crate::units::Bytes;

impl Machine {
    /// Looks for oddities and adds them to [`Machine::oddities`], after those that are there.
    pub fn check(&mut self) {
        let mut found = Vec::new();
        self.check_nodes(&mut found);
        self.check_cpus(&mut found);
        self.check_distances(&mut found);
        self.check_limits(&mut found);
        found.extend(self.memory_slots.oddities());
        self.oddities.extend(found);
    }

    fn check_nodes(&self, found: &mut Vec<Oddity>) {
        if self.nodes.is_empty() {
            let text =
                "no node is described: the kernel was built without NUMA, or these files do not hold it";
            found.push(Oddity::new(OddityKind::NoNodes, text));
            return;
        }
        let empty: NodeSet = self
            .nodes
            .values()
            .filter(|node| node.cpus.is_empty() && node.memory_total().is_some() && !node.has_memory())
            .filter(|node| node.generic_initiator != Some(true))
            .map(|node| node.id)
            .collect();
        if !empty.is_empty() {
            let text = format!("{} no CPUs and no memory", has(&empty));
            found.push(Oddity::new(OddityKind::NodeEmpty, text));
        }
        let missing = self.possible_nodes.difference(&self.node_ids());
        // Kernels reserve numbers for nodes that can be added; only a hole below the last node
        // that is there means that one went away.
        let holes: NodeSet = missing.iter().filter(|node| Some(*node) < self.node_ids().last()).collect();
        if !holes.is_empty() {
            let text = format!(
                "{} possible and {} not there",
                is(&holes),
                if holes.len() == 1 { "is" } else { "are" }
            );
            found.push(Oddity::new(OddityKind::NodeMissing, text));
        }
        let unknown = self.nodes_of_unknown_size();
        if !unknown.is_empty() {
            let text = format!("the memory size of {} is not known", names(&unknown));
            found.push(Oddity::new(OddityKind::MemoryUnknown, text));
        }
        let none = Bytes::new(0);
        let is_spread = self.nodes.keys().any(|node| self.uninitialised_of(*node) > none);
        if let Some(missing) = self.uncounted().filter(|_| !is_spread) {
            let text = format!(
                "/proc/meminfo counts {missing} more than the nodes: not initialised yet, and which node has them is \
                 not known"
            );
            found.push(Oddity::new(OddityKind::MemoryHeldBack, text));
        }
        let held = self.nodes.keys().filter_map(|node| Some((*node, self.held_back(*node)?)));
        found.extend(held.map(|(node, held)| Oddity::new(OddityKind::MemoryHeldBack, held_back(node, held))));
    }

    fn check_cpus(&self, found: &mut Vec<Oddity>) {
        let mut owners: BTreeMap<CpuId, NodeSet> = BTreeMap::new();
        for node in self.nodes.values() {
            for cpu in &node.cpus {
                owners.entry(cpu).or_default().insert(node.id);
            }
        }
        let mut shared: BTreeMap<&NodeSet, CpuSet> = BTreeMap::new();
        for (cpu, nodes) in owners.iter().filter(|(_, nodes)| nodes.len() > 1) {
            shared.entry(nodes).or_default().insert(*cpu);
        }
        for (nodes, cpus) in &shared {
            let text = format!("{} listed by {}", is_cpus(cpus), names(nodes));
            found.push(Oddity::new(OddityKind::CpuInSeveralNodes, text));
        }
        let online = self.online_cpus();
        let owned: CpuSet = owners.keys().copied().collect();
        let lost = online.difference(&owned);
        if !lost.is_empty() && !self.nodes.is_empty() {
            found.push(Oddity::new(OddityKind::CpuInNoNode, format!("{} in no node", is_cpus(&lost))));
        }
        let extra = owned.difference(&online);
        if !extra.is_empty() {
            found.push(Oddity::new(
                OddityKind::CpuNotOnline,
                format!("{} in a node but not online", is_cpus(&extra)),
            ));
        }
        let offline = self.cpu_ids().difference(&online);
        if !offline.is_empty() {
            found.push(Oddity::new(OddityKind::CpuOffline, format!("{} offline", is_cpus(&offline))));
        }
        self.check_nominal(found);
    }

    /// Nodes whose distances cannot mean anything: the kernel was asked to make them up, or all of
    /// them list the same CPUs, as emulated nodes do since Linux 6.12.
    fn check_nominal(&self, found: &mut Vec<Oddity>) {
        let mut sets = self.nodes.values().map(|node| &node.cpus);
        let first = sets.next().filter(|cpus| !cpus.is_empty());
        let asked = self
            .settings
            .command_line
            .as_deref()
            .is_some_and(|line| line.split_ascii_whitespace().any(|word| word.starts_with("numa=fake=")));
        if self.nodes.len() < 2 {
            return;
        }
        if first.is_some() && sets.all(|cpus| Some(cpus) == first) {
            let text = format!(
                "{} list the same CPUs, as emulated nodes do: their distances are nominal",
                names(&self.node_ids())
            );
            found.push(Oddity::new(OddityKind::Nominal, text));
        } else if asked {
            let text =
                "numa=fake= is on the kernel command line: nodes are emulated, their distances nominal";
            found.push(Oddity::new(OddityKind::Nominal, text));
        }
    }

    fn check_distances(&self, found: &mut Vec<Oddity>) {
        if self.nodes.len() > 1 && self.distances.is_empty() {
            found.push(Oddity::new(OddityKind::DistanceMissing, "no node has distances"));
            return;
        }
        let mut asymmetric = Pairs::default();
        let mut missing = Pairs::default();
        let mut local = Pairs::default();
        let mut invalid = Pairs::default();
        for (from, to) in self.nodes.keys().flat_map(|from| self.nodes.keys().map(move |to| (*from, *to))) {
            let Some(there) = self.distance(from, to) else {
                if self.nodes.len() > 1 || !self.distances.nodes().is_empty() {
                    missing.add(|| format!("the distance from node {from} to node {to} is missing"));
                }
                continue;
            };
            if there < LOCAL || from == to && there != LOCAL {
                invalid.add(|| format!("the distance from node {from} to node {to} is {there}"));
            } else if from != to && there == LOCAL {
                local.add(|| {
                    format!("the distance from node {from} to node {to} is 10, the value of a node to itself")
                });
            }
            if let Some(back) = self.distance(to, from).filter(|back| from < to && *back != there) {
                asymmetric.add(|| {
                    format!("the distance from node {from} to node {to} is {there}, and back {back}")
                });
            }
        }
        found.extend(asymmetric.oddity(OddityKind::DistanceAsymmetric));
        found.extend(missing.oddity(OddityKind::DistanceMissing));
        found.extend(local.oddity(OddityKind::DistanceLocalOffDiagonal));
        found.extend(invalid.oddity(OddityKind::DistanceInvalid));
    }

    fn check_limits(&self, found: &mut Vec<Oddity>) {
        let online = self.online_cpus();
        if let Some(allowed) = self.allowed_cpus.as_ref().filter(|allowed| !online.is_subset(allowed)) {
            let text = format!("this process may run on CPUs {} of {online}", allowed.intersection(&online));
            found.push(Oddity::new(OddityKind::Restricted, text));
        }
        let memory = self.nodes_with_memory();
        if let Some(allowed) = self.allowed_nodes.as_ref().filter(|allowed| !memory.is_subset(allowed)) {
            let nodes = node_names(&allowed.intersection(&memory));
            let text = format!("this process may use memory of {nodes} of {memory}");
            found.push(Oddity::new(OddityKind::Restricted, text));
        }
    }
}

/// How much of a node's memory programs do not get, and why.
fn held_back(node: NodeId, held: HeldBack) -> String {
    let HeldBack { present, managed, uninitialised } = held;
    let kept = Bytes::new(present.get().saturating_sub(managed.get()));
    if uninitialised > Bytes::new(0) {
        format!(
            "node {node} manages {managed} of {present}: {uninitialised} are not initialised yet, so \
             /proc/meminfo counts them and the node does not"
        )
    } else {
        format!(
            "node {node} manages {managed} of {present} present: {kept} are reserved at boot, taken by a \
             balloon, or not online yet"
        )
    }
}

/// Pairs of nodes with the same trouble: the first is reported, the rest are counted.
#[derive(Default)]
struct Pairs {
    first: Option<String>,
    others: usize,
}

impl Pairs {
    fn add(&mut self, text: impl FnOnce() -> String) {
        if self.first.is_some() {
            self.others += 1;
        } else {
            self.first = Some(text());
        }
    }

    fn oddity(self, kind: OddityKind) -> Option<Oddity> {
        let text = match self.others {
            0 => self.first?,
            1 => format!("{}; so is one other pair", self.first?),
            others => format!("{}; so are {others} other pairs", self.first?),
        };
        Some(Oddity::new(kind, text))
    }
}

fn names(nodes: &NodeSet) -> String {
    format!("{} {nodes}", by_count(&nodes.len(), "node", "nodes"))
}

fn has(nodes: &NodeSet) -> String {
    format!("{} {}", names(nodes), by_count(&nodes.len(), "has", "have"))
}

fn is(nodes: &NodeSet) -> String {
    format!("{} {}", names(nodes), by_count(&nodes.len(), "is", "are"))
}

fn is_cpus(cpus: &CpuSet) -> String {
    let count = &cpus.len();
    format!("{} {cpus} {}", by_count(count, "CPU", "CPUs"), by_count(count, "is", "are"))
}

/// The ids of nodes as people read them in a sentence: `node 3`, `nodes 0-2`.
pub fn node_names(nodes: impl IntoIterator<Item = NodeId>) -> String {
    names(&nodes.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;

    fn check(spec: &str, change: impl FnOnce(&mut Machine), expected: &[(OddityKind, &str)]) {
        let mut machine = spec::machine(spec).unwrap();
        machine.oddities.clear();
        change(&mut machine);
        machine.check();
        let found: Vec<(OddityKind, &str)> =
            machine.oddities.iter().map(|oddity| (oddity.kind, oddity.text.as_str())).collect();
        assert_eq!(found, expected);
    }

    fn n(number: u32) -> NodeId {
        NodeId::new(number)
    }

    #[test]
    fn a_plain_machine_has_none() {
        check("4x(12c2t 128G)", |_| (), &[]);
        check("(2c 1G)", |_| (), &[]);
        check("(4c 1G) 7x(1G)", |_| (), &[]);
    }

    #[test]
    fn distances_are_judged_pair_by_pair() {
        check(
            "3x(1c 1G); dist=10,21,20/13,10,10/20,20,11",
            |machine| {
                machine.distances = {
                    let mut matrix = crate::NodeMatrix::new(machine.nodes.keys().copied());
                    for (from, to, distance) in
                        machine.distances.iter().filter(|(from, to, _)| (*from, *to) != (n(2), n(0)))
                    {
                        matrix.set(from, to, *distance);
                    }
                    matrix
                }
            },
            &[
                (
                    OddityKind::DistanceAsymmetric,
                    "the distance from node 0 to node 1 is 21, and back 13; so is one other pair",
                ),
                (OddityKind::DistanceMissing, "the distance from node 2 to node 0 is missing"),
                (
                    OddityKind::DistanceLocalOffDiagonal,
                    "the distance from node 1 to node 2 is 10, the value of a node to itself",
                ),
                (OddityKind::DistanceInvalid, "the distance from node 2 to node 2 is 11"),
            ],
        );
        check(
            "2x(1c 1G)",
            |machine| machine.distances = crate::NodeMatrix::default(),
            &[(OddityKind::DistanceMissing, "no node has distances")],
        );
    }

    #[test]
    fn cpus_belong_to_one_node() {
        check(
            "2x(2c 1G)",
            |machine| {
                machine.nodes.get_mut(&n(0)).unwrap().cpus = CpuSet::from([0, 9]);
                machine.nodes.get_mut(&n(1)).unwrap().cpus = CpuSet::from([0, 2]);
                machine.cpus.get_mut(&CpuId::new(2)).unwrap().online = false;
            },
            &[
                (OddityKind::CpuInSeveralNodes, "CPU 0 is listed by nodes 0-1"),
                (OddityKind::CpuInNoNode, "CPUs 1,3 are in no node"),
                (OddityKind::CpuNotOnline, "CPUs 2,9 are in a node but not online"),
                (OddityKind::CpuOffline, "CPU 2 is offline"),
            ],
        );
    }

    #[test]
    fn emulated_nodes_are_called_nominal() {
        check(
            "2x(2c 1G)",
            |machine| machine.nodes.values_mut().for_each(|node| node.cpus = CpuSet::from([0, 1, 2, 3])),
            &[
                (OddityKind::CpuInSeveralNodes, "CPUs 0-3 are listed by nodes 0-1"),
                (
                    OddityKind::Nominal,
                    "nodes 0-1 list the same CPUs, as emulated nodes do: their distances are nominal",
                ),
            ],
        );
    }

    #[test]
    fn nodes_can_be_empty_missing_or_of_unknown_size() {
        check(
            "2x(1c 1G) (1G)",
            |machine| {
                machine.nodes.get_mut(&n(2)).unwrap().meminfo[0].value =
                    crate::MeminfoValue::Size(Bytes::new(0));
                machine.nodes.get_mut(&n(1)).unwrap().meminfo.clear();
                machine.nodes.remove(&n(0));
                machine.cpus.remove(&CpuId::new(0));
                machine.distances = crate::NodeMatrix::new([n(1), n(2)]);
                for (from, to) in [(1, 1), (2, 2), (1, 2), (2, 1)] {
                    machine.distances.set(n(from), n(to), if from == to { 10 } else { 20 });
                }
            },
            &[
                (OddityKind::NodeEmpty, "node 2 has no CPUs and no memory"),
                (OddityKind::NodeMissing, "node 0 is possible and is not there"),
                (OddityKind::MemoryUnknown, "the memory size of node 1 is not known"),
            ],
        );
    }

    #[test]
    fn a_node_that_lags_behind_the_system_is_named() {
        check(
            "(2c 17100M)",
            |machine| {
                machine.system_memory = Some(Bytes::from_mib(24064));
                machine.nodes.get_mut(&n(0)).unwrap().present = Some(Bytes::from_gib(24));
            },
            &[(
                OddityKind::MemoryHeldBack,
                "node 0 manages 16.7 GiB of 24 GiB: 6.8 GiB are not initialised yet, so /proc/meminfo counts them \
                 and the node does not",
            )],
        );
        check(
            "(2c 8G)",
            |machine| machine.nodes.get_mut(&n(0)).unwrap().present = Some(Bytes::from_gib(24)),
            &[(
                OddityKind::MemoryHeldBack,
                "node 0 manages 8 GiB of 24 GiB present: 16 GiB are reserved at boot, taken by a balloon, or not \
                 online yet",
            )],
        );
    }

    #[test]
    fn a_cpuset_is_told() {
        check(
            "2x(2c 1G)",
            |machine| {
                machine.allowed_cpus = Some(CpuSet::from([1]));
                machine.allowed_nodes = Some(NodeSet::from([1]));
            },
            &[
                (OddityKind::Restricted, "this process may run on CPUs 1 of 0-3"),
                (OddityKind::Restricted, "this process may use memory of node 1 of 0-1"),
            ],
        );
    }
}
