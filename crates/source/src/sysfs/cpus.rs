//! CPUs: which there are, and how they are grouped.

use nodewise_machine::{ClusterId, CoreId, Cpu, CpuId, CpuSet, DieId, Machine, OddityKind, PackageId};

use super::nodes::cpu_names;
use super::{Reader, packages};
use crate::parse::{ParseError, number};

pub(super) const ROOT: &str = "/sys/devices/system/cpu";

/// How the kernel prints that there is no cluster: x86 keeps it in 16 bits and prints all ones.
const NO_CLUSTER: u32 = 0xffff;

/// Fills the CPUs. Which node each is in comes from the nodes, which must be there already.
pub(super) fn read(reader: &mut Reader<'_>, machine: &mut Machine) {
    if !reader.is_quick() {
        machine.possible_cpus = reader.cpu_list(&format!("{ROOT}/possible")).unwrap_or_default();
    }
    let present = present(reader);
    let online = online(reader, &present);
    for id in &present.union(&online) {
        let mut cpu = Cpu::new(id);
        cpu.online = online.contains(id);
        machine.cpus.insert(id, cpu);
    }
    // Ascending, and the first claim stays: the lowest node where several claim a CPU.
    for node in machine.nodes.values() {
        for cpu in &node.cpus {
            if let Some(cpu) = machine.cpus.get_mut(&cpu) {
                cpu.node.get_or_insert(node.id);
            }
        }
    }
    if reader.wants_only_nodes() {
        return;
    }
    let known = machine.cpu_ids();
    for id in &online {
        read_topology(reader, machine, id, &known);
    }
    if !reader.trusts_files() {
        // An offline CPU has no topology. Where one has it, the list of online CPUs is damaged, and which files the
        // kernel gives is known from it, too.
        for id in &machine.cpu_ids().difference(&online) {
            reader.count_files(&format!("{}/topology", folder(id)));
        }
        compare_threads(reader, machine);
        compare_lists(reader, machine, &present, &online);
    }
}

/// The CPUs that are online are among those that exist, and these among those that are possible.
fn compare_lists(reader: &mut Reader<'_>, machine: &Machine, present: &CpuSet, online: &CpuSet) {
    let possible = &machine.possible_cpus;
    // A list of present CPUs that is damaged itself may hide what the list of online CPUs shows.
    let (inner, some) = if present.is_subset(possible) { ("online", online) } else { ("present", present) };
    let lists = [("present", "online", present, online), ("possible", inner, possible, some)];
    for (outer, inner, all, some) in lists {
        let path = format!("{ROOT}/{outer}");
        let extra = some.difference(all);
        if !extra.is_empty() && reader.exists(&path) {
            let text = format!("it does not name {}, though {inner} does", cpu_names(&extra));
            reader.note_in(OddityKind::Disagreement, &path, text);
        }
    }
}

/// Compares what the threads of each core say: they are in the same core and package.
fn compare_threads(reader: &mut Reader<'_>, machine: &Machine) {
    for cpu in machine.cpus.values() {
        let first = cpu.siblings.first().and_then(|first| machine.cpus.get(&first));
        let Some(first) = first.filter(|first| first.siblings.contains(cpu.id)) else { continue };
        let differs = |a: Option<u32>, b: Option<u32>| a.zip(b).is_some_and(|(a, b)| a != b);
        let core = differs(cpu.core.map(CoreId::number), first.core.map(CoreId::number));
        let package = differs(cpu.package.map(PackageId::number), first.package.map(PackageId::number));
        if core || package {
            let text = format!(
                "CPUs {} and {} are threads of one core, but their core or package differs",
                first.id, cpu.id
            );
            reader.note_in(OddityKind::Disagreement, &format!("{}/topology", folder(cpu.id)), text);
        }
    }
}

/// The CPUs that exist: the kernel's list, else their folders.
fn present(reader: &mut Reader<'_>) -> CpuSet {
    let path = format!("{ROOT}/present");
    let listed = reader.cpu_list(&path);
    if let Some(listed) = &listed {
        if reader.trusts_files() {
            return listed.clone();
        }
    }
    let folders = reader.cpu_entries(ROOT);
    let Some(listed) = listed else { return folders };
    let unnamed = folders.difference(&listed);
    if !unnamed.is_empty() {
        let text = format!("it does not name {}, though there is a folder", cpu_names(&unnamed));
        reader.note_in(OddityKind::Disagreement, &path, text);
    }
    listed
}

