//! Memory slots to oddities: modules that differ, and sides or channels with more memory than others.

use std::collections::BTreeMap;

use super::{ChannelMemory, MemoryModule, MemorySlot, MemorySlots, SlotGroup, SlotSide, SlotState};
use crate::oddity::{Oddity, OddityKind};
use crate::printable::visible;
use crate::units::Bytes;

impl MemorySlots {
    /// Finds unusual facts about them. Modules that are not DRAM are meant to differ, and so is memory on the package.
    /// Slots of a socket without a processor are meant to be empty.
    pub fn oddities(&self) -> Vec<Oddity> {
        let is_compared = |slot: &&MemorySlot| slot.module().map_or(slot.processor != Some(false), is_dram);
        let slots = self.slots.iter().filter(is_compared).cloned().collect();
        let compared = Self { slots, not_read: None };
        let groups = compared.groups();
        let mut found = Vec::new();
        found.extend(compared.mixed());
        found.extend(uneven_sides(&groups));
        found.extend(groups.iter().filter_map(uneven_channels));
        found
    }

    /// Modules of several sizes or speeds.
    fn mixed(&self) -> Vec<Oddity> {
        let modules: Vec<&MemoryModule> = self.slots.iter().filter_map(|slot| slot.module()).collect();
        let sizes = counts(modules.iter().filter_map(|module| module.size));
        let max = counts(modules.iter().filter_map(|module| module.max_speed_mt_per_s));
        let configured = counts(modules.iter().filter_map(|module| module.configured_speed_mt_per_s));
        let speed = |speed: &u32| format!("{speed} MT/s");
        let mut found = Vec::new();
        let mut add = |text: Option<String>| {
            found.extend(text.map(|text| Oddity::new(OddityKind::MemoryModulesMixed, text)));
        };
        add(several(&sizes, Bytes::to_string)
            .map(|each| format!("memory modules of different sizes: {each}")));
        add(several(&max, speed).map(|each| format!("memory modules made for different speeds: {each}")));
        add(several(&configured, speed).map(|each| format!("memory modules run at different speeds: {each}")));
        found
    }
}

/// Whether a module is DRAM in a slot.
pub(super) fn is_dram(module: &MemoryModule) -> bool {
    let is_stacked = module.memory_type.as_deref().is_some_and(|kind| kind.starts_with("HBM"));
    !is_stacked && module.technology.as_deref().is_none_or(|technology| technology == "DRAM")
}

fn counts<T: Ord>(values: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts
}

/// Each value with its count, where there are several.
fn several<T>(counts: &BTreeMap<T, usize>, words: impl Fn(&T) -> String) -> Option<String> {
    let each = counts.iter().rev().map(|(value, count)| format!("{count} of {}", words(value)));
    (counts.len() > 1).then(|| each.collect::<Vec<_>>().join(", "))
}

/// The memory of a group; 0 only where every slot says that it is empty.
fn size(group: &SlotGroup<'_>) -> Option<Bytes> {
    if group.slots.iter().all(|slot| slot.state == SlotState::Empty) {
        return Some(Bytes::new(0));
    }
    group.size()
}

fn uneven_sides(groups: &[SlotGroup<'_>]) -> Option<Oddity> {
    if groups.iter().any(|group| group.side == SlotSide::Unknown) {
        return None;
    }
    let sizes: Vec<Bytes> = groups.iter().map(size).collect::<Option<_>>()?;
    if sizes.windows(2).all(|pair| pair[0] == pair[1]) {
        return None;
    }
    let each = groups.iter().zip(sizes).map(|(group, size)| format!("{size} at {}", group.side));
    let text = format!("memory modules are uneven: {}", each.collect::<Vec<_>>().join(", "));
    Some(Oddity::new(OddityKind::MemoryModulesUneven, text))
}

fn uneven_channels(group: &SlotGroup<'_>) -> Option<Oddity> {
    // One module is at one channel.
    if group.modules().count() < 2 {
        return None;
    }
    let mut channels = group.channels()?;
    // Of a socket that is not known the processor may be missing.
    if group.side == SlotSide::Unknown && group.slots.iter().any(|slot| slot.processor.is_none()) {
        channels.retain(|known| known.size.get() > 0);
    }
    let is_empty = channels.iter().all(|known| known.size.get() == 0);
    if is_empty || channels.windows(2).all(|pair| pair[0].size == pair[1].size) {
        return None;
    }
    let spans_sockets = channels.windows(2).any(|pair| pair[0].socket != pair[1].socket);
    let mut alike: BTreeMap<Bytes, Vec<String>> = BTreeMap::new();
    for ChannelMemory { socket, channel, size } in channels {
        let socket = socket.filter(|_| spans_sockets).map(|socket| format!(" of socket {}", visible(socket)));
        let name = format!("{}{}", visible(channel), socket.unwrap_or_default());
        alike.entry(size).or_default().push(name);
    }
    let each = alike.iter().rev().map(|(size, channels)| {
        let size = if size.get() == 0 { "none".to_owned() } else { size.to_string() };
        format!("{size} at {}", channels.join(", "))
    });
    let side = match &group.side {
        SlotSide::Unknown => String::new(),
        side => format!(" of {side}"),
    };
    let text = format!("memory channels{side} are uneven: {}", each.collect::<Vec<_>>().join("; "));
    Some(Oddity::new(OddityKind::MemoryChannelsUneven, text))
}

#[cfg(test)]
mod tests;
