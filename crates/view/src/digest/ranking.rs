//! Placements by the cache lines that a program moves under them, counted in a guest of the machine.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use nodewise_machine::NodeId;
use nodewise_machine::order::Order as _;
use nodewise_model::cost::{Costs, Unknown};
use nodewise_model::ranking::{Ends, Moved, places};

use super::line_counts::{LineCounts, OWN, SIZES};

/// A thread with this part of the lines of the busiest has a share of the work.
const WORKS: f64 = 0.1;

/// A placement with what the program moved under it.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedPlacement {
    pub name: String,
    /// The options of `nodewise run` that apply it; none for the default.
    pub options: Vec<String>,
    pub counts: LineCounts,
}

/// A placement without counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncounted {
    pub name: String,
    /// Why, as the second half of a sentence.
    pub why: String,
}

/// Figures of a machine for what its ways cost.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownCosts {
    pub costs: Costs,
    /// Whether some of them are rules of thumb.
    pub is_assumed: bool,
    /// CPUs that the machine has for each of the guest's, by node.
    pub growth: BTreeMap<NodeId, f64>,
}

/// Placements in the order in which they are predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Those with the first places first; of equal ones that with the largest share of local lines.
    pub placements: Vec<RankedPlacement>,
    pub uncounted: Vec<Uncounted>,
    pub known: KnownCosts,
    /// Whether the program may have more threads on a machine with more CPUs: two of them or more do the work.
    pub grows: bool,
}

/// A placement and the places that it may have.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedPlacement {
    pub counted: CountedPlacement,
    pub places: RangeInclusive<usize>,
}

impl Ranking {
    /// Ranks placements.
    ///
    /// # Errors
    /// A way that lines went over has no known figure.
    pub fn new(
        placements: Vec<CountedPlacement>,
        uncounted: Vec<Uncounted>,
        known: KnownCosts,
    ) -> Result<Self, Unknown> {
        let grows = placements.iter().any(|placement| workers(&placement.counts) > 1);
        let ends = Ends::all(grows, known.is_assumed);
        let bounds = placements.iter().map(|placement| {
            let mut bounds = Vec::new();
            for size in 0..SIZES {
                let moved = moved(&placement.counts, size);
                for ends in &ends {
                    bounds.push(known.costs.bound(&moved, *ends, &known.growth)?);
                }
            }
            Ok(bounds)
        });
        let places = places(&bounds.collect::<Result<Vec<_>, _>>()?);
        let ranked = placements.into_iter().zip(places);
        let mut placements: Vec<RankedPlacement> =
            ranked.map(|(counted, places)| RankedPlacement { counted, places }).collect();
        placements.order_by_key(|ranked| {
            let share = ranked.counted.counts.all();
            // Whole thousandths, so that equal shares keep their order.
            let local = share.percent().map_or(0, |percent| (percent * 1000.0) as u64);
            (*ranked.places.start(), *ranked.places.end(), std::cmp::Reverse(local))
        });
        Ok(Self { placements, uncounted, known, grows })
    }

    /// The placements that no other is known to be ahead of.
    pub fn first(&self) -> impl Iterator<Item = &RankedPlacement> {
        self.placements.iter().filter(|ranked| *ranked.places.start() == 1)
    }

    /// Whether the order of no two placements is known.
    pub fn is_void(&self) -> bool {
        self.placements.iter().all(|ranked| ranked.places == (1..=self.placements.len()))
    }
}

/// Threads that share the work.
fn workers(counts: &LineCounts) -> usize {
    let mut lines = vec![0_u64; counts.threads.len()];
    for cell in &counts.cells {
        if let Some(lines) = lines.get_mut(cell.thread) {
            *lines += cell.moved(OWN);
        }
    }
    let most = lines.iter().max().copied().unwrap_or_default() as f64;
    lines.iter().filter(|lines| **lines > 0 && **lines as f64 >= WORKS * most).count()
}

