//! A machine made by hand, with a file of every form in the grammar: two nodes, each a package of two cores with two
//! threads, a memory-only node, and devices.

use super::specimen::{Content, Files};

const NODES: &str = "/sys/devices/system/node";
const CPUS: &str = "/sys/devices/system/cpu";

/// Writes files.
struct Writer(Files);

impl Writer {
    fn file(&mut self, path: String, text: &str) {
        for (at, _) in path.match_indices('/').skip(1) {
            self.0.entry(path[..at].to_owned()).or_insert(Content::Folder);
        }
        self.0.insert(path, Content::File(format!("{text}\n").into_bytes()));
    }
}

/// The machine.
pub fn two_nodes() -> Files {
    let mut writer = Writer(Files::new());
    nodes(&mut writer);
    cpus(&mut writer);
    devices(&mut writer);
    settings(&mut writer);
    writer.0
}

fn nodes(writer: &mut Writer) {
    for (file, text) in [
        ("online", "0-2"),
        ("possible", "0-2"),
        ("has_cpu", "0-1"),
        ("has_memory", "0-2"),
        ("has_normal_memory", "0-2"),
    ] {
        writer.file(format!("{NODES}/{file}"), text);
    }
    writer.file(format!("{NODES}/has_generic_initiator"), "");
    let rows = ["10 21 17", "21 10 28", "17 28 10"];
    for (node, (cpus, mask)) in
        [("0-3", "0000000f"), ("4-7", "000000f0"), ("", "00000000")].into_iter().enumerate()
    {
        let root = format!("{NODES}/node{node}");
        writer.file(format!("{root}/cpulist"), cpus);
        writer.file(format!("{root}/cpumap"), mask);
        writer.file(format!("{root}/distance"), rows[node]);
        let fields = [
            ("MemTotal", 65_932_140),
            ("MemFree", 61_300_408),
            ("MemUsed", 4_631_732),
            ("Active", 1_201_336),
        ];
        let lines: Vec<String> =
            fields.iter().map(|(name, kib)| format!("Node {node} {name}:{kib:>15} kB")).collect();
        writer.file(
            format!("{root}/meminfo"),
            &format!("{}\nNode {node} HugePages_Total:     3", lines.join("\n")),
        );
        for (file, count) in [("nr_hugepages", "3"), ("free_hugepages", "2"), ("surplus_hugepages", "0")] {
            writer.file(format!("{root}/hugepages/hugepages-2048kB/{file}"), count);
        }
        for class in 0..2 {
            let access = format!("{root}/access{class}/initiators");
            for (file, value) in [
                ("read_latency", "96"),
                ("write_latency", "97"),
                ("read_bandwidth", "30720"),
                ("write_bandwidth", "28160"),
            ] {
                writer.file(format!("{access}/{file}"), value);
            }
            writer.file(format!("{access}/node{}/uevent", node % 2), "");
        }
        writer.file(
            format!("/sys/kernel/mm/mempolicy/weighted_interleave/node{node}"),
            &(node + 3).to_string(),
        );
    }
    let cache = format!("{NODES}/node2/memory_side_cache/index1");
    for (file, value) in
        [("size", "17179869184"), ("line_size", "64"), ("indexing", "0"), ("write_policy", "0")]
    {
        writer.file(format!("{cache}/{file}"), value);
    }
    for (tier, nodes) in [(4, "0-1"), (22, "2")] {
        writer.file(format!("/sys/devices/virtual/memory_tiering/memory_tier{tier}/nodelist"), nodes);
    }
}

