//! How two CPUs are related, and which CPUs stand for all of a large machine.

use nodewise_machine::{CpuId, CpuSet, Machine};

/// The nearest thing that two CPUs have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// They are threads of one core.
    Sibling,
    /// They share a cluster: a part of a package with something of its own, such as an L2 cache.
    Cluster,
    /// They share the last-level cache.
    Cache,
    /// They belong to one node.
    Node,
    /// They are in one package.
    Package,
    /// They have nothing in common that is known.
    Machine,
}

impl Relation {
    /// All of them, nearest first.
    pub const ALL: [Self; 6] =
        [Self::Sibling, Self::Cluster, Self::Cache, Self::Node, Self::Package, Self::Machine];

    /// In words: what is true of the two.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Sibling => "same core (SMT siblings)",
            Self::Cluster => "same cluster",
            Self::Cache => "same last-level cache",
            Self::Node => "same node",
            Self::Package => "same package, other node",
            Self::Machine => "other package",
        }
    }

    /// A short name, for data.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sibling => "core",
            Self::Cluster => "cluster",
            Self::Cache => "cache",
            Self::Node => "node",
            Self::Package => "package",
            Self::Machine => "machine",
        }
    }
}

/// How two CPUs of a machine are related. What the kernel does not say is not shared.
pub fn relation(machine: &Machine, one: CpuId, other: CpuId) -> Relation {
    let (Some(a), Some(b)) = (machine.cpus.get(&one), machine.cpus.get(&other)) else {
        return Relation::Machine;
    };
    let same_package = a.package.is_some() && a.package == b.package;
    let same_cluster = same_package && a.cluster.is_some() && a.cluster == b.cluster;
    // Without clusters the kernel gives every core, or the whole package, one of its own.
    let is_part = |of: &CpuSet| of.len() > a.siblings.len().max(1);
    let cluster: CpuSet = machine
        .cpus
        .values()
        .filter(|cpu| cpu.package == a.package && cpu.cluster == a.cluster)
        .map(|cpu| cpu.id)
        .collect();
    let of_cache = |cache: &nodewise_machine::Cache| cache.cpus.contains(one) && cache.cpus.contains(other);
    let cached = machine.last_level_caches().find(|cache| of_cache(cache));
    if a.siblings.contains(other) {
        Relation::Sibling
    } else if same_cluster && is_part(&cluster) && cached.is_none_or(|cache| cluster.len() < cache.cpus.len())
    {
        Relation::Cluster
    } else if cached.is_some() {
        Relation::Cache
    } else if a.node.is_some() && a.node == b.node {
        Relation::Node
    } else if same_package {
        Relation::Package
    } else {
        Relation::Machine
    }
}

/// At most this many CPUs of a set, with pairs for every kind of relation: the CPUs of the first
/// core, then one of each core, spread over all.
pub fn representatives(machine: &Machine, cpus: &CpuSet, most: usize) -> CpuSet {
    if cpus.len() <= most {
        return cpus.clone();
    }
    let first_of_core = |cpu: &CpuId| {
        let siblings = machine.cpus.get(cpu).map(|cpu| cpu.siblings.intersection(cpus));
        siblings.and_then(|siblings| siblings.first()).is_none_or(|first| first == *cpu)
    };
    let cores: Vec<CpuId> = cpus.iter().filter(first_of_core).collect();
    let first = cores.first().and_then(|cpu| machine.cpus.get(cpu));
    let mut chosen: CpuSet = first.map(|cpu| cpu.siblings.intersection(cpus)).unwrap_or_default();
    // The first two cores are neighbours; the others are spread evenly.
    chosen.extend(cores.iter().copied().take(2));
    let left = most.saturating_sub(chosen.len()).max(1);
    let step = cores.len().div_ceil(left).max(1);
    chosen.extend(cores.iter().copied().step_by(step));
    chosen.iter().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    fn check(text: &str, one: u32, other: u32, expected: Relation) {
        let machine = spec::machine(text).unwrap();
        let found = relation(&machine, CpuId::new(one), CpuId::new(other));
        assert_eq!(found, expected, "{text}: {one} and {other}");
        assert_eq!(relation(&machine, CpuId::new(other), CpuId::new(one)), expected, "the other way");
    }

    #[test]
    fn two_cpus_share_the_nearest_thing_they_have_in_common() {
        let text = "2x(4c2t 8G l3=16M/4c)";
        let machine = spec::machine(text).unwrap();
        let sibling = machine.cpus[&CpuId::new(0)].siblings.iter().find(|cpu| cpu.number() != 0).unwrap();
        check(text, 0, sibling.number(), Relation::Sibling);
        let cpus: Vec<u32> = machine.cpus.keys().map(|cpu| cpu.number()).collect();
        let far =
            cpus.iter().find(|cpu| machine.node_of(CpuId::new(**cpu)).is_some_and(|node| node.number() == 1));
        check(text, 0, *far.unwrap(), Relation::Machine);
        let near = cpus.iter().find(|cpu| {
            let cpu = CpuId::new(**cpu);
            machine.node_of(cpu) == machine.node_of(CpuId::new(0))
                && !machine.cpus[&CpuId::new(0)].siblings.contains(cpu)
        });
        check(text, 0, *near.unwrap(), Relation::Cache);
    }

    #[test]
    fn a_cpu_that_is_not_known_shares_nothing() {
        check("(2c 4G)", 0, 900, Relation::Machine);
    }

    #[test]
    fn representatives_have_siblings_and_neighbours_and_reach_every_node() {
        let machine = spec::machine("4x(16c2t 8G l3=16M/16c)").unwrap();
        let all = machine.cpu_ids();
        for most in [6, 8, 16, 32] {
            let chosen = representatives(&machine, &all, most);
            assert!(chosen.len() <= most, "{most}: {chosen}");
            let relations: std::collections::BTreeSet<Relation> = chosen
                .iter()
                .flat_map(|one| chosen.iter().map(move |other| (one, other)))
                .filter(|(one, other)| one != other)
                .map(|(one, other)| relation(&machine, one, other))
                .collect();
            assert!(relations.contains(&Relation::Sibling), "{most}: {chosen}");
            assert!(relations.contains(&Relation::Cache), "{most}: {chosen}");
            assert!(relations.contains(&Relation::Machine), "{most}: {chosen}");
        }
        assert_eq!(representatives(&machine, &all, 500), all);
    }
}
