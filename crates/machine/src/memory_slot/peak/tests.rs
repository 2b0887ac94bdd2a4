use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::machine::Origin;
use crate::memory_slot::MemorySlots;
use crate::{Bytes, PackageId, SlotPlace, spec};

/// A slot as `NODE CHANNEL SPEED[/MAX][xBITS] [KIND]`: a node or a channel of - is not known, a speed of - is an empty slot, of ? a
/// module without one, of ?? a slot that the firmware does not know.
fn slot(text: &str) -> MemorySlot {
    let words: Vec<&str> = text.split(' ').collect();
    let (rate, bits) = words[2].split_once('x').unwrap_or((words[2], ""));
    let (speed, max) = rate.split_once('/').unwrap_or((rate, rate));
    let kind = words.get(3).copied().unwrap_or("DDR4");
    let module = MemoryModule {
        size: Some(Bytes::from_gib(16)),
        memory_type: Some(kind.to_owned()),
        configured_speed_mt_per_s: speed.parse().ok(),
        max_speed_mt_per_s: max.parse().ok(),
        data_width_bits: bits.parse().ok(),
        ..MemoryModule::default()
    };
    let node = words[0].parse().ok().map(NodeId::new);
    MemorySlot {
        locator: Some(format!("{}_{}", words[0], words[1])),
        node,
        place: node.map(|_| SlotPlace::SocketName),
        channel: Some(words[1].to_owned()).filter(|channel| channel != "-"),
        state: match words[2] {
            "-" => SlotState::Empty,
            "??" => SlotState::Unknown,
            _ => SlotState::Installed(module),
        },
        ..MemorySlot::default()
    }
}

/// A machine with a number of nodes, and these slots.
fn machine(nodes: u32, slots: &[&str]) -> Machine {
    let mut machine = spec::machine(&format!("{nodes}x(2c 4G)")).unwrap();
    machine.memory_slots =
        MemorySlots { slots: slots.iter().map(|text| slot(text)).collect(), not_read: None };
    machine
}

/// A peak, or why there is none, in words.
fn words(peak: &Result<PeakBandwidth, UnknownPeak>) -> String {
    match peak {
        Ok(peak) => format!("{} = {}", peak.gb_per_s(), peak),
        Err(why) => why.to_string(),
    }
}

/// The peaks of the nodes, and that of the machine as the last.
fn check(nodes: u32, slots: &[&str], expected: &[&str]) {
    let peaks = machine(nodes, slots).memory_peaks(false);
    let found: Vec<String> =
        peaks.nodes.iter().map(|(_, peak)| peak).chain([&peaks.machine]).map(words).collect();
    assert_eq!(found, expected, "{slots:?}");
}

#[test]
fn a_peak_is_channels_times_speed_times_width() {
    check(
        2,
        &["0 A 3200", "0 B 3200", "1 A 3200", "1 B 3200"],
        &[
            "51.2 = 2 channels x 3200 MT/s x 8 bytes",
            "51.2 = 2 channels x 3200 MT/s x 8 bytes",
            "102.4 = 4 channels x 3200 MT/s x 8 bytes",
        ],
    );
    // Two modules at a channel are as fast as one; empty slots count for nothing.
    let one = "25.6 = 1 channel x 3200 MT/s x 8 bytes";
    check(1, &["0 A 3200", "0 A 3200", "0 B -"], &[one, one]);
    // Channels of several speeds, and a channel more on one side.
    check(
        2,
        &["0 A 2933", "0 B 3200", "0 C 3200", "1 A 2933/3200"],
        &[
            "74.664 = 2 channels x 3200 MT/s x 8 bytes + 1 channel x 2933 MT/s x 8 bytes",
            "23.464 = 1 channel x 2933 MT/s x 8 bytes",
            "98.128 = 2 channels x 3200 MT/s x 8 bytes + 2 channels x 2933 MT/s x 8 bytes",
        ],
    );
    // A channel has no name where there is one module; soldered memory has the width that is stated.
    let narrow = "8.532 = 1 channel x 4266 MT/s x 2 bytes";
    check(1, &["0 - 4266x16 LPDDR4"], &[narrow, narrow]);
    // A module of DDR5 is 64 bits wide, also where firmware states one of its halves.
    let wide = "38.4 = 1 channel x 4800 MT/s x 8 bytes";
    check(1, &["0 A 4800x32 DDR5"], &[wide, wide]);
    // What is not DRAM in a slot has no part in it.
    let dram = "21.328 = 1 channel x 2666 MT/s x 8 bytes";
    let optane = "Logical non-volatile device";
    let mut mixed = machine(1, &["0 A 2666", "0 A 2666"]);
    if let SlotState::Installed(module) = &mut mixed.memory_slots.slots[1].state {
        (module.memory_type, module.technology) =
            (Some(optane.to_owned()), Some("Intel Optane persistent memory".to_owned()));
        module.configured_speed_mt_per_s = None;
    }
    assert_eq!(words(&mixed.memory_peaks(false).machine), dram);
}

