use nodewise_machine::node::MemorySideCache;
use nodewise_machine::*;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option::of;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use super::*;

mod memory_slots;

fn node_ids() -> impl Strategy<Value = NodeSet> {
    btree_set(0u32..300, 0..6).prop_map(|ids| ids.into_iter().map(NodeId::new).collect())
}

fn cpu_ids() -> impl Strategy<Value = CpuSet> {
    btree_set(0u32..400, 0..8).prop_map(|ids| ids.into_iter().map(CpuId::new).collect())
}

fn text() -> impl Strategy<Value = String> {
    any::<String>()
}

fn node_id() -> impl Strategy<Value = NodeId> {
    (0u32..300).prop_map(NodeId::new)
}

fn node(id: NodeId) -> impl Strategy<Value = Node> {
    let value = prop_oneof![
        any::<u64>().prop_map(|size| MeminfoValue::Size(Bytes::new(size))),
        any::<u64>().prop_map(MeminfoValue::Count),
    ];
    let meminfo = vec((text(), value).prop_map(|(name, value)| MeminfoField { name, value }), 0..4);
    let pool = (any::<u64>(), any::<[Option<u64>; 3]>()).prop_map(|(size, [total, free, surplus])| {
        HugePool { page_size: Bytes::new(size), total, free, surplus }
    });
    let cache = (any::<u8>(), any::<Option<u64>>(), any::<[Option<u32>; 3]>()).prop_map(
        |(level, size, [line_size, indexing, write_policy])| MemorySideCache {
            level,
            size: size.map(Bytes::new),
            line_size,
            indexing,
            write_policy,
        },
    );
    (cpu_ids(), meminfo, vec(pool, 0..3), vec(cache, 0..2), any::<(Option<bool>, Option<u64>)>()).prop_map(
        move |(cpus, meminfo, huge_pools, memory_side_caches, (generic_initiator, present))| Node {
            id,
            cpus,
            meminfo,
            present: present.map(Bytes::new),
            huge_pools,
            memory_side_caches,
            generic_initiator,
        },
    )
}

fn nodes() -> impl Strategy<Value = Vec<Node>> {
    node_ids().prop_flat_map(|ids| ids.iter().map(node).collect::<Vec<_>>())
}

fn cpu() -> impl Strategy<Value = Cpu> {
    (any::<bool>(), of(node_id()), any::<[Option<u32>; 9]>(), of(0usize..3), cpu_ids()).prop_map(
        |(
            online,
            node,
            [core, cluster, die, package, book, drawer, capacity, max_frequency_khz, microcode],
            core_type,
            siblings,
        )| Cpu {
            id: CpuId::new(0),
            online,
            node,
            core: core.map(CoreId::new),
            cluster: cluster.map(ClusterId::new),
            die: die.map(DieId::new),
            package: package.map(PackageId::new),
            book: book.map(BookId::new),
            drawer: drawer.map(DrawerId::new),
            siblings,
            capacity,
            core_type: core_type.map(|at| CoreType::ALL[at]),
            max_frequency_khz,
            microcode,
        },
    )
}

fn cache() -> impl Strategy<Value = Cache> {
    let kind = prop_oneof![Just(CacheKind::Data), Just(CacheKind::Instruction), Just(CacheKind::Unified)];
    (any::<u8>(), kind, any::<Option<u64>>(), any::<[Option<u32>; 3]>(), cpu_ids()).prop_map(
        |(level, kind, size, [line_size, ways, sets], cpus)| Cache {
            level,
            kind,
            size: size.map(Bytes::new),
            line_size,
            ways,
            sets,
            cpus,
        },
    )
}

fn distances() -> impl Strategy<Value = NodeMatrix<u32>> {
    (node_ids(), vec(any::<Option<u32>>(), 36)).prop_map(|(ids, values)| {
        let mut matrix = NodeMatrix::new(&ids);
        let pairs = ids.iter().flat_map(|from| ids.iter().map(move |to| (from, to)));
        for ((from, to), value) in pairs.zip(values) {
            if let Some(value) = value {
                matrix.set(from, to, value);
            }
        }
        matrix
    })
}

