//! Which of several placements is faster, from the cache lines that a program moves under each.
//!
//! Counts say where lines come from and go to, not how long that takes. What a machine adds is unknown within bounds: how
//! many lines are under way at once, how many threads the program has there. So each placement gets a bound for each
//! combination of the ends of what is unknown ([`Ends`]), and one is ahead of another only if it is by [`APART`] in every
//! combination. Anything else cannot be ranked.
//!
//! A bound is the longest of three times, as in [`cost`](crate::cost): that of the slowest thread, which waits for its
//! lines; that of the busiest way between two nodes; and that of the busiest node's memory. It compares placements of one
//! program; no run takes that time.
//!
//! # Units
//! Latency in ns, bandwidth in bytes per second; a bound is in seconds, up to a factor that all placements share.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use nodewise_machine::{Machine, NodeId};

use crate::cost::{CHASING, Costs, PathCost, STREAMING, Unknown};

/// Bytes of a line.
const LINE: f64 = 64.0;
/// By how much assumed differences between the latency of other nodes and that of the own may be wrong, either way. No end of
/// what is unknown: a way that is farther stays so, and only how much slower it makes a program depends on it.
const DIFFERENCES_WITHIN: [f64; 2] = [0.5, 2.0];
/// How far apart bounds have to be: with the counts of one kernel, two runs of the same program differ by less, and the
/// model leaves out more than any figure says.
pub const APART: f64 = 1.5;
/// Bytes that a thread has under way where a prefetcher works: about five times what it asks for by itself. Chosen, not
/// measured: one end of what is unknown.
const PREFETCHED: f64 = 48.0 * LINE;

/// Latency of the own node's memory where none is known, ns: a rule of thumb for servers.
pub const OWN_LATENCY: f64 = 90.0;
/// More for each point of distance beyond 10, ns: a rule of thumb that makes nodes of one package (11, 12) 5 to 10 ns farther,
/// and packages (20, 21) 50 to 55.
pub const LATENCY_OF_DISTANCE: f64 = 5.0;
/// Bandwidth of a node's memory where none is known, bytes per second: with CPUs, and without (CXL).
pub const OWN_BANDWIDTH: f64 = 100e9;
pub const BANDWIDTH_WITHOUT_CPUS: f64 = 30e9;
/// Bandwidth of a way between packages where none is known, and the distance from which on a node is in another package.
pub const LINK_BANDWIDTH: f64 = 40e9;
const OF_ANOTHER_PACKAGE: u32 = 16;
/// By how much assumed bandwidths may be wrong, either way.
const ASSUMED_WITHIN: [f64; 2] = [0.5, 2.0];

/// Lines that a thread moved between CPUs of one node and memory of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    pub thread: usize,
    /// The node of the CPUs.
    pub from: NodeId,
    /// The node of the memory.
    pub to: NodeId,
    /// Lines that were read as a prefetcher would see them coming, and the others that were read.
    pub in_order: u64,
    pub scattered: u64,
    /// Lines that went back because they were written to: nothing waits for them.
    pub written_back: u64,
}

/// The figures of a machine that are rules of thumb.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assumed {
    /// Whether bandwidths are.
    pub bandwidths: bool,
    /// Where latencies are, all costs with half and with twice the assumed difference between other nodes and the own.
    pub latencies: Option<[Costs; 2]>,
}

impl Assumed {
    /// Whether any figure is.
    pub const fn is_any(&self) -> bool {
        self.bandwidths || self.latencies.is_some()
    }
}

/// One end of everything that is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// Bytes that a thread has under way: of lines in order, and of others.
    pub in_order: f64,
    pub scattered: f64,
    /// Whether the program has as many threads more on the machine as that has CPUs more.
    pub grows: bool,
    /// The factor of all bandwidths.
    pub bandwidth: f64,
}

