//! Memory slots of a side in few words: how many, how large, how fast, at which channels.

use std::collections::BTreeMap;

use nodewise_machine::memory_slot::{SlotGroup, SlotSide};
use nodewise_machine::printable::{printable, visible};
use nodewise_machine::{Bytes, MemoryModule, MemorySlots, SlotPlace, SlotState};

/// The words about the slots of one side. An empty one is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotWords {
    /// The node, package or socket: `0`.
    pub side: String,
    /// `4 of 12`.
    pub used: String,
    pub size: Option<Bytes>,
    /// `4 x 4 GiB DDR3`.
    pub modules: String,
    /// `1333 of 1600 MT/s`.
    pub speed: String,
    /// `4 of 6`.
    pub channels: String,
}

/// The word above the sides: `node`.
pub fn side_word(groups: &[SlotGroup<'_>]) -> &'static str {
    let sides = groups.iter().map(|group| &group.side);
    match sides.into_iter().find(|side| **side != SlotSide::Unknown) {
        Some(SlotSide::Package(_)) => "package",
        Some(SlotSide::Socket(_)) => "socket",
        Some(SlotSide::Node(_)) | Some(SlotSide::Unknown) | None => "node",
    }
}

/// The words about a side.
pub fn slot_words(group: &SlotGroup<'_>) -> SlotWords {
    let side = match &group.side {
        SlotSide::Node(node) => node.to_string(),
        SlotSide::Package(package) => package.to_string(),
        SlotSide::Socket(socket) => visible(socket).into_owned(),
        SlotSide::Unknown => String::new(),
    };
    let modules: Vec<&MemoryModule> = group.modules().collect();
    let channels = group.channels().map(|channels| {
        let used = channels.iter().filter(|known| known.size.get() > 0).count();
        format!("{used} of {}", channels.len())
    });
    SlotWords {
        side,
        used: format!("{} of {}", modules.len(), group.slots.len()),
        size: group.size(),
        modules: kinds(&modules),
        speed: speeds(&modules),
        channels: channels.unwrap_or_default(),
    }
}

/// How many modules there are of each size and type, the largest first.
fn kinds(modules: &[&MemoryModule]) -> String {
    let mut kinds: BTreeMap<(Option<Bytes>, Option<&str>), usize> = BTreeMap::new();
    for module in modules {
        *kinds.entry((module.size, module.memory_type.as_deref())).or_default() += 1;
    }
    let words = kinds.iter().rev().map(|((size, kind), count)| {
        let size = size.map_or_else(|| "unknown size".to_owned(), |size| size.to_string());
        let kind = kind.map(|kind| format!(" {}", visible(kind))).unwrap_or_default();
        format!("{count} x {size}{kind}")
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Speeds at which modules run, each with what they were made for where that is more, the fastest first.
fn speeds(modules: &[&MemoryModule]) -> String {
    let mut speeds: Vec<(Option<u32>, Option<u32>)> =
        modules.iter().map(|module| (module.configured_speed_mt_per_s, module.max_speed_mt_per_s)).collect();
    speeds.sort_unstable();
    speeds.dedup();
    let words = speeds.into_iter().rev().filter_map(|speeds| match speeds {
        (Some(configured), Some(max)) if configured < max => Some(format!("{configured} of {max} MT/s")),
        (Some(speed), _) => Some(format!("{speed} MT/s")),
        (None, Some(max)) => Some(format!("up to {max} MT/s")),
        (None, None) => None,
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The names of empty slots, those with consecutive numbers as one: `DIMM_A5-12`. `None` where one has no name of
/// its own, as where several have the same.
pub fn empty_slots(slots: &MemorySlots) -> Option<String> {
    let mut names = Vec::new();
    for slot in slots.slots.iter().filter(|slot| slot.state == SlotState::Empty) {
        let name = slot.locator.as_deref()?;
        if slots.slots.iter().filter(|other| other.locator.as_deref() == Some(name)).count() > 1 {
            return None;
        }
        names.push(name);
    }
    let mut runs: Vec<(&str, Option<u32>, u32)> = Vec::new();
    for name in names {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[prefix.len()..];
        let number: Option<u32> = digits.parse().ok().filter(|_| digits == "0" || !digits.starts_with('0'));
        match (runs.last_mut(), number) {
            (Some((before, Some(_), last)), Some(number))
                if *before == prefix && last.checked_add(1) == Some(number) =>
            {
                *last = number;
            }
            (_, Some(number)) => runs.push((prefix, Some(number), number)),
            (_, None) => runs.push((name, None, 0)),
        }
    }
    let words = runs.into_iter().map(|(prefix, first, last)| match first {
        None => printable(prefix).into_owned(),
        Some(first) if first == last => format!("{}{first}", printable(prefix)),
        Some(first) => format!("{}{first}-{last}", printable(prefix)),
    });
    Some(words.collect::<Vec<_>>().join(", ")).filter(|words| !words.is_empty())
}

/// How many slots are empty.
pub fn count_empty(slots: &MemorySlots) -> usize {
    slots.slots.iter().filter(|slot| slot.state == SlotState::Empty).count()
}

/// The rules by which slots were placed, in words; empty where none was.
pub fn rules(slots: &MemorySlots) -> String {
    let rules = SlotPlace::ALL.into_iter().filter(|rule| {
        *rule != SlotPlace::OnlyNode && slots.slots.iter().any(|slot| slot.place == Some(*rule))
    });
    rules.map(SlotPlace::words).collect::<Vec<_>>().join(", or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::MemorySlot;

    fn empty(slots: &[&str]) -> Option<String> {
        let slot = |name: &&str| MemorySlot {
            locator: Some((*name).to_owned()).filter(|name| !name.is_empty()),
            state: SlotState::Empty,
            ..MemorySlot::default()
        };
        empty_slots(&MemorySlots { slots: slots.iter().map(slot).collect(), not_read: None })
    }

    #[test]
    fn names_with_consecutive_numbers_are_one() {
        let check = |slots: &[&str], expected: &str| assert_eq!(empty(slots).as_deref(), Some(expected));
        check(&["A5", "A6", "A7", "B5"], "A5-7, B5");
        check(&["DIMM 3", "DIMM 5", "DIMM"], "DIMM 3, DIMM 5, DIMM");
        check(&["A01", "A02"], "A01, A02");
        check(&["A4294967295", "A4294967296"], "A4294967295, A4294967296");
        check(&["A\u{1b}1"], "A\\x1b1");
        assert_eq!(empty(&["A1", "A1"]), None, "which of both is not known");
        assert_eq!(empty(&["A1", ""]), None);
        assert_eq!(empty(&[]), None);
    }

    fn module(size: u64, max: u32, configured: u32) -> MemoryModule {
        let known = |number| Some(number).filter(|number| *number > 0);
        MemoryModule {
            size: Some(Bytes::from_gib(size)).filter(|_| size > 0),
            memory_type: Some("DDR4".into()),
            max_speed_mt_per_s: known(max),
            configured_speed_mt_per_s: known(configured),
            ..MemoryModule::default()
        }
    }

    #[test]
    fn modules_and_speeds_are_counted() {
        let (a, b, c) = (module(16, 3200, 2933), module(16, 3200, 3200), module(0, 2666, 0));
        assert_eq!(kinds(&[&a, &b, &c]), "2 x 16 GiB DDR4, 1 x unknown size DDR4");
        assert_eq!(speeds(&[&a, &b, &c]), "3200 MT/s, 2933 of 3200 MT/s, up to 2666 MT/s");
        assert_eq!((kinds(&[]), speeds(&[])), (String::new(), String::new()));
    }
}
