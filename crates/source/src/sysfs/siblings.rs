//! Comparison of the statements that files of CPUs make about one another.
//!
//! Each CPU lists the threads of its core and the CPUs of its cluster, die and package, as a mask and as a list,
//! under an old and a new name, beside the numbers of these. The kernel makes all of them from one table, so
//! that in a capture one that differs was damaged or put in by hand. A CPU that is offline has no topology, and
//! is in no one's.

use std::collections::BTreeMap;

use nodewise_machine::{Cpu, CpuId, CpuSet, Machine, OddityKind};

use super::nodes::cpu_names;
use super::{Reader, cpus};

/// CPUs that belong together.
struct Group {
    /// Files that list them: under their name before Linux 5.3, and as it is since.
    files: &'static [&'static str],
    /// The file of their number; empty where numbers repeat in other groups.
    number: &'static str,
    /// Their number and all that it repeats in; `None` when it is not known.
    key: fn(&Cpu) -> Option<(u32, u32)>,
}

/// # Source
/// `Documentation/admin-guide/cputopology.rst`.
const GROUPS: [Group; 4] = [
    Group {
        files: &["thread_siblings_list", "thread_siblings", "core_cpus_list", "core_cpus"],
        number: "",
        key: |_| None,
    },
    Group {
        files: &["cluster_cpus_list", "cluster_cpus"],
        number: "cluster_id",
        key: |cpu| Some((cpu.package?.number(), cpu.cluster?.number())),
    },
    Group {
        files: &["die_cpus_list", "die_cpus"],
        number: "die_id",
        key: |cpu| Some((cpu.package?.number(), cpu.die?.number())),
    },
    Group {
        files: &["core_siblings_list", "core_siblings", "package_cpus_list", "package_cpus"],
        number: "physical_package_id",
        key: |cpu| Some((0, cpu.package?.number())),
    },
];

/// Notes what does not agree.
pub(super) fn compare(reader: &mut Reader<'_>, machine: &Machine) {
    let online = machine.online_cpus();
    for group in &GROUPS {
        let mut listed: BTreeMap<CpuId, CpuSet> = BTreeMap::new();
        for cpu in &online {
            let root = format!("{}/topology", cpus::folder(cpu));
            if let Some(cpus) = reader.agreeing_cpus(&root, group.files, Some(&online)) {
                listed.insert(cpu, cpus);
            }
        }
        compare_with_one_another(reader, group, &listed);
        compare_with_number(reader, machine, group, &listed);
    }
}

/// The file that a CPU's group was read from.
fn file_of(reader: &Reader<'_>, group: &Group, cpu: CpuId) -> String {
    let path = |name: &&str| format!("{}/topology/{name}", cpus::folder(cpu));
    group.files.iter().map(path).find(|path| reader.exists(path)).unwrap_or_default()
}

/// Whoever a CPU lists must list the same CPUs.
fn compare_with_one_another(reader: &mut Reader<'_>, group: &Group, listed: &BTreeMap<CpuId, CpuSet>) {
    for (cpu, cpus) in listed {
        let others = || cpus.iter().filter_map(|other| Some((other, listed.get(&other)?)));
        let Some((other, theirs)) = others().find(|(_, theirs)| *theirs != cpus) else { continue };
        // Said once for two CPUs that list each other.
        if other < *cpu && theirs.contains(*cpu) {
            continue;
        }
        let path = file_of(reader, group, *cpu);
        let text = format!(
            "it names {}, but {} names {}",
            cpu_names(cpus),
            file_of(reader, group, other),
            cpu_names(theirs)
        );
        reader.note_in(OddityKind::Disagreement, &path, text);
    }
}

/// A CPU without a number is listed by none that has one.
fn note_without_number(
    reader: &mut Reader<'_>,
    group: &Group,
    listed: &BTreeMap<CpuId, CpuSet>,
    key_of: &dyn Fn(CpuId) -> Option<(u32, u32)>,
) {
    for (cpu, cpus) in listed.iter().filter(|(cpu, _)| key_of(**cpu).is_none()) {
        let path = format!("{}/topology/{}", cpus::folder(*cpu), group.number);
        let with = cpus.iter().find(|other| key_of(*other).is_some());
        // Without the file there is another note.
        let Some(with) = with.filter(|_| reader.exists(&path)) else { continue };
        let text = format!("it says that the number is not known, but CPU {with} of the same group has one");
        reader.note_in(OddityKind::Disagreement, &path, text);
    }
}

/// CPUs of one group have one number, and no others have it.
fn compare_with_number(
    reader: &mut Reader<'_>,
    machine: &Machine,
    group: &Group,
    listed: &BTreeMap<CpuId, CpuSet>,
) {
    let mut numbered: BTreeMap<(u32, u32), CpuSet> = BTreeMap::new();
    let key_of = |cpu: CpuId| machine.cpus.get(&cpu).and_then(group.key);
    for cpu in listed.keys() {
        if let Some(key) = key_of(*cpu) {
            numbered.entry(key).or_default().insert(*cpu);
        }
    }
    note_without_number(reader, group, listed, &key_of);
    let known: CpuSet = numbered.values().fold(CpuSet::new(), |all, cpus| all.union(cpus));
    let mut noted = CpuSet::new();
    for (cpu, cpus) in listed {
        let Some(same) = key_of(*cpu).and_then(|key| numbered.get(&key)) else { continue };
        let cpus = cpus.intersection(&known);
        let differing = cpus.difference(same).union(&same.difference(&cpus));
        // A CPU with a wrong number differs from all others, which is said once.
        if differing.is_subset(&noted) {
            continue;
        }
        noted.extend(&differing);
        let path = format!("{}/topology/{}", cpus::folder(*cpu), group.number);
        let text = format!(
            "{} by this number are not those that {} names: they differ by {}",
            cpu_names(same),
            file_of(reader, group, *cpu),
            cpu_names(&differing)
        );
        reader.note_in(OddityKind::Disagreement, &path, text);
    }
}
