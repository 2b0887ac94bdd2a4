//! How busy the system is: load, stolen time, stalls, clock speeds, counters of nodes and zones.
//!
//! Each function reads one kind of file and answers `None` where this kernel does not have it.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::printable::printable;
use nodewise_machine::{NodeCounters, NodeId, NodeSet};

use crate::file::{self, FileError};
use crate::parse::buddyinfo::{self, FreeBlocks};
use crate::parse::counters::{self, Counters};
use crate::parse::loadavg::{self, LoadAverage};
use crate::parse::pressure::{self, Pressure};
use crate::parse::proc_stat::{self, ProcStat};
use crate::parse::zoneinfo::{self, ZoneInfo};
use crate::parse::{Parsed, number};
use crate::paths;
use crate::sysfs::number_behind;
use crate::tree::{ReadError, Tree};

/// Load averages: `/proc/loadavg`.
///
/// # Errors
/// A file that cannot be read or does not parse.
pub fn load_average(tree: &Tree) -> Result<Option<LoadAverage>, FileError> {
    file::value(tree, "/proc/loadavg", loadavg::parse)
}

/// Reads the times of the CPUs by use: `/proc/stat`. Two readings give the share that was stolen.
///
/// # Errors
/// A file that cannot be read.
pub fn cpu_times(tree: &Tree) -> Result<Option<Parsed<ProcStat>>, ReadError> {
    file::parsed(tree, "/proc/stat", proc_stat::parse)
}

/// A resource that tasks wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A CPU to run on.
    Cpu,
    Memory,
    Io,
}

/// Stalls on a resource: `/proc/pressure/`, Linux 4.20. Off unless the kernel was booted with `psi=1` or
/// built so.
///
/// # Errors
/// A file that cannot be read.
pub fn pressure(tree: &Tree, resource: Resource) -> Result<Option<Parsed<Pressure>>, ReadError> {
    let name = match resource {
        Resource::Cpu => "cpu",
        Resource::Memory => "memory",
        Resource::Io => "io",
    };
    file::parsed(tree, &format!("/proc/pressure/{name}"), pressure::parse)
}

/// Zones of all nodes: `/proc/zoneinfo`.
///
/// # Errors
/// A file that cannot be read.
pub fn zones(tree: &Tree) -> Result<Option<Parsed<ZoneInfo>>, ReadError> {
    file::parsed(tree, "/proc/zoneinfo", zoneinfo::parse)
}

/// Distance between the watermarks, in ten-thousandths of a zone: `/proc/sys/vm/watermark_scale_factor`,
/// Linux 4.6.
///
/// # Errors
/// A file that cannot be read or does not parse.
pub fn watermark_scale(tree: &Tree) -> Result<Option<u64>, FileError> {
    file::value(tree, "/proc/sys/vm/watermark_scale_factor", number::number)
}

/// Free blocks of all zones: `/proc/buddyinfo`.
///
/// # Errors
/// A file that cannot be read.
pub fn free_blocks(tree: &Tree) -> Result<Option<Parsed<Vec<FreeBlocks>>>, ReadError> {
    file::parsed(tree, "/proc/buddyinfo", buddyinfo::parse)
}

/// Counters of the whole system: `/proc/vmstat`.
///
/// # Errors
/// A file that cannot be read.
pub fn counters(tree: &Tree) -> Result<Option<Parsed<Counters>>, ReadError> {
    file::parsed(tree, "/proc/vmstat", counters::parse)
}

/// Counters of one node: `/sys/devices/system/node/nodeN/vmstat`, Linux 2.6.33.
///
/// # Errors
/// A file that cannot be read.
pub fn node_counters(tree: &Tree, node: NodeId) -> Result<Option<Parsed<Counters>>, ReadError> {
    file::parsed(tree, &paths::of_node(node, "vmstat"), counters::parse)
}

