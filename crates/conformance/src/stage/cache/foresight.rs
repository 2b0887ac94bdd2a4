//! The model of programs with files, and how much of it is certain.
//!
//! As long as no node is near its low watermark, pages are where the model says but for the kernel's own. Where a request of several
//! nodes comes to the end of one, the page at which the next node takes over is not certain. Where all of its nodes are short,
//! which of them frees first is not: then page cache and pages of programs together are, until `drop_caches` is written, after
//! which nothing is known any more.

use std::collections::BTreeSet;

use nodewise_machine::{MemPolicy, NodeId, NodeSet, PolicyMode};
use nodewise_model::simulate::{Act, Owner, Placement, Relief, Simulation, Step};
use nodewise_model::{Interval, Memory, Release, Weights};

use super::OWN;

/// Pages of a node around its low watermark where the next one takes over: free pages in lists of the CPUs.
const BLUR: u64 = OWN;
/// Page cache that has to be left on the nodes of a request which takes some, so that no program is killed.
const LEFT: u64 = 8 * OWN;

/// How the figures of a node are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Page cache and pages of programs each.
    Apart,
    /// Both together.
    Together,
}

/// The model of a script so far.
#[derive(Clone)]
pub struct Foresight {
    simulation: Simulation,
    altered: fn(Act) -> Act,
    /// Programs that use one node and no other.
    confined: BTreeSet<String>,
    is_blurred: bool,
    known: Known,
    is_lost: bool,
}

/// The facts that a model starts from.
pub struct Facts {
    pub memory: Memory,
    pub weights: Weights,
    pub max_nodes: u32,
    pub release: Release,
    /// Changes what the model is asked to do.
    pub altered: fn(Act) -> Act,
}

impl Foresight {
    /// A machine without programs and page cache.
    pub fn new(facts: Facts) -> Self {
        let Facts { memory, weights, max_nodes, release, altered } = facts;
        Self {
            simulation: Simulation::new(memory, weights, max_nodes, release),
            altered,
            confined: BTreeSet::new(),
            is_blurred: false,
            known: Known::Apart,
            is_lost: false,
        }
    }

    /// Plays what comes before the steps.
    ///
    /// # Errors
    /// It makes no sense.
    pub fn begin(&mut self, program: &str, act: &Act) -> Result<(), String> {
        if let Act::Start { policy: MemPolicy { mode: PolicyMode::Bind, nodes, .. }, .. } = act
            && nodes.len() == 1
        {
            self.confined.insert(program.to_owned());
        }
        self.play(program, act).map(drop)
    }

    fn play(&mut self, program: &str, act: &Act) -> Result<Step, String> {
        let act = (self.altered)(act.clone());
        self.simulation
            .play(program, &act)
            .map_err(|refused| format!("the model cannot play {act:?}: {refused:?}"))
    }

    /// Plays a step; `None` where the model does not know its end.
    ///
    /// # Errors
    /// It makes no sense.
    pub fn after(&self, program: &str, act: Act) -> Result<Option<Self>, String> {
        if self.is_lost {
            return Ok(None);
        }
        let mut next = self.clone();
        let step = next.play(program, &act)?;
        next.simulation.doubt_own(program, OWN);
        if !step.killed.is_empty() || step.missing.is_some() {
            return Ok(None);
        }
        if act == Act::DropCaches {
            next.is_lost = self.known == Known::Together;
            next.known = Known::Apart;
            return Ok(Some(next));
        }
        let short = short_nodes(&step);
        if !short.is_empty() && next.least_left(&short) < LEFT {
            return Ok(None);
        }
        if !self.confined.contains(program) {
            next.is_blurred |= next.simulation.memory().nodes().iter().any(|node| next.is_tight(node));
            if !short.is_empty() {
                next.known = Known::Together;
            }
        }
        Ok(Some(next))
    }

    /// Page cache that is certainly left on some nodes.
    fn least_left(&self, nodes: &NodeSet) -> u64 {
        let cache = self.simulation.page_cache();
        nodes.iter().filter_map(|node| cache.get(&node)).map(|pages| pages.least).sum()
    }

    /// Whether a node is near its low watermark, or below.
    fn is_tight(&self, node: NodeId) -> bool {
        self.simulation.memory().above_low_of(node) < BLUR
    }

