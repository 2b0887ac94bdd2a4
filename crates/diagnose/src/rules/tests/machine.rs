//! Rules about nodes, devices and firmware.

use nodewise_machine::memory_slot::{MemoryModule, MemorySlot, SlotState};
use nodewise_machine::{
    CpuId, KernelRelease, MemoryRange, NodeCounters, NodeId, NodeMatrix, Oddity, OddityKind,
};
use nodewise_source::sample::{InterruptSample, QueueSample};

use super::*;
use crate::finding::Value;

#[test]
fn page_cache_that_pushes_others_away() {
    let rule = &cache_fills_node::RULE;
    let mut fixture = Fixture::new(FOUR);
    full(&mut fixture, 1, gib(12));
    let allocations =
        |hit, foreign| NodeCounters { hit: Some(hit), foreign: Some(foreign), ..Default::default() };
    fixture.before.nodes[1].allocations = allocations(1_000, 0);
    fixture.now.nodes[1].allocations = allocations(10_000, 1_000);
    let found = one(&fixture, rule);
    assert_eq!((found.concerns, &found.subject), (Some(Bytes::from_kib(4_000)), &Subject::Nodes(nodes("1"))));
    // No program allocates there.
    fixture.now.nodes[1].allocations = allocations(10_000, 10);
    silent(&fixture, rule);
}

#[test]
fn node_reclaim_that_drops_cache() {
    let rule = &zone_reclaim_on::RULE;
    let mut fixture = Fixture::new(FOUR);
    fixture.machine.settings.zone_reclaim_mode = Some(1);
    fixture.happened(&[("zone_reclaim_failed", 5), ("zone_reclaim_success", 0)]);
    silent(&fixture, rule);
    fixture.happened(&[("zone_reclaim_failed", 5), ("zone_reclaim_success", 300)]);
    assert_eq!(one(&fixture, rule).mends[0].commands, ["sysctl -w vm.zone_reclaim_mode=0"]);
    fixture.machine.settings.zone_reclaim_mode = Some(0);
    silent(&fixture, rule);
}

#[test]
fn reserves_that_hold_back_much() {
    let rule = &reserve_too_large::RULE;
    let mut fixture = Fixture::new(FOUR);
    silent(&fixture, rule);
    fixture.now.nodes[2].high_watermark = Some(Bytes::from_mib(1_000));
    silent(&fixture, rule);
    fixture.now.nodes[2].high_watermark = Some(gib(2));
    assert_eq!(one(&fixture, rule).subject, Subject::Nodes(nodes("2")));
    for node in &mut fixture.now.nodes {
        node.high_watermark = None;
    }
    let situation = crate::Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    assert_eq!(rule.lacks(&situation)[0].fact, "watermarks of zones");
}

#[test]
fn kernel_memory_on_one_node() {
    let rule = &kernel_memory_lopsided::RULE;
    let mut fixture = Fixture::new(FOUR);
    for node in 0..4 {
        fixture.meminfo(node, "SUnreclaim", Bytes::from_mib(100));
    }
    silent(&fixture, rule);
    fixture.meminfo(0, "SUnreclaim", gib(2));
    assert_eq!(one(&fixture, rule).concerns, Some(gib(2)));
}

/// A device on node 0 with this many lines, whose interrupts CPU 6 (node 3) takes.
fn device(fixture: &mut Fixture, lines: u32, count: u64) {
    let sample = |count| InterruptSample {
        device: "net:eth0".to_owned(),
        node: Some(NodeId::new(0)),
        lines: (40..40 + lines).collect(),
        by_cpu: vec![(CpuId::new(0), 0), (CpuId::new(6), count)],
        ..InterruptSample::default()
    };
    fixture.before.interrupts = vec![sample(0)];
    fixture.now.interrupts = vec![sample(count)];
}

#[test]
fn interrupts_on_another_node() {
    let rule = &irq_remote::RULE;
    let mut fixture = Fixture::new(FOUR);
    let situation = crate::Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    assert_eq!(rule.lacks(&situation)[0].fact, "interrupts of devices");
    device(&mut fixture, 2, 48_200);
    let found = one(&fixture, rule);
    assert_eq!(found.summary, "100 % of 4820 interrupts/s of net:eth0 are handled on node 3");
    let commands = ["echo 0-1 > /proc/irq/40/smp_affinity_list", "echo 0-1 > /proc/irq/41/smp_affinity_list"];
    assert_eq!(found.mends[0].commands, commands);
    // One queue for each CPU.
    device(&mut fixture, 8, 48_200);
    silent(&fixture, rule);
    device(&mut fixture, 2, 4_000);
    silent(&fixture, rule);
}

