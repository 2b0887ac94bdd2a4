use proptest::prelude::{any, proptest};

use super::place::{Board, place};
use super::*;
use crate::memory_slot::{MemorySlot, MemorySlots, SlotPlace, SlotSide};
use crate::{Machine, Origin, spec};

/// Socket, node, channel, and letter with number, each `-` where the name does not have it.
fn words(text: &str) -> String {
    let name = SlotName::from_text(text);
    let number = |number: Option<u32>| number.map_or("-".to_owned(), |number| number.to_string());
    let letter = name.letter.map_or("-".to_owned(), |letter| format!("{letter}{}", number(name.number)));
    format!(
        "{} {} {} {letter}",
        number(name.socket),
        number(name.node),
        name.channel.as_deref().unwrap_or("-")
    )
}

#[test]
fn names_of_slots_are_read() {
    for (text, expected) in [
        ("P1-DIMMA1", "1 - - A1"),
        ("P2-DimmE1", "2 - - E1"),
        ("P0_DIMM_A1", "0 - - A1"),
        ("DIMM_P0_A0", "0 - - A0"),
        ("CPU1_DIMM_A0", "1 - - A0"),
        ("CPU0_C3D1", "0 - 3 -"),
        ("PROC 1 DIMM 3", "1 - - -"),
        ("PROC 2 DIMM 1D", "2 - - -"),
        ("DIMM_A1", "- - - A1"),
        ("DIMM.Socket.B12", "- - - B12"),
        ("A1", "- - - A1"),
        ("NODE 1 CHANNEL 2 DIMM 1", "- 1 2 -"),
        ("P0_Node1_Channel2_Dimm1", "0 1 2 -"),
        ("SOCKET 1 CHANNEL 3 DIMM 0", "1 - 3 -"),
        ("P1 CHANNEL Q", "1 - Q -"),
        ("P2-CH-E", "2 - E -"),
        ("ChannelA-DIMM0", "- - A -"),
        ("NODE 2", "- 2 - -"),
        ("DIMM030 J13", "- - - -"),
        ("P1", "1 - - -"),
        ("DIMM 3", "- - - -"),
        ("Bank 1", "- - - -"),
        ("Not Specified", "- - - -"),
        ("00", "- - - -"),
        ("CPU4294967296_DIMM_A1", "- - - -"),
        ("", "- - - -"),
    ] {
        assert_eq!(words(text), expected, "{text}");
    }
}

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

proptest! {
    #[test]
    fn any_names_are_survived(names in proptest::collection::vec(any::<(Option<String>, Option<String>)>(), 0..6),
        near in proptest::collection::vec("(P|CPU|NODE|CH|DIMM|[A-D]|[0-9]{1,11}|_| ){0,8}", 0..6),
        arrays in proptest::collection::vec(any::<Option<u16>>(), 0..6), sockets in any::<Option<u8>>()) {
        let board = Board { sockets: sockets.map(usize::from), arrays, ..dell(2) };
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
