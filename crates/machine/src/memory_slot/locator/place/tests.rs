use proptest::prelude::{any, proptest};

use super::{Board, place};
use crate::memory_slot::{MemoryModule, MemorySlot, MemorySlots, SlotPlace, SlotSide, SlotState};
use crate::{Machine, Origin, spec};

fn machine(spec: &str) -> Machine {
    if spec.is_empty() { Machine::new(Origin::Live) } else { spec::machine(spec).unwrap() }
}

/// Places slots with these names (`locator|bank`); gives socket, node and channel of each.
fn placed(spec: &str, board: &Board, names: &[&str]) -> (Vec<String>, Option<SlotPlace>) {
    let slot = |name: &&str| {
        let (locator, bank) = name.split_once('|').unwrap_or((name, "Not Specified"));
        MemorySlot { locator: Some(locator.into()), bank: Some(bank.into()), ..MemorySlot::default() }
    };
    let mut slots: Vec<MemorySlot> = names.iter().map(slot).collect();
    place(&mut slots, board, &machine(spec));
    let word = |text: Option<String>| text.unwrap_or("-".into());
    let words = |slot: &MemorySlot| {
        let node = word(slot.node.map(|node| node.to_string()));
        format!("{} {node} {}", word(slot.socket.clone()), word(slot.channel.clone()))
    };
    (slots.iter().map(words).collect(), slots[0].place)
}

fn check(spec: &str, board: &Board, names: &[&str], expected: &[&str], by: Option<SlotPlace>) {
    let (found, place) = placed(spec, board, names);
    assert_eq!(found, expected, "{names:?}");
    assert_eq!(place, by, "{names:?}");
}

fn dell(sockets: usize) -> Board {
    Board { vendor: Some("Dell Inc.".into()), sockets: Some(sockets), ..Board::default() }
}

const TWO: &str = "2x(4c 8G)";

#[test]
fn sockets_are_counted_from_0_or_from_1() {
    let by = Some(SlotPlace::SocketName);
    let board = Board::default();
    check(TWO, &board, &["P1-DIMMA1", "P2-DIMMA1"], &["1 0 A", "2 1 A"], by);
    check(TWO, &board, &["CPU0_DIMM_A0", "CPU1_DIMM_B0"], &["0 0 A", "1 1 B"], by);
    check(TWO, &board, &["PROC 1 DIMM 1", "PROC 2 DIMM 12"], &["1 0 -", "2 1 -"], by);
    // Of a firmware that counts sockets from 1 in one name and from 0 in the other, the slot's own name counts.
    let names = ["P1-DIMMA1|P0_Node0_Channel0_Dimm0", "P2-DIMMD1|P1_Node1_Channel0_Dimm0"];
    check(TWO, &board, &names, &["1 0 A", "2 1 D"], by);
    let names = ["DIMM 0|P0_Node1_Channel0_Dimm0", "DIMM 1|P1_Node0_Channel0_Dimm0"];
    check(TWO, &board, &names, &["0 0 1.0", "1 1 0.0"], by);
}

#[test]
fn the_letter_of_a_connector_is_no_channel() {
    let names = ["DIMM000 J11|SOCKET 0 CHANNEL 0 DIMM 0", "DIMM170 J31|SOCKET 1 CHANNEL 7 DIMM 0"];
    check(TWO, &Board::default(), &names, &["0 0 0", "1 1 7"], Some(SlotPlace::SocketName));
    // Memory controllers of both sockets are numbered through.
    let names = ["CPU0_C6D0|NODE 3", "CPU1_C0D1|NODE 4"];
    check(TWO, &Board::default(), &names, &["0 0 6", "1 1 0"], Some(SlotPlace::SocketName));
    // The socket is in the bank only.
    let names = ["DIMM 12|CPU 1", "DIMM 13|CPU 2"];
    check(TWO, &Board::default(), &names, &["1 0 -", "2 1 -"], Some(SlotPlace::SocketName));
}

#[test]
fn a_node_in_a_name_is_a_socket_only_where_there_are_as_many() {
    let board = Board::default();
    let names = ["DIMM_A1|NODE 0 CHANNEL 0 DIMM 0", "DIMM_J1|NODE 1 CHANNEL 2 DIMM 0"];
    check(TWO, &board, &names, &["0 0 A", "1 1 J"], Some(SlotPlace::SocketName));
    // Each of two processors uses the second of its two memory controllers.
    let two = Board { sockets: Some(2), ..Board::default() };
    let names = ["DIMM_A1|NODE 1", "DIMM_E1|NODE 3"];
    check(TWO, &two, &names, &["1 0 A", "3 1 E"], Some(SlotPlace::SocketName));
    // Two memory controllers of one processor.
    let names = ["DIMM_A1|NODE 1", "DIMM_C1|NODE 2"];
    check("1x(4c 8G)", &board, &names, &["- 0 A", "- 0 C"], Some(SlotPlace::OnlyNode));
}

