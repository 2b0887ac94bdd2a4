//! Captures of real machines: each must load in full, its hazards survived and reported, and say what
//! `numactl --hardware` says wherever that is right.
//!
//! The captures are in `data`, or in the folder that `NODEWISE_CORPUS` names.

mod numactl;
mod topology;

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use nodewise_machine::memory_slot::peak::UnknownPeak;
use nodewise_machine::{Machine, NodeId, NodeSet, Oddity, OddityKind as Kind, Origin, SlotState};
use nodewise_source::capture::{Capture, Identity};
use nodewise_source::tree::Tree;
use nodewise_source::{Detail, machine_file, sysfs, written};

/// The known facts about a capture beside numactl's output.
struct Case {
    name: &'static str,
    /// Why it is in the corpus.
    why: &'static str,
    /// The kinds of oddity that must be reported, and no others.
    oddities: &'static [Kind],
    /// Where numactl's output is wrong.
    numactl: Numactl,
}

/// How far numactl's output is right.
#[derive(Clone, Copy, PartialEq)]
enum Numactl {
    Right,
    /// Its lists of CPUs are empty: the library took its mask width from the machine it ran on.
    WrongCpus,
    /// Its one distance is the first of a row of two.
    WrongDistances,
    /// There are no nodes, so there is not output.
    NoOutput,
}

const fn case(name: &'static str, why: &'static str, oddities: &'static [Kind]) -> Case {
    Case { name, why, oddities, numactl: Numactl::Right }
}

impl Case {
    const fn numactl(self, numactl: Numactl) -> Self {
        Self { numactl, ..self }
    }
}

const CASES: [Case; 19] = [
    case(
        "128arm-2pa2n8cluster4co",
        "clusters; NUL bytes behind lists; die id -1; an L3 that is larger than its ways and sets make",
        &[Kind::Disagreement, Kind::StrayBytes],
    ),
    case(
        "16amd64-4n4c-cgroup-distance-merge",
        "a cpuset without prefixes beside a decoy hierarchy; empty has_cpu",
        &[Kind::Disagreement, Kind::Unparseable, Kind::StrayBytes, Kind::Restricted],
    )
    .numactl(Numactl::WrongCpus),
    case(
        "16amd64-8n2c-cpusets",
        "an offline CPU that cpulist still names; the cpuset file system",
        &[Kind::Disagreement, Kind::CpuOffline, Kind::Restricted],
    ),
    case(
        "16em64t-4s2c2t-offlines",
        "no online list, no cpulist; offline CPUs in a node",
        &[Kind::CpuNotOnline, Kind::CpuOffline],
    ),
    case("20em64t-hybrid-1p6c2t+2ca4co1t", "hybrid CPUs", &[]),
    case(
        "20s390-2g6s4c",
        "no nodes; books and drawers; package id -1; release \"dummy\"",
        &[Kind::NoNodes, Kind::Unparseable],
    )
    .numactl(Numactl::NoOutput),
    case("256ia64-64n2s2c", "64 nodes; no online lists at all", &[]).numactl(Numactl::WrongCpus),
    case("2arm-2c", "no nodes", &[Kind::NoNodes]).numactl(Numactl::NoOutput),
    case("32amd64-4s2n4c-cgroup2", "a cpuset of cgroup version 2", &[Kind::StrayBytes, Kind::Restricted]),
    case(
        "32em64t-2n8c+dax+nvme+mic+dimms",
        "PCI devices, disks, networks, persistent memory",
        &[Kind::StrayBytes],
    ),
    case(
        "48amd64-4pa2n6c-sparse",
        "node numbers with holes that not all files know",
        &[Kind::Disagreement, Kind::Unparseable, Kind::StrayBytes],
    ),
    case(
        "4fake-4gr1nu1pu",
        "no distances, hardly any other file",
        &[Kind::DistanceMissing, Kind::Restricted],
    ),
    case(
        "8em64t-2s2ca2c-buggynuma",
        "the same CPUs in eight nodes, all at distance 10",
        &[
            Kind::Disagreement,
            Kind::Unparseable,
            Kind::StrayBytes,
            Kind::CpuInSeveralNodes,
            Kind::Nominal,
            Kind::DistanceLocalOffDiagonal,
        ],
    ),
    case("8ia64-2s2c2t", "distance 0; caches that name no CPU", &[Kind::Disagreement, Kind::DistanceInvalid])
        .numactl(Numactl::WrongCpus),
    case("96em64t-4no4pa3ca2co", "several packages in a node; masks only", &[]),
    case(
        "fakememinitiators-1np2c+1npp+gi",
        "memory without CPUs, CPUs without memory, an initiator that is no CPU",
        &[],
    ),
    case("memorysidecaches", "caches in front of memory; latencies of 0", &[]),
    case(
        "nvidiagpunumanodes",
        "nodes 250-255 are the memory of GPUs; cpulist names CPUs that are not there",
        &[Kind::Disagreement, Kind::Restricted],
    ),
    case(
        "offline-cpu0-node0",
        "only node 1 is online; a row of two distances",
        &[Kind::Disagreement, Kind::NodeMissing, Kind::CpuInNoNode, Kind::CpuOffline],
    )
    .numactl(Numactl::WrongDistances),
];

