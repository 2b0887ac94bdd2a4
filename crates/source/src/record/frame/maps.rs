//! The mappings of a process of a sample as JSON.
//!
//! Each mapping has its first address as its key, in hexadecimal, so that a mapping that grows or whose pages
//! move is a few differences.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nodewise_machine::mapping::{
    DrawnPages, FileId, MappedPages, Mapping, MappingKind, MappingPolicy, MappingsMethod, ProcessMappings,
};
use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::order::Order as _;
use nodewise_machine::{Bytes, NodeId};
use serde::{Deserialize, Serialize};

use super::{Fault, earlier, micros, moment, node};
use crate::parse::maps::permissions;
use crate::parse::number::hex_digits;
use crate::sample::{Identity, MappingsSample, Moment};

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct MapsFrame {
    /// When they were read; left out where that is the moment of the sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_us: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resident: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swapped: Option<u64>,
    method: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_us: Option<u64>,
    predicted_us: u64,
    mappings: BTreeMap<String, MappingFrame>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct MappingFrame {
    size: u64,
    permissions: String,
    kind: String,
    /// Major and minor number of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<[u32; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inode: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_size: Option<u64>,
    /// Bytes by node, where every page was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<BTreeMap<u32, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drawn: Option<DrawnFrame>,
    /// Where the nodes are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    resident: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transparent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swapped: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dirty: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    most_mapped: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unsure: bool,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct DrawnFrame {
    candidates: u64,
    drawn: u64,
    /// Pages by node.
    nodes: BTreeMap<u32, u64>,
}

const EXACT: &str = "exact";
const SAMPLED: &str = "sampled";
const NO_NODES: &str = "no nodes";

impl MapsFrame {
    pub(super) fn new(sample: &MappingsSample, now: Moment, is_kept: bool) -> Self {
        let process = &*sample.mappings;
        let (method, asked, seed) = match process.method {
            MappingsMethod::Exact => (EXACT, None, None),
            MappingsMethod::NoNodes => (NO_NODES, None, None),
            MappingsMethod::Sampled { asked, seed } => (SAMPLED, Some(asked), Some(seed)),
        };
        let mappings = if is_kept { &[] } else { process.mappings.as_slice() };
        Self {
            seen_us: earlier(sample.seen, now),
            name: process.name.clone(),
            resident: process.resident.map(Bytes::get),
            swapped: process.swapped.map(Bytes::get),
            method: method.to_owned(),
            asked,
            seed,
            took_us: process.took.map(micros),
            predicted_us: micros(process.predicted),
            mappings: mappings
                .iter()
                .map(|mapping| (format!("{:x}", mapping.start), MappingFrame::from(mapping)))
                .collect_map(),
            notes: process.notes.clone(),
        }
    }

    pub(super) fn into_sample(self, identity: Identity, now: Moment) -> Result<MappingsSample, Fault> {
        let method = match (self.method.as_str(), self.asked, self.seed) {
            (EXACT, ..) => MappingsMethod::Exact,
            (NO_NODES, ..) => MappingsMethod::NoNodes,
            (SAMPLED, Some(asked), Some(seed)) => MappingsMethod::Sampled { asked, seed },
            (SAMPLED, ..) => return Err("maps: expected asked and seed of what was sampled".to_owned()),
            (other, ..) => {
                return Err(format!("method {other:?}: expected {EXACT}, {SAMPLED} or {NO_NODES}"));
            }
        };
        let mappings = self.mappings.into_iter().map(|(start, mapping)| mapping.into_mapping(&start));
        let mut mappings = mappings.collect::<Result<Vec<_>, Fault>>()?;
        mappings.order_by_key(|mapping| mapping.start);
        if let Some(two) = mappings.windows(2).find(|two| two[0].end > two[1].start) {
            return Err(format!("mapping {:x} overlaps mapping {:x}", two[1].start, two[0].start));
        }
        let mappings = ProcessMappings {
            pid: identity.pid,
            name: self.name,
            resident: self.resident.map(Bytes::new),
            swapped: self.swapped.map(Bytes::new),
            method,
            thread_policy: None,
            took: self.took_us.map(Duration::from_micros),
            predicted: Duration::from_micros(self.predicted_us),
            mappings,
            notes: self.notes,
        };
        let seen = self.seen_us.map_or(now, |[boot, wall]| moment(boot, wall));
        Ok(MappingsSample { identity, seen, mappings: Arc::new(mappings) })
    }
}

fn by_number<T: Copy>(nodes: &BTreeMap<NodeId, T>, number: fn(T) -> u64) -> BTreeMap<u32, u64> {
    nodes.iter().map(|(node, value)| (node.number(), number(*value))).collect()
}

impl From<&Mapping> for MappingFrame {
    fn from(mapping: &Mapping) -> Self {
        let (nodes, drawn, resident) = match &mapping.pages {
            MappedPages::Counted(nodes) => (Some(by_number(nodes, Bytes::get)), None, None),
            MappedPages::Drawn(drawn) => {
                let frame = DrawnFrame {
                    candidates: drawn.candidates.get(),
                    drawn: drawn.drawn,
                    nodes: by_number(&drawn.nodes, |pages| pages),
                };
                (None, Some(frame), None)
            }
            MappedPages::Unknown { resident } => (None, None, resident.map(Bytes::get)),
        };
        Self {
            size: mapping.end - mapping.start,
            permissions: mapping.permissions.to_string(),
            kind: mapping.kind.key().to_owned(),
            device: mapping.file.map(|file| file.device.into()),
            inode: mapping.file.map(|file| file.inode),
            name: mapping.name.clone(),
            policy: mapping.policy.as_ref().map(|policy| policy.text.clone()),
            page_size: mapping.page_size.map(Bytes::get),
            nodes,
            drawn,
            resident,
            transparent: mapping.transparent.map(Bytes::get),
            swapped: mapping.swapped.map(Bytes::get),
            dirty: mapping.dirty.map(Bytes::get),
            most_mapped: mapping.most_mapped,
            unsure: mapping.unsure,
        }
    }
}

impl MappingFrame {
    fn into_mapping(self, start: &str) -> Result<Mapping, Fault> {
        // One address has one key.
        let address = hex_digits(start).filter(|address| format!("{address:x}") == start);
        let address = address.ok_or_else(|| {
            format!("mapping {start:?}: expected an address in hexadecimal, without zeros in front")
        })?;
        let end = address.checked_add(self.size).filter(|end| *end > address);
        let end = end.ok_or_else(|| format!("mapping {start}: {} bytes do not fit behind it", self.size))?;
        let kind = MappingKind::ALL.into_iter().find(|kind| kind.key() == self.kind);
        let kind =
            kind.ok_or_else(|| format!("mapping {start}: {:?} is not a kind of mapping", self.kind))?;
        let pages = match (self.nodes, self.drawn) {
            (_, Some(frame)) => {
                let found = frame.nodes.values().try_fold(0u64, |sum, pages| sum.checked_add(*pages));
                if found.is_none_or(|found| found > frame.drawn) {
                    return Err(format!(
                        "mapping {start}: more pages on nodes than the {} drawn",
                        frame.drawn
                    ));
                }
                let nodes = frame.nodes.into_iter().map(|(number, pages)| Ok((node(number)?, pages)));
                MappedPages::Drawn(DrawnPages {
                    candidates: Bytes::new(frame.candidates),
                    drawn: frame.drawn,
                    nodes: nodes.try_collect_map::<_, _, Fault>()?,
                })
            }
            (Some(nodes), None) => {
                let nodes = nodes.into_iter().map(|(number, size)| Ok((node(number)?, Bytes::new(size))));
                MappedPages::Counted(nodes.try_collect_map::<_, _, Fault>()?)
            }
            (None, None) => MappedPages::Unknown { resident: self.resident.map(Bytes::new) },
        };
        let policy = |text: String| MappingPolicy { policy: text.parse().ok(), text };
        Ok(Mapping {
            start: address,
            end,
            permissions: permissions(&self.permissions).ok_or_else(|| {
                format!("permissions {:?}: expected four letters as in rw-p", self.permissions)
            })?,
            kind,
            file: self
                .device
                .zip(self.inode)
                .map(|([major, minor], inode)| FileId { device: (major, minor), inode }),
            name: self.name,
            policy: self.policy.map(policy),
            page_size: self.page_size.map(Bytes::new),
            pages,
            transparent: self.transparent.map(Bytes::new),
            swapped: self.swapped.map(Bytes::new),
            dirty: self.dirty.map(Bytes::new),
            most_mapped: self.most_mapped,
            unsure: self.unsure,
        })
    }
}
