use super::*;

/// Socket, node, channel, and letter with number (with `?` where they may be the socket), each `-` where the name does not have it.
fn words(text: &str) -> String {
    let name = SlotName::from_text(text);
    let number = |number: Option<u32>| number.map_or("-".to_owned(), |number| number.to_string());
    let letter = match (name.letter, name.numbered) {
        (Some(letter), _) if name.is_socket_or_letter => format!("{letter}{}?", number(name.number)),
        (Some(letter), _) => format!("{letter}{}", number(name.number)),
        (None, Some((number, letter))) => format!("{number}{letter}"),
        (None, None) => "-".to_owned(),
    };
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
        ("PROC 2 DIMM 1D", "2 - - 1D"),
        ("P1-DIMM3C", "1 - - 3C"),
        ("DIMM-2F", "- - - 2F"),
        ("P0-ChD-DIMM2", "0 - D -"),
        ("P0_MC1_DIM_CH_F1", "0 - F -"),
        ("/SYS/MB/P1", "1 - - P1?"),
        ("DIMM_P1", "1 - - P1?"),
        ("CPU1_DIMM_P1", "1 - - P1"),
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
        ("P1", "1 - - P1?"),
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
