use super::*;

fn module() -> impl Strategy<Value = MemoryModule> {
    let texts = (of(text()), of(text()), of(text()), of(text()), of(text()));
    (any::<Option<u64>>(), texts, any::<[Option<u32>; 5]>()).prop_map(|(size, texts, numbers)| MemoryModule {
        size: size.map(Bytes::new),
        memory_type: texts.0,
        form_factor: texts.1,
        technology: texts.2,
        max_speed_mt_per_s: numbers[0],
        configured_speed_mt_per_s: numbers[1],
        ranks: numbers[2],
        data_width_bits: numbers[3],
        total_width_bits: numbers[4],
        manufacturer: texts.3,
        part_number: texts.4,
    })
}

pub(super) fn slots() -> impl Strategy<Value = MemorySlots> {
    let state = prop_oneof![
        Just(SlotState::Unknown),
        Just(SlotState::Empty),
        module().prop_map(SlotState::Installed)
    ];
    let place = of((0..SlotPlace::ALL.len()).prop_map(|at| SlotPlace::ALL[at]));
    let texts = (of(text()), of(text()), of(text()), of(text()));
    let slot = (texts, any::<Option<u32>>(), of(node_id()), place, any::<Option<bool>>(), state).prop_map(
        |((locator, bank, socket, channel), package, node, place, processor, state)| MemorySlot {
            locator,
            bank,
            socket,
            package: package.map(PackageId::new),
            node,
            place,
            channel,
            processor,
            state,
        },
    );
    (vec(slot, 0..4), of("[ -~]{0,20}")).prop_map(|(slots, not_read)| MemorySlots { slots, not_read })
}

#[test]
fn a_slot_is_written_as_people_would_read_it() {
    let mut machine = Machine::new(Origin::Live);
    let slot = MemorySlot {
        locator: Some("A1".into()),
        node: Some(NodeId::new(1)),
        place: Some(SlotPlace::SocketLetter),
        state: SlotState::Installed(MemoryModule {
            size: Some(Bytes::from_gib(4)),
            configured_speed_mt_per_s: Some(1600),
            ..MemoryModule::default()
        }),
        ..MemorySlot::default()
    };
    machine.memory_slots.slots = vec![slot];
    let json: serde_json::Value = serde_json::from_str(&to_json(&machine)).unwrap();
    let expected = serde_json::json!({
        "locator": "A1", "node": 1, "placed_by": "socket-letter", "state": "installed",
        "module": {"size_bytes": 4_294_967_296_u64, "configured_speed_mt_per_s": 1600},
    });
    assert_eq!(json["memory_slots"]["slots"][0], expected);
}

#[test]
fn a_slot_that_contradicts_itself_and_a_foreign_reason_are_not_believed() {
    refuse(
        &with(",\"memory_slots\":{\"slots\":[{\"state\":\"empty\",\"module\":{\"size_bytes\":1}}]}"),
        "memory_slots.slots[0].module: expected none: the slot is not \"installed\"",
    );
    let machine = from_json(&with(",\"memory_slots\":{\"not_read\":\"\\u001b[31m\"}")).unwrap();
    assert_eq!(machine.memory_slots.not_read.as_deref(), Some("\\x1b[31m"));
}