fn cpus(writer: &mut Writer) {
    for file in ["online", "present", "possible"] {
        writer.file(format!("{CPUS}/{file}"), "0-7");
    }
    for cpu in 0..8 {
        let (package, core) = (cpu / 4, cpu / 2);
        let own = (format!("{cpu}"), format!("{:08x}", 1 << cpu));
        let threads = (format!("{}-{}", core * 2, core * 2 + 1), format!("{:08x}", 3 << (core * 2)));
        let socket = (format!("{}-{}", package * 4, package * 4 + 3), format!("{:08x}", 15 << (package * 4)));
        let root = format!("{CPUS}/cpu{cpu}");
        if cpu > 0 {
            writer.file(format!("{root}/online"), "1");
        }
        writer.file(format!("{root}/cpu_capacity"), "1024");
        let numbers =
            [("core_id", core % 2), ("cluster_id", 65_535), ("die_id", 0), ("physical_package_id", package)];
        for (file, number) in numbers {
            writer.file(format!("{root}/topology/{file}"), &number.to_string());
        }
        for (old, new, (list, mask)) in
            [("thread_siblings", "core_cpus", &threads), ("core_siblings", "package_cpus", &socket)]
        {
            for name in [old, new] {
                writer.file(format!("{root}/topology/{name}_list"), list);
                writer.file(format!("{root}/topology/{name}"), mask);
            }
        }
        let caches = [
            ("1", "Data", "32K", "8", "64", &threads),
            ("1", "Instruction", "32K", "8", "64", &own),
            ("2", "Unified", "1024K", "16", "1024", &threads),
            ("3", "Unified", "16384K", "16", "16384", &socket),
        ];
        for (index, (level, kind, size, ways, sets, (list, mask))) in caches.into_iter().enumerate() {
            let root = format!("{root}/cache/index{index}");
            for (file, text) in [
                ("level", level),
                ("type", kind),
                ("size", size),
                ("coherency_line_size", "64"),
                ("physical_line_partition", "1"),
                ("ways_of_associativity", ways),
                ("number_of_sets", sets),
                ("shared_cpu_list", list),
                ("shared_cpu_map", mask),
            ] {
                writer.file(format!("{root}/{file}"), text);
            }
        }
    }
}

fn devices(writer: &mut Writer) {
    for (at, (class, node, list, mask)) in
        [("0x020000", "0", "0-3", "0000000f"), ("0x010802", "1", "4-7", "000000f0")].into_iter().enumerate()
    {
        let address = format!("0000:0{at}:00.0");
        let folder = format!("/sys/devices/pci0000:0{at}/{address}");
        for (file, text) in [
            ("class", class),
            ("vendor", "0x15b3"),
            ("device", "0x1017"),
            ("numa_node", node),
            ("local_cpulist", list),
            ("local_cpus", mask),
            ("current_link_speed", "8.0 GT/s PCIe"),
            ("current_link_width", "8"),
            ("max_link_speed", "16.0 GT/s PCIe"),
            ("max_link_width", "16"),
        ] {
            writer.file(format!("{folder}/{file}"), text);
        }
        writer.file(format!("{folder}/net/eth{at}/mtu"), "1500");
        let links = [
            (format!("/sys/bus/pci/devices/{address}"), format!("../../../devices/pci0000:0{at}/{address}")),
            (format!("/sys/class/net/eth{at}"), format!("../../devices/pci0000:0{at}/{address}/net/eth{at}")),
        ];
        for (path, target) in links {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
            writer.file(format!("{folder}/.keep"), "");
            writer.0.insert(path, Content::Link(target));
        }
    }
}

fn settings(writer: &mut Writer) {
    for (path, text) in [
        ("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152"),
        ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("/sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never"),
        ("/sys/kernel/mm/numa/demotion_enabled", "false"),
        ("/sys/kernel/mm/lru_gen/enabled", "0x0007"),
        ("/proc/sys/vm/swappiness", "60"),
        ("/proc/sys/vm/min_free_kbytes", "67584"),
        ("/proc/sys/vm/zone_reclaim_mode", "0"),
        ("/proc/sys/vm/overcommit_memory", "0"),
        ("/proc/sys/kernel/numa_balancing", "1"),
        ("/proc/sys/kernel/osrelease", "6.12.107-amd64"),
        ("/proc/version", "Linux version 6.12.107-amd64 (gcc) #1 SMP"),
        ("/proc/cmdline", "BOOT_IMAGE=/vmlinuz ro quiet mitigations=auto"),
        (
            "/proc/hwloc-nofile-info",
            "OSName: Linux\nOSRelease: 6.12.107-amd64\nArchitecture: x86_64\nPageSize: 4096",
        ),
        (
            "/proc/self/status",
            "Name:\tcat\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\nMems_allowed:\t00000000,00000007\nMems_allowed_list:\t0-2",
        ),
    ] {
        writer.file(path.to_owned(), text);
    }
}