#[test]
fn what_the_firmware_does_not_state_is_unknown_with_the_reason() {
    let both = |slots: &[&str], why: &str| check(1, slots, &[why, why]);
    both(&[], "the firmware lists no memory slots");
    both(&["0 A -"], "no memory module is listed in the slots");
    both(&["0 A ?", "0 B 3200"], "the firmware does not state how fast the module in slot 0_A runs");
    both(&["0 A ?/3200"], "the firmware does not state how fast the module in slot 0_A runs");
    both(&["0 A 0/3200"], "the firmware does not state how fast the module in slot 0_A runs");
    both(&["0 - 3200", "0 - 3200"], "slot names do not include channels");
    both(&["0 A 3200", "0 B ??"], "the firmware does not state whether slot 0_B is empty");
    both(&["0 A 60000"], "the firmware states 60000 MT/s for the module in slot 0_A");
    both(&["0 A 3200 LPDDR5"], "the firmware does not state how wide the module in slot 0_A is");
    both(&["0 A 3200x12 RAM"], "the firmware does not state how wide the module in slot 0_A is");
    both(&["0 A 3200x1024 HBM2"], "the memory modules are not DRAM in slots");
    both(
        &["0 A 3200", "0 A 2933"],
        "the firmware states different speeds or widths for the modules of channel A",
    );
    for half in ["1600/3200", "1467/2933", "1333/2666", "1066/2133"] {
        let (configured, max) = half.split_once('/').unwrap();
        let why = format!(
            "the firmware states {configured} MT/s for the module in slot 0_A, half of its {max} MT/s: its clock in \
             MHz, or a slow memory"
        );
        both(&[&format!("0 A {half}")], &why);
    }
    check(
        2,
        &["0 A 3200", "0 B 3200"],
        &[
            "51.2 = 2 channels x 3200 MT/s x 8 bytes",
            "no memory slot names this node",
            "51.2 = 2 channels x 3200 MT/s x 8 bytes",
        ],
    );
    let unknown = "memory slots do not name their node";
    check(2, &["- A 3200", "- B 3200"], &[unknown, unknown, unknown]);
}

#[test]
fn a_package_of_several_nodes_has_a_peak_of_all_its_channels() {
    let mut machine = machine(2, &["- A 3200", "- B 3200"]);
    for slot in &mut machine.memory_slots.slots {
        slot.package = Some(PackageId::new(0));
    }
    let peaks = machine.memory_peaks(false);
    assert!(peaks.nodes.iter().all(|(_, peak)| *peak == Err(UnknownPeak::NodesUnknown)));
    assert_eq!(words(&peaks.machine), "51.2 = 2 channels x 3200 MT/s x 8 bytes");
}

#[test]
fn channels_of_two_sockets_in_one_node_have_the_same_names() {
    let mut machine = spec::machine("2x(2c 4G)").unwrap();
    let cpus: crate::CpuSet = machine.cpu_ids();
    machine.nodes.remove(&NodeId::new(1));
    if let Some(node) = machine.nodes.get_mut(&NodeId::new(0)) {
        node.cpus = cpus;
    }
    assert_eq!(machine.packages().len(), 2, "each node of a spec has a package");
    machine.memory_slots.slots = ["0 A 3200", "0 B 3200", "0 A 3200", "0 B 3200"].map(slot).to_vec();
    assert_eq!(machine.memory_peaks(false).machine, Err(UnknownPeak::SocketsUnknown));
    for (at, slot) in machine.memory_slots.slots.iter_mut().enumerate() {
        slot.socket = Some((at / 2).to_string());
    }
    let peaks = machine.memory_peaks(false);
    assert_eq!(words(&peaks.nodes[0].1), "102.4 = 4 channels x 3200 MT/s x 8 bytes");
    assert_eq!(words(&peaks.machine), "102.4 = 4 channels x 3200 MT/s x 8 bytes");
}

