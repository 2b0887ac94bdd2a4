//! Placements by the cache lines that a program moves under them, counted in a guest of the machine.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use nodewise_machine::NodeId;
use nodewise_machine::order::Order as _;
use nodewise_model::cost::{CHASING, Costs, STREAMING, Unknown};
use nodewise_model::ranking::{Assumed, Ends, Moved, places};

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
    /// Those that are rules of thumb.
    pub assumed: Assumed,
    /// CPUs that the machine has for each of the guest's, by node.
    pub growth: BTreeMap<NodeId, f64>,
}

/// Placements in the order in which they are predicted.
///
/// Phases of a program follow one another, so the bound of a run is the sum of those of its phases; what the program does
/// outside of phases is one of them. Phases of processes that run side by side are added up too, which weighs them alike
/// under all placements.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Those with the first places first; of equal ones that with the largest share of local lines.
    pub placements: Vec<RankedPlacement>,
    /// The same for each phase that moved lines, in the order in which phases were first marked; none where no program marked
    /// any, or where one was chosen.
    pub phases: Vec<RankedPhase>,
    /// Assumptions about the whole run that places depend on.
    pub decisive: Vec<Decisive>,
    pub uncounted: Vec<Uncounted>,
    pub known: KnownCosts,
    /// Whether the program may have more threads on a machine with more CPUs: two of them or more do the work.
    pub grows: bool,
}

/// Something that counts do not say and a bound needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// Lines read in order that a thread has under way.
    InOrder,
    /// Other lines that it has under way.
    Scattered,
    /// Threads on a machine with more CPUs than the guest.
    Threads,
    /// Bandwidths that are rules of thumb.
    Bandwidths,
    /// Latencies that are rules of thumb.
    Latencies,
    /// The size of the modelled cache.
    Cache,
}

impl Assumption {
    /// Those whose ends are among those of a bound; latencies that are assumed are varied apart.
    const OF_BOUNDS: [Self; 5] =
        [Self::InOrder, Self::Scattered, Self::Threads, Self::Bandwidths, Self::Cache];

    /// The assumption in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::InOrder => "lines in order under way",
            Self::Scattered => "other lines under way",
            Self::Threads => "threads",
            Self::Bandwidths => "assumed bandwidths",
            Self::Latencies => "assumed latency difference",
            Self::Cache => "cache",
        }
    }

    /// Its ends in words.
    const fn ends(self) -> &'static [&'static str] {
        match self {
            Self::InOrder => &["10", "48"],
            Self::Scattered => &["1", "10"],
            Self::Threads => &["as many", "more, as CPUs"],
            Self::Bandwidths | Self::Latencies => &["half", "twice"],
            Self::Cache => &["half", "modelled", "twice"],
        }
    }

    /// Which of its ends a bound is for.
    fn end(self, setting: &Setting) -> usize {
        let ends = setting.ends;
        match self {
            Self::InOrder => usize::from(ends.in_order > STREAMING),
            Self::Scattered => usize::from(ends.scattered > CHASING),
            Self::Threads => usize::from(ends.grows),
            Self::Bandwidths => usize::from(ends.bandwidth > 1.0),
            Self::Latencies => 0,
            Self::Cache => setting.size,
        }
    }
}

/// An assumption that decides: the placements have other places where it is known to be at one of its ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Decisive {
    pub assumption: Assumption,
    /// Each end in words, with the places of the placements in the order of the ranking.
    pub ends: Vec<(&'static str, Vec<RangeInclusive<usize>>)>,
}

impl Decisive {
    /// The assumption with the places at each of its ends, if they differ.
    fn new(assumption: Assumption, ends: Vec<Vec<RangeInclusive<usize>>>) -> Option<Self> {
        let differs = ends.iter().any(|end| *end != ends[0]);
        let ends = assumption.ends().iter().copied().zip(ends).collect();
        differs.then_some(Self { assumption, ends })
    }

