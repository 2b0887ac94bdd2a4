//! The cost of reading the memory of a request, as text and JSON show it.

use nodewise_machine::NodeId;
use nodewise_model::cost::{Bottleneck, CHASING, Costs, Profile, Read, STREAMING, Unknown};

use super::walk::Walk;

/// How a program reads its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// In order: many lines are under way at once.
    Stream,
    /// Each load waits for the one before.
    Chase,
}

impl Access {
    /// The word in JSON, and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Chase => "chase",
        }
    }

    /// Bytes that a thread has under way.
    const fn under_way(self) -> f64 {
        match self {
            Self::Stream => STREAMING,
            Self::Chase => CHASING,
        }
    }
}

/// The part of the memory that is on one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    pub node: NodeId,
    pub bytes: u64,
    /// Latency from the CPU's node, ns.
    pub latency_ns: f64,
    /// Bandwidth of the link from there, bytes per second, where that is known.
    pub link: Option<f64>,
    /// Bandwidth of the node's memory, bytes per second, where that is known.
    pub controller: Option<f64>,
}

/// The cost of reading the memory of a request once.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Threads that read, all on the CPU's node.
    pub threads: u32,
    pub access: Access,
    pub parts: Vec<Part>,
    /// The least time, s.
    pub seconds: f64,
    pub bottleneck: Bottleneck,
}

impl Reading {
    /// Works it out for the pages that a request was given; `None` where it was given none.
    ///
    /// # Errors
    /// A way without any known figure.
    pub fn from_walk(
        walk: &Walk<'_>,
        costs: &Costs,
        threads: u32,
        access: Access,
    ) -> Result<Option<Self>, Unknown> {
        let from = walk.cpu_node;
        let (given, page) = (walk.outcome.nodes(), walk.before.page_bytes());
        let reads: Vec<Read> =
            given.iter().map(|(to, pages)| Read { from, to: *to, bytes: pages * page }).collect();
        let profile = Profile { threads, under_way: access.under_way() };
        let Some(cost) = costs.expected(&reads, profile)? else { return Ok(None) };
        let part = |read: &Read| {
            let way = costs.paths.get(from, read.to)?;
            let controller = costs.controllers.get(&read.to).copied();
            let (node, bytes) = (read.to, read.bytes);
            Some(Part { node, bytes, latency_ns: way.latency_ns, link: way.bandwidth, controller })
        };
        let parts = reads.iter().filter_map(part).collect();
        Ok(Some(Self { threads, access, parts, seconds: cost.seconds, bottleneck: cost.bottleneck }))
    }

    /// How much is read.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// GB/s over all of it.
    pub fn gb_per_s(&self) -> f64 {
        self.bytes() as f64 / self.seconds / 1e9
    }
}