#[test]
fn a_letter_is_a_socket_on_dells_and_where_a_channel_would_be_too_long() {
    let by = Some(SlotPlace::SocketLetter);
    check(TWO, &dell(2), &["A1", "B1"], &["A 0 -", "B 1 -"], by);
    check(TWO, &Board::default(), &["DIMM_A1", "DIMM_A4", "DIMM_B4"], &["A 0 -", "A 0 -", "B 1 -"], by);
    // Four letters at two sockets: it is not known which are whose.
    check(TWO, &dell(2), &["A1", "B1", "C1", "D1"], &["- - A", "- - B", "- - C", "- - D"], None);
    check("1x(4c 8G)", &dell(1), &["DIMM_A1", "DIMM_B1"], &["- 0 A", "- 0 B"], Some(SlotPlace::OnlyNode));
}

#[test]
fn a_letter_that_the_bank_calls_a_channel_is_one() {
    // S5000VSA of Intel: two sockets at one hub, which has two channels with four modules each.
    let names = ["A1|Channel A", "A4|Channel A", "B1|Channel B", "B4|Channel B"]
        .map(|name| format!("ONBOARD DIMM_{name}"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let board = Board { sockets: Some(2), arrays: vec![Some(0x35); 4], ..Board::default() };
    check("", &board, &names, &["- - A", "- - A", "- - B", "- - B"], None);
    let only = Some(SlotPlace::OnlyNode);
    check("(2p4c 16G)", &board, &names, &["- 0 A", "- 0 A", "- 0 B", "- 0 B"], only);
    // Banks that say something else leave letters what they are.
    let names: Vec<String> = names.iter().map(|name| name.replace("Channel", "Bank")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    check(TWO, &board, &names, &["A 0 -", "A 0 -", "B 1 -", "B 1 -"], Some(SlotPlace::SocketLetter));
}

#[test]
fn a_number_that_is_the_bank_is_no_channel() {
    let names = ["DIMM3A|BANK3", "DIMM3B|BANK3", "DIMM2A|BANK2", "DIMM2B|BANK2"];
    check("", &Board::default(), &names, &["- - -"; 4], None);
    let names = names.map(|name| name.split('|').next().unwrap());
    check("", &Board::default(), &names, &["- - 3", "- - 3", "- - 2", "- - 2"], None);
}

#[test]
fn a_lone_slot_with_a_name_belongs_to_its_array_among_all() {
    let slot = |name: Option<&str>| MemorySlot {
        locator: name.map(str::to_owned),
        state: SlotState::Empty,
        ..MemorySlot::default()
    };
    let mut slots = [slot(None), slot(None), slot(None), slot(Some("DIMM_G1"))];
    let arrays = [1, 2, 3, 4].map(Some).to_vec();
    let board = Board { sockets: Some(2), arrays, ..Board::default() };
    place(&mut slots, &board, &machine(TWO));
    assert_eq!(slots[3].socket.as_deref(), Some("1"));
    assert_eq!(slots[0].socket, None);
}

#[test]
fn arrays_are_those_of_sockets_where_they_divide_evenly() {
    let board = |arrays: &[u16]| Board {
        sockets: Some(2),
        arrays: arrays.iter().copied().map(Some).collect(),
        ..Board::default()
    };
    let names = ["DIMM 1", "DIMM 2", "DIMM 3", "DIMM 4"];
    let by = Some(SlotPlace::Array);
    check(TWO, &board(&[7, 7, 9, 9]), &names, &["0 0 -", "0 0 -", "1 1 -", "1 1 -"], by);
    check(TWO, &board(&[5, 6, 7, 8]), &names, &["0 0 -", "0 0 -", "1 1 -", "1 1 -"], by);
    check(TWO, &board(&[7, 9, 9, 9]), &names, &["- - -"; 4], None);
    check(TWO, &board(&[7, 7, 7, 7]), &names, &["- - -"; 4], None);
}

#[test]
fn addresses_count_where_no_name_contradicts_them() {
    let node = |node| Some(crate::NodeId::new(node));
    let board = Board { nodes: vec![node(1), None, node(1)], ..Board::default() };
    let (found, place) = placed(TWO, &board, &["DIMM 1", "DIMM 2", "DIMM 3"]);
    assert_eq!(found, ["- 1 -", "- - -", "- 1 -"]);
    assert_eq!(place, Some(SlotPlace::Addresses));
    let (found, place) = placed(TWO, &board, &["P1-DIMMA1", "P1-DIMMB1", "P2-DIMMA1"]);
    assert_eq!(found, ["1 0 A", "1 0 B", "2 1 A"], "node 1 is not in the first socket");
    assert_eq!(place, Some(SlotPlace::SocketName));
    // Two nodes in one package: only addresses say which.
    let board = Board { nodes: vec![node(1), None], ..Board::default() };
    let (found, _) = placed("((4c 8G) (4c 8G))", &board, &["P0_DIMM_A1", "P0_DIMM_B1"]);
    assert_eq!(found, ["0 1 A", "0 - B"]);
}

#[test]
fn without_cpus_slots_are_grouped_by_the_firmwares_sockets() {
    let names = ["CPU1_DIMM_A1", "CPU1_DIMM_B1", "CPU2_DIMM_A1"];
    let (found, _) = placed("", &Board { sockets: Some(2), ..Board::default() }, &names);
    assert_eq!(found, ["1 - A", "1 - B", "2 - A"]);
    let slots =
        ["1", "1", "2"].map(|socket| MemorySlot { socket: Some(socket.into()), ..MemorySlot::default() });
    let slots = MemorySlots { slots: slots.into(), not_read: None };
    let sides: Vec<SlotSide> = slots.groups().into_iter().map(|group| group.side).collect();
    assert_eq!(sides, [SlotSide::Socket("1".into()), SlotSide::Socket("2".into())]);
}

/// Names with `{}` replaced by each of these.
fn each(pattern: &str, parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| pattern.replace("{}", part)).collect()
}

fn channels(board: &Board, names: &[String]) -> Vec<String> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (found, _) = placed("", board, &names);
    found.iter().map(|words| words.rsplit(' ').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_letter_with_more_slots_than_a_channel_has_is_no_channel() {
    let check = |board: &Board, names: &[String], expected: &[&str]| {
        assert_eq!(channels(board, names), expected, "{names:?}");
    };
    let board = Board::default();
    let slots = ["0", "1", "2", "3"];
    // Servers of Sun and Oracle, PowerEdge R910, Freedom of Quanta.
    let sun = [each("D{}|/SYS/MB/P0", &slots), each("D{}|/SYS/MB/P1", &slots)].concat();
    check(&board, &sun, &["-"; 8]);
    check(&board, &sun[..3], &["-"; 3]);
    let r910 = ["A", "B", "C", "D"].map(|letter| each(&format!("DIMM {letter}{{}}"), &slots)).concat();
    check(&dell(2), &r910, &["-"; 16]);
    let freedom = [each("A{}|Node0_Bank0", &slots), each("B{}|Node1_Bank0", &slots)].concat();
    check(&Board { sockets: Some(2), ..Board::default() }, &freedom, &["-"; 8]);
    // Then the bank says it.
    let leopard = ["0_Channel0", "0_Channel1", "1_Channel0", "1_Channel1"].map(|bank| {
        let letter = if bank.starts_with('0') { "A" } else { "B" };
        each(&format!("{letter}{{}}|_Node{bank}_Dimm0"), &["0", "1"])
    });
    let board = Board { sockets: Some(2), ..Board::default() };
    check(&board, &leopard.concat(), &["0", "0", "1", "1", "0", "0", "1", "1"]);
}

#[test]
fn a_number_and_a_letter_are_channel_and_slot_as_they_are_listed() {
    let check = |names: &[&str], expected: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(channels(&Board::default(), &names), expected, "{names:?}");
    };
    // X8DTN+, H8DGU and H8QG6 of Supermicro.
    check(&["P1-DIMM1A", "P1-DIMM1B", "P1-DIMM2A", "P1-DIMM2B", "P2-DIMM1A"], &["1", "1", "2", "2", "1"]);
    check(&["P1_DIMM1B", "P1_DIMM1A", "P1_DIMM2B", "P1_DIMM2A"], &["1", "1", "2", "2"]);
    check(&["P1_1A", "P1_2A", "P2_1A", "P2_2A"], &["1", "2", "1", "2"]);
    // RX200 S6 and RX300 S5 of Fujitsu.
    check(&["DIMM-1A", "DIMM-2A", "DIMM-1B", "DIMM-2B"], &["A", "A", "B", "B"]);
    check(&["DIMM-1A", "DIMM-1B", "DIMM-1C"], &["A", "B", "C"]);
    // ProLiants of HP: the letter is the order in which modules are added.
    check(&["PROC 1 DIMM 1G", "PROC 1 DIMM 2D", "PROC 1 DIMM 3A"], &["-"; 3]);
    check(&["DIMM 1A", "DIMM 2B", "DIMM 3A", "DIMM 4B"], &["-"; 4]);
    check(&["PROC 1 DIMM 2A", "PROC 1 DIMM 1D", "PROC 1 DIMM 4B"], &["-"; 3]);
}

#[test]
fn slots_that_sockets_share_have_no_channel_by_their_number() {
    // PowerEdge 2850: the channels A and B, and pairs of modules.
    let names = ["DIMM1_A", "DIMM1_B", "DIMM2_A", "DIMM2_B"].map(str::to_owned);
    let board = |sockets| Board { sockets: Some(sockets), ..Board::default() };
    assert_eq!(channels(&board(2), &names), ["-"; 4]);
    assert_eq!(channels(&board(1), &names), ["1", "1", "2", "2"]);
}

#[test]
fn channels_have_the_letter_p_where_other_slots_have_others() {
    let names = ["DIMM_N1|NODE 0", "DIMM_P1|NODE 0", "DIMM_R1|NODE 1", "DIMM_T1|NODE 1"];
    let expected = ["0 0 N", "0 0 P", "1 1 R", "1 1 T"];
    check(TWO, &Board::default(), &names, &expected, Some(SlotPlace::SocketName));
    let names = ["CPU1_DIMM_O1", "CPU1_DIMM_P1", "CPU2_DIMM_P1"];
    check(TWO, &Board::default(), &names, &["1 0 O", "1 0 P", "2 1 P"], Some(SlotPlace::SocketName));
    check(TWO, &Board::default(), &["P1", "P2"], &["1 0 -", "2 1 -"], Some(SlotPlace::SocketName));
}

#[test]
fn old_memory_has_channels_of_four_modules() {
    // S5000VSA of Intel, without names of banks.
    let names = [each("ONBOARD DIMM_A{}", &["1", "4"]), each("ONBOARD DIMM_B{}", &["1", "4"])].concat();
    let slot = |kind: &str, name: &String| MemorySlot {
        locator: Some(name.clone()),
        state: SlotState::Installed(MemoryModule {
            memory_type: Some(kind.to_owned()),
            ..MemoryModule::default()
        }),
        ..MemorySlot::default()
    };
    let board = Board { sockets: Some(2), ..Board::default() };
    for (kind, socket) in [("DDR2", None), ("DDR2 FB-DIMM", None), ("DDR3", Some("A"))] {
        let mut slots: Vec<MemorySlot> = names.iter().map(|name| slot(kind, name)).collect();
        place(&mut slots, &board, &machine(""));
        assert_eq!(slots[0].socket.as_deref(), socket, "{kind}");
    }
}

#[test]
fn slots_without_a_name_are_left_out() {
    // QuantaPlex T41S-2U: slots without a module are called "NO DIMM", which names nothing.
    let slot = |name: &str, state: SlotState| MemorySlot {
        locator: Some(name.to_owned()).filter(|name| !name.is_empty()),
        bank: Some(format!("_Node{}_Channel0_Dimm0", u8::from(name > "DIMM_D"))).filter(|_| !name.is_empty()),
        state,
        ..MemorySlot::default()
    };
    let module = SlotState::Installed(MemoryModule::default());
    let board = Board { sockets: Some(2), ..Board::default() };
    let words = |mut slots: Vec<MemorySlot>| {
        place(&mut slots, &board, &machine(TWO));
        let word = |text: &Option<String>| text.clone().unwrap_or("-".into());
        let words = slots.iter().map(|slot| format!("{}{}", word(&slot.socket), word(&slot.channel)));
        words.collect::<Vec<_>>().join(" ")
    };
    let slots =
        [("DIMM_A0", &module), ("", &SlotState::Empty), ("DIMM_H0", &module), ("", &SlotState::Empty)];
    assert_eq!(
        words(slots.iter().map(|(name, state)| slot(name, (*state).clone())).collect()),
        "0A -- 1H --"
    );
    let slots = [("DIMM_A0", &module), ("", &module), ("DIMM_H0", &module)];
    assert_eq!(words(slots.iter().map(|(name, state)| slot(name, (*state).clone())).collect()), "-- -- --");
}

#[test]
fn a_dell_may_list_the_slots_of_its_first_socket_only() {
    check("", &dell(2), &["A1", "A2", "A3"], &["A - -"; 3], Some(SlotPlace::SocketLetter));
    check("", &dell(2), &["B1", "B2", "B3"], &["- - -"; 3], None);
    check("", &dell(0), &["A1", "A2", "A3"], &["- - -"; 3], None);
}

/// Whether each slot's socket has a processor, and the package in it.
fn processors(spec: &str, board: &Board, names: &[(&str, u64)]) -> String {
    let slot = |(name, gib): &(&str, u64)| MemorySlot {
        locator: Some((*name).to_owned()),
        state: match gib {
            0 => SlotState::Empty,
            _ => SlotState::Installed(MemoryModule::default()),
        },
        ..MemorySlot::default()
    };
    let mut slots: Vec<MemorySlot> = names.iter().map(slot).collect();
    place(&mut slots, board, &machine(spec));
    let words = slots.iter().map(|slot| {
        let has = slot.processor.map_or("?", |has| if has { "yes" } else { "no" });
        slot.package.map_or(has.to_owned(), |package| format!("{has} {package}"))
    });
    words.collect::<Vec<_>>().join(", ")
}

#[test]
fn packages_are_those_of_sockets_with_a_processor() {
    let board = |processors: &[Option<bool>]| Board {
        sockets: Some(processors.len()),
        processors: processors.to_vec(),
        ..Board::default()
    };
    let (yes, no) = (Some(true), Some(false));
    let names = [("P1-DIMMA1", 8), ("P2-DIMMA1", 0)];
    assert_eq!(processors("", &board(&[yes, no]), &names), "yes, no");
    assert_eq!(processors("1x(4c 8G)", &board(&[yes, no]), &names), "yes 0, no");
    assert_eq!(processors("", &board(&[yes, None]), &names), "yes, ?");
    assert_eq!(processors(TWO, &board(&[yes, yes]), &names), "yes 0, yes 1");
    // The second socket is the one that has it.
    assert_eq!(
        processors("1x(4c 8G)", &board(&[no, yes]), &[("P1-DIMMA1", 0), ("P2-DIMMA1", 8)]),
        "no, yes 0"
    );
    // A module that works contradicts it.
    assert_eq!(processors("1x(4c 8G)", &board(&[no, yes]), &names), "? 0, ?");
    // Sockets that names do not say.
    let names = [("DIMM 1", 8), ("DIMM 2", 0)];
    assert_eq!(processors("", &board(&[yes, no]), &names), "?, ?");
    assert_eq!(processors("", &board(&[yes, yes]), &names), "yes, yes");
    assert_eq!(processors("", &board(&[]), &names), "?, ?");
}

#[test]
fn sockets_whose_addresses_are_all_in_another_node_have_no_package() {
    let node = |node| Some(crate::NodeId::new(node));
    // X8DTU of Supermicro: the first processor's slots are P1, the second's P0.
    let names = ["P1_DIMM1A", "P1_DIMM2A", "P0_DIMM1A", "P0_DIMM2A"];
    let board = Board { nodes: vec![node(0), None, node(1), node(1)], ..Board::default() };
    let by = Some(SlotPlace::SocketName);
    check(TWO, &board, &names, &["1 - 1", "1 - 2", "0 - 1", "0 - 2"], by);
    let board = Board { nodes: vec![node(1), None, node(0), node(0)], ..Board::default() };
    check(TWO, &board, &names, &["1 1 1", "1 1 2", "0 0 1", "0 0 2"], Some(SlotPlace::Addresses));
}

proptest! {
    #[test]
    fn any_names_are_survived(names in proptest::collection::vec(any::<(Option<String>, Option<String>)>(), 0..6),
        near in proptest::collection::vec("(P|CPU|NODE|CH|DIMM|[A-D]|[0-9]{1,11}|_| ){0,8}", 0..6),
        arrays in proptest::collection::vec(any::<Option<u16>>(), 0..6), sockets in any::<Option<u8>>(),
        processors in proptest::collection::vec(any::<Option<bool>>(), 0..4)) {
        let board = Board { sockets: sockets.map(usize::from), processors, arrays, ..dell(2) };
        let near = near.into_iter().map(|name| (Some(name.clone()), Some(name)));
        for names in [names, near.collect::<Vec<_>>()] {
            let slot = |(locator, bank)| MemorySlot { locator, bank, ..MemorySlot::default() };
            let mut slots: Vec<MemorySlot> = names.into_iter().map(slot).collect();
            place(&mut slots, &board, &machine(TWO));
            let slots = MemorySlots { slots, not_read: None };
            let grouped: usize = slots.groups().iter().map(|group| group.slots.len()).sum();
            assert_eq!(grouped, slots.slots.len());
        }
    }
}
