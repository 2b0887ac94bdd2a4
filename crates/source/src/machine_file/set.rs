//! Ids and sets in a file: numbers, and strings in the kernel's list form.

use nodewise_machine::id::Id;
use nodewise_machine::{CpuId, CpuSet, IdSet, NodeId, NodeSet};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::MOST_CPUS;

/// A set of nodes as a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeList(pub(super) NodeSet);

/// A set of CPUs as a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuList(pub(super) CpuSet);

impl NodeList {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl CpuList {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn read<'de, I: Id, D: Deserializer<'de>>(deserializer: D) -> Result<IdSet<I>, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

impl<'de> Deserialize<'de> for NodeList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for CpuList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let cpus: CpuSet = read(deserializer)?;
        match cpus.last() {
            Some(last) if last.number() >= MOST_CPUS => Err(D::Error::custom(format!(
                "CPU {last} is beyond any machine: expected CPUs below {MOST_CPUS}"
            ))),
            _ => Ok(Self(cpus)),
        }
    }
}

impl Serialize for NodeList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl Serialize for CpuList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

fn number<'de, D: Deserializer<'de>>(deserializer: D, word: &str, limit: u32) -> Result<u32, D::Error> {
    let number = u32::deserialize(deserializer)?;
    if number < limit {
        Ok(number)
    } else {
        Err(D::Error::custom(format!(
            "{word} {number} is beyond any machine: expected a number below {limit}"
        )))
    }
}

/// A node's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeNumber(pub(super) NodeId);

impl<'de> Deserialize<'de> for NodeNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number(deserializer, "node", NodeId::LIMIT).map(|number| Self(NodeId::new(number)))
    }
}

impl Serialize for NodeNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0.number())
    }
}

/// A CPU's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CpuNumber(pub(super) CpuId);

impl<'de> Deserialize<'de> for CpuNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        number(deserializer, "CPU", MOST_CPUS).map(|number| Self(CpuId::new(number)))
    }
}

impl Serialize for CpuNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0.number())
    }
}