fn corpus() -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    std::env::var_os("NODEWISE_CORPUS").map_or(data, PathBuf::from)
}

fn main() {
    let arguments = Arguments::from_args();
    let trials = trials(&corpus());
    libtest_mimic::run(&arguments, trials).exit();
}

fn trials(folder: &Path) -> Vec<Trial> {
    let mut trials: Vec<Trial> = CASES
        .iter()
        .map(|case| {
            let folder = folder.to_owned();
            Trial::test(format!("corpus::{}", case.name), move || check(case, &folder))
        })
        .collect();
    let known = |name: &str| CASES.iter().any(|case| case.name == name);
    let captures = std::fs::read_dir(folder.join("captures")).into_iter().flatten().flatten();
    for path in captures.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.split(".tar").next().unwrap_or_default().to_owned();
        if !known(&name) {
            trials.push(Trial::test(format!("corpus::other::{name}"), move || check_unknown(&path)));
        }
    }
    trials.extend(topology::trials(folder));
    trials.push(Trial::test("corpus::a_folder_loads_as_its_archive_does", {
        let folder = folder.to_owned();
        move || check_folder(&folder)
    }));
    trials
}

fn load(tree: &Tree) -> Machine {
    sysfs::load(tree, Origin::Capture("corpus".to_owned()), Detail::Full)
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(Failed::from(message())) }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Failed> {
    ensure(found == expected, || format!("{what}\n   found {found:?}\nexpected {expected:?}"))
}

fn check(case: &Case, folder: &Path) -> Result<(), Failed> {
    let tree = Tree::open(&folder.join("captures").join(format!("{}.tar.bz2", case.name)))?;
    let machine = load(&tree);
    let mut kinds: Vec<Kind> = machine.oddities.iter().map(|oddity| oddity.kind).collect();
    kinds.sort();
    kinds.dedup();
    let mut expected = case.oddities.to_vec();
    expected.sort();
    ensure(kinds == expected, || {
        let told: Vec<String> = machine.oddities.iter().map(Oddity::to_string).collect();
        format!(
            "oddities of a capture with {}: expected {expected:?}, found {kinds:?}\n{}",
            case.why,
            told.join("\n")
        )
    })?;
    check_round_trips(&tree, &machine)?;
    check_written(&machine)?;
    check_facts(case.name, &machine)?;
    if case.numactl == Numactl::NoOutput {
        return same("nodes", machine.nodes.len(), 0);
    }
    let text = std::fs::read_to_string(folder.join("numactl-H").join(format!("{}.txt", case.name)))?;
    check_numactl(&machine, &numactl::parse(&text)?, case.numactl)
}

/// Checks what must hold of any machine: it survives its JSON, and a capture of the capture loads alike.
fn check_round_trips(tree: &Tree, machine: &Machine) -> Result<(), Failed> {
    let json = machine_file::to_json(machine);
    same("the machine file", &machine_file::from_json(&json)?, machine)?;
    let capture = Capture::from_tree(tree, Identity::Without);
    let archive = capture.to_tar();
    for secret in ["HostName", "UUID=", "_serial", "product_uuid", "root@", "bgoglin@", "user.slice", "/home"]
    {
        let found = archive.windows(secret.len()).any(|window| window == secret.as_bytes());
        ensure(!found, || format!("a capture without identity holds {secret}"))?;
    }
    let mut again = load(&capture.tree());
    // What the process may use comes from control groups in these captures, and those are named
    // after users; without them it is not known.
    ensure(again.allowed_cpus.is_none() || again.allowed_cpus == machine.allowed_cpus, || {
        "allowed CPUs differ".into()
    })?;
    let restricted = |oddities: &[Oddity]| -> Vec<Oddity> {
        oddities.iter().filter(|oddity| oddity.kind != Kind::Restricted).cloned().collect()
    };
    let mut expected = machine.clone();
    expected.oddities = restricted(&machine.oddities);
    again.oddities = restricted(&again.oddities);
    again.allowed_cpus.clone_from(&machine.allowed_cpus);
    again.allowed_nodes.clone_from(&machine.allowed_nodes);
    again.settings.command_line.clone_from(&machine.settings.command_line);
    // Devices of software have names that people chose, and stay behind.
    let hardware = |machine: &mut Machine| {
        machine.devices.retain(|device| device.pci.is_some() || device.node.is_some())
    };
    hardware(&mut again);
    hardware(&mut expected);
    same("a capture of the capture", again, expected)
}