    /// How the figures of nodes are known now.
    pub const fn known(&self) -> Known {
        self.known
    }

    /// Pages by which those of a program may be on other nodes; `None` where that is not known.
    pub fn blur_of(&self, program: &str) -> Option<u64> {
        match (self.confined.contains(program), self.known, self.is_lost) {
            (true, ..) => Some(0),
            (false, Known::Apart, false) => {
                Some(self.blur() + self.simulation.astray().values().sum::<u64>())
            }
            (false, ..) => None,
        }
    }

    const fn blur(&self) -> u64 {
        if self.is_blurred { BLUR } else { 0 }
    }

    /// Where the pages of a program are.
    pub fn placement(&self, name: &str) -> Placement {
        self.simulation.placements().remove(&Owner::Program(name.to_owned())).unwrap_or_default()
    }

    /// Page cache of each node, at least and at most; with the pages of programs where they are known together.
    pub fn cache(&self) -> Vec<(NodeId, i64, i64)> {
        let memory = self.simulation.memory();
        let (cache, placements) = (self.simulation.page_cache(), self.simulation.placements());
        let (blur, astray) = (OWN + self.blur(), self.simulation.astray());
        let interval = |node: NodeId| {
            let Interval { least, most } = cache.get(&node).copied().unwrap_or_default();
            let (programs, fewer, more) = match self.known {
                Known::Apart => (0, blur, blur),
                Known::Together => {
                    let own = placements.iter().filter(|(owner, _)| matches!(owner, Owner::Program(_)));
                    let pages = own.map(|(_, own)| own.nodes.get(&node).copied().unwrap_or(0)).sum();
                    // A node that frees has more for requests than the next ones, which then keep more free.
                    let zones = memory.zones().iter().filter(|zone| zone.node == node);
                    let kept: u64 = zones.map(|zone| zone.marks.high - zone.marks.min).sum();
                    let own = astray.get(&node).copied().unwrap_or(0);
                    let others = astray.values().sum::<u64>() - own;
                    (pages, blur + kept + own, blur + kept + others)
                }
            };
            let [least, most, fewer, more] =
                [least + programs, most + programs, fewer, more].map(|pages| pages as i64);
            (node, least - fewer, most + more)
        };
        memory.nodes().iter().map(interval).collect()
    }

    /// Pages of a node's memory.
    pub fn managed(&self, node: NodeId) -> u64 {
        self.simulation.memory().managed_of(node)
    }
}

/// Nodes on which page cache was, or may have been, dropped for a step.
fn short_nodes(step: &Step) -> NodeSet {
    let dropped = step.reliefs.iter().filter_map(|relief| match relief {
        Relief::Dropped { node, .. } => Some(*node),
        Relief::Swapped { .. } | Relief::Demoted { .. } => None,
    });
    dropped.chain(step.ahead.iter().map(|(node, _)| *node)).collect()
}

