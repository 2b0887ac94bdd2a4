use nodewise_machine::spec;
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

use super::*;

const TEXT: &str = include_str!("../../../../../fuzz/seeds/likwid/two-sockets.txt");

/// Printed by likwid-topology 5.2.2, without and with `-c`, in a guest with two packages of two nodes.
const REAL: [&str; 2] = [
    include_str!("../../../../../data/likwid/likwid-topology-5.2.2-four-nodes.txt"),
    include_str!("../../../../../data/likwid/likwid-topology-5.2.2-four-nodes-c.txt"),
];

fn read(text: &str) -> Machine {
    assert!(is_likwid(text), "{text}");
    let Parsed { value, problems } = parse(text).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    value
}

#[test]
fn threads_caches_and_nodes_are_read() {
    let machine = read(&format!("$ likwid-topology -c\n{TEXT}"));
    assert_eq!(machine.cpus.len(), 8);
    let cpu = &machine.cpus[&CpuId::new(6)];
    assert_eq!(
        (cpu.package, cpu.core, cpu.node),
        (Some(PackageId::new(1)), Some(CoreId::new(2)), Some(NodeId::new(1)))
    );
    assert_eq!(cpu.siblings.to_string(), "2,6");
    let caches: Vec<String> = machine
        .caches
        .iter()
        .map(|cache| format!("{} {} {}", cache.name(), cache.size.unwrap(), cache.cpus))
        .collect();
    assert_eq!(caches[..2], ["L1d 48 KiB 0,4", "L1d 48 KiB 1,5"]);
    assert_eq!(caches[8..], ["L3 8 MiB 0-1,4-5", "L3 8 MiB 2-3,6-7"]);
    assert_eq!(machine.caches[0].ways, Some(12));
    let node = &machine.nodes[&NodeId::new(1)];
    assert_eq!(node.cpus.to_string(), "2-3,6-7");
    assert_eq!(node.memory_total().unwrap().mib(), 64_508);
    assert_eq!(machine.distance(NodeId::new(1), NodeId::new(0)), Some(21));
    assert_eq!(machine.allowed_cpus.as_ref().unwrap().to_string(), "0-2,4-7");
    assert_eq!(machine.cpu_models[0].name, "Example CPU @ 2.40GHz");
}

#[test]
fn what_likwid_printed_of_a_real_kernel_is_read_whole() {
    let [short, long] = REAL.map(read);
    for machine in [&short, &long] {
        let cpus: Vec<String> = machine.nodes.values().map(|node| node.cpus.to_string()).collect();
        assert_eq!(cpus, ["0-3", "4-7", "8-11", "12-15"]);
        assert!(machine.nodes.values().all(|node| (200..256).contains(&node.memory_total().unwrap().mib())));
        let distances: Vec<u32> = machine.distances.iter().map(|(.., distance)| *distance).collect();
        assert_eq!(distances, [10, 11, 20, 20, 11, 10, 20, 20, 20, 20, 10, 11, 20, 20, 11, 10]);
        assert_eq!((machine.packages().len(), machine.cores().len()), (2, 8));
        assert_eq!(machine.caches.len(), 16 + 16 + 4);
        assert_eq!(machine.cpu_models[0].name, "QEMU TCG CPU version 2.5+");
    }
    assert!(short.caches.iter().all(|cache| cache.ways.is_none()));
    assert!(long.caches.iter().all(|cache| cache.ways.is_some() && cache.line_size == Some(64)));
}

