//! The model of a group, twice: charged with nothing but the pages of its programs, and with as much beside as the kernel may
//! charge for itself. What both say is certain, and between them is the interval.

use std::collections::{BTreeMap, BTreeSet};

use nodewise_machine::{NodeId, NodeSet};
use nodewise_model::oom::{self, Bound, OomCandidate, OomChoice, OomLimit, OomRequest, OomSettings};
use nodewise_model::simulate::{
    Act, GroupLimit, GroupLimits, GroupState, LimitOutcome, Owner, Placement, Simulation, Step,
};
use nodewise_model::{Interval, Memory, Release, Weights};

use super::BATCH;

/// The group's name in the model.
pub const GROUP: &str = "group";
/// Pages by which programs of the same pages may differ in size: their stacks, and what they share with their parent.
const UNLIKE: u64 = 128;

/// The model of a script so far.
#[derive(Clone)]
pub struct Foresight {
    least: Simulation,
    most: Simulation,
    /// Pages that the kernel may charge for itself.
    overhead: u64,
    altered: fn(Act) -> Act,
    swap: u64,
    limits: GroupLimits,
    adjustments: BTreeMap<String, i32>,
    inside: BTreeSet<String>,
    /// Whether a limit was met, by its file: certainly, and possibly.
    met: BTreeMap<&'static str, (bool, bool)>,
}

/// The facts that a model starts from.
pub struct Facts {
    pub memory: Memory,
    pub weights: Weights,
    pub max_nodes: u32,
    pub release: Release,
    /// Pages of swap.
    pub swap: u64,
    pub overhead: u64,
    /// Changes what the model is asked to do.
    pub altered: fn(Act) -> Act,
}

impl Foresight {
    /// A machine without programs and groups.
    pub fn new(facts: Facts) -> Self {
        let Facts { memory, weights, max_nodes, release, swap, overhead, altered } = facts;
        let simulation = Simulation::new(memory, weights, max_nodes, release).with_swap(swap);
        Self {
            least: simulation.clone(),
            most: simulation,
            overhead,
            altered,
            swap,
            limits: GroupLimits::default(),
            adjustments: BTreeMap::new(),
            inside: BTreeSet::new(),
            met: BTreeMap::new(),
        }
    }

    /// Plays acts of programs; `None` where the model does not know who is killed. Nothing has happened then.
    ///
    /// # Errors
    /// An act makes no sense.
    pub fn after(&self, acts: Vec<(String, Act)>) -> Result<Option<Self>, String> {
        let mut next = self.clone();
        for (program, act) in acts {
            let before = next.clone();
            if !next.play(&program, act)? || next.is_doubtful(&before, &program) {
                return Ok(None);
            }
        }
        Ok(Some(next))
    }

    /// Plays an act; `false` where the two differ in who is killed.
    fn play(&mut self, program: &str, act: Act) -> Result<bool, String> {
        match &act {
            Act::Join { .. } => _ = self.inside.insert(program.to_owned()),
            Act::AdjustOom(value) => _ = self.adjustments.insert(program.to_owned(), *value),
            Act::Limit { limits, .. } => self.limits = limits.clone(),
            _ => {}
        }
        let act = (self.altered)(act);
        let tight = match act.clone() {
            Act::Limit { group, parent, limits } => {
                let tighter = |limit: Option<u64>| limit.map(|limit| limit.saturating_sub(self.overhead));
                let limits = GroupLimits { max: tighter(limits.max), high: tighter(limits.high), ..limits };
                Act::Limit { group, parent, limits }
            }
            act => act,
        };
        let say = |refused| format!("the model cannot play {act:?}: {refused:?}");
        // What was reclaimed before may be more than was wanted, and a limit is met later for it.
        let is_first = self.group().1.swap == 0;
        let few = self.least.play(program, &act).map_err(say)?;
        let many = self.most.play(program, &tight).map_err(say)?;
        // `memory.high` is looked at after a batch: where `memory.max` is nearer, reclaim there may have taken what was beyond.
        let GroupLimits { max, high, .. } = self.limits;
        let is_passed = max.zip(high).is_some_and(|(max, high)| max <= high + BATCH);
        for (is_certain, step) in [(true, &few), (false, &many)] {
            for met in &step.limits {
                // A program that finds no page and may not be killed goes on in a way that is not modelled.
                if met.outcome == LimitOutcome::NoVictim {
                    return Ok(false);
                }
                let file = match met.limit {
                    GroupLimit::Max => "max",
                    GroupLimit::High => "high",
                };
                let entry = self.met.entry(file).or_default();
                // A limit that is written has room made, but is not counted as met.
                let is_counted = is_first && !(is_passed && met.limit == GroupLimit::High);
                entry.0 |= is_certain && is_counted && matches!(act, Act::Touch(_));
                entry.1 = true;
            }
        }
        let names = |step: &Step| step.killed.iter().map(|killed| killed.program.clone()).collect::<Vec<_>>();
        Ok(names(&few) == names(&many))
    }

