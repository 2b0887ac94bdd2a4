//! A machine as JSON: schema `nodewise.machine/1`.
//!
//! ```json
//! {"schema": "nodewise.machine/1", "origin": {"live": {}},
//!  "nodes": [{"id": 0, "cpus": "0-3", "meminfo": {"MemTotal": {"size_bytes": 1073741824}}}],
//!  "distances": {"nodes": "0", "rows": [[10]]}}
//! ```
//!
//! Sets are kernel lists (`"0-3,8"`), units are in the names of the fields, and what is not known
//! is left out. Reading what was written gives an equal [`Machine`]. Fields that are not known are
//! passed over, so that a later writer may add some; another schema is refused.

mod memory_map;
mod memory_slots;
mod oddity;
mod product;
mod sections;
mod set;
mod topology;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::printable::{printable, quote};
use nodewise_machine::{Bytes, KernelRelease, Machine, Origin};
use serde::{Deserialize, Serialize};

use memory_map::MemoryMapFile;
use memory_slots::MemorySlotsFile;
use oddity::OddityFile;
use product::ProductFile;
use sections::{AccessFile, DeviceFile, SettingsFile, TierFile};
use set::{CpuList, NodeList};
use topology::{CacheFile, CpuFile, CpuKindFile, CpuModelFile, DistancesFile, NodeFile};

use crate::limits::{MOST_CPUS, MOST_NODES};

/// The schema that is written and read.
pub const SCHEMA: &str = "nodewise.machine/1";
/// The largest machine file that is read.
pub const MOST_BYTES: u64 = 64 << 20;
/// Most caches and most devices: eight per CPU.
const MOST_ITEMS: usize = 8 * MOST_CPUS as usize;
/// Memory slots: as many as the reader of the firmware's tables takes.
const MOST_SLOTS: usize = 1536;

/// Why a text is not a machine file.
#[derive(Debug, thiserror::Error)]
pub enum MachineFileError {
    /// It is not JSON, or its schema cannot be found.
    #[error("it is not JSON: {0}")]
    Json(String),
    /// It is JSON of some other kind.
    #[error("it has no \"schema\", so it is not a machine file: expected \"schema\": \"{SCHEMA}\"")]
    NoSchema,
    /// It is a machine file of another version, or another file of ours.
    #[error("its schema is {}, and this nodewise reads {SCHEMA}{}", quote(.0), reader(.0))]
    OtherSchema(String),
    /// A field is not as the schema says.
    #[error("{field}: {message}")]
    Field {
        /// Where: `nodes[2].cpus`.
        field: String,
        /// The fault, with line and column.
        message: String,
    },
    /// It is larger than any machine.
    #[error("it has {count} {what}, more than the {most} that are read")]
    TooMany {
        /// The things there are too many of: `nodes`.
        what: &'static str,
        count: usize,
        /// How many would be read.
        most: usize,
    },
    /// It is larger than any machine file.
    #[error("it is larger than {0}", Bytes::new(MOST_BYTES))]
    TooLarge,
}

/// The file.
#[derive(Deserialize, Serialize)]
struct MachineFile {
    schema: String,
    origin: OriginFile,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_at_unix_s: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    architecture: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<ReleaseText>,
    #[serde(default, skip_serializing_if = "ProductFile::is_empty")]
    product: ProductFile,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    page_size_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system_memory_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    swap_free_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "MemoryMapFile::is_empty")]
    memory_map: MemoryMapFile,
    #[serde(default, skip_serializing_if = "MemorySlotsFile::is_empty")]
    memory_slots: MemorySlotsFile,
    #[serde(default, skip_serializing_if = "NodeList::is_empty")]
    possible_nodes: NodeList,
    #[serde(default)]
    nodes: Vec<NodeFile>,
    #[serde(default, skip_serializing_if = "CpuList::is_empty")]
    possible_cpus: CpuList,
    #[serde(default)]
    cpus: Vec<CpuFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cpu_models: Vec<CpuModelFile>,
    /// Only where there are several.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    cpu_kinds: Vec<CpuKindFile>,
    #[serde(default)]
    caches: Vec<CacheFile>,
    #[serde(default)]
    distances: DistancesFile,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    accesses: Vec<AccessFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tiers: Vec<TierFile>,
    #[serde(default)]
    devices: Vec<DeviceFile>,
    #[serde(default)]
    settings: SettingsFile,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allowed_cpus: Option<CpuList>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allowed_nodes: Option<NodeList>,
    #[serde(default)]
    oddities: Vec<OddityFile>,
}

