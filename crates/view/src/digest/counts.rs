//! How many packages, cores and CPUs a machine has, and how evenly they are spread.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::Hash;

use nodewise_machine::order::CollectOrdered as _;
pub use nodewise_machine::plural::{by_count, plural};
use nodewise_machine::{CpuId, CpuSet, Machine, PackageId};

/// Online packages, cores and CPUs of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Drawers, on s390.
    pub drawers: Option<usize>,
    /// Books, on s390.
    pub books: Option<usize>,
    /// Packages; `None` when the kernel does not say to which one every CPU belongs.
    pub packages: Option<usize>,
    pub cores: usize,
    pub cpus: usize,
    /// CPUs that are there and not online.
    pub offline: usize,
    /// Cores per package, where all packages have as many.
    pub cores_per_package: Option<usize>,
    /// Threads per core, where all cores have as many.
    pub threads_per_core: Option<usize>,
}

impl Counts {
    /// Counts the online CPUs of a machine.
    pub fn from_machine(machine: &Machine) -> Self {
        let cores = machine.cores();
        let online = machine.online_cpus();
        let mut packages: BTreeMap<Option<PackageId>, usize> = BTreeMap::new();
        for first in cores.keys() {
            *packages.entry(machine.cpus.get(first).and_then(|cpu| cpu.package)).or_default() += 1;
        }
        let known = !packages.is_empty() && !packages.contains_key(&None);
        let per_package: BTreeSet<usize> = packages.values().copied().collect_set();
        let books =
            machine.cpus.values().filter(|cpu| cpu.online).filter_map(|cpu| Some((cpu.drawer, cpu.book?)));
        let drawers = machine.cpus.values().filter(|cpu| cpu.online).filter_map(|cpu| cpu.drawer);
        let count = |count: usize| (count > 0).then_some(count);
        Self {
            drawers: count(drawers.collect_set().len()),
            books: count(books.collect_set().len()),
            packages: known.then_some(packages.len()),
            cores: cores.len(),
            cpus: online.len(),
            offline: machine.cpus.len() - online.len(),
            cores_per_package: the_only(&per_package).filter(|_| known),
            threads_per_core: the_only(&cores.values().map(CpuSet::len).collect()),
        }
    }

    /// The counts in words: `2 packages x 24 cores x 2 threads = 96 CPUs`. `None` without CPUs.
    pub fn words(&self) -> Option<String> {
        let cpus = plural(self.cpus, "CPU");
        match (self.packages, self.cores_per_package, self.threads_per_core) {
            _ if self.cpus == 0 => None,
            (packages, _, _) if self.books.is_some() => {
                let drawers = self.drawers.map(|count| plural(count, "drawer"));
                let books = self.books.map(|count| plural(count, "book"));
                let packages = packages.map(|count| plural(count, "package"));
                let cores = (self.cores != self.cpus).then(|| plural(self.cores, "core"));
                let parts = drawers.into_iter().chain(books).chain(packages).chain(cores).chain([cpus]);
                Some(parts.collect::<Vec<_>>().join(", "))
            }
            (Some(1) | None, _, Some(1)) => Some(cpus),
            (Some(1) | None, _, Some(threads)) if threads > 1 => {
                Some(format!("{} x {} = {cpus}", plural(self.cores, "core"), plural(threads, "thread")))
            }
            (Some(packages), Some(cores), Some(threads)) => {
                let mut text = format!("{} x {}", plural(packages, "package"), plural(cores, "core"));
                if threads > 1 {
                    text.push_str(&format!(" x {}", plural(threads, "thread")));
                }
                Some(format!("{text} = {cpus}"))
            }
            (packages, _, _) => {
                let packages = packages.map(|count| plural(count, "package"));
                let cores = (self.cores != self.cpus).then(|| plural(self.cores, "core"));
                let parts: Vec<String> = packages.into_iter().chain(cores).chain([cpus]).collect();
                Some(parts.join(", "))
            }
        }
    }
}

/// The machine in a line: CPUs, memory, nodes.
pub fn headline(machine: &Machine) -> String {
    let cpus = Counts::from_machine(machine).words().unwrap_or_else(|| "no CPU known".to_owned());
    if machine.nodes.is_empty() {
        let memory = machine.system_memory.map(|size| format!("{size}, ")).unwrap_or_default();
        return format!("{cpus}, {memory}no NUMA node");
    }
    let memory =
        machine.memory_total().map_or_else(|| "memory size unknown".to_owned(), |size| size.to_string());
    format!("{cpus}, {memory} in {}", plural(machine.nodes.len(), "node"))
}