impl Ends {
    /// All combinations. `grows` where the program may have more threads on the machine; `is_assumed` where bandwidths are.
    pub fn all(grows: bool, is_assumed: bool) -> Vec<Self> {
        let bandwidths: &[f64] = if is_assumed { &ASSUMED_WITHIN } else { &[1.0] };
        let growths: &[bool] = if grows { &[false, true] } else { &[false] };
        let mut ends = Vec::new();
        for in_order in [STREAMING, PREFETCHED] {
            for scattered in [CHASING, STREAMING] {
                for &grows in growths {
                    ends.extend(bandwidths.iter().map(|&bandwidth| Self {
                        in_order,
                        scattered,
                        grows,
                        bandwidth,
                    }));
                }
            }
        }
        ends
    }
}

impl Costs {
    /// Adds what is not known by rules of thumb, from the distances: see the constants of this module.
    pub fn assume_the_rest(&mut self, machine: &Machine) -> Assumed {
        let known = self.clone();
        let (has_latency, bandwidths) = self.assume(machine, LATENCY_OF_DISTANCE);
        let latencies = has_latency.then(|| {
            DIFFERENCES_WITHIN.map(|factor| {
                let mut costs = known.clone();
                costs.assume(machine, LATENCY_OF_DISTANCE * factor);
                costs
            })
        });
        Assumed { bandwidths, latencies }
    }

    /// Whether a latency had to be assumed, and whether a bandwidth had to.
    fn assume(&mut self, machine: &Machine, latency_of_distance: f64) -> (bool, bool) {
        let (mut has_latency, mut has_bandwidth) = (false, false);
        for to in machine.nodes_with_memory().iter() {
            let has_cpus = !machine.cpus_of(to).is_empty();
            self.controllers.entry(to).or_insert_with(|| {
                has_bandwidth = true;
                if has_cpus { OWN_BANDWIDTH } else { BANDWIDTH_WITHOUT_CPUS }
            });
            for from in machine.nodes_with_cpus().iter() {
                let distance =
                    if from == to { 10 } else { machine.distances.get(from, to).copied().unwrap_or(20) };
                let known = self.paths.get(from, to).copied();
                let is_far = distance >= OF_ANOTHER_PACKAGE && has_cpus;
                let needs_link = is_far && known.is_none_or(|way| way.bandwidth.is_none());
                if known.is_some() && !needs_link {
                    continue;
                }
                has_latency |= known.is_none();
                has_bandwidth |= needs_link;
                let latency_ns = OWN_LATENCY + latency_of_distance * f64::from(distance.saturating_sub(10));
                let way = known.unwrap_or(PathCost { latency_ns, bandwidth: None });
                let bandwidth = way.bandwidth.or(is_far.then_some(LINK_BANDWIDTH));
                self.paths.set(from, to, PathCost { bandwidth, ..way });
            }
        }
        (has_latency, has_bandwidth)
    }

    /// Computes the bound of a placement at one end of what is unknown. `growth` is how many CPUs the machine has for each
    /// CPU of the guest in which lines were counted, by node of the CPUs.
    ///
    /// # Errors
    /// A way without any known figure.
    pub fn bound(&self, moved: &[Moved], ends: Ends, growth: &BTreeMap<NodeId, f64>) -> Result<f64, Unknown> {
        let mut threads: BTreeMap<usize, f64> = BTreeMap::new();
        let mut links: BTreeMap<(NodeId, NodeId), f64> = BTreeMap::new();
        let mut controllers: BTreeMap<NodeId, f64> = BTreeMap::new();
        for Moved { thread, from, to, in_order, scattered, written_back } in moved.iter().copied() {
            let way = self.paths.get(from, to).ok_or(Unknown { from, to })?;
            let waits = in_order as f64 / ends.in_order + scattered as f64 / ends.scattered;
            *threads.entry(thread).or_default() += waits * LINE * way.latency_ns / 1e9;
            let factor = if ends.grows { growth.get(&from).copied().unwrap_or(1.0) } else { 1.0 };
            let bytes = (in_order + scattered + written_back) as f64 * LINE * factor;
            if let Some(bandwidth) = way.bandwidth.filter(|_| from != to) {
                *links.entry((from, to)).or_default() += bytes / bandwidth / ends.bandwidth;
            }
            if let Some(bandwidth) = self.controllers.get(&to) {
                *controllers.entry(to).or_default() += bytes / bandwidth / ends.bandwidth;
            }
        }
        let times = threads.into_values().chain(links.into_values()).chain(controllers.into_values());
        Ok(times.fold(0.0, f64::max))
    }
}

