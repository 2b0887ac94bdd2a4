//! Memory slots in a file.

use nodewise_machine::printable::printable;
use nodewise_machine::{Bytes, MemoryModule, MemorySlot, MemorySlots, PackageId, SlotPlace, SlotState};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::set::NodeNumber;

#[derive(Default, Deserialize, Serialize)]
pub(super) struct MemorySlotsFile {
    /// Why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_read: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    slots: Vec<SlotFile>,
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum StateFile {
    Unknown,
    Empty,
    Installed,
}

#[derive(Deserialize, Serialize)]
struct SlotFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    locator: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bank_locator: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    socket: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    package: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<NodeNumber>,
    /// The fact that these come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    placed_by: Option<PlaceWord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
    /// Whether the socket has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    processor: Option<bool>,
    state: StateFile,
    /// Of an installed module only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    module: Option<ModuleFile>,
}

#[derive(Default, Deserialize, Serialize)]
struct ModuleFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    form_factor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    technology: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_speed_mt_per_s: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    configured_speed_mt_per_s: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ranks: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data_width_bits: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total_width_bits: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    manufacturer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part_number: Option<String>,
}

struct PlaceWord(SlotPlace);

impl Serialize for PlaceWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<'de> Deserialize<'de> for PlaceWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        SlotPlace::from_word(&word)
            .map(Self)
            .ok_or_else(|| D::Error::custom("unknown rule, expected one as \"socket-name\""))
    }
}

impl MemorySlotsFile {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.not_read.is_none()
    }

    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// The slots, or the field that is wrong and why.
    pub(super) fn slots(self) -> Result<MemorySlots, (String, String)> {
        let slots = self.slots.into_iter().enumerate().map(|(at, slot)| slot.slot(at));
        Ok(MemorySlots {
            slots: slots.collect::<Result<_, _>>()?,
            // It goes to a terminal as it is.
            not_read: self.not_read.map(|text| printable(&text).into_owned()),
        })
    }
}

impl From<&MemorySlots> for MemorySlotsFile {
    fn from(slots: &MemorySlots) -> Self {
        Self { not_read: slots.not_read.clone(), slots: slots.slots.iter().map(SlotFile::from).collect() }
    }
}

impl From<&MemorySlot> for SlotFile {
    fn from(slot: &MemorySlot) -> Self {
        let MemorySlot { locator, bank, socket, package, node, place, channel, processor, state } =
            slot.clone();
        let (state, module) = match state {
            SlotState::Unknown => (StateFile::Unknown, None),
            SlotState::Empty => (StateFile::Empty, None),
            SlotState::Installed(module) => (StateFile::Installed, Some(ModuleFile::from(module))),
        };
        Self {
            locator,
            bank_locator: bank,
            socket,
            package: package.map(PackageId::number),
            node: node.map(NodeNumber),
            placed_by: place.map(PlaceWord),
            channel,
            processor,
            state,
            module,
        }
    }
}

impl SlotFile {
    fn slot(self, at: usize) -> Result<MemorySlot, (String, String)> {
        let state = match (self.state, self.module) {
            (StateFile::Unknown, None) => SlotState::Unknown,
            (StateFile::Empty, None) => SlotState::Empty,
            (StateFile::Installed, module) => SlotState::Installed(module.unwrap_or_default().into()),
            (StateFile::Unknown | StateFile::Empty, Some(_)) => {
                let field = format!("memory_slots.slots[{at}].module");
                return Err((field, "expected none: the slot is not \"installed\"".to_owned()));
            }
        };
        Ok(MemorySlot {
            locator: self.locator,
            bank: self.bank_locator,
            socket: self.socket,
            package: self.package.map(PackageId::new),
            node: self.node.map(|node| node.0),
            place: self.placed_by.map(|place| place.0),
            channel: self.channel,
            processor: self.processor,
            state,
        })
    }
}

impl From<MemoryModule> for ModuleFile {
    fn from(module: MemoryModule) -> Self {
        Self {
            size_bytes: module.size.map(Bytes::get),
            memory_type: module.memory_type,
            form_factor: module.form_factor,
            technology: module.technology,
            max_speed_mt_per_s: module.max_speed_mt_per_s,
            configured_speed_mt_per_s: module.configured_speed_mt_per_s,
            ranks: module.ranks,
            data_width_bits: module.data_width_bits,
            total_width_bits: module.total_width_bits,
            manufacturer: module.manufacturer,
            part_number: module.part_number,
        }
    }
}

impl From<ModuleFile> for MemoryModule {
    fn from(module: ModuleFile) -> Self {
        Self {
            size: module.size_bytes.map(Bytes::new),
            memory_type: module.memory_type,
            form_factor: module.form_factor,
            technology: module.technology,
            max_speed_mt_per_s: module.max_speed_mt_per_s,
            configured_speed_mt_per_s: module.configured_speed_mt_per_s,
            ranks: module.ranks,
            data_width_bits: module.data_width_bits,
            total_width_bits: module.total_width_bits,
            manufacturer: module.manufacturer,
            part_number: module.part_number,
        }
    }
}
