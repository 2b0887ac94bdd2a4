//! Weights of weighted interleave, as the kernel has them when no one sets them.
//!
//! # Source
//! `reduce_interleave_weights` and `mempolicy_set_node_perf` in `mm/mempolicy.c`; 6.16 to at least
//! 7.2. Seen on 6.16, 6.17 and 6.18. Before, every node's weight is 1.

use nodewise_machine::order::CollectOrdered as _;
use nodewise_machine::{AccessClass, Machine, NodeId};

use super::interleave::Weights;
use crate::release::{Change, Release};

/// The kernel's `weightiness`: more differs the more, less is the finer.
const WEIGHTINESS: u64 = 32;

/// The weights in force on a machine: those it reports, else those its kernel would derive.
pub fn in_force(machine: &Machine, release: Release) -> Weights {
    if !machine.settings.interleave_weights.is_empty() || !release.has(Change::AutomaticWeights) {
        return machine.settings.interleave_weights.clone();
    }
    let bandwidth = |node: NodeId| {
        let access = machine.access(node, AccessClass::Cpu)?;
        let (read, write) = (access.read_bandwidth_mb_per_s?, access.write_bandwidth_mb_per_s?);
        Some((node, read.min(write)))
    };
    automatic(&machine.memory_nodes().iter().filter_map(bandwidth).collect::<Vec<_>>())
}

/// Weights in proportion to bandwidths (in any unit), as small as they can be.
pub fn automatic(bandwidths: &[(NodeId, u32)]) -> Weights {
    let all: u64 = bandwidths.iter().map(|(_, bandwidth)| u64::from(*bandwidth)).sum();
    if all == 0 {
        return Weights::new();
    }
    let weight = |bandwidth: u32| (WEIGHTINESS * u64::from(bandwidth) / all).max(1);
    let common = bandwidths.iter().map(|(_, bandwidth)| weight(*bandwidth)).fold(0, greatest_common);
    let fits = |weight: u64| u32::try_from(weight).unwrap_or(u32::MAX);
    bandwidths.iter().map(|(node, bandwidth)| (*node, fits(weight(*bandwidth) / common))).collect_map()
}

fn greatest_common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;

    fn check(spec: &str, release: (u16, u16), expected: &[(u32, u32)]) {
        let machine = spec::machine(spec).unwrap();
        let weights = in_force(&machine, Release::new(release.0, release.1));
        let pairs: Vec<(u32, u32)> = weights.iter().map(|(node, weight)| (node.number(), *weight)).collect();
        assert_eq!(pairs, expected, "{spec}");
    }

    const TIERED: &str =
        "(1c 1G) (1c 1G) (1G); access=0>0:100ns/200G; access=1>1:100ns/200G; access=0>2:300ns/50G";

    #[test]
    fn weights_follow_the_bandwidths_since_6_16() {
        // 32 x 200/450 = 14, 32 x 50/450 = 3: nothing divides both.
        check(TIERED, (6, 16), &[(0, 14), (1, 14), (2, 3)]);
        check("2x(1c 1G); access=0>0:100ns/200G; access=1>1:100ns/200G", (6, 16), &[(0, 1), (1, 1)]);
        check(TIERED, (6, 12), &[]);
    }

    #[test]
    fn weights_that_are_set_are_kept() {
        check("2x(1c 1G); weights=0:3,1:2", (6, 18), &[(0, 3), (1, 2)]);
        check("2x(1c 1G)", (6, 18), &[]);
    }
}
