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
///
/// Phases of a program follow one another, so the bound of a run is the sum of those of its phases; what the program does
/// outside of phases is one of them. Phases of processes that run side by side are added up all the same, which weighs them
/// alike under all placements.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Those with the first places first; of equal ones that with the largest share of local lines.
    pub placements: Vec<RankedPlacement>,
    /// The same for each phase that moved lines, in the order in which phases were first marked; none where no program marked
    /// any, or where one was chosen.
    pub phases: Vec<RankedPhase>,
    pub uncounted: Vec<Uncounted>,
    pub known: KnownCosts,
    /// Whether the program may have more threads on a machine with more CPUs: two of them or more do the work.
    pub grows: bool,
}

/// A phase, with the placements in the order that is predicted while it lasts.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedPhase {
    /// Its place among the phases of the counts; 0 is the time outside of phases.
    pub phase: usize,
    /// Those under which the phase moved lines, with the counts of the phase alone.
    pub placements: Vec<RankedPlacement>,
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
        mut placements: Vec<CountedPlacement>,
        uncounted: Vec<Uncounted>,
        known: KnownCosts,
    ) -> Result<Self, Unknown> {
        share_phases(&mut placements);
        let bounds = Bounds::new(&placements, &known)?;
        let phases = bounds.phases.iter().enumerate().map(|(phase, of_phase)| {
            let alone = placements.iter().zip(of_phase).filter_map(|(placement, bounds)| {
                let counts = placement.counts.in_phase(phase);
                (counts.all().all > 0).then(|| (CountedPlacement { counts, ..placement.clone() }, bounds))
            });
            let (alone, bounds): (Vec<_>, Vec<_>) =
                alone.map(|(alone, bounds)| (alone, bounds.clone())).unzip();
            RankedPhase { phase, placements: ranked(alone, &bounds) }
        });
        let phases: Vec<RankedPhase> = phases.filter(|phase| !phase.placements.is_empty()).collect();
        let is_one = placements.iter().any(|placement| placement.counts.chosen.is_some())
            || phases.iter().all(|phase| phase.phase == 0);
        Ok(Self {
            placements: ranked(placements, &bounds.whole()),
            phases: if is_one { Vec::new() } else { phases },
            uncounted,
            known,
            grows: bounds.grows,
        })
    }
}

/// The bounds of placements at each end of what is unknown.
struct Bounds {
    /// By phase and placement, those of all ends in the same order.
    phases: Vec<Vec<Vec<f64>>>,
    /// Whether in any phase two threads or more do the work.
    grows: bool,
}

impl Bounds {
    /// The bounds of placements whose phases are numbered alike.
    fn new(placements: &[CountedPlacement], known: &KnownCosts) -> Result<Self, Unknown> {
        let phases = 0..placements.iter().map(|placement| placement.counts.phases.len()).max().unwrap_or(0);
        let grows = |phase| placements.iter().any(|placement| workers(&placement.counts, phase) > 1);
        let grow: Vec<bool> = phases.clone().map(grows).collect();
        let grows = grow.contains(&true);
        let ends = Ends::all(grows, known.is_assumed);
        let alone = BTreeMap::new();
        let bounds = |placement: &CountedPlacement, phase: usize| {
            // A phase of one thread has one on a larger machine, too.
            let growth = if grow[phase] { &known.growth } else { &alone };
            let mut bounds = Vec::new();
            for size in 0..SIZES {
                let moved = moved(&placement.counts, phase, size);
                for ends in &ends {
                    bounds.push(known.costs.bound(&moved, *ends, growth)?);
                }
            }
            Ok(bounds)
        };
        let of_phase = |phase| placements.iter().map(|placement| bounds(placement, phase)).collect();
        Ok(Self { phases: phases.map(of_phase).collect::<Result<_, _>>()?, grows })
    }

    /// Those of the whole run, by placement.
    fn whole(&self) -> Vec<Vec<f64>> {
        let mut phases = self.phases.iter();
        let mut whole = phases.next().cloned().unwrap_or_default();
        for phase in phases {
            for (sums, bounds) in whole.iter_mut().zip(phase) {
                sums.iter_mut().zip(bounds).for_each(|(sum, bound)| *sum += bound);
            }
        }
        whole
    }
}

/// Numbers the phases of all placements alike, in the order in which they were first marked.
fn share_phases(placements: &mut [CountedPlacement]) {
    let mut names = vec![String::new()];
    for name in placements.iter().flat_map(|placement| placement.counts.phases.iter().skip(1)) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    placements.iter_mut().for_each(|placement| placement.counts.number_phases(&names));
}