/// The CPUs that are online: the kernel's list, else what each CPU's own switch says. A CPU without
/// a switch cannot be put offline.
fn online(reader: &mut Reader<'_>, present: &CpuSet) -> CpuSet {
    let listed = reader.cpu_list(&format!("{ROOT}/online"));
    if let Some(listed) = &listed {
        if reader.trusts_files() {
            return listed.clone();
        }
    }
    let mut switched_off = CpuSet::new();
    for id in present {
        let path = format!("{}/online", folder(id));
        if reader.value(&path, number::switch) == Some(false) {
            switched_off.insert(id);
        }
    }
    let Some(listed) = listed else { return present.difference(&switched_off) };
    let both = listed.intersection(&switched_off);
    if !both.is_empty() {
        let path = format!("{ROOT}/online");
        let text = format!("it names {}, switched off in the CPU's own folder", cpu_names(&both));
        reader.note_in(OddityKind::Disagreement, &path, text);
    }
    listed
}

/// The folder of a CPU.
pub(super) fn folder(id: CpuId) -> String {
    format!("{ROOT}/cpu{id}")
}

/// Reads one CPU's place. On the running system a core is read once for all its threads, and a
/// package once for all its cores.
fn read_topology(reader: &mut Reader<'_>, machine: &mut Machine, id: CpuId, known: &CpuSet) {
    let root = format!("{}/topology", folder(id));
    let share = reader.trusts_files();
    let Some(cpu) = machine.cpus.get(&id) else { return };
    let (core_done, package_done) = (!cpu.siblings.is_empty(), cpu.package.is_some());
    if !(share && core_done) {
        let siblings = read_siblings(reader, &root, id, known);
        // Siblings say which CPUs share a core; its number is for whoever wants everything.
        let core = if reader.is_quick() {
            None
        } else {
            reader.value(&format!("{root}/core_id"), id_or_unknown).flatten().map(CoreId::new)
        };
        for_each(machine, id, share.then_some(&siblings), |cpu| {
            cpu.core = core;
            cpu.siblings = siblings.clone();
        });
    }
    if !(share && package_done) {
        let package = reader.value(&format!("{root}/physical_package_id"), id_or_unknown).flatten();
        let cpus = if share { reader.cpus(&root, &packages::SIBLINGS) } else { None };
        for_each(machine, id, cpus.as_ref(), |cpu| cpu.package = package.map(PackageId::new));
    }
    if reader.is_quick() {
        return;
    }
    let die = reader.value(&format!("{root}/die_id"), id_or_unknown).flatten();
    let cluster = reader.value(&format!("{root}/cluster_id"), id_or_unknown).flatten();
    let capacity = reader.value(&format!("{}/cpu_capacity", folder(id)), number::number);
    for_each(machine, id, None, |cpu| {
        cpu.die = die.map(DieId::new);
        cpu.cluster = cluster.filter(|cluster| *cluster != NO_CLUSTER).map(ClusterId::new);
        cpu.capacity = capacity;
    });
}

/// CPUs of the same core; empty when no file says.
fn read_siblings(reader: &mut Reader<'_>, root: &str, id: CpuId, known: &CpuSet) -> CpuSet {
    let names = ["thread_siblings_list", "thread_siblings", "core_cpus_list", "core_cpus"];
    let Some(siblings) = reader.cpus(root, &names) else { return CpuSet::new() };
    if siblings.contains(id) {
        return siblings.intersection(known);
    }
    let text = format!("the siblings of CPU {id} are {}, without itself", cpu_names(&siblings));
    reader.note_in(OddityKind::Disagreement, root, text);
    CpuSet::from_iter([id])
}

/// Changes a CPU, and with it the group that shares what was read of it.
fn for_each(machine: &mut Machine, id: CpuId, group: Option<&CpuSet>, mut change: impl FnMut(&mut Cpu)) {
    let others = group.into_iter().flatten().filter(|other| *other != id);
    for id in others.chain([id]) {
        if let Some(cpu) = machine.cpus.get_mut(&id) {
            change(cpu);
        }
    }
}

/// An id that the kernel prints; -1 when it does not know.
fn id_or_unknown(text: &str) -> Result<Option<u32>, ParseError> {
    number::number_or_unknown(text)
}