/// The files that are written of a machine say the same of its nodes, CPUs and caches.
fn check_written(machine: &Machine) -> Result<(), Failed> {
    let found = load(&written::tree_of(machine));
    same("nodes", &found.nodes, &machine.nodes)?;
    same("possible nodes", &found.possible_nodes, &machine.possible_nodes)?;
    same("distances", &found.distances, &machine.distances)?;
    same("attributes", &found.accesses, &machine.accesses)?;
    same("tiers", &found.tiers, &machine.tiers)?;
    same("CPUs", &found.cpus, &machine.cpus)?;
    same("caches", &found.caches, &machine.caches)
}

fn check_numactl(machine: &Machine, hardware: &numactl::Hardware, how: Numactl) -> Result<(), Failed> {
    same("nodes", machine.node_ids(), hardware.nodes.iter().map(|node| node.id).collect::<NodeSet>())?;
    for expected in &hardware.nodes {
        let node = &machine.nodes[&expected.id];
        if how != Numactl::WrongCpus {
            same(&format!("CPUs of node {}", node.id), &node.cpus, &expected.cpus)?;
        }
        let mib = |size: Option<nodewise_machine::Bytes>| size.map(nodewise_machine::Bytes::mib);
        same(&format!("size of node {}", node.id), mib(node.memory_total()), expected.size_mib)?;
        same(&format!("free memory of node {}", node.id), mib(node.memory_free()), expected.free_mib)?;
    }
    if how == Numactl::WrongDistances || hardware.distances.is_empty() {
        return Ok(());
    }
    let found: Vec<(NodeId, NodeId, u32)> =
        machine.distances.iter().map(|(from, to, distance)| (from, to, *distance)).collect();
    same("distances", found, hardware.distances.clone())
}

/// Facts that numactl does not print.
fn check_facts(name: &str, machine: &Machine) -> Result<(), Failed> {
    let n = NodeId::new;
    let packages = machine.packages().len();
    let cores = machine.cores().len();
    let caches = |level: u8| machine.caches.iter().filter(|cache| cache.level == level).count();
    let release = machine.kernel.as_ref().map(nodewise_machine::KernelRelease::version);
    match name {
        "128arm-2pa2n8cluster4co" => {
            same("packages, cores, L3", (packages, cores, caches(3)), (2, 128, 4))?;
            let clusters: std::collections::BTreeSet<_> =
                machine.cpus.values().filter_map(|cpu| cpu.cluster).collect();
            same("clusters", clusters.len(), 32)?;
            ensure(machine.cpus.values().all(|cpu| cpu.die.is_none()), || "a die of -1 is none".into())?;
            same(
                "release and page size",
                (release, machine.page_size.map(|size| size.get())),
                (Some((5, 15)), Some(4096)),
            )
        }
        "16em64t-4s2c2t-offlines" => {
            same("online", machine.online_cpus().to_string(), "0-1,3-4,6-12,15".into())
        }
        "20em64t-hybrid-1p6c2t+2ca4co1t" => {
            same("packages, cores, L3", (packages, cores, caches(3)), (1, 14, 1))
        }
        "20s390-2g6s4c" => {
            same("packages counted from their CPUs", (packages, machine.cpus.len(), caches(1)), (8, 20, 0))?;
            same("release", release, None)
        }
        "256ia64-64n2s2c" => {
            same("packages and CPUs", (packages, machine.cpus.len()), (128, 256))?;
            same("CPUs of node 63", machine.cpus_of(n(63)).to_string(), "252-255".into())
        }
        "16amd64-4n4c-cgroup-distance-merge" => {
            same("CPUs of node 3", machine.cpus_of(n(3)).to_string(), "12-15".into())
        }
        "8ia64-2s2c2t" => same("CPUs of node 0", machine.cpus_of(n(0)).to_string(), "0-7".into()),
        "offline-cpu0-node0" => {
            same("the distance of node 1 to itself", machine.distance(n(1), n(1)), Some(10))
        }
        "fakememinitiators-1np2c+1npp+gi" => {
            same("access attributes", machine.accesses.len(), 12)?;
            let access = machine.access(n(5), nodewise_machine::AccessClass::Any);
            same("read latency", access.and_then(|access| access.read_latency_ns), Some(8))?;
            same("initiators", access.map(|access| access.initiators.to_string()), Some("4".into()))?;
            same("generic initiator", machine.nodes[&n(4)].generic_initiator, Some(true))
        }
        "memorysidecaches" => {
            let cache = &machine.nodes[&n(0)].memory_side_caches[0];
            same("side cache", cache.size.map(|size| size.get()), Some(96 << 30))?;
            let access = machine.access(n(0), nodewise_machine::AccessClass::Any);
            same("a latency of 0 is not known", access.map(|access| access.read_latency_ns), Some(None))
        }
        "nvidiagpunumanodes" => same(
            "GPUs and page size",
            (machine.gpus().len(), machine.page_size.map(|size| size.get())),
            (6, Some(65536)),
        ),
        "32em64t-2n8c+dax+nvme+mic+dimms" => {
            let node =
                |text: &str| machine.device(&text.parse().expect("a device")).and_then(|device| device.node);
            same("PCI functions", machine.devices.iter().filter(|device| device.pci.is_some()).count(), 137)?;
            same("node of ib:mlx4_0", node("ib:mlx4_0"), Some(n(1)))?;
            same("node of block:sda, behind a bridge", node("block:sda"), Some(n(0)))?;
            same("node of block:nvme0n1, by its local CPUs", node("block:nvme0n1"), Some(n(0)))?;
            same("node of block:pmem1", node("block:pmem1"), Some(n(1)))?;
            check_memory_slots(machine)
        }
        _ => Ok(()),
    }
}