#[test]
fn queues_that_name_another_node() {
    let rule = &rps_xps_remote::RULE;
    let mut fixture = Fixture::new(FOUR);
    device(&mut fixture, 2, 10);
    let queue = |name: &str, cpus: Option<&[u32]>| QueueSample {
        name: name.to_owned(),
        cpus: cpus.map(|cpus| cpus.iter().copied().map(CpuId::new).collect()),
        flows: None,
    };
    // Its interrupts are on CPU 6, which is on node 3.
    let lacks = |fixture: &Fixture| {
        let situation = fixture.situation();
        rule.lacks(&situation).into_iter().map(|lack| lack.fact).collect::<Vec<_>>()
    };
    assert_eq!(lacks(&fixture), ["queues of network devices"], "an older recording");
    assert_eq!(fixture.lacks_at_once(rule), ["rates", "queues of network devices"]);
    // No steering, not known, over several nodes, and where the interrupts are.
    let healthy = [
        queue("rx-0", Some(&[])),
        queue("rx-1", None),
        queue("rx-2", Some(&[1, 4])),
        queue("rx-3", Some(&[7])),
        queue("tx-0", Some(&[1, 6])),
        queue("tx-1", Some(&[2, 3])),
    ];
    fixture.now.interrupts[0].queues = healthy.to_vec();
    silent(&fixture, rule);
    fixture.now.interrupts[0].queues.insert(4, queue("rx-4", Some(&[4])));
    let found = one(&fixture, rule);
    assert_eq!(found.summary, "1 of 7 queues of net:eth0, on node 0, name CPUs of node 2 only");
    fixture.now.interrupts[0].queues[5].cpus = Some([CpuId::new(6)].into_iter().collect());
    let found = one(&fixture, rule);
    assert_eq!(found.summary, "3 of 7 queues of net:eth0, on node 0, name CPUs of nodes 1-3 only");
    let mend = &found.mends[0];
    let file = |queue: &str, mask: &str| {
        let file = if queue.starts_with("rx") { "rps_cpus" } else { "xps_cpus" };
        format!("echo {mask:0>8} > /sys/class/net/eth0/queues/{queue}/{file}")
    };
    assert_eq!(mend.commands, [file("rx-4", "3"), file("tx-0", "3"), file("tx-1", "3")]);
    assert_eq!(mend.undo, [file("rx-4", "10"), file("tx-0", "40"), file("tx-1", "c")]);
    for name in ["rx-4/$(reboot)", "rx-..", "rx-4;x"] {
        fixture.now.interrupts[0].queues[4].name = name.to_owned();
        assert!(one(&fixture, rule).mends.is_empty(), "{name}");
    }
    // Idle, of no node, and no network device.
    let queues = vec![queue("rx-2", Some(&[4]))];
    let mut with = |count: u64, node: Option<u32>, name: &str, findings: usize| {
        device(&mut fixture, 2, count);
        for sample in [&mut fixture.before, &mut fixture.now] {
            sample.interrupts[0].device = name.to_owned();
            sample.interrupts[0].node = node.map(NodeId::new);
        }
        fixture.now.interrupts[0].queues = queues.clone();
        assert_eq!(fixture.findings(rule).len(), findings);
    };
    with(10, Some(0), "net:eth0", 1);
    with(0, Some(0), "net:eth0", 0);
    with(10, None, "net:eth0", 0);
    with(10, Some(9), "net:eth0", 0);
    device(&mut fixture, 2, 10);
    fixture.now.interrupts[0].device = "block:vda".to_owned();
    assert!(lacks(&fixture).is_empty(), "a machine without network devices lacks none of their queues");
}

#[test]
fn devices_whose_node_nobody_knows() {
    let rule = &device_node_unknown::RULE;
    let mut fixture = Fixture::new("2x(2c 16G); dev=net:eth0@1");
    silent(&fixture, rule);
    for device in &mut fixture.machine.devices {
        device.node = None;
        device.local_cpus = nodewise_machine::CpuSet::new();
        device.pci = Some("0000:21:00.0".parse().unwrap());
    }
    assert_eq!(one(&fixture, rule).severity, Severity::Info);
}

