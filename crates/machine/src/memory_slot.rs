//! Memory slots and the modules in them, as the firmware lists them.
//!
//! # Source
//! SMBIOS (DSP0134), types 4, 16, 17, 19 and 20.

pub mod check;
pub mod locator;
pub mod peak;

use std::fmt;

use crate::id::{NodeId, PackageId};
use crate::order::Order as _;
use crate::units::Bytes;

/// The memory slots of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MemorySlots {
    /// In the order of the firmware; empty where the source does not say.
    pub slots: Vec<MemorySlot>,
    /// Why there are none although the machine has tables: a sentence with its remedy, fit for a terminal.
    pub not_read: Option<String>,
}

impl MemorySlots {
    /// Whether nothing is known, not even why.
    pub fn is_unknown(&self) -> bool {
        self.slots.is_empty() && self.not_read.is_none()
    }
}

/// A slot for a memory module: a memory device (type 17), soldered ones included.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MemorySlot {
    /// The name on the board: `DIMM_A1`.
    pub locator: Option<String>,
    /// The bank it belongs to: `P0_Node0_Channel0_Dimm0`.
    pub bank: Option<String>,
    /// The processor socket it is wired to, in the firmware's own numbers or letters: `1`, `A`.
    pub socket: Option<String>,
    /// The package in that socket.
    pub package: Option<PackageId>,
    /// The node that its memory belongs to.
    pub node: Option<NodeId>,
    /// The fact that socket, package and node come from.
    pub place: Option<SlotPlace>,
    /// The channel within the socket, in the firmware's own numbers or letters.
    pub channel: Option<String>,
    /// Whether its socket has a processor, without which no module in it can be used.
    pub processor: Option<bool>,
    pub state: SlotState,
}

/// The content of a slot.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum SlotState {
    /// The firmware does not say.
    #[default]
    Unknown,
    Empty,
    Installed(MemoryModule),
}

/// A memory module. Numbers that the firmware does not know are `None`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MemoryModule {
    pub size: Option<Bytes>,
    /// Its kind of memory: `DDR4`.
    pub memory_type: Option<String>,
    /// Its shape: `DIMM`.
    pub form_factor: Option<String>,
    /// `DRAM`, `NVDIMM-N` and so on, where the firmware says (SMBIOS 3.2).
    pub technology: Option<String>,
    /// The fastest it can run.
    ///
    /// # Units
    /// Millions of transfers per second.
    pub max_speed_mt_per_s: Option<u32>,
    /// How fast it runs, in the same unit.
    pub configured_speed_mt_per_s: Option<u32>,
    pub ranks: Option<u32>,
    /// Width of its data, without the bits for error correction.
    pub data_width_bits: Option<u32>,
    /// Width with the bits for error correction.
    pub total_width_bits: Option<u32>,
    pub manufacturer: Option<String>,
    pub part_number: Option<String>,
}

/// The fact by which a slot's place was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotPlace {
    /// Its addresses (types 19 and 20) lie in the memory of that node.
    Addresses,
    /// A name that says the socket: `P1_DIMM_A1`.
    SocketName,
    /// A letter that names the socket: `B1` on servers of Dell.
    SocketLetter,
    /// As many memory arrays (type 16) as sockets.
    Array,
    /// The machine has one node only.
    OnlyNode,
}

impl SlotPlace {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::Addresses, Self::SocketName, Self::SocketLetter, Self::Array, Self::OnlyNode];

    /// The word for scripts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Addresses => "addresses",
            Self::SocketName => "socket-name",
            Self::SocketLetter => "socket-letter",
            Self::Array => "memory-array",
            Self::OnlyNode => "only-node",
        }
    }

    /// The rule in words, as the end of a sentence that begins with `by`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Addresses => "physical addresses",
            Self::SocketName => "the socket in the slot's name",
            Self::SocketLetter => "the letter in the slot's name",
            Self::Array => "the memory array of each socket",
            Self::OnlyNode => "the only node there is",
        }
    }

    /// The rule with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|place| place.word() == word)
    }
}

impl fmt::Display for SlotPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl MemorySlot {
    /// The module, if there is one.
    pub const fn module(&self) -> Option<&MemoryModule> {
        match &self.state {
            SlotState::Installed(module) => Some(module),
            SlotState::Unknown | SlotState::Empty => None,
        }
    }
}

