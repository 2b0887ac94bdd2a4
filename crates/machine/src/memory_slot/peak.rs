//! Memory slots to the theoretical peak of bandwidth: channels x transfers per second x bytes per transfer.
//!
//! A peak is computed only where the firmware states all of it: the channel of each module, the speed at which it
//! runs, and its width. Everything else is an obstacle with its reason, never a guess.
//!
//! # Source
//! A channel of DDR memory is 64 bits wide (JEDEC JESD79 and JESD79-2 to -5; the two halves of a DDR5 module count as
//! one channel, as firmware counts them).

use std::collections::BTreeMap;
use std::fmt;

use super::{MemoryModule, MemorySlot, SlotGroup, SlotSide, SlotState, check};
use crate::id::NodeId;
use crate::machine::Machine;
use crate::printable::{printable, visible};

/// Kinds of memory whose modules are 64 bits wide.
const WIDE: [&str; 5] = ["DDR", "DDR2", "DDR3", "DDR4", "DDR5"];
/// Bytes per transfer of such a module.
const WIDE_BYTES: u32 = 8;
/// Shapes of modules; what is soldered has the width that the firmware states.
const MODULES: [&str; 4] = ["DIMM", "SODIMM", "RIMM", "CAMM"];
/// The widest that is believed where the firmware states a width: that of a stack.
const MOST_BITS: u32 = 1024;
/// The fastest that is believed, in millions of transfers per second: twice what DDR5 reaches.
const MOST_SPEED: u32 = 20_000;
/// The most channels of a machine: 32 sockets with 16 each.
const MOST_CHANNELS: u32 = 512;

/// Channels that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeakTerm {
    /// How many.
    pub channels: u32,
    /// Millions of transfers per second of each.
    pub mt_per_s: u32,
    /// Bytes per transfer.
    pub bytes: u32,
}

impl PeakTerm {
    const fn is_valid(&self) -> bool {
        let Self { channels, mt_per_s, bytes } = *self;
        let (channels_fit, speed_fits) = (channels <= MOST_CHANNELS, mt_per_s <= MOST_SPEED);
        channels > 0 && mt_per_s > 0 && bytes > 0 && channels_fit && speed_fits && bytes <= MOST_BITS / 8
    }

    fn mb_per_s(self) -> u64 {
        u64::from(self.channels) * u64::from(self.mt_per_s) * u64::from(self.bytes)
    }
}

impl fmt::Display for PeakTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { channels, mt_per_s, bytes } = self;
        let plural = if *channels == 1 { "" } else { "s" };
        write!(f, "{channels} channel{plural} x {mt_per_s} MT/s x {bytes} bytes")
    }
}

/// The bandwidth of channels when each moves data all the time, and how it is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeakBandwidth {
    /// The fastest first, each speed and width once.
    terms: Vec<PeakTerm>,
}

impl PeakBandwidth {
    /// The peak of channels; `None` without any, and for numbers that no memory has.
    pub fn new(terms: impl IntoIterator<Item = PeakTerm>) -> Option<Self> {
        let mut counts: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for term in terms {
            if !term.is_valid() {
                return None;
            }
            let count = counts.entry((term.mt_per_s, term.bytes)).or_default();
            *count = count.saturating_add(term.channels);
        }
        let alike = |((mt_per_s, bytes), channels)| PeakTerm { channels, mt_per_s, bytes };
        let terms: Vec<PeakTerm> = counts.into_iter().rev().map(alike).collect();
        let channels: u32 = terms.iter().map(|term| term.channels).fold(0, u32::saturating_add);
        (1..=MOST_CHANNELS).contains(&channels).then_some(Self { terms })
    }

    /// Its parts.
    pub fn terms(&self) -> &[PeakTerm] {
        &self.terms
    }

    /// GB/s: 10^9 bytes per second.
    pub fn gb_per_s(&self) -> f64 {
        self.terms.iter().map(|term| term.mb_per_s()).sum::<u64>() as f64 / 1e3
    }
}

impl fmt::Display for PeakBandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.terms.iter().enumerate() {
            let plus = if at > 0 { " + " } else { "" };
            write!(f, "{plus}{term}")?;
        }
        Ok(())
    }
}