fn device() -> impl Strategy<Value = Device> {
    let address = (any::<u32>(), any::<u8>(), 0u8..32, 0u8..8)
        .prop_map(|(domain, bus, device, function)| PciAddress { domain, bus, device, function });
    let name =
        (0usize..7, text()).prop_map(|(class, name)| DeviceName { class: DeviceClass::ALL[class], name });
    let numbers = (any::<Option<u32>>(), any::<Option<u16>>(), any::<Option<u16>>());
    let dax = (of(node_id()), any::<Option<u64>>())
        .prop_map(|(node, size)| DaxMemory { node, size: size.map(Bytes::new) });
    let link = any::<[Option<u32>; 4]>().prop_map(|[speed, width, max_speed, max_width]| PciLink {
        speed,
        width,
        max_speed,
        max_width,
    });
    (of(address), numbers, vec(name, 0..3), of(node_id()), cpu_ids(), of(link), of(dax)).prop_map(
        |(pci, (class_code, vendor, device), names, node, local_cpus, link, dax)| Device {
            pci,
            class_code,
            vendor,
            device,
            names,
            node,
            local_cpus,
            link,
            dax,
        },
    )
}

fn settings() -> impl Strategy<Value = Settings> {
    let weights = btree_map(node_id(), any::<u32>(), 0..4);
    let maps = (weights, btree_map(text(), cpu_ids(), 0..3));
    (any::<[Option<u32>; 5]>(), vec(of(text()), 3), any::<[Option<bool>; 3]>(), maps, any::<Option<u64>>())
        .prop_map(
            |(
                numbers,
                texts,
                [demotion_enabled, lru_gen_enabled, interleave_weights_auto],
                (interleave_weights, governors),
                min_free_kib,
            )| Settings {
                numa_balancing: numbers[0],
                zone_reclaim_mode: numbers[1],
                transparent_hugepage: texts[0].clone(),
                transparent_hugepage_defrag: texts[1].clone(),
                transparent_hugepage_size: min_free_kib.map(Bytes::new),
                default_huge_page_size: min_free_kib.map(Bytes::from_kib),
                demotion_enabled,
                lru_gen_enabled,
                interleave_weights,
                interleave_weights_auto,
                swappiness: numbers[2],
                min_free_kib,
                overcommit_memory: numbers[3],
                watermark_boost_factor: numbers[4],
                governors,
                command_line: texts[2].clone(),
            },
        )
}

fn access() -> impl Strategy<Value = Access> {
    let class = prop_oneof![Just(AccessClass::Any), Just(AccessClass::Cpu)];
    (node_id(), class, node_ids(), any::<[Option<u32>; 4]>()).prop_map(
        |(target, class, initiators, values)| Access {
            target,
            class,
            initiators,
            read_latency_ns: values[0],
            write_latency_ns: values[1],
            read_bandwidth_mb_per_s: values[2],
            write_bandwidth_mb_per_s: values[3],
        },
    )
}

fn oddity() -> impl Strategy<Value = Oddity> {
    (0..OddityKind::ALL.len(), of("/[ -~]{0,12}"), any::<Option<u32>>(), "[ -~]{0,30}")
        .prop_map(|(kind, path, line, text)| Oddity { kind: OddityKind::ALL[kind], path, line, text })
}

fn origin() -> impl Strategy<Value = Origin> {
    prop_oneof![
        Just(Origin::Live),
        text().prop_map(Origin::Capture),
        text().prop_map(Origin::Firmware),
        text().prop_map(Origin::Spec),
    ]
}

