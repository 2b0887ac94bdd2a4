//! Machines of every kind, sensible or not, for the property tests.

use nodewise_machine::{
    Access, AccessClass, Bytes, Cache, CacheKind, ClusterId, CoreId, Cpu, CpuId, CpuSet, Device, DeviceClass,
    DeviceName, HugePool, KernelRelease, Machine, MeminfoField, MeminfoValue, Node, NodeId, NodeMatrix,
    NodeSet, Oddity, OddityKind, Origin, PackageId, PciAddress, Tier, TierId,
};
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop, prop_oneof};

/// The parts that a node is made from.
#[derive(Clone, Debug)]
struct NodeSeed {
    gap: u32,
    cores: u32,
    threads: u32,
    memory: Option<u64>,
    free: Option<u64>,
    package: Option<u32>,
    huge: Option<u64>,
    tier: Option<u32>,
}

fn node_seed() -> impl Strategy<Value = NodeSeed> {
    let size = || {
        prop_oneof![
            Just(None),
            Just(Some(0)),
            any::<u64>().prop_map(Some),
            (1u64..64).prop_map(|gib| Some(gib << 30))
        ]
    };
    let package =
        prop_oneof![8 => (0u32..4).prop_map(Some), 1 => Just(None), 1 => any::<u32>().prop_map(Some)];
    let cores = prop_oneof![3 => 0u32..9, 1 => 9u32..70];
    (
        0u32..3,
        cores,
        1u32..5,
        size(),
        size(),
        package,
        prop::option::of(any::<u64>()),
        prop::option::of(0u32..3),
    )
        .prop_map(|(gap, cores, threads, memory, free, package, huge, tier)| NodeSeed {
            gap,
            cores,
            threads,
            memory,
            free,
            package,
            huge,
            tier,
        })
}

/// Nodes that differ, or many that are alike.
fn node_seeds() -> impl Strategy<Value = Vec<NodeSeed>> {
    prop_oneof![
        6 => prop::collection::vec(node_seed(), 0..7),
        2 => prop::collection::vec(node_seed(), 7..24),
        1 => (node_seed(), 1usize..130).prop_map(|(seed, count)| {
            let seed = NodeSeed { cores: seed.cores.min(12), ..seed };
            (0..count).map(|at| NodeSeed { package: seed.package.map(|_| at as u32 / 2), ..seed.clone() }).collect()
        }),
    ]
}

/// Text as it may be in a kernel's file: mostly a word, sometimes anything.
fn foreign() -> BoxedStrategy<String> {
    prop_oneof![3 => "[a-z]{1,8}[0-9]{0,2}", 1 => any::<String>(), 1 => "[\u{1b}\u{202e}\u{0}<&>\"a日\u{fe0f} ,/-]{0,80}"]
        .boxed()
}

fn device() -> impl Strategy<Value = Device> {
    let name = (prop::sample::select(DeviceClass::ALL.to_vec()), foreign())
        .prop_map(|(class, name)| DeviceName { class, name });
    let pci = (0u32..3, any::<u8>(), 0u8..32, 0u8..8)
        .prop_map(|(domain, bus, device, function)| PciAddress { domain, bus, device, function });
    (
        prop::option::of(pci),
        prop::option::of(prop::sample::select(vec![0x03_02_00u32, 0x12_00_00, 0x02_00_00, 0x06_04_00])),
        prop::option::of(any::<u16>()),
        prop::collection::vec(name, 0..3),
        prop::option::of(0u32..12),
    )
        .prop_map(|(pci, class_code, vendor, names, node)| Device {
            pci,
            class_code,
            vendor,
            device: vendor,
            names,
            node: node.map(NodeId::new),
            local_cpus: CpuSet::new(),
            link: None,
            dax: None,
        })
}

/// Facts of a machine beside its nodes.
#[derive(Clone, Debug)]
struct Rest {
    distances: Vec<u32>,
    missing: bool,
    devices: Vec<Device>,
    oddities: Vec<String>,
    words: Vec<String>,
    cache: (u8, usize, Option<u64>),
    cost: Option<u32>,
    shared_cpus: bool,
    offline: usize,
    allowed: Option<u32>,
}

fn rest() -> impl Strategy<Value = Rest> {
    let values = prop_oneof![
        prop::collection::vec(Just(20u32), 1..2),
        prop::collection::vec(prop::sample::select(vec![10u32, 11, 16, 20, 40, 255]), 1..64),
        prop::collection::vec(any::<u32>(), 1..16),
    ];
    (
        values,
        any::<bool>(),
        prop::collection::vec(device(), 0..14),
        prop::collection::vec(foreign(), 0..40),
        prop::collection::vec(foreign(), 6),
        (1u8..5, 1usize..9, prop::option::of(any::<u64>())),
        prop::option::of(any::<u32>()),
        prop::bool::weighted(0.1),
        0usize..3,
        prop::option::of(0u32..8),
    )
        .prop_map(
            |(distances, missing, devices, oddities, words, cache, cost, shared_cpus, offline, allowed)| {
                Rest {
                    distances,
                    missing,
                    devices,
                    oddities,
                    words,
                    cache,
                    cost,
                    shared_cpus,
                    offline,
                    allowed,
                }
            },
        )
}