/// Why a peak is not known. Slots and channels are named as the firmware does, which may be any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownPeak {
    /// The tables cannot be read: the reason, with its remedy.
    NotRead(String),
    /// The machine lists none.
    NoSlots,
    /// A guest: the slots are made up.
    Virtual,
    /// Slots name other nodes.
    NoSlotOfNode,
    /// Slots name a package with several nodes, or nothing.
    NodesUnknown,
    /// All slots are empty.
    NoModule,
    /// Modules of other kinds, or stacks on the package.
    NotDram,
    /// The firmware does not state whether this slot has a module.
    SlotUnknown(String),
    /// Names of slots do not include them.
    ChannelsUnknown,
    /// The node spans several sockets, whose channels may have the same names.
    SocketsUnknown,
    /// The module in this slot has no speed.
    SpeedUnknown(String),
    /// A clock that is written as a speed is half of it.
    HalfSpeed { slot: String, configured: u32, max: u32 },
    /// No memory is as fast.
    SpeedWrong { slot: String, speed: u32 },
    /// The module in this slot has no width.
    WidthUnknown(String),
    /// Modules of this channel contradict each other.
    MixedChannel(String),
}

impl fmt::Display for UnknownPeak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRead(why) => f.write_str(&printable(why)),
            Self::NoSlots => f.write_str("the firmware lists no memory slots"),
            Self::Virtual => f.write_str("the memory slots of a virtual machine are not those of its host"),
            Self::NoSlotOfNode => f.write_str("no memory slot names this node"),
            Self::NodesUnknown => f.write_str("memory slots do not name their node"),
            Self::NoModule => f.write_str("no memory module is listed in the slots"),
            Self::NotDram => f.write_str("the memory modules are not DRAM in slots"),
            Self::SlotUnknown(slot) => {
                write!(f, "the firmware does not state whether slot {} is empty", visible(slot))
            }
            Self::ChannelsUnknown => f.write_str("slot names do not include channels"),
            Self::SocketsUnknown => f.write_str("memory slots do not name their socket"),
            Self::SpeedUnknown(slot) => {
                write!(f, "the firmware does not state how fast the module in slot {} runs", visible(slot))
            }
            Self::HalfSpeed { slot, configured, max } => write!(
                f,
                "the firmware states {configured} MT/s for the module in slot {}, half of its {max} MT/s: its clock in \
                 MHz, or a slow memory",
                visible(slot)
            ),
            Self::SpeedWrong { slot, speed } => {
                write!(f, "the firmware states {speed} MT/s for the module in slot {}", visible(slot))
            }
            Self::WidthUnknown(slot) => {
                write!(f, "the firmware does not state how wide the module in slot {} is", visible(slot))
            }
            Self::MixedChannel(channel) => write!(
                f,
                "the firmware states different speeds or widths for the modules of channel {}",
                visible(channel)
            ),
        }
    }
}

/// The peaks of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryPeaks {
    /// By node with memory, ascending.
    pub nodes: Vec<(NodeId, Result<PeakBandwidth, UnknownPeak>)>,
    /// All channels together.
    pub machine: Result<PeakBandwidth, UnknownPeak>,
}

impl Machine {
    /// The peaks of all nodes with memory, as the memory slots of real hardware give them; those of a virtual machine
    /// are never used.
    pub fn memory_peaks(&self, is_virtual: bool) -> MemoryPeaks {
        let nodes: Vec<NodeId> = self.memory_nodes().iter().collect();
        let all = |why: &UnknownPeak| MemoryPeaks {
            nodes: nodes.iter().map(|node| (*node, Err(why.clone()))).collect(),
            machine: Err(why.clone()),
        };
        let slots = &self.memory_slots;
        if is_virtual {
            return all(&UnknownPeak::Virtual);
        }
        if slots.slots.is_empty() {
            let why = slots.not_read.clone().map_or(UnknownPeak::NoSlots, UnknownPeak::NotRead);
            return all(&why);
        }
        if slots.slots.iter().all(|slot| slot.state == SlotState::Empty) {
            return all(&UnknownPeak::NoModule);
        }
        let groups = slots.groups();
        let has_nodes = groups.iter().any(|group| matches!(group.side, SlotSide::Node(_)));
        let of_node = |node: NodeId| {
            let group = groups.iter().find(|group| group.side == SlotSide::Node(node));
            match group {
                Some(group) => peak(self, group),
                None if has_nodes => Err(UnknownPeak::NoSlotOfNode),
                None => Err(UnknownPeak::NodesUnknown),
            }
        };
        MemoryPeaks {
            nodes: nodes.iter().map(|node| (*node, of_node(*node))).collect(),
            machine: whole(self, &groups),
        }
    }
}

/// Whether a side has memory of several sockets: boards can make one node of all.
fn spans_sockets(machine: &Machine, side: &SlotSide) -> bool {
    let SlotSide::Node(node) = side else { return false };
    let cpus = machine.cpus_of(*node);
    machine.packages().values().filter(|of_package| !of_package.is_disjoint(&cpus)).count() > 1
}

