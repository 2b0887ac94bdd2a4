//! A machine of two nodes with two CPUs each, as the kernel's files show it.

use nodewise_source::tree::Memory;

/// Where nodes are.
pub const NODE: &str = "/sys/devices/system/node";
/// Where PCI functions are listed.
pub const PCI: &str = "/sys/bus/pci/devices";

/// Every file of the machine.
pub fn files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut add = |path: String, text: &str| files.push((path, format!("{text}\n")));
    for file in ["online", "possible", "has_cpu", "has_memory", "has_normal_memory"] {
        add(format!("{NODE}/{file}"), "0-1");
    }
    for (node, cpus, mask, row) in [(0, "0-1", "00000003", "10 21"), (1, "2-3", "0000000c", "21 10")] {
        let root = format!("{NODE}/node{node}");
        add(format!("{root}/cpulist"), cpus);
        add(format!("{root}/cpumap"), mask);
        add(format!("{root}/distance"), row);
        add(
            format!("{root}/meminfo"),
            &format!("Node {node} MemTotal:  8192 kB\nNode {node} MemFree:   4096 kB"),
        );
        let pool = format!("{root}/hugepages/hugepages-2048kB");
        add(format!("{pool}/nr_hugepages"), "3");
        add(format!("{pool}/free_hugepages"), "2");
        add(format!("{pool}/surplus_hugepages"), "0");
    }
    for file in ["online", "present", "possible"] {
        add(format!("/sys/devices/system/cpu/{file}"), "0-3");
    }
    for cpu in 0..4 {
        let root = format!("/sys/devices/system/cpu/cpu{cpu}");
        for (file, text) in
            [("core_id", (cpu % 2).to_string()), ("physical_package_id", (cpu / 2).to_string())]
        {
            add(format!("{root}/topology/{file}"), &text);
        }
        add(format!("{root}/topology/die_id"), "0");
        add(format!("{root}/topology/thread_siblings_list"), &cpu.to_string());
        let package = if cpu < 2 { "0-1" } else { "2-3" };
        for (index, level, kind, size, sets, shared) in [
            (0, "1", "Data", "32K", "64", cpu.to_string()),
            (1, "2", "Unified", "1024K", "2048", package.to_owned()),
        ] {
            let root = format!("{root}/cache/index{index}");
            add(format!("{root}/level"), level);
            add(format!("{root}/type"), kind);
            add(format!("{root}/size"), size);
            add(format!("{root}/coherency_line_size"), "64");
            add(format!("{root}/ways_of_associativity"), "8");
            add(format!("{root}/number_of_sets"), sets);
            add(format!("{root}/shared_cpu_list"), &shared);
        }
    }
    add("/proc/version".to_owned(), "Linux version 6.12.1 (x@y) (gcc) #1 SMP");
    files
}

/// The machine.
pub fn plain() -> Memory {
    files().iter().fold(Memory::new(), |files, (path, text)| files.file(path, text))
}

/// The machine with devices: a bridge of node 1 with a network card and an NVMe disk behind it, a GPU
/// on node 0, and a network interface of a platform device.
pub fn with_pci(files: Memory) -> Memory {
    let root = "/sys/devices/pci0000:00";
    let behind = format!("{root}/0000:00:01.0");
    let function = |files: Memory, folder: &str, class: &str, node: &str| {
        let address = folder.rsplit('/').next().unwrap_or_default();
        files
            .file(&format!("{folder}/class"), format!("{class}\n"))
            .file(&format!("{folder}/vendor"), "0x10de\n")
            .file(&format!("{folder}/device"), "0x1234\n")
            .file(&format!("{folder}/numa_node"), format!("{node}\n"))
            .file(&format!("{folder}/local_cpulist"), "0-1\n")
            .link_to(&format!("{PCI}/{address}"), &format!("../../..{}", folder.trim_start_matches("/sys")))
    };
    let files = function(files, &behind, "0x060400", "1");
    let files = function(files, &format!("{root}/0000:00:02.0"), "0x030200", "0");
    let files = function(files, &format!("{behind}/0000:01:00.0"), "0x020000", "-1");
    let files = function(files, &format!("{behind}/0000:01:00.1"), "0x010802", "-1");
    let named = [
        ("net", "eth0", format!("{behind}/0000:01:00.0/net/eth0")),
        ("infiniband", "mlx5_0", format!("{behind}/0000:01:00.0/infiniband/mlx5_0")),
        ("nvme", "nvme0", format!("{behind}/0000:01:00.1/nvme/nvme0")),
        ("block", "nvme0n1", format!("{behind}/0000:01:00.1/nvme/nvme0/nvme0n1")),
        ("block", "nvme0n1p1", format!("{behind}/0000:01:00.1/nvme/nvme0/nvme0n1/nvme0n1p1")),
        ("block", "loop0", "/sys/devices/virtual/block/loop0".to_owned()),
        ("drm", "card0", format!("{root}/0000:00:02.0/drm/card0")),
        ("drm", "card0-HDMI-A-1", format!("{root}/0000:00:02.0/drm/card0/card0-HDMI-A-1")),
        ("drm", "renderD128", format!("{root}/0000:00:02.0/drm/renderD128")),
        ("net", "lo", "/sys/devices/virtual/net/lo".to_owned()),
        ("net", "br0", "/sys/devices/virtual/net/br0".to_owned()),
        ("net", "eth1", "/sys/devices/platform/LNRO0005:00/virtio0/net/eth1".to_owned()),
    ];
    let files = files.file("/sys/devices/platform/LNRO0005:00/numa_node", "1\n");
    named.iter().fold(files, |files, (class, name, path)| {
        files.directory(path).link_to(
            &format!("/sys/class/{class}/{name}"),
            &format!("../..{}", path.trim_start_matches("/sys")),
        )
    })
}
