//! Two machines side by side: each change is named and nothing else, and rules that hold for any two machines.

use std::collections::BTreeSet;
use std::path::Path;

use nodewise_machine::{
    Bytes, CpuId, CpuSet, Device, DeviceClass, KernelRelease, Machine, MeminfoValue, NodeId, Oddity,
    OddityKind, Origin, SlotState, spec,
};
use nodewise_source::{Detail, input};
use nodewise_view::digest::diff::{Diff, DiffExtent, Difference, FactValue, Side, Subjects};
use nodewise_view::{Style, json, text};
use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};
use serde_json::Value;

use crate::any_machine::any_machine;

/// A server of two sockets with memory slots, devices, caches and huge pages, as hwloc captured it.
fn server() -> Machine {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/captures");
    let path = data.join("32em64t-2n8c+dax+nvme+mic+dimms.tar.bz2");
    let path = path.to_str().expect("the repository has a path of text");
    let mut machine = input::load(path, Detail::Full).expect("the capture is in the repository");
    machine.origin = Origin::Capture("server".to_owned());
    for cpu in machine.cpus.values_mut() {
        cpu.microcode = Some(0x2b00_0461);
    }
    let cpus = machine.cpu_ids();
    machine.settings.governors = [("powersave".to_owned(), cpus)].into();
    machine.settings.numa_balancing = Some(1);
    machine.settings.zone_reclaim_mode = Some(0);
    machine.settings.transparent_hugepage = Some("always".to_owned());
    machine.settings.command_line = Some("quiet hugepages=16 isolcpus=2".to_owned());
    machine.kernel = KernelRelease::new("6.12.1");
    machine.product.firmware_version = Some("2.10.2".to_owned());
    machine
}

/// The words and subjects of differences: `memory_bytes of 0`.
fn named(diff: &Diff<'_>) -> Vec<String> {
    let of = |difference: &Difference| {
        let whose = match &difference.subjects {
            Subjects::Machine => String::new(),
            Subjects::Nodes(nodes) => format!(" of {nodes}"),
            Subjects::Cpus(cpus) => format!(" of {cpus}"),
            Subjects::Pairs(pairs) => format!(" of {} pairs", pairs.len()),
            Subjects::Names(names) => format!(" of {}", names.join(", ")),
        };
        format!("{}{whose}", difference.fact.word)
    };
    diff.differences.iter().map(of).collect()
}

/// Changes a server and compares what is named.
#[track_caller]
fn check(change: impl FnOnce(&mut Machine), expected: &[&str]) {
    let before = server();
    let mut after = before.clone();
    change(&mut after);
    let diff = Diff::new(&before, &after, DiffExtent::Lasting);
    assert_eq!(named(&diff), expected);
    assert_eq!(diff.unknown, []);
    let back = Diff::new(&after, &before, DiffExtent::Lasting);
    assert_eq!(named(&back), expected);
}

fn n(number: u32) -> NodeId {
    NodeId::new(number)
}

#[test]
fn each_kind_of_change_is_named_and_nothing_else() {
    check(|machine| machine.product.firmware_version = Some("9.9".to_owned()), &["firmware_version"]);
    check(
        |machine| machine.cpus.values_mut().for_each(|cpu| cpu.microcode = Some(0x2b00_0661)),
        &["microcode of 0-15"],
    );
    check(|machine| machine.kernel = KernelRelease::new("6.18.1"), &["kernel_release"]);
    check(
        |machine| {
            let node = machine.nodes.get_mut(&n(0)).unwrap();
            let total = node.meminfo.iter_mut().find(|field| field.name == "MemTotal").unwrap();
            total.value = MeminfoValue::Size(Bytes::from_gib(16));
        },
        &["memory_bytes of 0"],
    );
    check(
        |machine| {
            machine.distances.set(n(0), n(1), 31);
            machine.distances.set(n(1), n(0), 31);
        },
        &["distance of 2 pairs"],
    );
    check(|machine| machine.memory_slots.slots[0].state = SlotState::Empty, &["module of DIMM_A1"]);
    check(
        |machine| {
            for slot in &mut machine.memory_slots.slots {
                if let SlotState::Installed(module) = &mut slot.state {
                    module.configured_speed_mt_per_s = Some(1333);
                }
            }
        },
        &[
            "configured_speed_mt_per_s of DIMM_A1, DIMM_A2, DIMM_A3, DIMM_A4, DIMM_B1, DIMM_B2, DIMM_B3, DIMM_B4",
        ],
    );
    check(
        |machine| {
            for cache in machine.caches.iter_mut().filter(|cache| cache.level == 3) {
                cache.size = Some(Bytes::from_mib(10));
            }
        },
        &["l3_bytes of 0-15"],
    );
    check(
        |machine| {
            let is_net = |device: &&mut Device| device.name_in(DeviceClass::Net) == Some("eth0");
            machine.devices.iter_mut().find(is_net).unwrap().node = Some(n(1));
        },
        &["node of 0000:02:00.0 (net eth0)"],
    );
    check(
        |machine| {
            machine.devices.retain(|device| device.name_in(DeviceClass::Net) != Some("eth0"));
        },
        &["device of 0000:02:00.0 (net eth0)"],
    );
    check(|machine| machine.settings.zone_reclaim_mode = Some(1), &["zone_reclaim_mode"]);
    check(
        |machine| machine.settings.transparent_hugepage = Some("never".to_owned()),
        &["transparent_hugepage"],
    );
    check(
        |machine| {
            let all = std::mem::take(&mut machine.settings.governors).remove("powersave").unwrap();
            machine.settings.governors.insert("performance".to_owned(), all);
        },
        &["governor of 0-15"],
    );
    check(
        |machine| machine.settings.command_line = Some("quiet isolcpus=2-5 hugepages=16 nosmt".to_owned()),
        &["boot_parameter of isolcpus", "boot_parameter of nosmt"],
    );
    check(
        |machine| {
            let node = machine.nodes.get_mut(&n(1)).unwrap();
            node.huge_pools[0].total = node.huge_pools[0].total.map(|total| total + 16);
        },
        &["huge_pages_2097152 of 1"],
    );
    check(
        |machine| machine.oddities.push(Oddity::new(OddityKind::Nominal, "nodes cannot differ")),
        &["oddity of nodes cannot differ"],
    );
}