    /// Whether programs of the group are so much alike in size that another one than the model's may have been killed.
    fn is_doubtful(&self, before: &Self, asking: &str) -> bool {
        let was: Vec<(String, u64)> = before.members();
        let left: BTreeSet<String> = self.members().into_iter().map(|(name, _)| name).collect();
        let gone = was.iter().filter(|(name, _)| !left.contains(name)).count();
        if gone == 0 || gone == was.len() {
            return false;
        }
        if gone > 1 && !self.limits.kills_all {
            return true;
        }
        // A limit that is written kills again where the memory of the first is not free yet (6.12: two of three plays).
        if asking.is_empty() {
            return true;
        }
        // Whoever asks has grown until the group was full.
        let full = self.limits.max.unwrap_or(u64::MAX).saturating_add(self.swap_of_group());
        let others: u64 = was.iter().filter(|(name, _)| name != asking).map(|(_, pages)| pages).sum();
        let candidate = |(name, pages): &(String, u64)| {
            let pages = if name == asking { full.saturating_sub(others).max(*pages) } else { *pages };
            OomCandidate {
                size: Interval { least: pages, most: pages.saturating_add(UNLIKE) },
                adjustment: self.adjustments.get(name).copied().unwrap_or(0),
                bound: Bound::Nowhere,
                allowed: None,
            }
        };
        let candidates: Vec<OomCandidate> = was.iter().map(candidate).collect();
        let request = OomRequest {
            limit: OomLimit::Group,
            is_confined: false,
            total: self.limits.max.unwrap_or(u64::MAX).saturating_add(self.swap_of_group()),
            asking: None,
            settings: OomSettings::default(),
        };
        !matches!(oom::choose(&candidates, &request), OomChoice::Kills(worst) if worst.len() == 1)
    }

    fn swap_of_group(&self) -> u64 {
        self.limits.swap_max.unwrap_or(u64::MAX).min(self.swap)
    }

    /// The programs of the group that run, in the order in which they started, with all their pages.
    fn members(&self) -> Vec<(String, u64)> {
        let placements = self.least.placements();
        let runs = |name: &&String| self.runs(name);
        let size = |name: &String| {
            let placement = placements.get(&Owner::Program(name.clone()));
            placement.map_or(0, |placement| placement.pages() + placement.swapped)
        };
        self.inside.iter().filter(runs).map(|name| (name.clone(), size(name))).collect()
    }

    /// Whether a program has not been killed.
    pub fn runs(&self, name: &str) -> bool {
        self.least.placements().contains_key(&Owner::Program(name.to_owned()))
    }

    /// Where the pages of a program are.
    pub fn placement(&self, name: &str) -> Placement {
        self.least.placements().remove(&Owner::Program(name.to_owned())).unwrap_or_default()
    }

    /// The group, with the least and with the most that is charged.
    pub fn group(&self) -> (GroupState, GroupState) {
        let of = |simulation: &Simulation| simulation.groups().remove(GROUP).unwrap_or_default();
        (of(&self.least), of(&self.most))
    }

    /// Whether a limit was met, certainly and possibly.
    pub fn met(&self, file: &str) -> (bool, bool) {
        self.met.get(file).copied().unwrap_or_default()
    }