/// 24 slots, A of the first socket and B of the second, the first four with 4 GiB of DDR3 each.
fn check_memory_slots(machine: &Machine) -> Result<(), Failed> {
    let slots = &machine.memory_slots.slots;
    same("memory slots", slots.len(), 24)?;
    let installed =
        slots.iter().filter_map(|slot| Some((slot.locator.as_deref()?, slot.node, slot.module()?)));
    let seen: Vec<String> = installed
        .map(|(name, node, module)| {
            let (size, speed) = (module.size, module.configured_speed_mt_per_s);
            let part = module.part_number.as_deref();
            format!("{name} {node:?} {size:?} {:?} {speed:?} {:?} {part:?}", module.memory_type, module.ranks)
        })
        .collect();
    let expected: Vec<String> = [("A", 0), ("B", 1)]
        .into_iter()
        .flat_map(|(letter, node)| (1..=4).map(move |number| (letter, number, node)))
        .map(|(letter, number, node)| {
            let size = Some(nodewise_machine::Bytes::from_gib(4));
            let (node, kind, part) = (Some(NodeId::new(node)), Some("DDR3"), Some("HMT351R7CFR8C-PB"));
            format!("DIMM_{letter}{number} {node:?} {size:?} {kind:?} Some(1600) Some(2) {part:?}")
        })
        .collect();
    same("modules", seen, expected)?;
    same("empty slots", slots.iter().filter(|slot| slot.state == SlotState::Empty).count(), 16)?;
    // A1 to A12 are slots of the first socket, whichever their channel is: its peak is not known.
    let peaks = machine.memory_peaks(false);
    let unknown = Err(UnknownPeak::ChannelsUnknown);
    let expected = vec![(NodeId::new(0), unknown.clone()), (NodeId::new(1), unknown.clone())];
    same("peaks", peaks.nodes, expected)?;
    same("peak of the machine", peaks.machine, unknown)
}

/// A capture that this table does not know yet: it must load to something and survive its round trips.
fn check_unknown(path: &Path) -> Result<(), Failed> {
    let tree = Tree::open(path)?;
    let machine = load(&tree);
    ensure(!machine.cpus.is_empty() || !machine.nodes.is_empty(), || {
        "neither CPUs nor nodes were found".into()
    })?;
    same("the machine file", &machine_file::from_json(&machine_file::to_json(&machine))?, &machine)
}

fn check_folder(folder: &Path) -> Result<(), Failed> {
    let archive = folder.join("captures/fakememinitiators-1np2c+1npp+gi.tar.bz2");
    let unpacked = tempfile::tempdir()?;
    tar::Archive::new(bzip2::read::BzDecoder::new(std::fs::File::open(&archive)?)).unpack(unpacked.path())?;
    same("the machine", load(&Tree::open(unpacked.path())?), load(&Tree::open(&archive)?))
}