/// Reads a node's allocation counters since boot; `None` when the file is missing.
///
/// # Errors
/// A file that cannot be read.
pub fn numastat(tree: &Tree, node: NodeId) -> Result<Option<Parsed<NodeCounters<Option<u64>>>>, ReadError> {
    let path = paths::of_node(node, "numastat");
    let parsed = file::parsed(tree, &path, counters::parse)?;
    Ok(parsed.map(|Parsed { value, problems }| {
        let value = NodeCounters::from_names(|name| value.get(name));
        Parsed { value, problems }
    }))
}

/// Reads the allocation counters of these nodes; those without the file are left out.
///
/// # Errors
/// The first file that cannot be read.
pub fn numastats(
    tree: &Tree,
    nodes: &NodeSet,
) -> Result<BTreeMap<NodeId, NodeCounters<Option<u64>>>, ReadError> {
    let mut stats = BTreeMap::new();
    for node in nodes {
        if let Some(parsed) = numastat(tree, node)? {
            stats.insert(node, parsed.value);
        }
    }
    Ok(stats)
}

/// How the clock of the CPUs is driven. Empty where the kernel does not drive it, as in most virtual
/// machines.
///
/// # Source
/// `/sys/devices/system/cpu/cpufreq/policyN/`, or `cpuN/cpufreq/` before Linux 4.3.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Frequencies {
    /// Governors and how many policies use each: `performance`, `powersave`.
    pub governors: BTreeMap<String, usize>,
    /// The lowest and highest current frequency, kHz.
    pub current_khz: Option<(u64, u64)>,
    /// The lowest frequency that any policy allows, kHz.
    pub least_khz: Option<u64>,
    /// The highest frequency that any policy allows, kHz.
    pub most_khz: Option<u64>,
}

/// Reads the governors and frequencies of all CPUs. What cannot be read is left out: some files are
/// closed to users, and some drivers answer with `<unknown>`.
pub fn frequencies(tree: &Tree) -> Frequencies {
    let mut frequencies = Frequencies::default();
    for folder in policies(tree) {
        let khz =
            |file: &str| file::value(tree, &format!("{folder}/{file}"), number::number::<u64>).ok().flatten();
        if let Ok(Some(governor)) = tree.read_text(&format!("{folder}/scaling_governor")) {
            *frequencies.governors.entry(printable(governor.trim()).into_owned()).or_default() += 1;
        }
        if let Some(now) = khz("scaling_cur_freq") {
            let (low, high) = frequencies.current_khz.unwrap_or((now, now));
            frequencies.current_khz = Some((low.min(now), high.max(now)));
        }
        let least = khz("scaling_min_freq");
        frequencies.least_khz = frequencies.least_khz.into_iter().chain(least).min();
        frequencies.most_khz = frequencies.most_khz.into_iter().chain(khz("scaling_max_freq")).max();
    }
    frequencies
}

fn policies(tree: &Tree) -> Vec<String> {
    let below = |root: &str, prefix: &str, rest: &str| -> Vec<String> {
        let names = tree.list(root).ok().flatten().unwrap_or_default();
        let names = names.into_iter().filter(|name| number_behind(name, prefix).is_some());
        names.map(|name| format!("{root}/{name}{rest}")).collect()
    };
    let policies = below("/sys/devices/system/cpu/cpufreq", "policy", "");
    if policies.is_empty() { below("/sys/devices/system/cpu", "cpu", "/cpufreq") } else { policies }
}

/// Reads the CPUs' own name: on x86 `model name`, on other architectures `cpu`, `uarch`, or on
/// boards the line `Model` or `Hardware`. Fit for a terminal.
///
/// # Source
/// `/proc/cpuinfo`.
pub fn cpu_model(tree: &Tree) -> Option<String> {
    const NAMES: [&str; 5] = ["model name", "cpu", "uarch", "Model", "Hardware"];
    let mut found: [Option<String>; NAMES.len()] = Default::default();
    let read = tree.read_lines("/proc/cpuinfo", &mut |line| {
        let Some((name, value)) = line.split_once(':') else { return };
        if let Some(at) = NAMES.iter().position(|wanted| *wanted == name.trim_end()) {
            found[at].get_or_insert_with(|| printable(value.trim()).into_owned());
        }
    });
    read.ok()?;
    found.into_iter().flatten().find(|model| !model.is_empty())
}