/// Any machine.
pub(crate) fn any_machine() -> impl Strategy<Value = Machine> {
    (node_seeds(), rest()).prop_map(|(nodes, rest)| build(&nodes, rest))
}

fn build(seeds: &[NodeSeed], rest: Rest) -> Machine {
    let mut machine = Machine::new(Origin::Capture(rest.words[0].clone()));
    machine.architecture = Some(rest.words[1].clone());
    machine.kernel = KernelRelease::new(&format!("6.12{}", rest.words[2]));
    let mut id = 0;
    for seed in seeds {
        id += seed.gap;
        add_node(&mut machine, NodeId::new(id), seed);
        id += 1;
    }
    add_caches(&mut machine, rest.cache);
    add_distances(&mut machine, &rest);
    add_accesses(&mut machine, rest.cost);
    machine.devices = rest.devices;
    machine.settings.transparent_hugepage = Some(rest.words[3].clone());
    machine.settings.command_line =
        Some(format!("numa=fake=4 {} hugepages={}", rest.words[4], rest.words[5]));
    machine.settings.interleave_weights =
        machine.nodes.keys().map(|node| (*node, node.number() % 3)).collect();
    machine.oddities = rest
        .oddities
        .into_iter()
        .map(|text| Oddity::in_file(OddityKind::Unparseable, text.clone(), text))
        .collect();
    if rest.shared_cpus {
        let all = machine.cpu_ids();
        machine.nodes.values_mut().for_each(|node| node.cpus = all.clone());
    }
    for cpu in machine.cpus.values_mut().take(rest.offline) {
        cpu.online = false;
    }
    machine.allowed_cpus = rest.allowed.map(|last| CpuSet::range(CpuId::new(0), CpuId::new(last)));
    machine.allowed_nodes = rest.allowed.map(|last| NodeSet::range(NodeId::new(0), NodeId::new(last)));
    machine
}

fn add_node(machine: &mut Machine, id: NodeId, seed: &NodeSeed) {
    let mut node = Node::new(id);
    let field = |name: &str, size| MeminfoField {
        name: name.to_owned(),
        value: MeminfoValue::Size(Bytes::new(size)),
    };
    node.meminfo.extend(seed.memory.map(|size| field("MemTotal", size)));
    node.meminfo.extend(seed.free.map(|size| field("MemFree", size)));
    node.huge_pools.extend(seed.huge.map(|total| HugePool {
        page_size: Bytes::from_mib(2),
        total: Some(total),
        free: seed.free,
        surplus: None,
    }));
    for core in 0..seed.cores {
        let first = machine.cpus.len() as u32;
        let siblings = CpuSet::range(CpuId::new(first), CpuId::new(first + seed.threads - 1));
        for cpu in &siblings {
            machine.cpus.insert(
                cpu,
                Cpu {
                    node: Some(id),
                    core: Some(CoreId::new(core)),
                    cluster: Some(ClusterId::new(core / 4)),
                    package: seed.package.map(PackageId::new),
                    siblings: siblings.clone(),
                    capacity: Some(if core % 3 == 0 { 512 } else { 1024 }),
                    ..Cpu::new(cpu)
                },
            );
            node.cpus.insert(cpu);
        }
    }
    machine.nodes.insert(id, node);
    if let Some(tier) = seed.tier.map(TierId::new) {
        match machine.tiers.iter_mut().find(|other| other.id == tier) {
            Some(tier) => {
                tier.nodes.insert(id);
            }
            None => machine.tiers.push(Tier { id: tier, nodes: NodeSet::from_iter([id]) }),
        }
    }
}

fn add_caches(machine: &mut Machine, (level, share, size): (u8, usize, Option<u64>)) {
    let cpus: Vec<CpuId> = machine.cpus.keys().copied().collect();
    for cpus in cpus.chunks(share) {
        machine.caches.push(Cache {
            level,
            kind: CacheKind::Unified,
            size: size.map(Bytes::new),
            line_size: Some(64),
            ways: None,
            sets: None,
            cpus: cpus.iter().copied().collect(),
        });
    }
}

fn add_distances(machine: &mut Machine, rest: &Rest) {
    let nodes: Vec<NodeId> = machine.nodes.keys().copied().collect();
    machine.distances = NodeMatrix::new(nodes.iter().copied());
    let mut values = rest.distances.iter().cycle();
    for from in &nodes {
        for to in &nodes {
            let value = if from == to { Some(10) } else { values.next().copied() };
            if let Some(value) = value.filter(|value| !rest.missing || value % 5 != 1) {
                machine.distances.set(*from, *to, value);
            }
        }
    }
}

fn add_accesses(machine: &mut Machine, cost: Option<u32>) {
    let nodes = machine.node_ids();
    for target in &nodes {
        machine.accesses.extend(cost.map(|cost| Access {
            target,
            class: if cost % 2 == 0 { AccessClass::Any } else { AccessClass::Cpu },
            initiators: nodes.iter().take(cost as usize % 5).collect(),
            read_latency_ns: Some(cost),
            write_latency_ns: Some(cost / 2),
            read_bandwidth_mb_per_s: Some(cost),
            write_bandwidth_mb_per_s: None,
        }));
    }
}
