//! The cost of a placement: the time of reading memory, and what bounds it.
//!
//! A saturating model of three bounds; the tightest one holds:
//!
//! - **a thread** has this many bytes under way at once, and each takes the latency of its way: by Little's
//!   law its rate is bytes under way divided by latency;
//! - **a link** from the CPUs of one node to the memory of another carries its bandwidth;
//! - **a controller** gives the bandwidth of its node's memory, whoever asks.
//!
//! Latency is that of an idle machine: near saturation it grows, which the bounds of bandwidth stand for.
//!
//! # Source
//! J. Little, "A Proof for the Queuing Formula L = λW" (1961); the bounds as in S. Williams, A. Waterman,
//! D. Patterson, "Roofline" (2009), with a roof for each controller and link instead of one. Figures come
//! from the HMAT, from measurements, or from whoever states them.
//!
//! # Units
//! Latency in ns, bandwidth in bytes per second, time in seconds.

use std::collections::BTreeMap;

use nodewise_machine::{AccessClass, Machine, NodeId, NodeMatrix};

/// Bytes that a thread has under way while it reads memory in order: ten lines of 64 bytes, the line fill
/// buffers of the cores that most published figures are from.
pub const STREAMING: f64 = 640.0;
/// Bytes that a thread has under way when each load has to wait for the one before: one line.
pub const CHASING: f64 = 64.0;

/// The way from the CPUs of a node to the memory of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathCost {
    /// Read latency of an idle machine, ns.
    pub latency_ns: f64,
    /// The rate of the link, bytes per second; `None` where only the controller bounds it.
    pub bandwidth: Option<f64>,
}

/// The known facts about a machine's ways and controllers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    /// Ways: `ways.get(from, to)`.
    pub paths: NodeMatrix<PathCost>,
    /// The rate of each node's controller, bytes per second.
    pub controllers: BTreeMap<NodeId, f64>,
}

/// Bytes that threads on a node read from a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Read {
    /// The node of the CPUs.
    pub from: NodeId,
    /// The node of the memory.
    pub to: NodeId,
    pub bytes: u64,
}

/// How a program reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Threads on each node that reads, all alike.
    pub threads: u32,
    /// Bytes that each has under way: [`STREAMING`], [`CHASING`], or between.
    pub under_way: f64,
}

/// The part that bounds the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// The threads on this node wait for latency: more of them would be faster.
    Threads(NodeId),
    /// The link from a node's CPUs to a node's memory is full.
    Link(NodeId, NodeId),
    /// The memory of this node gives no more.
    Controller(NodeId),
}

/// The cost of a placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The least time that all reads take, s.
    pub seconds: f64,
    pub bottleneck: Bottleneck,
}

/// A way without any known figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The node of the CPUs.
    pub from: NodeId,
    /// The node of the memory.
    pub to: NodeId,
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the latency from node {} to node {} is not known", self.from, self.to)
    }
}

impl std::error::Error for Unknown {}

impl Costs {
    /// The firmware's figures: ways from the initiators that it names. The bandwidth from there is taken
    /// for what the controller gives; of links it says nothing.
    pub fn from_firmware(machine: &Machine) -> Self {
        let mut costs = Self { paths: NodeMatrix::new(machine.nodes.keys().copied()), ..Self::default() };
        for access in machine.accesses.iter().filter(|access| access.class == AccessClass::Cpu) {
            for from in &access.initiators {
                if let Some(latency) = access.read_latency_ns {
                    let way = PathCost { latency_ns: f64::from(latency), bandwidth: None };
                    costs.paths.set(from, access.target, way);
                }
            }
            if let Some(bandwidth) = access.read_bandwidth_mb_per_s {
                costs.controllers.insert(access.target, f64::from(bandwidth) * 1e6);
            }
        }
        costs
    }