#[test]
fn a_cpu_that_goes_offline_is_one_difference() {
    check(
        |machine| {
            let cpu = CpuId::new(3);
            let gone = CpuSet::from_iter([cpu]);
            let offline = machine.cpus.get_mut(&cpu).unwrap();
            offline.online = false;
            (offline.core, offline.package, offline.siblings) = (None, None, CpuSet::new());
            for node in machine.nodes.values_mut() {
                node.cpus = node.cpus.difference(&gone);
            }
            for cache in &mut machine.caches {
                cache.cpus = cache.cpus.difference(&gone);
            }
            machine.caches.retain(|cache| !cache.cpus.is_empty());
            for device in &mut machine.devices {
                device.local_cpus = device.local_cpus.difference(&gone);
            }
        },
        &["online of 3"],
    );
}

#[test]
fn free_memory_is_a_difference_only_where_everything_is_compared() {
    let before = server();
    let mut after = before.clone();
    let node = after.nodes.get_mut(&n(0)).unwrap();
    let free = node.meminfo.iter_mut().find(|field| field.name == "MemFree").unwrap();
    free.value = MeminfoValue::Size(Bytes::from_gib(1));
    assert_eq!(named(&Diff::new(&before, &after, DiffExtent::Lasting)), [""; 0]);
    assert_eq!(named(&Diff::new(&before, &after, DiffExtent::Everything)), ["meminfo.MemFree_bytes of 0"]);
}

#[test]
fn a_fact_of_one_side_is_unknown_and_no_difference() {
    let before = server();
    let mut after = before.clone();
    after.kernel = None;
    after.memory_slots.slots.clear();
    after.cpus.values_mut().for_each(|cpu| cpu.microcode = None);
    after.oddities.push(Oddity::in_file(OddityKind::Unreadable, "/x", "cannot be read: permission denied"));
    let diff = Diff::new(&before, &after, DiffExtent::Lasting);
    assert!(diff.is_equal(), "{:?}", diff.differences);
    let unknown: Vec<(&str, Side)> =
        diff.unknown.iter().map(|unknown| (&*unknown.fact.word, unknown.known_of)).collect();
    let expected = ["microcode", "kernel_release", "slots", "file"].map(|word| (word, Side::A));
    assert_eq!(unknown, expected);
    let text = text::diff(&diff, &Style::plain(100));
    assert!(
        text.contains("Not compared  known of one side only\n  only A: microcode of CPUs 0-15; release; "),
        "{text}"
    );
    assert!(text.starts_with("no difference ("), "{text}");
}