/// The revision of the CPUs' microcode: one, or several where CPUs differ; `None` where the kernel does
/// not say, as on other architectures than x86. Fit for a terminal.
///
/// # Source
/// `microcode` in `/proc/cpuinfo`, Linux 3.3.
pub fn microcode(tree: &Tree) -> Option<String> {
    let mut found = BTreeSet::new();
    let read = tree.read_lines("/proc/cpuinfo", &mut |line| {
        if let Some((_, value)) = line.split_once(':').filter(|(name, _)| name.trim_end() == "microcode") {
            found.insert(printable(value.trim()).into_owned());
        }
    });
    read.ok()?;
    let text = found.into_iter().collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then_some(text)
}

/// The hypervisor that the machine runs on, by the name that the firmware gives it; `None` where
/// nothing says that there is one. Fit for a terminal.
///
/// # Source
/// `/sys/hypervisor/type` for Xen; else the flag `hypervisor` in `/proc/cpuinfo` with the vendor in
/// `/sys/class/dmi/id/sys_vendor`.
pub fn hypervisor(tree: &Tree) -> Option<String> {
    let line =
        |path: &str| tree.read_text(path).ok().flatten().map(|text| printable(text.trim()).into_owned());
    if let Some(kind) = line("/sys/hypervisor/type").filter(|kind| !kind.is_empty()) {
        return Some(kind);
    }
    let mut guest = false;
    tree.read_lines("/proc/cpuinfo", &mut |line| {
        let flags = line.strip_prefix("flags").and_then(|rest| rest.split_once(':'));
        guest |=
            flags.is_some_and(|(_, flags)| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"));
    })
    .ok()?;
    let vendor = line("/sys/class/dmi/id/sys_vendor").filter(|vendor| !vendor.is_empty());
    guest.then(|| vendor.unwrap_or_else(|| "unnamed".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Memory;

    #[test]
    fn counters_of_nodes_are_named() {
        let tree = Tree::memory(Memory::new().file(
            "/sys/devices/system/node/node8/numastat",
            "numa_hit 5\nnuma_miss 4\nnuma_foreign 3\ninterleave_hit 2\nlocal_node 1\n",
        ));
        let stats = numastats(&tree, &NodeSet::from([0, 8])).unwrap();
        let expected = NodeCounters {
            hit: Some(5),
            miss: Some(4),
            foreign: Some(3),
            interleave_hit: Some(2),
            local: Some(1),
            other: None,
        };
        assert_eq!(stats, BTreeMap::from([(NodeId::new(8), expected)]));
    }

    #[test]
    fn frequencies_are_summed_up() {
        let policy = |files: Memory, folder: &str, governor: &str, now: &str, most: &str| {
            files
                .file(&format!("{folder}/scaling_governor"), governor)
                .file(&format!("{folder}/scaling_cur_freq"), now)
                .file(&format!("{folder}/scaling_max_freq"), most)
        };
        let root = "/sys/devices/system/cpu/cpufreq";
        let files = policy(Memory::new(), &format!("{root}/policy0"), "powersave\n", "800000\n", "3000000\n");
        let files = policy(files, &format!("{root}/policy4"), "powersave\n", "<unknown>\n", "2000000\n");
        let files = policy(files, &format!("{root}/policy8"), "perf\u{1b}\n", "1200000\n", "2000000\n");
        let found = frequencies(&Tree::memory(files));
        assert_eq!(
            found.governors,
            BTreeMap::from([("powersave".to_owned(), 2), ("perf\\x1b".to_owned(), 1)])
        );
        assert_eq!(
            (found.current_khz, found.least_khz, found.most_khz),
            (Some((800_000, 1_200_000)), None, Some(3_000_000))
        );
        let old = policy(Memory::new(), "/sys/devices/system/cpu/cpu1/cpufreq", "ondemand\n", "5\n", "6\n");
        assert_eq!(frequencies(&Tree::memory(old)).current_khz, Some((5, 5)));
        assert_eq!(frequencies(&Tree::memory(Memory::new())), Frequencies::default());
    }

    #[test]
    fn missing_files_are_none_and_broken_ones_are_told() {
        let tree = Tree::memory(Memory::new().file("/proc/loadavg", "x\n"));
        assert_eq!(
            load_average(&tree).unwrap_err().to_string(),
            "/proc/loadavg:1: expected load averages as in \"0.50 0.40 0.30 1/89 8580\", found \"x\""
        );
        assert!(cpu_times(&tree).unwrap().is_none());
        assert!(pressure(&tree, Resource::Memory).unwrap().is_none());
        assert!(zones(&tree).unwrap().is_none() && free_blocks(&tree).unwrap().is_none());
        assert!(counters(&tree).unwrap().is_none());
        assert!(node_counters(&tree, NodeId::new(0)).unwrap().is_none());
    }

    #[test]
    fn every_file_of_this_kernel_parses() {
        let tree = Tree::live();
        load_average(&tree).unwrap();
        for resource in [Resource::Cpu, Resource::Memory, Resource::Io] {
            assert!(
                pressure(&tree, resource)
                    .is_ok_and(|parsed| parsed.is_none_or(|parsed| parsed.problems.is_empty()))
            );
        }
        assert!(cpu_times(&tree).unwrap().is_none_or(|parsed| parsed.problems.is_empty()));
        assert!(zones(&tree).unwrap().is_none_or(|parsed| parsed.problems.is_empty()));
        assert!(free_blocks(&tree).unwrap().is_none_or(|parsed| parsed.problems.is_empty()));
        assert!(counters(&tree).unwrap().is_none_or(|parsed| parsed.problems.is_empty()));
    }

    #[test]
    fn microcode_is_told_once_for_all_cpus_that_have_the_same() {
        let of = |text: &str| microcode(&Tree::memory(Memory::new().file("/proc/cpuinfo", text)));
        let two = "processor\t: 0\nmicrocode\t: 0x2b\n\nprocessor\t: 1\nmicrocode\t: 0x2b\n";
        assert_eq!(of(two).as_deref(), Some("0x2b"));
        assert_eq!(of(&two.replacen("0x2b", "0x1\u{1b}", 1)).as_deref(), Some("0x1\\x1b, 0x2b"));
        assert_eq!(of("processor\t: 0\n"), None);
    }

    #[test]
    fn the_model_of_the_cpus_has_a_name_on_every_architecture() {
        let model = |text: &str| cpu_model(&Tree::memory(Memory::new().file("/proc/cpuinfo", text)));
        assert_eq!(
            model("processor\t: 0\nmodel name\t: A CPU @ 2 GHz\n\nmodel name\t: other\n").as_deref(),
            Some("A CPU @ 2 GHz")
        );
        assert_eq!(model("cpu\t\t: POWER9, altivec\n").as_deref(), Some("POWER9, altivec"));
        assert_eq!(model("BogoMIPS\t: 108\nModel\t\t: Raspberry Pi 5\n").as_deref(), Some("Raspberry Pi 5"));
        assert_eq!(model("nothing\n"), None);
        assert_eq!(model("model name\t: \u{1b}[2J\n").as_deref(), Some("\\x1b[2J"));
    }

    #[test]
    fn a_hypervisor_is_told_by_the_flags_and_named_by_the_firmware() {
        let cpus = |flags: &str| Memory::new().file("/proc/cpuinfo", format!("flags\t\t: fpu {flags}\n"));
        assert_eq!(hypervisor(&Tree::memory(cpus("sse"))), None);
        assert_eq!(hypervisor(&Tree::memory(cpus("hypervisor"))).as_deref(), Some("unnamed"));
        let named = cpus("hypervisor").file("/sys/class/dmi/id/sys_vendor", "QEMU\n");
        assert_eq!(hypervisor(&Tree::memory(named)).as_deref(), Some("QEMU"));
        let xen = Memory::new().file("/sys/hypervisor/type", "xen\n");
        assert_eq!(hypervisor(&Tree::memory(xen)).as_deref(), Some("xen"));
    }
}