fn any_machine() -> impl Strategy<Value = Machine> {
    let kernel = of((any::<u16>(), any::<u16>(), "[.a-z0-9-]{0,6}")
        .prop_map(|(major, minor, rest)| KernelRelease::new(&format!("{major}.{minor}-{rest}")).unwrap()));
    let model = (text(), cpu_ids()).prop_map(|(name, cpus)| CpuModel { name, cpus });
    let product = vec(of(text()), 5).prop_map(|mut texts| Product {
        vendor: texts.pop().flatten(),
        name: texts.pop().flatten(),
        firmware_vendor: texts.pop().flatten(),
        firmware_version: texts.pop().flatten(),
        firmware_date: texts.pop().flatten(),
    });
    let identity = (origin(), of(text()), kernel, any::<[Option<u64>; 2]>(), vec(model, 0..3), product);
    let topology = (nodes(), btree_map(0u32..400, cpu(), 0..6), vec(cache(), 0..4), distances());
    let extras =
        (vec(access(), 0..3), vec((any::<u32>(), node_ids()), 0..3), vec(device(), 0..4), settings());
    let sets = (node_ids(), cpu_ids(), of(cpu_ids()), of(node_ids()), memory_slots::slots());
    (identity, topology, extras, sets, vec(oddity(), 0..4)).prop_map(
        |(identity, topology, extras, sets, oddities)| Machine {
            origin: identity.0,
            read_at: identity.3[1].map(|seconds| UNIX_EPOCH + Duration::from_secs(seconds >> 20)),
            architecture: identity.1,
            kernel: identity.2,
            product: identity.5,
            page_size: identity.3[0].map(Bytes::new),
            system_memory: identity.3[1].map(Bytes::new),
            swap_free: identity.3[0].map(Bytes::new),
            memory_map: map_of(identity.3[0]),
            memory_slots: sets.4,
            cpu_models: identity.4,
            nodes: topology.0.into_iter().map(|node| (node.id, node)).collect(),
            cpus: topology
                .1
                .into_iter()
                .map(|(id, cpu)| (CpuId::new(id), Cpu { id: CpuId::new(id), ..cpu }))
                .collect(),
            caches: topology.2,
            distances: topology.3,
            accesses: extras.0,
            tiers: extras.1.into_iter().map(|(id, nodes)| Tier { id: TierId::new(id), nodes }).collect(),
            devices: extras.2,
            settings: extras.3,
            possible_nodes: sets.0,
            possible_cpus: sets.1,
            allowed_cpus: sets.2,
            allowed_nodes: sets.3,
            oddities,
        },
    )
}

/// Some ranges, or none.
fn map_of(size: Option<u64>) -> MemoryMap {
    let range = |end| MemoryRange { start: end / 2, end, node: NodeId::new((end % 7) as u32) };
    let ranges: Vec<MemoryRange> =
        size.into_iter().flat_map(|end| [range(end), range(u64::MAX - end)]).collect();
    MemoryMap { nodes: ranges.iter().take(1).copied().collect(), ram: ranges }
}

fn refuse(text: &str, message: &str) {
    assert_eq!(from_json(text).unwrap_err().to_string(), message);
}

/// A file with these fields after the schema and origin.
fn with(fields: &str) -> String {
    format!("{{\"schema\":\"{SCHEMA}\",\"origin\":{{\"live\":{{}}}}{fields}}}")
}

#[test]
fn a_spec_machine_is_written_as_people_would_read_it() {
    let machine = spec::machine("2x(1c 1G huge=2M:4); dist=21; dev=net:eth0@1; weights=0:3,1:1").unwrap();
    let json: serde_json::Value = serde_json::from_str(&to_json(&machine)).unwrap();
    assert_eq!(json["schema"], "nodewise.machine/1");
    assert_eq!(json["nodes"][1]["cpus"], "1");
    assert_eq!(json["nodes"][0]["meminfo"]["MemTotal"]["size_bytes"], 1u64 << 30);
    assert_eq!(json["nodes"][0]["huge_pools"][0]["page_size_bytes"], 2 << 20);
    assert_eq!(json["distances"]["rows"][0][1], 21);
    assert_eq!(json["devices"][0]["names"][0]["name"], "eth0");
    assert_eq!(json["settings"]["interleave_weights"]["0"], 3);
    assert_eq!(json["architecture"], serde_json::Value::Null, "what is not known is left out");
    assert_eq!(from_json(&to_json(&machine)).unwrap(), machine);
}

#[test]
fn the_least_file_is_a_schema_and_an_origin() {
    let machine = from_json(&with("")).unwrap();
    assert_eq!(machine, Machine::new(Origin::Live));
}

#[test]
fn fields_of_a_later_writer_are_passed_over() {
    let text = with(",\"weather\":[1,{\"a\":null}],\"nodes\":[{\"id\":0,\"mood\":\"good\"}]");
    assert_eq!(from_json(&text).unwrap().nodes.len(), 1);
}

