//! The structure of a machine: what makes it one of many equal ones, and the facts that should then be equal.
//!
//! Names play no part in it. Two machines are of one *kind* when the same hardware was bought: architecture, model of
//! processor, packages and cores. They have the same *layout* when that hardware is divided into nodes alike; firmware that
//! interleaves nodes, or divides a package in four, gives another layout of the same kind. Threads and cores that are switched off,
//! sizes of memory, firmware, kernel and settings are facts: they are held against those of the other machines of the kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use nodewise_machine::fnv::fnv_1a;
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::plural::plural;
use nodewise_machine::{Bytes, Cpu, CpuId, CpuSet, Machine, MemorySlot, Node};

/// The value of a fact.
#[derive(Clone, Debug, PartialEq)]
pub enum FactValue {
    /// Compared letter by letter. Foreign text.
    Text(String),
    /// A size, which kernels report with small differences.
    Size(Bytes),
}

impl fmt::Display for FactValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Size(size) => size.fmt(f),
        }
    }
}

/// The name of the fact that holds the layout.
pub const LAYOUT: &str = "nodes";

/// The facts about a machine that are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// The hardware in words; equal for machines of one kind. Foreign text.
    pub kind: String,
    /// The division into nodes in words.
    pub layout: String,
    /// A hash of everything that the layout consists of.
    pub layout_key: u64,
    /// Facts by name; one that is not known is left out.
    pub facts: BTreeMap<String, FactValue>,
}

impl Structure {
    /// The structure of a machine.
    pub fn new(machine: &Machine) -> Self {
        let layout = layout_words(machine);
        let mut facts = Facts(BTreeMap::new());
        facts.text(LAYOUT, Some(layout.clone()));
        facts.text("distances", distances(machine));
        facts.text("CPUs online", Some(machine.online_cpus().len().to_string()));
        facts.size("memory", machine.memory_total().or(machine.system_memory));
        for node in machine.nodes.values().filter(|_| machine.nodes.len() > 1) {
            facts.size(&format!("memory of node {}", node.id), node.memory_total());
            facts.text(&format!("huge pages of node {}", node.id), huge_pages(node));
        }
        facts.text("memory modules", modules(&machine.memory_slots.slots));
        facts.platform(machine);
        facts.settings(machine);
        Self { kind: kind(machine), layout, layout_key: layout_key(machine), facts: facts.0 }
    }
}

/// Facts while they are collected.
struct Facts(BTreeMap<String, FactValue>);

impl Facts {
    fn text(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), FactValue::Text(value));
        }
    }

    fn size(&mut self, name: &str, value: Option<Bytes>) {
        if let Some(value) = value {
            self.0.insert(name.to_owned(), FactValue::Size(value));
        }
    }

    fn platform(&mut self, machine: &Machine) {
        let product = &machine.product;
        let model = [product.vendor.as_deref(), product.name.as_deref()];
        let model: Vec<&str> = model.into_iter().flatten().collect();
        self.text("model", (!model.is_empty()).then(|| model.join(" ")));
        let firmware = [product.firmware_vendor.as_deref(), product.firmware_version.as_deref()];
        let firmware: Vec<&str> = firmware.into_iter().flatten().collect();
        self.text("firmware", (!firmware.is_empty()).then(|| firmware.join(" ")));
        let microcode: BTreeSet<u32> = machine.cpus.values().filter_map(|cpu| cpu.microcode).collect_set();
        let microcode: Vec<String> = microcode.iter().map(|revision| format!("{revision:#x}")).collect();
        self.text("microcode", (!microcode.is_empty()).then(|| microcode.join(", ")));
        self.text("kernel", machine.kernel.as_ref().map(ToString::to_string));
        self.text("page size", machine.page_size.map(|size| size.to_string()));
    }

    fn settings(&mut self, machine: &Machine) {
        let settings = &machine.settings;
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        let switch = |value: Option<bool>| value.map(|value| if value { "on" } else { "off" }.to_owned());
        self.text("boot parameters", settings.command_line.clone());
        self.text("numa_balancing", number(settings.numa_balancing));
        self.text("zone_reclaim_mode", number(settings.zone_reclaim_mode));
        self.text("transparent_hugepage", settings.transparent_hugepage.clone());
        self.text("transparent_hugepage defrag", settings.transparent_hugepage_defrag.clone());
        self.text("demotion_enabled", switch(settings.demotion_enabled));
        self.text("swappiness", number(settings.swappiness));
        self.text("overcommit_memory", number(settings.overcommit_memory));
        let governors: Vec<&str> = settings.governors.keys().map(String::as_str).collect();
        self.text("frequency governor", (!governors.is_empty()).then(|| governors.join(", ")));
    }
}