/// The command that reads a result of ours, as the end of a sentence.
fn reader(schema: &str) -> String {
    let name = schema.strip_prefix("nodewise.").and_then(|name| name.split_once('/')).map(|(name, _)| name);
    let command = match name {
        Some(verb @ ("latency" | "bandwidth" | "c2c" | "io" | "tune")) => {
            format!("nodewise {verb} --from FILE")
        }
        Some("latency_sweep" | "latency_loaded" | "latency_table") => {
            "nodewise latency --from FILE".to_owned()
        }
        Some("file_bandwidth") => "nodewise bandwidth --from FILE".to_owned(),
        Some("perftest") => "nodewise io --from FILE".to_owned(),
        Some("suite") => "nodewise compare --suite SUITE --against FILE".to_owned(),
        Some("journal") => "nodewise tune --journal FILE".to_owned(),
        _ => return String::new(),
    };
    format!("; it is a result: {command} reads it")
}

/// Only the schema, to distinguish a file of another kind before its fields are looked at.
#[derive(Deserialize)]
struct Head {
    schema: Option<String>,
}

/// Where the data came from. A live machine has nothing further to say, but a field may come.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum OriginFile {
    Live {},
    Capture { path: String },
    Firmware { path: String },
    Spec { text: String },
}

impl From<&Origin> for OriginFile {
    fn from(origin: &Origin) -> Self {
        match origin.clone() {
            Origin::Live => Self::Live {},
            Origin::Capture(path) => Self::Capture { path },
            Origin::Firmware(path) => Self::Firmware { path },
            Origin::Spec(text) => Self::Spec { text },
        }
    }
}

impl From<OriginFile> for Origin {
    fn from(origin: OriginFile) -> Self {
        match origin {
            OriginFile::Live {} => Self::Live,
            OriginFile::Capture { path } => Self::Capture(path),
            OriginFile::Firmware { path } => Self::Firmware(path),
            OriginFile::Spec { text } => Self::Spec(text),
        }
    }
}

/// A kernel release as its text.
#[derive(Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
struct ReleaseText(KernelRelease);

impl TryFrom<String> for ReleaseText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let release = KernelRelease::new(&text).filter(|release| release.text() == text);
        release
            .map(Self)
            .ok_or_else(|| format!("{} is not a kernel release, expected one as 6.12.1", quote(&text)))
    }
}

impl From<ReleaseText> for String {
    fn from(release: ReleaseText) -> Self {
        release.0.text().to_owned()
    }
}