#[test]
fn text_is_what_a_person_accepted() {
    let before = server();
    let mut after = before.clone();
    after.origin = Origin::Capture("server-after".to_owned());
    after.product.firmware_version = Some("2.11.0".to_owned());
    after.cpus.values_mut().for_each(|cpu| cpu.microcode = Some(0x2b00_0661));
    after.distances.set(n(0), n(1), 31);
    after.distances.set(n(1), n(0), 31);
    after.memory_slots.slots[3].state = SlotState::Empty;
    after.settings.zone_reclaim_mode = Some(1);
    after.kernel = None;
    let diff = Diff::new(&before, &after, DiffExtent::Lasting);
    let expected = "\
21 of 1504 facts differ: Firmware, Distances, Memory slots, Settings
  A  capture server
  B  capture server-after

Firmware  17 of 21 facts
                    A           B
  firmware version  2.10.2      2.11.0
  microcode         0x2b000461  0x2b000661  CPUs 0-15

Distances  2 of 4 facts
            A   B
  distance  21  31  between nodes 0-1

Memory slots  1 of 183 facts
          A           B
  module  4 GiB DDR3  absent  DIMM_A4

Settings  1 of 22 facts
                     A  B
  zone_reclaim_mode  0  1

Not compared  known of one side only
  only A: release
";
    assert_eq!(text::diff(&diff, &Style::plain(80)), expected);
}

#[test]
fn machines_without_anything_in_common_are_a_page() {
    let a = server();
    let b = spec::machine("8x(16c2t 256G l3=32M/8c) 2x(512G); dist=12; arch=aarch64; kernel=6.6.1").unwrap();
    let diff = Diff::new(&a, &b, DiffExtent::Lasting);
    let text = text::diff(&diff, &Style::plain(100));
    assert!(text.lines().count() < 80, "{text}");
    assert!(text.contains("nothing in common: Kernel\n"), "{text}");
}

#[test]
fn hostile_names_are_escaped() {
    let evil = "\u{1b}]0;x\u{7}\u{202e}";
    let before = server();
    let mut after = before.clone();
    after.product.firmware_version = Some(evil.to_owned());
    after.devices[0]
        .names
        .push(nodewise_machine::DeviceName { class: DeviceClass::Net, name: evil.to_owned() });
    after.memory_slots.slots[0].locator = Some(evil.to_owned());
    after.settings.command_line = Some(format!("{evil}=1"));
    let text = text::diff(&Diff::new(&before, &after, DiffExtent::Everything), &Style::plain(80));
    assert!(!text.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{text:?}");
    assert!(text.contains("\\x1b]0;x"), "{text}");
}

/// The differences with their values in order.
fn as_set(diff: &Diff<'_>, is_back: bool) -> BTreeSet<String> {
    let of = |difference: &Difference| {
        let (a, b) = if is_back { (&difference.b, &difference.a) } else { (&difference.a, &difference.b) };
        format!("{:?} {} {:?} {a:?} {b:?}", difference.fact.group, difference.fact.word, difference.subjects)
    };
    diff.differences.iter().map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_machine_does_not_differ_from_itself(machine in any_machine()) {
        let diff = Diff::new(&machine, &machine, DiffExtent::Everything);
        prop_assert!(diff.is_equal(), "{:?}", diff.differences);
        prop_assert!(diff.unknown.is_empty(), "{:?}", diff.unknown);
    }

    #[test]
    fn the_way_back_has_the_same_differences(a in any_machine(), b in any_machine()) {
        let there = Diff::new(&a, &b, DiffExtent::Everything);
        let back = Diff::new(&b, &a, DiffExtent::Everything);
        prop_assert_eq!(as_set(&there, false), as_set(&back, true));
        prop_assert_eq!(there.compared(), back.compared());
        prop_assert_eq!(there.unknown.len(), back.unknown.len());
    }

    #[test]
    fn text_and_json_have_the_same_facts_and_text_fits(a in any_machine(), b in any_machine(), columns in 40usize..140) {
        let diff = Diff::new(&a, &b, DiffExtent::Everything);
        let text = text::diff(&diff, &Style::plain(columns));
        let json: Value = serde_json::from_str(&json::diff(&diff)).unwrap();
        prop_assert_eq!(&json["schema"], "nodewise.diff/1");
        prop_assert_eq!(json["equal"].as_bool(), Some(diff.is_equal()));
        let differences = json["differences"].as_array().unwrap();
        prop_assert_eq!(differences.len(), diff.differences.len());
        prop_assert_eq!(json["unknown"].as_array().unwrap().len(), diff.unknown.len());
        for (difference, json) in diff.differences.iter().zip(differences) {
            prop_assert!(text.contains(difference.fact.group.title()));
            prop_assert_eq!(&json["fact"], &*difference.fact.word);
            if let (FactValue::Number(a), FactValue::Number(b)) = (&difference.a, &difference.b) {
                prop_assert_eq!((&json["a"], &json["b"]), (&Value::from(*a), &Value::from(*b)));
            }
        }
        for line in text.lines() {
            prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
        }
    }
}