/// Placements with the places that follow from their bounds, in order.
fn ranked(placements: Vec<CountedPlacement>, bounds: &[Vec<f64>]) -> Vec<RankedPlacement> {
    let ranked = placements.into_iter().zip(places(bounds));
    let mut placements: Vec<RankedPlacement> =
        ranked.map(|(counted, places)| RankedPlacement { counted, places }).collect();
    placements.order_by_key(|ranked| {
        let share = ranked.counted.counts.all();
        // Whole thousandths, so that equal shares keep their order.
        let local = share.percent().map_or(0, |percent| (percent * 1000.0) as u64);
        (*ranked.places.start(), *ranked.places.end(), std::cmp::Reverse(local))
    });
    placements
}

/// The placements that no other is known to be ahead of.
pub fn first(placements: &[RankedPlacement]) -> impl Iterator<Item = &RankedPlacement> {
    placements.iter().filter(|ranked| *ranked.places.start() == 1)
}

/// Whether the order of no two placements is known.
pub fn is_void(placements: &[RankedPlacement]) -> bool {
    placements.iter().all(|ranked| ranked.places == (1..=placements.len()))
}

/// Threads that share the work of a phase.
fn workers(counts: &LineCounts, phase: usize) -> usize {
    let mut lines = vec![0_u64; counts.threads.len()];
    for cell in counts.cells.iter().filter(|cell| cell.phase == phase) {
        if let Some(lines) = lines.get_mut(cell.thread) {
            *lines += cell.moved(OWN);
        }
    }
    let most = lines.iter().max().copied().unwrap_or_default() as f64;
    lines.iter().filter(|lines| **lines > 0 && **lines as f64 >= WORKS * most).count()
}

/// The lines of a phase for a size of the cache. Those of memory outside of all nodes are left out.
fn moved(counts: &LineCounts, phase: usize, size: usize) -> Vec<Moved> {
    let cells =
        counts.cells.iter().filter(|cell| cell.phase == phase).filter_map(|cell| Some((cell, cell.node?)));
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
        assert!(ranking.grows && !is_void(&ranking.placements));
        assert_eq!(first(&ranking.placements).count(), 2);
        assert_eq!(ranking.phases, []);
    }

    /// One thread fills memory of its node or of the other, then two read it, of which one or none is far. The second placement
    /// marks the phases in another order.
    pub(crate) fn phased() -> Ranking {
        let in_phases = |name: &str, phases: [&str; 2], cells: &[(usize, usize, u32, u32, u64, u64)]| {
            let without: Vec<_> = cells.iter().map(|cell| (cell.1, cell.2, cell.3, cell.4, cell.5)).collect();
            let mut counted = counted(name, &without);
            counted.counts.phases.extend(phases.map(str::to_owned));
            counted.counts.cells.iter_mut().zip(cells).for_each(|(cell, wanted)| cell.phase = wanted.0);
            counted
        };
        let one = in_phases(
            "membind=0",
            ["fill", "read\u{1b}"],
            &[(0, 0, 0, 0, 0, 10), (1, 0, 0, 0, 0, 500), (2, 0, 0, 0, 0, 500), (2, 1, 1, 0, 0, 500)],
        );
        let two = in_phases(
            "default",
            ["read\u{1b}", "fill"],
            &[(2, 0, 0, 1, 0, 500), (1, 0, 0, 0, 0, 500), (1, 1, 1, 1, 0, 500)],
        );
        Ranking::new(vec![one, two], Vec::new(), known()).unwrap()
    }

    #[test]
    fn each_phase_has_its_own_order_and_the_run_is_their_sum() {
        let ranking = phased();
        let order = |placements: &[RankedPlacement]| -> Vec<(String, RangeInclusive<usize>, u64)> {
            let of = |ranked: &RankedPlacement| {
                (ranked.counted.name.clone(), ranked.places.clone(), ranked.counted.counts.all().all)
            };
            placements.iter().map(of).collect()
        };
        let phases: Vec<_> = ranking.phases.iter().map(|of| (of.phase, order(&of.placements))).collect();
        let (one, two) = ("membind=0".to_owned(), "default".to_owned());
        assert_eq!(
            phases,
            [
                (0, vec![(one.clone(), 1..=1, 10)]),
                (1, vec![(one.clone(), 1..=1, 500), (two.clone(), 2..=2, 500)]),
                (2, vec![(two.clone(), 1..=1, 1000), (one.clone(), 2..=2, 1000)]),
            ],
        );
        assert_eq!(order(&ranking.placements), [(one, 1..=2, 1510), (two, 1..=2, 1500)]);
        assert!(ranking.grows);
    }

    #[test]
    fn a_program_of_one_thread_has_no_more_elsewhere() {
        let one = counted("default", &[(0, 0, 0, 100, 900), (1, 1, 1, 10, 20)]);
        let ranking = Ranking::new(vec![one], Vec::new(), known()).unwrap();
        assert!(!ranking.grows && is_void(&ranking.placements));
    }

    #[test]
    fn a_way_without_a_figure_is_an_error() {
        let far = counted("default", &[(0, 0, 9, 1, 0)]);
        let error = Ranking::new(vec![far], Vec::new(), known()).unwrap_err();
        assert_eq!(error.to_string(), "the latency from node 0 to node 9 is not known");
    }
}