/// The hardware in words.
fn kind(machine: &Machine) -> String {
    let mut words: Vec<String> = machine.architecture.iter().cloned().collect();
    let models: BTreeSet<&str> = machine.cpu_models.iter().map(|model| model.name.as_str()).collect_set();
    words.extend(models.into_iter().map(str::to_owned));
    let packages = machine.packages().len();
    let cores = installed_cores(machine, |_| true);
    words.push(match packages {
        0 | 1 => plural(cores, "core"),
        packages => format!("{} in {}", plural(cores, "core"), plural(packages, "package")),
    });
    words.join(", ")
}

/// Cores of some CPUs, those that are switched off included: a core that fails or is switched off makes no other hardware.
///
/// The kernel does not say which core an offline CPU belongs to. Offline CPUs are taken for the missing threads of online cores
/// first, and what is left for whole cores. Where every core has one thread online and as many or a multiple of it offline, SMT is
/// switched off.
fn installed_cores(machine: &Machine, is_wanted: impl Fn(&Cpu) -> bool) -> usize {
    let of_cpu = |id: &CpuId| machine.cpus.get(id).is_some_and(&is_wanted);
    let all = machine.cores();
    let threads = all.values().map(CpuSet::len).max().unwrap_or(1).max(1);
    let online: Vec<&CpuSet> = all.iter().filter(|(first, _)| of_cpu(first)).map(|(_, own)| own).collect();
    let offline = |is_wanted: &dyn Fn(&Cpu) -> bool| {
        machine.cpus.values().filter(|cpu| !cpu.online && is_wanted(cpu)).count()
    };
    let (off, all_off) = (offline(&is_wanted), offline(&|_| true));
    if threads == 1 && all_off % all.len().max(1) == 0 {
        return online.len();
    }
    let missing: usize = online.iter().map(|core| threads - core.len()).sum();
    online.len() + off.saturating_sub(missing) / threads
}

/// Cores of a node.
fn cores_of(machine: &Machine, node: &Node) -> usize {
    installed_cores(machine, |cpu| cpu.node == Some(node.id))
}

/// The division into nodes in words: `4 nodes: 2 with 8 cores and memory, 2 with memory alone`.
fn layout_words(machine: &Machine) -> String {
    let mut shapes: BTreeMap<(bool, usize), usize> = BTreeMap::new();
    for node in machine.nodes.values() {
        let cores = cores_of(machine, node);
        *shapes.entry((!node.has_memory(), usize::MAX - cores)).or_default() += 1;
    }
    let shape = |(lacks_memory, rest): (bool, usize)| match (usize::MAX - rest, lacks_memory) {
        (0, true) => "neither cores nor memory".to_owned(),
        (0, false) => "memory alone".to_owned(),
        (cores, true) => format!("{} and no memory", plural(cores, "core")),
        (cores, false) => format!("{} and memory", plural(cores, "core")),
    };
    let nodes = plural(machine.nodes.len(), "node");
    let mut shapes: Vec<_> = shapes.into_iter().map(|(key, count)| (count, shape(key))).collect();
    match shapes.pop() {
        None => "no nodes".to_owned(),
        Some((_, only)) if shapes.is_empty() => format!("{nodes} with {only}"),
        Some(last) => {
            shapes.push(last);
            let parts: Vec<String> =
                shapes.into_iter().map(|(count, shape)| format!("{count} with {shape}")).collect();
            format!("{nodes}: {}", parts.join(", "))
        }
    }
}

fn layout_key(machine: &Machine) -> u64 {
    let mut text = String::new();
    for node in machine.nodes.values() {
        let _ = write!(text, "{}:{}:{};", node.id, cores_of(machine, node), node.has_memory());
    }
    fnv_1a(text.as_bytes())
}

/// The most nodes whose distances are written out.
const FEW_NODES: usize = 4;

/// The distances: rows of a small machine, the different values of a large one with a hash of all.
fn distances(machine: &Machine) -> Option<String> {
    if machine.distances.is_empty() {
        return None;
    }
    let row = |values: &[Option<u32>]| {
        let value = |value: &Option<u32>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
        values.iter().map(value).collect::<Vec<_>>().join(" ")
    };
    let rows: Vec<String> = machine.distances.rows().map(|(_, values)| row(values)).collect();
    if rows.len() <= FEW_NODES {
        return Some(rows.join(" / "));
    }
    let values: BTreeSet<u32> = machine.distances.iter().map(|(_, _, value)| *value).collect_set();
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    let hash = fnv_1a(rows.join("/").as_bytes()) as u32;
    Some(format!("{} values {} (#{hash:08x})", rows.len() * rows.len(), values.join(" ")))
}

fn huge_pages(node: &Node) -> Option<String> {
    let pools = node.huge_pools.iter().filter(|pool| pool.total.is_some_and(|total| total > 0));
    let words = pools.map(|pool| format!("{} x {}", pool.total.unwrap_or_default(), pool.page_size));
    let words: Vec<String> = words.collect();
    (!node.huge_pools.is_empty()).then(|| if words.is_empty() { "none".to_owned() } else { words.join(", ") })
}

