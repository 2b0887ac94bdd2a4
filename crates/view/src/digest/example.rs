//! The value of a placement on a server that has nodes: an example from the model of costs, for those whose
//! machine has one node.

use std::collections::BTreeMap;

use nodewise_machine::{NodeId, NodeMatrix};
use nodewise_model::cost::{Bottleneck, Costs, PathCost, Profile, Read, STREAMING, Unknown};

/// The figures of the server: declared here, and like those of many with two sockets.
pub const THREADS_PER_NODE: u32 = 16;
/// Latency of a node's own memory, ns.
pub const NEAR_NS: f64 = 90.0;
/// Latency of the other node's memory, ns.
pub const FAR_NS: f64 = 140.0;
/// Bandwidth of a node's memory, bytes per second.
pub const CONTROLLER: f64 = 100e9;
/// Bandwidth of the link between the nodes in each direction, bytes per second.
pub const LINK: f64 = 40e9;

/// Bytes that are read.
const BYTES: u64 = 100_000_000_000;

/// A placement, and what a program reaches under it whose data one thread has written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    pub placement: &'static str,
    /// All threads together, reading in order, bytes per second.
    pub bandwidth: f64,
    /// The mean latency of a load at random, ns.
    pub latency_ns: f64,
    pub bottleneck: Bottleneck,
}

/// A server of two sockets.
fn server() -> Costs {
    let nodes = [NodeId::new(0), NodeId::new(1)];
    let mut ways = NodeMatrix::new(nodes);
    for from in nodes {
        for to in nodes {
            let far = PathCost { latency_ns: FAR_NS, bandwidth: Some(LINK) };
            ways.set(
                from,
                to,
                if from == to { PathCost { latency_ns: NEAR_NS, bandwidth: None } } else { far },
            );
        }
    }
    Costs { paths: ways, controllers: BTreeMap::from(nodes.map(|node| (node, CONTROLLER))) }
}

/// The parts of what is read, in quarters: node of the thread, node of the memory, quarters.
type Parts = &'static [(u32, u32, u64)];

/// The placements, the default first. One thread has written the data, so by default all of it lies on
/// that thread's node.
const PLACEMENTS: [(&str, Parts); 3] = [
    ("default", &[(0, 0, 2), (1, 0, 2)]),
    ("local to node 0", &[(0, 0, 4)]),
    ("interleave all", &[(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1)]),
];

/// Returns the model's predictions for them.
///
/// # Errors
/// A way that the server lacks.
pub fn predicted() -> Result<Vec<Predicted>, Unknown> {
    let server = server();
    let profile = Profile { threads: THREADS_PER_NODE, under_way: STREAMING };
    let mut all = Vec::new();
    for (placement, parts) in PLACEMENTS {
        let read = |(from, to, quarters): &(u32, u32, u64)| Read {
            from: NodeId::new(*from),
            to: NodeId::new(*to),
            bytes: BYTES / 4 * quarters,
        };
        let reads: Vec<Read> = parts.iter().map(read).collect();
        let latency = |read: &Read| {
            let way = server.paths.get(read.from, read.to).ok_or(Unknown { from: read.from, to: read.to })?;
            Ok(way.latency_ns * read.bytes as f64)
        };
        let latencies = reads.iter().map(latency).collect::<Result<Vec<f64>, Unknown>>()?;
        if let Some(cost) = server.expected(&reads, profile)? {
            all.push(Predicted {
                placement,
                bandwidth: BYTES as f64 / cost.seconds,
                latency_ns: latencies.into_iter().sum::<f64>() / BYTES as f64,
                bottleneck: cost.bottleneck,
            });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaving_doubles_the_bandwidth_of_data_that_one_thread_has_written() {
        let found = predicted().unwrap();
        let words: Vec<(&str, f64, f64)> =
            found.iter().map(|one| (one.placement, (one.bandwidth / 1e9).round(), one.latency_ns)).collect();
        assert_eq!(
            words,
            [("default", 80.0, 115.0), ("local to node 0", 100.0, 90.0), ("interleave all", 160.0, 115.0)]
        );
        assert_eq!(found[0].bottleneck, Bottleneck::Link(NodeId::new(1), NodeId::new(0)));
        assert_eq!(found[1].bottleneck, Bottleneck::Controller(NodeId::new(0)));
    }
}