#[test]
fn a_guest_and_tables_that_cannot_be_read_have_no_peak() {
    let mut machine = machine(1, &["0 A 3200"]);
    assert_eq!(machine.memory_peaks(true).machine, Err(UnknownPeak::Virtual));
    machine.memory_slots = MemorySlots { slots: Vec::new(), not_read: Some("cannot read x".to_owned()) };
    let peaks = machine.memory_peaks(false);
    assert_eq!(words(&peaks.machine), "cannot read x");
    assert_eq!(peaks.nodes.len(), 1);
    assert_eq!(Machine::new(Origin::Live).memory_peaks(false).machine, Err(UnknownPeak::NoSlots));
}

#[test]
fn numbers_that_no_memory_has_make_no_peak() {
    let term = |channels, mt_per_s, bytes| PeakTerm { channels, mt_per_s, bytes };
    assert_eq!(PeakBandwidth::new([]), None);
    for wrong in
        [term(0, 3200, 8), term(1, 0, 8), term(1, 3200, 0), term(u32::MAX, 3200, 8), term(1, 20_001, 8)]
    {
        assert_eq!(PeakBandwidth::new([term(1, 3200, 8), wrong]), None, "{wrong}");
    }
    assert_eq!(PeakBandwidth::new((0..600).map(|at| term(1, 3000 + at, 8))), None);
    let alike = PeakBandwidth::new([term(2, 3200, 8), term(6, 3200, 8)]).unwrap();
    assert_eq!(alike.terms(), [term(8, 3200, 8)]);
}

proptest! {
    #[test]
    fn a_peak_is_that_of_each_channel_once_or_there_is_none(
        modules in proptest::collection::vec((0_u32..3, 0_u32..4, 0_usize..5), 1..24),
    ) {
        // Of each module: node, channel, and a speed; 0 is none that is stated.
        let speeds = [0, 1866, 2400, 2933, 3200];
        let texts: Vec<String> = modules
            .iter()
            .map(|(node, channel, speed)| format!("{node} {channel} {}/3200", speeds[*speed]))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let peaks = machine(3, &texts).memory_peaks(false);
        let mut sum = 0.0;
        for (node, peak) in &peaks.nodes {
            let own: Vec<_> = modules.iter().filter(|module| module.0 == node.number()).collect();
            let mut channels: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            own.iter().for_each(|(_, channel, speed)| channels.entry(*channel).or_default().push(speeds[*speed]));
            let is_whole = channels.values().all(|all| all[0] > 0 && all.iter().all(|speed| *speed == all[0]));
            prop_assert_eq!(peak.is_ok(), is_whole && !own.is_empty());
            if let Ok(peak) = peak {
                let each: u32 = channels.values().map(|all| all[0] * 8).sum();
                prop_assert!((peak.gb_per_s() - f64::from(each) / 1e3).abs() < 1e-9);
                prop_assert_eq!(peak.terms().iter().map(|term| term.channels).sum::<u32>() as usize, channels.len());
                sum += peak.gb_per_s();
            }
        }
        let are_known = peaks.nodes.iter().all(|(node, peak)| {
            peak.is_ok() || modules.iter().all(|module| module.0 != node.number())
        });
        prop_assert_eq!(peaks.machine.is_ok(), are_known);
        if let Ok(machine) = &peaks.machine {
            prop_assert!((machine.gb_per_s() - sum).abs() < 1e-9);
        }
    }

    #[test]
    fn any_names_and_numbers_are_survived(
        names in proptest::collection::vec(("\\PC{0,6}", 0_u32..u32::MAX, 0_u32..u32::MAX), 0..6),
    ) {
        let mut machine = machine(2, &[]);
        machine.memory_slots.slots = names
            .iter()
            .map(|(name, speed, bits)| MemorySlot {
                locator: Some(format!("\u{1b}{name}")),
                channel: Some(name.clone()),
                node: Some(NodeId::new(speed % 2)),
                state: SlotState::Installed(MemoryModule {
                    configured_speed_mt_per_s: Some(*speed),
                    data_width_bits: Some(*bits),
                    ..MemoryModule::default()
                }),
                ..MemorySlot::default()
            })
            .collect();
        let peaks = machine.memory_peaks(false);
        for peak in peaks.nodes.iter().map(|(_, peak)| peak).chain([&peaks.machine]) {
            let is_raw = words(peak).contains('\u{1b}');
            prop_assert!(!is_raw);
            prop_assert!(peak.as_ref().map_or(0.0, PeakBandwidth::gb_per_s).is_finite());
        }
    }
}
