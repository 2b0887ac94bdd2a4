//! How many CPUs each node gets, and how they are grouped.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::check::node_names;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{NodeId, PackageId};

use super::MOST_CPUS;
use super::parts::Part;

/// How a guest's CPUs are grouped: the same everywhere, which is all that QEMU's `-smp` can say.
///
/// CPU numbers run over the threads of a core first, then over cores, dies and packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Packages (sockets).
    pub packages: u32,
    /// Dies per package; each has a last-level cache of its own.
    pub dies: u32,
    /// Cores per die.
    pub cores: u32,
    /// Threads per core.
    pub threads: u32,
}

impl Shape {
    /// All CPUs together.
    pub const fn cpus(self) -> u32 {
        self.packages * self.dies * self.cores * self.threads
    }
}

/// The CPUs of each node, and their grouping.
pub(super) fn share(parts: &[Part], limit: u32, notes: &mut Vec<String>) -> (Vec<u32>, Shape) {
    let threads: BTreeSet<u32> = parts.iter().flat_map(|part| part.threads.iter().copied()).collect_set();
    let alike = common(threads.iter().copied()).unwrap_or(1);
    let (counts, kept) = scale(parts, limit.min(MOST_CPUS), alike);
    note_counts(parts, &counts, notes);
    let (shape, lost) = group(parts, &counts, kept);
    if threads.last().is_some_and(|most| *most > shape.threads) {
        notes.push(format!("threads are not kept: each of the guest's cores has {}", shape.threads));
    }
    notes.extend(lost.map(|lost| format!("packages are not kept: {lost}")));
    (counts, shape)
}

/// The one value that all of them have; `None` when they differ or there are none.
fn common<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

/// CPUs per node within a limit, and the threads per core that these counts allow.
///
/// Every node that has CPUs gets one; what is left of the limit is given out in proportion, rounded
/// down for all alike: nodes that are equal stay equal, which keeps the grouping.
fn scale(parts: &[Part], limit: u32, threads: u32) -> (Vec<u32>, u32) {
    let total: u64 = parts.iter().map(|part| u64::from(part.cpus)).sum();
    let nodes = parts.iter().filter(|part| part.cpus > 0).count() as u64;
    let left = u64::from(limit).saturating_sub(nodes);
    if total <= u64::from(limit) {
        return (parts.iter().map(|part| part.cpus).collect(), threads);
    }
    let share = |cpus: u32| match cpus {
        0 => 0,
        // The quotient is at most `left`; the divisor is 0 only when every node has one CPU.
        _ => 1 + (u64::from(cpus - 1) * left / (total - nodes).max(1)) as u32,
    };
    let shares: Vec<u32> = parts.iter().map(|part| share(part.cpus)).collect();
    if shares.iter().any(|share| (1..threads).contains(share)) {
        return (shares, 1);
    }
    (shares.into_iter().map(|share| share - share % threads).collect(), threads)
}

/// The grouping that keeps most of the machine's, and what it loses of its packages.
fn group(parts: &[Part], counts: &[u32], threads: u32) -> (Shape, Option<&'static str>) {
    let packages: BTreeSet<PackageId> =
        parts.iter().flat_map(|part| part.packages.iter().copied()).collect_set();
    let known = packages.len() > 1;
    let with_cpus: Vec<&Part> = parts.iter().filter(|part| part.cpus > 0).collect();
    let nodes = with_cpus.len() as u32;
    let Some(count) = common(counts.iter().copied().filter(|count| *count > 0)) else {
        let shape = Shape { packages: 1, dies: 1, cores: counts.iter().sum(), threads: 1 };
        return (shape, known.then_some("the guest's CPUs are cores of one"));
    };
    // CPUs per node are either those of the machine or a multiple of `threads`, but a machine of
    // odd counts need not be one.
    let threads = if count % threads == 0 { threads } else { 1 };
    let of_packages = |packages: u32, dies: u32| {
        let (per_package, rest) = (nodes * count / packages / dies, nodes * count % (packages * dies));
        let fits = rest == 0 && per_package % threads == 0;
        fits.then_some(Shape { packages, dies, cores: per_package / threads, threads })
    };
    match packages_and_dies(&with_cpus).and_then(|(packages, dies)| of_packages(packages, dies)) {
        Some(shape) => (shape, None),
        None => {
            let shape = Shape { packages: nodes, dies: 1, cores: count / threads, threads };
            (shape, known.then_some("each node with CPUs is one here"))
        }
    }
}

/// How many packages the nodes have, and how many nodes each of these, when all are alike. `None`:
/// they are not, or nothing is known.
fn packages_and_dies(with_cpus: &[&Part]) -> Option<(u32, u32)> {
    let nodes = with_cpus.len() as u32;
    match common(with_cpus.iter().map(|part| part.packages.len() as u32))? {
        0 => None,
        1 => {
            let per_package = nodes_per_package(with_cpus)?;
            Some((nodes / per_package, per_package))
        }
        per_node => {
            let all: BTreeSet<PackageId> =
                with_cpus.iter().flat_map(|part| part.packages.iter().copied()).collect_set();
            (all.len() as u32 == nodes * per_node).then_some((nodes * per_node, 1))
        }
    }
}