/// Whether pages by node are as many as expected, but for this many of each node.
pub fn is_near(kernel: &[(NodeId, u64)], model: &[(NodeId, u64)], blur: Option<u64>) -> bool {
    let Some(blur) = blur else { return true };
    let of = |pages: &[(NodeId, u64)], node| {
        pages.iter().find(|(own, _)| *own == node).map_or(0, |(_, count)| *count)
    };
    let nodes = kernel.iter().chain(model).map(|(node, _)| *node);
    nodes.into_iter().all(|node| of(kernel, node).abs_diff(of(model, node)) <= blur)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::spec;
    use nodewise_model::BuiltAt;
    use nodewise_model::simulate::{Backing, FilePart, Mapping, Part};

    const MIB: u64 = 256;

    fn begun(programs: &[(&str, &str)]) -> Foresight {
        let machine = spec::machine("2x(1c 512M); dist=20").unwrap();
        let release = Release::REFERENCE;
        let memory = Memory::from_machine(&machine, BuiltAt::Boot, release).with_boost(0);
        let weights = Weights::new();
        let mut foresight =
            Foresight::new(Facts { memory, weights, max_nodes: 64, release, altered: |act| act });
        for (name, policy) in programs {
            let start = Act::Start {
                cpu_node: NodeId::new(0),
                policy: policy.parse().unwrap(),
                allowed: machine.nodes_with_memory(),
            };
            let mapping = Mapping {
                region: "memory".to_owned(),
                pages: 900 * MIB,
                backing: Backing::NeverHuge,
                policy: None,
                first_page: None,
            };
            foresight.begin(name, &start).unwrap();
            foresight.begin(name, &Act::Map(mapping)).unwrap();
        }
        foresight
    }

    fn read(foresight: &Foresight, program: &str, mib: u64) -> Option<Foresight> {
        let part = FilePart { file: "f0".to_owned(), pages: 0..mib * MIB };
        foresight.after(program, Act::Read(part)).unwrap()
    }

    fn take(foresight: &Foresight, program: &str, mib: u64) -> Option<Foresight> {
        let part = Part { region: "memory".to_owned(), pages: Some(0..mib * MIB) };
        foresight.after(program, Act::Touch(part)).unwrap()
    }

    #[test]
    fn pages_are_exact_until_a_node_is_short() {
        let start = begun(&[("p0", "default"), ("p1", "bind:0")]);
        let room = read(&start, "p0", 300).unwrap();
        assert_eq!((room.known(), room.blur_of("p0")), (Known::Apart, Some(0)));
        let (node, least, most) = room.cache()[0];
        assert_eq!((node.number(), least, most), (0, (300 * MIB - OWN) as i64, (300 * MIB + OWN) as i64));
        let spilled = read(&start, "p0", 600).unwrap();
        assert_eq!((spilled.known(), spilled.blur_of("p0")), (Known::Apart, Some(BLUR)));
        let taken = take(&room, "p1", 250).unwrap();
        assert_eq!((taken.known(), taken.blur_of("p1")), (Known::Apart, Some(0)));
        let (_, least, most) = taken.cache()[0];
        assert!(least < most - (3 * OWN) as i64 && most < 300 * MIB as i64, "{least} to {most}");
    }

    #[test]
    fn kswapd_may_be_awake_where_the_pages_of_the_kernel_can_wake_it() {
        let room = read(&begun(&[("p1", "bind:0")]), "p1", 300).unwrap();
        let above = room.simulation.memory().above_low_of(NodeId::new(0));
        let least = |left: u64| {
            let part = Part { region: "memory".to_owned(), pages: Some(0..above - left) };
            room.after("p1", Act::Touch(part)).unwrap().unwrap().cache()[0].1
        };
        let exact = (300 * MIB - OWN) as i64;
        assert_eq!(least(OWN), exact);
        let memory = room.simulation.memory();
        let zones = memory.zones().iter().filter(|zone| zone.node == NodeId::new(0));
        let high: u64 = zones.map(|zone| zone.marks.high).sum();
        let left = OWN / 2;
        let free = memory.free_of(NodeId::new(0)) - (above - left);
        assert!(2 * high > free, "{high} {free}");
        assert_eq!(least(left), exact - (2 * high - free) as i64);
    }

    #[test]
    fn where_all_nodes_are_short_their_sums_are_known_until_caches_are_dropped() {
        let start = begun(&[("p0", "default")]);
        let full = read(&start, "p0", 1000).unwrap();
        let short = take(&full, "p0", 200).unwrap();
        assert_eq!((short.known(), short.blur_of("p0")), (Known::Together, None));
        let all: i64 = short.cache().iter().map(|(_, _, most)| most).sum();
        assert!(all > 900 * MIB as i64, "{all}");
        let dropped = short.after("", Act::DropCaches).unwrap().unwrap();
        assert_eq!((dropped.known(), dropped.blur_of("p0")), (Known::Apart, None));
        assert!(read(&dropped, "p0", 1).is_none());
    }

    #[test]
    fn a_step_for_which_little_cache_is_left_is_not_played() {
        let full = read(&begun(&[("p0", "bind:0")]), "p0", 400).unwrap();
        assert!(take(&full, "p0", 300).is_some());
        assert!(take(&full, "p0", 500).is_none() && take(&full, "p0", 700).is_none());
    }

    #[test]
    fn figures_are_near_within_the_blur() {
        let [a, b] = [0, 1].map(NodeId::new);
        assert!(is_near(&[(a, 10), (b, 5)], &[(a, 12), (b, 3)], Some(2)));
        assert!(!is_near(&[(a, 10)], &[(a, 12)], Some(1)) && !is_near(&[(b, 1)], &[], Some(0)));
        assert!(is_near(&[(b, 1)], &[], None));
    }
}