/// The side of a group of slots: what they hang on, as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SlotSide {
    Node(NodeId),
    Package(PackageId),
    /// A socket by the firmware's name, where the packages are not known.
    Socket(String),
    Unknown,
}

impl fmt::Display for SlotSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => write!(f, "node {node}"),
            Self::Package(package) => write!(f, "package {package}"),
            Self::Socket(socket) => write!(f, "socket {}", crate::printable::visible(socket)),
            Self::Unknown => f.write_str("an unknown node"),
        }
    }
}

/// Slots of one side, in the firmware's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotGroup<'a> {
    pub side: SlotSide,
    pub slots: Vec<&'a MemorySlot>,
}

impl MemorySlots {
    /// The slots by side: by node where all that have a module have one, else by package, else by socket. A side
    /// with some that are not known has these apart.
    pub fn groups(&self) -> Vec<SlotGroup<'_>> {
        let known = |find: fn(&MemorySlot) -> Option<SlotSide>| {
            let mut installed = self.slots.iter().filter(|slot| slot.module().is_some()).peekable();
            installed.peek().is_some() && installed.all(|slot| find(slot).is_some())
        };
        let node = |slot: &MemorySlot| slot.node.map(SlotSide::Node);
        let package = |slot: &MemorySlot| slot.package.map(SlotSide::Package);
        let socket = |slot: &MemorySlot| slot.socket.clone().map(SlotSide::Socket);
        let side: fn(&MemorySlot) -> Option<SlotSide> = if known(node) {
            node
        } else if known(package) {
            package
        } else {
            socket
        };
        let mut groups: Vec<SlotGroup<'_>> = Vec::new();
        for slot in &self.slots {
            let side = side(slot).unwrap_or(SlotSide::Unknown);
            match groups.iter_mut().find(|group| group.side == side) {
                Some(group) => group.slots.push(slot),
                None => groups.push(SlotGroup { side, slots: vec![slot] }),
            }
        }
        groups.order_by(|one, other| one.side.cmp(&other.side));
        groups
    }
}

/// The memory at a channel. Names are those of the firmware, which may be any text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelMemory<'a> {
    /// The socket that it belongs to; `None` where the slots do not name one.
    pub socket: Option<&'a str>,
    pub channel: &'a str,
    pub size: Bytes,
}

impl<'a> SlotGroup<'a> {
    /// The modules in the slots.
    pub fn modules(&self) -> impl Iterator<Item = &'a MemoryModule> {
        self.slots.iter().filter_map(|slot| slot.module())
    }

    /// The size of all modules; `None` where one of them has no known size, or none is there.
    pub fn size(&self) -> Option<Bytes> {
        let sizes: Option<Vec<u64>> = self.modules().map(|module| module.size.map(Bytes::get)).collect();
        let sizes = sizes.filter(|sizes| !sizes.is_empty())?;
        Some(Bytes::new(sizes.into_iter().fold(0, u64::saturating_add)))
    }

    /// The memory at each channel, by socket and in the order of their names; `None` unless all slots name theirs and all
    /// modules their size. Channels have names within their socket: a node that spans two sockets has two of each name.
    pub fn channels(&self) -> Option<Vec<ChannelMemory<'a>>> {
        let mut channels: Vec<ChannelMemory<'_>> = Vec::new();
        for slot in &self.slots {
            let (socket, channel) = (slot.socket.as_deref(), slot.channel.as_deref()?);
            let size = match &slot.state {
                SlotState::Empty => Bytes::new(0),
                SlotState::Installed(module) => module.size?,
                SlotState::Unknown => return None,
            };
            match channels.iter_mut().find(|known| (known.socket, known.channel) == (socket, channel)) {
                Some(known) => known.size = Bytes::new(known.size.get().saturating_add(size.get())),
                None => channels.push(ChannelMemory { socket, channel, size }),
            }
        }
        let order = |name: Option<&'a str>| (name.map(str::len), name);
        channels.order_by_key(|known| (order(known.socket), order(Some(known.channel))));
        Some(channels)
    }
}
