//! Weights for weighted interleaving, from what the memory of each node gives.

use std::collections::BTreeMap;

use nodewise_machine::NodeId;
use nodewise_machine::order::CollectOrdered as _;

/// The largest weight that is proposed. The kernel takes 1 to 255, but this many pages in a row come from
/// one node: a small buffer would lie on it alone.
const LARGEST: u32 = 32;

/// How far a weight may be from its share before larger numbers are tried.
const NEAR_ENOUGH: f64 = 0.05;

/// Weights and what they come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// The weight of each node.
    pub weights: BTreeMap<NodeId, u32>,
    /// How far the weight that fits worst is from its share, of 1.
    pub error: f64,
}

/// The smallest whole numbers in proportion to bandwidths; `None` for fewer than two nodes, or for a
/// bandwidth that is none.
///
/// # Source
/// `Documentation/admin-guide/mm/numa_memory_policy.rst`, weighted interleave: that many pages from
/// each node in turn. Linux 6.9.
pub fn weights(bandwidths: &[(NodeId, f64)]) -> Option<Weights> {
    let least = bandwidths.iter().map(|(_, rate)| *rate).reduce(f64::min)?;
    let most = bandwidths.iter().map(|(_, rate)| *rate).reduce(f64::max)?;
    let is_a_rate = |(_, rate): &(NodeId, f64)| *rate > 0.0 && rate.is_finite();
    if bandwidths.len() < 2 || !bandwidths.iter().all(is_a_rate) {
        return None;
    }
    // A node that is slower than the fastest by more than the largest weight still has a share.
    let of = |smallest: u32| {
        let scale = (f64::from(smallest) / least).min(f64::from(LARGEST) / most);
        scaled(bandwidths, scale)
    };
    let candidates = (1..=LARGEST).map(of);
    let mut best: Option<Weights> = None;
    for candidate in candidates {
        if candidate.error <= NEAR_ENOUGH {
            return Some(candidate);
        }
        if best.as_ref().is_none_or(|best| candidate.error < best.error) {
            best = Some(candidate);
        }
    }
    best
}

fn scaled(bandwidths: &[(NodeId, f64)], scale: f64) -> Weights {
    // At most the largest weight, by the choice of the scale.
    let weight = |rate: f64| (rate * scale).round().clamp(1.0, f64::from(LARGEST)) as u32;
    let weights: BTreeMap<NodeId, u32> =
        bandwidths.iter().map(|(node, rate)| (*node, weight(*rate))).collect_map();
    let all: f64 = weights.values().map(|weight| f64::from(*weight)).sum();
    let sum: f64 = bandwidths.iter().map(|(_, rate)| *rate).sum();
    let share = |(_, rate): &(NodeId, f64)| (f64::from(weight(*rate)) / all) / (rate / sum);
    let error = bandwidths.iter().map(|of| (share(of) - 1.0).abs()).fold(0.0, f64::max);
    Weights { weights, error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, proptest};

    fn check(bandwidths: &[f64], expected: Option<&[u32]>) {
        let named: Vec<(NodeId, f64)> = (0..).map(NodeId::new).zip(bandwidths.iter().copied()).collect();
        let found = weights(&named).map(|weights| weights.weights.into_values().collect::<Vec<_>>());
        assert_eq!(found.as_deref(), expected, "{bandwidths:?}");
    }

    #[test]
    fn weights_are_the_smallest_numbers_that_fit() {
        check(&[100.0, 100.0], Some(&[1, 1]));
        check(&[100.0, 101.0], Some(&[1, 1]));
        check(&[200.0, 100.0], Some(&[2, 1]));
        check(&[300.0, 200.0], Some(&[3, 2]));
        check(&[256.0, 64.0, 64.0], Some(&[4, 1, 1]));
        // A node that is far slower still gets its page.
        check(&[1000.0, 1.0], Some(&[32, 1]));
    }

    #[test]
    fn what_cannot_be_weighed_has_no_weights() {
        check(&[], None);
        check(&[100.0], None);
        check(&[100.0, 0.0], None);
        check(&[100.0, f64::NAN], None);
        check(&[100.0, f64::INFINITY], None);
    }

    proptest! {
        #[test]
        fn any_weights_are_taken_by_the_kernel_and_keep_the_order(
            rates in prop::collection::vec(0.001f64..5000.0, 2..10),
        ) {
            let named: Vec<(NodeId, f64)> = (0..).map(NodeId::new).zip(rates.iter().copied()).collect();
            let weights = weights(&named).unwrap().weights;
            prop_assert!(weights.values().all(|weight| (1..=LARGEST).contains(weight)));
            for (one, faster) in named.iter().zip(named.iter().skip(1)) {
                if one.1 <= faster.1 {
                    prop_assert!(weights[&one.0] <= weights[&faster.0]);
                }
            }
        }
    }
}
