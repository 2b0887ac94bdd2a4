use super::*;
use crate::memory_slot::MemorySlot;

/// A slot as `SOCKET CHANNEL SIZE SPEED`: a size of - is an empty slot, of ? one that is not known.
fn slot(text: &str) -> MemorySlot {
    let words: Vec<&str> = text.split(' ').collect();
    let [socket, channel, size, speed] = words[..] else { panic!("{text}") };
    let state = match size {
        "-" => SlotState::Empty,
        "?" => SlotState::Unknown,
        gib => SlotState::Installed(MemoryModule {
            size: gib.parse().ok().map(Bytes::from_gib),
            max_speed_mt_per_s: speed.parse().ok(),
            configured_speed_mt_per_s: speed.parse().ok(),
            ..MemoryModule::default()
        }),
    };
    MemorySlot {
        socket: Some(socket.to_owned()),
        channel: Some(channel.to_owned()).filter(|channel| channel != "-"),
        state,
        ..MemorySlot::default()
    }
}

fn check(slots: &[&str], expected: &[&str]) {
    let slots = MemorySlots { slots: slots.iter().map(|text| slot(text)).collect(), not_read: None };
    let found: Vec<String> = slots.oddities().iter().map(ToString::to_string).collect();
    assert_eq!(found, expected);
}

#[test]
fn equal_modules_at_each_channel_and_socket_are_nothing_unusual() {
    check(&["0 A 16 3200", "0 B 16 3200", "1 A 16 3200", "1 B 16 3200"], &[]);
    check(&["0 A - -", "0 B - -"], &[]);
    check(&[], &[]);
}

#[test]
fn modules_that_differ_are_named_with_their_counts() {
    check(
        &["0 - 16 3200", "0 - 16 3200", "0 - 8 2933"],
        &[
            "memory modules of different sizes: 2 of 16 GiB, 1 of 8 GiB",
            "memory modules made for different speeds: 2 of 3200 MT/s, 1 of 2933 MT/s",
            "memory modules run at different speeds: 2 of 3200 MT/s, 1 of 2933 MT/s",
        ],
    );
}

#[test]
fn channels_and_sockets_with_less_memory_are_named() {
    check(
        &["0 A 16 3200", "0 B 16 3200", "0 C - -", "0 D - -"],
        &["memory channels of socket 0 are uneven: 16 GiB at A, B; none at C, D"],
    );
    check(
        &["0 A 16 3200", "0 B 16 3200", "1 A - -", "1 B - -"],
        &["memory modules are uneven: 32 GiB at socket 0, 0 B at socket 1"],
    );
}

#[test]
fn nothing_is_made_of_sizes_that_are_not_known() {
    check(&["0 A 16 3200", "0 B ? -"], &[]);
    check(&["0 A 16 3200", "0 B x -"], &[]);
    check(&["0 A 16 3200", "1 A x -"], &[]);
}

#[test]
fn slots_of_a_socket_without_a_processor_are_meant_to_be_empty() {
    let slots = ["0 A 16 3200", "0 B 16 3200", "1 A - -", "1 B - -"];
    let mut slots: Vec<MemorySlot> = slots.iter().map(|text| slot(text)).collect();
    slots[2..].iter_mut().for_each(|slot| slot.processor = Some(false));
    let oddities = |slots: &[MemorySlot]| MemorySlots { slots: slots.to_vec(), not_read: None }.oddities();
    assert_eq!(oddities(&slots), []);
    slots[3].processor = Some(true);
    assert_eq!(oddities(&slots).len(), 1, "a processor without memory");
}

#[test]
fn empty_channels_count_only_where_a_processor_has_them() {
    let slots = ["- A 16 3200", "- B 16 3200", "- C - -"];
    let mut slots: Vec<MemorySlot> = slots.iter().map(|text| slot(text)).collect();
    slots.iter_mut().for_each(|slot| slot.socket = None);
    let oddities = |slots: &[MemorySlot]| MemorySlots { slots: slots.to_vec(), not_read: None }.oddities();
    assert_eq!(oddities(&slots), []);
    slots.iter_mut().for_each(|slot| slot.processor = Some(true));
    assert_eq!(oddities(&slots)[0].text, "memory channels are uneven: 16 GiB at A, B; none at C");
}

#[test]
fn channels_of_two_sockets_in_one_node_are_counted_apart() {
    let on_node_0 = |text: &&str| MemorySlot { node: Some(crate::id::NodeId::new(0)), ..slot(text) };
    let with = |slots: &[&str]| MemorySlots { slots: slots.iter().map(on_node_0).collect(), not_read: None };
    let slots = with(&["1 A 16 3200", "0 B 16 3200", "0 A 16 3200", "1 B 16 3200", "0 A 16 3200"]);
    let groups = slots.groups();
    let channels = groups[0].channels().unwrap();
    let found: Vec<_> =
        channels.iter().map(|known| (known.socket.unwrap(), known.channel, known.size.get() >> 30)).collect();
    assert_eq!(found, [("0", "A", 32), ("0", "B", 16), ("1", "A", 16), ("1", "B", 16)]);
    let found: Vec<String> = slots.oddities().iter().map(ToString::to_string).collect();
    let expected = "memory channels of node 0 are uneven: 32 GiB at A of socket 0; 16 GiB at B of socket 0, A of \
                    socket 1, B of socket 1";
    assert_eq!(found, [expected]);
    assert!(with(&["0 A 16 3200", "1 A 16 3200", "0 B 16 3200", "1 B 16 3200"]).oddities().is_empty());
}