/// The place that each of several placements may have, from 1: one more than those that are ahead of it, up to the number of
/// those that it is not ahead of. A placement whose place is known has one; one that cannot be ranked at all has them all.
/// `bounds` are those of each placement, in the same order of ends.
pub fn places(bounds: &[Vec<f64>]) -> Vec<RangeInclusive<usize>> {
    let before = |one: &[f64], other: &[f64]| {
        !one.is_empty() && one.iter().zip(other).all(|(one, other)| one * APART < *other)
    };
    let place = |own: &Vec<f64>| {
        let first = 1 + bounds.iter().filter(|other| before(other, own)).count();
        let last = bounds.len() - bounds.iter().filter(|other| before(own, other)).count();
        first..=last
    };
    bounds.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;
    use proptest::prelude::{Strategy, prop_assert, proptest};

    fn node(number: u32) -> NodeId {
        NodeId::new(number)
    }

    fn costs(text: &str) -> (Costs, bool) {
        let machine = spec::machine(text).unwrap();
        let mut costs = Costs::from_firmware(&machine);
        let assumed = costs.assume_the_rest(&machine);
        (costs, assumed.is_any())
    }

    #[test]
    fn assumed_latencies_have_two_ends_and_known_ones_none() {
        let assumed = |text: &str| {
            let machine = spec::machine(text).unwrap();
            Costs::from_firmware(&machine).assume_the_rest(&machine)
        };
        let ends = assumed("2x(4c 8G); dist=21").latencies.unwrap();
        let far = ends.map(|costs| costs.paths.get(node(0), node(1)).unwrap().latency_ns);
        assert_eq!(far, [117.5, 200.0]);
        let known = assumed(
            "2x(4c 8G); dist=21; access=0>0:80ns/90G; access=1>1:80ns/90G; access=0>1:130ns/30G; access=1>0:130ns/30G",
        );
        assert_eq!(known, Assumed { bandwidths: true, latencies: None });
    }

    fn moved(thread: usize, from: u32, to: u32, in_order: u64, scattered: u64) -> Moved {
        Moved { thread, from: node(from), to: node(to), in_order, scattered, written_back: 0 }
    }

    fn growth(factor: f64) -> BTreeMap<NodeId, f64> {
        [(node(0), factor), (node(1), factor)].into()
    }

    fn bounds(costs: &Costs, moved: &[Moved], grows: bool, is_assumed: bool) -> Vec<f64> {
        let ends = Ends::all(grows, is_assumed);
        ends.into_iter().map(|ends| costs.bound(moved, ends, &growth(16.0)).unwrap()).collect()
    }

    #[test]
    fn what_is_not_known_is_assumed_from_distances() {
        let (costs, has_assumed) = costs(
            "2x(2x(4c 8G)) (8G); dist=10,11,21,21,28/11,10,21,21,28/21,21,10,11,28/21,21,11,10,28/28,28,28,28,10",
        );
        assert!(has_assumed);
        let way = |from, to| *costs.paths.get(node(from), node(to)).unwrap();
        assert_eq!(way(0, 0), PathCost { latency_ns: 90.0, bandwidth: None });
        assert_eq!(way(0, 1), PathCost { latency_ns: 95.0, bandwidth: None });
        assert_eq!(way(0, 2), PathCost { latency_ns: 145.0, bandwidth: Some(LINK_BANDWIDTH) });
        assert_eq!(costs.controllers[&node(0)], OWN_BANDWIDTH);
        assert_eq!(costs.controllers[&node(4)], BANDWIDTH_WITHOUT_CPUS);
    }

    #[test]
    fn known_figures_stay() {
        let text = "2x(4c 8G); dist=21; access=0>0:80ns/90G; access=1>1:80ns/90G; access=0>1:130ns/30G; access=1>0:130ns/30G";
        let (costs, _) = costs(text);
        assert_eq!(costs.paths.get(node(0), node(1)).unwrap().latency_ns, 130.0);
    }

    #[test]
    fn a_bound_is_the_longest_of_thread_link_and_memory() {
        let (costs, _) = costs("2x(4c 8G); dist=21");
        let slow = Ends { in_order: STREAMING, scattered: CHASING, grows: false, bandwidth: 1.0 };
        let check = |moved: &[Moved], ends, expected: f64| {
            let found = costs.bound(moved, ends, &growth(16.0)).unwrap();
            assert!((found - expected).abs() < 1e-9 * expected, "{found} {expected}");
        };
        // A million lines that wait for each other, 90 ns each; in order ten at once.
        check(&[moved(0, 0, 0, 0, 1_000_000)], slow, 0.09);
        check(&[moved(0, 0, 0, 1_000_000, 0)], slow, 0.009);
        // Two threads wait side by side.
        check(&[moved(0, 0, 0, 0, 1_000_000), moved(1, 0, 1, 0, 1_000_000)], slow, 0.145);
        // On the machine 16 times as many threads: 1.024 GB over a link of 40 GB/s, or from memory of 100.
        let many = Ends { in_order: PREFETCHED, grows: true, ..slow };
        check(&[moved(0, 0, 1, 1_000_000, 0)], many, 1.024 / 40.0);
        check(&[moved(0, 0, 0, 1_000_000, 0)], many, 1.024 / 100.0);
        let back = Moved { written_back: 1_000_000, ..moved(0, 0, 0, 0, 0) };
        check(&[back], slow, 0.064 / 100.0);
        let far = [moved(0, 0, 7, 1, 0)];
        assert_eq!(costs.bound(&far, slow, &growth(1.0)), Err(Unknown { from: node(0), to: node(7) }));
    }

    /// A chain of loads, one thread: local against remote is 90 against 145 ns at every end, and half of it 117.5.
    #[test]
    fn a_chase_is_ranked_by_latency_and_half_of_one_is_not() {
        let (costs, is_assumed) = costs("2x(4c 8G); dist=21");
        let lines = |near, far| [moved(0, 0, 0, 0, near), moved(0, 0, 1, 0, far)];
        let bounds = [(1000, 0), (500, 500), (0, 1000)]
            .map(|(near, far)| bounds(&costs, &lines(near, far), false, is_assumed));
        assert_eq!(places(&bounds), [1..=2, 1..=3, 2..=3]);
    }

    /// Sixteen times as many threads stream at the limit of the link; if there are not more, they wait for latency.
    #[test]
    fn memory_of_one_node_for_threads_of_two_is_slower_whether_there_are_more_threads_or_not() {
        let (costs, is_assumed) = costs("2x(64c 8G); dist=21");
        let local = [moved(0, 0, 0, 10_000, 0), moved(1, 1, 1, 10_000, 0)];
        let on_one = [moved(0, 0, 0, 10_000, 0), moved(1, 1, 0, 10_000, 0)];
        let order = |grows| places(&[&local, &on_one].map(|moved| bounds(&costs, moved, grows, is_assumed)));
        // 145 against 90 ns, or 2.5 times on the link: at both ends more than half again.
        assert_eq!(order(true), [1..=1, 2..=2]);
        assert_eq!(order(false), [1..=1, 2..=2]);
    }

    #[test]
    fn equal_placements_cannot_be_ranked() {
        assert_eq!(places(&[vec![1.0, 2.0], vec![1.0, 2.0]]), [1..=2, 1..=2]);
        assert_eq!(places(&[vec![1.0, 5.0], vec![2.0, 2.0]]), [1..=2, 1..=2]);
        assert_eq!(places(&[vec![0.0]]), [1..=1]);
        assert_eq!(places(&[]), []);
    }

    proptest! {
        /// A true order of any times within the bounds never contradicts the places.
        #[test]
        fn places_hold_every_rank_by_any_end(
            bounds in (1usize..5, 1usize..7).prop_flat_map(|(ends, arms)| {
                proptest::collection::vec(proptest::collection::vec(0.1f64..10.0, ends), arms)
            }),
        ) {
            let places = places(&bounds);
            for end in 0..bounds[0].len() {
                for (place, own) in places.iter().zip(&bounds) {
                    let rank = 1 + bounds.iter().filter(|other| other[end] < own[end]).count();
                    prop_assert!(place.contains(&rank), "{rank} {place:?}");
                }
            }
        }
    }
}