impl Clone for ReleaseText {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Writes a machine as JSON, indented, with a line feed at the end.
pub fn to_json(machine: &Machine) -> String {
    let kinds = machine.cpu_kinds();
    let several = kinds.len() > 1;
    let file = MachineFile {
        schema: SCHEMA.to_owned(),
        origin: OriginFile::from(&machine.origin),
        read_at_unix_s: machine.read_at.and_then(seconds_since_1970),
        architecture: machine.architecture.clone(),
        kernel: machine.kernel.clone().map(ReleaseText),
        product: ProductFile::from(&machine.product),
        page_size_bytes: machine.page_size.map(Bytes::get),
        system_memory_bytes: machine.system_memory.map(Bytes::get),
        swap_free_bytes: machine.swap_free.map(Bytes::get),
        memory_map: MemoryMapFile::from(&machine.memory_map),
        memory_slots: MemorySlotsFile::from(&machine.memory_slots),
        possible_nodes: NodeList(machine.possible_nodes.clone()),
        nodes: machine.nodes.values().map(NodeFile::from).collect(),
        possible_cpus: CpuList(machine.possible_cpus.clone()),
        cpus: machine.cpus.values().map(CpuFile::from).collect(),
        cpu_models: machine.cpu_models.iter().map(CpuModelFile::from).collect(),
        cpu_kinds: kinds.into_iter().filter(|_| several).map(CpuKindFile::from).collect(),
        caches: machine.caches.iter().map(CacheFile::from).collect(),
        distances: DistancesFile::from(&machine.distances),
        accesses: machine.accesses.iter().map(AccessFile::from).collect(),
        tiers: machine.tiers.iter().map(TierFile::from).collect(),
        devices: machine.devices.iter().map(DeviceFile::from).collect(),
        settings: SettingsFile::from(&machine.settings),
        allowed_cpus: machine.allowed_cpus.clone().map(CpuList),
        allowed_nodes: machine.allowed_nodes.clone().map(NodeList),
        oddities: machine.oddities.iter().map(OddityFile::from).collect(),
    };
    let mut text =
        serde_json::to_string_pretty(&file).expect("the structs hold only strings, numbers and lists");
    text.push('\n');
    text
}

/// A moment as the file has it; `None` before 1970.
fn seconds_since_1970(moment: SystemTime) -> Option<u64> {
    moment.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// Reads a machine file.
///
/// # Errors
/// A text that is not JSON or has another schema; a field that is missing or not as the schema says,
/// with its place in the file; more nodes or CPUs than a machine can have.
pub fn from_json(text: &str) -> Result<Machine, MachineFileError> {
    if text.len() as u64 > MOST_BYTES {
        return Err(MachineFileError::TooLarge);
    }
    let json = |error: serde_json::Error| MachineFileError::Json(printable(&error.to_string()).into_owned());
    let head: Head = serde_json::from_str(text).map_err(json)?;
    match head.schema {
        None => return Err(MachineFileError::NoSchema),
        Some(schema) if schema != SCHEMA => return Err(MachineFileError::OtherSchema(schema)),
        Some(_) => (),
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let file: MachineFile = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let field = printable(&error.path().to_string()).into_owned();
        MachineFileError::Field { field, message: printable(&error.inner().to_string()).into_owned() }
    })?;
    deserializer.end().map_err(json)?;
    machine(file)
}

fn machine(file: MachineFile) -> Result<Machine, MachineFileError> {
    let few = |what, count: usize, most: usize| {
        if count > most { Err(MachineFileError::TooMany { what, count, most }) } else { Ok(()) }
    };
    few("nodes", file.nodes.len(), MOST_NODES)?;
    few("CPUs", file.cpus.len(), MOST_CPUS as usize)?;
    few("CPU models", file.cpu_models.len(), MOST_CPUS as usize)?;
    few("caches", file.caches.len(), MOST_ITEMS)?;
    few("devices", file.devices.len(), MOST_ITEMS)?;
    few("memory slots", file.memory_slots.count(), MOST_SLOTS)?;
    let memory_slots = file.memory_slots.slots().map_err(|(name, why)| field(&name, why))?;
    let memory_map = file.memory_map.map().map_err(|(name, why)| field(&name, why))?;
    few("ranges of memory", memory_map.ram.len().max(memory_map.nodes.len()), MOST_ITEMS)?;
    let nodes = unique("nodes", file.nodes.into_iter().map(|node| (node.id(), node)))?;
    let cpus = unique("cpus", file.cpus.into_iter().map(|cpu| (cpu.id(), cpu)))?;
    let distances = file.distances.matrix().map_err(|message| field("distances", message))?;
    Ok(Machine {
        origin: file.origin.into(),
        read_at: file.read_at_unix_s.and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds))),
        architecture: file.architecture,
        kernel: file.kernel.map(|release| release.0),
        product: file.product.into(),
        page_size: file.page_size_bytes.map(Bytes::new),
        system_memory: file.system_memory_bytes.map(Bytes::new),
        swap_free: file.swap_free_bytes.map(Bytes::new),
        memory_map,
        memory_slots,
        possible_nodes: file.possible_nodes.0,
        nodes: nodes.into_iter().map(|(id, node)| (id, node.into())).collect_map(),
        possible_cpus: file.possible_cpus.0,
        cpus: cpus.into_iter().map(|(id, cpu)| (id, cpu.into())).collect_map(),
        cpu_models: file.cpu_models.into_iter().map(Into::into).collect(),
        caches: file.caches.into_iter().map(Into::into).collect(),
        distances,
        accesses: file.accesses.into_iter().map(Into::into).collect(),
        tiers: file.tiers.into_iter().map(Into::into).collect(),
        devices: file.devices.into_iter().map(Into::into).collect(),
        settings: file.settings.into(),
        allowed_cpus: file.allowed_cpus.map(|cpus| cpus.0),
        allowed_nodes: file.allowed_nodes.map(|nodes| nodes.0),
        oddities: file.oddities.into_iter().map(Into::into).collect(),
    })
}

fn field(field: &str, message: String) -> MachineFileError {
    MachineFileError::Field { field: field.to_owned(), message }
}

/// Items by id; the same id twice is an error.
fn unique<K: Ord + std::fmt::Debug + Copy, V>(
    name: &str,
    items: impl Iterator<Item = (K, V)>,
) -> Result<std::collections::BTreeMap<K, V>, MachineFileError> {
    let mut map = std::collections::BTreeMap::new();
    for (place, (id, item)) in items.enumerate() {
        if map.insert(id, item).is_some() {
            return Err(field(&format!("{name}[{place}].id"), format!("{id:?} comes twice")));
        }
    }
    Ok(map)
}

#[cfg(test)]
mod tests;