    /// The least time of some reads that go on at once; `None` when there is nothing to read.
    ///
    /// # Errors
    /// A way without any known figure.
    pub fn expected(&self, reads: &[Read], profile: Profile) -> Result<Option<Cost>, Unknown> {
        let mut threads: BTreeMap<NodeId, f64> = BTreeMap::new();
        let mut links: BTreeMap<(NodeId, NodeId), f64> = BTreeMap::new();
        let mut controllers: BTreeMap<NodeId, f64> = BTreeMap::new();
        for read in reads.iter().filter(|read| read.bytes > 0) {
            let Read { from, to, .. } = *read;
            let way = self.paths.get(from, to).ok_or(Unknown { from, to })?;
            let bytes = read.bytes as f64;
            let rate = f64::from(profile.threads.max(1)) * profile.under_way;
            *threads.entry(from).or_default() += bytes * way.latency_ns / rate / 1e9;
            if let Some(bandwidth) = way.bandwidth {
                *links.entry((from, to)).or_default() += bytes / bandwidth;
            }
            if let Some(bandwidth) = self.controllers.get(&to) {
                *controllers.entry(to).or_default() += bytes / bandwidth;
            }
        }
        let bounds = threads.into_iter().map(|(node, time)| (time, Bottleneck::Threads(node)));
        let bounds = bounds.chain(links.into_iter().map(|((a, b), time)| (time, Bottleneck::Link(a, b))));
        let bounds =
            bounds.chain(controllers.into_iter().map(|(node, time)| (time, Bottleneck::Controller(node))));
        let tightest = bounds.max_by(|a, b| a.0.total_cmp(&b.0));
        Ok(tightest.map(|(seconds, bottleneck)| Cost { seconds, bottleneck }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;
    use proptest::prelude::{prop_assert, proptest};

    /// Two sockets of 100 GB/s with 90 ns to the own memory and 140 ns and 40 GB/s to the other's.
    fn two_sockets() -> Costs {
        let nodes = [NodeId::new(0), NodeId::new(1)];
        let mut ways = NodeMatrix::new(nodes);
        for from in nodes {
            for to in nodes {
                let far = PathCost { latency_ns: 140.0, bandwidth: Some(40e9) };
                ways.set(
                    from,
                    to,
                    if from == to { PathCost { latency_ns: 90.0, bandwidth: None } } else { far },
                );
            }
        }
        Costs { paths: ways, controllers: nodes.map(|node| (node, 100e9)).into() }
    }

    /// Each read as from, to and GB; time in ms.
    fn check(reads: &[(u32, u32, u64)], threads: u32, under_way: f64, expected: (f64, Bottleneck)) {
        let reads: Vec<Read> = reads
            .iter()
            .map(|(from, to, giga)| Read {
                from: NodeId::new(*from),
                to: NodeId::new(*to),
                bytes: giga * 1_000_000_000,
            })
            .collect();
        let cost = two_sockets().expected(&reads, Profile { threads, under_way }).unwrap().unwrap();
        assert_eq!(((cost.seconds * 1e4).round() / 10.0, cost.bottleneck), expected, "{reads:?}");
    }

    #[test]
    fn one_thread_waits_for_latency() {
        let threads = Bottleneck::Threads(NodeId::new(0));
        // 640 bytes in 90 ns are 7.1 GB/s, 64 bytes 0.71 GB/s.
        check(&[(0, 0, 10)], 1, STREAMING, (1406.3, threads));
        check(&[(0, 0, 10)], 1, CHASING, (14_062.5, threads));
        check(&[(0, 1, 10)], 1, CHASING, (21_875.0, threads));
    }

    #[test]
    fn many_threads_fill_the_controller_or_the_link() {
        check(&[(0, 0, 10)], 32, STREAMING, (100.0, Bottleneck::Controller(NodeId::new(0))));
        check(&[(0, 1, 10)], 32, STREAMING, (250.0, Bottleneck::Link(NodeId::new(0), NodeId::new(1))));
        // All on one node: half of the threads are far from it.
        let all_on_0 = [(0, 0, 10), (1, 0, 10)];
        check(&all_on_0, 32, STREAMING, (250.0, Bottleneck::Link(NodeId::new(1), NodeId::new(0))));
        // Interleaved: each controller has half of it, and each link a quarter.
        let spread = [(0, 0, 5), (0, 1, 5), (1, 0, 5), (1, 1, 5)];
        check(&spread, 64, STREAMING, (125.0, Bottleneck::Link(NodeId::new(1), NodeId::new(0))));
    }

    #[test]
    fn a_way_that_nobody_measured_is_named() {
        let machine = spec::machine("(1c 1G) (1G); access=0>1:250ns/30G").unwrap();
        let read = |to: u32| [Read { from: NodeId::new(0), to: NodeId::new(to), bytes: 1 << 30 }];
        let profile = Profile { threads: 99, under_way: STREAMING };
        let costs = Costs::from_firmware(&machine);
        let cost = costs.expected(&read(1), profile).unwrap().unwrap();
        assert_eq!(cost.bottleneck, Bottleneck::Controller(NodeId::new(1)));
        assert_eq!((cost.seconds * 1e6).round(), (1e6 * f64::from(1u32 << 30) / 30e9).round());
        let unknown = costs.expected(&read(0), profile).unwrap_err();
        assert_eq!(unknown.to_string(), "the latency from node 0 to node 0 is not known");
        assert_eq!(costs.expected(&[], profile), Ok(None));
    }

    proptest! {
        #[test]
        fn more_to_read_or_fewer_threads_are_never_faster(
            near in 0u64..1 << 40, far in 0u64..1 << 40, more in 0u64..1 << 40, threads in 1u32..256,
        ) {
            let (zero, one) = (NodeId::new(0), NodeId::new(1));
            let time = |near: u64, far: u64, threads: u32| {
                let reads = [Read { from: zero, to: zero, bytes: near }, Read { from: zero, to: one, bytes: far }];
                let profile = Profile { threads, under_way: STREAMING };
                two_sockets().expected(&reads, profile).unwrap().map_or(0.0, |cost| cost.seconds)
            };
            let base = time(near, far, threads);
            prop_assert!(time(near + more, far, threads) >= base && time(near, far + more, threads) >= base);
            prop_assert!(time(near, far, threads + 1) <= base);
        }
    }
}
