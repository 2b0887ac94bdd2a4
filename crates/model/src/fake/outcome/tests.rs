use super::*;
use nodewise_machine::spec;

fn range(start: u64, end: u64, node: u32) -> Range {
    Range { start, end, node: NodeId::new(node) }
}

/// Returns what Linux 6.12 made of two nodes of 768 MiB in a guest.
fn guest() -> (Machine, Vec<Range>, Vec<Range>) {
    let machine = spec::machine("2x(1c 768M); dist=20; arch=x86_64; kernel=6.12.107").unwrap();
    let ram = vec![range(0x1000, 0x9f000, 0), range(0x10_0000, 0x5ffd_f000, 0)];
    let blocks = vec![range(0x1000, 0x3000_0000, 0), range(0x3000_0000, 0x5ffd_f000, 1)];
    (machine, ram, blocks)
}

fn run(text: &str) -> Option<Emulation> {
    let (machine, ram, blocks) = guest();
    emulate(&text.parse().unwrap(), EmulationVariant::Mainline, &machine, &ram, &blocks)
}

#[test]
fn a_guests_nodes_are_those_of_its_kernels_log() {
    let made = run("4").unwrap();
    let ranges: Vec<(u64, u64)> = made.nodes.iter().map(|node| node.ranges[0]).collect();
    assert_eq!(
        ranges,
        [
            (0x1000, 0x1800_1000),
            (0x3000_0000, 0x4800_0000),
            (0x1800_1000, 0x3000_0000),
            (0x4800_0000, 0x5ffd_f000)
        ]
    );
    let cpus: Vec<String> = made.nodes.iter().map(|node| node.cpus.to_string()).collect();
    assert_eq!(cpus, ["0", "1", "0", "1"]);
    let order =
        |node| made.orders.from(NodeId::new(node)).iter().map(|node| node.number()).collect::<Vec<_>>();
    assert_eq!([0, 1, 2, 3].map(order), [[0, 2, 1, 3], [1, 3, 2, 0], [2, 0, 3, 1], [3, 1, 0, 2]]);
    assert_eq!(made.distances.get(NodeId::new(0), NodeId::new(2)), Some(&10));
    assert_eq!(made.distances.get(NodeId::new(0), NodeId::new(3)), Some(&20));
}

fn check_cpus(spec: &str, expected: &[&str]) {
    let (_, ram, _) = guest();
    let machine = spec::machine(&format!("{spec}; dist=20; arch=x86_64; kernel=6.12.107")).unwrap();
    let mut start = 0x1000;
    let mut block = |(id, node): (&NodeId, &Node)| {
        let size = node.memory_total().filter(|size| size.get() > 0)?.get();
        let end = (start + size) / (1 << 20) * (1 << 20);
        let block = Range { start, end, node: *id };
        start = end;
        Some(block)
    };
    let blocks: Vec<Range> = machine.nodes.iter().filter_map(&mut block).collect();
    let made = emulate(&"4".parse().unwrap(), EmulationVariant::Mainline, &machine, &ram, &blocks).unwrap();
    let cpus: Vec<String> = made.nodes.iter().map(|node| node.cpus.to_string()).collect();
    assert_eq!(cpus, expected, "{spec}");
}

#[test]
fn cpus_of_a_node_without_memory_are_those_of_the_first() {
    check_cpus("2x(1c 768M) (1c)", &["0,2", "1", "0,2", "1"]);
}

/// As on the lab's machine 909.
#[test]
fn cpus_of_a_node_whose_piece_went_to_the_first_are_there_too() {
    check_cpus("6x(1c 256M)", &["0,4-5", "1", "2", "3"]);
}

#[test]
fn the_hardware_under_an_emulation_is_found_again() {
    let (machine, _, blocks) = guest();
    let made = run("4").unwrap();
    let mut emulated = Machine::new(Origin::Live);
    emulated.cpus.clone_from(&machine.cpus);
    emulated.distances = made.distances.clone();
    let mut pieces = Vec::new();
    for node in &made.nodes {
        emulated.nodes.insert(node.id, node_of(node.id, node.cpus.clone(), node.memory));
        pieces.push(Range { start: node.ranges[0].0, end: node.ranges[0].1, node: node.id });
    }
    let hardware = physical(&emulated, &pieces, &blocks).unwrap();
    assert_eq!(hardware.distances, machine.distances);
    for node in machine.node_ids().iter() {
        assert_eq!(hardware.cpus_of(node), machine.cpus_of(node));
    }
    assert_eq!(physical(&emulated, &[range(0x8000_0000, 0x9000_0000, 0)], &blocks), None);
}

#[test]
fn a_count_that_does_not_come_out_is_told() {
    let check = |text: &str, expected: Option<&str>| {
        let fake: Fake = text.parse().unwrap();
        assert_eq!(
            remark(&fake, EmulationVariant::Mainline, run(text).as_ref()).as_deref(),
            expected,
            "{text}"
        );
    };
    check("4", None);
    check("2U", None);
    check("3", Some("2 nodes instead of 3: pieces grow in steps of 32 MiB around holes, so fewer come out"));
    check(
        "100",
        Some(
            "there is not enough memory for this number of nodes of 32 MiB: the kernel starts without emulation",
        ),
    );
    check(
        "100U",
        Some(
            "a node of the hardware is too small for this number of 32 MiB each: the kernel starts without emulation",
        ),
    );
    assert!(run("1000M").is_some());
}

#[test]
fn the_first_raspberry_pi_kernels_cut_otherwise() {
    let machine = spec::machine("(4c 8G); arch=aarch64; kernel=6.6.31+rpt-rpi-2712").unwrap();
    assert_eq!(EmulationVariant::from_machine(&machine), EmulationVariant::RaspberryPi66);
    let ram = [range(0, 8 << 30, 0)];
    let made = emulate(&"8".parse().unwrap(), EmulationVariant::from_machine(&machine), &machine, &ram, &ram)
        .unwrap();
    let cpus: Vec<String> = made.nodes.iter().map(|node| node.cpus.to_string()).collect();
    assert_eq!(cpus, ["0-3", "", "", "", "", "", "", ""]);
    assert_eq!(made.distances.get(NodeId::new(0), NodeId::new(7)), Some(&20));
    let size: Fake = "1G".parse().unwrap();
    let none = emulate(&size, EmulationVariant::RaspberryPi66, &machine, &ram, &ram);
    assert_eq!(
        remark(&size, EmulationVariant::RaspberryPi66, none.as_ref()).as_deref(),
        Some("this kernel reads a number of nodes only: it starts without emulation")
    );
    let later = spec::machine("(4c 8G); arch=aarch64; kernel=6.12.25+rpt-rpi-2712").unwrap();
    assert_eq!(EmulationVariant::from_machine(&later), EmulationVariant::Mainline);
}
