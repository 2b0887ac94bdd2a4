//! Memory slots, a line per node or socket.

use nodewise_machine::memory_slot::SlotSide;
use nodewise_machine::plural::plural;
use nodewise_machine::printable::visible;
use nodewise_machine::{Machine, MemorySlots};

use crate::digest::memory_slot::{count_empty, empty_slots, rules, side_word, slot_words};
use crate::style::Ink;
use crate::text::line::{Line, Page};
use crate::text::table::{Align, Column, Keep, Table};

/// Writes the memory slots, or why they are not known.
pub(super) fn memory_slots(machine: &Machine, page: &mut Page) {
    let slots = &machine.memory_slots;
    if slots.is_unknown() {
        return;
    }
    page.heading("Memory slots", "as the firmware lists them");
    if let Some(reason) = &slots.not_read {
        page.line(4, &format!("  not known: {reason}").into());
    }
    if slots.slots.is_empty() {
        return;
    }
    let groups = slots.groups();
    let column = |head, align, keep| Column { head, align, keep };
    let mut table = Table::new(vec![
        column(side_word(&groups), Align::Right, Keep::Always),
        column("used", Align::Right, Keep::Always),
        column("memory", Align::Right, Keep::Always),
        column("channels", Align::Right, Keep::Unless(1)),
        column("speed", Align::Left, Keep::Unless(2)),
        column("modules", Align::Left, Keep::Always),
    ])
    .naming_omitted();
    for group in &groups {
        let words = slot_words(group);
        let size = words.size.map(|size| size.to_string()).unwrap_or_default();
        table.row(vec![
            words.side.into(),
            words.used.into(),
            size.into(),
            words.channels.into(),
            words.speed.into(),
            words.modules.into(),
        ]);
    }
    table.write(page);
    for remark in remarks(slots) {
        page.line(4, &Line::new().with(Ink::Faint, format!("  {remark}")));
    }
}

/// Lines below the table.
fn remarks(slots: &MemorySlots) -> Vec<String> {
    let mut remarks = Vec::new();
    match (empty_slots(slots), count_empty(slots)) {
        (_, 0) => {}
        (Some(names), _) => remarks.push(format!("empty: {names}")),
        (None, count) => remarks.push(format!("{} with ambiguous names", plural(count, "empty slot"))),
    }
    let groups = slots.groups();
    if groups.iter().any(|group| group.side == SlotSide::Unknown) {
        remarks.push("nodes unknown: neither slot names nor address ranges identify them".to_owned());
    }
    remarks.extend(without_processor(slots));
    let rules = rules(slots);
    if !rules.is_empty() {
        remarks.push(format!("{} taken from {rules}", side_word(&groups)));
    }
    if groups.iter().all(|group| group.channels().is_none()) {
        remarks.push("channels unknown: slot names do not include them".to_owned());
    }
    remarks
}

/// The sockets without a processor.
fn without_processor(slots: &MemorySlots) -> Option<String> {
    let mut sockets: Vec<&str> = Vec::new();
    for slot in slots.slots.iter().filter(|slot| slot.processor == Some(false)) {
        let socket = slot.socket.as_deref()?;
        if !sockets.contains(&socket) {
            sockets.push(socket);
        }
    }
    let names: Vec<_> = sockets.iter().map(|socket| visible(socket)).collect();
    match &names[..] {
        [] => None,
        [one] => Some(format!("socket {one} has no processor")),
        several => Some(format!("sockets {} have no processor", several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use nodewise_machine::{Bytes, MemoryModule, MemorySlot, NodeId, Origin, SlotPlace, SlotState};

    /// A slot as `NODE NAME CHANNEL SIZE`; a size of - is an empty slot.
    fn slot(text: &str) -> MemorySlot {
        let [node, name, channel, size] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
        let module = |gib: u64| MemoryModule {
            size: Some(Bytes::from_gib(gib)),
            memory_type: Some("DDR4".into()),
            max_speed_mt_per_s: Some(3200),
            configured_speed_mt_per_s: Some(2933),
            ..MemoryModule::default()
        };
        let node: Option<u32> = node.parse().ok();
        MemorySlot {
            locator: Some(name.to_owned()),
            node: node.map(NodeId::new),
            place: node.map(|_| SlotPlace::SocketName),
            channel: Some(channel.to_owned()).filter(|channel| channel != "-"),
            state: size.parse().map_or(SlotState::Empty, |gib| SlotState::Installed(module(gib))),
            ..MemorySlot::default()
        }
    }

    fn text(slots: &[&str], width: usize) -> String {
        let mut machine = Machine::new(Origin::Live);
        machine.memory_slots.slots = slots.iter().map(|text| slot(text)).collect();
        let mut page = Page::new(Style::plain(width));
        memory_slots(&machine, &mut page);
        page.finish()
    }

    const TWO: [&str; 6] =
        ["0 P0_A1 A 16", "0 P0_A2 A -", "0 P0_B1 B 16", "1 P1_A1 A 16", "1 P1_A2 A -", "1 P1_B1 B -"];

    #[test]
    fn each_node_has_its_slots() {
        assert_eq!(
            text(&TWO, 80),
            "Memory slots  as the firmware lists them\n  \
             node    used  memory  channels  speed              modules\n     \
             0  2 of 3  32 GiB    2 of 2  2933 of 3200 MT/s  2 x 16 GiB DDR4\n     \
             1  1 of 3  16 GiB    1 of 2  2933 of 3200 MT/s  1 x 16 GiB DDR4\n  \
             empty: P0_A2, P1_A2, P1_B1\n  \
             node taken from the socket in the slot's name\n"
        );
    }

    #[test]
    fn sockets_without_a_processor_are_named() {
        let remark = |sockets: &[(&str, Option<bool>)]| {
            let slot = |(socket, processor): &(&str, Option<bool>)| MemorySlot {
                socket: Some((*socket).to_owned()),
                processor: *processor,
                ..MemorySlot::default()
            };
            let slots = MemorySlots { slots: sockets.iter().map(slot).collect(), not_read: None };
            without_processor(&slots)
        };
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(remark(&[("1", yes), ("2", None)]), None);
        assert_eq!(remark(&[("1", yes), ("2", no), ("2", no)]).unwrap(), "socket 2 has no processor");
        assert_eq!(remark(&[("3", no), ("\u{1b}", no)]).unwrap(), "sockets 3, \\x1b have no processor");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let many: Vec<String> = (0..40).map(|at| format!("{} P0_\u{1b}{at} - -", at % 2)).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).chain(TWO).collect();
        for width in [40, 60, 80] {
            let text = text(&many, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            assert!(!text.contains('\u{1b}'));
        }
    }

    #[test]
    fn what_is_not_known_is_said() {
        let text = text(&["- DIMM1 - 16", "- DIMM1 - -"], 80);
        assert!(text.contains("\n  1 of 2  16 GiB"), "{text}");
        for line in ["1 empty slot with ambiguous names", "nodes unknown", "channels unknown"] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let mut machine = Machine::new(Origin::Live);
        machine.memory_slots.not_read = Some("cannot read /sys/x: permission denied".into());
        let mut page = Page::new(Style::plain(80));
        memory_slots(&machine, &mut page);
        assert_eq!(
            page.finish(),
            "Memory slots  as the firmware lists them\n  not known: cannot read /sys/x: permission denied\n"
        );
    }
}