#[test]
fn a_line_that_is_not_likwids_costs_one_line() {
    let check = |from: &str, to: &str, expected: &str| {
        let problems = parse(&TEXT.replacen(from, to, 1)).unwrap().problems;
        let found: Vec<String> = problems.first.iter().map(ToString::to_string).collect();
        assert!(found[0].starts_with(expected), "{found:?}");
    };
    check(
        "48 kB",
        "48 eggs",
        "line 30: expected a value of Size as likwid-topology prints it, found \"Size:\\t\\t\\t48 eggs\"",
    );
    check("10 21", "10", "line 66: expected 2 distances, one per domain, found \"1\"");
    check(
        "( 0 4 1 5 )\nDist",
        "( 0 4 1 5\nDist",
        "line 65: expected a value of Processors as likwid-topology prints it, found \"Processors:\\t\\t( 0 4 1 5\"",
    );
    check("\n7     ", "\nseven ", "line 21: expected a row of numbers below \"HWThread\", found \"seven ");
    let error = parse(TEXT.split("HWThread").next().unwrap()).unwrap_err();
    assert_eq!(
        error.sentence(),
        "expected a table of threads, headed \"HWThread Thread Core Die Socket\", found nothing"
    );
    assert!(!is_likwid("--- Hardware Thread Topology"));
}

/// A machine as likwid prints it.
fn print(machine: &Machine) -> String {
    let mut text =
        "---\nCPU name:\tx\n***\nHardware Thread Topology\n***\nHWThread Thread Core Die Socket Available\n"
            .to_owned();
    for (id, cpu) in &machine.cpus {
        let number = |number: Option<u32>| number.unwrap_or(0);
        let (core, package) = (cpu.core.map(CoreId::number), cpu.package.map(PackageId::number));
        text += &format!("{id} 0 {} 0 {} *\n", number(core), number(package));
    }
    let list = |cpus: &CpuSet| cpus.iter().map(|cpu| format!("{cpu} ")).collect::<String>();
    for cache in &machine.caches {
        let kib = cache.size.unwrap().get() / 1024;
        text += &format!(
            "---\nLevel:\t{}\nSize:\t{kib} kB\nCache groups:\t( {})\n",
            cache.level,
            list(&cache.cpus)
        );
    }
    text += "---\nNUMA domains: n\n";
    for (id, node) in &machine.nodes {
        let row: Vec<String> =
            machine.nodes.keys().map(|to| machine.distance(*id, *to).unwrap().to_string()).collect();
        let mib = node.memory_total().unwrap().mib();
        text += &format!(
            "Domain:\t{id}\nProcessors:\t( {})\nDistances:\t{}\nTotal memory:\t{mib} MB\n",
            list(&node.cpus),
            row.join(" ")
        );
    }
    text
}

proptest! {
    #[test]
    fn any_text_is_survived(text in any::<String>(), cut in any::<prop::sample::Index>(), word in "[A-Za-z0-9:() -]{0,12}") {
        let _ = parse(&text);
        let cut = cut.index(TEXT.len());
        let changed = format!("{}{word}{}", &TEXT[..cut], &TEXT[cut..]);
        let lines = changed.lines().count();
        if let Ok(read) = parse(&changed) {
            prop_assert!(read.problems.first.iter().all(|error| error.line as usize <= lines), "{:?}", read.problems);
        }
    }

    #[test]
    fn a_printed_machine_is_read_back(packages in 1u32..4, cores in 1u32..5, threads in 1u32..3, gib in 1u64..100, distance in 11u32..50) {
        let text = format!("{packages}x({cores}c{threads}t {gib}G l3=4M/{cores}c); dist={distance}");
        let machine = spec::machine(&text).unwrap();
        let again = read(&print(&machine));
        prop_assert_eq!(&again.distances, &machine.distances);
        prop_assert_eq!(&again.caches.iter().map(|cache| (&cache.cpus, cache.size)).collect::<Vec<_>>(), &machine.caches.iter().map(|cache| (&cache.cpus, cache.size)).collect::<Vec<_>>());
        for (id, node) in &machine.nodes {
            prop_assert_eq!(&again.nodes[id].cpus, &node.cpus);
            prop_assert_eq!(again.nodes[id].memory_total(), node.memory_total());
        }
        for (id, cpu) in &machine.cpus {
            prop_assert_eq!((again.cpus[id].package, &again.cpus[id].siblings, again.cpus[id].node), (cpu.package, &cpu.siblings, cpu.node));
        }
    }
}