/// Describes the platform: architecture, kernel, page size, CPUs that are offline. Foreign text; empty
/// when nothing is known.
pub fn platform(machine: &Machine) -> String {
    let mut facts: Vec<String> = machine.architecture.iter().cloned().collect();
    facts.extend(machine.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    facts.extend(machine.page_size.map(|size| format!("pages of {size}")));
    let offline = Counts::from_machine(machine).offline;
    if offline > 0 {
        facts.push(format!("{} offline", plural(offline, "CPU")));
    }
    facts.join(", ")
}

/// The model of the machine, its firmware, and the microcode of its CPUs: `Dell Inc. PowerEdge R740, firmware 2.10.2 of
/// 02/24/2021, microcode 0x5003006`. Foreign text; empty when nothing is known.
pub fn product(machine: &Machine) -> String {
    let product = &machine.product;
    let mut facts = Vec::new();
    match (&product.vendor, &product.name) {
        (Some(vendor), Some(name)) if !name.starts_with(vendor.as_str()) => {
            facts.push(format!("{vendor} {name}"));
        }
        (vendor, name) => facts.extend(name.as_ref().or(vendor.as_ref()).cloned()),
    }
    let date = product.firmware_date.as_ref().map(|date| format!(" of {date}")).unwrap_or_default();
    facts.extend(product.firmware_version.as_ref().map(|version| format!("firmware {version}{date}")));
    let mut revisions: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for (id, cpu) in machine.cpus.iter().filter(|(_, cpu)| cpu.online) {
        if let Some(revision) = cpu.microcode {
            revisions.entry(revision).or_default().insert(*id);
        }
    }
    let is_one = revisions.len() == 1;
    facts.extend(revisions.iter().map(|(revision, cpus)| {
        let cpus = if is_one { String::new() } else { format!(" ({})", cpu_names(cpus)) };
        format!("microcode 0x{revision:x}{cpus}")
    }));
    facts.join(", ")
}

/// The models of the processors: `AMD EPYC 9554`; where several differ, each with its CPUs. Foreign text; empty
/// when none is known.
pub fn processors(machine: &Machine) -> String {
    match &machine.cpu_models[..] {
        [model] => model.name.clone(),
        models => {
            let words = models.iter().map(|model| format!("{} ({})", model.name, cpu_names(&model.cpus)));
            words.collect::<Vec<_>>().join(", ")
        }
    }
}

/// The lowest CPU of the core of every online CPU.
pub(crate) fn core_of_each_cpu(machine: &Machine) -> BTreeMap<CpuId, CpuId> {
    let cores = machine.cores();
    cores.iter().flat_map(|(core, cpus)| cpus.iter().map(move |cpu| (cpu, *core))).collect_map()
}

/// The only member of a set of one.
fn the_only(set: &BTreeSet<usize>) -> Option<usize> {
    set.first().copied().filter(|_| set.len() == 1)
}

/// `no CPUs`, `CPU 3`, `CPUs 0-7`.
pub fn cpu_names(cpus: &CpuSet) -> String {
    match cpus.len() {
        0 => "no CPUs".to_owned(),
        1 => format!("CPU {cpus}"),
        _ => format!("CPUs {cpus}"),
    }
}

/// A frequency in GHz: `5.2 GHz`.
pub fn ghz(khz: u32) -> String {
    format!("{:.1} GHz", f64::from(khz) / 1e6)
}

/// Things each once, in the order in which they come first. For as few as a reader takes in.
pub fn each_once<T: Clone + Eq + Hash>(things: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut known = HashSet::new();
    things.into_iter().filter(|thing| known.insert(thing.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{BookId, Bytes, CpuModel, DrawerId, Origin, spec};

    fn check(machine: &Machine, expected: Option<&str>) {
        assert_eq!(Counts::from_machine(machine).words().as_deref(), expected);
    }

    #[test]
    fn counts_are_told_as_a_product_where_they_are_even() {
        for (spec, expected) in [
            ("2x(24c2t 1G)", "2 packages x 24 cores x 2 threads = 96 CPUs"),
            ("4x(12c 1G)", "4 packages x 12 cores = 48 CPUs"),
            ("(4c2t 1G)", "4 cores x 2 threads = 8 CPUs"),
            ("(4c 1G) 7x(1G)", "4 CPUs"),
            ("(1c 1G)", "1 CPU"),
            ("(8c 1G) (4c 1G)", "2 packages, 12 CPUs"),
            ("(4c2t 1G) (4c 1G)", "2 packages, 8 cores, 12 CPUs"),
        ] {
            check(&spec::machine(spec).unwrap(), Some(expected));
        }
    }

    #[test]
    fn models_of_machines_come_with_firmware_and_microcode() {
        let mut machine = spec::machine("(4c 1G)").unwrap();
        assert_eq!(product(&machine), "");
        machine.product.name = Some("PowerEdge R740".to_owned());
        machine.product.firmware_date = Some("02/24/2021".to_owned());
        assert_eq!(product(&machine), "PowerEdge R740");
        machine.product.vendor = Some("Dell Inc.".to_owned());
        machine.product.firmware_version = Some("2.10.2".to_owned());
        for cpu in machine.cpus.values_mut() {
            cpu.microcode = Some(0x500_3006);
        }
        let firmware = "Dell Inc. PowerEdge R740, firmware 2.10.2 of 02/24/2021";
        assert_eq!(product(&machine), format!("{firmware}, microcode 0x5003006"));
        machine.cpus.get_mut(&CpuId::new(3)).unwrap().microcode = Some(0x500_2f01);
        let both = "microcode 0x5002f01 (CPU 3), microcode 0x5003006 (CPUs 0-2)";
        assert_eq!(product(&machine), format!("{firmware}, {both}"));
        machine.product.name = Some("Dell Inc. R740".to_owned());
        assert!(product(&machine).starts_with("Dell Inc. R740, "));
    }

    #[test]
    fn books_and_drawers_of_s390_are_counted() {
        let mut machine = spec::machine("4x(2c 1G)").unwrap();
        for (id, cpu) in &mut machine.cpus {
            // Books 0 and 1 in each of two drawers.
            cpu.drawer = Some(DrawerId::new(id.number() / 4));
            cpu.book = Some(BookId::new(id.number() / 2 % 2));
        }
        check(&machine, Some("2 drawers, 4 books, 4 packages, 8 CPUs"));
    }

    #[test]
    fn memory_of_a_machine_without_nodes_and_its_processors_are_told() {
        let mut machine = Machine::new(Origin::Live);
        machine.system_memory = Some(Bytes::from_gib(2));
        assert_eq!(headline(&machine), "no CPU known, 2 GiB, no NUMA node");
        let model = |name: &str, cpus: CpuSet| CpuModel { name: name.to_owned(), cpus };
        machine.cpu_models = vec![model("A", CpuSet::from([0, 1]))];
        assert_eq!(processors(&machine), "A");
        machine.cpu_models.push(model("B", CpuSet::from([2])));
        assert_eq!(processors(&machine), "A (CPUs 0-1), B (CPU 2)");
    }

    #[test]
    fn packages_that_are_not_known_are_not_counted() {
        let mut machine = spec::machine("2x(2c 1G)").unwrap();
        machine.cpus.values_mut().for_each(|cpu| cpu.package = None);
        check(&machine, Some("4 CPUs"));
        check(&Machine::new(Origin::Live), None);
    }

    #[test]
    fn cpus_are_named_by_how_many_they_are() {
        assert_eq!(cpu_names(&[].into()), "no CPUs");
        assert_eq!(cpu_names(&[3].into()), "CPU 3");
        assert_eq!(cpu_names(&[0, 1].into()), "CPUs 0-1");
    }

    #[test]
    fn each_thing_comes_once_where_it_came_first() {
        assert_eq!(each_once([3, 1, 3, 2, 1]), [3, 1, 2]);
    }

    #[test]
    fn offline_cpus_are_counted_apart() {
        let mut machine = spec::machine("(4c 1G)").unwrap();
        machine.cpus.get_mut(&CpuId::new(3)).unwrap().online = false;
        let counts = Counts::from_machine(&machine);
        assert_eq!((counts.cpus, counts.offline), (3, 1));
    }
}
