//! Distances that have a meaning of their own, and those that the kernel assumes where none are declared.
//!
//! # Source
//! `LOCAL_DISTANCE` and `REMOTE_DISTANCE` in `include/linux/topology.h`, as ACPI has them for a machine
//! without a SLIT.

use crate::id::NodeId;
use crate::matrix::NodeMatrix;
use crate::set::NodeSet;

/// From a node to itself; distances that somebody says must agree with it.
pub const LOCAL: u32 = 10;
/// Between two nodes.
pub const REMOTE: u32 = 20;

/// The distance that is assumed between two nodes.
pub fn default_distance(from: NodeId, to: NodeId) -> u32 {
    if from == to { LOCAL } else { REMOTE }
}

/// The distances that are assumed between all of these nodes.
pub fn default_distances(nodes: &NodeSet) -> NodeMatrix<u32> {
    let mut distances = NodeMatrix::new(nodes);
    for from in nodes {
        for to in nodes {
            distances.set(from, to, default_distance(from, to));
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_at_10_from_itself_and_at_20_from_others() {
        let nodes = NodeSet::from([0, 7]);
        let distances: Vec<u32> = default_distances(&nodes).iter().map(|(_, _, value)| *value).collect();
        assert_eq!(distances, [10, 20, 20, 10]);
    }
}
