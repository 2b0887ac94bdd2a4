//! Nodes, CPUs, caches and distances in a file.

use std::fmt;

use nodewise_machine::node::MemorySideCache;
use nodewise_machine::{
    BookId, Bytes, Cache, CacheKind, ClusterId, CoreId, CoreType, Cpu, CpuId, CpuKind, CpuModel, DieId,
    DrawerId, HugePool, MeminfoField, MeminfoValue, Node, NodeId, NodeMatrix, PackageId,
};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::sections::Hex;
use super::set::{CpuList, CpuNumber, NodeList, NodeNumber};
use crate::limits::MOST_NODES;

#[derive(Deserialize, Serialize)]
pub(super) struct NodeFile {
    id: NodeNumber,
    #[serde(default)]
    cpus: CpuList,
    #[serde(default, skip_serializing_if = "Meminfo::is_empty")]
    meminfo: Meminfo,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    present_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    huge_pools: Vec<HugePoolFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    memory_side_caches: Vec<SideCacheFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generic_initiator: Option<bool>,
}

impl NodeFile {
    pub(super) fn id(&self) -> NodeId {
        self.id.0
    }
}

impl From<&Node> for NodeFile {
    fn from(node: &Node) -> Self {
        Self {
            id: NodeNumber(node.id),
            cpus: CpuList(node.cpus.clone()),
            meminfo: Meminfo(node.meminfo.clone()),
            present_bytes: node.present.map(Bytes::get),
            huge_pools: node.huge_pools.iter().map(HugePoolFile::from).collect(),
            memory_side_caches: node.memory_side_caches.iter().map(SideCacheFile::from).collect(),
            generic_initiator: node.generic_initiator,
        }
    }
}

impl From<NodeFile> for Node {
    fn from(node: NodeFile) -> Self {
        Self {
            id: node.id.0,
            cpus: node.cpus.0,
            meminfo: node.meminfo.0,
            present: node.present_bytes.map(Bytes::new),
            huge_pools: node.huge_pools.into_iter().map(Into::into).collect(),
            memory_side_caches: node.memory_side_caches.into_iter().map(Into::into).collect(),
            generic_initiator: node.generic_initiator,
        }
    }
}

/// Meminfo as an object whose fields are in the kernel's order:
/// `{"MemTotal": {"size_bytes": 8192}, "HugePages_Total": {"count": 4}}`.
#[derive(Default)]
struct Meminfo(Vec<MeminfoField>);

impl Meminfo {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum MeminfoValueFile {
    SizeBytes(u64),
    Count(u64),
}

impl Serialize for Meminfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for field in &self.0 {
            let value = match field.value {
                MeminfoValue::Size(size) => MeminfoValueFile::SizeBytes(size.get()),
                MeminfoValue::Count(count) => MeminfoValueFile::Count(count),
            };
            map.serialize_entry(&field.name, &value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Meminfo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MeminfoVisitor).map(Self)
    }
}

struct MeminfoVisitor;

impl<'de> Visitor<'de> for MeminfoVisitor {
    type Value = Vec<MeminfoField>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of fields as {\"MemTotal\": {\"size_bytes\": 1}}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((name, value)) = map.next_entry()? {
            let value = match value {
                MeminfoValueFile::SizeBytes(size) => MeminfoValue::Size(Bytes::new(size)),
                MeminfoValueFile::Count(count) => MeminfoValue::Count(count),
            };
            fields.push(MeminfoField { name, value });
        }
        Ok(fields)
    }
}

#[derive(Deserialize, Serialize)]
struct HugePoolFile {
    page_size_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total_pages: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    free_pages: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    surplus_pages: Option<u64>,
}

impl From<&HugePool> for HugePoolFile {
    fn from(pool: &HugePool) -> Self {
        let HugePool { page_size, total, free, surplus } = *pool;
        Self {
            page_size_bytes: page_size.get(),
            total_pages: total,
            free_pages: free,
            surplus_pages: surplus,
        }
    }
}

impl From<HugePoolFile> for HugePool {
    fn from(pool: HugePoolFile) -> Self {
        Self {
            page_size: Bytes::new(pool.page_size_bytes),
            total: pool.total_pages,
            free: pool.free_pages,
            surplus: pool.surplus_pages,
        }
    }
}

#[derive(Deserialize, Serialize)]
struct SideCacheFile {
    level: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line_size_bytes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    indexing: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    write_policy: Option<u32>,
}

impl From<&MemorySideCache> for SideCacheFile {
    fn from(cache: &MemorySideCache) -> Self {
        Self {
            level: cache.level,
            size_bytes: cache.size.map(Bytes::get),
            line_size_bytes: cache.line_size,
            indexing: cache.indexing,
            write_policy: cache.write_policy,
        }
    }
}

impl From<SideCacheFile> for MemorySideCache {
    fn from(cache: SideCacheFile) -> Self {
        Self {
            level: cache.level,
            size: cache.size_bytes.map(Bytes::new),
            line_size: cache.line_size_bytes,
            indexing: cache.indexing,
            write_policy: cache.write_policy,
        }
    }
}

#[derive(Deserialize, Serialize)]
pub(super) struct CpuFile {
    id: CpuNumber,
    online: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<NodeNumber>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    core: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    die: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    package: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    book: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drawer: Option<u32>,
    #[serde(default, skip_serializing_if = "CpuList::is_empty")]
    siblings: CpuList,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capacity: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    core_type: Option<CoreTypeWord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_frequency_khz: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    microcode: Option<Hex<8>>,
}

struct CoreTypeWord(CoreType);

impl Serialize for CoreTypeWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<'de> Deserialize<'de> for CoreTypeWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let words = CoreType::ALL.map(CoreType::word).join(", ");
        CoreType::from_word(&word)
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("unknown type of core: expected one of {words}")))
    }
}