/// The peak of all sides together.
fn whole(machine: &Machine, groups: &[SlotGroup<'_>]) -> Result<PeakBandwidth, UnknownPeak> {
    let is_dram = |group: &&SlotGroup<'_>| group.modules().any(check::is_dram);
    let sides: Vec<&SlotGroup<'_>> = groups.iter().filter(is_dram).collect();
    if sides.is_empty() {
        return Err(UnknownPeak::NotDram);
    }
    // Channels have names within their socket: sides that are not known could share some.
    let is_unknown = |group: &&SlotGroup<'_>| group.side == SlotSide::Unknown && group.modules().count() > 1;
    if sides.iter().any(is_unknown) {
        return Err(UnknownPeak::NodesUnknown);
    }
    let each: Result<Vec<PeakBandwidth>, UnknownPeak> =
        sides.iter().map(|group| peak(machine, group)).collect();
    let terms: Vec<PeakTerm> = each?.into_iter().flat_map(|peak| peak.terms).collect();
    PeakBandwidth::new(terms).ok_or(UnknownPeak::ChannelsUnknown)
}

/// The peak of the slots of one side.
fn peak(machine: &Machine, group: &SlotGroup<'_>) -> Result<PeakBandwidth, UnknownPeak> {
    let slots = &group.slots;
    let name = |slot: &MemorySlot| {
        let name = slot.locator.as_deref().or(slot.bank.as_deref()).unwrap_or("without a name");
        name.to_owned()
    };
    if let Some(slot) = slots.iter().find(|slot| slot.state == SlotState::Unknown) {
        return Err(UnknownPeak::SlotUnknown(name(slot)));
    }
    let installed: Vec<(&MemorySlot, &MemoryModule)> =
        slots.iter().filter_map(|slot| Some((*slot, slot.module()?))).collect();
    if installed.is_empty() {
        return Err(UnknownPeak::NoModule);
    }
    let dram: Vec<(&MemorySlot, &MemoryModule)> =
        installed.into_iter().filter(|(_, module)| check::is_dram(module)).collect();
    let is_alone = dram.len() == 1;
    if !is_alone && spans_sockets(machine, &group.side) && dram.iter().any(|(slot, _)| slot.socket.is_none())
    {
        return Err(UnknownPeak::SocketsUnknown);
    }
    let mut channels: BTreeMap<(Option<&str>, &str), (u32, u32)> = BTreeMap::new();
    for (slot, module) in &dram {
        // One module is at one channel, whatever its name is.
        let channel = slot.channel.as_deref().or(is_alone.then_some(""));
        let channel = channel.ok_or(UnknownPeak::ChannelsUnknown)?;
        let rate = (speed(module, || name(slot))?, width(module, || name(slot))?);
        // Channels have names within their socket.
        let known = channels.insert((slot.socket.as_deref(), channel), rate);
        if known.is_some_and(|known| known != rate) {
            return Err(UnknownPeak::MixedChannel(channel.to_owned()));
        }
    }
    let terms = channels.into_values().map(|(mt_per_s, bytes)| PeakTerm { channels: 1, mt_per_s, bytes });
    PeakBandwidth::new(terms).ok_or(UnknownPeak::NotDram)
}

/// How fast a module runs. The speed that it was made for is never taken instead.
fn speed(module: &MemoryModule, slot: impl Fn() -> String) -> Result<u32, UnknownPeak> {
    let configured = module.configured_speed_mt_per_s.filter(|speed| *speed > 0);
    let configured = configured.ok_or_else(|| UnknownPeak::SpeedUnknown(slot()))?;
    if configured > MOST_SPEED {
        return Err(UnknownPeak::SpeedWrong { slot: slot(), speed: configured });
    }
    match module.max_speed_mt_per_s {
        // Rounded either way: 1333 of 2666, 1467 of 2933, 1066 of 2133.
        Some(max) if configured.saturating_mul(2).abs_diff(max) <= 2 => {
            Err(UnknownPeak::HalfSpeed { slot: slot(), configured, max })
        }
        _ => Ok(configured),
    }
}

/// Bytes per transfer of a module.
fn width(module: &MemoryModule, slot: impl Fn() -> String) -> Result<u32, UnknownPeak> {
    let is_wide = module.memory_type.as_deref().is_some_and(|kind| WIDE.contains(&kind));
    if is_wide && module.form_factor.as_deref().is_none_or(|form| MODULES.contains(&form)) {
        return Ok(WIDE_BYTES);
    }
    let bits = module.data_width_bits.filter(|bits| *bits > 0 && bits % 8 == 0 && *bits <= MOST_BITS);
    bits.map(|bits| bits / 8).ok_or_else(|| UnknownPeak::WidthUnknown(slot()))
}

#[cfg(test)]
mod tests;
