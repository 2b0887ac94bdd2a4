use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

use super::*;

const TEXT: &str = include_str!("../../../../../fuzz/seeds/lscpu/two-nodes.txt");
const JSON: &str = include_str!("../../../../../fuzz/seeds/lscpu/children.json");

fn read(text: &str) -> Machine {
    assert!(is_lscpu(text), "{text}");
    let Parsed { value, problems } = parse(text).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    value
}

/// Caches as `L1d 48 KiB`, with their CPUs where they are known.
fn caches(machine: &Machine) -> Vec<String> {
    let words = |cache: &Cache| {
        let size = cache.size.map(|size| format!(" {size}")).unwrap_or_default();
        let cpus = if cache.cpus.is_empty() { String::new() } else { format!(" of {}", cache.cpus) };
        format!("{}{size}{cpus}", cache.name())
    };
    machine.caches.iter().map(words).collect()
}

#[test]
fn nodes_have_their_cpus_and_nothing_is_made_up() {
    let machine = read(TEXT);
    let cpus: Vec<String> = machine.nodes.values().map(|node| node.cpus.to_string()).collect();
    assert_eq!(cpus, ["0-1,4-5", "2-3,6", ""]);
    assert_eq!((machine.online_cpus().to_string().as_str(), machine.cpus.len()), ("0-6", 8));
    assert_eq!(machine.architecture.as_deref(), Some("x86_64"));
    assert_eq!(machine.cpu_models[0].name, "Example CPU @ 2.40GHz");
    assert_eq!(caches(&machine), ["L1d 48 KiB", "L1i 32 KiB", "L2 1.2 MiB", "L3 8 MiB"]);
    assert!(machine.nodes.values().all(|node| node.memory_total().is_none()));
    assert!(machine.cpus.values().all(|cpu| cpu.package.is_none() && cpu.siblings.is_empty()));
    assert!(machine.distances.is_empty());
}

#[test]
fn json_is_read_with_its_children() {
    let machine = read(JSON);
    assert_eq!(caches(&machine), ["L1d 64 KiB", "L3 2 MiB of 0-3"]);
    assert_eq!(machine.nodes[&NodeId::new(0)].cpus.to_string(), "0-3");
    assert_eq!(machine.cpus[&nodewise_machine::CpuId::new(2)].node, Some(NodeId::new(0)));
}

#[test]
fn sizes_of_all_releases_are_read_where_they_are_of_one_cache() {
    let check = |line: &str, expected: &[&str]| {
        let text = format!("$ lscpu\nArchitecture: x86_64\nCPU(s): 2\nOn-line CPU(s) list: 0,1\n{line}\n");
        assert_eq!(caches(&read(&text)), expected, "{line}");
    };
    check("L3 cache:   20480K", &["L3 20 MiB"]);
    check("L2:   1.5 MiB (2 instances)", &["L2 768 KiB"]);
    // The sum of an unknown number of caches.
    check("L2 cache:   256 KiB", &[]);
    // Cores of two kinds.
    check("L1d:   544 KiB (14 instances)", &["L1d"]);
    // Rounded sums: one size is possible, or several are.
    check("L1d cache:   2.6 MiB (56 instances)", &["L1d 48 KiB"]);
    check("L1i cache:   1.8 MiB (56 instances)", &["L1i 32 KiB"]);
    check("L2 cache:    70 MiB (56 instances)", &["L2 1.2 MiB"]);
    check("L3 cache:    27.5 MiB (1 instance)", &["L3 27.5 MiB of 0-1"]);
    check("L3 cache:    35.8 MiB (1 instance)", &["L3 of 0-1"]);
    check("On-line CPU(s) mask: 0x3", &[]);
}

#[test]
fn a_line_that_is_not_lscpus_costs_one_line() {
    let check = |from: &str, to: &str, expected: &str| {
        let text = TEXT.replacen(from, to, 1);
        let problems = parse(&text).unwrap().problems;
        let found: Vec<String> = problems.first.iter().map(ToString::to_string).collect();
        assert_eq!(found[0], expected);
    };
    check("0,1,4,5", "0,x", "line 19: expected the number of a node and a list of its CPUs, found \"0,x\"");
    check(
        "192 KiB (",
        "192 eggs (",
        "line 14: expected a size such as 32K or 64 KiB (2 instances), found \"192 eggs (4 instances)\"",
    );
    check(" 8\n", " 80\n", "line 4: expected 8 CPUs, as the lists name, found \"80\"");
    check("7\nVendor", "90000\nVendor", "line 6: expected a list of CPUs below 16384, found \"90000\"");
    let error = parse(&TEXT.replace("On-line", "Online")).unwrap_err();
    assert_eq!(error.sentence(), "expected a line \"On-line CPU(s) list\", found nothing");
    assert_eq!(parse("{\"lscpu\": 3}").unwrap_err().sentence(), "expected an array \"lscpu\", found nothing");
    assert_eq!(parse("{\"lscpu\":\n [").unwrap_err().line, 2);
    assert!(!is_lscpu("{\"schema\": \"nodewise.machine/1\"}"));
    assert!(!is_lscpu("Architecture: none\n"));
}

proptest! {
    #[test]
    fn any_text_is_survived(text in any::<String>(), cut in any::<prop::sample::Index>(), word in "[A-Za-z0-9:(){},\" -]{0,12}", json in any::<bool>()) {
        let _ = parse(&text);
        let sample = if json { JSON } else { TEXT };
        let cut = cut.index(sample.len());
        let changed = format!("{}{word}{}", &sample[..cut], &sample[cut..]);
        let lines = changed.lines().count();
        match parse(&changed) {
            Ok(read) => prop_assert!(read.problems.first.iter().all(|error| error.line as usize <= lines), "{:?}", read.problems),
            Err(error) => prop_assert!(error.line as usize <= lines.max(1), "{error:?}"),
        }
    }

    #[test]
    fn printed_nodes_are_read_back(nodes in prop::collection::btree_map(0u32..200, prop::collection::btree_set(0u32..400, 0..6), 1..6), json in any::<bool>()) {
        let mut taken = std::collections::BTreeSet::new();
        let nodes: Vec<(u32, CpuSet)> = nodes
            .into_iter()
            .map(|(node, cpus)| {
                let own: Vec<u32> = cpus.into_iter().filter(|cpu| taken.insert(*cpu)).collect();
                (node, own.into_iter().map(nodewise_machine::CpuId::new).collect())
            })
            .collect();
        let all = nodes.iter().fold(CpuSet::new(), |all, (_, cpus)| all.union(cpus));
        let mut fields = vec![("Architecture".to_owned(), "riscv64".to_owned()), ("CPU(s)".to_owned(), all.len().to_string())];
        fields.push(("On-line CPU(s) list".to_owned(), all.to_string()));
        fields.push(("NUMA node(s)".to_owned(), nodes.len().to_string()));
        fields.extend(nodes.iter().map(|(node, cpus)| (format!("NUMA node{node} CPU(s)"), cpus.to_string())));
        let text = if json {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{{\"field\": \"{name}:\", \"data\": \"{value}\"}}")).collect();
            format!("{{\n\"lscpu\": [{}]}}", fields.join(",\n"))
        } else {
            fields.iter().map(|(name, value)| format!("{name}:   {value}\n")).collect()
        };
        if all.is_empty() {
            prop_assert!(parse(&text).is_err());
        } else {
            let machine = read(&text);
            let found: Vec<(u32, CpuSet)> = machine.nodes.values().map(|node| (node.id.number(), node.cpus.clone())).collect();
            prop_assert_eq!(found, nodes);
        }
    }
}