/// How many nodes each package has, when all have as many and no package is torn apart by the order
/// of the nodes.
fn nodes_per_package(with_cpus: &[&Part]) -> Option<u32> {
    let runs: Vec<(PackageId, u32)> = with_cpus
        .chunk_by(|a, b| a.packages == b.packages)
        .filter_map(|run| Some((*run.first()?.packages.first()?, run.len() as u32)))
        .collect();
    let distinct: BTreeSet<PackageId> = runs.iter().map(|(package, _)| *package).collect_set();
    if distinct.len() < runs.len() {
        return None;
    }
    common(runs.iter().map(|(_, nodes)| *nodes))
}

fn note_counts(parts: &[Part], counts: &[u32], notes: &mut Vec<String>) {
    let mut changed: BTreeMap<(u32, u32), Vec<NodeId>> = BTreeMap::new();
    for (part, count) in parts.iter().zip(counts).filter(|(part, count)| part.cpus != **count) {
        changed.entry((part.cpus, *count)).or_default().push(part.node);
    }
    for ((before, here), nodes) in changed.iter().rev() {
        let has = if nodes.len() == 1 { "has" } else { "have" };
        let cpus = if *here == 1 { "CPU" } else { "CPUs" };
        let each = if nodes.len() == 1 { "" } else { " each" };
        let names = node_names(nodes.iter().copied());
        notes.push(format!("{names} {has} {here} {cpus}{each} here instead of {before}"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts;
    use super::*;
    use nodewise_machine::spec;

    fn check(spec: &str, limit: u32, counts: &[u32], shape: [u32; 4], notes: &[&str]) {
        let machine = spec::machine(spec).unwrap();
        let mut said = Vec::new();
        let parts = parts::guest_nodes(&machine, &mut said);
        let (found, grouped) = share(&parts, limit, &mut said);
        assert_eq!(found, counts, "{spec}");
        let [packages, dies, cores, threads] = shape;
        assert_eq!(grouped, Shape { packages, dies, cores, threads }, "{spec}");
        assert_eq!(said, notes, "{spec}");
    }

    #[test]
    fn packages_dies_and_threads_are_kept_where_nodes_are_alike() {
        check("2x(2x(2c2t 1G))", 16, &[4, 4, 4, 4], [2, 2, 2, 2], &[]);
        check("2x(10c2t 64G)", 8, &[4, 4], [2, 1, 2, 2], &["nodes 0-1 have 4 CPUs each here instead of 20"]);
        check("(2p4c 1G)", 8, &[8], [2, 1, 4, 1], &[]);
    }

    #[test]
    fn threads_are_given_up_where_a_node_has_fewer_cpus_than_a_core() {
        check(
            "8x(4c2t 1G)",
            8,
            &[1; 8],
            [8, 1, 1, 1],
            &[
                "nodes 0-7 have 1 CPU each here instead of 8",
                "threads are not kept: each of the guest's cores has 1",
            ],
        );
    }

    #[test]
    fn threads_are_given_up_where_cores_differ() {
        check(
            "(2c2t 1G) (4c 1G)",
            8,
            &[4, 4],
            [2, 1, 4, 1],
            &["threads are not kept: each of the guest's cores has 1"],
        );
    }

    #[test]
    fn nodes_that_differ_share_one_package() {
        check(
            "(4c 1G) (2c 1G)",
            8,
            &[4, 2],
            [1, 1, 6, 1],
            &["packages are not kept: the guest's CPUs are cores of one"],
        );
    }

    #[test]
    fn packages_that_nodes_tear_apart_become_one_per_node() {
        let mut machine = spec::machine("4x(2c2t 1G)").unwrap();
        for cpu in machine.cpus.values_mut() {
            cpu.package = cpu.node.map(|node| PackageId::new(node.number() % 2));
        }
        let mut notes = Vec::new();
        let parts = parts::guest_nodes(&machine, &mut notes);
        let (counts, shape) = share(&parts, 8, &mut notes);
        assert_eq!(counts, [2; 4]);
        assert_eq!(shape, Shape { packages: 4, dies: 1, cores: 1, threads: 2 });
        assert_eq!(
            notes,
            [
                "nodes 0-3 have 2 CPUs each here instead of 4",
                "packages are not kept: each node with CPUs is one here"
            ]
        );
        check(
            "2x(4p6c 1G)",
            4,
            &[2, 2],
            [2, 1, 2, 1],
            &[
                "nodes 0-1 have 2 CPUs each here instead of 24",
                "packages are not kept: each node with CPUs is one here",
            ],
        );
    }

    #[test]
    fn every_node_with_cpus_keeps_one() {
        check(
            "(100c 1G) (1c 1G) (1G)",
            4,
            &[3, 1, 0],
            [1, 1, 4, 1],
            &[
                "node 0 has 3 CPUs here instead of 100",
                "packages are not kept: the guest's CPUs are cores of one",
            ],
        );
        check("3x(2c 1G)", 0, &[1, 1, 1], [3, 1, 1, 1], &["nodes 0-2 have 1 CPU each here instead of 2"]);
    }

    #[test]
    fn no_guest_has_more_cpus_than_qemu_can_number() {
        check(
            "4x(128c 1G)",
            1000,
            &[63; 4],
            [4, 1, 63, 1],
            &["nodes 0-3 have 63 CPUs each here instead of 128"],
        );
    }
}