#[test]
fn packages_in_one_node() {
    let rule = &nodes_hidden::RULE;
    let mut fixture = Fixture::new("(2p4c 64G)");
    assert_eq!(fixture.machine.packages().len(), 2);
    fixture.machine.settings.command_line = Some("quiet".to_owned());
    assert_eq!(one(&fixture, rule).severity, Severity::Info, "not known whether it is a virtual machine");
    let severity = |fixture: &Fixture, is_virtual| {
        let mut situation =
            crate::Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
        situation.virtual_machine = is_virtual;
        (rule.check)(&situation).first().map(|finding| finding.severity)
    };
    assert_eq!(severity(&fixture, Some(false)), Some(Severity::Warning));
    assert_eq!(severity(&fixture, Some(true)), None);
    fixture.machine.settings.command_line = Some("numa=off".to_owned());
    assert_eq!(severity(&fixture, Some(false)), None, "the command line asked for it");
}

#[test]
fn a_command_line_that_hides_the_nodes() {
    let rule = &numa_off::RULE;
    let mut fixture = Fixture::new("(4c 64G)");
    fixture.machine.settings.command_line = Some("quiet numa=off".to_owned());
    silent(&fixture, rule);
    let range = |node| MemoryRange { start: 0, end: 1, node: NodeId::new(node) };
    fixture.machine.memory_map.nodes = vec![range(0), range(1)];
    assert_eq!(one(&fixture, rule).confidence, Confidence::Certain);
    fixture.machine.settings.command_line = Some("quiet -- numa=off".to_owned());
    silent(&fixture, rule);
}

#[test]
fn a_node_without_memory() {
    let rule = &node_without_memory::RULE;
    let fixture = Fixture::new("2x(2c 16G) (2c)");
    assert_eq!(one(&fixture, rule).subject, Subject::Nodes(nodes("2")));
    silent(&Fixture::new(FOUR), rule);
    silent(&Fixture::new("2x(2c 16G) (16G)"), rule);
}

#[test]
fn nodes_that_are_all_equally_far() {
    let rule = &distances_flat::RULE;
    assert_eq!(one(&Fixture::new("2x(2x(2c 16G)); dist=20"), rule).confidence, Confidence::Possible);
    silent(&Fixture::new("2x(2x(2c 16G)); dist=11,20"), rule);
    // One node to a package: nothing to distinguish.
    silent(&Fixture::new(FOUR), rule);
}

#[test]
fn distances_that_cannot_be() {
    let rule = &distances_invalid::RULE;
    let with = |from: u32, to: u32, distance: u32| {
        let mut fixture = Fixture::new(FOUR);
        fixture.machine.distances.set(NodeId::new(from), NodeId::new(to), distance);
        fixture
    };
    let found = one(&with(0, 2, 255), rule);
    assert_eq!((found.severity, found.confidence), (Severity::Note, Confidence::Certain));
    assert_eq!(found.subject, Subject::Nodes(nodes("0,2")));
    let evidence = &found.evidence[0];
    assert_eq!((evidence.fact.as_str(), &evidence.value), ("from node 0 to node 2", &Value::text("255")));
    for (from, to, distance) in [(1, 3, 10), (3, 1, 9), (2, 2, 20), (0, 1, u32::MAX)] {
        assert_eq!(one(&with(from, to, distance), rule).evidence.len(), 1, "{from} to {to}: {distance}");
    }
    // The ways there and back may differ.
    silent(&with(0, 2, 254), rule);
    silent(&Fixture::new(FOUR), rule);
    let mut none = Fixture::new(FOUR);
    none.machine.distances = NodeMatrix::default();
    assert_eq!(rule.lacks(&none.situation())[0].fact, "distances");
}

#[test]
fn pairs_without_a_distance_are_counted_and_the_first_are_named() {
    let rule = &distances_invalid::RULE;
    let mut fixture = Fixture::new(FOUR);
    let whole = fixture.machine.distances.clone();
    let mut partial = NodeMatrix::new(whole.nodes().iter().copied());
    for (from, to, distance) in whole.iter().filter(|(_, to, _)| to.number() != 3) {
        partial.set(from, to, *distance);
    }
    fixture.machine.distances = partial;
    let found = one(&fixture, rule);
    assert_eq!(found.summary, "4 distances of nodes 0-3 cannot be");
    assert_eq!(found.evidence.len(), 4);
    assert_eq!(found.evidence[0].value, Value::text("missing"));
}

#[test]
fn a_table_of_distances_that_the_kernel_rejects() {
    let rule = &distances_invalid::RULE;
    let mut fixture = Fixture::new("4x(1c 1G); dist=20");
    let text =
        "SLIT at 0x2d: the distance from domain 0 to 1 is 10, not above 10: the kernel rejects the table";
    fixture.machine.oddities.push(Oddity::new(OddityKind::FirmwareRejected, text));
    let found = one(&fixture, rule);
    assert_eq!((&found.subject, found.evidence.len()), (&Subject::Machine, 1));
    assert_eq!(found.evidence[0].value, Value::text(text));
    // Distances that the kernel would not have then.
    let mut fixture_of_table = Fixture::new("4x(1c 1G); dist=21");
    fixture_of_table.machine.oddities.clone_from(&fixture.machine.oddities);
    silent(&fixture_of_table, rule);
    // Another table.
    fixture.machine.oddities[0].text = text.replace("SLIT", "HMAT");
    silent(&fixture, rule);
}

