//! Files of the CPUs and their caches.

use std::collections::BTreeMap;

use nodewise_machine::{Cache, Cpu, CpuId, CpuSet, Machine};

use super::Files;

const ROOT: &str = "/sys/devices/system/cpu";

/// CPUs that belong together, by a number and by all in which it repeats.
type Groups<K> = BTreeMap<K, CpuSet>;

/// The groups of CPUs that are online.
struct Grouped {
    packages: Groups<u32>,
    dies: Groups<(u32, u32)>,
    clusters: Groups<(u32, u32)>,
    caches: BTreeMap<CpuId, Vec<usize>>,
}

pub(super) fn write(machine: &Machine, files: &mut Files) {
    if !machine.cpus.is_empty() {
        files.line(format!("{ROOT}/present"), machine.cpu_ids());
        files.line(format!("{ROOT}/online"), machine.online_cpus());
        files.line(format!("{ROOT}/offline"), machine.cpu_ids().difference(&machine.online_cpus()));
    }
    if let Some(last) = machine.possible_cpus.last() {
        files.line(format!("{ROOT}/possible"), &machine.possible_cpus);
        files.line(format!("{ROOT}/kernel_max"), last);
    }
    let grouped = Grouped::new(machine);
    for cpu in machine.cpus.values() {
        let folder = format!("{ROOT}/cpu{}", cpu.id);
        // The first CPU cannot be switched off on most machines, and has no switch there.
        if cpu.id.number() != 0 || !cpu.online {
            files.line(format!("{folder}/online"), u8::from(cpu.online));
        }
        if cpu.online {
            topology(cpu, &grouped, &folder, files);
            for (index, at) in grouped.caches.get(&cpu.id).into_iter().flatten().enumerate() {
                cache(&machine.caches[*at], &format!("{folder}/cache/index{index}"), files);
            }
            files.known(format!("{folder}/cpu_capacity"), cpu.capacity);
            files.known(format!("{folder}/cpufreq/cpuinfo_max_freq"), cpu.max_frequency_khz);
            let governor = machine.settings.governors.iter().find(|(_, cpus)| cpus.contains(cpu.id));
            files.known(format!("{folder}/cpufreq/scaling_governor"), governor.map(|(name, _)| name));
        }
    }
    models(machine, files);
}

impl Grouped {
    fn new(machine: &Machine) -> Self {
        let (mut packages, mut dies, mut clusters) = (Groups::new(), Groups::new(), Groups::new());
        for cpu in machine.cpus.values().filter(|cpu| cpu.online) {
            let Some(package) = cpu.package.map(|package| package.number()) else { continue };
            packages.entry(package).or_insert_with(CpuSet::new).insert(cpu.id);
            if let Some(die) = cpu.die {
                dies.entry((package, die.number())).or_insert_with(CpuSet::new).insert(cpu.id);
            }
            if let Some(cluster) = cpu.cluster {
                clusters.entry((package, cluster.number())).or_insert_with(CpuSet::new).insert(cpu.id);
            }
        }
        let mut caches: BTreeMap<CpuId, Vec<usize>> = BTreeMap::new();
        for (at, cache) in machine.caches.iter().enumerate() {
            cache.cpus.iter().for_each(|cpu| caches.entry(cpu).or_default().push(at));
        }
        Self { packages, dies, clusters, caches }
    }
}

fn topology(cpu: &Cpu, grouped: &Grouped, folder: &str, files: &mut Files) {
    let path = |name: &str| format!("{folder}/topology/{name}");
    files.known(path("physical_package_id"), cpu.package);
    files.known(path("die_id"), cpu.die);
    files.known(path("cluster_id"), cpu.cluster);
    files.known(path("core_id"), cpu.core);
    files.known(path("book_id"), cpu.book);
    files.known(path("drawer_id"), cpu.drawer);
    let package = cpu.package.map(|package| package.number());
    let within = |number: Option<u32>| Some((package?, number?));
    let die = within(cpu.die.map(|die| die.number()));
    let cluster = within(cpu.cluster.map(|cluster| cluster.number()));
    let siblings = Some(&cpu.siblings).filter(|siblings| !siblings.is_empty());
    let package = package.and_then(|package| grouped.packages.get(&package));
    // Under the names since Linux 5.3, and those before.
    for (name, cpus) in [
        ("core_cpus", siblings),
        ("thread_siblings", siblings),
        ("package_cpus", package),
        ("core_siblings", package),
        ("die_cpus", die.and_then(|die| grouped.dies.get(&die))),
        ("cluster_cpus", cluster.and_then(|cluster| grouped.clusters.get(&cluster))),
    ] {
        shared(&path(name), &format!("{}_list", path(name)), cpus, files);
    }
}

/// CPUs as a mask and as a list.
fn shared(map: &str, list: &str, cpus: Option<&CpuSet>, files: &mut Files) {
    files.known(map.to_owned(), cpus.map(CpuSet::to_mask));
    files.known(list.to_owned(), cpus);
}

fn cache(cache: &Cache, folder: &str, files: &mut Files) {
    let path = |name: &str| format!("{folder}/{name}");
    files.line(path("level"), cache.level);
    files.line(path("type"), cache.kind.word());
    files.known(path("size"), cache.size.map(|size| format!("{}K", size.get() >> 10)));
    files.known(path("coherency_line_size"), cache.line_size);
    files.known(path("ways_of_associativity"), cache.ways);
    files.known(path("number_of_sets"), cache.sets);
    shared(&path("shared_cpu_map"), &path("shared_cpu_list"), Some(&cache.cpus), files);
}

/// `/proc/cpuinfo`, in the words of x86. A CPU that is offline has an entry only where the machine knows more of it.
fn models(machine: &Machine, files: &mut Files) {
    let mut text = String::new();
    for cpu in machine.cpus.values() {
        let model = machine.cpu_models.iter().find(|model| model.cpus.contains(cpu.id));
        if !cpu.online && model.is_none() && cpu.microcode.is_none() {
            continue;
        }
        text += &format!("processor\t: {}\n", cpu.id);
        if let Some(model) = model {
            text += &format!("model name\t: {}\n", model.name);
        }
        if let Some(revision) = cpu.microcode {
            text += &format!("microcode\t: {revision:#x}\n");
        }
        text.push('\n');
    }
    files.text("/proc/cpuinfo".to_owned(), text);
}