/// The lines for a size of the cache. Those of memory outside of all nodes are left out.
fn moved(counts: &LineCounts, size: usize) -> Vec<Moved> {
    let cells = counts.cells.iter().filter_map(|cell| Some((cell, cell.node?)));
    cells
        .map(|(cell, to)| Moved {
            thread: cell.thread,
            from: cell.cpu_node,
            to,
            in_order: cell.in_order[size],
            scattered: cell.read[size].saturating_sub(cell.in_order[size]),
            written_back: cell.written[size],
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::digest::line_counts::{LineCell, tests::sample};
    use nodewise_machine::spec;

    /// Counts of threads that read some lines, each from CPUs of one node and memory of one: `(thread, from, to, in order,
    /// scattered)`.
    pub(crate) fn counted(name: &str, cells: &[(usize, u32, u32, u64, u64)]) -> CountedPlacement {
        let mut counts = sample();
        let node = NodeId::new;
        (counts.cpu_nodes, counts.memory_nodes) = (vec![node(0), node(1)], vec![node(0), node(1)]);
        counts.mappings.clear();
        counts.parts.clear();
        counts.cells = cells
            .iter()
            .map(|&(thread, from, to, in_order, scattered)| LineCell {
                phase: 0,
                thread,
                in_kernel: false,
                cpu_node: node(from),
                node: Some(node(to)),
                read: [in_order + scattered; SIZES],
                written: [0; SIZES],
                in_order: [in_order; SIZES],
            })
            .collect();
        let options = if name == "default" { Vec::new() } else { vec![format!("--{name}")] };
        CountedPlacement { name: name.to_owned(), options, counts }
    }

    pub(crate) fn known() -> KnownCosts {
        let machine = spec::machine("2x(8c 8G); dist=21").unwrap();
        let mut costs = Costs::from_firmware(&machine);
        let is_assumed = costs.assume_the_rest(&machine);
        let growth = [0, 1].map(|node| (NodeId::new(node), 4.0)).into();
        KnownCosts { costs, is_assumed, growth }
    }

    pub(crate) fn ranking() -> Ranking {
        let placements = vec![
            counted("default", &[(0, 0, 0, 0, 500), (1, 1, 1, 0, 250), (1, 1, 0, 0, 250)]),
            counted("membind=1", &[(0, 0, 1, 0, 500), (1, 0, 1, 0, 500)]),
            counted("local", &[(0, 0, 0, 100, 400), (1, 1, 1, 100, 400)]),
        ];
        let failed = Uncounted { name: "weighted".to_owned(), why: "it ends with exit code 3".to_owned() };
        Ranking::new(placements, vec![failed], known()).unwrap()
    }

    #[test]
    fn placements_are_ordered_by_the_places_they_may_have() {
        let ranking = ranking();
        let places: Vec<_> = ranking
            .placements
            .iter()
            .map(|ranked| (ranked.counted.name.as_str(), ranked.places.clone()))
            .collect();
        assert_eq!(places, [("local", 1..=2), ("default", 1..=3), ("membind=1", 2..=3)]);
        assert!(ranking.grows && !ranking.is_void());
        assert_eq!(ranking.first().count(), 2);
    }

    #[test]
    fn a_program_of_one_thread_has_no_more_elsewhere() {
        let one = counted("default", &[(0, 0, 0, 100, 900), (1, 1, 1, 10, 20)]);
        let ranking = Ranking::new(vec![one], Vec::new(), known()).unwrap();
        assert!(!ranking.grows && ranking.is_void());
    }

    #[test]
    fn a_way_without_a_figure_is_an_error() {
        let far = counted("default", &[(0, 0, 9, 1, 0)]);
        let error = Ranking::new(vec![far], Vec::new(), known()).unwrap_err();
        assert_eq!(error.to_string(), "the latency from node 0 to node 9 is not known");
    }
}