#[test]
fn another_schema_is_refused_before_its_fields_are_looked_at() {
    refuse(
        "{\"schema\":\"nodewise.machine/2\",\"nodes\":7}",
        "its schema is \"nodewise.machine/2\", and this nodewise reads nodewise.machine/1",
    );
    refuse(
        "{\"nodes\":[]}",
        "it has no \"schema\", so it is not a machine file: expected \"schema\": \"nodewise.machine/1\"",
    );
    refuse(
        "{\"schema\":\"nodewise.bandwidth/1\",\"cells\":[]}",
        "its schema is \"nodewise.bandwidth/1\", and this nodewise reads nodewise.machine/1; it is a result: nodewise bandwidth --from FILE reads it",
    );
    for (schema, command) in [
        ("tune/2", "tune"),
        ("latency_loaded/1", "latency"),
        ("latency_sweep/1", "latency"),
        ("latency_table/1", "latency"),
        ("file_bandwidth/2", "bandwidth"),
    ] {
        refuse(
            &format!("{{\"schema\":\"nodewise.{schema}\"}}"),
            &format!(
                "its schema is \"nodewise.{schema}\", and this nodewise reads nodewise.machine/1; it is a result: \
                 nodewise {command} --from FILE reads it"
            ),
        );
    }
    refuse(
        "{\"schema\":\"\\u001b[2J\"}",
        "its schema is \"\\x1b[2J\", and this nodewise reads nodewise.machine/1",
    );
    refuse("[1,2]", "it is not JSON: invalid type: integer `1`, expected a string at line 1 column 2");
    refuse("{", "it is not JSON: EOF while parsing an object at line 1 column 1");
}

#[test]
fn an_error_names_field_line_and_column() {
    refuse(
        &with(",\n\"nodes\":[{\"id\":0},{\"id\":1,\"cpus\":\"0-x\"}]"),
        "nodes[1].cpus: \"0-x\" is not a CPU list: expected a number after \"-\" (column 3) at line 2 column 39",
    );
    refuse(&with(",\n\"caches\":[{\"level\":1}]"), "caches[0]: missing field `kind` at line 2 column 21");
    refuse(
        &with(",\"nodes\":[{\"id\":99999}]"),
        "nodes[0].id: node 99999 is beyond any machine: expected a number below 16384 at line 1 column 73",
    );
    refuse(&with(",\"nodes\":[{\"id\":1},{\"id\":1}]"), "nodes[1].id: node 1 comes twice");
    refuse(
        &with(",\"distances\":{\"nodes\":\"0-1\",\"rows\":[[10]]}"),
        "distances: expected 2 rows of 2 numbers, one for each of its nodes",
    );
    refuse(
        &with(",\"kernel\":\"linux\""),
        "kernel: \"linux\" is not a kernel release, expected one as 6.12.1 at line 1 column 69",
    );
}

#[test]
fn a_file_that_would_exhaust_memory_is_refused() {
    refuse(
        &with(",\"possible_cpus\":\"0-262143\""),
        "possible_cpus: CPU 262143 is beyond any machine: expected CPUs below 16384 at line 1 column 79",
    );
    let many: Vec<String> = (0..1025).map(|id| format!("{{\"id\":{id}}}")).collect();
    refuse(
        &with(&format!(",\"nodes\":[{}]", many.join(","))),
        "it has 1025 nodes, more than the 1024 that are read",
    );
    let deep = with(&format!(",\"x\":{}{}", "[".repeat(100_000), "]".repeat(100_000)));
    assert!(from_json(&deep).is_ok(), "a field that is passed over may be as deep as it likes");
}

#[test]
fn words_of_a_foreign_file_are_fit_for_a_terminal() {
    let text =
        with(",\"oddities\":[{\"kind\":\"disagreement\",\"path\":\"/\\u001b\",\"text\":\"a\\u001b[2J\"}]");
    let machine = from_json(&text).unwrap();
    assert_eq!(machine.oddities[0].to_string(), "/\\x1b: a\\x1b[2J");
}

#[test]
fn every_file_that_was_cut_is_refused() {
    let text = to_json(&spec::machine("2x(1c 1G)").unwrap());
    for end in 0..text.trim_end().len() {
        assert!(from_json(&text[..end]).is_err(), "{end}");
    }
}

proptest! {
    #[test]
    fn write_then_read_is_identity(machine in any_machine()) {
        let text = to_json(&machine);
        prop_assert_eq!(from_json(&text).unwrap(), machine);
    }

    #[test]
    fn damaged_files_are_read_or_refused_without_a_panic(at in 0usize..2000, byte in 32u8..127, text in any::<String>()) {
        let mut bytes = to_json(&spec::machine("2x(2c 1G); dist=21").unwrap()).into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(machine) = from_json(&String::from_utf8(bytes).unwrap()) {
            prop_assert_eq!(from_json(&to_json(&machine)).unwrap(), machine);
        }
        let _ = from_json(&text);
    }
}
