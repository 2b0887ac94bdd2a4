use std::path::Path;

use nodewise_machine::{DeviceClass, spec};
use proptest::prelude::{any, prop, prop_assert_eq, proptest};

use super::*;
use crate::sysfs::{self, Detail};
use crate::tree::Tree;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data");

fn read(text: &str) -> Machine {
    assert!(is_hwloc_xml(text));
    let Parsed { value, problems } = parse(text).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    value
}

fn stored(name: &str) -> String {
    std::fs::read_to_string(format!("{DATA}/hwloc-xml/{name}.xml")).unwrap()
}

/// The captures whose XML, written by lstopo, is stored.
const NAMES: [&str; 3] =
    ["16em64t-4s2c2t-offlines", "32em64t-2n8c+dax+nvme+mic+dimms", "fakememinitiators-1np2c+1npp+gi"];

/// hwloc and nodewise read the same from the same files.
#[test]
fn the_xml_of_a_capture_says_what_the_capture_says() {
    for name in NAMES {
        let xml = read(&stored(name));
        let path = format!("{DATA}/captures/{name}.tar.bz2");
        let tree = Tree::from_archive(&std::fs::read(Path::new(&path)).unwrap()).unwrap();
        let capture = sysfs::load(&tree, Origin::Capture(path), Detail::Full);
        let online = capture.online_cpus();
        // hwloc leaves out what the process may not use.
        assert!(xml.cpu_ids().is_subset(&online), "{name}");
        for (id, cpu) in &xml.cpus {
            let known = &capture.cpus[id];
            assert_eq!((cpu.package, cpu.core), (known.package, known.core), "{name}: CPU {id}");
            assert_eq!(cpu.siblings, known.siblings.intersection(&xml.cpu_ids()), "{name}: CPU {id}");
        }
        for (id, node) in &xml.nodes {
            let known = &capture.nodes[id];
            assert_eq!(node.memory_total(), known.memory_total(), "{name}: node {id}");
            // The nodes of the CPUs are left out of the third: they have no memory.
            if name != NAMES[2] {
                assert_eq!(node.cpus, known.cpus.intersection(&xml.cpu_ids()), "{name}: node {id}");
            }
            for other in xml.nodes.keys() {
                if let Some(distance) = xml.distances.get(*id, *other) {
                    assert_eq!(Some(*distance), capture.distance(*id, *other), "{name}: {id} to {other}");
                }
            }
        }
        let sizes = |machine: &Machine| -> Vec<(String, Option<Bytes>, CpuSet)> {
            let caches = machine.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction);
            let mut all: Vec<_> = caches
                .map(|cache| (cache.name(), cache.size, cache.cpus.intersection(&xml.cpu_ids())))
                .filter(|(.., cpus)| !cpus.is_empty())
                .collect();
            all.sort();
            all.dedup();
            all
        };
        assert_eq!(sizes(&xml), sizes(&capture), "{name}");
        for device in xml.devices.iter().filter(|device| device.pci.is_some()) {
            let known = capture.devices.iter().find(|known| known.pci == device.pci).unwrap();
            assert_eq!((device.vendor, device.device), (known.vendor, known.device), "{name}: {device:?}");
            assert_eq!(device.node, known.node, "{name}: {device:?}");
        }
    }
}

#[test]
fn devices_have_the_names_that_the_kernel_gives() {
    let machine = read(&stored(NAMES[1]));
    let named = |class, name: &str| machine.devices.iter().find(|device| device.name_in(class) == Some(name));
    let net = named(DeviceClass::Net, "eth0").unwrap();
    assert_eq!(net.pci.unwrap().to_string(), "0000:02:00.0");
    assert_eq!((net.vendor, net.class_code, net.node), (Some(0x8086), Some(0x02_0000), Some(NodeId::new(0))));
    assert!(named(DeviceClass::Infiniband, "mlx4_0").unwrap().name_in(DeviceClass::Net).is_some());
    assert!(named(DeviceClass::Dax, "dax0.0").is_some());
    assert!(named(DeviceClass::Block, "nvme0n1").is_some());
}