    /// Whether other placements may be the fastest at one of the ends than at another.
    pub fn turns_the_first(&self) -> bool {
        let firsts =
            |places: &[RangeInclusive<usize>]| -> Vec<bool> { places.iter().map(may_be_first).collect() };
        self.ends.iter().any(|(_, places)| firsts(places) != firsts(&self.ends[0].1))
    }
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
        let bounds = Bounds::new(&placements, &known.costs, &known)?;
        let phases = bounds.phases.iter().enumerate().map(|(phase, of_phase)| {
            let alone = placements.iter().zip(of_phase).filter_map(|(placement, bounds)| {
                let counts = placement.counts.clone().in_phase(phase);
                (counts.all().all > 0).then(|| (CountedPlacement { counts, ..placement.clone() }, bounds))
            });
            let (alone, bounds): (Vec<_>, Vec<_>) =
                alone.map(|(alone, bounds)| (alone, bounds.clone())).unzip();
            RankedPhase { phase, placements: ranked(alone, &bounds) }
        });
        let phases: Vec<RankedPhase> = phases.filter(|phase| !phase.placements.is_empty()).collect();
        let is_one = placements.iter().any(|placement| placement.counts.chosen.is_some())
            || phases.iter().all(|phase| phase.phase == 0);
        let whole = bounds.whole();
        let own_order = order(&placements, &places(&whole));
        let in_order = |places: Vec<RangeInclusive<usize>>| -> Vec<RangeInclusive<usize>> {
            own_order.iter().map(|at| places[*at].clone()).collect()
        };
        let of_bounds = Assumption::OF_BOUNDS.into_iter().filter_map(|assumption| {
            let ends = 0..assumption.ends().len();
            let ends: Vec<_> =
                ends.filter_map(|end| bounds.places_at(&whole, assumption, end)).map(in_order).collect();
            Decisive::new(assumption, ends)
        });
        let mut decisive: Vec<Decisive> = of_bounds.collect();
        if let Some(latencies) = &known.assumed.latencies {
            let at = |costs: &Costs| Ok(in_order(places(&Bounds::new(&placements, costs, &known)?.whole())));
            let ends = latencies.iter().map(at).collect::<Result<Vec<_>, _>>()?;
            decisive.extend(Decisive::new(Assumption::Latencies, ends));
        }
        Ok(Self {
            placements: ranked(placements, &whole),
            decisive,
            phases: if is_one { Vec::new() } else { phases },
            uncounted,
            known,
            grows: bounds.grows,
        })
    }
}

/// A combination of ends for which a bound is computed.
struct Setting {
    /// The place of the size of the cache.
    size: usize,
    ends: Ends,
}

/// The bounds of placements at each end of what is unknown.
struct Bounds {
    settings: Vec<Setting>,
    /// By phase and placement, those of all ends in the same order.
    phases: Vec<Vec<Vec<f64>>>,
    /// Whether in any phase two threads or more do the work.
    grows: bool,
}

impl Bounds {
    /// The bounds of placements whose phases are numbered alike, by these costs.
    fn new(placements: &[CountedPlacement], costs: &Costs, known: &KnownCosts) -> Result<Self, Unknown> {
        let phases = 0..placements.iter().map(|placement| placement.counts.phases.len()).max().unwrap_or(0);
        let grows = |phase| placements.iter().any(|placement| workers(&placement.counts, phase) > 1);
        let grow: Vec<bool> = phases.clone().map(grows).collect();
        let grows = grow.contains(&true);
        let ends = Ends::all(grows, known.assumed.bandwidths);
        let of_size = |size| ends.iter().map(move |ends| Setting { size, ends: *ends });
        let settings: Vec<Setting> = (0..SIZES).flat_map(of_size).collect();
        let alone = BTreeMap::new();
        let bounds = |placement: &CountedPlacement, phase: usize| {
            // A phase of one thread has one on a larger machine, too.
            let growth = if grow[phase] { &known.growth } else { &alone };
            let moved: [Vec<Moved>; SIZES] =
                std::array::from_fn(|size| moved(&placement.counts, phase, size));
            settings.iter().map(|setting| costs.bound(&moved[setting.size], setting.ends, growth)).collect()
        };
        let of_phase = |phase| placements.iter().map(|placement| bounds(placement, phase)).collect();
        let phases = phases.map(of_phase).collect::<Result<_, _>>()?;
        Ok(Self { settings, phases, grows })
    }