#[derive(Deserialize, Serialize)]
pub(super) struct CpuModelFile {
    name: String,
    cpus: CpuList,
}

impl From<&CpuModel> for CpuModelFile {
    fn from(model: &CpuModel) -> Self {
        Self { name: model.name.clone(), cpus: CpuList(model.cpus.clone()) }
    }
}

impl From<CpuModelFile> for CpuModel {
    fn from(model: CpuModelFile) -> Self {
        Self { name: model.name, cpus: model.cpus.0 }
    }
}

impl CpuFile {
    pub(super) fn id(&self) -> CpuId {
        self.id.0
    }
}

impl From<&Cpu> for CpuFile {
    fn from(cpu: &Cpu) -> Self {
        Self {
            id: CpuNumber(cpu.id),
            online: cpu.online,
            node: cpu.node.map(NodeNumber),
            core: cpu.core.map(CoreId::number),
            cluster: cpu.cluster.map(ClusterId::number),
            die: cpu.die.map(DieId::number),
            package: cpu.package.map(PackageId::number),
            book: cpu.book.map(BookId::number),
            drawer: cpu.drawer.map(DrawerId::number),
            siblings: CpuList(cpu.siblings.clone()),
            capacity: cpu.capacity,
            core_type: cpu.core_type.map(CoreTypeWord),
            max_frequency_khz: cpu.max_frequency_khz,
            microcode: cpu.microcode.map(Hex),
        }
    }
}

impl From<CpuFile> for Cpu {
    fn from(cpu: CpuFile) -> Self {
        Self {
            id: cpu.id.0,
            online: cpu.online,
            node: cpu.node.map(|node| node.0),
            core: cpu.core.map(CoreId::new),
            cluster: cpu.cluster.map(ClusterId::new),
            die: cpu.die.map(DieId::new),
            package: cpu.package.map(PackageId::new),
            book: cpu.book.map(BookId::new),
            drawer: cpu.drawer.map(DrawerId::new),
            siblings: cpu.siblings.0,
            capacity: cpu.capacity,
            core_type: cpu.core_type.map(|word| word.0),
            max_frequency_khz: cpu.max_frequency_khz,
            microcode: cpu.microcode.map(|revision| revision.0),
        }
    }
}

/// A kind of CPU, summed up from the CPUs' own fields for readers of the file; it is not read back.
#[derive(Serialize)]
pub(super) struct CpuKindFile {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_frequency_khz: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<u32>,
    cpus: CpuList,
}

impl From<CpuKind> for CpuKindFile {
    fn from(kind: CpuKind) -> Self {
        let CpuKind { name, max_frequency_khz, capacity, cpus, .. } = kind;
        Self { name, max_frequency_khz, capacity, cpus: CpuList(cpus) }
    }
}

#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum CacheKindFile {
    Data,
    Instruction,
    Unified,
}

#[derive(Deserialize, Serialize)]
pub(super) struct CacheFile {
    level: u8,
    kind: CacheKindFile,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line_size_bytes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ways: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sets: Option<u32>,
    cpus: CpuList,
}

impl From<&Cache> for CacheFile {
    fn from(cache: &Cache) -> Self {
        let kind = match cache.kind {
            CacheKind::Data => CacheKindFile::Data,
            CacheKind::Instruction => CacheKindFile::Instruction,
            CacheKind::Unified => CacheKindFile::Unified,
        };
        Self {
            level: cache.level,
            kind,
            size_bytes: cache.size.map(Bytes::get),
            line_size_bytes: cache.line_size,
            ways: cache.ways,
            sets: cache.sets,
            cpus: CpuList(cache.cpus.clone()),
        }
    }
}

impl From<CacheFile> for Cache {
    fn from(cache: CacheFile) -> Self {
        let kind = match cache.kind {
            CacheKindFile::Data => CacheKind::Data,
            CacheKindFile::Instruction => CacheKind::Instruction,
            CacheKindFile::Unified => CacheKind::Unified,
        };
        Self {
            level: cache.level,
            kind,
            size: cache.size_bytes.map(Bytes::new),
            line_size: cache.line_size_bytes,
            ways: cache.ways,
            sets: cache.sets,
            cpus: cache.cpus.0,
        }
    }
}

/// Distances as rows: `rows[i][j]` from the i-th to the j-th of `nodes`, null where it is missing.
#[derive(Default, Deserialize, Serialize)]
pub(super) struct DistancesFile {
    nodes: NodeList,
    rows: Vec<Vec<Option<u32>>>,
}

impl From<&NodeMatrix<u32>> for DistancesFile {
    fn from(matrix: &NodeMatrix<u32>) -> Self {
        Self {
            nodes: NodeList(matrix.nodes().iter().copied().collect()),
            rows: matrix.rows().map(|(_, row)| row.to_vec()).collect(),
        }
    }
}

impl DistancesFile {
    /// The matrix, or what is wrong with its shape.
    pub(super) fn matrix(self) -> Result<NodeMatrix<u32>, String> {
        let nodes = self.nodes.0;
        let count = nodes.len();
        if count > MOST_NODES {
            return Err(format!("{count} nodes are more than the {MOST_NODES} that are read"));
        }
        if self.rows.len() != count || self.rows.iter().any(|row| row.len() != count) {
            return Err(format!("expected {count} rows of {count} numbers, one for each of its nodes"));
        }
        let mut matrix = NodeMatrix::new(&nodes);
        for (from, row) in nodes.iter().zip(self.rows) {
            for (to, distance) in nodes.iter().zip(row) {
                if let Some(distance) = distance {
                    matrix.set(from, to, distance);
                }
            }
        }
        Ok(matrix)
    }
}