#[test]
fn memory_only_nodes_and_the_firmwares_attributes_are_read() {
    let machine = read(&stored(NAMES[2]));
    let node = NodeId::new(7);
    assert!(machine.nodes[&node].cpus.is_empty());
    let access = machine.access(node, AccessClass::Any).unwrap();
    assert_eq!((access.read_bandwidth_mb_per_s, access.read_latency_ns), (Some(78_644), Some(77)));
    let oddities: Vec<&str> = machine.oddities.iter().map(|oddity| oddity.text.as_str()).collect();
    let expected = [
        "nodes 0-4 are not described: hwloc leaves out nodes without memory, and those that it may not use",
        "nodes 7,10 taken for memory-only: hwloc gives the CPUs around a node, and others have these",
    ];
    assert_eq!(oddities, expected);
}

/// Takes the n-th attribute out of a document; `None` behind the last.
fn without(text: &str, n: usize) -> Option<String> {
    let (at, _) = text.match_indices("=\"").nth(n)?;
    let start = text[..at].rfind([' ', '\n', '\t'])?;
    let end = at + 2 + text[at + 2..].find('"')? + 1;
    Some(format!("{}{}", &text[..start], &text[end..]))
}

#[test]
fn every_attribute_may_be_missing() {
    let text = stored(NAMES[2]);
    let mut count = 0;
    while let Some(changed) = without(&text, count) {
        count += 1;
        // Without their type all PUs but one are there; without a document type it is not XML.
        match parse(&changed) {
            Ok(read) => assert!(read.value.cpus.len() >= 7, "{count}"),
            Err(error) => assert!(error.line <= 3, "{count}: {error}"),
        }
    }
    assert!(count > 400, "{count}");
}

#[test]
fn every_line_may_be_missing() {
    let text = stored(NAMES[2]);
    let lines: Vec<&str> = text.lines().collect();
    for at in 0..lines.len() {
        let rest: Vec<&str> =
            lines.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, line)| *line).collect();
        if let Err(error) = parse(&rest.join("\n")) {
            assert!(error.line as usize <= lines.len() && error.sentence().len() > 10, "{error}");
        }
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let document = |object: &str| {
        format!(
            "<topology version=\"2.0\">\n<object type=\"Machine\" cpuset=\"0x1\">\n<object type=\"PU\" os_index=\"0\"/>\n{object}\n</object></topology>"
        )
    };
    let check = |object: &str, expected: &str| {
        let read = parse(&document(object)).unwrap();
        let found: Vec<String> = read.problems.first.iter().map(ToString::to_string).collect();
        assert_eq!(found, [expected]);
    };
    check("<object type=\"PU\"/>", "line 4: expected an os_index below 16384, found nothing");
    check("<object type=\"PU\" os_index=\"0\"/>", "line 4: expected each PU once, found \"PU 0\"");
    check(
        "<object type=\"NUMANode\" os_index=\"0\" local_memory=\"much\"/>",
        "line 4: expected a number as local_memory, found \"much\"",
    );
    check(
        "<object type=\"PCIDev\" pci_busid=\"x\"/>",
        "line 4: expected a PCI address such as 0000:01:00.0 as pci_busid, found \"x\"",
    );
    check("<object type=\"L2Cache\"/>", "line 4: expected 0, 1 or 2 as cache_type, found nothing");
    let error = parse("<topology>\n<object></topology>").unwrap_err();
    assert!(error.sentence().starts_with("expected well-formed XML, found "), "{error}");
    assert_eq!(parse("<a/>").unwrap_err().sentence(), "expected an element topology, found \"a\"");
    assert_eq!(
        parse("<topology/>").unwrap_err().sentence(),
        "expected an object of type PU or NUMANode, found nothing"
    );
}

#[test]
fn bombs_cost_little() {
    let deep = format!(
        "<topology>{}<object type=\"PU\" os_index=\"1\"/>{}</topology>",
        "<object>".repeat(100_000),
        "</object>".repeat(100_000)
    );
    assert_eq!(parse(&deep).unwrap().value.cpus.len(), 1);
    let entities = "<!DOCTYPE t [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;\"><!ENTITY e \"&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;\">]><topology>&e;&e;&e;</topology>";
    assert!(parse(entities).is_err());
    let many: String =
        (0..2000).map(|node| format!("<object type=\"NUMANode\" os_index=\"{node}\"/>")).collect();
    assert_eq!(parse(&format!("<topology>{many}</topology>")).unwrap().value.nodes.len(), MOST_NODES);
}