    /// Nodes on which the group has pages.
    pub fn nodes(&self) -> NodeSet {
        let of = |name: &String| self.placement(name).nodes.into_keys().collect::<Vec<NodeId>>();
        self.inside.iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{MemPolicy, spec};
    use nodewise_model::BuiltAt;
    use nodewise_model::simulate::{Backing, Mapping, Part};

    const OVERHEAD: u64 = 40;

    /// Programs of a group with this limit and this much swap, each with pages to take.
    fn group(max: u64, swap: u64, programs: &[&str]) -> Foresight {
        let machine = spec::machine("2x(1c 512M); dist=20").unwrap();
        let release = Release::REFERENCE;
        let memory = Memory::from_machine(&machine, BuiltAt::Boot, release);
        let altered = |act| act;
        let weights = Weights::new();
        let facts = Facts { memory, weights, max_nodes: 64, release, swap, overhead: OVERHEAD, altered };
        let limits = GroupLimits { max: Some(max), ..GroupLimits::default() };
        let mut acts = vec![("", Act::Limit { group: GROUP.to_owned(), parent: None, limits })];
        for name in programs {
            let mapping = Mapping {
                region: "memory".to_owned(),
                pages: 5000,
                backing: Backing::NeverHuge,
                policy: None,
                first_page: None,
            };
            let (cpu_node, policy, allowed) =
                (NodeId::new(0), MemPolicy::DEFAULT, machine.nodes_with_memory());
            acts.push((name, Act::Start { cpu_node, policy, allowed }));
            acts.extend([(*name, Act::Map(mapping)), (*name, Act::Join { group: GROUP.to_owned() })]);
        }
        let acts = acts.into_iter().map(|(name, act)| (name.to_owned(), act)).collect();
        Foresight::new(facts).after(acts).unwrap().unwrap()
    }

    fn taken(foresight: &Foresight, program: &str, pages: std::ops::Range<u64>) -> Option<Foresight> {
        let part = Part { region: "memory".to_owned(), pages: Some(pages) };
        foresight.after(vec![(program.to_owned(), Act::Touch(part))]).unwrap()
    }

    #[test]
    fn who_is_killed_is_known_away_from_the_limit_only() {
        let start = group(1000, 0, &["p0"]);
        let fits = taken(&start, "p0", 0..1000 - OVERHEAD).unwrap();
        assert!(fits.runs("p0") && fits.met("max") == (false, false));
        assert!(taken(&start, "p0", 0..1000 - OVERHEAD / 2).is_none());
        let killed = taken(&start, "p0", 0..1001).unwrap();
        assert!(!killed.runs("p0") && killed.met("max") == (true, true));
        assert_eq!(killed.group().0.killed, 1);
    }

    #[test]
    fn of_programs_of_a_size_no_victim_is_named() {
        let start = group(3000, 0, &["p0", "p1"]);
        let of = |first: u64| {
            let one = taken(&start, "p0", 0..first).unwrap();
            taken(&one, "p1", 0..3001 - first)
        };
        assert!(!of(2000).unwrap().runs("p0") && !of(1000).unwrap().runs("p1"));
        assert!(of(1450).is_none());
    }

    #[test]
    fn a_limit_that_is_written_kills_all_or_it_is_not_known_whom() {
        let limit = |foresight: &Foresight, max| {
            let limits = GroupLimits { max: Some(max), ..GroupLimits::default() };
            let act = Act::Limit { group: GROUP.to_owned(), parent: None, limits };
            foresight.after(vec![(String::new(), act)]).unwrap()
        };
        let two = taken(&group(3000, 0, &["p0", "p1"]), "p0", 0..2000).unwrap();
        let two = taken(&two, "p1", 0..500).unwrap();
        assert!(limit(&two, 1000).is_none());
        let alone = taken(&group(3000, 0, &["p0"]), "p0", 0..2000).unwrap();
        assert!(!limit(&alone, 1000).unwrap().runs("p0"));
    }

    #[test]
    fn pages_in_swap_are_an_interval_as_wide_as_what_the_kernel_may_charge() {
        let start = group(1000, 1 << 16, &["p0"]);
        let (few, many) = taken(&start, "p0", 0..1500).unwrap().group();
        assert_eq!((few.swap, many.swap), (500, 500 + OVERHEAD));
    }
}