/// The memory modules by node, each kind with its number: `node 0: 4 x 32 GiB DDR4 3200 MT/s`.
fn modules(slots: &[MemorySlot]) -> Option<String> {
    let mut counts: BTreeMap<(Option<u32>, String), usize> = BTreeMap::new();
    for slot in slots {
        let Some(module) = slot.module() else { continue };
        let mut words: Vec<String> = module.size.iter().map(ToString::to_string).collect();
        words.extend(module.memory_type.clone());
        words.extend(module.configured_speed_mt_per_s.map(|speed| format!("{speed} MT/s")));
        *counts.entry((slot.node.map(|node| node.number()), words.join(" "))).or_default() += 1;
    }
    let words = counts.into_iter().map(|((node, module), count)| {
        let node = node.map(|node| format!("node {node}: ")).unwrap_or_default();
        format!("{node}{count} x {module}")
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join("; "))
}

#[cfg(test)]
mod tests {
    use nodewise_machine::spec;

    use super::*;

    fn structure(text: &str) -> Structure {
        Structure::new(&spec::machine(text).unwrap())
    }

    #[test]
    fn threads_and_sizes_are_facts_and_not_structure() {
        let (plain, threads, more) =
            (structure("2x(8c 64G)"), structure("2x(8c2t 64G)"), structure("2x(8c 32G)"));
        assert_eq!(plain.kind, threads.kind);
        assert_eq!(plain.layout_key, threads.layout_key);
        assert_ne!(plain.facts["CPUs online"], threads.facts["CPUs online"]);
        assert_eq!(plain.layout_key, more.layout_key);
        assert_ne!(plain.facts["memory"], more.facts["memory"]);
    }

    /// A machine whose CPUs of these numbers are switched off, as the kernel shows them.
    fn without(text: &str, off: &[u32]) -> Structure {
        let mut machine = spec::machine(text).unwrap();
        let off: CpuSet = off.iter().map(|number| CpuId::new(*number)).collect();
        for cpu in machine.cpus.values_mut() {
            cpu.siblings = cpu.siblings.difference(&off);
            if off.contains(cpu.id) {
                (cpu.online, cpu.package, cpu.core, cpu.siblings) = (false, None, None, CpuSet::new());
            }
        }
        for node in machine.nodes.values_mut() {
            node.cpus = node.cpus.difference(&off);
        }
        Structure::new(&machine)
    }

    #[test]
    fn cores_and_threads_that_are_switched_off_are_a_fact_and_not_another_kind() {
        let check = |text: &str, off: &[u32]| {
            let (whole, lacking) = (structure(text), without(text, off));
            assert_eq!(
                (&lacking.kind, &lacking.layout),
                (&whole.kind, &whole.layout),
                "{text} without {off:?}"
            );
            assert_eq!(lacking.layout_key, whole.layout_key);
            let online = |structure: &Structure| structure.facts["CPUs online"].to_string();
            assert_eq!(online(&lacking), (online(&whole).parse::<usize>().unwrap() - off.len()).to_string());
        };
        check("2x(8c 64G)", &[3]);
        check("2x(8c 64G)", &[3, 9, 10]);
        let siblings = |text: &str, cpu: u32| {
            let machine = spec::machine(text).unwrap();
            machine.cpus[&CpuId::new(cpu)].siblings.iter().map(|cpu| cpu.number()).collect::<Vec<_>>()
        };
        let text = "2x(8c2t 64G)";
        // A whole core, one thread of another, and all second threads.
        let core = siblings(text, 3);
        check(text, &core);
        check(text, &core[1..]);
        check(text, &[&core[..], &siblings(text, 5)[1..]].concat());
        let second: Vec<u32> = (0..32).filter(|cpu| siblings(text, *cpu)[0] != *cpu).collect();
        assert_eq!(second.len(), 16);
        check(text, &second);
    }

    #[test]
    fn interleaved_nodes_are_another_layout_of_the_same_kind() {
        let (two, four) = (structure("2x(8c 64G)"), structure("2x(2x(4c 32G))"));
        assert_eq!(two.kind, four.kind);
        assert_ne!(two.layout_key, four.layout_key);
        assert_eq!(two.layout, "2 nodes with 8 cores and memory");
        assert_eq!(
            structure("2x(8c 64G) (64G)").layout,
            "3 nodes: 2 with 8 cores and memory, 1 with memory alone"
        );
    }

    #[test]
    fn distances_of_many_nodes_are_short_and_still_differ() {
        let (a, b) = (structure("8x(1c 1G); dist=20"), structure("8x(1c 1G); dist=21"));
        let FactValue::Text(text) = &a.facts["distances"] else { panic!("{a:?}") };
        assert!(text.starts_with("64 values 10 20 (#") && text.len() < 40, "{text}");
        assert_ne!(a.facts["distances"], b.facts["distances"]);
    }
}