/// A set as hwloc prints it.
fn mask(cpus: &CpuSet) -> String {
    let word = |word: u32| {
        cpus.iter()
            .filter(|cpu| cpu.number() / 32 == word)
            .fold(0_u32, |bits, cpu| bits | 1 << (cpu.number() % 32))
    };
    let last = cpus.last().map_or(0, |last| last.number() / 32);
    let words: Vec<String> = (0..=last).rev().map(|at| format!("0x{:08x}", word(at))).collect();
    words.join(",")
}

/// A machine as hwloc prints it.
fn print(machine: &Machine) -> String {
    let all = mask(&machine.cpu_ids());
    let mut text = format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n<object type=\"Machine\" cpuset=\"{all}\">\n"
    );
    for (package, cpus) in machine.packages() {
        text += &format!("<object type=\"Package\" os_index=\"{package}\" cpuset=\"{}\">\n", mask(&cpus));
        for node in machine.nodes.values().filter(|node| !node.cpus.is_disjoint(&cpus)) {
            let size = node.memory_total().unwrap().get();
            text += &format!(
                "<object type=\"NUMANode\" os_index=\"{}\" cpuset=\"{}\" local_memory=\"{size}\"/>\n",
                node.id,
                mask(&node.cpus)
            );
        }
        for cache in machine.caches.iter().filter(|cache| !cache.cpus.is_disjoint(&cpus)) {
            let size = cache.size.unwrap().get();
            text += &format!(
                "<object type=\"L{}Cache\" cpuset=\"{}\" cache_size=\"{size}\" depth=\"{}\" cache_linesize=\"64\" cache_type=\"0\"/>\n",
                cache.level,
                mask(&cache.cpus),
                cache.level
            );
        }
        for siblings in machine.cores().values().filter(|siblings| siblings.is_subset(&cpus)) {
            let core = machine.cpus[&siblings.first().unwrap()].core.unwrap();
            text += &format!("<object type=\"Core\" os_index=\"{core}\">");
            for cpu in siblings {
                text += &format!("<object type=\"PU\" os_index=\"{cpu}\"/>");
            }
            text += "</object>\n";
        }
        text += "</object>\n";
    }
    let nodes: Vec<String> = machine.nodes.keys().map(|node| format!("{node} ")).collect();
    let values: Vec<String> = machine.distances.iter().map(|(_, _, value)| format!("{value} ")).collect();
    text + &format!(
        "</object>\n<distances2 type=\"NUMANode\" nbobjs=\"{}\" kind=\"5\" name=\"NUMALatency\" indexing=\"os\"><indexes>{}</indexes><u64values>{}</u64values></distances2>\n</topology>\n",
        nodes.len(),
        nodes.concat(),
        values.concat()
    )
}

proptest! {
    #[test]
    fn any_text_is_survived(text in any::<String>(), cut in any::<prop::sample::Index>(), word in "[a-z0-9<>/=\" ]{0,12}") {
        let _ = parse(&text);
        let sample = print(&spec::machine("2x(2c2t 4G l3=4M/2c); dist=21").unwrap());
        let cut = cut.index(sample.len());
        let _ = parse(&format!("{}{word}{}", &sample[..cut], &sample[cut..]));
    }

    #[test]
    fn a_printed_machine_is_read_back(packages in 1u32..4, cores in 1u32..40, threads in 1u32..3, gib in 1u64..100, distance in 11u32..50) {
        let text = format!("{packages}x({cores}c{threads}t {gib}G l3=4M/{cores}c); dist={distance}");
        let machine = spec::machine(&text).unwrap();
        let again = read(&print(&machine));
        prop_assert_eq!(&again.distances, &machine.distances);
        prop_assert_eq!(again.caches.iter().map(|cache| (&cache.cpus, cache.size)).collect::<Vec<_>>(), machine.caches.iter().map(|cache| (&cache.cpus, cache.size)).collect::<Vec<_>>());
        for (id, node) in &machine.nodes {
            prop_assert_eq!(&again.nodes[id].cpus, &node.cpus);
            prop_assert_eq!(again.nodes[id].memory_total(), node.memory_total());
        }
        for (id, cpu) in &machine.cpus {
            let read = &again.cpus[id];
            prop_assert_eq!((read.package, read.core, &read.siblings, read.node), (cpu.package, cpu.core, &cpu.siblings, cpu.node));
        }
    }
}
