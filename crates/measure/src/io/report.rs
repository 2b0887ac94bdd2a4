//! The record of `nodewise io`: everything that is shown, as plain data.

use nodewise_machine::{Bytes, NodeId};

use super::{Access, IoTransfer};
use crate::cell::Refusal;
use crate::perftest::Comparison;
use crate::survey::{Account, CellReport, Outcome};

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceKind {
    Block,
    File,
    Network,
    Rdma,
    /// Nothing that could be found.
    Unknown,
}

impl DeviceKind {
    /// All.
    pub const ALL: [Self; 5] = [Self::Block, Self::File, Self::Network, Self::Rdma, Self::Unknown];

    /// The word for text and JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::File => "file",
            Self::Network => "network",
            Self::Rdma => "rdma",
            Self::Unknown => "unknown",
        }
    }
}

/// Where a device hangs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Home {
    Node(NodeId),
    /// No one knows; why, in a sentence.
    Unknown(String),
}

impl Home {
    /// The node, where it is known.
    pub fn node(&self) -> Option<NodeId> {
        match self {
            Self::Node(node) => Some(*node),
            Self::Unknown(_) => None,
        }
    }
}

/// One way and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct IoTransferReport {
    /// How the device was read.
    pub access: Access,
    /// Its figure, in GB/s or us by [`Access::unit`], and where the buffer was.
    pub cell: CellReport,
}

impl IoTransferReport {
    /// The outcome of a way; `explain` makes a sentence of a refusal.
    pub fn new(way: &IoTransfer, outcome: &Outcome, explain: &dyn Fn(&Refusal) -> String) -> Self {
        let cpus = crate::latency::best_cpu(&way.cell.cpus).into_iter().collect();
        let cell = CellReport::new(&way.cell, cpus, outcome, way.access.direction(), explain);
        Self { access: way.access, cell }
    }
}

/// A device and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReport {
    /// Its kernel name, or the path of a file. Foreign text.
    pub name: String,
    pub kind: DeviceKind,
    pub home: Home,
    /// How much it holds; `None` where that is not known, or means nothing.
    pub size: Option<Bytes>,
    /// Why nothing was read, in words.
    pub refused: Option<String>,
    /// The results of reading: for each node, in each way.
    pub ways: Vec<IoTransferReport>,
    /// The output of perftest for buffers on each node: latency, bandwidth.
    pub perftest: Vec<Comparison>,
}

impl DeviceReport {
    /// The outcome of reading it in one way into the memory of one node.
    pub fn way(&self, access: Access, memory: NodeId) -> Option<&IoTransferReport> {
        self.ways.iter().find(|way| way.access == access && way.cell.memory == memory)
    }

    /// The nodes of the buffers, ascending.
    pub fn memory_nodes(&self) -> Vec<NodeId> {
        crate::survey::account::distinct(self.ways.iter().map(|way| way.cell.memory))
    }
}

/// All devices, and how they were measured.
#[derive(Clone, Debug, PartialEq)]
pub struct IoReport {
    /// The survey as a whole.
    pub account: Account,
    /// The size of each buffer.
    pub size: Bytes,
    /// The devices, in the order in which they are shown.
    pub devices: Vec<DeviceReport>,
}

impl IoReport {
    /// The cells of all ways.
    pub fn cells(&self) -> impl Iterator<Item = &CellReport> {
        self.devices.iter().flat_map(|device| &device.ways).map(|way| &way.cell)
    }

    /// Whether there is a figure of any device.
    pub fn has_figures(&self) -> bool {
        let perftest = self.devices.iter().any(|device| !device.perftest.is_empty());
        perftest || self.cells().any(|cell| cell.figure.is_some())
    }
}