    /// The places where an assumption is known to be at one of its ends; nothing where no bound is for that end.
    fn places_at(
        &self,
        whole: &[Vec<f64>],
        assumption: Assumption,
        end: usize,
    ) -> Option<Vec<RangeInclusive<usize>>> {
        let is_at: Vec<bool> = self.settings.iter().map(|setting| assumption.end(setting) == end).collect();
        let at_end = |bounds: &Vec<f64>| -> Vec<f64> {
            bounds.iter().zip(&is_at).filter(|(_, is_at)| **is_at).map(|(bound, _)| *bound).collect()
        };
        is_at.contains(&true).then(|| places(&whole.iter().map(at_end).collect::<Vec<_>>()))
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
    let places = places(bounds);
    let order = order(&placements, &places);
    let ranked = placements.into_iter().zip(places);
    let mut ranked: Vec<Option<RankedPlacement>> =
        ranked.map(|(counted, places)| Some(RankedPlacement { counted, places })).collect();
    order.into_iter().filter_map(|at| ranked[at].take()).collect()
}

/// The order in which placements with these places are shown.
fn order(placements: &[CountedPlacement], places: &[RangeInclusive<usize>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..placements.len()).collect();
    order.order_by_key(|at| {
        let share = placements[*at].counts.all();
        // Whole thousandths, so that equal shares keep their order.
        let local = share.percent().map_or(0, |percent| (percent * 1000.0) as u64);
        (*places[*at].start(), *places[*at].end(), std::cmp::Reverse(local))
    });
    order
}

/// The placements that no other is known to be ahead of.
pub fn first(placements: &[RankedPlacement]) -> impl Iterator<Item = &RankedPlacement> {
    placements.iter().filter(|ranked| may_be_first(&ranked.places))
}

/// Whether a placement with these places may be the fastest.
pub fn may_be_first(places: &RangeInclusive<usize>) -> bool {
    *places.start() == 1
}

/// Whether the order of no two placements with these places is known.
pub fn is_void<'a>(mut places: impl ExactSizeIterator<Item = &'a RangeInclusive<usize>>) -> bool {
    let all = 1..=places.len();
    places.all(|places| *places == all)
}

/// The places of placements, in their order.
pub fn places_of(placements: &[RankedPlacement]) -> impl ExactSizeIterator<Item = &RangeInclusive<usize>> {
    placements.iter().map(|ranked| &ranked.places)
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
mod published;

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
        let assumed = costs.assume_the_rest(&machine);
        let growth = [0, 1].map(|node| (NodeId::new(node), 4.0)).into();
        KnownCosts { costs, assumed, growth }
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
        assert!(ranking.grows && !is_void(places_of(&ranking.placements)));
        assert_eq!(first(&ranking.placements).count(), 2);
        assert_eq!(ranking.phases, []);
    }

    /// One thread fills memory of its node or of the other, then two read it, one or none of them far. The second placement
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
    fn assumptions_that_decide_are_named_with_the_places_at_their_ends() {
        // Lines that wait for each other are far in the one, lines in order in the other.
        let one = counted("one", &[(0, 0, 1, 0, 1000), (0, 0, 0, 9000, 0)]);
        let two = counted("two", &[(0, 0, 0, 0, 1000), (0, 0, 1, 9000, 0)]);
        let ranking = Ranking::new(vec![one, two], Vec::new(), known()).unwrap();
        assert!(is_void(places_of(&ranking.placements)));
        let found: Vec<_> = ranking.decisive.iter().map(|found| (found.assumption, &found.ends)).collect();
        let either = vec![1..=2, 1..=2];
        // With twice the difference of latencies, and lines that wait: 200 * 1000 + 90 * 900 against 90 * 1000 + 200 * 900.
        assert_eq!(found, []);
        let near = counted("near", &[(0, 0, 0, 0, 1000)]);
        let half = counted("half", &[(0, 0, 0, 0, 500), (0, 0, 1, 0, 500)]);
        let ranking = Ranking::new(vec![near, half], Vec::new(), known()).unwrap();
        assert_eq!(
            ranking.decisive,
            [Decisive {
                assumption: Assumption::Latencies,
                ends: vec![("half", either), ("twice", vec![1..=1, 2..=2])],
            }]
        );
        assert!(ranking.decisive[0].turns_the_first());
    }

    #[test]
    fn a_program_of_one_thread_has_no_more_elsewhere() {
        let one = counted("default", &[(0, 0, 0, 100, 900), (1, 1, 1, 10, 20)]);
        let ranking = Ranking::new(vec![one], Vec::new(), known()).unwrap();
        assert!(!ranking.grows && is_void(places_of(&ranking.placements)));
    }

    #[test]
    fn a_way_without_a_figure_is_an_error() {
        let far = counted("default", &[(0, 0, 9, 1, 0)]);
        let error = Ranking::new(vec![far], Vec::new(), known()).unwrap_err();
        assert_eq!(error.to_string(), "the latency from node 0 to node 9 is not known");
    }
}