#[test]
fn emulated_nodes_one_after_the_other() {
    let rule = &fake_nodes_local::RULE;
    let mut fixture = Fixture::new("4x(1c 1G)");
    fixture.machine.settings.command_line = Some("numa=fake=4".to_owned());
    assert_eq!(one(&fixture, rule).severity, Severity::Info);
    fixture.machine.kernel = KernelRelease::new("6.12.25+rpt-rpi-2712");
    assert_eq!(one(&fixture, rule).severity, Severity::Warning);
    fixture.machine.settings.command_line = Some("numa=fake=4 numa_policy=interleave".to_owned());
    silent(&fixture, rule);
}

#[test]
fn emulated_nodes_that_are_not_there() {
    let rule = &fake_not_honoured::RULE;
    let mut fixture = Fixture::new("(4c 8G)");
    fixture.machine.settings.command_line = Some("numa=fake=4\u{1b}[31m".to_owned());
    let found = one(&fixture, rule);
    assert!(!found.summary.contains('\u{1b}'), "{}", found.summary);
    assert!(found.cause.as_ref().is_some_and(|cause| cause.contains("NUMA_EMU")), "{found:#?}");
    let mut check = |value: &str, expected: Option<&str>| {
        fixture.machine.settings.command_line = Some(format!("numa=fake={value}"));
        let cause = fixture.findings(rule).first().map(|found| found.cause.clone().unwrap_or_default());
        assert_eq!(cause.as_deref(), expected, "{value}");
    };
    // As many nodes as hold the memory: one.
    check("8G", Some("one node of 8 GiB holds all memory of this machine: 8 GiB"));
    check("9000M", Some("one node of 8.8 GiB holds all memory of this machine: 8 GiB"));
    let unread = "the kernel was built without NUMA_EMU, or does not read the value";
    check("4G", Some(unread));
    check("8", Some(unread));
    check("G", Some(unread));
    check("1", None);
    check("1U", None);
}

#[test]
fn parameters_that_this_kernel_does_not_have() {
    let rule = &setting_does_not_exist::RULE;
    let check = |line: &str, release: &str, expected: usize| {
        let mut fixture = Fixture::new(FOUR);
        fixture.machine.settings.command_line = Some(line.to_owned());
        fixture.machine.kernel = KernelRelease::new(release);
        assert_eq!(fixture.findings(rule).len(), expected, "{line}");
    };
    check("quiet numa_policy=interleave", "6.12.1", 1);
    check("quiet numa_policy=interleave", "6.12.25+rpt-rpi-2712", 0);
    check("numa=fake=4 numa=noacpi,nohmat numa=fake=2*512,1G", "6.12.1", 0);
    check("numa=fkae=4", "6.12.1", 1);
    check("", "6.12.1", 0);
}

#[test]
fn memory_modules_that_are_uneven() {
    let rule = &dimms_uneven::RULE;
    let mut fixture = Fixture::new(FOUR);
    let situation = crate::Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    assert_eq!(rule.lacks(&situation)[0].reason, "this source does not hold them");
    let slot = |node: u32, channel: &str, size: Option<Bytes>| MemorySlot {
        node: Some(NodeId::new(node)),
        channel: Some(channel.to_owned()),
        state: size.map_or(SlotState::Empty, |size| {
            SlotState::Installed(MemoryModule { size: Some(size), ..MemoryModule::default() })
        }),
        ..MemorySlot::default()
    };
    let module = Some(gib(16));
    fixture.machine.memory_slots.slots =
        vec![slot(0, "A", module), slot(0, "B", module), slot(1, "A", module), slot(1, "B", module)];
    silent(&fixture, rule);
    fixture.machine.memory_slots.slots[3] = slot(1, "B", None);
    let found = fixture.findings(rule);
    assert_eq!(found.len(), 1, "sides; one module is at one channel: {found:#?}");
    assert_eq!(found[0].severity, Severity::Warning);
    fixture.machine.memory_slots.slots.clear();
    fixture.machine.memory_slots.not_read = Some("permission denied".to_owned());
    let situation = crate::Situation::new(&fixture.machine, Some(&fixture.before), &fixture.now).unwrap();
    assert_eq!(rule.lacks(&situation)[0].reason, "permission denied");
}
